#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ImageNet from RecordIO files, with the settings of MXNet's train_imagenet.py (resnet) and of its first distributed
# example (inception-bn).
#
#	jobs/examples/imagenet.sh resnet|inception-bn TRAIN.rec VAL.rec [--num-layers 101 ...]
#	WORKERS=16 SERVERS=16 MPIRUN="mpirun -f hosts" jobs/examples/imagenet.sh resnet train.rec val.rec
#
# The files are made by muster pack: muster pack --list --recursive train images; muster pack --resize 256 train images.
# STORE (dist_sync) is the store. Further options of the trainer come behind; the last one given counts. common.sh
# says what else can be set.
. "$(dirname "$0")/common.sh"
need 3 "NETWORK TRAIN.rec VAL.rec" "$@"
network=$1
train=$2
val=$3
shift 3

case $network in
resnet) settings="--num-layers 50 --batch-size 128 --num-epochs 80 --lr 0.1 --lr-step-epochs 30,60" ;;
inception-bn) settings="--batch-size 144 --num-epochs 30 --lr 0.05 --wd 0.00001 --initializer uniform" ;;
*)
	echo "$0: the network $network is not resnet or inception-bn" >&2
	exit 2
	;;
esac
# shellcheck disable=SC2086 # a list of options
job "${STORE:-dist_sync}" --network "$network" --data-train "$train" --data-val "$val" --num-classes 1000 \
	--image-shape 3,224,224 --mom 0.9 $settings "$@"
