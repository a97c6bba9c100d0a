#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Train on the nodes of a PBS job, and come back before its time limit:
#
#	qsub -l select=4:ncpus=8:mpiprocs=5,walltime=4:00:00 \
#		-v ARGS="build/trainer --network resnet --data-train a.rec --model-prefix out/resnet" jobs/pbs/train.sh
#
# ARGS may hold quotes, as in ARGS="build/trainer --prime 'two words'"; nothing else in it is obeyed. To qsub a comma in
# it ends it.
# Submit it in Muster's folder, or have muster in the PATH: then muster train is build/trainer.
#PBS -N muster
#PBS -j oe
#PBS -r y
case ${1-} in -h | --help) sed -n '3,/^[^#]/s/^#\(\t\| \|$\)//p' "$0" && exit ;; esac
cd "$PBS_O_WORKDIR" || exit 1
[ -n "${ARGS-}" ] || {
	echo "usage: qsub -l select=N,walltime=T -v ARGS='TRAINER OPTIONS... --model-prefix P' jobs/pbs/train.sh" >&2
	exit 2
}
mapfile -d '' -t words < <(xargs printf '%s\0' <<<"$ARGS" && printf 'whole\0')
[ "${words[-1]-}" = whole ] || exit 2
unset 'words[-1]'
# shellcheck disable=SC2046 # two words
exec $(command -v jobs/supervise || echo muster supervise) --queue pbs mpirun "${words[@]}" --resume auto
