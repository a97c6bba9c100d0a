#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @gpu
# The trainer and GPUs on any machine: no library of CUDA is linked, --info says what there is, --gpus without a GPU is
# one error with the reason, and without --gpus the CPU trains.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

net="--network mlp --benchmark 1 --num-batches 5 --num-epochs 1 --batch-size 20 --log-prefix none --log-time 0"

# refused STATUS REGEX NP ARGUMENT...
refused() {
	local wanted=$1 regex=$2
	shift 2
	run_limited 60 "$@"
	[ $status = "$wanted" ] || fail "exit status $status, not $wanted"
	expect_count 1 'error: '
	expect "$regex"
}

part "nothing of CUDA is linked"
"$TRAINER" --info >info || fail "--info ended with $?"
if objdump -p "$TRAINER" | grep -E 'NEEDED +lib(cuda|cudart|cudnn|cublas|nv|nccl)'; then
	fail "the trainer needs a library of CUDA to start"
fi
grep '^CUDA:' info
for mpirun in "" "$MPIRUN -n 1"; do # MPI answers when it has been started
	$mpirun "$TRAINER" --info | grep -E '^GPU-aware MPI: (yes|no|it .*); none is needed$' ||
		fail "--info does not tell of MPI and GPUs"
done

part "the CPU trains"
train 2 $net
expect '^trained '
expect_none 'gpu:|CUDA'

part "--inter-node"
refused 2 'error: --inter-node nccl with --kv-store dist_sync: it is for dist_allreduce' 2 $net --kv-store dist_sync \
	--inter-node nccl
refused 2 'error: --inter-node nccl: (the devices are not GPUs|this build has no CUDA)' 2 $net --kv-store dist_sharded \
	--inter-node nccl
train 2 $net --kv-store dist_allreduce --inter-node mpi

part "--gpus"
refused 2 'error: --gpus 0 with --devices ref: use one of them' 1 $net --gpus 0 --devices ref
if grep -q '^CUDA: *not built in' info; then
	refused 2 'error: --gpus 0: this build has no device gpu, because configure found no' 2 $net --gpus 0
	finish
fi
if grep -q '^#define HAVE_NCCL 1' "$BUILDDIR/config.h"; then
	for option in --update-period=2 --on-nan=skip --sync-period=2 --gc-type=fp16 --comm-thread=1 --node-reduce=shm \
		--priority=0; do
		refused 2 "error: --kv-store nccl keeps gradients .* on the GPUs, and .*${option%=*}" 2 $net --gpus 0 \
			--kv-store nccl $option
		refused 2 "error: --inter-node nccl: .*${option%=*}" 2 $net --gpus 0 --kv-store dist_allreduce \
			--inter-node nccl $option
	done
fi
refused 2 'error: --gpus 0,x: "x" is not a number' 1 $net --gpus 0,x
refused 2 'error: --devices 0,0: gpu:0 is named twice' 1 $net --gpus 0,0
if grep -q '^CUDA: *built in, no device: ' info; then
	reason=$(sed -n 's/^CUDA: *built in, no device: //p' info)
	[ -n "$reason" ] || fail "--info does not say why there is no GPU"
	for gpus in "--gpus 0" "--gpus auto" "--devices gpu:0"; do
		refused 2 "error: .*gpu:0 cannot be used: " 1 $net $gpus
		grep -qF "$reason" "$log" || fail "$gpus does not say: $reason"
	done
	refused 2 "error: .*gpu:0 cannot be used: " 3 $net --gpus 0
	refused 2 "error: .*gpu:[01] cannot be used: " 1 $net --gpus 0,1
fi
finish
