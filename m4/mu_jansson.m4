dnl SPDX-License-Identifier: Apache-2.0
dnl MU_CHECK_JANSSON: jansson 2.7 or later, for the configurations of mubench run. Optional, used when found. Sets
dnl JANSSON_CPPFLAGS, JANSSON_LIBS, HAVE_JANSSON (conditional), mu_has_jansson.
AC_DEFUN([MU_CHECK_JANSSON], [
MU_ARG_PREFIX([jansson], [use jansson of this prefix (default: used when found)], [auto])
mu_jansson_found=no
AS_IF([test $mu_jansson_want = no], [mu_has_jansson="no (--without-jansson)"], [
	MU_PREFIX_HAS([jansson], [jansson.h])
	MU_PREFIX_FLAGS([jansson], [JANSSON])
	JANSSON_LIBS="$JANSSON_LIBS -ljansson"
	mu_has_jansson="no (no jansson; Debian: apt-get install libjansson-dev; or --with-jansson=DIR)"
	AC_MSG_CHECKING([for jansson])
	MU_LINK_WITH([$JANSSON_CPPFLAGS], [$JANSSON_LIBS], [[#include <jansson.h>]],
		[return json_equal(json_string("a"), json_null());], [
		mu_jansson_found=yes
		MU_HEADER_TEXT([mu_jansson_version], [$JANSSON_CPPFLAGS], [jansson.h], [JANSSON_VERSION])
		mu_has_jansson="yes ($mu_jansson_version)"])
	AC_MSG_RESULT([$mu_jansson_found])])
AS_IF([test $mu_jansson_found = no], [
	AS_IF([test $mu_jansson_want = yes], [AC_MSG_ERROR([--with-jansson was given, but: $mu_has_jansson])])
	JANSSON_CPPFLAGS= JANSSON_LIBS=])
AC_SUBST([JANSSON_CPPFLAGS])
AC_SUBST([JANSSON_LIBS])
AM_CONDITIONAL([HAVE_JANSSON], [test $mu_jansson_found = yes])
])
