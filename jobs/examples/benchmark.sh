#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How fast is resnet-50? Random data in memory, as with MXNet's --benchmark 1.
#
#	jobs/examples/benchmark.sh [STORE [trainer option ...]]
#
# STORE is local by default. muster bench run compares stores, networks and numbers of workers. common.sh says what can
# be set by the environment.
. "$(dirname "$0")/common.sh"
store=${1:-local}
[ $# = 0 ] || shift

job "$store" --network resnet --num-layers 50 --image-shape 3,224,224 --num-classes 1000 \
	--benchmark 1 --batch-size 32 --num-batches 50 --num-epochs 1 --disp-batches 10 "$@"
