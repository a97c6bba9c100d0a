#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# parse_log: tables out of logs of Muster and of MXNet's trainers, old and new; several logs; wrong ones.
# In the tier long: 1 GB in 5 s.
. "$SRCDIR/mpi_tests/lib/lib.sh"

parse="$BUILDDIR/parse_log"

# table ARGUMENT...: must succeed; what it prints goes to table.txt, complaints to $log
table() {
	"$parse" "$@" >table.txt 2>"$log" && return
	fail "exit status $? of parse_log $*"
	show_log
}

# prints LINE...: these lines and no others, in table.txt
prints() {
	printf '%s\n' "$@" | diff - table.txt >differences.txt && return
	fail "another table"
	sed 's/^/    /' differences.txt
}

# refuses STATUS REGEX ARGUMENT...: one error, no table
refuses() {
	local expected=$1 regex=$2 st
	shift 2
	"$parse" "$@" >table.txt 2>"$log"
	st=$?
	[ $st = "$expected" ] || fail "exit status $st, not $expected, of parse_log $*"
	[ -s table.txt ] && fail "a table in spite of an error: parse_log $*"
	expect_count 1 'error: '
	expect "error: .*$regex"
}

part "MXNet 1.4 and later"
printf '%s\n' \
	'INFO:root:start with arguments Namespace(batch_size=64, num_epochs=2)' \
	$'INFO:root:Epoch[0] Batch [0-100]\tSpeed: 1000.00 samples/sec\taccuracy=0.100000' \
	'INFO:root:Epoch[0] Train-accuracy=0.900000' \
	'INFO:root:Epoch[0] Train-cross-entropy=0.500000' \
	'INFO:root:Epoch[0] Time cost=12.340' \
	'INFO:root:Epoch[0] Validation-accuracy=0.910000' \
	'INFO:root:Epoch[0] Validation-cross-entropy=0.400000' \
	$'INFO:root:Epoch[1] Batch [0-100]\tSpeed: 1000.00 samples/sec\taccuracy=0.950000' \
	'INFO:root:Epoch[1] Train-accuracy=0.960000' \
	'INFO:root:Epoch[1] Time cost=11.660' \
	'INFO:root:Epoch[1] Validation-accuracy=0.950000' >new.log
table new.log
prints '| epoch | train-accuracy | valid-accuracy | time |' \
	'| --- | --- | --- | --- |' \
	'|  1 | 0.900000 | 0.910000 | 12.3 |' \
	'|  2 | 0.960000 | 0.950000 | 11.7 |'
table --format none new.log
prints $'epoch\ttrain-accuracy\tvalid-accuracy\ttime' $'1\t0.900000\t0.910000\t12.3' $'2\t0.960000\t0.950000\t11.7'
table new.log --format csv --metric-names accuracy,cross-entropy
prints epoch,train-accuracy,valid-accuracy,train-cross-entropy,valid-cross-entropy,time \
	1,0.900000,0.910000,0.500000,0.400000,12.340 2,0.960000,0.950000,,,11.660
table --format json new.log
prints '[' \
	'  {"log": "new.log", "epoch": 1, "train-accuracy": 0.9, "valid-accuracy": 0.91, "time": 12.34},' \
	'  {"log": "new.log", "epoch": 2, "train-accuracy": 0.96, "valid-accuracy": 0.95, "time": 11.66}' \
	']'
"$parse" - <new.log >table.txt 2>"$log" || fail "standard input"
[ "$(wc -l <table.txt)" = 4 ] || fail "a table from standard input"

part "older ones: the metric in lines of speed, workers in one log"
# The speed lines of 0.9 have Train-accuracy, too; only those of epochs count. 0.7 has the worker before it.
printf '%s\n' \
	$'2016-05-01 10:00:00,001 Node[0] Epoch[0] Batch [20]\tSpeed: 500.00 samples/sec\tTrain-accuracy=0.300000' \
	'2016-05-01 10:00:00,002 Node[0] Epoch[0] Resetting Data Iterator' \
	'2016-05-01 10:00:00,003 Node[0] Epoch[0] Train-accuracy=0.800000' \
	'2016-05-01 10:00:00,003 Node[1] Epoch[0] Train-accuracy=0.700000' \
	'2016-05-01 10:00:00,003 Node[0] Epoch[0] Time cost=10.000' \
	'2016-05-01 10:00:00,004 Node[1] Epoch[0] Time cost=14.000' \
	'2016-05-01 10:00:00,005 Node[1] Epoch[0] Validation-accuracy=0.600000' >old.log
table old.log
prints '| epoch | train-accuracy | valid-accuracy | time |' '| --- | --- | --- | --- |' \
	'|  1 | 0.750000 | 0.600000 | 12.0 |'
sed -n 's/.*Epoch/Iteration/p' old.log | sed 's/$/\r/' >oldest.log
mv table.txt same.txt
table oldest.log
diff same.txt table.txt || fail "lines that begin with Iteration"

part "several logs"
cp new.log 'a|b.log'
table 'a|b.log' old.log
prints '| log | epoch | train-accuracy | valid-accuracy | time |' '| --- | --- | --- | --- | --- |' \
	'| a\|b.log |  1 | 0.900000 | 0.910000 | 12.3 |' '| a\|b.log |  2 | 0.960000 | 0.950000 | 11.7 |' \
	'| old.log |  1 | 0.750000 | 0.600000 | 12.0 |'
cp new.log '=a|b.log'
table '=a|b.log' new.log --format csv
[ "$(sed -n 2p table.txt)" = "\"'=a|b.log\",1,0.900000,0.910000,12.340" ] || fail "several logs as CSV"
grep 'Epoch\[0\]' new.log | sed 's/=0.9/=0.7/' >worker.log
table --average new.log worker.log
prints '| epoch | train-accuracy | valid-accuracy | time |' '| --- | --- | --- | --- |' \
	'|  1 | 0.800000 | 0.810000 | 12.3 |' '|  2 | 0.960000 | 0.950000 | 11.7 |'

part "a run of Muster"
small_set set 200 80
train 1 --network mlp --data-dir set --batch-size 20 --num-epochs 3 --lr 0.05
cp "$log" muster.log
table muster.log --format csv
[ "$(cut -d , -f 1 table.txt | tr '\n' ' ')" = 'epoch 1 2 3 ' ] || fail "epochs of a run: $(cat table.txt)"
[ "$(sed -n 's/.*Epoch\[1\] Validation-accuracy=//p' muster.log)" = "$(sed -n '3s/,[^,]*$//;3s/.*,//p' table.txt)" ] ||
	fail "the accuracy of a run"

part "wrong logs"
: >empty.log
refuses 1 'empty.log is empty' empty.log
printf 'hello\nworld\n' >foreign.log
refuses 1 'foreign.log: not the log of a training: none of its 2 lines' foreign.log
head -c 3000000 /dev/zero >zeros.log
refuses 1 'zeros.log: not the log of a training' zeros.log
refuses 1 'none.log: cannot be read: No such file' none.log
refuses 1 'set: cannot be read: it is not a plain file' set
head -n 2 new.log >young.log
refuses 1 'young.log: no epoch is complete in it: 1 lines of speed' young.log
# Of several logs those without an epoch are left out; one at least must have one.
table young.log new.log empty.log
expect 'warning: young.log: no epoch is complete in it: .*; it is left out'
expect 'warning: empty.log is empty: .*; it is left out'
table new.log && cp table.txt alone.txt
table young.log new.log && cmp -s table.txt alone.txt || fail "a log that is left out has changed the table"
refuses 1 'young.log: no epoch is complete' empty.log young.log
# Cut off inside a line, at a number that could be whole.
head -c -5 new.log >cut.log
refuses 1 'cut.log:11: the log ends inside a line, ".*Validation-accuracy=0.95": it is cut off' cut.log
table --skip-bad cut.log
expect 'warning: cut.log:11: the log ends inside this line'
[ "$(tail -n 1 table.txt)" = '|  2 | 0.960000 | - | 11.7 |' ] || fail "a log that is cut off"
sed '8,$s/Train-accuracy=.*/Train-accuracy=nan/' new.log >nan.log
refuses 1 'nan.log:9: a value of epoch 1 is nan: the training may have diverged' nan.log
table --skip-bad nan.log
[ "$(tail -n 1 table.txt)" = '|  2 | - | 0.950000 | 11.7 |' ] || fail "a log with nan"
sed 's/Train-accuracy=0.96.*/Train-accuracy=0.96x/' new.log >letters.log
refuses 1 'letters.log:9: "0.96x" is not a number' letters.log
refuses 1 'no log has values of the metric "perplexity"; others there: accuracy, cross-entropy' \
	new.log --metric-names perplexity
# Without a name: accuracy, or what a log has in its place, also out of standard input.
sed -e '/cross-entropy/d' -e 's/-accuracy/-mse/' new.log >mse.log
table mse.log --metric-names mse
cp table.txt mse.txt
table - <mse.log && cmp -s table.txt mse.txt || fail "metrics that are not accuracy are not found: $(cat table.txt)"
sed 's/-accuracy/-mse/' new.log | sed 's/cross-entropy=.*/cross-entropy=inf/' >two.log
refuses 1 'two.log: the cross-entropy of epoch 0 is not finite' two.log
table two.log --skip-bad
[ "$(head -n 1 table.txt)" = "$(head -n 1 mse.txt)" ] || fail "a metric without values: $(head -n 1 table.txt)"
sed 's/cross-entropy=.*/cross-entropy=inf/' new.log >inf.log
echo 'Epoch[7] Train-cross-entropy=1' >>inf.log
table inf.log
[ "$(grep -c '^|' table.txt)" = 4 ] || fail "an epoch without accuracy: $(cat table.txt)"
refuses 2 'expected LOG\.\.\.' --format csv
refuses 2 'metrics ".*": expected 1 to 8 names' new.log --metric-names a,,b
refuses 2 'format.*markdown' new.log --format html
if [ -w /dev/full ]; then
	"$parse" new.log >/dev/full 2>"$log" && fail "a table that cannot be written"
	expect 'error: the table cannot be written: No space left'
fi

if in_tier long; then
	part "1 GB"
	awk 'BEGIN { for (i = 0; i < 100000; i++)
		printf "2026-01-01 12:00:00,000 Node[0] Epoch[%d] Batch [%d-%d]\tSpeed: 51200.00 samples/sec\t" \
			"accuracy=0.912345\tcross-entropy=0.312345\n", i / 1000, i % 1000, i % 1000 + 20 }' >speed.txt
	for _ in $(seq 80); do cat speed.txt; done >big.log
	cat new.log >>big.log
	[ "$(stat -c %s big.log)" -gt 1000000000 ] || fail "the log is small"
	cat big.log >/dev/null
	start=$(date +%s%N)
	table big.log
	spent=$((($(date +%s%N) - start) / 1000000))
	echo "1 GB in $spent ms"
	[ $spent -le $((5000 * ${MU_TIMEOUT_SCALE:-1})) ] || fail "1 GB took $spent ms"
	[ "$(wc -l <table.txt)" = 4 ] || fail "the table of a large log"
fi
finish
