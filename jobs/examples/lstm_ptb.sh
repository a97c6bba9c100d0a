#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A language model of words: 8 LSTM layers of 400, with the settings of MXNet's
# example/model-parallel-lstm. Sentences are filled up to 8, 16, 24, 32 or 60 words, longer ones left
# out; the learning rate is halved when the validation perplexity has not fallen by 1.
#
#	jobs/examples/lstm_ptb.sh TRAIN.txt VALIDATION.txt [--num-epochs 3 ...]
#	WORKERS=2 SERVERS=1 jobs/examples/lstm_ptb.sh ptb.train.txt ptb.valid.txt
#
# The files hold a sentence a line, words between blanks, as Mikolov's files of the Penn Treebank do.
# The log has the perplexity, of words, and sentence-nll, which MXNet's example prints as NLL: of
# whole sentences (its "Perp" is e to that). Further options of the trainer come after the files; the
# last one given counts. Checkpoints and the vocabulary: --model-prefix lstm. The layers on two devices that work at the
# same time: --model-parallel 2 --time-block 8.
# From the environment: WORKERS (1), SERVERS (1 if there are several workers), and MPIRUN, MUSTER, OMP_NUM_THREADS as in
# common.sh.
. "$(dirname "$0")/common.sh"
need 2 "TRAIN.txt VALIDATION.txt" "$@"
train=$1
validation=$2
shift 2
workers=${WORKERS:-1}
store="--kv-store device"
ranks=1
if [ "$workers" -gt 1 ]; then
	store="--kv-store dist_sync --num-servers $servers"
	ranks=$((workers + servers))
fi

# shellcheck disable=SC2086 # MPIRUN and store hold several words
exec ${MPIRUN:-mpirun} -n $ranks "$muster" train $store \
	--network lstm --data-train "$train" --data-val "$validation" --batch-size 20 --num-epochs 25 \
	--optimizer sgd --lr 0.1 --mom 0 --wd 0 --clip-global-norm 5 \
	--lr-schedule plateau --lr-factor 0.5 --disp-batches 28 --model-prefix lstm "$@"
