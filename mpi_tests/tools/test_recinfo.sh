#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# recinfo on RecordIO files whose records are no images: --no-decode describes them, everything else refuses them.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
log=recinfo.log

# recinfo_gives STATUS ARGUMENT...
recinfo_gives() {
	timeout 30 "$BUILDDIR/recinfo" "${@:2}" >"$log" 2>&1 </dev/null
	status=$?
	[ $status = "$1" ] || { fail "exit status $status, not $1, of recinfo ${*:2}" && show_log; }
	expect_none 'Sanitizer|runtime error'
}

# record TEXT: one record of RecordIO
record() {
	# shellcheck disable=SC2059 # the length is a format
	printf "\\n#\\327\\316\\x$(printf %02x ${#1})\\0\\0\\0"
	printf '%s' "$1"
	head -c $(((4 - ${#1} % 4) % 4)) /dev/zero
}

{ record "a word" && record "of the second record, which is longer"; } >words.rec
recinfo_gives 1 words.rec
expect 'words.rec, record 0'
recinfo_gives 0 --no-decode words.rec
expect '^words.rec: RecordIO, 2 records without headers of images$'
expect '^bytes      6 to 37, mean 21.5$'
expect '^checksum   [0-9a-f]{8} '
expect '^no errors$'
recinfo_gives 0 --no-decode 'words.rec;words.rec'
expect '4 records without headers'
printf '0\t0\n1\t16\n' >some.idx
recinfo_gives 0 --no-decode --index some.idx words.rec
expect '2 records without headers'

part "what is wrong is reported all the same"
recinfo_gives 1 --no-decode --label-width 1 words.rec
expect 'words.rec, record 0'
{ record "a word" && record "cut" && record "of the third"; } | head -c 44 >cut.rec
recinfo_gives 1 --no-decode cut.rec
expect 'cut.rec'
recinfo_gives 1 --no-decode no.rec
expect 'no.rec'
# One image among words: a file of images with a damaged record.
image=$(printf 'i%.0s' $(seq 30))
{ record "a word" && record "$image" | tr i '\0'; } >mixed.rec
recinfo_gives 1 --no-decode mixed.rec
expect 'mixed.rec, record 0'

part "a damaged data file is not copied"
if has_files && small_set set 20 10 && "$BUILDDIR/h5rec" set/train-images-idx3-ubyte.gz good.h5 --raw >"$log" 2>&1; then
	cp good.h5 bad.h5
	printf '\1\2\3\4' | dd of=bad.h5 bs=1 seek=$(($(stat -c %s bad.h5) - 8000)) conv=notrunc status=none
	recinfo_gives 1 bad.h5
	expect 'the images are damaged: their checksum is [0-9a-f]{8}; expected'
	for name in laundered.rec laundered.h5 laundered/; do
		"$BUILDDIR/h5rec" bad.h5 $name >"$log" 2>&1 && fail "h5rec to $name"
		expect 'error: bad.h5: the images are damaged: their checksum is [0-9a-f]{8}; expected'
	done
	[ -z "$(compgen -G 'laundered*')" ] || fail "left: $(echo laundered*)"
	"$BUILDDIR/h5rec" bad.h5 first.rec --count 1 >"$log" 2>&1 || { fail "the first record" && show_log; }
fi
finish
