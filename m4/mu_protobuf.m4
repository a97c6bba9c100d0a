dnl SPDX-License-Identifier: Apache-2.0
dnl MU_CHECK_PROTOBUF: protobuf-c 1 with its compiler, for event files of TensorBoard. Optional, used when found.
dnl Sets PROTOBUF_CPPFLAGS, PROTOBUF_LIBS, PROTOC_C, HAVE_PROTOBUF (conditional), mu_has_protobuf.
AC_DEFUN([MU_CHECK_PROTOBUF], [
MU_ARG_PREFIX([protobuf], [use protobuf-c of this prefix (default: used when found)], [auto])
mu_protobuf_found=no
AS_IF([test $mu_protobuf_want = no], [mu_has_protobuf="no (--without-protobuf)"], [
	MU_PREFIX_HAS([protobuf], [protobuf-c/protobuf-c.h])
	MU_PREFIX_FLAGS([protobuf], [PROTOBUF])
	PROTOBUF_LIBS="$PROTOBUF_LIBS -lprotobuf-c"
	mu_has_protobuf="no (Debian: apt-get install libprotobuf-c-dev protobuf-c-compiler; or --with-protobuf=DIR)"
	AC_PATH_PROGS([PROTOC_C], [protoc-c], [], [${mu_protobuf_prefix:+$mu_protobuf_prefix/bin:}$PATH])
	AC_MSG_CHECKING([for protobuf-c])
	AS_IF([test -n "$PROTOC_C"], [
		MU_LINK_WITH([$PROTOBUF_CPPFLAGS], [$PROTOBUF_LIBS], [[#include <protobuf-c/protobuf-c.h>]],
			[return protobuf_c_version_number() < 1000000;], [
			mu_protobuf_found=yes
			MU_HEADER_TEXT([mu_protobuf_version], [$PROTOBUF_CPPFLAGS], [protobuf-c/protobuf-c.h],
				[PROTOBUF_C_VERSION])
			mu_has_protobuf="yes ($mu_protobuf_version)"])])
	AC_MSG_RESULT([$mu_protobuf_found])])
AS_IF([test $mu_protobuf_found = no], [
	AS_IF([test $mu_protobuf_want = yes], [AC_MSG_ERROR([--with-protobuf was given, but: $mu_has_protobuf])])
	PROTOBUF_CPPFLAGS= PROTOBUF_LIBS=])
AC_SUBST([PROTOBUF_CPPFLAGS])
AC_SUBST([PROTOBUF_LIBS])
AM_CONDITIONAL([HAVE_PROTOBUF], [test $mu_protobuf_found = yes])
])
