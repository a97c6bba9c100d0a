#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tools for record files: im2rec, rec2idx, h5rec, recinfo. What one writes another reads, round
# trips give equal bytes, and what is wrong is told.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export LC_ALL=C
JPEG=$BUILDDIR/mpi_tests/lib/make_jpeg
log=tool.log

# tool NAME ARGUMENT...: must succeed
tool() {
	timeout 30 "$BUILDDIR/$1" "${@:2}" >"$log" 2>&1 </dev/null || {
		fail "$*"
		show_log
	}
	expect_none 'Sanitizer|runtime error'
}

# refused STATUS REGEX NAME ARGUMENT...: an error, which matches.
refused() {
	local want=$1 regex=$2 st
	shift 2
	timeout 30 "$BUILDDIR/$1" "${@:2}" >"$log" 2>&1 </dev/null
	st=$?
	[ $st = "$want" ] || fail "exit status $st, not $want, of $*"
	expect "$1: (error: )?.*$regex"
	expect_none 'Sanitizer|runtime error'
}

same() {
	cmp "$1" "$2" || fail "$1 and $2 differ"
}

has() {
	"$BUILDDIR/h5rec" "$1" "$2" 2>&1 | grep -q "this build has no $3" && return 1
	return 0
}

if [ ! -x "$JPEG" ]; then
	echo "skip: this build has no libjpeg, of which the test makes its images"
	exit 77
fi
# Classes ant (4 images), bee (3), cow (none), dog (5, grey).
mkdir -p set/ant set/bee set/cow set/dog
for i in 1 2 3 4; do "$JPEG" write set/ant/$i.jpg 32 32 rgb $i; done
for i in 1 2 3; do "$JPEG" write set/bee/b$i.JPG 32 32 rgb 1$i; done
for i in 1 2 3 4 5; do "$JPEG" write set/dog/$i.jpeg 32 32 grey 2$i; done
echo text >set/bee/notes.txt
"$BUILDDIR/h5rec" set probe.rec >/dev/null || fail "no probe.rec"
h5=yes png=yes tar=yes
has probe.rec probe.h5 HDF5 || h5=no
has probe.rec probe.tar libarchive || tar=no
"$BUILDDIR/im2rec" --list --recursive probe set >/dev/null
"$BUILDDIR/im2rec" --encoding .png probe set 2>&1 | grep -q 'no libpng' && png=no
rm -f probe*
echo "HDF5 $h5, libpng $png, libarchive $tar"

part "a folder to .rec and back"
tool h5rec set a.rec
expect '^h5rec: 12 images of set in a.rec'
[ "$(wc -l <a.idx)" = 12 ] || fail "lines of a.idx"
tool recinfo a.rec
expect '12 records, 1 label each'
expect '^ +0 +4 \*+ ant$'
expect '^ +2 +0  cow$'
expect '^ +3 +5 \*{40} dog$'
expect '^no errors$'
tool h5rec a.rec back/
[ "$(ls back | tr '\n' ' ')" = "ant bee cow dog " ] || fail "folders: $(ls back)"
same back/bee/000000005.jpg set/bee/b2.JPG
tool h5rec back b.rec
same a.rec b.rec
same a.idx b.idx
same a.classes b.classes
refused 1 'back: cannot be replaced' h5rec a.rec back
refused 2 'tells no kind of file' h5rec a.rec a.foo
refused 1 'none.rec: cannot be read' h5rec none.rec b.rec
refused 2 'expected INPUT OUTPUT' h5rec a.rec
refused 2 'one word too many' h5rec a.rec b.rec c.rec
refused 2 'unknown option --cuont' h5rec a.rec b.rec --cuont 3
same a.rec b.rec

part "names of classes"
cp a.rec unnamed.rec
tool h5rec unnamed.rec numbered/
[ "$(ls numbered | tr '\n' ' ')" = "00000 00001 00002 00003 " ] || fail "folders: $(ls numbered)"
tool h5rec unnamed.rec b.rec
[ ! -e b.classes ] || fail "b.classes names the classes of records that were there before"
echo mine >b.classes
tool h5rec unnamed.rec b.rec
[ "$(cat b.classes)" = mine ] || fail "b.classes, which Muster has not written, is another"
tool recinfo b.rec
expect '^ +0 +4 \*+$'
head -c 45 a.classes >b.classes
refused 1 'b.classes: its last line is cut off' recinfo b.rec
sed 's/bee//' a.classes >b.classes
refused 1 'b.classes: class 1 has no name' recinfo b.rec
sed 's/bee/b\x00e/' a.classes >b.classes
refused 1 'b.classes: is no text: byte 41 is zero' recinfo b.rec
rm b.classes

part "parts, and several files as one"
tool h5rec a.rec p1.rec --count 5
tool h5rec --first=5 --count 4 a.rec p2.rec
tool h5rec a.rec --first 9 p3.rec
expect '^h5rec: 3 images'
for name in n.rec n.h5 n.bin n-images-idx3-ubyte n.tar n/; do
	case $name in *.h5) [ $h5 = yes ] || continue;; *.tar) [ $tar = yes ] || continue;; esac
	refused 2 "$name: there are no records to write" h5rec a.rec --first 12 $name
	[ ! -e $name ] || fail "$name was made of no records"
done
tool h5rec 'p1.rec;p2.rec;p3.rec' whole.rec
same whole.rec a.rec

part "rec2idx"
tool rec2idx a.rec new.idx
expect '^rec2idx: 12 records of a.rec in new.idx'
same new.idx a.idx
head -c 1000 a.rec >short.rec
refused 2 'a.rec: is the file of the records itself' rec2idx a.rec ./a.rec
same a.rec b.rec
refused 1 'short.rec: the record at byte 0 claims' rec2idx short.rec short.idx
[ ! -e short.idx ] || fail "an error left an index"

part "ids that come twice"
tool h5rec 'a.rec;a.rec' twins.rec
refused 1 'two records of a class have this id; --renumber' h5rec twins.rec twins/
[ ! -e twins ] || fail "an error left twins"
[ $tar = no ] || refused 1 'twins.tar: two records of class 0 have the id 0, .*--renumber' h5rec twins.rec twins.tar
[ ! -e twins.tar ] || fail "an error left twins.tar"
refused 1 'h5rec --renumber gives new ones' recinfo twins.rec
tool h5rec twins.rec twins/ --renumber
[ "$(find twins -name '*.jpg' | wc -l)" = 24 ] || fail "images of twins"
tool h5rec twins.rec new-ids.rec --renumber
tool recinfo new-ids.rec
[ "$(tail -n 1 new-ids.idx | cut -f 1)" = 23 ] || fail "keys of new-ids.idx"

if [ $tar = yes ]; then
	part "tar files"
	for name in t.tar t.tar.gz x.train.tar; do
		tool h5rec a.rec $name
		tool h5rec $name t.rec
		same t.rec a.rec
	done
	cp a.rec x.target.rec
	cp a.idx x.target.idx
	tool h5rec x.target.rec t.rec
	same t.rec a.rec
	cp t.tar.gz first.tar.gz
	sleep 1
	tool h5rec a.rec t.tar.gz
	same t.tar.gz first.tar.gz # equal bytes, at another time
	# Another order of the entries: other records, but the same ids and labels.
	(cd set && find . -name '*.*g' -o -name '*.JPG' -o -name cow | sort -r |
		tar -cf ../reverse.tar --no-recursion -T -)
	tool h5rec reverse.tar r.rec
	tool recinfo r.rec
	expect '^ +3 +5 '
	[ "$(cut -f 1 r.idx | sort -n | tr '\n' ' ')" = "0 1 2 3 4 5 6 7 8 9 10 11 " ] || fail "ids of reverse.tar"
	tar -cf flat.tar -C set/ant .
	refused 1 'flat.tar: .*lies in no folder' h5rec flat.tar x.rec
	tar -cf two.tar set/ant back/ant
	refused 1 'do not lie in folders side by side' h5rec two.tar x.rec
	head -c 3000 t.tar >cut.tar
	refused 1 'cut.tar' h5rec cut.tar x.rec
	[ ! -e x.rec ] || fail "an error left x.rec"
fi

if [ $h5 = yes ]; then
	part ".rec to .h5 to a folder to .rec"
	tool h5rec a.rec a.h5
	tool h5rec a.h5 from-h5/
	tool h5rec from-h5 c.rec
	same c.rec a.rec
	tool h5rec a.h5 d.rec
	same d.rec a.rec
	tool recinfo a.h5
	expect '^checksum +[0-9a-f]{8}, right$'
	expect '^no errors$'
	tool h5rec set named.h5
	tool recinfo named.h5
	expect '^ +2 +0  cow$'
	tool h5rec named.h5 named/
	[ "$(ls named | tr '\n' ' ')" = "ant bee cow dog " ] || fail "class names: $(ls named)"
	tool recinfo named.h5 --num-classes 99999
	refused 2 'a.h5;named.h5: 2 paths.*only RecordIO, tar and CIFAR' recinfo 'a.h5;named.h5'
	if command -v h5dump >/dev/null; then
		h5dump -H a.h5 >"$log" 2>&1 || fail "h5dump"
		expect 'DATASET "images"'
		expect 'ATTRIBUTE "units"'
		expect 'SIMPLE \{ \( 12, 1 \) / \( 12, 1 \) \}'
		h5dump -d ids -y a.h5 | grep -q '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11' || fail "h5dump shows other ids"
	fi
	if command -v h5repack >/dev/null; then
		h5repack -j 1 -l images:CHUNK=100 a.h5 chunks.h5
		refused 1 'chunks.h5: array "images" is not contiguous.*h5repack' recinfo chunks.h5
		h5repack -j 0 a.h5 old.h5
		refused 1 'old.h5: is in HDF5.s old file format.*h5repack -j 1' recinfo old.h5
		h5repack -j 1 old.h5 new.h5
		tool recinfo new.h5
		h5repack -j 1 -l labels:CHUNK=4x1 -f labels:GZIP=9 a.h5 zip.h5
		refused 1 'zip.h5: array "labels" claims.*compressed' recinfo zip.h5
	fi
	cp a.h5 bad.h5
	at=$(grep -abo 'JFIF' a.h5 | sed -n '3s/:.*//p')
	printf '\377' | dd of=bad.h5 bs=1 seek=$((at + 400)) conv=notrunc 2>/dev/null
	refused 1 'their checksum is [0-9a-f]+; expected' recinfo --no-decode bad.h5

	part "pixels: CIFAR, IDX, raw HDF5"
	tool h5rec a.rec raw.h5 --raw
	tool recinfo raw.h5
	expect 'raw, 32 x 32 pixels of 3 channels'
	tool h5rec a.rec a.bin
	[ "$(wc -c <a.bin)" = $((12 * 3073)) ] || fail "size of a.bin"
	{ printf '\001' && "$JPEG" read set/bee/b1.JPG; } >want
	tail -c +$((4 * 3073 + 1)) a.bin | head -c 3073 | cmp - want || fail "a record of a.bin"
	tool h5rec raw.h5 b.bin
	same b.bin a.bin
	if [ $png = yes ]; then
		tool h5rec a.bin png.rec
		tool recinfo png.rec
		expect '^images +0 JPEG, 12 PNG'
		tool h5rec png.rec c.bin
		same c.bin a.bin
	fi
	refused 1 'record 0.*a colour image' h5rec a.rec x-images-idx3-ubyte
	tool h5rec --first 7 a.rec x-images-idx3-ubyte
	tool h5rec x-images-idx3-ubyte x.h5
	expect '^h5rec: 5 images'
	tool h5rec x-images-idx3-ubyte y-images-idx3-ubyte.gz
	tool h5rec y-images-idx3-ubyte.gz z-images-idx3-ubyte
	same x-images-idx3-ubyte z-images-idx3-ubyte
	same x-labels-idx1-ubyte z-labels-idx1-ubyte
	tail -c +17 x-images-idx3-ubyte | head -c 1024 >got
	"$JPEG" read set/dog/1.jpeg | head -c 1024 | cmp - got || fail "an image of x-images"
	if [ $png = yes ]; then
		tool h5rec x.h5 w-images-idx3-ubyte
		same x-images-idx3-ubyte w-images-idx3-ubyte
	fi
fi

part "recinfo finds what is wrong"
cp a.rec bad.rec
refused 1 'bad.rec, record 7 .*label 3; labels must be whole numbers from 0 to 2' recinfo --num-classes 3 bad.rec
expect 'bad.rec: 5 errors in 12 records'
refused 1 'has 1 labels; expected 2' recinfo --label-width 2 bad.rec
at=$(sed -n 4p a.idx | cut -f 2)
printf 'garbage' | dd of=bad.rec bs=1 seek=$((at + 32)) conv=notrunc 2>/dev/null
refused 1 "bad.rec, record 3 .key 3. at byte $at: neither a JPEG nor a PNG" recinfo bad.rec
cp a.idx bad.idx # without it the file cannot be opened
printf 'xxxx' | dd of=bad.rec bs=1 seek="$at" conv=notrunc 2>/dev/null
refused 1 "no record at byte $at: found 78 78 78 78" recinfo bad.rec
expect '1 error in 12 records' # the others are looked at
cat a.rec a.rec >twice.rec
refused 1 '12 records have the id of another one' recinfo twice.rec
cp a.idx twice.idx
refused 1 'twice.idx: its records are bytes 0 to .*not of all of it' recinfo twice.rec
head -c $(($(wc -c <a.rec) - 100)) a.rec >cut.rec
refused 1 'cut.rec: the record at byte' recinfo cut.rec
refused 1 'cut.rec: the record at byte [0-9]+ claims' recinfo --index a.idx cut.rec
: >empty.rec
refused 1 'empty.rec: the file is empty' recinfo empty.rec
refused 2 'expected PATH' recinfo
tool recinfo set --num-classes 99999
expect '^ +3 +5 \*+ dog$'
# What the trainer takes is not wrong.
mkdir -p odd/a
"$JPEG" write odd/a/1.jpg 30 20 cmyk 1
"$JPEG" write odd/a/2.jpg 30 20 rgb 2
printf 'stray' >>odd/a/2.jpg
tool recinfo odd
tool im2rec --list --recursive odd odd
tool im2rec odd odd

part "options without effect"
told() { # REGEX NAME ARGUMENT...: one warning, which matches; without REGEX none
	tool "${@:2}"
	expect_count $((0 + (${#1} > 0))) 'warning: '
	[ -z "$1" ] || expect "^$2: warning: $1\$"
}
lists="--list --recursive void set"
told '--resize 20, --quality 80 have no effect with --list: no images .*' im2rec $lists --resize 20 --quality 80
told '' im2rec $lists --no-shuffle --resize 0; told '' h5rec set void.rec
told '--seed 7 has no effect with --shuffle 0: a list in order has nothing .*' im2rec $lists --no-shuffle --seed 7
told '--recursive, --chunks 2 have no effect without --list: .*' im2rec void set --recursive --chunks 2
told '--quality 80 has no effect with --encoding .png: it is of .jpg' h5rec set void.rec --quality 80
told '--encoding .png has no effect: the images are encoded already, .*' h5rec set void.rec --encoding .png

part "im2rec: lists"
tool im2rec --list --recursive --no-shuffle l set
printf '0\t0.000000\tant/1.jpg\n' | cmp - <(head -n 1 l.lst) || fail "first line: $(head -n 1 l.lst)"
printf '11\t2.000000\tdog/5.jpeg\n' | cmp - <(tail -n 1 l.lst) || fail "last line: $(tail -n 1 l.lst)"
[ "$(wc -l <l.lst)" = 12 ] || fail "lines of l.lst"
tool im2rec --list m set/ant --exts .jpg
[ "$(cut -f 2 m.lst | sort -u)" = 0.000000 ] || fail "labels without --recursive"
tool im2rec --list --recursive s set
cmp -s s.lst l.lst && fail "not shuffled"
sort -n s.lst | cmp - l.lst || fail "shuffled: other lines"
tool im2rec --list --recursive --shuffle 0 --chunks 2 --train-ratio 0.5 --test-ratio 0.25 c set
[ "$(cat c_*.lst | sort -n)" = "$(cat l.lst)" ] || fail "chunks and parts: other lines"
[ "$(wc -l <c_1_train.lst) $(wc -l <c_0_test.lst) $(wc -l <c_0_val.lst)" = "3 1 2" ] || fail "sizes of parts"
tool im2rec --list --recursive --train-ratio 0.71 --test-ratio 0.29 d set
[ "$(wc -l <d_test.lst) $(wc -l <d_train.lst)" = "3 9" ] || fail "shares of 0.29 and 0.71: $(wc -l d_*.lst)"
[ ! -e d_val.lst ] || fail "shares of 0.29 and 0.71 leave something for d_val.lst"
mkdir -p names && cp set/ant/1.jpg names/$'one\ttwo.jpg'
refused 1 'the name holds a tab' im2rec --list x names
refused 2 'more than 1 together' im2rec --list --train-ratio 0.8 --test-ratio 0.3 c set
refused 1 'set: no images.*--recursive' im2rec --list x set
refused 1 'nowhere: the folder cannot be read' im2rec --list x nowhere

part "im2rec: packing"
tool im2rec --pass-through l set
# The folder without images is no class of im2rec.
tool recinfo l.rec
expect '^ +2 +5 '
tool h5rec l.rec l/
same l/ant/000000001.jpg set/ant/2.jpg
[ "$(tail -n +2 l.classes | tr '\n' ' ')" = "ant bee dog " ] || fail "names of classes: $(cat l.classes)"
grep bee l.lst >part_val.lst && grep ant l.lst >part_train.lst
tool im2rec part set
same part_val.classes part_train.classes
[ "$(tail -n +2 part_val.classes | tr '\n' ' ')" = "ant bee " ] || fail "names of two lists: $(cat part_val.classes)"
for lines in '0\t0\tant/1.jpg\n1\t1\tant/2.jpg' '0\t0\tant/1.jpg\n1\t0\tbee/b1.JPG' '0\t1\tant/1.jpg'; do
	printf "$lines\n" >odd.lst
	tool im2rec odd set
	[ ! -e odd.classes ] || fail "names of $lines: $(cat odd.classes)"
done
refused 1 'none\*.lst: no such list; make one with --list --recursive none ROOT' im2rec none set
tool im2rec s set --resize 20 --quality 80 --num-thread 3
mv s.rec three.rec
tool im2rec s set --resize 20 --quality 80
same s.rec three.rec
cut -f 1 s.idx | cmp - <(cut -f 1 s.lst) || fail "keys are not those of the list"
tool recinfo s.rec
expect '^width +20 to 20'
"$JPEG" write wide.jpg 50 30 rgb 7
mkdir wide && mv wide.jpg wide/
tool im2rec --list wide wide
tool im2rec wide wide --resize 60
tool recinfo wide.rec
expect '^width +100 to 100'
expect '^height +60 to 60'
"$JPEG" write wide/tall.jpg 30 50 rgb 8
printf '0\t0\ttall.jpg\n' >tall.lst
tool im2rec tall wide --resize 60
tool recinfo tall.rec
expect '^width +60 to 60'
expect '^height +100 to 100'
tool im2rec wide wide --center-crop
tool recinfo wide.rec
expect '^width +30 to 30'
if [ $png = yes ]; then
	# Nothing is lost: the middle square as libjpeg decodes it.
	tool im2rec wide wide --center-crop --encoding .png
	tool h5rec wide.rec wide-png/
	"$JPEG" read wide/wide.jpg 0 10 30 30 >want
	tool im2rec wide wide --encoding .png --color 0
	tool h5rec wide.rec grey-images-idx3-ubyte
	[ "$(wc -c <grey-images-idx3-ubyte)" = $((16 + 1500)) ] || fail "a grey PNG image"
fi
if [ $png = yes ] && [ $h5 = yes ]; then
	# Where pixel (i, j) of 5 x 7 lies in the upright picture of so many columns: Exif 2.3, tag 274.
	turned=('' 'i j 7' 'i 6-j 7' '4-i 6-j 7' '4-i j 7' 'j i 5' 'j 4-i 5' '6-j 4-i 5' '6-j i 5')
	mkdir turn
	"$JPEG" write turn/plain.jpg 7 5 grey 9
	"$JPEG" read turn/plain.jpg | head -c 35 | od -An -v -tu1 -w1 >plain.txt
	for o in 1 2 3 4 5 6 7 8; do
		read -r row column width <<<"${turned[o]}"
		"$JPEG" write turn/photo.jpg 7 5 grey 9 $o
		printf '0\t0\tphoto.jpg\n' >turn.lst
		tool im2rec turn turn --encoding .png --color -1
		tool h5rec turn.rec turn-images-idx3-ubyte
		tail -c +17 turn-images-idx3-ubyte | od -An -v -tu1 -w1 >got.txt
		awk "{ k = NR - 1; j = k % 7; i = (k - j) / 7; v[($row) * $width + $column] = \$0 }
			END { for (k = 0; k < 35; k++) print v[k] }" plain.txt >want.txt
		cmp got.txt want.txt || fail "orientation $o"
		tool recinfo turn.rec
		expect "^width +$width to $width,"
	done
	tool im2rec turn turn --pass-through
	tool h5rec turn.rec turned/
	same turned/00000/000000000.jpg turn/photo.jpg
	tool h5rec turn.rec turned.h5 --raw
	tool recinfo turned.h5
	expect 'raw, 5 x 7 pixels of 3 channels' # width x height
fi
printf '7\t1\t2.5\twide.jpg\n' >two.lst
tool im2rec two wide --pack-label
tool recinfo two.rec --label-width 2
tool im2rec two wide
tool recinfo two.rec --label-width 1
if [ $h5 = yes ]; then
	tool im2rec --format h5 --pass-through l set
	tool h5rec l.h5 from-list.rec
	same from-list.rec l.rec
fi
echo text >wide/bad.jpg
printf '7\t1\twide.jpg\n8\t0\tbad.jpg\n' >bad.lst
rm -f bad.rec
refused 1 'wide/bad.jpg: neither a JPEG nor a PNG' im2rec bad wide
[ ! -e bad.rec ] || fail "an error left bad.rec"
tool im2rec bad wide --skip-bad
expect 'left out: wide/bad.jpg'
expect '1 image of .*bad.lst.*1 left out'
printf '7\t1\n' >bad.lst
refused 1 'bad.lst: line 1 is "7.1"; expected' im2rec bad wide
for option in '--resize 3' --center-crop '--color 0' '--encoding .png' '--quality 80'; do
	# shellcheck disable=SC2086 # an option and its value
	refused 2 'leave --resize, --center-crop, --color, --encoding and --quality out' \
		im2rec l set --pass-through $option
done

part "what a list lacks"
tool im2rec --list --recursive --train-ratio 0.95 --test-ratio 0.05 part set
tool im2rec part set
expect 'part_test.lst is empty: nothing is packed'
[ -s part_train.rec ] && [ ! -e part_test.rec ] || fail "parts: $(ls part*)"
: >none.lst
refused 1 'none\*.lst: no list holds a line' im2rec none set
# A list of its own has classes that its images lack.
printf '0\t0\tant/1.jpg\n1\t2\tdog/1.jpeg\n' >split_train.lst
printf '2\t1\tbee/b1.JPG\n' >split_val.lst
for p in train val; do
	tool im2rec split_$p set
	[ "$(tail -n +2 split_$p.classes | tr '\n' ' ')" = "ant bee dog " ] || fail "names of $p"
done
rm split_val.lst
tool im2rec split_train set
expect 'the names of classes are not kept: no list has an image of class 1'
# An image in no folder, before or after others
cp set/ant/1.jpg set/top.jpg
printf '0\t0\tant/1.jpg\n1\t1\ttop.jpg\n' >split_train.lst
tool im2rec split_train set
expect 'the names of classes are not kept: image top.jpg lies in no folder that names a class'
printf '0\t0\ttop.jpg\n1\t1\tant/1.jpg\n' >split_train.lst
tool im2rec split_train set
expect 'the names of classes are not kept: image top.jpg lies in no folder'
printf '0\t0\ttop.jpg\n1\t1\ttop.jpg\n' >split_train.lst
tool im2rec split_train set
expect_none 'names of classes'
rm set/top.jpg
printf '0\t16777217\tant/1.jpg\n' >large.lst
refused 1 'large.lst: line 1 has label 16777217' im2rec large set
mkdir thin && "$JPEG" write thin/thin.jpg 1 300 rgb 1
printf '0\t0\tthin.jpg\n' >thin.lst
refused 1 'thin/thin.jpg: .*65500' im2rec thin thin --resize 256

part "names that a terminal would obey"
mkdir -p odd/$'a\e[31m'
cp set/ant/1.jpg odd/$'a\e[31m'/1.jpg
echo text >odd/$'a\e[31m'/$'x\e[31m\nrecinfo: error: forged.txt'
# raw: the last output has no control characters, and no line of a file's name
raw() {
	grep -qaP '[\x00-\x08\x0b-\x1f\x7f]' "$log" && fail "$1: control characters: $(cat -v "$log")"
	expect_none '^recinfo: error'
}
tool recinfo odd
expect '^left out   1 file of another kind \(a\\x1b\[31m/x'
raw recinfo
tool h5rec odd odd.rec
expect 'h5rec: left out: 1 file of another kind \(a\\x1b'
raw h5rec
tool im2rec --list --recursive $'odd\e[1m' odd
raw "im2rec --list"
tool im2rec $'odd\e[1m' odd
raw im2rec
printf '0\t0\ta\e[31m/1.jpg\n1\t2\tb/1.jpg\n' >$'odd\e[1m.lst'
mkdir -p odd/b && cp set/ant/1.jpg odd/b
tool im2rec $'odd\e[1m' odd
expect 'the names of classes are not kept'
raw im2rec
: >$'odd\e[1m.lst'
printf '0\t0\tb/1.jpg\n' >$'odd\e[1m2.lst'
tool im2rec $'odd\e[1m' odd
expect 'is empty: nothing is packed'
raw im2rec

part "labels that are none"
# A label stands at byte 12 of a record; these are NaN and -1.
for label in '\000\000\300\177' '\000\000\200\277'; do
	cp a.rec label.rec
	# shellcheck disable=SC2059 # the label is a format
	printf "$label" | dd of=label.rec bs=1 seek=12 conv=notrunc status=none
	case $label in
	*177) refused 1 'label.rec, record 0 .*has label (-)?nan' recinfo label.rec ;;
	*) tool recinfo label.rec && expect '1 label is no number of a class, the first is -1 of label.rec, record 0' ;;
	esac
	expect_none '^no errors'
done

mkdir lists && cp l.lst lists/inside.lst
tool im2rec lists set --pass-through
same lists/inside.rec l.rec
for name in im2rec h5rec recinfo rec2idx; do
	tool $name --help
	expect "^usage: $name "
done
finish
