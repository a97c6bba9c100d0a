#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Transformers in the trainer: the same bits by every store and whatever is computed again, runs that
# continue inside an epoch, generated text, images, bad input.
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
gpt="--network gpt2 --num-layers 2 --num-hidden 16 --num-heads 4 --data-train text.txt --text characters --buckets 32
	--optimizer adamw --lr 0.01 --dropout 0.1 $plain"

part "stores, memory, going on"
train 1 $gpt --batch-size 8 --num-epochs 2 --model-prefix one
expect '^network gpt2: 23[0-9]+ parameters in 28 arrays'
train 1 $gpt --batch-size 8 --num-epochs 2 --recompute all --model-prefix all
same_model one-0002.h5 all-0002.h5 || fail "--recompute all trains other bits"
train 3 $gpt --batch-size 4 --num-epochs 2 --kv-store dist_sync --num-servers 1 --model-prefix sync
train 2 $gpt --batch-size 4 --num-epochs 2 --kv-store dist_sharded --model-prefix sharded
same_model sync-0002.h5 sharded-0002.h5 || fail "dist_sharded trains other bits than dist_sync"
train 1 $gpt --batch-size 8 --num-epochs 1 --save-steps 5 --model-prefix cut
rm cut-0001.h5
train 1 $gpt --batch-size 8 --num-epochs 2 --resume auto --model-prefix cut
expect '^trained 115 samples'
same_model one-0002.h5 cut-0002.h5 || fail "a run that went on inside an epoch has other bits"
train 1 $gpt --batch-size 8 --num-epochs 2 --update-period 2 --model-prefix sum

part "text"
train 1 $gpt --batch-size 8 --num-epochs 40 --dropout 0 --model-prefix good
"$TRAINER" --load good-latest --sample 80 --prime "the cat " --temperature 0 >"$log" 2>&1 || fail "no text"
grep -q 'the cat sees the dog' "$log" || fail "nothing was learnt: $(cat "$log")"
cp "$log" first
"$TRAINER" --load good-latest --sample 80 --prime "the cat " --sample-top-k 1 >"$log" 2>&1
cmp -s first "$log" || fail "the likeliest of one is not the likeliest: $(cat "$log")"
"$TRAINER" --load good-latest --sample 80 --prime "the cat " --sample-top-p 0 --seed 3 >"$log" 2>&1
cmp -s first "$log" || fail "the fewest words that have probability 0 are not one: $(cat "$log")"

"$TRAINER" --load good-latest --sample 80 --prime "the cat " --temperature 0.0001 >"$log" 2>&1
cmp -s first "$log" || fail "the likeliest is not drawn at a low temperature: $(cat "$log")"

part "more steps than the usual positions"
long="--network gpt2 --num-layers 1 --num-hidden 8 --num-heads 1 --data-train text.txt --text characters $plain"
train 1 $long --buckets 32,1100 --batch-size 2 --num-epochs 1 --devices ref --model-prefix long
train 1 --evaluate --load long-0001.h5 --data-train text.txt --data-val text.txt --buckets 32 $plain
expect '^options from long-0001.h5: .*num-positions 1100'

part "layers on two devices, and on two ranks"
pieces="--batch-size 8 --num-epochs 1 --tie-weights 0 --micro-batches 4 --update-period 1"
train 1 $gpt $pieces --model-prefix whole
expect '^network gpt2: 23776 parameters in 29 arrays' # 25 x 16 more than tied
train 1 $gpt $pieces --model-parallel 2 --model-prefix devices
expect '^stage 1 on cpu:1: .* to softmax, '
same_model whole-0001.h5 devices-0001.h5 || fail "two devices train other bits"
train 2 $gpt $pieces --model-parallel-ranks 2 --recompute all --model-prefix ranks
same_model whole-0001.h5 ranks-0001.h5 || fail "two ranks train other bits"
train 1 --evaluate --load whole-0001.h5 --data-train text.txt --data-val text.txt $plain
expect '^options from whole-0001.h5: .*tie-weights 0'
run_limited 60 1 $gpt --model-parallel 2
[ $status = 2 ] || fail "exit status $status, not 2, of tied weights on two devices"
expect 'error: .*wte.* both must be on one device, or have weights of their own \(--tie-weights 0\)'

part "tokens"
"$BUILDDIR/tokenize" --train --vocab-size 300 tokens text.txt >tokenize.log || fail "no tokens: $(cat tokenize.log)"
small="--network gpt2 --num-layers 1 --num-hidden 32 --num-heads 4 --num-positions 40 --data-dir tokens
	--optimizer adamw --lr 0.01 --batch-size 4 $plain"
train 1 $small --buckets 8,16 --num-epochs 30 --model-prefix tok
expect 'windows of 16$'
train 1 --evaluate --load tok-latest --data-dir tokens $plain
expect 'windows of 16$'
# writes ARGUMENT...: 30 tokens, into the log
writes() {
	"$TRAINER" --sample 30 --load tok-latest --temperature 0 "$@" >"$log" 2>&1 || fail "no text: $(cat "$log")"
}
writes --prime "the cat"
grep -q 'the cat sees the dog' "$log" || fail "nothing was learnt: $(cat "$log")"
cp "$log" first
writes --prime "the cat" --vocab tokens/tokenizer.json
cmp -s first "$log" || fail "another tokenizer: $(cat "$log")"
writes
expect .
# All positions of the model are read, whatever was read in training; with fewer a warning says so.
writes --prime "the cat" --seq-len 40
cmp -s first "$log" || fail "--seq-len 40, as many as there are positions, reads other tokens: $(cat "$log")"
writes --prime "the cat" --seq-len 8
expect 'warning: .*longer than the 8 tokens that the network reads at once'
# A prompt of more tokens than are read together
writes --vocab numbers --prime "$(seq -s ' ' 1 37)" --sample 1
expect '^(\d+ ){38}$'
printf 'the cat sees the dog<|endoftext|>%.0s' {1..60} >ends.txt
"$BUILDDIR/tokenize" --train --vocab-size 300 ends ends.txt >tokenize.log || fail "no tokens: $(cat tokenize.log)"
train 1 $small --data-dir ends --seq-len 17 --num-epochs 30 --model-prefix ends
"$TRAINER" --sample 30 --load ends-latest --temperature 0 --prime "the cat" >"$log" 2>&1
[ "$(cat "$log")" = "the cat sees the dog" ] || fail "it does not stop at the text's end: $(cat "$log")"
# The text's first three tokens as numbers, without what begins it
writes --vocab numbers --prime "$(od -An -tu2 -j1026 -N6 tokens/train.bin)"
expect '^(\d+ ){33}$'
# refuse ARGUMENT...
refuse() {
	run_limited 60 1 "$@"
	[ $status = 2 ] || fail "exit status $status, not 2, of $*"
}
refuse --sample 3 --load tok-latest --vocab numbers
expect 'error: --prime is missing: numbers of tokens'
refuse --sample 3 --load tok-latest --vocab numbers --prime "1 300"
expect 'error: --prime: token 300 is not below 2\d\d'
refuse --sample 3 --load tok-latest --vocab numbers --prime "1 cat"
expect 'error: --prime: "cat" is no number of a token'
refuse $small --seq-len 41
expect 'error: network gpt2: sequences of 41 tokens \(--seq-len\), and 40 positions \(--num-positions\)'
refuse --load tok-latest --sample 3 --seq-len 41
expect 'error: network gpt2: sequences of 41 tokens \(--seq-len\), and 40 positions \(--num-positions\)'
refuse $small --seq-len 16 --buckets 8
expect 'error: --seq-len 16 with --buckets 8: both say how long they are'
refuse --network vit-tiny --benchmark 1 --num-positions 4 $plain
expect 'error: --num-positions is a setting of gpt2, llama, not of '
refuse --network vit-tiny --benchmark 1 --tie-weights 0 $plain
expect 'error: --tie-weights is a setting of gpt2, llama, not of '
refuse $gpt --vocab tok-latest
expect 'error: --vocab tok-latest: has a tokenizer, not the words of a text'

part "log-probabilities of tokens"
columns=labels,log_probabilities
# sums FILE: each line's numbers agree with one another, all together with the log's last metrics
sums() {
	awk -F '"' -v log_="$log" -v head="id,record,tokens,correct,log_probability,mean_log_probability,$columns" '
		BEGIN {
			while ((getline line <log_) > 0) {
				if (line ~ /Validation-cross-entropy=/) loss = line
				if (line ~ /Validation-accuracy=/) accuracy = line
			}
			sub(/.*=/, "", loss); sub(/.*=/, "", accuracy)
		}
		NR == 1 {
			bad = $0 != head
			next
		}
		{
			n = split($3, f, ","); k = split(f[7], p, " "); sum = 0
			for (i = 1; i <= k; i++) sum += p[i]
			bad += $1 != NR - 2 "," || n != 7 || f[2] != k || split(f[6], labels, " ") != k
			bad += (sum - f[4]) ^ 2 > 1e-12 * (1 + sum * sum)
			bad += (f[4] / k - f[5]) ^ 2 > 1e-12 * (1 + f[5] * f[5])
			tokens += k; right += f[3]; total += sum
		}
		END {
			bad += loss == "" || (loss + total / tokens) ^ 2 > 2e-12
			exit bad > 0 || sprintf("%.6f", right / tokens) != accuracy
		}' "$1" || fail "$1: wrong sums: $(head -n 2 "$1")"
}
train 1 --load tok-latest --data-dir tokens --predict one.csv $plain
expect '^predictions of \d+ records? (is|are) in one.csv$'
sums one.csv
# The labels of the windows in order are the file's tokens from the second on, the last rest left out.
awk -F '"' 'NR > 1 { split($3, f, ","); print f[6] }' one.csv | tr ' ' '\n' >labels
od -An -v -tu2 -w2 -j1026 tokens/val.bin | tr -d ' ' | head -n "$(wc -l <labels)" | cmp - labels || fail "other labels"
grep -q '^1,"tokens/val.bin, token 16",16,' one.csv || fail "where is record 1? $(cat one.csv)"
train 3 --load tok-latest --data-dir tokens --predict three.csv --batch-size 2 --kv-store dist_sharded $plain
sums three.csv
# alike FILE FILE: the same but for the last bits of probabilities
alike() {
	[ "$(wc -l <"$1")" = "$(wc -l <"$2")" ] || fail "$2: other lines than $1"
	paste -d , "$1" "$2" | tr -d '"' | awk -F , '
		NR > 1 {
			k = split($9, p, " "); bad += split($18, q, " ") != k || $8 != $17 || $3 != $12
			for (i = 1; i <= k; i++) bad += (p[i] - q[i]) ^ 2 > 1e-10
		}
		END { exit bad > 0 }' || fail "$2: other log-probabilities than $1"
}
alike one.csv three.csv
train 1 --load tok-latest --data-dir tokens --predict two.csv --devices cpu:0,cpu:1 $plain
alike one.csv two.csv
cut="--model-parallel 2 --micro-batches 2 --batch-size 4 $plain"
# Weights of 0 give each token the same probability.
train 1 $small --seq-len 8 --num-epochs 1 --initializer zero --lr 0 --tie-weights 0 --model-prefix zero
train 1 --load zero-latest --data-dir tokens --predict zero.csv $cut
sums zero.csv
classes=$(sed -n 's/^data tokens: .*), \([0-9]*\) classes.*/\1/p' "$log")
awk -F '"' -v classes="$classes" 'NR > 1 { split($3, f, ","); bad += (f[5] + log(classes)) ^ 2 > 1e-12 }
	END { exit bad > 0 || NR < 3 || classes < 200 }' zero.csv || fail "not -ln($classes): $(head -n 2 zero.csv)"
train 1 $small --seq-len 8 --num-epochs 1 --tie-weights 0 --model-prefix loose
train 1 --load loose-latest --data-dir tokens --predict whole.csv --batch-size 4 $plain
train 1 --load loose-latest --data-dir tokens --predict cut.csv $cut
sums cut.csv
alike whole.csv cut.csv

part "tokens of another tokenizer"
tr 'a-z' 'b-za' <text.txt >other.txt
"$BUILDDIR/tokenize" --train --vocab-size 300 other other.txt >tokenize.log || fail "no tokens: $(cat tokenize.log)"
refuse --load tok-latest --evaluate --data-dir other $plain
expect 'error: .*tok-\S+ was trained on the tokens of another tokenizer than those of other'
refuse --load tok-latest --sample 3 --vocab other/tokenizer.json
expect 'error: --vocab: tok-\S+ was trained with another tokenizer, which it holds'
train 1 --load tok-latest --data-dir other --num-epochs 1 --lr 0.001 $plain
expect 'warning: .*tok-\S+ was trained on the tokens of another tokenizer than those of other'
mkdir again
cp tokens/*.bin other/tokenizer.json again
again="$small --data-dir again --buckets 8,16 --num-epochs 31 --model-prefix again --resume tok-0030.h5"
refuse $again
expect 'error: tok-0030.h5 was saved with another tokenizer than the tokenizer.json of again.*--override tokenizer'
expect_none '^Epoch'
train 1 $again --override tokenizer
mixed=${small/--data-dir tokens/}
refuse $mixed --data-train tokens/train.bin --data-val other/val.bin
expect 'error: tokens/train.bin and other/val.bin are tokens of two tokenizers'
expect_none '^Epoch'
mkdir bare
cp tokens/train.bin bare/x_train.bin
cp tokens/val.bin bare/x_val.bin
train 1 $small --data-dir bare --num-epochs 1
expect 'tokens of bare/x_train.bin, windows of '

part "what a checkpoint says of its network"
refuse --load tok-latest --num-heads 2 --data-dir tokens $plain
expect 'error: --num-heads 2: .*tok-\S+ was saved with num-heads 4'
refuse $small --num-heads 2 --load tok-latest
expect 'error: --num-heads 2: .*tok-\S+ was saved with num-heads 4'
refuse $small --num-heads 2 --num-epochs 31 --model-prefix tok --resume auto
expect 'error: tok-\S+ was saved with num-heads 4, and this run has 2; --override num-heads resumes anyway'
own="--network gpt2 --num-layers 1 --num-hidden 48 --num-positions 16 --data-dir tokens --num-batches 2 $plain"
train 1 $own --num-epochs 1 --model-prefix own
refuse $own --num-heads 6 --load own-latest
expect 'error: --num-heads 6: .*own-\S+ was saved with num-heads 12'
train 1 $own --num-heads 12 --num-epochs 2 --model-prefix own --resume auto
refuse $small --data-dir ends --seq-len 16 --num-epochs 31 --model-prefix ends --resume auto
expect 'error: ends-\S+ was saved with seq-len 17, and this run has 16'
refuse --sample 3 --model-prefix none
expect 'error: --sample: there is no checkpoint none-\*.h5 to generate from; --load FILE names one$'
refuse $small --num-classes 400 --load tok-latest
expect 'wte_weight .*; --num-classes 2\d\d$'
refuse $small --num-positions 50 --load tok-latest
expect 'wpe_weight \(40, 32\), not \(50, 32\); --num-positions 40$'
refuse $small --tie-weights 0 --load tok-latest
expect 'not in the file: arg/head_weight; --tie-weights 1$'
tokens=$("$TRAINER" --summary --load tok-latest | grep -o 'parameters.*')
[ "$("$TRAINER" $small --summary --seq-len 16 | grep -o 'parameters.*')" = "$tokens" ] ||
	fail "--summary does not look at the tokens"

part "a folder as transformers has it, and back"
train 1 $small --seq-len 16 --tie-weights 0 --num-epochs 2 --model-prefix untied
for model in own untied; do
	mkdir $model
	"$BUILDDIR/muconvert" $model-latest $model/model.safetensors >"$log" || fail "$model: $(cat "$log")"
	cmp $model/tokenizer.json tokens/tokenizer.json || fail "$model: another tokenizer"
	"$BUILDDIR/muconvert" $model $model.h5 >"$log" || fail "$model: $(cat "$log")"
	same_model $model-0002.h5 $model.h5 || fail "$model: other weights after two conversions"
	for file in $model-latest $model.h5; do
		train 1 --evaluate --load $file --data-dir tokens --seq-len 16 $plain
		grep '^Epoch' "$log" >loss.${file#"$model"}
	done
	cmp loss.-latest loss..h5 || fail "$model: another loss: $(cat "$log")"
	for file in $model-latest $model.h5; do
		"$TRAINER" --sample 8 --load $file --prime "the cat" >text.${file#"$model"} 2>"$log" ||
			fail "$file: no text: $(cat "$log")"
	done
	cmp text.-latest text..h5 || fail "$model: another text"
	refuse --evaluate --load $model.h5 --data-dir other --seq-len 16 $plain
	expect "error: $model.h5 was trained on the tokens of another tokenizer than those of other"
done
grep -q '"n_head": 12,' own/config.json && grep -q '"tie_word_embeddings": true' own/config.json ||
	fail "$(cat own/config.json)"
grep -q '"n_head": 4,' untied/config.json && grep -q '"tie_word_embeddings": false' untied/config.json ||
	fail "$(cat untied/config.json)"
echo '{"n_head": 3}' >own/config.json
"$BUILDDIR/muconvert" own-latest own/model.safetensors >"$log" 2>&1 && fail "a config.json of another model is left"
expect 'error: own/config.json is there already, of another model; remove it'
[ "$(cat own/config.json)" = '{"n_head": 3}' ] || fail "the user's config.json is gone"
python=$(find_h5py)
if [ -n "$python" ]; then
	"$BUILDDIR/muconvert" tok-latest bad.params >"$log" && "$BUILDDIR/muconvert" bad.params bad.h5 >"$log"
	$python -c 'import h5py; h5py.File("bad.h5", "a")["arg/wte_weight"][5, 3] = float("nan")' || fail "no bad.h5"
	run_limited 60 1 --network gpt2 --num-layers 1 --num-hidden 32 --num-heads 4 --num-positions 40 \
		--load bad.h5 --vocab tokens/tokenizer.json --sample 3 --prime "the cat"
	[ $status = 1 ] || fail "exit status $status, not 1, of weights that are not finite"
	expect 'error: .*the network predicts no numbers'
else
	echo "weights that are not finite: skipped, there is no h5py"
fi

part "images"
small_set set 400 50
train 1 --network vit-tiny --num-layers 2 --num-hidden 32 --num-heads 4 --initializer xavier --data-dir set \
	--num-epochs 20 --batch-size 20 --optimizer adamw --lr 0.003 $plain
at_least Train-accuracy 0.5

part "bad input"
refuse $gpt --num-heads 3
expect 'error: network gpt2: 3 heads do not divide a width of 16 \(--num-heads, --num-hidden\)'
refuse --network vit-tiny --benchmark 1 --image-shape 3,30,30 $plain
expect 'error: network vit-tiny: images of 30 x 30 are no whole patches of 4 x 4'
refuse $gpt --num-embed 8
expect 'error: --num-embed is a setting of lstm, not of gpt2'
refuse --load tok-latest --sample 3 --top-k 2
expect 'error: --top-k 2 with --sample 3: it is an accuracy; --sample-top-k draws'
for word in top-p,sample-top-p max-new-tokens,sample prompt,prime; do
	refuse --load tok-latest --${word%,*} 1
	expect "error: unknown option --${word%,*}; .*--${word#*,}"
done
refuse --network lenet --benchmark 1 --num-heads 3 $plain
expect 'error: --num-heads is a setting of gpt2, llama, vit-tiny, not of lenet'
refuse $gpt --temperature 2
expect 'error: --temperature needs --sample N above 0: it is about generated text'
refuse $gpt --recompute some
expect 'error: --recompute.*"some".*auto, none, attention, all'
finish
