#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# P-best, --best-metric, --early-stopping, --validate-every, --validate-steps, --max-val-samples;
# all of them in runs that resume.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

needs_files
export OMP_NUM_THREADS=1
small_set set 200 60
# A learning rate at which validations go up and down.
mlp="--network mlp --data-dir set --batch-size 10 --lr 0.2 --num-epochs 12 --devices ref --log-prefix none --log-time 0"

# best_epoch LINE MORE: the first of the best values in the log, as a number of epochs; MORE 1: higher is better
best_epoch() {
	sed -n "s/^Epoch\[\([0-9]*\)\] $1=/\1 /p" "$log" | awk -v more="$2" '
		NR == 1 || (more ? $2 > best : $2 < best) { best = $2; at = $1 + 1 } END { print at }'
}

# points_to PREFIX EPOCHS
points_to() {
	local file
	file=$(printf '%s-%04d.h5' "$1" "$2")
	[ "$(readlink "$1-best")" = "$file" ] || fail "$1-best points to $(readlink "$1-best"), not $file"
	[ -s "$1-best" ] || fail "there is no $file"
}

epochs() { grep -c '^Epoch.*Train-accuracy' "$log"; }

part "the best file"
train 1 $mlp --model-prefix A --keep 1
best=$(best_epoch Validation-accuracy 1)
[ "$best" -gt 1 ] && [ "$best" -lt 12 ] || fail "the best epoch, $best, tests nothing"
points_to A "$best"
[ "$(echo A-0*.h5)" = "$(printf 'A-%04d.h5 A-0012.h5' "$best")" ] || fail "--keep 1 keeps $(echo A-0*.h5)"
expect "^best so far: accuracy 0\.\d+ of Epoch\[$((best - 1))\]$"
train 1 --evaluate --load A-best --data-dir set --batch-size 10
train 1 $mlp --model-prefix B --best-metric loss --save-period 6
points_to B "$(best_epoch Validation-cross-entropy 0)"
[ "$(ls B-0*.h5)" = "$(printf 'B-%04d.h5\n' "$(best_epoch Validation-cross-entropy 0)" 6 12 | sort -u)" ] ||
	fail "--save-period 6 keeps $(echo B-0*.h5)"
train 1 $mlp --model-prefix C --best-metric none --save-period 12
[ "$(echo C-*)" = "C-0012.h5 C-latest C-run.json" ] || fail "--best-metric none: $(echo C-*)"

part "early stopping"
train 3 $mlp --model-prefix D --kv-store dist_sync --num-servers 1 --best-metric loss --early-stopping 3
best=$(best_epoch Validation-cross-entropy 0)
end=$(epochs)
[ "$end" = $((best + 3)) ] && [ "$end" -lt 12 ] || fail "$end epochs, and the best is $best"
expect "^early stopping: no better ce than [0-9.]+ after epoch $best of \d+ in 3 validations: training ends$"
for resume in $((best + 1)) $end; do
	train 3 $mlp --model-prefix E$resume --kv-store dist_sync --num-servers 1 --best-metric loss \
		--early-stopping 3 --resume "$(printf 'D-%04d.h5' "$resume")"
	[ "$(epochs)" = $((end - resume)) ] || fail "resumed after $resume of $end epochs, $(epochs) more"
done
cmp "$(printf 'D-%04d.h5' "$end")" "$(printf 'E%d-%04d.h5' $((best + 1)) "$end")" ||
	fail "a resumed run has other bits"
train 1 $mlp --model-prefix D --resume auto --best-metric accuracy
expect '^the checkpoint.s best validation is of ce: that of accuracy begins anew$'
train 2 $mlp --kv-store dist_async --num-servers 1 --early-stopping 9 # by accuracy
train 2 $mlp --kv-store dist_async --num-servers 1 --best-metric loss --early-stopping 1

part "which epochs, which samples"
train 1 $mlp --num-epochs 5 --validate-every 2 --max-val-samples 20
[ "$(sed -n 's/^Epoch\[\(.\)\] Validation-accuracy.*/\1/p' "$log" | tr -d '\n')" = 134 ] ||
	fail "not validated after 1, 3, 4"
expect '^data idx: 200 samples for training, 20 for validation'

part "inside an epoch: what the checkpoint of that step gives, and the same training"
for store in "3 --kv-store dist_sync --num-servers 1" "2 --kv-store dist_sharded --update-period 2"; do
	ranks=${store%% *} store=${store#* }
	inside="$mlp --num-epochs 2 $store --overwrite"
	train "$ranks" $inside --model-prefix I --save-every 2,4steps --validate-steps 4 --metrics-file I.jsonl
	for step in 4 8; do
		[ "$(grep -Pc "^Epoch\[[01]\] Batch \[$step\]\tValidation-cross-entropy=" "$log")" = 2 ] ||
			fail "not validated after step $step of two epochs"
	done
	inside_ce=$(sed -n 's/^Epoch\[0\] Batch \[4\]\tValidation-cross-entropy=//p' "$log")
	[ "$(grep '"validation"' I.jsonl | sed 's/.*"step": \([0-9]*\),.*/\1/' | tr '\n' ' ')" = "4 8 10 14 18 20 " ] ||
		fail "other steps in the file of metrics: $(cat I.jsonl)"
	grep -P '^Epoch.*\tValidation-cross' "$log" >saved
	train "$ranks" $inside --model-prefix J --validate-steps 4 # which ends steps that no save ends
	grep -P '^Epoch.*\tValidation-cross' "$log" | cmp saved - || fail "other losses where nothing is saved: $store"
	train "$ranks" $inside --model-prefix K
	cmp I-0002.h5 K-0002.h5 && cmp J-0002.h5 K-0002.h5 || fail "validation changes training: $store"
	train "$ranks" --evaluate --load I-0000-000004.h5 --data-dir set --log-prefix none --log-time 0 \
		${store%% --update*}
	expect "^I-0000-000004.h5: accuracy .*, cross-entropy $inside_ce;"
	rm I.jsonl
done
train 1 $mlp --num-epochs 1 --validate-steps 20
expect '^warning: --validate-steps 20: an epoch has 20 steps, so that there is no validation inside it'
expect_none '^Epoch.*Batch \[\d+\]\tValidation'
train 1 $mlp --num-epochs 1 --validate-steps 15 --log-format plain
expect '^epoch 1, step 15 of 20: validation loss \d\.\d{4}, accuracy \d\.\d{4}$'

part "a run that is halted before a validation"
# An update takes an epoch: a signal comes in one.
slow="--network lenet --data-dir set --num-examples 40 --batch-size 40 --max-val-samples 10 --lr 0.1 --num-epochs 6
	--devices ref --log-prefix none --log-time 0"
train 1 $slow --model-prefix F
new_mark
rm -f "$log"
(launch 100 1 $slow --model-prefix G) &
job=$!
for _ in $(seq 3000); do
	grep -qs '^Epoch\[0\] Validation' "$log" && break
	sleep 0.01
done
kill -s TERM "$(sed -n 's/^node .*(rank 0, pid \([0-9]*\)).*/\1/p' "$log")"
wait $job
[ $? = 85 ] || fail "not exit status 85"
pending=$(grep -ac 'pending 1' G-latest)
train 1 $slow --model-prefix G --resume auto
if [ "$pending" = 1 ]; then
	[ "$(grep -n '^Epoch.*Validation-acc' "$log" | head -n 1 | cut -d : -f 1)" -lt \
		"$(grep -n '^Epoch.*Train-acc' "$log" | head -n 1 | cut -d : -f 1)" ] ||
		fail "the epoch before the halt is not validated"
else
	echo "the signal came in a validation"
fi
cmp F-0006.h5 G-0006.h5 || fail "the resumed run has other bits"
[ "$(readlink F-best | tr F G)" = "$(readlink G-best)" ] || fail "another best epoch: $(readlink G-best)"

part "wrong use"
for wrong in '--early-stopping 2' '--max-val-samples 2' '--validate-every 2' '--validate-steps 2' \
	'--best-metric loss'; do
	run_limited 60 3 --network mlp --benchmark 1 --num-batches 1 $wrong
	[ $status = 2 ] || fail "exit status $status of $wrong without validation"
	expect_count 1 "error: $wrong.*it needs validation data"
done
run_limited 60 3 $mlp --kv-store dist_async --num-servers 1 --validate-steps 2
expect 'error: --validate-steps 2 .*its workers are at different steps'
run_limited 60 1 $mlp --profile --validate-steps 2
expect 'error: --validate-steps 2 with --profile'
run_limited 60 2 $mlp --kv-store dist_sharded --sync-period 2 --validate-steps 2
expect 'error: --validate-steps 2 .*workers have weights of their own'
run_limited 60 1 $mlp --best-metric top-k
expect 'error: --best-metric top-k needs --top-k K above 0'
finish
