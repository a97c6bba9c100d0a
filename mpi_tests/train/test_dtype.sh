#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --dtype bfloat16: what the log tells, losses near float32's, weights that files hold in float32,
# and processors that have no bfloat16.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

export OMP_NUM_THREADS=1
plain="--log-prefix none --log-time 0 --disp-batches 1 --num-epochs 1 --num-batches 3"
resnet="--network resnet-v1 --num-layers 20 --image-shape 3,32,32 --num-classes 10 --benchmark 1
	--batch-size 16 --lr 0.01 $plain"

losses() {
	grep -oP '^Epoch\[0\] Train-cross-entropy=\K.*' "$log"
}

part "a processor without"
export DNNL_MAX_CPU_ISA=AVX2
run_limited 60 1 $resnet --dtype bfloat16
[ $status = 2 ] || fail "exit status $status without instructions for bfloat16"
expect_count 1 'dtype bfloat16: .*no instructions for bfloat16.* has avx2.*dtype-fallback 1'
train 1 $resnet --dtype bfloat16 --dtype-fallback 1
expect 'no instructions for bfloat16.*this rank works in float32'
expect_none '^device .*bfloat16'
unset DNNL_MAX_CPU_ISA

part "wrong use"
run_limited 60 1 $resnet --dtype float16
[ $status = 2 ] || fail "exit status $status for float16"
expect_count 1 'dtype float16: device cpu has float32 and bfloat16; float16 is for GPUs'
expect 'dtype-fallback 1 trains in float32 here'
run_limited 60 1 $resnet --dtype-fallback 1
[ $status = 2 ] || fail "exit status $status for a fallback of nothing"
expect_count 1 'dtype-fallback 1 needs --dtype bfloat16'
run_limited 60 1 $resnet --dtype bfloat16 --devices ref
[ $status = 2 ] || fail "exit status $status for device ref"
expect_count 1 'device ref has no bfloat16'

part "training"
train 1 $resnet
exact=$(losses)
for words in "float16" "float16 --kv-store device" "bfloat16 --devices ref"; do
	train 1 $resnet --dtype $words --dtype-fallback 1 --num-batches 1
	expect_count 1 '^warning: --dtype b?float16: .*works in float32 \(--dtype-fallback 1\)$'
	expect_none 'loss scale'
done
train 1 $resnet --dtype float16 --dtype-fallback 1
[ "$(losses)" = "$exact" ] || fail "float16 that falls back: losses $(losses), not float32's, $exact"
run_limited 60 1 $resnet --dtype bfloat16
if grep -q 'no instructions for bfloat16' "$log"; then
	echo "this processor has no bfloat16"
	finish
fi
expect '^device cpu: .*, bfloat16$'
awk -v a="$exact" -v b="$(losses)" 'BEGIN { d = a - b; exit !(b > 0 && d != 0 && d < 0.05 && d > -0.05) }' ||
	fail "losses $exact and $(losses): they should be near each other, and not the same"
train 1 $resnet --dtype bfloat16 --profile
expect '^limit: the time at [0-9.]+ GFLOP/s or at [0-9.]+ GB/s'
expect_none ' at 0\.0 G'

if has_files; then
	part "files"
	train 1 $resnet --dtype bfloat16 --model-prefix P
	train 1 $resnet --dtype bfloat16 --model-prefix Q
	same_model P-0001.h5 Q-0001.h5 >/dev/null || fail "two equal runs make other bits"
	train 1 $resnet --load P-0001.h5
	train 2 $resnet --dtype bfloat16 --num-epochs 2 --model-prefix P --resume auto --kv-store dist_allreduce
fi
finish
