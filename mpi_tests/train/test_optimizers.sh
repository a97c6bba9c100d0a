#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The trainer with every optimiser and schedule, on a small data set of digits: each of them learns;
# those with norms give the same weights whatever the store and the number of servers.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

small_set set 600 200
plain="--log-prefix none --log-time 0"
mlp="--network mlp --data-dir set --batch-size 20 $plain"

part "a learning rate that does not train is told, mostly after 100 steps"
small="${mlp/--batch-size 20/--batch-size 4} --num-epochs 1"
train 1 $small
expect_none 'warning: epoch'
train 1 $small --lr 1e-6 --num-batches 99
expect_none 'warning: epoch'
train 1 $small --lr 1e-6
expect_count 1 'warning: epoch 1 of \d+: nothing is learnt: .* chance is 2.303, .* a higher --lr, .* \(now 1e-06\)'
train 1 $small --lr 0.3 --mom 0.95
expect_count 1 'warning: epoch 1 of \d+: the loss has risen from .*: try a lower --lr, such as 0.03 \(now 0.3\)'
# Far above chance: at once
train 1 $small --lr 10 --num-batches 20
expect_count 1 'warning: epoch 1 of \d+: the loss has risen from .*: try a lower --lr, such as 1 \(now 10\)'

# values NAME: all of them, one a line
values() {
	sed -n "s/.*$1=\\([0-9.]*\\).*/\\1/p" "$log"
}

# less FACTOR: the last cross-entropy of training is less than FACTOR times the first
less() {
	values Train-cross-entropy | awk -v f="$1" '
		NR == 1 { first = $1 } { last = $1 } END { exit !(NR > 1 && last + 0 < f * first) }' && return
	fail "the loss does not fall: $(values Train-cross-entropy | tr '\n' ' ')"
	show_log
}

part "each learns"
jobs=("sgd --lr 0.1" "nag --lr 0.05" "adam --lr 0.002" "adagrad --lr 0.02" "adadelta" "rmsprop --lr 0.001"
	"signum --lr 0.001" "lars --lr 0.1 --lars-eta 0.005" "lamb --lr 0.02" "ftrl" "dcasgd --lr 0.1 --lamda 0.02")
! in_tier full || jobs+=("adam --lr 0.002 --adam-decay decoupled --wd 0.01" "adadelta --rho 0.8 --epsilon 1e-4"
	"rmsprop --lr 0.001 --centered 1 --gamma2 0.5" "signum --lr 0.001 --mom 0 --wd-lh 0.001"
	"sgd --lr 0.3 --clip-global-norm 0.5" "sgd --lr 0.1 --clip-gradient 0.01")
for job in "${jobs[@]}"; do
	set -- $job
	train 1 $mlp --num-epochs 6 --optimizer "$@"
	expect "^optimizer $1: .*gradients rescaled by 1/20\$"
	less 0.95
done
jobs=("dcasgd --lr 0.02 --mom 0")
! in_tier full || jobs+=("lamb --lr 0.01" "adadelta" "rmsprop --lr 0.001")
for optimizer in "${jobs[@]}"; do
	train 3 $mlp --num-epochs 6 --kv-store dist_async --optimizer $optimizer
	less 0.95
done

part "what the log says"
train 1 $mlp --num-epochs 1 --optimizer rmsprop --lr 0.001 --centered 1
expect '^state of rmsprop: squares, mean, step: \d+\.\d+ MB$'
expect_none '^norms'
train 1 $mlp --num-epochs 1 --optimizer adadelta
expect '^optimizer adadelta: gradients'
train 3 $mlp --num-epochs 1 --optimizer lars
expect '^norms over whole keys: nothing is updated before'
train 1 $mlp --num-epochs 1 --optimizer dcasgd
expect '^state of dcasgd: momentum, previous: '
train 2 $mlp --num-epochs 1 --optimizer dcasgd --kv-store dist_async
expect '^state of dcasgd: momentum: '
train 3 $mlp --num-epochs 1 --lr 0.05 --lr-scale-with-workers 1
expect '^optimizer sgd: lr 0.1, gradients rescaled by 1/40$'
expect '^lr 0.05 is multiplied by the 2 workers$'
train 1 $mlp --num-epochs 1 --lr 0.05 --lr-scale-with-workers 1
expect '^optimizer sgd: lr 0.05,'

part "schedules"
for job in "factor --lr-factor 0.5 --lr-factor-epoch 0.5 --final-lr 0.01" "poly --lr-power 1 --final-lr 0.01" \
	"cosine --warmup-epochs 1 --warmup-begin-lr 0.01" "multifactor --lr-step-epochs 1,2" "constant"; do
	train 2 $mlp --num-epochs 4 --lr 0.1 --kv-store dist_sync --lr-schedule $job
	less 0.95
	[ "$job" = constant ] || expect "^learning rate: schedule ${job%% *}\$"
done
expect_none '^learning rate:'
expect_none 'lr-step-epochs'
train 1 $mlp --num-epochs 2 --num-examples 640 --lr-step-epochs 1,2
expect '^warning: --lr-step-epochs 1,2: the run ends after epoch 2, before the rate changes at 2$'
train 1 $mlp --num-epochs 4 --lr 0.1 --lr-step-epochs pow2 --warmup-epochs 1 --warmup-strategy constant \
	--warmup-begin-lr 0.02
expect '^learning rate: schedule poly$'
expect '^learning rate: constant warm-up of 1 epoch from 0.02$'
less 0.95

part "a warm-up of so many steps: the rates of an epoch of 5 steps, from the second on"
# rates RANKS EXPECTED OPTION...
rates() {
	train "$1" $mlp --num-examples 100 --lr 0.1 --disp-batches 1 --metrics-file w.csv "${@:3}"
	is=$(awk -F , '$1 == "train" { printf "%s%.4f", n++ ? " " : "", $7 }' w.csv)
	[ "$is" = "$2" ] || fail "rates $is, not $2: ${*:3}"
}
# i / 7 of 0.1 to the 7th, then cosine's 3 / 4, 1 / 4, 0
seven="0.0286 0.0429 0.0571 0.0714 0.1000 0.0750 0.0250 0.0000"
rates 1 "$seven" --num-epochs 2 --warmup-steps 7 --lr-schedule cosine
expect '^learning rate: linear warm-up of 7 steps from 0$'
run_limited 60 1 $mlp --num-examples 100 --num-epochs 2 --warmup-steps 10 --lr-schedule cosine
[ $status = 2 ] || fail "exit status $status of a warm-up that is all"
expect_count 1 'error: --warmup-steps 10: they are 200 samples, and training has 200: nothing is left for --lr-sch'
if has_files; then
	for job in "3 --num-servers 1 --kv-store dist_sync" "2 --kv-store dist_allreduce --update-period 2"; do
		job="$job $mlp --num-examples 100 --batch-size 10 --lr 0.1 --lr-schedule poly --num-epochs 2"
		train $job --warmup-epochs 1 --model-prefix epochs --overwrite
		steps=5
		[[ $job != *period* ]] || steps=3 # 5 batches of 2 workers are 3 updates
		train $job --warmup-steps $steps --model-prefix steps --overwrite
		same_model epochs-0002.h5 steps-0002.h5 || fail "an epoch is not its updates: $job"
	done
	rates 1 "0.0222 0.0333 0.0444 0.0556" --num-epochs 1 --warmup-steps 9 --model-prefix W
	nine="0.0222 0.0333 0.0444 0.0556 0.0778 0.0889 0.1000 0.1000"
	rates 1 "$nine" --num-epochs 2 --warmup-steps 9 \
		--model-prefix W --resume auto
	expect_none 'not as when'
	rates 1 "$nine 0.1000 0.1000 0.1000 0.1000" --num-epochs 3 \
		--warmup-steps 4 --model-prefix W --resume auto
	expect 'not as when .* lr-schedule constant after a linear warm-up of 4 steps from 0 .was .* of 9 steps'
fi

has_files || finish
export OMP_NUM_THREADS=1 # bits depend on it

part "norms: equal weights"
jobs=("lamb --lr 0.02")
some="1 2" # numbers of servers
! in_tier full || jobs+=("lars --lr 0.1 --lars-eta 0.005" "sgd --lr 0.3 --clip-global-norm 0.3") some="1 2 3"
for job in "${jobs[@]}"; do
	run="$mlp --num-epochs 2 --optimizer $job"
	rm -f ./*.h5
	train 1 $run --kv-store local --model-prefix local
	loss=$(value Validation-cross-entropy)
	for servers in $some; do
		train $((1 + servers)) $run --kv-store dist_sync --num-servers $servers --model-prefix one$servers
		same_model local-0002.h5 one$servers-0002.h5 || fail "$job: local and $servers servers: other bits"
	done
	train 2 $run --kv-store dist_async --model-prefix async
	same_model local-0002.h5 async-0002.h5 || fail "$job: local and dist_async of one worker: other bits"
	for workers in 2 $(in_tier full && echo 3); do
		for servers in $some; do
			train $((workers + servers)) $run --num-servers $servers --model-prefix w$workers.$servers
			same_model w$workers.1-0002.h5 w$workers.$servers-0002.h5 ||
				fail "$job: $workers workers, 1 and $servers servers: other bits"
		done
	done
	# The batch of local, cut over two workers: equal up to rounding.
	train 3 ${run/--batch-size 20/--batch-size 10} --num-servers 1
	awk -v a="$loss" -v b="$(value Validation-cross-entropy)" \
		'BEGIN { d = a - b; exit !(d < 2e-4 && d > -2e-4) }' ||
		fail "$job: loss $loss with local, $(value Validation-cross-entropy) with two workers"
done
finish
