dnl SPDX-License-Identifier: Apache-2.0
dnl MU_CHECK_JPEG: libjpeg-turbo 1.5 or later (which decodes parts of an image), for JPEG images.
dnl Optional, used when found. Sets JPEG_CPPFLAGS, JPEG_LIBS, HAVE_JPEG (conditional),
dnl mu_has_jpeg.
AC_DEFUN([MU_CHECK_JPEG], [
MU_ARG_PREFIX([jpeg], [use libjpeg-turbo of this prefix (default: used when found)], [auto])
mu_jpeg_found=no
AS_IF([test $mu_jpeg_want = no], [mu_has_jpeg="no (--without-jpeg)"], [
	MU_PREFIX_HAS([jpeg], [jpeglib.h])
	MU_PREFIX_FLAGS([jpeg], [JPEG])
	JPEG_LIBS="$JPEG_LIBS -ljpeg"
	mu_has_jpeg="no (no libjpeg-turbo; Debian: apt-get install libjpeg62-turbo-dev; or --with-jpeg=DIR)"
	AC_MSG_CHECKING([for libjpeg-turbo])
	MU_LINK_WITH([$JPEG_CPPFLAGS], [$JPEG_LIBS], [[
#include <stddef.h>
#include <stdio.h>
#include <jpeglib.h>]], [
		struct jpeg_decompress_struct d;
		jpeg_create_decompress(&d);
		JDIMENSION x = 0, w = 1;
		jpeg_mem_src(&d, NULL, 0);
		d.out_color_space = JCS_EXT_RGBX;
		jpeg_crop_scanline(&d, &x, &w);
		jpeg_skip_scanlines(&d, 1);], [
		mu_jpeg_found=yes
		MU_HEADER_TEXT([mu_jpeg_version], [$JPEG_CPPFLAGS -include stddef.h -include stdio.h], [jpeglib.h],
			[LIBJPEG_TURBO_VERSION])
		mu_has_jpeg="yes ($mu_jpeg_version)"])
	AC_MSG_RESULT([$mu_jpeg_found])])
AS_IF([test $mu_jpeg_found = no], [
	AS_IF([test $mu_jpeg_want = yes], [AC_MSG_ERROR([--with-jpeg was given, but: $mu_has_jpeg])])
	JPEG_CPPFLAGS= JPEG_LIBS=])
AC_SUBST([JPEG_CPPFLAGS])
AC_SUBST([JPEG_LIBS])
AM_CONDITIONAL([HAVE_JPEG], [test $mu_jpeg_found = yes])
])
