#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a terminal a line shows how far an epoch is; in a file the log is what it always was.
. "$SRCDIR/mpi_tests/lib/lib.sh"

small_set set 330 90
job="--network mlp --data-dir set --batch-size 20 --disp-batches 3 --num-epochs 2 --lr 0.05 --log-time 0"
epoch='epoch [12]/2 100% \d+/s eta \d+:\d\d loss [0-9.]+ lr 0\.05 data \d+%'
escape=$(printf '\033')

part "in a file"
train 3 $job --kv-store dist_sync
expect_count 4 'Speed: '
expect_none "$escape|epoch 1/2"

part "asked for"
train 3 $job --kv-store dist_sync --progress 1
expect_none 'Speed: '
# The last of each epoch stays, and what follows begins a line.
expect_count 2 "^\\r$escape\\[K$epoch comm \\d+%\$|$escape\\[K$epoch comm \\d+%\$"
expect_count 2 '^Node\[0\] Epoch\[\d\] Train-accuracy='
expect 'epoch 1/2 100% .* eta \d+:\d\d'
expect 'epoch 2/2 100% .* eta 0:00 '
train 1 $job --progress 1
expect_count 2 "$epoch\$"

# terminal COMMAND: on a terminal of its own; what it shows there goes to $log
terminal() {
	timeout $((60 * ${MU_TIMEOUT_SCALE:-1})) script -qec "$1" /dev/null </dev/null >"$log" 2>&1 ||
		{ fail "exit status $? on a terminal: $1"; show_log; }
}
if command -v script >/dev/null && script -qec true /dev/null </dev/null >/dev/null 2>&1; then
	part "on a terminal"
	terminal "$TRAINER $job"
	expect_count 2 "$escape\\[K$epoch"
	expect_none 'Speed: '
	terminal "$MPIRUN -n 3 $TRAINER $job --kv-store dist_sync"
	expect_count 2 "$escape\\[K$epoch comm"
	expect_none 'Speed: '
	terminal "$MPIRUN -n 3 $TRAINER $job --kv-store dist_sync 2>file.log"
	log=file.log
	expect_count 4 'Speed: '
	expect_none "$escape"
else
	part "on a terminal: skipped, script (util-linux) makes none here"
fi

part "a narrow one, an error inside an epoch"
log=trainer.log
COLUMNS=30 train 1 $job --progress 1
expect_count 2 "$escape\\[Kepoch \\d/2 100% .{1,17}\$"
run_limited 60 1 --network mlp --benchmark 1 --num-epochs 1 --lr 1e6 --num-batches 40 --progress 1
[ $status = 1 ] || fail "exit status $status of a run that breaks"
expect_count 1 '^trainer: .*error: '
run_limited 60 1 $job --progress 2
[ $status = 2 ] || fail "exit status $status"
expect_count 1 'error: .*--progress.*auto'
finish
