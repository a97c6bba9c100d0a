#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Language models in the trainer: words and characters, stores, devices, going on from checkpoints,
# a learning rate that looks at the validation, text that is drawn, bad input.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

needs_files
export OMP_NUM_THREADS=1 # bits depend on it
plain="--log-prefix none --log-time 0 --disp-batches 5"

# sentences N SEED: of a language whose next word is often certain
sentences() {
	awk -v n="$1" -v seed="$2" '
	# Park and Miller, 1988: the same in every awk
	function draw() {
		x = (x * 16807) % 2147483647
		return x / 2147483647
	}
	BEGIN {
		x = seed
		split("cat dog bird", who); split("sees hears", does); split("red old", how)
		for (i = 0; i < n; i++) {
			s = "the " who[1 + int(3 * draw())] " " does[1 + int(2 * draw())] " the"
			if (draw() < 0.5)
				s = s " " how[1 + int(2 * draw())]
			s = s " " who[1 + int(3 * draw())]
			if (draw() < 0.3)
				s = s " and the " who[1 + int(3 * draw())]
			print " " s
		}
		if (seed == 1)
			print "one two three four five six seven eight nine ten eleven twelve"
	}'
}
sentences 100 1 >train.txt
sentences 30 2 >val.txt
echo "the zebra sees the cat" >>val.txt
words="--network lstm --num-layers 1 --num-hidden 16 --num-embed 8 --data-train train.txt --data-val val.txt
	--buckets 4,8,10 --lr 1 --mom 0 --wd 0 --clip-global-norm 5 --num-epochs 2 $plain"

# near A B PART: do they differ by less than that part?
near() {
	awk -v a="$1" -v b="$2" -v part="$3" 'BEGIN { d = a - b; exit !(a > 0 && (d < 0 ? -d : d) <= part * a) }' ||
		fail "$1 and $2 differ"
}

# refuse STATUS ARGUMENT...
refuse() {
	local wanted=$1
	shift
	run_limited 60 1 "$@"
	[ $status = "$wanted" ] || fail "exit status $status, not $wanted, of $*"
}

part "words"
train 1 $words --batch-size 8 --dropout 0 --model-prefix A
expect '^data text: 100 samples for training, 31 for validation, shape \(1, 10, 1\), 2[0-9] classes: train.txt'
expect 'filled up: 0 of 4, [0-9]+ of 8, [0-9]+ of 10; 1 longer than 10 are left out'
expect '^data text: validation: val.txt.*; 1 of them not in the vocabulary$'
expect '^Epoch\[1\] Train-perplexity='
expect '^Epoch\[1\] Validation-sentence-nll='
one=$(value Validation-perplexity)
[ "$(head -n 3 A-vocab.txt | tr '\n' ' ')" = "<eos> the $(awk '{ print $2; exit }' train.txt) " ] ||
	fail "the vocabulary begins with $(head -n 3 A-vocab.txt)"
awk -v p="$one" 'BEGIN { exit !(p > 1 && p < 12) }' || fail "perplexity $one after 2 epochs"

part "stores and devices"
train 3 $words --batch-size 4 --dropout 0 --kv-store dist_sync --num-servers 1 --model-prefix B
near "$one" "$(value Validation-perplexity)" 1e-3
train 2 $words --batch-size 4 --dropout 0 --kv-store dist_allreduce --model-prefix C
same_model B-0002.h5 C-0002.h5 || fail "dist_allreduce trains other bits than dist_sync"
train 3 $words --batch-size 3 --kv-store dist_async --num-servers 1
train 1 $words --batch-size 8 --dropout 0 --devices cpu:0,cpu:1
near "$one" "$(value Validation-perplexity)" 1e-3

part "going on"
plateau="$words --batch-size 4 --lr-schedule plateau --lr-factor 0.5 --plateau-improvement 1000 --num-epochs 4"
train 3 $plateau --kv-store dist_sync --num-servers 1 --model-prefix D
expect 'perplexity [0-9.]+ is not 1000 below [0-9.]+: learning rate 0.5 from now on'
train 3 $words --batch-size 4 --num-epochs 4 --kv-store dist_sync --num-servers 1 --model-prefix H
same_model D-0002.h5 H-0002.h5 || fail "the first epochs, of one learning rate, differ"
same_model D-0004.h5 H-0004.h5 2>/dev/null && fail "servers do not hear of the plateau"
train 3 $plateau --kv-store dist_sync --num-servers 1 --model-prefix E --num-epochs 2 --save-steps 7
rm E-0002.h5
train 3 $plateau --kv-store dist_sync --num-servers 1 --model-prefix E --resume auto
expect 'Resumed from "E-0001-0000'
same_model D-0004.h5 E-0004.h5 || fail "a run that went on inside an epoch has other bits"
train 3 $plateau --kv-store dist_sync --num-servers 1 --model-prefix E --resume D-0003.h5
same_model D-0004.h5 E-0004.h5 || fail "a run that went on after a plateau has other bits"
run_limited 60 1 $plateau --resume E-0001-000007.h5 --model-prefix F
[ $status = 2 ] || fail "exit status $status of another batch inside an epoch"
expect 'error: E-0001-000007.h5 is from inside an epoch of a text, with 8 sequences a step .*, and this run has 4:'

part "log-probabilities"
train 1 --load A-0002.h5 --data-val val.txt --predict one.csv $plain
loss=$(value Validation-cross-entropy)
train 3 --load A-0002.h5 --data-val val.txt --predict three.csv --kv-store dist_sharded --batch-size 4 $plain
for file in one.csv three.csv; do
	awk -F '"' -v loss="$loss" -v records="$(grep -c . val.txt)" '
		NR > 1 {
			split($3, f, ","); tokens += f[2]; sum += f[4]; bad += split(f[6], labels, " ") != f[2]
			bad += labels[f[2]] != 1 # a sentence ends with <eos>
			line = $2; sub(/val.txt, sentence /, "", line); bad += line != 0 + line || seen[line]++
		}
		END { exit bad > 0 || NR != records + 1 || (loss + sum / tokens) ^ 2 > 2e-12 }' "$file" ||
		fail "$file: not the loss $loss: $(head -n 2 "$file")"
done
refuse 2 --load A-0002.h5 --data-val val.txt --predict x.csv --time-block 5 --model-parallel 2
expect 'error: --time-block 5 with --predict x.csv: it predicts whole sequences'

part "characters, and text that is drawn"
characters="--network lstm --num-layers 1 --num-hidden 32 --num-embed 8 --buckets 20"
train 1 $characters --data-train train.txt --text characters --batch-size 8 --lr 1 --mom 0 --wd 0 \
	--clip-global-norm 5 --num-epochs 6 --model-prefix G $plain
# draw ARGUMENT...: a text of more characters than the network reads at once, of which a warning says so
draw() {
	timeout -k 5 $((60 * ${MU_TIMEOUT_SCALE:-1})) "$TRAINER" $characters --sample 200 --prime "the c" "$@" \
		>text 2>"$log" </dev/null || fail "exit status $?: $(cat "$log")"
	expect_count 1 'warning: --sample: the text is longer than the 20 '
	cp text "$log"
}
draw --model-prefix G
[ "$(head -c 5 "$log")" = "the c" ] || fail "the text does not begin with --prime"
[ "$(wc -c <"$log")" = 206 ] || fail "$(wc -c <"$log") characters, not 206"
grep -q ' the ' "$log" || fail "nothing was learnt: $(cat "$log")"
cp "$log" first
draw --load G-0002.h5 --vocab G-vocab.txt
cmp -s "$log" first && fail "other parameters write the same text"
draw --model-prefix G
cmp -s "$log" first || fail "the same seed writes another text"
refuse 2 $characters --sample 10 --prime "the Q" --model-prefix G
expect 'error: --prime: "Q" is not in the vocabulary'
refuse 2 $characters --sample 10 --model-prefix G --vocab A-vocab.txt
expect 'error: G-0006.h5 was saved with a vocabulary of [0-9]+ characters, .*, and this one has [0-9]+ words'

part "characters beyond ASCII, and a vocabulary of bytes as earlier versions made it"
for _ in {1..40}; do printf 'h\303\251llo w\303\266rld\n'; done >utf8.txt
utf8="--network lstm --num-layers 1 --num-hidden 8 --num-embed 8 --buckets 12 --data-train utf8.txt --text characters
	--batch-size 8 --num-epochs 2"
train 2 $utf8 --model-prefix utf8 $plain
expect 'utf8.txt, 480 characters'
grep -qx $'\303\251' utf8-vocab.txt || fail "no e with an accent in utf8-vocab.txt"
run_limited 60 1 --sample 30 --prime $'h\303\251' --load utf8-0002.h5
[ $status = 0 ] && [ "$(head -c 3 "$log")" = $'h\303\251' ] || fail "exit status $status: $(cat "$log")"
iconv -f UTF-8 -t UTF-8 "$log" >/dev/null || fail "--sample wrote half a character"
printf '%b\n' h '\0303' '\0251' l o ' ' w '\0266' r d '\\n' '<unk>' >bytes.txt
train 1 $utf8 --model-prefix bytes --num-epochs 1 --vocab bytes.txt $plain
expect 'utf8.txt, 560 bytes'
train 1 $utf8 --model-prefix bytes --resume auto
expect 'utf8.txt, 560 bytes'
run_limited 60 1 --sample 1 --temperature 0 --prime $'\303' --load bytes-0002.h5
[ "$(head -c 4 "$log")" = '\xc3' ] || fail "half a character is not shown as \\xc3: $(cat "$log")"

part "bad input"
: >empty.txt
refuse 2 $words --batch-size 8 --data-train empty.txt
expect 'error: empty.txt: is empty'
refuse 2 $words --batch-size 8 --buckets 8,8
expect "error: --buckets 8,8: cannot read '8'"
refuse 2 $words --batch-size 8 --network lenet --num-layers 0
expect 'error: --num-hidden is a setting of lstm, gpt2, llama, vit-tiny, not of lenet'
refuse 2 --network lenet --data-train train.txt $plain
expect 'error: network lenet is for images, and train.txt is read as text: --network lstm'
refuse 2 --network lstm --data-dir . $plain
for name in j.jsonl j.json T.TXT t.md text; do cp train.txt $name; done
refuse 2 --network lstm --data-train j.jsonl $plain
expect "error: j.jsonl: is JSON lines, no plain text: take the texts out: jq"
refuse 2 --network lstm --data-train j.json $plain
expect "error: j.json: is JSON, no plain text: take the texts out: jq"
refuse 2 --network lstm --data-train T.TXT $plain
expect 'error: T.TXT: network lstm reads sequences of words, and a name with .TXT is that of neither a text'
refuse 2 --network gpt2 --data-train ./text $plain
expect 'error: ./text: network gpt2 reads .* no suffix is .*--text words'
refuse 2 $words --image-shape 1,8,1
expect 'error: --image-shape with --data-train train.txt: it is for images'
refuse 2 $words --random-mirror 1
expect 'error: --random-mirror is a setting of colour images, not of '
refuse 2 $words --val-split 0.5
expect 'error: --val-split 0.5 with --data-train train.txt: a text is one piece, .*\(--data-val\)'
refuse 2 $words --ignore-class 3
expect 'error: --ignore-class: of a text number 0'
refuse 2 --network lstm --benchmark 1 --vocab A-vocab.txt $plain
expect 'error: --vocab: it is for text: use --data-train FILE.txt'
refuse 2 --network lstm --data-train train.txt --lr-schedule plateau $plain
expect 'error: --lr-schedule plateau: .*validation data'
refuse 2 --network lstm --sample 10
expect 'error: --sample 10 needs --load FILE or --model-prefix P'
sed 's/bird/fish/' A-vocab.txt >other.txt
refuse 2 $words --batch-size 8 --vocab other.txt --model-prefix A --resume auto --num-epochs 3
expect 'error: A-0002.h5 was saved with vocabulary [0-9]+ words, [0-9a-f]+, and this run has [0-9]+ words, [0-9a-f]+;'
printf 'a\nbc\n' >bad.txt
refuse 2 $words --batch-size 8 --vocab bad.txt
expect 'error: bad.txt, line 2: "bc" is no character'

part "tokens"
"$BUILDDIR/tokenize" --train --vocab-size 280 tokens train.txt val.txt --shard-tokens 900 >"$log" ||
	fail "$(cat "$log")"
tokens="--network lstm --num-layers 1 --num-hidden 16 --num-embed 8 --buckets 12 --batch-size 8 --num-epochs 2
	--lr 0.5 --mom 0 --wd 0 $plain"
train 1 $tokens --data-dir tokens --model-prefix T
expect '^data tokens: [0-9]+ samples for training, [0-9]+ for validation, shape \(1, 12, 1\), 280 classes: '
expect ' tokens of tokens/train_000000.bin and [1-9] more, windows of 12$'
expect '^Epoch\[1\] Validation-perplexity='
ref=$(value Validation-perplexity)
train 3 $tokens --data-train "$(echo tokens/train_*.bin | tr ' ' ';')" --data-val tokens/val_000000.bin \
	--batch-size 4 --kv-store dist_sync --num-servers 1 --model-prefix U
near "$ref" "$(value Validation-perplexity)" 0.01
train 1 --evaluate --load T-0002.h5 --data-dir tokens $plain
refuse 2 $tokens --data-dir tokens --resize 9
expect 'error: --resize is for colour images; tokens holds tokens files, which are taken as they are'
refuse 2 $tokens --data-train tokens/train_000000.bin --resize 9
expect 'error: --resize is a setting of colour images, not of windows of tokens'
"$BUILDDIR/tokenize" --train --vocab-size 257 few train.txt >"$log"
cp few/tokenizer.json tokens
refuse 1 $tokens --data-dir tokens
expect 'train_00000[0-9].bin: token [0-9]+, at place [0-9]+, is not below 257: the file is of another tokenizer'
rm -r tokens/val*
refuse 2 $tokens --data-dir tokens
expect 'tokens: holds no val\*.bin: without validation, name the files of --data-train instead of the folder'
truncate -s -1 tokens/train_000001.bin
refuse 2 $tokens --data-dir tokens
expect 'train_000001.bin: has [0-9]+ bytes, and [0-9]+ by its header of [0-9]+ tokens: it was cut short'
refuse 2 --network lenet --data-dir tokens
expect 'network lenet is for images, and tokens is read as tokens'
finish
