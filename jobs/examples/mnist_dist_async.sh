#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# MNIST on several workers that do not wait for each other (dist_async), with the settings of
# MXNet's example train_mnist.py. Every worker's gradient of --batch-size samples is an update of
# its own, so that many workers may need a lower --lr or --mom; the end of the log tells how stale
# the gradients were.
#
#	jobs/examples/mnist_dist_async.sh DATA_DIR [--network lenet ...]
#	WORKERS=6 SERVERS=2 MPIRUN="mpirun -f hosts" jobs/examples/mnist_dist_async.sh DATA_DIR
#	WORKERS=6 SERVERS=2 MPIRUN=srun jobs/examples/mnist_dist_async.sh DATA_DIR    # Slurm
#
# DATA_DIR, readable on every node, holds the four MNIST files, plain or .gz; muster digits --output
# DATA_DIR makes a set of the same shape. Further options of the trainer come after it; the last one
# given counts. common.sh says what else can be set.
. "$(dirname "$0")/common.sh"
need 1 DATA_DIR "$@"
data=$1
shift

job dist_async --data-dir "$data" \
	--network mlp --batch-size 64 --num-epochs 20 \
	--optimizer sgd --lr 0.05 --mom 0.9 --wd 0.0001 --lr-factor 0.1 --lr-step-epochs 10 \
	--disp-batches 100 "$@"
