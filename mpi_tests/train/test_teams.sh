#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Networks whose layers lie on the ranks of a team: the bits of one device, with stores and several teams, devices of
# several ranks, checkpoints across, a rank that is killed or stopped, bad input.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/split.sh
. "$SRCDIR/mpi_tests/lib/split.sh"

two="--save-period 2 --best-metric none" # one file, of its two epochs
ends="embed=0,lstm0-1=0,lstm2-3=1,decode=0"

# run MODEL NP ARGUMENT...: a model of this prefix, and its losses
run() {
	local model=$1
	shift
	train "$@" --model-prefix "$model"
	grep -o '[A-Za-z]*-*cross-entropy=[^	 ]*' "$log" >"$model.losses"
}

# same A B WHAT
same() {
	[ -s "$2.losses" ] || fail "$3: no losses"
	cmp -s "$1.losses" "$2.losses" || fail "$3: other losses: $(diff "$1.losses" "$2.losses" | head -n 4)"
	same_model "$1"-000?.h5 "$2"-000?.h5 || fail "$3: other bits"
}

# refuse NP ARGUMENT...
refuse() {
	run_limited 60 "$@"
	[ $status = 2 ] || fail "exit status $status, not 2, of $*"
}

part "the bits of one device"
run one 1 $lstm $two
run two 2 $lstm $two --model-parallel-ranks 2
expect '^stage 0 on cpu:0 of rank 0: embed to [a-z0-9]+, [0-9]+ parameters, '
expect '^stage 1 on cpu:0 of rank 1: [a-z0-9]+ to softmax, '
expect '^1 team of 2 workers each, '
expect '^kv-store dist_sharded: '
same one two "lstm, two ranks"
if in_tier full; then
	run micro 1 $lstm $two --micro-batches 4
	run micro2 2 $lstm $two --micro-batches 4 --model-parallel-ranks $ends
	same micro micro2 "lstm, three stages on two ranks"
fi
run block 1 $lstm $two --time-block 3
if in_tier full; then
	run block2 2 $lstm $two --time-block 3 --model-parallel-ranks 2
	same block block2 "lstm in blocks of steps, two ranks"
fi
run block3 2 $lstm $two --time-block 3 --model-parallel-ranks $ends
same block block3 "lstm in blocks of steps, three stages on two ranks"
# a part of a micro-batch is left at the end of the epoch: 10 is 8 and 2
run net 1 $resnet --micro-batches 5 --batch-size 40
if in_tier full; then
	run net2 2 $resnet --micro-batches 5 --batch-size 40 --model-parallel-ranks 2
	same net net2 "resnet in two halves"
fi
run net4 2 $resnet --micro-batches 5 --batch-size 40 --model-parallel-ranks 2 --model-parallel 2
expect '^stage 3 on cpu:1 of rank 1: '
same net net4 "resnet on two devices of two ranks"

part "several teams, and stores"
run servers 3 $resnet --batch-size 10 --kv-store dist_sync --num-servers 1
expect '^batch size 10 per device, 10 per worker, 20 global; 90 samples in 5 steps an epoch$'
run servers2 5 $resnet --batch-size 10 --kv-store dist_sync --num-servers 1 --model-parallel-ranks 2
expect '^batch size 10 per device, 10 per team, 20 global; 90 samples in 5 steps an epoch$'
expect '^2 teams of 2 workers each, '
same servers servers2 "two teams and a server"
if in_tier full; then
	run all2 4 $resnet --batch-size 10 --kv-store dist_allreduce --node-reduce none --model-parallel-ranks 2
	same servers all2 "two teams without a server"
	run twice 1 $resnet --update-period 2 --loss-scale 512
	run twice2 2 $resnet --update-period 2 --loss-scale 512 --model-parallel-ranks 2
	same twice twice2 "two batches in an update, and a loss scale"
fi

part "checkpoints across"
run there 2 $lstm --num-epochs 1 --model-parallel-ranks 2 --progress 1
expect 'eta \S+ lr 1 data' # worker 0 does not know the loss
train 1 $lstm $two --model-prefix there --load-epoch 1
same_model one-0002.h5 there-0002.h5 || fail "one rank goes on otherwise with the checkpoint of a team"
run here 1 $lstm --num-epochs 1
train 2 $lstm $two --model-prefix here --load-epoch 1 --model-parallel-ranks $ends
same_model one-0002.h5 here-0002.h5 || fail "a team goes on otherwise with the checkpoint of one rank"
train 2 $resnet --model-prefix inside --save-steps 2 --model-parallel-ranks 2
train 1 $resnet --model-prefix rest --resume inside-0000-000002.h5
expect '^Resumed from "inside-0000-000002.h5": after step 2 in epoch 1 of \d+, 40 samples counted$'
same_model inside-0001.h5 rest-0001.h5 || fail "one rank goes on otherwise inside an epoch of a team"
train 1 $lstm --evaluate --load one-0002.h5
value Validation-cross-entropy >one.value
train 2 $lstm --evaluate --load one-0002.h5 --model-parallel-ranks 2
value Validation-cross-entropy | cmp -s - one.value || fail "a team validates otherwise"

part "a rank that goes"
endless="--network lstm --benchmark 1 --num-layers 4 --num-hidden 16 --batch-size 8 --lr 0.01 --num-epochs 1000000
	--model-parallel-ranks 2 --disp-batches 20 --log-prefix none --log-time 0"

# loses SIGNAL ARGUMENT...: in the middle of a run, by worker 1; the job ends with an error
loses() {
	local signal=$1 job
	shift
	new_mark
	rm -f "$log"
	launch 60 2 $endless "$@" &
	job=$!
	for _ in $(seq 300); do
		grep -q 'Batch \[' "$log" 2>/dev/null && break
		sleep 0.1
	done
	kill -s "$signal" "$(sed -n 's/.*worker 1 (rank [0-9]*, pid \([0-9]*\)).*/\1/p' "$log")"
	wait $job
	status=$?
	[ $status != 0 ] && [ $status -lt 124 -o $status = 137 ] || fail "exit status $status after a $signal"
	[ -z "$(leftovers)" ] || fail "processes are left after a $signal"
}
loses KILL
loses STOP --comm-timeout 6
expect 'error: .*worker 0 has waited \d+\.\d s for .*worker 1 \(rank 1, [^ ]+; stopped\)'

part "the summary"
train 1 --network resnet --num-layers 20 --image-shape 3,28,28 --num-classes 10 --batch-size 8 --summary \
	--model-parallel-ranks stem=0,stage1-2=0,stage3=1,head=1 --micro-batches 2
expect '^stage 1 on cpu:0 of rank 1: '
# 32 channels of 14 x 14 and their gradients, of 8 samples
expect "^from stage 0 to stage 1: 1 tensor, $((32 * 14 * 14 * 4 * 2 * 8)) bytes per step, both ways\$"

part "bad input"
refuse 2 $lstm --model-parallel-ranks embed=0,lstm0-3=1
expect 'error: --model-parallel-ranks: group decode \(.*\) has no rank'
refuse 2 $lstm --model-parallel-ranks embed=0,lstm0-3=2,decode=2
expect 'error: --model-parallel-ranks: rank 1 has no group; '
refuse 2 $lstm --model-parallel-ranks embed=0,lstm0-3=cpu:1,decode=0
expect 'error: --model-parallel-ranks: cpu:1 is no rank of a team: a number'
refuse 3 $lstm --model-parallel-ranks 2
expect 'error: --model-parallel-ranks: 3 workers \(3 ranks, 0 of them servers\) cannot be divided into teams'
refuse 2 $lstm --model-parallel-ranks 2 --group2rank $ends
expect 'error: --group2rank with --model-parallel-ranks 2: use one of them'
refuse 2 $lstm --model-parallel-ranks $ends --model-parallel embed=cpu:0,lstm0-3=cpu:0,decode=cpu:0
expect 'error: --model-parallel-ranks .* with --model-parallel .*: that puts all layers on devices of one rank'
refuse 2 $lstm --model-parallel-ranks $ends --model-parallel 2
expect 'error: --model-parallel-ranks .* with --model-parallel 2: each rank of it has one device'
refuse 2 $lstm --model-parallel-ranks $ends --devices cpu:0,cpu:1
expect 'error: --model-parallel-ranks .* with 2 devices: each rank of it has one device'
refuse 2 $lstm --model-parallel-ranks 2 --devices cpu:0,cpu:1
expect 'error: --model-parallel-ranks: the 2 devices share the samples'
refuse 4 --network mlp --data-dir set --batch-size 20 --model-parallel-ranks 4
expect 'error: --model-parallel-ranks 4: the network has 3 layers with parameters'
refuse 3 $resnet --model-parallel-ranks 2 --kv-store dist_async --num-servers 1
expect "error: --model-parallel-ranks with --kv-store dist_async: a team's ranks make one update"
for other in "--sync-period 2" "--gc-type 1bit" "--on-nan skip" "--comm-thread 1" \
	"--predict p.csv --load resnet.h5"; do
	refuse 2 $resnet --model-parallel-ranks 2 $other
	expect "error: --model-parallel-ranks with ${other%% *}"
done

finish
