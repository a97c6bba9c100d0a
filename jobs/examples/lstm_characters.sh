#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A language model of characters, small enough for minutes on one core; at the end it writes some
# text of its own.
#
#	jobs/examples/lstm_characters.sh TEXT.txt [--num-epochs 3 ...]
#
# The text is cut into runs of 60 characters. Further options of the trainer come after it; the last
# one given counts, but for the network's sizes, which the second command must know. Checkpoints and
# the vocabulary: --model-prefix characters.
# From the environment: PRIME (""), and MUSTER, OMP_NUM_THREADS as in common.sh.
. "$(dirname "$0")/common.sh"
need 1 TEXT.txt "$@"
text=$1
shift
network="--network lstm --num-layers 1 --num-hidden 128 --num-embed 32 --dropout 0 --buckets 60"

# shellcheck disable=SC2086 # network holds several words
"$muster" train $network --data-train "$text" --text characters --batch-size 32 --num-epochs 5 \
	--optimizer adam --lr 0.003 --wd 0 --clip-global-norm 5 --disp-batches 50 \
	--model-prefix characters "$@"
# shellcheck disable=SC2086
"$muster" train $network --sample 400 --prime "${PRIME-}" --model-prefix characters
