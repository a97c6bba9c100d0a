#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cuDNN plans fused attention without a GPU: attention_plans.c, with a driver that takes all kernels.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

flags=$(sed -n 's/^CUDA_CPPFLAGS = //p' "$BUILDDIR/Makefile")
if ! grep -q '^#define HAVE_CUDA 1' "$BUILDDIR/config.h"; then
	echo "skipped: this build has no CUDA"
	exit 77
fi
# shellcheck disable=SC2086 # a list of options
${CC:-cc} -std=gnu11 -fPIC -shared -Wl,-soname,libcuda.so.1 $flags -include cuda.h \
	"$SRCDIR/mpi_tests/gpu/planning_driver.c" -o libcuda.so.1 || fail "no driver"

part "plans"
"$BUILDDIR/mpi_tests/gpu/attention_plans" ./libcuda.so.1 >out 2>&1
status=$?
cat out
[ $status = 77 ] && exit 77
[ $status = 0 ] || fail "status $status"
wanted=$(in_tier full && echo 4 || echo 2)
[ "$(grep -c '\([1-9][0-9]*\) of \1 planned' out)" = "$wanted" ] || fail "not all are planned"
finish
