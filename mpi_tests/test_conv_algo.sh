#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 120
# --conv-algo: what the log tells, what checkpoints remember, that algorithms differ in rounding and
# in nothing else.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib.sh
. "$SRCDIR/mpi_tests/lib.sh"

export OMP_NUM_THREADS=1 # bits depend on it
plain="--log-prefix none --log-time 0 --disp-batches 1 --num-epochs 1 --num-batches 3"
# 22 convolutions: 19 of 3x3, 2 of these with stride 2, and 3 of 1x1. Batch-norm stands before the first.
resnet="--network resnet --num-layers 20 --image-shape 3,32,32 --num-classes 10 --benchmark 1
	--batch-size 16 --lr 0.01 $plain"

losses() {
	grep -oP '^Epoch\[0\] Train-cross-entropy=\K.*' "$log"
}

winograd_counts() {
	grep -oP '^convolutions .*' "$log" | grep -oP '\d+(?= of \d)' | tr '\n' ' '
}

part "the log"
train 1 $resnet --conv-algo direct
expect '^convolutions direct: winograd does 0 of 22 forward, 0 of 22 gradients of data and 0 of 22 of weights'
direct=$(losses)
train 1 $resnet
expect '^convolutions auto: winograd does \d+ of 22 forward'
auto_counts=$(winograd_counts)
train 1 $resnet --conv-algo winograd
expect '^convolutions winograd: winograd does \d+ of 22 forward, \d+ of 22 gradients of data and \d+ of 22 of'
winograd_counts=$(winograd_counts)
winograd=$(losses)
echo "auto: $auto_counts; winograd: $winograd_counts"
if grep -q '^device cpu: .*avx512' "$log"; then
	[ "$winograd_counts" = "17 17 17 " ] || fail "winograd does $winograd_counts, not 17 17 17"
fi
awk -v a="$direct" -v b="$winograd" 'BEGIN { d = a - b; exit !(a > 0 && d < 1e-3 && d > -1e-3) }' ||
	fail "losses differ by more than rounding: $direct and $winograd"

part "another device"
train 1 --network lenet --benchmark 1 --batch-size 4 --devices ref $plain --conv-algo winograd
expect '^convolutions winograd: winograd does 0 of 2 forward, 0 of 1 gradients of data and 0 of 2 of weights'
train 1 --network mlp --benchmark 1 --batch-size 4 $plain
expect_none '^convolutions'

part "checkpoints"
if has_files; then
	train 1 $resnet --conv-algo direct --model-prefix P
	train 1 $resnet --conv-algo winograd --model-prefix Q
	if grep -q '^device cpu: .*avx512' "$log" && same_model P-0001.h5 Q-0001.h5 >/dev/null; then
		fail "direct and winograd make the same bits"
	fi
	train 1 $resnet --conv-algo winograd --num-epochs 2 --model-prefix P --resume auto
	expect 'conv-algo winograd \(was direct\)'
fi

part "a wrong name"
run_limited 20 1 $resnet --conv-algo gemm
[ $status = 2 ] || fail "exit status $status for a wrong name"
expect 'conv-algo: "gemm" is not known; choose one of: auto, direct, winograd'
finish
