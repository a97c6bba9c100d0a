#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @tier full
# Llama in the trainer: the same bits by every store, on two devices, whatever is computed again and after a stop inside
# an epoch; generated text, its settings, a folder as transformers has it.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

needs_files
export OMP_NUM_THREADS=1
for i in {1..30}; do
	echo "the cat sees the dog and the dog hears bird $((i % 7)) and the red bird sees the old cat"
done >text.txt
plain="--log-prefix none --log-time 0"
llama="--network llama --num-layers 2 --num-hidden 16 --num-heads 4 --num-kv-heads 2 --data-train text.txt
	--text characters --buckets 32 --optimizer adamw --lr 0.01 $plain"

part "stores, memory, going on"
train 1 $llama --batch-size 8 --num-epochs 2 --model-prefix one
expect '^network llama: 8560 parameters in 17 arrays'
train 1 $llama --batch-size 8 --num-epochs 2 --recompute all --model-prefix all
same_model one-0002.h5 all-0002.h5 || fail "--recompute all trains other bits"
train 3 $llama --batch-size 4 --num-epochs 2 --kv-store dist_sync --num-servers 1 --model-prefix sync
train 2 $llama --batch-size 4 --num-epochs 2 --kv-store dist_sharded --model-prefix sharded
same_model sync-0002.h5 sharded-0002.h5 || fail "dist_sharded trains other bits than dist_sync"
train 1 $llama --batch-size 8 --num-epochs 1 --save-steps 5 --model-prefix cut
rm cut-0001.h5
train 1 $llama --batch-size 8 --num-epochs 2 --resume auto --model-prefix cut
same_model one-0002.h5 cut-0002.h5 || fail "a run that went on inside an epoch has other bits"

part "layers on two devices, and on two ranks"
pieces="--batch-size 8 --num-epochs 1 --micro-batches 4 --update-period 1"
train 1 $llama $pieces --model-prefix whole
train 1 $llama $pieces --model-parallel 2 --model-prefix devices
expect '^stage 1 on cpu:1: .* to softmax, '
same_model whole-0001.h5 devices-0001.h5 || fail "two devices train other bits"
train 2 $llama $pieces --model-parallel-ranks 2 --recompute all --model-prefix ranks
same_model whole-0001.h5 ranks-0001.h5 || fail "two ranks train other bits"
# refuse ARGUMENT...
refuse() {
	run_limited 60 1 "$@"
	[ $status = 2 ] || fail "exit status $status, not 2, of $*"
}
refuse $llama --tie-weights 1 --model-parallel 2
expect 'error: .*tokens.* both must be on one device, or have weights of their own \(--tie-weights 0\)'

part "text"
train 1 $llama --batch-size 8 --num-epochs 40 --tie-weights 1 --rope-theta 500 --model-prefix good
"$TRAINER" --load good-latest --sample 80 --prime "the cat " --temperature 0 >"$log" 2>&1 || fail "no text"
grep -q 'the cat sees the dog' "$log" || fail "nothing was learnt: $(cat "$log")"

part "settings"
refuse $llama --num-kv-heads 3
expect 'error: network llama: 3 heads of keys do not divide 4 heads \(--num-kv-heads, --num-heads\)'
refuse $llama --num-heads 6
expect 'error: network llama: 6 heads do not divide a width of 16 \(--num-heads, --num-hidden\), .*\(--head-dim\)'
refuse $llama --head-dim 3
expect 'error: network llama: heads of 3 channels \(--head-dim\); .*an even number is needed'
refuse $llama --num-heads 1000000 --head-dim 65536
expect 'error: network llama: 1000000 heads and 2 of keys, of 65536 channels each, are more than'
refuse $llama --num-positions 16
expect 'error: network llama: sequences of 32 tokens .*, and 16 positions \(--num-positions\)'
refuse --load good-latest --sample 3 --num-kv-heads 4
expect 'error: --num-kv-heads 4: .*good-\S+ was saved with num-kv-heads 2'
refuse --load good-latest --sample 3 --rope-theta 10000
expect 'error: --rope-theta 10000: .*good-\S+ was saved with rope-theta 500'
refuse --load one-0002.h5 --sample 3 --rope-theta 500
expect 'error: --rope-theta 500: one-0002.h5 was saved with rope-theta 10000'
refuse --load good-latest --sample 3 --head-dim 8
expect 'error: --head-dim 8: .*good-\S+ was saved with head-dim 4'
refuse $llama --rope-theta 700 --num-epochs 41 --model-prefix good --resume auto
expect 'error: good-\S+ was saved with rope-theta 500, and this run has 700; --override rope-theta resumes anyway'
refuse $llama --dropout 0.1
expect 'error: --dropout is a setting of lstm, gpt2, vit-tiny, not of llama'

part "a folder as transformers has it, and back"
"$BUILDDIR/tokenize" --train --vocab-size 300 tokens text.txt >tokenize.log || fail "no tokens: $(cat tokenize.log)"
own="--network llama --num-layers 1 --num-hidden 24 --num-heads 6 --data-dir tokens --num-batches 2 --seq-len 16 $plain"
train 1 $own --num-epochs 2 --num-kv-heads 1 --head-dim 10 --rope-theta 500 --model-prefix untied
train 1 $own --num-epochs 2 --num-kv-heads 2 --tie-weights 1 --rms-norm-eps 0.001 --model-prefix tied
for model in untied tied; do
	mkdir $model
	"$BUILDDIR/muconvert" $model-latest $model/model.safetensors >"$log" || fail "$model: $(cat "$log")"
	"$BUILDDIR/muconvert" $model $model.h5 >"$log" || fail "$model: $(cat "$log")"
	same_model $model-0002.h5 $model.h5 || fail "$model: other weights after two conversions"
	for file in $model-latest $model.h5; do
		train 1 --evaluate --load $file --data-dir tokens --seq-len 16 $plain
		grep '^Epoch' "$log" >loss.${file#"$model"}
	done
	cmp loss.-latest loss..h5 || fail "$model: another loss: $(cat "$log")"
	for file in $model-latest $model.h5; do
		"$TRAINER" --sample 8 --load $file --prime "the cat" --seq-len 16 >text.${file#"$model"} 2>"$log" ||
			fail "$file: no text: $(cat "$log")"
	done
	cmp text.-latest text..h5 || fail "$model: another text"
done
grep -q '"tie_word_embeddings": false' untied/config.json && grep -q '"head_dim": 10,' untied/config.json ||
	fail "$(cat untied/config.json)"
grep -q '"tie_word_embeddings": true' tied/config.json && grep -q '"num_key_value_heads": 2,' tied/config.json ||
	fail "$(cat tied/config.json)"
finish
