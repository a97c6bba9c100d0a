#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tokenize: texts to token files and back; shards, the part for validation, and what can be wrong.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
log=tool.log
T=$BUILDDIR/tokenize

# tool STATUS WORD...
tool() {
	local want=$1
	shift
	"$T" "$@" >"$log" 2>&1
	status=$?
	[ $status = "$want" ] || fail "exit status $status, not $want, of tokenize $*: $(cat "$log")"
}
# Numbers of tokens in files.
count() {
	cat "$@" | wc -c | awk -v n=$# '{ print ($1 - 1024 * n) / 2 }'
}

for i in 1 2 3 4 5 6 7 8; do
	printf 'To be, or not to be: that is question %d.\r\n\n  The caf\303\251s, \360\237\230\200 \377\200!\t' $i
done >a.txt
cat a.txt a.txt >b.txt

part "train, encode, decode"
tool 0 --train --vocab-size 300 one a.txt b.txt --val-split 0.25
expect '^tokenize: [0-9]+ tokens, [0-9]+ in train.bin, [0-9]+ in val.bin, of a vocabulary of 300: one$'
tool 0 two a.txt b.txt --tokenizer one --val-split 0 --no-end-of-text
cmp one/tokenizer.json two/tokenizer.json || fail "another tokenizer was written"
[ ! -e two/val.bin ] || fail "a part for validation, though none was wanted"
tool 0 --decode two/train.bin
cat a.txt b.txt | cmp - "$log" || fail "another text comes back"
n=$(count two/train.bin)
# Two texts: <|endoftext|> before each of the four parts; a quarter of the others is for validation.
[ "$(count one/train.bin one/val.bin)" = $((n + 4)) ] || fail "$(count one/train.bin one/val.bin) tokens, not $n + 4"
v=$(count one/val.bin)
[ "$v" -le $((n / 4 + 2)) ] && [ "$v" -ge $((n / 4)) ] || fail "val.bin: $v of $n"
tool 0 --decode --tokenizer one/tokenizer.json one/val.bin
grep -ac '^<|endoftext|>' "$log" | grep -q '^1$' || fail "no <|endoftext|> at the beginning"

# One word, whose tokens grow long.
head -c 300000 /dev/zero | tr '\0' a >long.txt
tool 0 long long.txt --train --val-split 0
tool 0 --decode long/train.bin
sed 's/<|endoftext|>//' "$log" | cmp - long.txt || fail "another text comes back of one long word"

part "one process to a folder"
mkdir taken
(
	flock -n 9 || fail "taken: no lock"
	tool 1 taken a.txt --tokenizer one
	expect 'error: taken: another process writes its files to this folder'
	finish
) 9<taken || failures=$((failures + 1))
[ -z "$(ls taken)" ] || fail "files in a folder of another process"
tool 0 taken a.txt --tokenizer one

part "shards"
tool 0 three a.txt b.txt --tokenizer one --val-split 0 --no-end-of-text --shard-tokens 100
expect "in $(((n + 99) / 100)) files train_\*.bin, of a vocabulary"
for f in three/train_*; do
	last=three/train_$(printf %06d $((n / 100))).bin
	[ "$(count "$f")" = 100 ] || [ "$f" = "$last" ] || fail "$f: $(count "$f")"
done
tool 0 --decode three/train_*
cat a.txt b.txt | cmp - "$log" || fail "another text comes back from shards"
# <|endoftext|> may be the last token of a shard.
for size in 1 2 3 "$n"; do
	rm -rf five
	tool 0 five a.txt b.txt --tokenizer one --val-split 0 --shard-tokens "$size"
	[ "$(ls five/train_* | wc -l)" = $(((n + 2 + size - 1) / size)) ] ||
		fail "$(ls five/train_* | wc -l) shards of $size of $n + 2 tokens"
done
printf 'a' >short.txt
rm -rf five
tool 0 five short.txt b.txt --tokenizer one --val-split 0 --shard-tokens 3
[ "$(ls five/train_* | wc -l)" -gt 2 ] || fail "no shards behind one that ends with <|endoftext|>: $(ls five)"

part "what is wrong"
tool 2 three a.txt --tokenizer one
expect '^tokenize: error: three: holds token files already, such as train_0'
tool 2 four a.txt
expect 'give --tokenizer PATH, or --train'
tool 2 four a.txt --train --tokenizer one
expect 'one of them is possible'
tool 2 four a.txt --tokenizer one --vocab-size 300
expect 'error: --vocab-size needs --train: a tokenizer that is read has its own tokens$'
tool 2 --decode one/train.bin --shard-tokens 9
expect 'error: --decode with --shard-tokens 9: it writes no files$'
tool 2 four
expect 'expected DIR TEXT'
tool 2 four a.txt --train --vocab-size 65537
tool 1 four a.txt --tokenizer nowhere
expect 'nowhere: is neither a tokenizer.json, nor a folder'
tool 1 four nothing.txt --tokenizer one
expect 'nothing.txt: cannot be opened'
: >empty.txt
tool 2 four empty.txt --tokenizer one
expect 'the texts are empty'
ls four/train* 2>/dev/null && fail "a file of an empty text"
head -c 1100 one/train.bin >short.bin
tool 1 --decode short.bin --tokenizer one
expect 'short.bin: has 1100 bytes, and [0-9]+ by its header of [0-9]+ tokens: it was cut short'
tool 0 --train --vocab-size 257 small a.txt
tool 1 --decode two/train.bin --tokenizer small
expect 'two/train.bin: token [0-9]+, at place [0-9]+, is not in the vocabulary of 257: it is of another'
finish
