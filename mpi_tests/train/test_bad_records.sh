#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 400
# Damaged .rec, .idx and .h5 files and images, and files that change during training, as a user meets them: on
# one and three ranks the trainer ends within seconds, with status 2, or 1 once it reads records, and says which
# file, record and byte it is and what was expected.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export LC_ALL=C
JPEG=$BUILDDIR/mpi_tests/lib/make_jpeg

if [ ! -x "$JPEG" ]; then
	echo "skip: this build has no libjpeg, of which the test makes its images"
	exit 77
fi
plain="--network mlp --batch-size 4 --num-epochs 2 --image-shape 3,20,20 --num-classes 3 --lr 0.001 --devices ref
	--log-prefix none --log-time 0"

# refused REGEX ARGUMENT...: on one rank and on three workers, in the tier quick on either in turn. What all find when
# they open the files is told once; what a worker finds in a record, by each that finds it before the job ends.
turn=
refused() {
	local regex=$1 np
	shift
	in_tier full || turn=$((${turn:-3} == 1 ? 3 : 1))
	for np in ${turn:-1 3}; do
		store=
		[ $np = 1 ] || store="--kv-store dist_sharded"
		run_limited 60 $np $plain $store "$@"
		[ $status = 1 ] || [ $status = 2 ] || fail "exit status $status, not 1 or 2, of -n $np $*"
		expect "error: .*$regex"
		expect_none "$crashes"
	done
}

# poke FILE OFFSET BYTES: as printf writes them
poke() {
	printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

fresh() {
	cp whole.rec bad.rec
	cp whole.idx bad.idx
}

# byte I: where record I begins
byte() {
	sed -n "$(($1 + 1))p" whole.idx | cut -f 2
}

mkdir -p set/ant set/bee set/cow
for i in 1 2 3 4 5 6 7 8; do
	for class in ant bee cow; do "$JPEG" write set/$class/$i.jpg 30 26 rgb $i; done
done
"$BUILDDIR/h5rec" set whole.rec >h5rec.log || fail "no whole.rec"
bad="--data-train bad.rec"
size=$(wc -c <whole.rec)

part ".rec files"
fresh
train 3 $plain $bad --kv-store dist_sharded
for length in 3 $((size / 8 * 4)) $((size - 4)) $((size - 1)); do
	fresh
	head -c $length whole.rec >bad.rec
	refused 'bad.(rec|idx): ' $bad
	rm bad.idx # the records are found without it
	refused 'bad.rec: .*(byte [0-9]+ claims|[0-9]+ bytes are not a multiple of 4)' $bad
done
fresh
: >bad.rec
refused 'bad.rec: the file is empty' $bad
fresh
poke bad.rec "$(byte 5)" 'xxxx'
refused "bad.rec: .*no record at byte $(byte 5): found 78 78 78 78" $bad
rm bad.idx
refused "bad.rec: .*no record at byte $(byte 5): found 78 78 78 78" $bad
fresh
poke bad.rec $(($(byte 5) + 4)) '\377\377\377\037' # a length of 2^29 - 1
refused "bad.rec: the record at byte $(byte 5) claims 536870911 bytes" $bad
rm bad.idx
refused "bad.rec: the record at byte $(byte 5) claims 536870911 bytes" $bad
fresh
poke bad.rec $(($(byte 5) + 8)) '\1\0\0\0' # labels that the header of the image counts
refused "bad.rec, record 5 .key 5. at byte $(byte 5)" $bad
fresh
poke bad.rec $(($(byte 7) + 12)) '\0\0\200\100' # label 4
refused "bad.rec, record 7 .*at byte $(byte 7)\)?: .*label 4" $bad
fresh
poke bad.rec $(($(byte 7) + 12)) '\0\0\300\177' # not a number
refused "bad.rec, record 7 .*at byte $(byte 7).* label nan" $bad
fresh
poke bad.rec $(($(byte 9) + 32)) 'GIF89a'
refused "bad.rec, record 9 .key 9. at byte $(byte 9) .id 9.: neither a JPEG nor a PNG" $bad

part ".idx files"
fresh
head -n 20 whole.idx >bad.idx
refused 'bad.idx: its records are bytes 0 to .*not of all of it' $bad
fresh
sed -i '4s/.*/3\t77/' bad.idx
refused 'bad.idx.*' $bad
fresh
sed -i '4s/.*/three\t77/' bad.idx
refused 'bad.idx.*line 4' $bad
fresh
: >bad.idx
refused 'bad.idx' $bad
fresh
sed -i "24s/.*/23\t$((size + 400))/" bad.idx
refused 'bad.idx' $bad

part "images"
# image FILE: record 2 of bad.rec is this file
image() {
	rm -rf one
	cp -R set one
	cp "$1" one/ant/3.jpg
	"$BUILDDIR/h5rec" one bad.rec >h5rec.log || fail "no bad.rec of $1"
}
head -c 500 set/ant/1.jpg >cut.jpg
image cut.jpg
refused 'bad.rec, record 2 .*id 2.: JPEG image of .*500 bytes: Premature end' $bad
cp set/ant/1.jpg huge.jpg
at=$(($(grep -abo $'\xff\xc0' huge.jpg | head -n 1 | cut -d : -f 1) + 5))
poke huge.jpg $at '\100\0\100\0'
image huge.jpg
refused 'bad.rec, record 2 .*id 2.: JPEG image' $bad
printf '\377\330\377' >head.jpg
image head.jpg
refused 'bad.rec, record 2 .*id 2.: JPEG image of 3 bytes' $bad
for kind in cmyk grey; do
	"$JPEG" write $kind.jpg 30 26 $kind 3
	image $kind.jpg
	train 3 $plain $bad --kv-store dist_sharded
done
"$JPEG" write one.jpg 1 1 rgb 3
image one.jpg
train 3 $plain $bad --kv-store dist_sharded

part "too few records"
fresh
for np in 1 3; do
	run_limited 60 $np $plain $bad --kv-store $([ $np = 1 ] && echo local || echo dist_sharded) --batch-size 25
	[ $status = 2 ] || fail "exit status $status, not 2, of a batch larger than a part"
	expect_count 1 "error: .*larger than a worker's part of 24 training records over $np w.*ble is $((24 / np))"
done
"$BUILDDIR/h5rec" whole.rec two.rec --count 2 >h5rec.log
run_limited 60 3 $plain --data-train two.rec --kv-store dist_sharded --batch-size 1
[ $status = 2 ] || fail "exit status $status, not 2, of 2 records for 3 workers"
expect_count 1 'error: .*2 training records are too few for 3 workers'

part "files that change during training"
# changed REGEX COMMAND: after the first epoch; on one rank, above the tier quick, and on three
changed() {
	local regex=$1 np left pid
	for np in $(in_tier full && echo 1) 3; do
		fresh
		[ ! -e whole.h5 ] || cp whole.h5 bad.h5
		store=
		[ $np = 1 ] || store="--kv-store dist_sharded"
		new_mark
		rm -f "$log"
		(launch 100 $np $plain $store --num-epochs 1000000 --disp-batches 1000 --data-train $3) &
		pid=$!
		for _ in $(seq 3000); do
			grep -q '^Epoch\[1\]' "$log" 2>/dev/null && break
			sleep 0.02
		done
		eval "$2"
		wait $pid
		status=$?
		left=$(leftovers)
		[ -z "$left" ] || fail "left running: ${left//$'\n'/ }"
		[ $status = 1 ] || fail "exit status $status, not 1, after $2"
		expect "error: .*$regex"
		expect_none "$crashes"
	done
}
changed 'bad.rec.*' 'head -c 3000 whole.rec >bad.rec' bad.rec
changed 'bad.rec.*changed' 'echo more >>bad.rec' bad.rec
if has_files; then
	"$BUILDDIR/h5rec" set whole.h5 >h5rec.log || fail "no whole.h5"
	changed 'bad.h5' 'head -c 3000 whole.h5 >bad.h5' bad.h5
	changed 'bad.h5.*changed' 'echo more >>bad.h5' bad.h5
fi
finish
