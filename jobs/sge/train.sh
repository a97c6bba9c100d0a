#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Train in a parallel environment of Grid Engine, and come back before its time limit:
#
#	qsub -pe mpi 8 -l h_rt=4:00:00 jobs/sge/train.sh build/trainer --network resnet --data-train train.rec \
#		--model-prefix out/resnet
#
# The warning, 2 minutes before h_rt is over, is supervise's, which asks qstat for the limit: Grid Engine 8.1.9 was seen
# to kill a parallel job at its soft limit (s_rt) without the signal that this is for, and the SIGUSR2 of qsub -notify
# ends mpirun. Submit it in Muster's folder, or have muster in the PATH.
#$ -N muster
#$ -cwd
#$ -V
#$ -j y
#$ -r y
#$ -S /bin/bash
case ${1-} in -h | --help) sed -n '3,/^[^#]/s/^#\(\t\| \|$\)//p' "$0" && exit ;; esac
[ $# -gt 0 ] || {
	echo "usage: qsub -pe mpi RANKS [-l h_rt=TIME] jobs/sge/train.sh TRAINER OPTIONS... --model-prefix P" >&2
	exit 2
}
# shellcheck disable=SC2046 # two words
exec $(command -v jobs/supervise || echo muster supervise) --queue sge mpirun "$@" --resume auto
