#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Networks whose layers lie on several devices: the bits of one device, with every kind of store, micro-batches,
# blocks of steps, checkpoints across, values that are not finite, bad input.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/split.sh
. "$SRCDIR/mpi_tests/lib/split.sh"

ends="embed=cpu:0,lstm0-1=cpu:0,lstm2-3=cpu:1,decode=cpu:0"

# losses: all of the log
losses() {
	grep -o '[A-Za-z]*-*cross-entropy=[^	 ]*' "$log"
}

# same A B EPOCH WHAT: the models A and B, and the losses in A.losses and the log
same() {
	losses >"$2.losses"
	[ -s "$2.losses" ] || fail "$4: no losses"
	cmp -s "$1.losses" "$2.losses" || fail "$4: other losses: $(diff "$1.losses" "$2.losses" | head -n 4)"
	same_model "$1-000$3.h5" "$2-000$3.h5" || fail "$4: other bits"
}

# refuse ARGUMENT...
refuse() {
	run_limited 60 1 "$@"
	[ $status = 2 ] || fail "exit status $status, not 2, of $*"
}

part "the bits of one device"
train 1 $resnet --model-prefix R
losses >R.losses
train 1 $resnet --model-prefix S --model-parallel 2
expect '^stage 0 on cpu:0: bn_data to [a-z0-9_]+, [0-9]+ parameters, [0-9.]+ GMAC per sample$'
expect '^stage 1 on cpu:1: [a-z0-9_]+ to softmax, '
same R S 1 "resnet, two devices"
train 1 $resnet --model-prefix T --model-parallel stem=cpu:1,stage1=cpu:1,stage2-3=cpu:0,head=cpu:1
expect '^stage 2 on cpu:1: bn1 to softmax, '
same R T 1 "resnet, three stages on two devices"
train 1 $lstm --model-prefix L --save-period 2
losses >L.losses
if in_tier full; then
	train 1 $lstm --model-prefix M --save-period 2 --model-parallel 3
	same L M 2 "lstm, three devices"
fi
train 1 $lstm --model-prefix N --save-period 2 --group2dev $ends --devices cpu:1,cpu:0
expect '^note: --group2dev .* is now --model-parallel embed='
expect '^note: --save-period 2 is now --save-every 2$'
same L N 2 "lstm, three stages on two devices"

part "micro-batches"
train 1 $lstm --model-prefix A --save-period 2 --micro-batches 4
losses >A.losses
train 1 $lstm --model-prefix B --save-period 2 --micro-batches 4 --model-parallel 2
expect '^a batch passes through them as 4 micro-batches of 2 samples$'
same A B 2 "lstm, micro-batches on two devices"
if in_tier full; then
	train 1 $lstm --model-prefix C --save-period 2 --micro-batches 4 --model-parallel $ends
	same A C 2 "lstm, micro-batches, three stages on two devices"
fi
awk -v a="$(value Validation-perplexity)" -v b="$(sed -n 's/.*Validation-cross-entropy=//p' L.losses | tail -n 1)" \
	'BEGIN { d = log(a) - b; exit !(a > 1 && d < 1e-3 && -d < 1e-3) }' ||
	fail "micro-batches train another model: $(value Validation-perplexity)"
# a part of a micro-batch is left at the end of the epoch: 10 is 8 and 2
train 1 $resnet --model-prefix D --micro-batches 5 --batch-size 40
losses >D.losses
train 1 $resnet --model-prefix E --micro-batches 5 --batch-size 40 --model-parallel 3
same D E 1 "resnet, micro-batches on three devices"

part "blocks of steps"
dry="--dropout 0 --model-prefix"
train 1 $lstm $dry U --save-period 2
losses >U.losses
# 4 and 8 steps in blocks of 3: the last one has steps too many; 60 samples in steps of 8
for steps in $(in_tier full && echo 1 4 8) 3; do
	train 1 $lstm $dry V --overwrite --save-period 2 --time-block $steps
	losses >V.losses
	paste -d = U.losses V.losses |
		awk -F = '{ d = $2 - $4; bad += d > 2e-5 || -d > 2e-5 || $1 != $3 } END { exit bad || NR < 8 }' ||
		fail "blocks of $steps steps train another model"
done
train 1 $lstm --model-prefix W --save-period 2 --time-block 3
losses >W.losses
train 1 $lstm --model-prefix Y --save-period 2 --time-block 3 --model-parallel $ends
expect '^a batch passes through them as blocks of 3 steps, 3 at most$'
same W Y 2 "blocks, three stages on two devices"
if in_tier full; then
	train 1 $lstm --model-prefix X --save-period 2 --time-block 3 --model-parallel 2
	same W X 2 "blocks on two devices"
	train 1 $lstm --num-layers 8 --model-prefix AB --save-period 2 --time-block 3
	losses >AB.losses
	train 1 $lstm --num-layers 8 --model-prefix AC --save-period 2 --time-block 3 --model-parallel 2
	expect '^stage 2 on cpu:0: '
	expect '^stage 3 on cpu:1: [a-z0-9]+ to softmax, '
	same AB AC 2 "blocks, two stages on each of two devices"
fi
train 1 $lstm --model-prefix Z --num-epochs 1 --time-block 3 --model-parallel 2
train 1 $lstm --model-prefix Z --save-period 2 --load-epoch 1 --time-block 3
same_model W-0002.h5 Z-0002.h5 || fail "blocks go on otherwise with a checkpoint"
train 1 $lstm --load U-0002.h5 --evaluate --time-block 3 --model-parallel 2
sed -n 's/.*Validation-cross-entropy=//p' U.losses | tail -n 1 | tr '\n' ' ' >U.value
echo "$(value Validation-cross-entropy)" | paste -d ' ' U.value - |
	awk '{ d = $1 - $2; exit !($1 > 0 && d < 1e-5 && -d < 1e-5) }' || fail "blocks validate otherwise"
# a scale that is a power of two, and two batches in an update
train 1 $lstm --model-prefix AA --save-period 2 --time-block 3 --loss-scale 512 --model-parallel 2
losses >AA.losses
cmp -s W.losses AA.losses || fail "another model with a loss scale"
train 3 $lstm --time-block 4 --model-parallel 2 --kv-store dist_sync --num-servers 1 --update-period 2

part "stores, on several ranks"
jobs=("3 --kv-store dist_sync --num-servers 1")
! in_tier full || jobs+=("2 --kv-store dist_allreduce --comm-thread 1" "2 --kv-store dist_sharded --update-period 2")
for job in "${jobs[@]}"; do
	train $job $resnet --batch-size 10 --model-prefix F
	losses >F.losses
	train $job $resnet --batch-size 10 --model-prefix G --model-parallel 2
	same F G 1 "$job"
	rm F-* G-*
done
train 3 $resnet --batch-size 10 --model-parallel 2 --micro-batches 2 --kv-store dist_async --num-servers 1

part "checkpoints across"
train 1 $lstm --model-prefix H --num-epochs 1 --model-parallel 2
train 1 $lstm --model-prefix H --save-period 2 --load-epoch 1
same_model L-0002.h5 H-0002.h5 || fail "one device goes on otherwise with the checkpoint of two"
train 1 $lstm --model-prefix I --num-epochs 1
train 1 $lstm --model-prefix I --save-period 2 --load-epoch 1 --model-parallel 2
same_model L-0002.h5 I-0002.h5 || fail "two devices go on otherwise with the checkpoint of one"
train 1 $resnet --load R-0001.h5 --predict one.csv
train 1 $resnet --load R-0001.h5 --predict two.csv --model-parallel 2 --micro-batches 2
cut -d , -f 1,2 one.csv >one.cut
cut -d , -f 1,2 two.csv >two.cut
cmp -s one.cut two.cut || fail "two devices predict otherwise"

part "what is not finite"
if grep -q '^EXPORT_DYNAMIC = *$' "$BUILDDIR/Makefile"; then
	echo "left out: this build cannot load models"
else
	$CC -O2 -std=c11 -shared -fPIC -I"$SRCDIR/include" "$SRCDIR/mpi_tests/lib/spoil_net.c" -o spoil.so || exit 1
	spoil="--network ./spoil.so --data-dir set --batch-size 10 --lr 0.05 --num-epochs 1 $plain --model-parallel 2"
	MU_SPOIL="0 0 2 3 loss" train 1 $spoil --on-nan skip --model-prefix J
	expect_count 2 'leaves the batch of epoch 1 of \d+, step [34] out: the loss is not finite, first in spoil'
	MU_SPOIL="0 0 2 3 gradient" train 1 $spoil --on-nan skip --model-prefix K
	expect_count 2 'leaves the batch of epoch 1 of \d+, step [34] out: the gradient is not finite'
	same_model J-0001.h5 K-0001.h5 || fail "two ways to leave the same batches out differ"
	MU_SPOIL="0 0 2 2 loss" run_limited 60 1 $spoil --micro-batches 5
	[ $status = 1 ] || fail "exit status $status of a loss that is not finite"
	expect 'error: epoch 1 of \d+, step 3: the loss is not finite; the first value that is not finite is in spoil'
	MU_SPOIL="0 0 2 3 loss" train 1 $spoil --on-nan skip --micro-batches 5
	expect_count 2 'leaves the batch of epoch 1 of \d+, step [34] out'
fi

part "the summary"
train 1 --network resnet --num-layers 20 --image-shape 3,28,28 --num-classes 10 --batch-per-device 8 --summary \
	--model-parallel 2 --micro-batches 4
expect '^2 stages, 4 micro-batches of 2 samples a step'
train 1 --network resnet --num-layers 20 --image-shape 3,28,28 --num-classes 10 --batch-size 8 --summary \
	--model-parallel stem=cpu:0,stage1-2=cpu:0,stage3=cpu:1,head=cpu:1 --micro-batches 2
expect '^2 stages, 2 micro-batches of 4 samples a step:$'
# 32 channels of 14 x 14 and their gradients, of 8 samples
expect "^from stage 0 to stage 1: 1 tensor, $((32 * 14 * 14 * 4 * 2 * 8)) bytes per step, both ways\$"

train 1 --network lstm --num-layers 4 --num-hidden 16 --image-shape 1,12,1 --num-classes 50 --batch-size 8 --summary \
	--model-parallel 2 --time-block 4
expect '^2 stages, 4 steps of 8 samples at a time:$'
# 64 gates' units of 200 + 16 inputs, 12 steps
expect '^stage 0 on cpu:0: embed to [a-z0-9]+, [0-9]+ parameters, 0\.000166 GMAC per sample$'
# 16 units of 12 steps and their gradients, of 8 samples
expect "^from stage 0 to stage 1: 1 tensor, $((16 * 12 * 4 * 2 * 8)) bytes per step, both ways\$"

# 58,675,200 parameters of 4 bytes; adam has two states. What the runs' "peak memory" shows beside it
# is in RESULTS.md.
gpt="--network gpt2 --num-layers 6 --num-hidden 768 --num-heads 12 --num-classes 20000 --seq-len 64 --batch-size 4
	--optimizer adam --summary"
train 1 $gpt
expect '^1 worker +234\.7 +234\.7 +469\.4 +([0-9.]+) +[0-9.]+$'
train 2 $gpt
expect '^2 workers +234\.7 +234\.7 +234\.7 +([0-9.]+) +[0-9.]+$'
train 2 $gpt --kv-store dist_allreduce
expect '^2 workers +234\.7 +469\.4 +469\.4 +([0-9.]+) +[0-9.]+$'
train 3 $gpt
expect '^2 workers +234\.7 +234\.7 +0\.0 +([0-9.]+) +[0-9.]+$'
expect '^1 server +234\.7 +0\.0 +469\.4 +0\.0 +704\.1$'
train 1 $gpt --kv-store dist_sync # what a job with servers holds is not known from one rank
expect '^memory: weights 234\.7 MB'

run_limited 60 1 --network lstm --image-shape 1,12,1 --num-classes 50 --summary --time-block 20
[ $status = 2 ] || fail "exit status $status, not 2, of a summary of blocks that are too long"
expect 'error: --time-block: a block of 20 steps is longer than the longest sequence, of 12'

part "bad input"
refuse $lstm --model-parallel embed=cpu:0,lstm0-3=cpu:1
expect 'error: --model-parallel: group decode \(.*\) has no device'
refuse $lstm --model-parallel embed=cpu:0,lstm0-4=cpu:1,decode=cpu:1
expect 'error: --model-parallel: the network has no group lstm4; the nearest one is lstm'
refuse $lstm --model-parallel $ends --devices cpu:0,cpu:1,cpu:2
expect 'error: --devices: cpu:2 has no group'
refuse $lstm --model-parallel $ends --devices cpu:0
expect 'error: --model-parallel: cpu:1 is not one of --devices'
refuse $lstm --group2dev $ends --model-parallel 2
expect 'error: --group2dev with --model-parallel 2: use one of them'
refuse --network lenet --data-dir set --batch-size 20 --model-parallel a=cpu:0
expect 'error: --model-parallel: the layers of this network have no groups'
refuse --network mlp --data-dir set --batch-size 20 --model-parallel 4
expect 'error: --model-parallel 4: the network has 3 layers with parameters'
refuse $resnet --model-parallel 2 --devices cpu:0
expect 'error: --model-parallel 2 with 1 devices: one for each part is needed'
refuse $resnet --micro-batches 3
expect "error: --micro-batches 3 does not divide a worker's batch of 20"
run_limited 60 1 --network resnet --num-layers 50 --benchmark 1 --batch-size 1000000 --model-parallel 2 \
	--micro-batches 2
[ $status = 2 ] || fail "exit status $status of a batch that is too large"
expect 'error: network resnet needs about .* a batch of about [0-9]+ would fit'
refuse $resnet --time-block 4
expect 'error: --time-block: network resnet cannot work on blocks of steps: layer bn_data \(batchnorm\) needs all'
refuse $lstm --time-block 9
expect 'error: --time-block: a block of 9 steps is longer than the longest sequence, of 8'
refuse $lstm --time-block 4 --micro-batches 2
expect 'error: --time-block 4 with --micro-batches 2: use one of them'
refuse $lstm --time-block 4 --devices cpu:0,cpu:1
expect 'error: --time-block: the 2 devices share the samples'
refuse $resnet --micro-batches 2 --devices cpu:0,cpu:1
expect 'error: --micro-batches: the 2 devices share the samples'
refuse $resnet --model-parallel 2 --work-load-list 1,2
expect 'error: --work-load-list 1,2 with --model-parallel 2: it divides samples'
refuse $resnet --model-parallel 2 --profile
expect 'error: --profile with --model-parallel 2: it is for devices'
refuse $resnet --model-parallel stem=cpu:0,stage1-3=ref:0,head=ref:0
expect 'error: .*cpu and ref are of two kinds'

finish
