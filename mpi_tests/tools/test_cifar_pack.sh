#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tool that makes CIFAR's files from JPEG images: what it writes from a folder and from tar
# files, order, classes, scaling, every error, and that the trainer takes the result.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export LC_ALL=C
PACK=$BUILDDIR/cifar_pack
JPEG=$BUILDDIR/mpi_tests/lib/make_jpeg
record=3073
log=pack.log

# pack ARGUMENT...: must succeed
pack() {
	timeout 20 "$PACK" "$@" >"$log" 2>&1 </dev/null && return
	fail "cifar_pack $*"
	show_log
}

# refused STATUS REGEX ARGUMENT...: exactly one message, which matches.
refused() {
	local want=$1 regex=$2 st
	shift 2
	timeout 20 "$PACK" "$@" >"$log" 2>&1 </dev/null
	st=$?
	[ $st = "$want" ] || fail "exit status $st, not $want, of cifar_pack $*"
	expect_count 1 'error'
	expect "error.*$regex"
	expect_none 'Sanitizer|runtime error'
}

# jpeg FILE [WIDTH HEIGHT KIND]: noise, another with every call
seed=0
jpeg() {
	seed=$((seed + 1))
	mkdir -p "$(dirname "$1")"
	"$JPEG" write "$1" "${2-32}" "${3-32}" "${4-rgb}" $seed || fail "cannot make $1"
}

# byte N: as one character
byte() {
	# shellcheck disable=SC2059 # the format is the character
	printf "\\$(printf %o "$1")"
}

# expected DIR PART: the records in order of class and file
expected() {
	local label=-1 class file
	for class in $(for p in "$1"/*/*/; do basename "$p"; done | sort -u); do
		label=$((label + 1))
		for file in "$1/$2/$class"/*.[jJ]*; do
			[ -e "$file" ] || continue
			byte $label
			"$JPEG" read "$file"
		done
	done
}

# sorted FILE...: the records as lines of numbers, sorted
sorted() {
	cat "$@" | od -An -v -tx1 -w$record | sort
}

same() {
	cmp "$1" "$2" || fail "$1 and $2 differ"
}

if ! "$PACK" --input . --output out >"$log" 2>&1 && grep -q 'this build has no libjpeg' "$log"; then
	[ ! -e out ] || fail "a build without libjpeg made the output"
	[ $failures = 0 ] || finish
	echo "skip: this build has no libjpeg, which it says"
	exit 77
fi

part "a folder"
for i in 1 2 3 4 5; do
	jpeg set/train/bee/$i.jpg
	jpeg set/train/ant-2/b$i.JPG
	jpeg set/train/ant/$i.jpeg
done
jpeg set/train/ant/10.jpg
jpeg set/train/cow/grey.jpg 32 32 grey
jpeg set/test/bee/1.jpg
jpeg set/test/ant-2/7.jpg
jpeg set/test/ant/7.jpg
echo text >set/train/ant/notes.txt
echo text >set/train/README
pack --input set --output new/sorted --shuffle -1
expected set train >train.want
expected set test >test.want
[ "$(wc -c <train.want)" = $((17 * record)) ] || fail "the test itself"
same new/sorted/data_batch_1.bin train.want
same new/sorted/test_batch.bin test.want
printf 'ant\nant-2\nbee\ncow\n' | cmp - new/sorted/batches.meta.txt || fail "batches.meta.txt"
[ "$(ls new/sorted | tr '\n' ' ')" = "batches.meta.txt data_batch_1.bin test_batch.bin " ] ||
	fail "files: $(ls new/sorted)"
expect '^ +0  ant +6 +1$'
expect '^ +3  cow +1 +0$'
expect '^ +all +17 +3$'
expect 'left out: 2 files of other kinds'
expect '17 images for training in 1 file and 3 for testing in new/sorted'

part "order"
pack --input set --output mixed
cmp -s mixed/data_batch_1.bin train.want && fail "not shuffled by default"
[ "$(sorted mixed/data_batch_1.bin)" = "$(sorted train.want)" ] || fail "shuffled: other records"
[ "$(sorted mixed/test_batch.bin)" = "$(sorted test.want)" ] || fail "shuffled: other test records"
pack --input set --output again --shuffle 0
same again/data_batch_1.bin mixed/data_batch_1.bin
pack --input set/ --output again --shuffle 1
cmp -s again/data_batch_1.bin mixed/data_batch_1.bin && fail "another seed, the same order"
[ "$(sorted again/data_batch_1.bin)" = "$(sorted train.want)" ] || fail "another seed: other records"

part "several files"
pack --input set --output cut --per-file 5
[ "$(ls cut | tr '\n' ' ')" = "batches.meta.txt data_batch_1.bin data_batch_2.bin data_batch_3.bin \
data_batch_4.bin test_batch.bin " ] || fail "files: $(ls cut)"
cat cut/data_batch_[1234].bin | cmp - mixed/data_batch_1.bin || fail "cut into files: other bytes"
[ "$(wc -c <cut/data_batch_4.bin)" = $((2 * record)) ] || fail "size of the last file"
same cut/test_batch.bin mixed/test_batch.bin
echo mine >cut/data_batch_x.bin
pack --input set --output cut --per-file 9
[ "$(ls cut | tr '\n' ' ')" = "batches.meta.txt data_batch_1.bin data_batch_2.bin data_batch_x.bin \
test_batch.bin " ] || fail "files of an earlier set: $(ls cut)"

has_tar=yes
echo 'no tar' >plain.txt
"$PACK" --input plain.txt --output out 2>&1 | grep -q 'no libarchive' && has_tar=no
if [ $has_tar = no ]; then
	part "a build without libarchive, which it says"
	refused 1 'plain.txt: is not a folder.*no libarchive' --input plain.txt --output out
else
	part "tar files"
	(cd set && tar -cf ../set.tar test train)
	tar --sort=name -czf set.tgz set
	(cd set && find . -type f | sort -r | tar -cf ../names.tar -T -)
	cp -r set mac # a Mac's tar has a hidden file beside each image
	echo 'no image' >mac/train/ant/._1.jpeg
	tar -cf mac.tar mac
	mkdir bad
	head -c 5000 set.tgz >bad/short.tgz
	head -c 5000 set.tar >bad/short.tar
	head -c 700 set.tar >bad/header.tar
	inputs="set.tar set.tgz names.tar mac.tar"
	if command -v xz >/dev/null; then
		xz -k set.tar
		inputs="$inputs set.tar.xz"
	fi
	for input in $inputs; do
		rm -rf out
		pack --input $input --output out
		for file in mixed/*; do
			same "out/${file#mixed/}" "$file"
		done
		expect 'left out: 2 files of other kinds'
	done
fi

part "training"
train 1 --network mlp --data-dir mixed --batch-size 4 --num-epochs 1 --num-batches 1 --log-prefix none --log-time 0
expect 'data cifar: 17 samples for training, 3 for validation'
expect_count 1 'the random crop cannot move, because images and crop are 32 x 32: --pad-size 4'
expect '^Epoch\[0\] Train-cross-entropy='
log=pack.log

part "more than ten classes"
for i in 10 11 12 13 14 15 16 17 18 19 20 21; do
	jpeg many/train/c$i/1.jpg
	jpeg many/test/c$i/1.jpg
done
pack --input many --output twelve
expect 'num-classes 12'
train 1 --network mlp --data-dir twelve --batch-size 4 --num-epochs 1 --num-classes 12
run_limited 60 1 --network mlp --data-dir twelve --batch-size 4
expect 'error: .*twelve/data_batch_1.bin: record \d+ has label 1[01]; labels must be from 0 to 9'

part "scaling"
# With a ratio of 1 the middle is cut out as it is.
jpeg wide/train/a/1.jpg 50 32
jpeg wide/test/a/1.jpg 32 41
refused 1 'wide/train/a/1.jpg: the image has 50 x 32 pixels, not 32 x 32; --resize' --input wide --output out2
[ ! -e out2/data_batch_1.bin ] || fail "an error left files"
pack --input wide --output out2 --resize
{ byte 0 && "$JPEG" read wide/train/a/1.jpg 0 9 32 32; } | cmp - out2/data_batch_1.bin || fail "not the middle of a row"
{ byte 0 && "$JPEG" read wide/test/a/1.jpg 4 0 32 32; } | cmp - out2/test_batch.bin || fail "not the middle of a column"
# scaled FILE SIDE SIZE: how far a record is from the triangle filter's result, in two dimensions at once
scaled() {
	{
		"$JPEG" read "$1" | od -An -v -tu1 -w1
		tail -c +2 "$4" | od -An -v -tu1 -w1
	} | awk -v side="$2" -v size="$3" '
		function weight(j, i, d) {
			d = (i + 0.5) * side / size - 0.5 - j
			if (d < 0) d = -d
			return d < radius ? 1 - d / radius : 0
		}
		BEGIN { radius = side > size ? side / size : 1 }
		NR <= 3 * side * side { old[NR - 1] = $1; next }
		{
			at = NR - 1 - 3 * side * side
			x = at % size; y = int(at / size) % size; c = int(at / size / size)
			sum = all = 0
			for (i = 0; i < side; i++)
				for (j = 0; j < side; j++) {
					w = weight(i, y) * weight(j, x)
					sum += w * old[(c * side + i) * side + j]
					all += w
				}
			d = sum / all - $1
			if (d < 0) d = -d
			if (d > most) most = d
		}
		END { exit !(NR == 3 * (side * side + size * size) && most <= 0.501) }' || fail "scaled from $2 to $3"
}
for sides in "12 8" "5 8" "16 8" "1 3" "7 1"; do
	side=${sides% *} size=${sides#* }
	rm -rf scale
	jpeg scale/train/a/1.jpg "$side" "$side"
	jpeg scale/test/a/1.jpg "$side" "$side"
	pack --input scale --output out3 --size "$size" --resize
	scaled scale/train/a/1.jpg "$side" "$size" out3/data_batch_1.bin
done

part "bad images"
# The output of an earlier run stays as it was, and nothing is left beside it.
fresh() {
	rm -rf damaged
	cp -R set damaged
}
cp -R mixed before
bad() {
	refused 1 "$1" --input damaged --output mixed
	diff -r before mixed >/dev/null || fail "an error changed the output: $(ls mixed)"
}
fresh
head -c 1000 set/train/bee/2.jpg >damaged/train/bee/2.jpg
bad 'damaged/train/bee/2.jpg: a corrupt image: '
fresh
printf 'noise that is no code of Huffman' | dd of=damaged/test/ant/7.jpg bs=1 seek=700 conv=notrunc 2>/dev/null
bad 'damaged/test/ant/7.jpg: a corrupt image: '
fresh
: >damaged/test/ant/7.jpg
bad 'damaged/test/ant/7.jpg: the file is empty'
fresh
echo 'no image' >damaged/train/cow/grey.jpg
bad 'damaged/train/cow/grey.jpg: no JPEG image: '
fresh
jpeg damaged/train/cow/5.jpg 32 32 cmyk
bad 'damaged/train/cow/5.jpg: a CMYK image'
fresh
jpeg damaged/train/cow/5.jpg 32 31
bad 'damaged/train/cow/5.jpg: the image has 32 x 31 pixels, not 32 x 32'
fresh
jpeg damaged/train/5.jpg
bad 'damaged/train/5.jpg: images must lie in train/CLASS/ or test/CLASS/'
fresh
jpeg damaged/train/cow/more/5.jpg
bad 'damaged/train/cow/more: a folder inside that of a class'
fresh
ln -s nowhere damaged/train/cow/5.jpg
bad 'damaged/train/cow/5.jpg: cannot be read: No such file'
fresh
rm -r damaged/test
bad 'damaged/test: the folder cannot be read: No such file'
mkdir damaged/test
bad 'no image test/CLASS/'
fresh
for i in $(seq 100 352); do
	mkdir damaged/train/x$i
	cp set/train/bee/1.jpg damaged/train/x$i
done
bad '257; labels are bytes, at most 256 classes'
rm -r damaged/train/x352
pack --input damaged --output 256

if [ $has_tar = yes ]; then
	part "bad tar files"
	fresh
	damaged() {
		refused 1 "$1" --input "$2" --output mixed
		diff -r before mixed >/dev/null || fail "an error changed the output: $(ls mixed)"
	}
	damaged 'bad/short.tgz' bad/short.tgz
	damaged 'bad/short.tar' bad/short.tar
	damaged 'bad/header.tar: .*damaged' bad/header.tar
	damaged 'plain.txt: is n' plain.txt
	: >empty.tar
	damaged 'no image train/CLASS/|empty.tar' empty.tar
	(cd set && tar --hard-dereference -cf ../twice.tar test train train/cow)
	damaged 'train/cow/grey.jpg: the image is there twice' twice.tar
	head -c 1000 set/train/bee/2.jpg >damaged/train/bee/2.jpg
	tar -cf bad.tar damaged
	damaged 'damaged/train/bee/2.jpg: a corrupt image' bad.tar
	ln -sf 1.jpg damaged/train/bee/2.jpg
	tar -cf bad.tar damaged
	damaged 'damaged/train/bee/2.jpg is a link' bad.tar
	jpeg flat/1.jpg
	tar -cf bad.tar flat
	damaged 'flat/1.jpg: images must lie in train/CLASS/' bad.tar
fi

part "options"
refused 2 '--input PATH is missing' --output out
refused 2 '--output DIR is missing' --input set
refused 2 'size: 0 is out of range' --input set --output out --size 0
refused 2 'shuffle: -2 is out of range' --input set --output out --shuffle -2
refused 2 'per-file: 0 is out of range' --input set --output out --per-file 0
refused 1 'nowhere: cannot be read' --input nowhere --output out
refused 1 'plain.txt: is there, but is not a folder' --input set --output plain.txt
mkdir -p blocked/test_batch.bin
refused 1 'test_batch.bin.*cannot be renamed' --input set --output blocked
ls blocked | grep -q tmp && fail "left behind: $(ls blocked)"
pack --help
expect ' --input PATH'
finish
