#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# MNIST in one process, with the settings of MXNet's example train_mnist.py.
#
#	jobs/examples/mnist_local.sh DATA_DIR [--network lenet ...]
#
# DATA_DIR holds the four MNIST files, plain or .gz; muster digits --output DATA_DIR makes a set of the same shape.
# Further options of the trainer come after it; the last one given counts. common.sh says what else can be set.
. "$(dirname "$0")/common.sh"
need 1 DATA_DIR "$@"
data=$1
shift

job local --data-dir "$data" \
	--network mlp --batch-size 64 --num-epochs 20 \
	--optimizer sgd --lr 0.05 --mom 0.9 --wd 0.0001 --lr-factor 0.1 --lr-step-epochs 10 \
	--disp-batches 100 "$@"
