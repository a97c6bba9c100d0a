dnl SPDX-License-Identifier: Apache-2.0
dnl MU_CHECK_MODELS: how a program is linked that loads models (trainer --network ./mynet.so): all
dnl of libmuster.a must be in it, also what it does not call itself, and visible to the model. Sets
dnl WHOLE_ARCHIVE, NO_WHOLE_ARCHIVE, EXPORT_DYNAMIC (empty where the linker has no such flags),
dnl mu_has_models.
AC_DEFUN([MU_CHECK_MODELS], [
WHOLE_ARCHIVE= NO_WHOLE_ARCHIVE= EXPORT_DYNAMIC=
mu_has_models="no (the linker does not take --export-dynamic and --whole-archive)"
AC_MSG_CHECKING([whether programs can load models])
MU_LINK_WITH([], [-Wl,--export-dynamic -Wl,--whole-archive -Wl,--no-whole-archive],
	[[#include <dlfcn.h>]], [return dlopen("", RTLD_NOW) != 0;], [
	WHOLE_ARCHIVE=-Wl,--whole-archive
	NO_WHOLE_ARCHIVE=-Wl,--no-whole-archive
	EXPORT_DYNAMIC=-Wl,--export-dynamic
	mu_has_models=yes])
AC_MSG_RESULT([$mu_has_models])
AC_SUBST([WHOLE_ARCHIVE])
AC_SUBST([NO_WHOLE_ARCHIVE])
AC_SUBST([EXPORT_DYNAMIC])
])
