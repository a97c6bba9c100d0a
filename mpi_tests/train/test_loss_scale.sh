#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --loss-scale in float32, where a power of two changes no bit: overflows are left out by all workers alike, the scale
# halves and doubles, checkpoints hold it.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

needs_files
export OMP_NUM_THREADS=1
small_set set 120 20
run="--network mlp --data-dir set --batch-size 10 --lr 0.05 --mom 0.9 --num-epochs 2 --log-prefix none
	--log-time 0 --disp-batches 1000"
most=1.7014118346046923e38 # 2^127: gradients of float32 overflow

part "the same bits"
for job in "1 local" "2 dist_allreduce" "3 dist_sync" "1 device --devices cpu:0,cpu:1" \
	"2 dist_allreduce --devices ref" "1 local --devices cpu:0,cpu:1 --model-parallel 2 --micro-batches 2" \
	"2 dist_sharded --update-period 2"; do
	train ${job%% *} $run --kv-store ${job#* } --model-prefix A --overwrite 1
	train ${job%% *} $run --kv-store ${job#* } --model-prefix B --overwrite 1 --loss-scale 1024
	expect_none 'overflow'
	same_model A-0002.h5 B-0002.h5 || fail "$job: a loss scale of 1024 changes bits"
done

part "overflows"
for job in "1 local" "2 dist_allreduce" "3 dist_sync" "1 device --devices cpu:0,cpu:1" \
	"2 dist_allreduce --sync-period 2" "1 local --devices cpu:0,cpu:1 --model-parallel 2 --micro-batches 2"; do
	async= && case $job in *dist_sync* | *dist_allreduce) async="--verify-steps 1" ;; esac
	train ${job%% *} $run --kv-store ${job#* } $async --loss-scale dynamic:$most
	expect 'epoch 1 of \d+, step 1: gradients overflow .* scale of 1.70141e\+38; every worker leaves the batch out'
	expect 'out, 1 so far; the loss scale is 8.50706e\+37 now'
	expect '^epoch 2 of \d+: loss scale [0-9.e+]+, \d+ batch(es)? left out so far'
	expect '^Epoch\[1\] Validation-cross-entropy=[0-9.]+$'
done
train 3 $run --kv-store dist_async --loss-scale dynamic:$most
expect 'epoch 1 of \d+, step 1: gradients overflow .*worker 0 leaves the batch out'

part "one worker's overflow is everybody's"
# the last step has one sample: three workers of 4 have none, and still take part
train 4 $run --num-examples 109 --batch-size 9 --kv-store dist_allreduce --loss-scale dynamic:$most --verify-steps 1
expect 'gradients overflow'

part "an epoch of overflows alone"
train 2 $run --kv-store dist_allreduce --num-batches 1 --loss-scale dynamic:$most
expect '^epoch 1 of \d+: loss scale 8.50706e\+37, 1 batch left out so far'
expect_none '^Epoch\[0\] Train-'
expect '^Epoch\[1\] Train-cross-entropy=[0-9.]+$'

part "growth, and what checkpoints hold"
train 1 $run --loss-scale dynamic:1 --loss-scale-window 5 --model-prefix C
expect 'epoch 1 of \d+, step 5: loss scale 2 after 5 good batches'
expect 'epoch 1 of \d+, step 10: loss scale 4 after 5 good batches'
expect 'epoch 2 of \d+, step 3: loss scale 8 after 5 good batches'
rm -f C-0002.h5
train 1 $run --loss-scale dynamic:1 --loss-scale-window 5 --model-prefix C --resume auto
expect_none 'epoch 2 of \d+, step [12]: loss scale'
expect 'epoch 2 of \d+, step 3: loss scale 8 after 5 good batches'
train 1 $run --model-prefix D
same_model C-0002.h5 D-0002.h5 || fail "dynamic scales change bits"
train 1 $run --model-prefix C --resume auto --num-epochs 3

part "a fixed scale that is too large"
run_limited 60 2 $run --kv-store dist_allreduce --loss-scale $most --initializer one --batch-size 5
[ $status = 1 ] || fail "exit status $status"
expect 'error: epoch 1 of \d+, step 10: gradients are not finite .* 1.70141e\+38, of 10 batches in a row'
expect 'in a row; a lower --lr or --loss-scale may help'

part "wrong use"
run_limited 60 1 $run --loss-scale 8 --loss-scale-window 5
[ $status = 2 ] || fail "exit status $status of a window without a dynamic scale"
expect_count 1 'error: --loss-scale-window 5: it needs --loss-scale dynamic'
run_limited 60 3 $run --kv-store dist_sync --loss-scale 8 --gc-type topk
[ $status = 2 ] || fail "exit status $status of a loss scale with compression"
expect_count 1 'error: --gc-type topk with --kv-store dist_sync: the residual of compression'
for value in 0 -1 x 1e39 dynamic: dynamic:none dynamics 8x; do
	run_limited 60 1 $run --loss-scale $value
	[ $status = 2 ] || fail "exit status $status of --loss-scale $value"
	expect_count 1 "error: --loss-scale $value: dynamic, dynamic:START, none, or a number from"
done
finish
