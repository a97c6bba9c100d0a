#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# GPUs that cannot be used, by faults of the pretended ones (faults.c): one line that says what is wrong and what to do,
# the exit status (2: another start will fail, too; 1: it may not), and no rank that waits for ever. A GPU that is lost
# in a step leaves the last checkpoint, from which the training continues to the bits of a run without the loss.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/pretend/pretend.sh
. "$SRCDIR/mpi_tests/pretend/pretend.sh"
export PRETEND_GPUS=3

net="--network mlp --benchmark 1 --num-batches 3 --num-epochs 2 --batch-size 12 --log-prefix none --log-time 0"
# fails STATUS NP REGEX OPTIONS: no more than a line for each rank, and the job's end
fails() {
	local wanted=$1 np=$2 regex=$3
	shift 3
	run_limited 60 "$np" $net "$@"
	[ "$status" = "$wanted" ] || fail "exit status $status, not $wanted: $*"
	expect_count 1 "error: $regex"
	expect_none 'at src/.*:[0-9]'
}

part "the driver: none, no GPU, two versions, too old; a GPU that another process has"
mkdir bare
ln -s ../libpretend.so bare/libcublas.so.13
path=$LD_LIBRARY_PATH
export LD_LIBRARY_PATH=$PWD/bare
if "$TRAINER" --info | grep -q 'CUDA: .*libcuda.so.1: cannot open'; then
	fails 2 1 "gpu:0 cannot be used: libcuda.so.1: cannot open .*NVIDIA's driver: install it" --gpus 0
fi
LD_LIBRARY_PATH=$path
PRETEND_INIT=100 fails 2 1 'gpu:0 cannot .*error 100: nvidia-smi lists' --gpus 0
PRETEND_INIT=803 fails 2 2 'gpu:0 cannot .*error 803: .*restart the host' --gpus auto --kv-store dist_sync
PRETEND_DRIVER=12020 fails 2 1 'gpu:0 cannot .*driver is for CUDA 12.2, and .* for CUDA 13: install a newer' --gpus 0
PRETEND_OPEN=46 fails 1 1 'gpu:0 cannot .*error 46: another process has the GPU' --gpus 0
fails 2 1 'gpu:7 cannot be used: the driver knows 3 GPUs here' --gpus 7

part "libraries: missing, of another major version"
cat >hide.c <<'END'
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
void *dlopen(const char *name, int flags)
{
	void *(*next)(const char *, int);
	const char *hidden = getenv("PRETEND_HIDDEN");

	*(void **)&next = dlsym(RTLD_NEXT, "dlopen");
	return next(name && hidden && strstr(name, hidden) ? "/hidden.so" : name, flags);
}
END
if ! is_sanitized && ${CC:-cc} -D_GNU_SOURCE -shared -fPIC hide.c -o hide.so -ldl; then
	export LD_PRELOAD=$PWD/hide.so
	PRETEND_HIDDEN=libcudnn fails 2 1 'gpu:0 cannot .*cannot open .*cuDNN 9: install it, or name' --gpus 0
	PRETEND_HIDDEN=libcublas fails 2 1 'gpu:0 cannot .*cannot open .*cuBLAS.*: install it, or name' --gpus 0
	PRETEND_HIDDEN=libnccl fails 2 2 'NCCL cannot be opened: .*LD_LIBRARY_PATH' --gpus auto --kv-store nccl
	unset LD_PRELOAD
fi
PRETEND_CUDNN=8907 fails 2 1 'gpu:0 cannot be used: libcudnn.so.9 is cuDNN 8: install cuDNN 9' --gpus 0

part "too little memory, with another process's"
PRETEND_USED=8185 fails 2 2 'gpu:[01] cannot be used: no memory for .*, [0-9.]+ MB are missing: .* before this' \
	--gpus auto --kv-store dist_sync

part "NCCL that finds no way to the other GPUs"
PRETEND_NCCL_START=2 fails 1 2 "NCCL, gpu:0, NCCL's connections .*NCCL_SOCKET_IFNAME" --gpus auto --kv-store nccl
if in_tier full; then
	PRETEND_NCCL_START=7 run_limited 60 2 $net --gpus auto --kv-store nccl --comm-timeout 1
	[ $status = 1 ] || fail "exit status $status, not 1, of NCCL that never connects"
	expect "error: .*has waited .* for NCCL's connections"
fi

part "a GPU that is lost in a step: all ranks end"
export PRETEND_LOST=214
PRETEND_LOST_AT=7 fails 1 1 'gpu:0: .*error 214: the GPU is lost: dmesg .*--resume auto' --gpus 0 --cuda-graph 0
PRETEND_LOST_AT=20 PRETEND_LOST_RANK=0 fails 1 2 'gpu:0: .*error 214: the GPU is lost' \
	--gpus auto --kv-store nccl
unset PRETEND_LOST
! has_files && finish
net="$net --benchmark 0 --data-dir set"
small_set set 150 12
run="--gpus auto --kv-store dist_sync --shuffle 0"
train 3 $net $run --model-prefix whole
rank=0
in_tier full && rank=1 # the others wait for rank 0's message
PRETEND_LOST=999 PRETEND_LOST_FILE=cut-0001.h5 PRETEND_LOST_RANK=$rank \
	fails 1 3 'gpu:[01]: .*error 999: the GPU is lost' $run --model-prefix cut
[ ! -e cut-0002.h5 ] || fail "the run did not end"
train 3 $net $run --model-prefix cut --resume auto
expect 'cut-0001.h5'
same_model whole-0002.h5 cut-0002.h5 || fail "the run continues to another model"
finish
