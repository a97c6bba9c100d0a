#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 300
# --shard-gradients 1: the bits of dist_sharded without it, resuming, memory, what it refuses, and a
# rank that is killed.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"

export OMP_NUM_THREADS=1 # bits depend on it
small="--benchmark 1 --batch-size 4 --num-batches 3 --num-epochs 1 --num-examples 100 --kv-store dist_sharded"
adam="--optimizer adam --lr 0.001 --clip-global-norm 0.1"
gpt="--network gpt2 --num-layers 2 --num-hidden 64 --num-heads 2 --num-classes 500 --seq-len 16"
resnet="--network resnet --num-layers 8 --image-shape 3,28,28 --num-classes 10"

# same_bits NP ARGUMENT...
same_bits() {
	local np=$1
	shift
	rm -f W-* S-*
	train "$np" $small "$@" --model-prefix W
	train "$np" $small "$@" --model-prefix S --shard-gradients 1
	cmp W-0001.h5 S-0001.h5 || fail "other bits with --shard-gradients 1: -n $np $*"
}

part "the same bits"
same_bits 2 $gpt $adam
if in_tier full; then
	same_bits 2 $resnet --bucket-bytes 2000
	same_bits 1 $gpt $adam
	same_bits 3 $gpt --tie-weights 0 --bucket-bytes 1 --node-reduce none
	same_bits 4 $resnet $adam --comm-thread 1
	if nodes_up 2; then
		nodes_use 2
		same_bits 4 $gpt $adam
		same_bits 3 $resnet --bucket-bytes 2000 --node-reduce mpi
		nodes_end
	fi
fi

if in_tier full; then
	part "resuming inside an epoch"
	rm -f W-* S-*
	train 2 $small $gpt $adam --num-batches 4 --shard-gradients 1 --model-prefix W
	train 2 $small $gpt $adam --num-batches 4 --shard-gradients 1 --model-prefix S --save-steps 2
	rm -f S-0001.h5
	train 2 $small $gpt $adam --num-batches 4 --shard-gradients 1 --model-prefix S --resume auto
	expect '^.*Resumed from "S-0000-000002.h5"'
	cmp W-0001.h5 S-0001.h5 || fail "other bits after going on"
fi

part "memory"
# 58,675,200 parameters: 4 slots of a layer's largest array, 9.4 MB, and the tied table of 61.4 MB;
# with clipping a half or a quarter of the sums, too.
big="--network gpt2 --num-layers 6 --num-hidden 768 --num-heads 12 --num-classes 20000 --seq-len 64 --batch-size 4
	--optimizer adam --summary --kv-store dist_sharded --shard-gradients 1"
train 2 $big
expect '^2 workers +234\.7 +99\.2 +234\.7 '
! in_tier full || {
	train 2 $big --clip-global-norm 1
	expect '^2 workers +234\.7 +216\.5 +234\.7 '
}
train 4 $big --clip-global-norm 1
expect '^4 workers +234\.7 +157\.9 +117\.4 '

part "what it excludes"
for words in "--update-period 2" "--sync-period 2" "--gc-type fp16" "--on-nan skip" "--loss-scale 8" \
	"--micro-batches 2" "--kv-store dist_allreduce" "--devices cpu:0,cpu:1"; do
	run_limited 60 1 --network mlp $small $words --shard-gradients 1
	[ $status = 2 ] || fail "exit status $status, not 2, with $words"
	expect 'error: --shard-gradients 1 (with|is for)'
done

part "a rank that is killed"
new_mark
(launch 100 3 $small $gpt --num-batches 100000 --num-examples 2000000 --shard-gradients 1 --disp-batches 1) &
job=$!
for ((i = 0; i < 600; i++)); do
	grep -q 'Batch \[2-3\]' "$log" && break
	sleep 0.1
done
pid=$(sed -nE 's/.*worker 2 \(rank 2, pid ([0-9]+)\).*/\1/p' "$log" | head -n 1)
kill -KILL "$pid" || fail "no process of rank 2"
wait $job
status=$?
[ $status != 0 ] && [ $status != 124 ] && [ $status != 137 ] || fail "exit status $status of a job that lost rank 2"
leftovers >left
[ ! -s left ] || fail "left running: $(cat left)"
finish
