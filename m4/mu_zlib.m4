dnl SPDX-License-Identifier: Apache-2.0
dnl MU_CHECK_ZLIB: required, for the .gz files of the IDX format. Sets ZLIB_LIBS, mu_has_zlib.
AC_DEFUN([MU_CHECK_ZLIB], [
ZLIB_LIBS=-lz
AC_MSG_CHECKING([for zlib])
MU_LINK_WITH([], [$ZLIB_LIBS], [[#include <zlib.h>]], [return gzopen("", "rb") != Z_NULL;],
	[AC_MSG_RESULT([yes])
	MU_HEADER_TEXT([mu_zlib_version], [], [zlib.h], [ZLIB_VERSION])
	mu_has_zlib="yes ($mu_zlib_version)"],
	[AC_MSG_RESULT([no])
	AC_MSG_ERROR([zlib is needed: apt-get install zlib1g-dev (Debian),
dnf install zlib-devel (Fedora), module load zlib; or give CPPFLAGS=-IDIR/include LDFLAGS=-LDIR/lib])])
AC_SUBST([ZLIB_LIBS])
])
