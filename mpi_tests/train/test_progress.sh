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
expect_count 2 'validation 100% eta 0:00'
train 1 --evaluate --benchmark 1 --network mlp --num-batches 2 --progress 1
expect_count 1 'validation 100% eta 0:00'

# terminal COMMAND: on a terminal of its own; what it shows there goes to $log
terminal() {
	timeout $((60 * ${MU_TIMEOUT_SCALE:-1})) script -qec "$1" /dev/null </dev/null >"$log" 2>&1 ||
		{ fail "exit status $? on a terminal: $1"; show_log; }
}
if command -v script >/dev/null && script -qec true /dev/null </dev/null >/dev/null 2>&1; then
	part "on a terminal"
	line='[12]/2 +\d+\.\d{4}  0\.\d{4} +\d+\.\d{4} +0\.\d{4}  0\.\d{4} +[\d.]+ +\d+'
	terminal "$TRAINER $job"
	expect_count 2 "$escape\\[K$epoch"
	expect_count 2 "$line +\\r\$"
	expect_count 1 'epoch +loss +acc +val loss +val acc +best +seconds +1/s  saved\r$'
	expect_count 1 '^network +mlp, 109386 parameters, on '
	expect_count 1 '^data +330 samples \+ 90 for validation, 1 x 28 x 28, 10 classes: set\r$'
	expect_count 1 '^steps +batches of 20 samples, 17 steps an epoch, 2 epochs\r$'
	expect_count 1 '^trained 2 epochs in .*; validation accuracy .*, best .* after epoch \d\r$'
	expect_count 0 'Speed: |Node\[|^\d{4}-|start with arguments'
	[ "$(grep -c '' "$log")" -le 13 ] || { fail "more than 13 lines on a terminal" && show_log; }
	terminal "$MPIRUN -n 3 $TRAINER $job --kv-store dist_sync --log logs/a.log --model-prefix m \
		--save-async 0"
	expect_count 2 "$escape\\[K$epoch comm"
	expect_none 'Speed: |Saved checkpoint'
	if has_files; then expect_count 2 "$line  m-000[12].h5\\r\$"; fi
	expect 'log +logs/a.log'
	log=logs/a.log
	expect_count 4 '^Node\[0\] .*Speed: '
	expect_count 1 'start with arguments network=mlp'
	expect_count 2 'Validation-accuracy='
	expect_none "$escape"
	log=trainer.log
	# A user who sends standard output to a file finds the log there.
	terminal "$TRAINER $job >out.log"
	expect_count 2 "$line"
	log=out.log
	expect_count 10 'Speed: '
	expect_none "$escape"
	log=trainer.log
	terminal "$MPIRUN -n 3 $TRAINER $job --kv-store dist_sync --log-format mxnet"
	expect_count 2 'Epoch\[[01]\] Validation-accuracy='
	expect_none '^network|: loss'
	terminal "$MPIRUN -n 3 $TRAINER $job --kv-store dist_sync 2>file.log"
	log=file.log
	expect_count 4 'Speed: '
	expect_none "$escape"
	log=trainer.log
	terminal "$TRAINER $job --data-dir nowhere || true"
	expect_count 1 "^trainer: $escape\\[1;31merror:$escape\\[0m nowhere: .*\\r\$"
	NO_COLOR=1 terminal "$TRAINER $job --data-dir nowhere || true"
	expect_count 1 "^trainer: error: nowhere: .*\\r\$"
else
	part "on a terminal: skipped, script (util-linux) makes none here"
fi

part "--log, --quiet, errors"
log=trainer.log
train 1 $job --quiet
expect_count 1 .
expect '^trained 2 epochs in .*; validation accuracy '
train 1 $job -q --log a.log
expect_count 1 .
lines=$(grep -c 'Epoch\[1\]' a.log)
[ "$lines" -ge 5 ] || fail "$lines lines of epoch 1 in the file of --log"
before=$(wc -l <a.log)
train 1 $job -q --log a.log
[ "$(wc -l <a.log)" -gt $((before + 10)) ] || fail "--log does not append"
mkfifo pipe
for name in pipe set/train-images-idx3-ubyte.gz; do
	run_limited 60 1 $job --log $name
	[ $status = 2 ] || fail "exit status $status of --log $name"
	expect_count 1 "^trainer: error: --log $name: "
done
ln -s pipe pipe.csv
run_limited 60 1 $job --metrics-file pipe.csv
expect_count 1 '^trainer: error: --metrics-file pipe.csv: cannot be written: it is a device or a pipe$'
if mkdir full && mount -t tmpfs -o size=4k tmpfs full 2>/dev/null; then
	train 1 $job --disp-batches 1 --log full/a.log
	expect_count 1 'warning: the file of the log cannot be written: No space left on device: it ends here$'
	umount full
else
	echo "a full disk: skipped, no file system can be mounted here"
fi
run_limited 60 1 $job --log set
expect_count 1 .
expect '^trainer: error: --log set: cannot be written: Is a directory$'
run_limited 60 1 $job --data-dir nowhere --log a.log
expect_none 'rank 0|input/output|^    at '
expect_count 1 '^trainer: error: nowhere: '
log=a.log
expect '    at src/'
log=trainer.log
run_limited 60 1 $job --data-dir nowhere --verbose 1
expect '^    at src/'

part "a file is named when it is complete"
if has_files; then
	table="$job --log-format plain --model-prefix whole"
	train 1 $table --save-async 0
	expect '^1/2 .*  whole-0001.h5$'
	train 1 $table --num-epochs 1 --overwrite
	expect '^1/1 .*  whole-0001.h5$'
	mkdir -p cut-0001.h5/full # no file can have its name
	run_limited 60 1 $table --num-epochs 1 --model-prefix cut
	[ $status = 1 ] || fail "exit status $status of a checkpoint that cannot be written"
	expect '^1/1 .*  saving$'
fi

part "a narrow one, an error inside an epoch"
log=trainer.log
COLUMNS=30 train 1 $job --progress 1
expect_count 2 "$escape\\[Kepoch \\d/2 100% .{1,17}\$"
run_limited 60 1 --network mlp --benchmark 1 --num-epochs 1 --lr 1e6 --num-batches 40 --progress 1
[ $status = 1 ] || fail "exit status $status of a run that breaks"
# in the place of the line of progress, if the machine was slow enough to show one
expect_count 1 "(^|\\r$escape\\[K)trainer: .*error: "
run_limited 60 1 $job --progress 2
[ $status = 2 ] || fail "exit status $status"
expect_count 1 'error: .*--progress.*auto'
finish
