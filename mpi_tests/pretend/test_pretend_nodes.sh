#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stores that send messages, whose GPUs NCCL sums inside the node (node.c), with pretended GPUs: losses are those
# of CPUs, --node-reduce, what it does not go with, and a communicator or a worker that fails.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"
# shellcheck source=mpi_tests/pretend/pretend.sh
. "$SRCDIR/mpi_tests/pretend/pretend.sh"

net="--network mlp --benchmark 1 --num-batches 8 --num-epochs 2 --wd 0.001 --lr 0.05 --optimizer adam"
net="$net --log-prefix none --log-time 0"
by_node="^sums of a node's GPUs are NCCL's"

# learn NP OPTIONS: its last loss
learn() {
	local n=$1
	shift
	train $n $net "$@"
	loss=$(sed -n 's/^Epoch\[1\] Train-cross-entropy=//p' "$log")
	[ -n "$loss" ] || fail "no loss: $*"
}
# same NP OPTIONS: the loss of CPUs
same() {
	learn "$@"
	awk -v a="$wanted" -v b="$loss" 'BEGIN { exit !(a - b < 1e-4 && b - a < 1e-4) }' ||
		fail "$*: a loss of $loss, and $wanted with CPUs"
}
# refused REGEX OPTIONS
refused() {
	local regex=$1
	shift
	run_limited 60 3 $net --batch-size 12 "$@"
	[ $status = 2 ] || fail "exit status $status, not 2: $*"
	expect_count 1 "error: .*$regex"
}
# broken REGEX: the job ends, with that
broken() {
	run_limited 60 3 $net --batch-size 12 --gpus auto --kv-store dist_sync
	case $status in 0 | 124) fail "exit status $status of dist_sync that fails" ;; esac
	expect "$1"
}

part "one worker with two GPUs"
learn 1 --devices cpu:0,cpu:1 --kv-store device --batch-size 24
wanted=$loss
for store in dist_sync dist_device_sync dist_async; do # and a server
	PRETEND_SEED=5 same 2 --gpus 0,1 --kv-store $store --batch-size 24 --bucket-bytes 1000
	expect "$by_node"
done

part "two workers with a GPU each"
learn 2 --devices cpu:0 --kv-store dist_sharded --batch-size 12
wanted=$loss
same 2 --gpus auto --kv-store dist_sharded --node-reduce nccl --batch-size 12
expect "$by_node"
same 2 --gpus auto --kv-store dist_sharded --inter-node mpi --batch-size 12
expect_none "$by_node"
PRETEND_SEED=6 same 3 --gpus auto --kv-store dist_sync --batch-size 12 --bucket-bytes 1000
expect "$by_node"
same 3 --gpus auto --kv-store dist_sync --batch-size 12 --node-reduce shm
expect_none "$by_node"
same 3 --gpus 0 --kv-store dist_sync --batch-size 12
expect_none "$by_node"
expect_count 1 'warning: --node-reduce auto: several workers use one GPU'

part "what --node-reduce nccl does not go with"
refused 'workers 0 and 1 have the same GPU' --gpus 0 --kv-store dist_sync --node-reduce nccl
refused 'the devices are not GPUs; .*--node-reduce auto sums on the CPU' --kv-store dist_sync --node-reduce nccl
refused 'it is for dist_sync' --gpus auto --kv-store dist_allreduce --node-reduce nccl
refused 'use one of them' --gpus auto --kv-store dist_sharded --node-reduce nccl --inter-node nccl

part "two nodes: exact sums"
if nodes_up 2; then
	nodes_use 2
	ranks=$(in_tier full && echo 5 || echo 3)
	PRETEND_GPUS=$ranks $MPIRUN -n $ranks "$BUILDDIR/mpi_tests/gpu/test_nccl" >out 2>&1 ||
		fail "test_nccl: $(tail -5 out)"
	nodes_end
fi

part "a communicator that fails, a worker that dies"
PRETEND_NCCL_FAIL=5 broken 'worker [01] .*error: NCCL, gpu:[01], bucket '
PRETEND_NCCL_DIE=5 broken '(?i)killed|signal 9|terminat'
finish
