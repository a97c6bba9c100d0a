dnl SPDX-License-Identifier: Apache-2.0
dnl Flags for our own files: optimisation, sanitizers, warnings. CFLAGS stays the user's.

dnl MU_BUILD_TYPE: default CFLAGS, before AC_PROG_CC sets its own.
AC_DEFUN([MU_BUILD_TYPE], [
AC_BEFORE([$0], [AC_PROG_CC])
AC_ARG_ENABLE([debug],
	[AS_HELP_STRING([--enable-debug], [compile with -O0 -g instead of -O3 -g])],
	[], [enable_debug=no])
AS_IF([test "x$enable_debug" != xno], [mu_optimise="-O0 -g"], [mu_optimise="-O3 -g"])
AS_IF([test "${CFLAGS+set}" != set], [CFLAGS=$mu_optimise])
])

dnl MU_ENABLE_PARANOID: collective calls prove that all ranks passed the same values.
AC_DEFUN([MU_ENABLE_PARANOID], [
AC_ARG_ENABLE([paranoid],
	[AS_HELP_STRING([--enable-paranoid], [check at every collective call that the ranks agree (slow)])],
	[], [enable_paranoid=no])
mu_has_paranoid=no
PARANOID_CPPFLAGS=
AS_IF([test "x$enable_paranoid" != xno], [
	mu_has_paranoid=yes
	PARANOID_CPPFLAGS=-DMU_PARANOID])
AC_SUBST([PARANOID_CPPFLAGS])
])

dnl MU_MAX_ISA: --with-max-isa=avx2 compiles and plans for AVX2 at most, so that AVX2 can be measured on any machine.
AC_DEFUN([MU_MAX_ISA], [
AC_ARG_WITH([max-isa],
	[AS_HELP_STRING([--with-max-isa=NAME],
		[no instructions beyond avx2, in oneDNN too (default: all that the machine has)])],
	[], [with_max_isa=all])
MAX_ISA_CPPFLAGS=
AS_CASE([$with_max_isa],
	[avx2], [MAX_ISA_CPPFLAGS=-DMU_MAX_ISA_AVX2],
	[all|yes|no], [with_max_isa=all],
	[AC_MSG_ERROR([--with-max-isa=$with_max_isa: choose avx2 or all])])
AC_SUBST([MAX_ISA_CPPFLAGS])
])

dnl MU_SANITIZE: --enable-sanitize=address,undefined. Sets SANITIZE_CFLAGS, used to compile and to
dnl link.
AC_DEFUN([MU_SANITIZE], [
AC_ARG_ENABLE([sanitize],
	[AS_HELP_STRING([--enable-sanitize=LIST], [compile with -fsanitize=LIST, e.g. address,undefined])],
	[], [enable_sanitize=no])
AS_IF([test "x$enable_sanitize" = xyes], [enable_sanitize=address,undefined])
SANITIZE_CFLAGS=
mu_has_sanitize=none
AS_IF([test "x$enable_sanitize" != xno], [
	SANITIZE_CFLAGS="-fsanitize=$enable_sanitize -fno-omit-frame-pointer"
	AS_CASE([$enable_sanitize], [*undefined*],
		[SANITIZE_CFLAGS="$SANITIZE_CFLAGS -fno-sanitize-recover=undefined"])
	mu_save_CFLAGS=$CFLAGS
	CFLAGS="$CFLAGS $SANITIZE_CFLAGS"
	AC_MSG_CHECKING([whether $CC links with -fsanitize=$enable_sanitize])
	AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])
		AC_MSG_ERROR([--enable-sanitize=$enable_sanitize: the compiler cannot link with it, see config.log])])
	CFLAGS=$mu_save_CFLAGS
	mu_has_sanitize=$enable_sanitize])
AC_SUBST([SANITIZE_CFLAGS])
])

dnl MU_ADD_FLAG(VARIABLE, flag): add it if the compiler takes it. -Werror, for clang only warns of
dnl a flag it does not know.
AC_DEFUN([MU_ADD_FLAG], [
AC_MSG_CHECKING([whether $CC takes $2])
mu_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS -Werror $2"
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
	[AC_MSG_RESULT([yes])
	$1="$$1 $2"], [AC_MSG_RESULT([no])])
CFLAGS=$mu_save_CFLAGS
])

dnl MU_WARNINGS: sets STD_CFLAGS, WARN_CFLAGS, NVCC_WARN_FLAGS. Warnings are errors only in a git checkout, and
dnl there only with --enable-werror or in CI: a new compiler must not break a user's build.
AC_DEFUN([MU_WARNINGS], [
STD_CFLAGS=
WARN_CFLAGS= NVCC_WARN_FLAGS=
MU_ADD_FLAG([STD_CFLAGS], [-std=gnu11])
MU_ADD_FLAG([STD_CFLAGS], [-fno-math-errno]) dnl errno of sqrtf keeps loops from becoming vectors
MU_ADD_FLAG([STD_CFLAGS], [-fno-trapping-math]) dnl so do comparisons, but for AVX-512; values stay
for mu_flag in -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
	-Wvla -Wpointer-arith -Wwrite-strings -Wundef -Wformat=2 -Wcast-qual -Wduplicated-cond -Wlogical-op; do
	MU_ADD_FLAG([WARN_CFLAGS], [$mu_flag])
done
mu_enum_float=
dnl In clang 19's -Wextra; our whole numbers are enum constants.
MU_ADD_FLAG([mu_enum_float], [-Wenum-float-conversion])
AS_IF([test "x$mu_enum_float" != x], [WARN_CFLAGS="$WARN_CFLAGS -Wno-enum-float-conversion"])
AC_ARG_ENABLE([werror],
	[AS_HELP_STRING([--enable-werror],
		[warnings are errors, in a git checkout only (default: only where CI is set)])],
	[], [AS_IF([test "x$CI" != x], [enable_werror=yes], [enable_werror=no])])
mu_has_werror=shown
AS_IF([test "x$enable_werror" != xno], [
	AS_IF([test -e "$srcdir/.git"],
		[WARN_CFLAGS="$WARN_CFLAGS -Werror"
		NVCC_WARN_FLAGS="-Werror all-warnings"
		mu_has_werror="are errors"],
		[mu_has_werror="shown (errors only in a git checkout)"])])
mu_std_flag=$STD_CFLAGS
AC_SUBST([STD_CFLAGS])
AC_SUBST([NVCC_WARN_FLAGS])
AC_SUBST([WARN_CFLAGS])
])
