#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A small GPT, in two minutes on two cores: trains a tokenizer of 1,024 tokens on texts, then a transformer of 4 layers
# of 128 on two workers and a server, and writes some text.
#
#	jobs/examples/gpt.sh [TEXT.txt ...] [--num-epochs 15 ...]
#
# Without a text, in a checkout: Muster's own pages. Further options of the trainer come after the texts; the last one
# given counts. Leaves the folder gpt-tokens (tokenizer.json, train.bin, val.bin) and checkpoints: --model-prefix gpt.
# From the environment: PRIME (""), and what common.sh names.
. "$(dirname "$0")/common.sh"
texts=()
while [ $# -gt 0 ] && [[ $1 != --* ]]; do
	texts+=("$1")
	shift
done
if [ ${#texts[@]} = 0 ]; then
	texts=("$top"/*.md "$top"/doc/*.md "$top"/doc/design/*.md)
	[ -e "${texts[0]}" ] || need 1 TEXT.txt
fi
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

rm -f gpt-tokens/{tokenizer.json,train.bin,val.bin} # of an earlier run
"$muster" tokenize --train --vocab-size 1024 gpt-tokens "${texts[@]}"
# The norm: 1 for each of the 64 tokens of a sample.
job dist_sync --network gpt2 --num-layers 4 --num-hidden 128 --num-heads 4 --seq-len 64 --dropout 0.1 \
	--data-dir gpt-tokens --batch-size 8 --num-epochs 15 \
	--optimizer adamw --lr 0.003 --wd 0.1 --lr-schedule cosine --warmup-epochs 1 --clip-global-norm 64 \
	--model-prefix gpt --keep 2 --overwrite "$@"
"$muster" train --sample 120 --load gpt-best --prime "${PRIME-}" --temperature 0.8 --sample-top-k 40
