#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tool that makes the embedded data set: its files and what they hold, same seed same bytes, the
# preview, errors.
set -u

DIGITS=${DIGITS:-${BUILDDIR:-.}/digits}
work=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
failed=0

fail() {
	echo "${BASH_SOURCE[0]}:${BASH_LINENO[${2-0}]}: failed: $1"
	failed=1
}

# make FOLDER OPTION...: a small set.
make() {
	local folder=$1
	shift
	"$DIGITS" --out "$work/$folder" --train 400 --test 100 "$@" >"$work/log" 2>&1 </dev/null ||
		fail "digits --out $folder $*: $(cat "$work/log")" 1
}

# The bytes of an unzipped file from number $2 (0 = first), $3 of them, as numbers in one line.
bytes() {
	gzip -cd "$1" | tail -c +$(($2 + 1)) | head -c "$3" | od -An -v -tu1 -w"$3" | tr -s ' ' | sed 's/^ //'
}

# error STATUS PATTERN OPTION...: must fail with this status and a message that holds the pattern.
error() {
	local status=$1 pattern=$2 st
	shift 2
	timeout 10 "$DIGITS" "$@" >"$work/log" 2>&1 </dev/null
	st=$?
	[ $st = "$status" ] || fail "digits $*: exit status $st, expected $status" 1
	grep -Eq -e "$pattern" "$work/log" || fail "digits $*: expected '$pattern', got: $(cat "$work/log")" 1
}

# check_set NAME COUNT: header, sizes, classes, and what the images look like.
check_set() {
	local images=$work/a/$1-images-idx3-ubyte.gz labels=$work/a/$1-labels-idx1-ubyte.gz
	local high=$(($2 / 256)) low=$(($2 % 256))
	[ "$(bytes "$images" 0 16)" = "0 0 8 3 0 0 $high $low 0 0 0 28 0 0 0 28" ] ||
		fail "$1: header of the images: $(bytes "$images" 0 16)" 1
	[ "$(bytes "$labels" 0 8)" = "0 0 8 1 0 0 $high $low" ] ||
		fail "$1: header of the labels: $(bytes "$labels" 0 8)" 1
	[ "$(gzip -cd "$images" | wc -c)" = $((16 + $2 * 784)) ] || fail "$1: size of the images" 1
	[ "$(gzip -cd "$labels" | wc -c)" = $((8 + $2)) ] || fail "$1: size of the labels" 1
	bytes "$labels" 8 "$2" | awk -v n="$2" '{
		for (i = 1; i <= NF; i++) {
			count[$i]++
			runs += $i != $(i - 1)
		}
		for (c = 0; c < 10; c++)
			bad += count[c] != n / 10
		# In order of class there would be few changes from one label to the next.
		exit bad || NF != n || runs < n / 2
	}' || fail "$1: the classes are not balanced and shuffled" 1
	check_images "$images" || fail "$1: the images are not as they should be" 1
}

# Every image has ink and paper, its ink is bright and near the middle, and its border is empty.
check_images() {
	gzip -cd "$1" | tail -c +17 | od -An -v -tu1 -w784 | awk '
		{
			sum = across = down = border = most = lit = 0
			for (i = 0; i < 784; i++) {
				v = $(i + 1); x = i % 28; y = int(i / 28)
				sum += v; across += v * x; down += v * y; lit += v > 0
				if (v > most) most = v
				if (x == 0 || y == 0 || x == 27 || y == 27) border += v
			}
			if (lit < 20 || lit > 500 || most < 120) problem("ink", lit " " most)
			else if (border > 0.03 * sum) problem("ink on the border", border / sum)
			else if (off(across / sum) || off(down / sum))
				problem("not in the middle", across / sum " " down / sum)
			total += sum
		}
		function off(at) { return at < 6 || at > 21 }
		function problem(what, value) { print "image " NR - 1 ": " what ": " value; bad++ }
		END {
			mean = total / NR / 784
			if (mean < 15 || mean > 50) problem("mean of all pixels", mean)
			exit bad > 0
		}'
}

# Same seed, same bytes; another seed, other images.
make a --seed 7
make b --seed 7
make c --seed 8
[ "$(ls "$work/a" | tr '\n' ' ')" = "t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz \
train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz " ] || fail "files: $(ls "$work/a")"
for file in "$work"/a/*; do
	name=${file##*/}
	cmp -s "$file" "$work/b/$name" || fail "$name: same seed, other bytes"
	cmp -s "$file" "$work/c/$name" && fail "$name: another seed, same bytes"
done
check_set train 400
check_set t10k 100
# No image twice, neither in the two sets nor in those of another seed.
for file in "$work"/[ac]/*-images-*; do
	gzip -cd "$file" | tail -c +17 | od -An -v -tu1 -w784
done | sort | uniq -d | grep -q . && fail "an image is there twice"

# Replaced files are complete and nothing else is left in the folder; missing folders are made.
make a --seed 8
cmp -s "$work/a/train-images-idx3-ubyte.gz" "$work/c/train-images-idx3-ubyte.gz" || fail "not replaced"
[ "$(ls "$work/a" | wc -l)" = 4 ] || fail "left over: $(ls "$work/a")"
make x/y/z --preview="$work/sheet.pgm"
[ -s "$work/x/y/z/t10k-labels-idx1-ubyte.gz" ] || fail "no files in a new folder"

# The preview: a header, 20 x 10 images; the data set only if asked for.
[ "$(head -n 2 "$work/sheet.pgm" | tr '\n' ' ')" = "P5 560 280 " ] || fail "header of the preview"
[ "$(wc -c <"$work/sheet.pgm")" = $((15 + 560 * 280)) ] || fail "size of the preview"
"$DIGITS" --preview "$work/other.pgm" --train 400 >"$work/log" 2>&1 || fail "preview alone: $(cat "$work/log")"
cmp -s "$work/sheet.pgm" "$work/other.pgm" || fail "the preview alone is another"

# No progress line where there is no terminal.
make a
[ "$(wc -l <"$work/log")" = 1 ] || fail "more than one line: $(cat "$work/log")"
grep -q "$(printf '\r')" "$work/log" && fail "progress without a terminal"

"$DIGITS" --help >"$work/log" 2>&1 || fail "--help"
grep -q -e '--output DIR' "$work/log" || fail "--help does not tell of --output"

# Errors.
touch "$work/file"
error 2 'give --output' --seed 1
error 2 'unknown option' --outputt "$work/n"
error 2 '"many" is not a whole number' --out "$work/n" --train many
error 2 '--train: 0 is out of range' --out "$work/n" --train 0
error 2 '--test: -5 is out of range' --out "$work/n" --test=-5
error 2 '--train: 1000000000000 is out of range' --out "$work/n" --train 1000000000000
error 2 '--seed: -1 is out of range' --out "$work/n" --seed -1
error 2 'folder is empty' --out ''
error 2 'does not end in .pgm' --preview "$work/n.png"
error 1 'file: is there, but is not a folder' --out "$work/file"
error 1 'file: is there, but is not a folder' --out "$work/file/n"
error 1 '/proc/n: the folder cannot be made: ' --out /proc/n/n
error 1 'n/n.pgm: cannot be written: No such file' --preview "$work/n/n.pgm"
[ ! -e "$work/n" ] || fail "an error left a folder"
if [ -w /dev/full ]; then
	ln -s /dev/full "$work/full.pgm"
	error 1 'full.pgm: cannot be written: it is a device' --preview "$work/full.pgm"
fi
mkdir "$work/locked" && chmod a-w "$work/locked"
if [ ! -w "$work/locked" ]; then # root may write everywhere
	error 1 'locked: the folder cannot be written to: Permission denied' --out "$work/locked"
fi
exit $failed
