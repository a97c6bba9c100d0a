#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --metrics-file and --tensorboard have the numbers of the log, of the whole job; a run that goes on adds to them.
#
. "$SRCDIR/mpi_tests/lib/lib.sh"

# number FILE.jsonl EVENT EPOCH NAME: of the last such line; empty: it has none
number() {
	sed -n "s/^{\"event\": \"$2\", \"epoch\": $3, .*\"$4\": \\([-0-9.e+]*\\)[,}].*/\\1/p" "$1" | tail -n 1
}

# logged REGEX: what the log says behind it
logged() {
	sed -n "s/.*$1\\([0-9.]*\\).*/\\1/p" "$log" | tail -n 1
}

# same WHAT A B ERROR: equal numbers, as far as the log has them
same() {
	awk -v a="$2" -v b="$3" -v e="$4" 'BEGIN { exit !(a != "" && b != "" && a - b <= e && b - a <= e) }' && return
	fail "$1: $2, and the log has $3"
}

small_set set 330 90
job="--network mlp --data-dir set --batch-size 20 --disp-batches 3 --lr 0.1 --log-time 0"

part "JSON"
train 3 $job --kv-store dist_sync --num-epochs 2 --lr-step-epochs 1 --lr-factor 0.5 --metrics-file m.jsonl
# 9 steps an epoch, the last one short: lines after steps 4 and 7.
sed 's/^{"event": "\([a-z]*\)", "epoch": \([0-9]*\), "step": \([0-9]*\), "time": [0-9.]*,.*}$/\1 \2 \3/' \
	m.jsonl >records.txt
[ "$(cat records.txt)" = "train 0 4
train 0 7
epoch 0 9
validation 0 9
train 1 13
train 1 16
epoch 1 18
validation 1 18" ] || fail "records: $(cat m.jsonl)"
for epoch in 0 1; do
	of="Epoch\[$epoch\]"
	seconds=$(number m.jsonl epoch $epoch seconds)
	same "accuracy of training" "$(number m.jsonl epoch $epoch accuracy)" "$(logged "$of Train-accuracy=")" 1e-6
	same "loss" "$(number m.jsonl epoch $epoch cross-entropy)" "$(logged "$of Train-cross-entropy=")" 1e-6
	same "accuracy" "$(number m.jsonl validation $epoch accuracy)" "$(logged "$of Validation-accuracy=")" 1e-6
	same "rate" "$(number m.jsonl train $epoch samples_per_second)" "$(logged "$of Batch \[3-6\].*Speed: ")" 0.006
	same "seconds" "$seconds" "$(logged "$of Time cost=")" 0.0006
	same "samples of an epoch" "$(awk -v a="$(number m.jsonl epoch $epoch samples_per_second)" -v b="$seconds" \
		'BEGIN { print a * b }')" 330 0.1
	same "communication" "$(awk -v a="$(number m.jsonl epoch $epoch comm_share)" -v b="$seconds" \
		'BEGIN { print a * b }')" "$(logged "$of Exposed communication=")" 0.0006
done
[ "$(number m.jsonl train 0 lr) $(number m.jsonl epoch 1 lr)" = "0.1 0.05" ] || fail "learning rates"
[ -z "$(number m.jsonl validation 0 seconds)$(number m.jsonl validation 0 lr)" ] || fail "a validation has no rate"
grep -Eq '"data_share": (0|0?\.[0-9]|[0-9.]+e-)' m.jsonl || fail "no share of data"

part "a CSV file of a run with other metrics"
train 1 $job --kv-store local --num-epochs 1 --metrics-file o.csv --model-prefix o/P
cp o.csv before.csv
train 1 $job --kv-store local --num-epochs 2 --metrics-file o.csv --model-prefix o/P --resume auto --top-k 3
expect_count 1 'warning: --metrics-file: nothing more .*: o.csv has the columns .*, and this run has .*top_k'
cmp before.csv o.csv || fail "rows under another head"

part "CSV"
train 1 $job --kv-store local --num-epochs 1 --top-k 3 --metrics-file m.csv
head="event,epoch,step,time,seconds,samples_per_second,lr,data_share,comm_share"
[ "$(head -n 1 m.csv)" = "$head,accuracy,top_k_accuracy_3,cross-entropy" ] || fail "head: $(head -n 1 m.csv)"
awk -F , 'NF != 12 { exit 1 }' m.csv || fail "columns"
[ "$(awk -F , 'END { print $1, $5 $6 $7 $8 $9 }' m.csv)" = "validation " ] || fail "a validation: $(tail -n 1 m.csv)"
same "accuracy in CSV" "$(awk -F , 'END { print $10 }' m.csv)" "$(logged 'Validation-accuracy=')" 1e-6
[ "$(awk -F , '$1 == "epoch" { print $9 "." }' m.csv)" = . ] || fail "communication of one worker"

if has_files; then
	part "a run that goes on"
	train 1 $job --num-epochs 1 --model-prefix p --metrics-file goes_on.csv
	lines=$(wc -l <goes_on.csv)
	train 1 $job --num-epochs 2 --model-prefix p --resume auto --metrics-file goes_on.csv
	[ "$(wc -l <goes_on.csv)" = $((2 * lines - 1)) ] || fail "$(wc -l <goes_on.csv) lines after $lines"
	[ "$(grep -c ^event goes_on.csv)" = 1 ] || fail "two heads"
	train 1 $job --num-epochs 1 --metrics-file goes_on.csv
	[ "$(wc -l <goes_on.csv)" = "$lines" ] || fail "a new run does not begin a new file"
fi

part "TensorBoard"
run_limited 60 3 $job --kv-store dist_sync --num-epochs 2 --metrics-file both.jsonl --tensorboard board
if grep -q 'built without protobuf-c' "$log"; then
	[ $status = 2 ] || fail "exit status $status without protobuf-c"
	expect_count 1 'error: .*--tensorboard board: this program was built without protobuf-c'
else
	[ $status = 0 ] || { fail "exit status $status with --tensorboard"; show_log; }
	[ "$(ls board | grep -c '^events\.out\.tfevents\.')" = 1 ] || fail "files: $(ls board)"
	"$BUILDDIR/mpi_tests/lib/read_events" board/* >events.txt || fail "the event file"
	[ "$(head -n 1 events.txt)" = "version brain.Event:2" ] || fail "version: $(head -n 1 events.txt)"
	# The same as the other file has.
	awk '{ gsub(/[{}",:]/, ""); for (i = 9; i < NF; i += 2) print $6, $2 "/" $i, $(i + 1) }' both.jsonl \
		>expected.txt
	sed 1d events.txt | paste -d ' ' - expected.txt | awk '
		$1 != $4 || $2 != $5 || NF != 6 || $3 - $6 > 1e-6 * $6 || $6 - $3 > 1e-6 * $6' >differences.txt
	[ -s differences.txt ] && fail "other scalars: $(head -n 5 differences.txt)"
	[ "$(wc -l <expected.txt)" -gt 40 ] || fail "few scalars: $(wc -l <expected.txt)"
fi

part "files that cannot be"
refuses() {
	run_limited 60 "$@"
	[ $status = "$expected" ] || fail "exit status $status, not $expected"
	expect_count 1 'error: '
}
expected=2 refuses 2 $job --kv-store dist_allreduce --metrics-file m.txt
expect 'error: .*--metrics-file m\.txt: its name must end in \.jsonl .*\.csv'
expected=2 refuses 3 $job --metrics-file none/m.csv
expect 'error: .*--metrics-file none/m\.csv: cannot be written: No such file'
expected=2 refuses 1 $job --evaluate --load p-0001.h5 --metrics-file m.csv
expect 'error: .*--metrics-file with .*: it is about training'
if ! grep -q 'built without protobuf-c' "$log" && [ -d board ]; then
	expected=2 refuses 2 $job --kv-store dist_allreduce --tensorboard m.csv
	expect 'error: .*--tensorboard m\.csv: m\.csv: is there, but is not a folder'
fi
if mkdir full && mount -t tmpfs -o size=4k tmpfs full 2>/dev/null; then
	head -c 4096 /dev/zero >full/other
	train 1 $job --num-epochs 1 --metrics-file full/m.csv
	expect_count 1 'warning: --metrics-file: nothing more is written there: .*No space left'
	umount full
else
	echo "a full disk: skipped, no file system can be mounted here"
fi
finish
