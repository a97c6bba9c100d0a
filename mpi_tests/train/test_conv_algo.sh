#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --conv-algo: what the log tells, what checkpoints remember, that algorithms differ in rounding and
# in nothing else.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

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
# oneDNN 2 has Winograd for AVX-512, also of 3 channels; elsewhere it is our own, from 16 channels on.
if grep -q '^device cpu: oneDNN 2\..*avx512' "$log"; then
	[ "$winograd_counts" = "17 17 17 " ] || fail "winograd does $winograd_counts, not 17 17 17"
elif grep -qE '^device cpu: .*(avx2|avx512)' "$log"; then
	[ "$winograd_counts" = "16 16 16 " ] || fail "winograd does $winograd_counts, not 16 16 16"
	[ "$auto_counts" = "16 10 10 " ] || fail "auto does $auto_counts by winograd, not 16 10 10"
fi
awk -v a="$direct" -v b="$winograd" 'BEGIN { d = a - b; exit !(a > 0 && d < 1e-3 && d > -1e-3) }' ||
	fail "losses differ by more than rounding: $direct and $winograd"
# Validation works on the weights as training lays them out, whatever their sizes.
small_set set 60 20
train 1 --network resnet --num-layers 20 --data-dir set --batch-size 12 --conv-algo winograd $plain
expect '^Epoch\[0\] Validation-accuracy'

part "another device"
train 1 --network lenet --benchmark 1 --batch-size 4 --devices ref $plain --conv-algo winograd
expect '^convolutions winograd: winograd does 0 of 2 forward, 0 of 1 gradients of data and 0 of 2 of weights'
train 1 --network mlp --benchmark 1 --batch-size 4 $plain
expect_none '^convolutions'

part "checkpoints"
if has_files; then
	train 1 $resnet --conv-algo direct --model-prefix P
	train 1 $resnet --conv-algo winograd --model-prefix Q
	if grep -qE '^device cpu: .*(avx2|avx512)' "$log" && same_model P-0001.h5 Q-0001.h5 >/dev/null; then
		fail "direct and winograd make the same bits"
	fi
	train 1 $resnet --conv-algo winograd --num-epochs 2 --model-prefix P --resume auto
	expect 'conv-algo winograd \(was direct\)'
fi

# What --conv-algo tune writes, but for the times that it goes by.
table() { # LAYER ALGORITHMS, of every third convolution
	sed -n '1,4p' tuned
	awk -v a="$1" 'NR > 4 { print $1, (NR % 3 ? "auto auto auto" : a) }' tuned
}

part "tables"
train 1 $resnet --conv-algo gemm
gemm=$(grep -oP '^convolutions gemm: .*; gemm does \K.*(?=, direct)' "$log")
[ -n "$gemm" ] || ! grep -q '^device cpu:' "$log" || fail "gemm does nothing"
train 1 $resnet --conv-algo tune --conv-table tuned
expect '^--conv-algo tune: a step of 16 samples by auto takes'
expect '^--conv-algo tune: a step of 16 samples by winograd takes'
expect '^--conv-algo tune: wrote tuned: 22 convolutions'
expect_none '^Epoch'
[ "$(grep -cE '^[a-z_0-9]+( (auto|direct|winograd)){3}$' tuned)" = 22 ] || fail "the table: $(cat tuned)"
table "direct winograd winograd" >mixed
train 1 $resnet --conv-table mixed
expect '^convolutions by the table of mixed, hash [0-9a-f]{16}$'
mixed=$(losses)
train 1 $resnet --conv-table mixed --batch-size 8
expect 'mixed: its table of convolutions was measured with batch 16, .*, and this run has batch 8'
run_limited 60 2 --kv-store dist_allreduce $resnet --conv-table mixed
[ $status = 0 ] || fail "exit status $status of two workers"
expect '^convolutions by the table of mixed'

part "tables and checkpoints"
if has_files; then
	train 1 $resnet --conv-table mixed --model-prefix M
	hash=$(grep -oP '^convolutions by the table of mixed, hash \K.*' "$log")
	train 1 $resnet --conv-table mixed --num-epochs 2 --model-prefix N
	rm mixed
	train 1 $resnet --num-epochs 2 --model-prefix M --resume auto
	expect "^convolutions by the table of M-0001.h5, hash $hash$"
	same_model M-0002.h5 N-0002.h5 >/dev/null || fail "a run that goes on has other bits"
	python=$(find_h5py)
	if [ -n "$python" ]; then
		$python - <<-'END' || fail "M-0001.h5 cannot be changed"
			import h5py, numpy
			with h5py.File("M-0001.h5", "a") as f:
			    a = f.attrs.get_id("convolutions")
			    text = numpy.empty((), a.dtype)
			    a.read(text)
			    a.write(numpy.char.replace(text, b"cpu: ", b"CPU: ").astype(a.dtype))
		END
		train 1 $resnet --num-epochs 2 --model-prefix M --load-epoch 1
		expect 'M-0001.h5: its table .* measured on CPU: .*, and this is cpu: .*: the fixed rule chooses'
		expect_none '^convolutions by the table'
	else
		echo "a checkpoint of another machine: skipped, there is no h5py"
	fi
	train 1 $resnet --num-epochs 2 --model-prefix M --load-epoch 1 --conv-algo direct
	expect_none '^convolutions by the table'
	expect 'conv-table none \(was '
fi

part "over steps: a product of matrices, unless the table asks for something else in any direction"
steps="--network lstm --num-layers 1 --num-hidden 16 --num-embed 8 --benchmark 1 --image-shape 1,12,1 --num-classes 50
	--batch-size 8 --num-batches 2 --num-epochs 1 --log-prefix none --log-time 0"
train 1 $steps --conv-algo tune --conv-table steps
sed 's/^decode .*/decode auto gemm auto/' steps >products
train 1 $steps --conv-table products
expect 'gemm does 1, 1 and 1, direct the others$'
sed 's/^decode .*/decode gemm direct direct/' steps >others
train 1 $steps --conv-table others
expect 'gemm does 1, 0 and 0, direct the others$'

part "tables that do not fit"
table "auto auto auto" >good
refused() { # WHAT, options
	local what=$1
	shift
	run_limited 60 1 $resnet "$@"
	[ $status = 2 ] || fail "exit status $status, not 2, for: $*"
	expect "$what"
}
refused 'good: its table of convolutions is for network resnet 3,32,32 [0-9a-f]+, and this run has resnet 3,32,32' \
	--num-layers 32 --conv-table good
refused 'good: its table .* and this run has resnet 3,28,28' --image-shape 3,28,28 --conv-table good
sed 's/^\(device.* \)[0-9]*\.[0-9]*\.[0-9]*/\19.9.9/' good >library
refused 'library: its table of convolutions was measured on .*9\.9\.9.*, and this is' --conv-table library
sed 's/^device cpu: \(.*\), .*/device cpu: \1, avx7/' good >instructions
refused 'instructions: its table of convolutions was measured on .*avx7, and this is' --conv-table instructions
if grep -qE '^device cpu: oneDNN .*, avx' good; then
	ONEDNN_MAX_CPU_ISA=SSE41 refused \
		'good: its table .* measured on cpu: oneDNN \S+, avx[\w .]+, and this is cpu: oneDNN \S+, sse4.1; ' \
		--conv-table good
fi
sed 's/^conv0 /conv99 /' good >layer
refused 'layer: its table of convolutions has a layer conv99' --conv-table layer
sed 's/^conv0 auto/conv0 fft/' good >algorithm
refused 'algorithm: layer conv0: unknown algorithm of convolutions "fft"' --conv-table algorithm
sed 's/^conv0 auto/conv0/' good >short
refused 'short: "conv0 auto auto" is not a line of a table' --conv-table short
: >empty
refused 'conv-table empty: not a table of convolutions' --conv-table empty
head -c 100000 /dev/zero >zeros
refused 'conv-table zeros: not a table of convolutions' --conv-table zeros
refused 'conv-table none: cannot be read' --conv-table none
run_limited 60 1 $resnet --conv-algo tune
[ $status = 2 ] || fail "exit status $status for tune without a table"
expect 'conv-algo tune needs --conv-table FILE'
run_limited 60 1 --network mlp --benchmark 1 --conv-algo tune --conv-table t $plain
[ $status = 2 ] || fail "exit status $status for a network without convolutions"
expect 'network mlp on device .* has no convolutions that there are several algorithms for'
[ ! -e t ] || fail "a table of nothing"

part "a wrong name"
run_limited 60 1 $resnet --conv-algo fft
[ $status = 2 ] || fail "exit status $status for a wrong name"
expect 'conv-algo: "fft" is not known; choose one of: auto, direct, winograd, gemm, tune'
finish
