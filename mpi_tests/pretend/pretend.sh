# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by tests of pretended GPUs, behind lib.sh: compiles them into the present folder, and what the
# test starts from now on finds them in place of the driver, cuBLAS, cuDNN and NCCL.
# shellcheck disable=SC2086 # lists of options are words

"$TRAINER" --info >info || fail "--info ended with $?"
if ! grep -q '^CUDA: *built in' info || ! grep -q '^#define HAVE_NCCL 1' "$BUILDDIR/config.h"; then
	echo "skipped: this build has no CUDA with NCCL"
	exit 77
fi

flags="-std=gnu11 -O2 -fPIC -I$SRCDIR/include -I$SRCDIR/src"
flags="$flags $(sed -n 's/^\(CUDA\|NCCL\)_CPPFLAGS = //p' "$BUILDDIR/Makefile" | tr '\n' ' ')"
kernels="-include $SRCDIR/src/device/cuda/kernels/operations.h"
for f in gpu memory faults costs share fatbin math convolution graph program rnn nccl missing; do
	${CC:-cc} $flags -D_GNU_SOURCE -include muster/device.h \
		-include "$SRCDIR/src/device/cuda/cuda.h" -include nccl.h \
		-D 'CUDA_FUNCTION=static inline' -D CUDA_SHARED= -D 'CUDA_BARRIER()=' \
		-D 'sum_of(v)=(v)' -D 'most_of(v)=(v)' -D 'warp_sum(v)=(v)' -D 'warp_most(v)=(v)' $kernels \
		-Wno-unused-function -c "$SRCDIR/mpi_tests/pretend/$f.c" -o $f.o || fail "pretend/$f.c does not compile"
done
${CC:-cc} $flags -c "$SRCDIR/src/base/dtype.c" -o dtype.o || fail "dtype.c does not compile"
${CC:-cc} -shared -o libpretend.so gpu.o memory.o faults.o costs.o share.o fatbin.o math.o convolution.o graph.o \
	program.o rnn.o nccl.o missing.o dtype.o -lm -lpthread -lrt ||
	fail "no libpretend.so"
${CC:-cc} -shared -o libold.so dtype.o || fail "no libold.so"
for l in cuda.so.1 cublas.so.12 cublas.so.13 cudnn.so.9 nccl.so.2; do
	ln -s libpretend.so lib$l
done
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" # recordings of events are never freed
export LD_LIBRARY_PATH=$PWD${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
