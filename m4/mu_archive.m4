dnl SPDX-License-Identifier: Apache-2.0
dnl MU_CHECK_ARCHIVE: libarchive 3, for the tools that read tar files. Optional, used when found. Sets
dnl ARCHIVE_CPPFLAGS, ARCHIVE_LIBS, HAVE_ARCHIVE (conditional), mu_has_archive.
AC_DEFUN([MU_CHECK_ARCHIVE], [
MU_ARG_PREFIX([archive], [use libarchive of this prefix (default: used when found)], [auto])
mu_archive_found=no
AS_IF([test $mu_archive_want = no], [mu_has_archive="no (--without-archive)"], [
	MU_PREFIX_HAS([archive], [archive.h])
	MU_PREFIX_FLAGS([archive], [ARCHIVE])
	ARCHIVE_LIBS="$ARCHIVE_LIBS -larchive"
	mu_has_archive="no (no libarchive; Debian: apt-get install libarchive-dev; or --with-archive=DIR)"
	AC_MSG_CHECKING([for libarchive])
	MU_LINK_WITH([$ARCHIVE_CPPFLAGS], [$ARCHIVE_LIBS], [[#include <archive.h>]],
		[return archive_filter_bytes(archive_read_new(), -1) > 0;], [
		mu_archive_found=yes
		MU_HEADER_TEXT([mu_archive_version], [$ARCHIVE_CPPFLAGS], [archive.h], [ARCHIVE_VERSION_ONLY_STRING])
		mu_has_archive="yes ($mu_archive_version)"])
	AC_MSG_RESULT([$mu_archive_found])])
AS_IF([test $mu_archive_found = no], [
	AS_IF([test $mu_archive_want = yes], [AC_MSG_ERROR([--with-archive was given, but: $mu_has_archive])])
	ARCHIVE_CPPFLAGS= ARCHIVE_LIBS=])
AC_SUBST([ARCHIVE_CPPFLAGS])
AC_SUBST([ARCHIVE_LIBS])
AM_CONDITIONAL([HAVE_ARCHIVE], [test $mu_archive_found = yes])
])
