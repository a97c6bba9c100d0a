#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# CIFAR-10 with inception-bn-28-small, as MXNet's first distributed examples trained it, in one process, or on workers
# that step together or do not wait for each other; or all of these in turn, with one table.
#
#	jobs/examples/cifar10.sh local|dist_sync|dist_async|... DATA_DIR [--batch-size 256 --lr 0.4 ...]
#	jobs/examples/cifar10.sh all DATA_DIR [--num-epochs 10 ...]
#
# DATA_DIR holds data_batch_1.bin, ... and test_batch.bin. Images are cut to 28 x 28 and mirrored at random.
# --batch-size counts for each worker: with more of them a step has more samples, and wants a larger --lr. Further
# options of the trainer come behind; the last one given counts. common.sh says what else can be set.
. "$(dirname "$0")/common.sh"
need 2 "STORE|all DATA_DIR" "$@"
store=$1
data=$2
shift 2

train() {
	local store=$1
	shift
	job "$store" --data-dir "$data" --network inception-bn-28-small --image-shape 3,28,28 \
		--initializer uniform --batch-size 128 --num-epochs 40 --lr 0.1 --mom 0.9 --wd 0.00001 \
		--disp-batches 50 "$@"
}

if [ "$store" != all ]; then
	train "$store" "$@"
	exit
fi
name=${log%.log}
log=$name-local.log train local "$@"
log=$name-sync-128-0.1.log train dist_sync "$@"
log=$name-sync-128-0.4.log train dist_sync --lr 0.4 "$@"
log=$name-sync-256-0.1.log train dist_sync --batch-size 256 "$@"
log=$name-sync-256-0.4.log train dist_sync --batch-size 256 --lr 0.4 "$@"
log=$name-async.log train dist_async "$@"
table "$name"-local.log "$name"-sync-*.log "$name"-async.log
