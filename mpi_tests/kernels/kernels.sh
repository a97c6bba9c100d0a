# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by tests that run the kernels of GPUs on the host, behind lib.sh.

kernel_flags="-std=gnu11 -fPIC -I$SRCDIR/include -I$SRCDIR/src"

# compile_kernels FOLDER CC CXX OPTIONS: FOLDER/*.o are the kernels, what runs them, and what they use of Muster's. The
# sanitizers learn of threads from block.c, which is not theirs to look at.
compile_kernels() {
	local to=$1 cc=$2 cxx=$3 f
	shift 3
	: >"$to/cuda_fp16.h"
	: >"$to/cuda_bf16.h"
	# shellcheck disable=SC2086 # lists of options are words
	for f in mpi_tests/kernels/block src/base/dtype src/base/random; do
		"$cc" $kernel_flags -O2 -c "$SRCDIR/$f.c" -o "$to/${f##*/}.o" || fail "$f.c does not compile"
	done
	"$cxx" -std=c++17 -fPIC -Wall -Wextra -g "$@" -I"$SRCDIR/include" -I"$to" \
		-include "$SRCDIR/mpi_tests/kernels/cuda_on_host.h" -x c++ \
		-c "$SRCDIR/src/device/cuda/kernels/kernels.cu" -o "$to/kernels.o" ||
		fail "kernels.cu does not compile with $cxx"
}
