#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Train in a parallel environment of Grid Engine, and come back after a soft time limit (s_rt sends SIGUSR1):
#
#	qsub -pe mpi 8 -l s_rt=3:55:00,h_rt=4:00:00 jobs/sge/train.sh build/trainer --network resnet \
#		--model-prefix out/resnet
#
# Grid Engine 8.1.9 was seen to kill a parallel job at s_rt, without the signal: save often (--save-minutes).
# Submit it in Muster's folder, or have musupervise in the PATH.
#$ -N muster
#$ -cwd
#$ -V
#$ -j y
#$ -r y
#$ -S /bin/bash
[ $# -gt 0 ] || {
	echo "usage: qsub -pe mpi RANKS [-l s_rt=TIME,h_rt=TIME] $0 TRAINER OPTIONS... --model-prefix P" >&2
	exit 2
}
exec "$(command -v jobs/supervise || echo musupervise)" --queue sge mpirun "$@" --resume auto
