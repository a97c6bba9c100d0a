dnl SPDX-License-Identifier: Apache-2.0
dnl MU_CHECK_PNG: libpng 1.6 for PNG images.
dnl Optional, used when found. Sets PNG_CPPFLAGS, PNG_LIBS, HAVE_PNG (conditional),
dnl mu_has_png.
AC_DEFUN([MU_CHECK_PNG], [
MU_ARG_PREFIX([png], [use libpng of this prefix (default: used when found)], [auto])
mu_png_found=no
AS_IF([test $mu_png_want = no], [mu_has_png="no (--without-png)"], [
	MU_PREFIX_HAS([png], [png.h])
	MU_PREFIX_FLAGS([png], [PNG])
	PNG_LIBS="$PNG_LIBS -lpng -lz"
	mu_has_png="no (no libpng; Debian: apt-get install libpng-dev; or --with-png=DIR)"
	AC_MSG_CHECKING([for libpng])
	MU_LINK_WITH([$PNG_CPPFLAGS], [$PNG_LIBS], [[#include <png.h>]], [
		png_image image = {.version = PNG_IMAGE_VERSION};
		png_image_begin_read_from_memory(&image, "", 0);], [
		mu_png_found=yes
		MU_HEADER_TEXT([mu_png_version], [$PNG_CPPFLAGS], [png.h], [PNG_LIBPNG_VER_STRING])
		mu_has_png="yes ($mu_png_version)"])
	AC_MSG_RESULT([$mu_png_found])])
AS_IF([test $mu_png_found = no], [
	AS_IF([test $mu_png_want = yes], [AC_MSG_ERROR([--with-png was given, but: $mu_has_png])])
	PNG_CPPFLAGS= PNG_LIBS=])
AC_SUBST([PNG_CPPFLAGS])
AC_SUBST([PNG_LIBS])
AM_CONDITIONAL([HAVE_PNG], [test $mu_png_found = yes])
])
