#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Train in a job of Flux, which warns it and all its processes 120 s before the end, and come back:
#
#	flux batch -N 4 -n 20 -t 4h jobs/flux/train.sh build/trainer --network resnet --data-train train.rec \
#		--model-prefix out/resnet
#
# Submit it in Muster's folder, or have muster in the PATH. MPICH is started by Flux's PMI; for Open MPI set
# FLUX_OPTIONS="-o pmi=pmix".
# flux: --job-name=muster
# flux: --output=muster-{{id}}.log
# flux: --signal=SIGUSR1@120
case ${1-} in -h | --help) sed -n '3,/^[^#]/s/^#\(\t\| \|$\)//p' "$0" && exit ;; esac
[ $# -gt 0 ] || {
	echo "usage: flux batch [-N NODES -n RANKS -t TIME] jobs/flux/train.sh TRAINER OPTIONS... --model-prefix P" >&2
	exit 2
}
# shellcheck disable=SC2046,SC2086 # words
exec $(command -v jobs/supervise || echo muster supervise) --queue flux \
	flux run -n "$(flux resource list -s up -no '{ncores}')" ${FLUX_OPTIONS-} "$@" --resume auto
