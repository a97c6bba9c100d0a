#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The trainer with a bound of staleness and with local SGD: what the log says, that it learns, and
# that all synchronous stores give the same model.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

small_set set 600 200
mlp="--network mlp --data-dir set --batch-size 20 --log-prefix none --log-time 0 --disp-batches 5"
export OMP_NUM_THREADS=1 # bits depend on it

# counted: the staleness of all pushes, added up
counted() {
	sed -n 's/^pushes by staleness: //p' "$log" | tr ',' '\n' | awk -F: '{ n += $2 } END { print n }'
}

part "staleness"
# Without momentum, which makes larger steps of stale gradients the more of them there are.
train 4 $mlp --kv-store dist_async --num-servers 1 --num-epochs 3 --lr 0.05 --mom 0 --optimizer dcasgd
expect '^weights as the workers have pulled them: \d+\.\d+ MB on the servers'
expect '^staleness: mean .* \(90 pushes\)$' # 10 steps of 3 workers in 3 epochs
expect_none 'bound of staleness|staleness is bounded'
[ "$(counted)" = 90 ] || fail "$(counted) of 90 pushes are counted"
at_least Validation-accuracy 0.3
for k in 0 2; do
	train 5 $mlp --kv-store dist_device_async --num-servers 2 --num-epochs 2 --lr 0.02 --max-staleness $k
	expect "^staleness is bounded: no worker starts a step before all have pushed the step $((k + 1)) before it\$"
	expect '^held back by the bound of staleness: \d+ pushes, \d+\.\d+ s in all$'
	[ "$(counted)" = 120 ] || fail "$(counted) of 120 pushes on two servers are counted"
	# Two other workers, which are at most k steps behind and k + 1 ahead.
	max=$(sed -n 's/^staleness: mean .*, max \([0-9]*\) .*/\1/p' "$log")
	[ "$max" -le $((2 * (2 * k + 1))) ] || fail "staleness $max with the bound $k"
done

part "local SGD"
train 3 $mlp --num-epochs 6 --lr 0.05 --mom 0.5 --sync-period 4 --block-momentum 0.5
expect "^optimizer sgd: lr 0.05, gradients rescaled by 1/20\$" # each worker its own batch
expect '^state of sgd: momentum: \d+\.\d+ MB on every worker$'
expect '^local SGD: .* after every 4 updates and at the end of an epoch'
expect '^averages: block momentum 0.5, block learning rate 1$'
at_least Validation-accuracy 0.5
train 2 $mlp --kv-store dist_allreduce --num-epochs 1 --sync-period 2 --update-period 3 --lr-schedule cosine \
	--block-momentum 0.5 --block-nesterov 1 --block-lr 0.9
expect '^averages: block momentum 0.5 \(Nesterov\), block learning rate 0.9$'
train 3 $mlp --num-epochs 1 --lr 0.1
expect_none '^local SGD|^averages'

has_files || finish
part "local SGD: one model whatever the store"
# 600 samples of 3 workers in batches of 7: the last step is short. Running statistics too.
nets=("--network mlp")
! in_tier full || nets+=("--network resnet --num-layers 8 --num-batches 5")
for net in "${nets[@]}"; do
	run="${mlp/--network mlp/$net} --num-epochs 2 --sync-period 3 --block-momentum 0.6 --optimizer nag --lr 0.02"
	run=${run/--batch-size 20/--batch-size 7}
	rm -f ./*.h5
	train 3 $run --kv-store dist_allreduce --model-prefix allreduce
	train 3 $run --kv-store dist_sharded --model-prefix sharded
	train 4 $run --kv-store dist_sync --num-servers 1 --model-prefix sync1
	train 5 $run --kv-store dist_device_sync --num-servers 2 --model-prefix sync2
	for other in sharded sync1 sync2; do
		same_model allreduce-0002.h5 $other-0002.h5 || fail "$net: allreduce and $other: other bits"
	done
done
finish
