#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --on-nan: batches whose loss or gradients are not finite, made by a model of our own (spoil_net.c).
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

if grep -q '^EXPORT_DYNAMIC = *$' "$BUILDDIR/Makefile"; then
	echo "skip: this build cannot load models"
	exit 77
fi
needs_files
$CC -O2 -std=c11 -shared -fPIC -I"$SRCDIR/include" "$SRCDIR/mpi_tests/lib/spoil_net.c" -o spoil.so || exit 1
export OMP_NUM_THREADS=1 MU_SPOIL
small_set set 120 20
run="--network ./spoil.so --data-dir set --batch-size 10 --lr 0.05 --mom 0.9 --num-epochs 2 --log-prefix none
	--log-time 0 --disp-batches 1000"
sync="--kv-store dist_sync --num-servers 1"

# spoilt RANK EPOCH FIRST LAST loss|gradient
spoilt() { MU_SPOIL="$*"; }

part "nothing is wrong: the same bits"
MU_SPOIL=
train 3 $run $sync --model-prefix A
train 3 $run $sync --model-prefix B --on-nan skip
same_model A-0002.h5 B-0002.h5 || fail "--on-nan skip changes a run whose batches are all good"

part "stop"
for what in loss gradient; do
	spoilt 1 0 2 2 $what
	run_limited 60 3 $run $sync
	[ $status = 1 ] || fail "exit status $status"
	expect 'error: epoch [01].*(the loss|spoil|fullyconnected[01]_(weight|bias)).* is not finite'
done

part "skip"
# rank 0 is a worker in all of them
jobs=("1 local" "3 dist_sync" "3 dist_async")
! in_tier full || jobs+=("2 dist_allreduce" "3 dist_sharded" "5 dist_sync --num-servers 2"
	"2 dist_allreduce --update-period 2" "2 dist_allreduce --sync-period 2")
for job in "${jobs[@]}"; do
	for what in loss gradient; do
		spoilt 0 1 2 3 $what
		train ${job%% *} $run --kv-store ${job#* } --on-nan skip --model-prefix $what --overwrite 1
		expect_count 2 "worker 0 leaves the batch of epoch 2 of \d, step [34] out: the $what is not finite"
		expect 'epoch 2 of \d: worker 0 left 2 batches out that were not finite'
		expect '^Epoch\[1\] Validation-cross-entropy=[0-9.]+$'
	done
	case $job in *async*) continue ;; esac
	same_model loss-0002.h5 gradient-0002.h5 || fail "$job: two ways to leave the same batches out differ"
done
spoilt 1 0 1 99 loss
run_limited 60 3 $run $sync --on-nan skip --batch-size 4
[ $status = 1 ] || fail "exit status $status"
expect 'error: epoch 1 of \d, step 11: the loss is not finite, of 10 batches in a row'

part "rollback"
jobs=("2 --kv-store dist_allreduce" "3 $sync")
! in_tier full || jobs+=("1 --kv-store local" "5 --kv-store dist_sync --num-servers 2")
for job in "${jobs[@]}"; do
	rm -f P-*
	spoilt 0 1 1 1 gradient
	train ${job%% *} $run ${job#* } --on-nan rollback --model-prefix P --save-steps 2
	expect 'a batch of .*worker 0.* was not finite: training goes back from .* to the newest checkpoint'
	expect '^Resumed from "P-000[01](-00000[0-9])?.h5": after (step \d+ in )?epoch [12] of 2, '
	expect_count 1 'Resumed from'
	expect '^Epoch\[1\] Validation-cross-entropy=[0-9.]+$'
	"$BUILDDIR/mpi_tests/lib/whole_file" P-*.h5 || fail "a damaged file"
	grep -q '"exit": "finished"' P-run.json || fail "P-run.json: $(head -n 3 P-run.json)"
done

part "rollback that does not help"
rm -f P-*
spoilt 0 1 0 99 loss
run_limited 60 2 $run --kv-store dist_allreduce --batch-size 2 --on-nan rollback --model-prefix P
[ $status = 1 ] || fail "exit status $status"
expect_count 10 'Resumed from "P-0001.h5"'
expect 'error: --on-nan rollback: training has gone back to a checkpoint 10 times'
rm -f P-*
spoilt 0 0 1 1 loss
run_limited 60 2 $run --kv-store dist_allreduce --on-nan rollback --model-prefix P
[ $status = 1 ] || fail "exit status $status"
expect 'error: --on-nan rollback: nothing has been saved yet to go back to'

part "wrong use"
run_limited 60 1 $run --on-nan rollback
expect 'error: --on-nan rollback needs --model-prefix P'
run_limited 60 3 $run --on-nan rollback --model-prefix P --kv-store dist_async
expect 'error: --on-nan rollback with --kv-store dist_async'
finish
