#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# muconvert: .params files, written here byte by byte in the layouts that MXNet has had, and what can be wrong
# with them; and back.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
log=tool.log

needs_files

# le BYTES NUMBER...: numbers of so many bytes, the lowest first
le() {
	local n=$1 i
	shift
	for v in "$@"; do
		for ((i = 0; i < n; i++)); do printf "\\x$(printf %02x $((v >> 8 * i & 255)))"; done
	done
}
# name TEXT
name() {
	le 8 ${#1}
	printf %s "$1"
}
begin() {
	le 8 $((0x112)) 0 "$1"
}
magic=$((0xF993FAC9))
numbers='\0\0\200\77\0\0\0\300' # 1, -2
# array TYPE: (1, 2), of MXNet from 0.12 on, without numbers
array() {
	le 4 $magic 0 2
	le 8 1 2
	le 4 1 0 "$1"
}
# of 0.11: sizes of 64 bits; of 0.10 and before: of 32, and no magic
array_1() {
	le 4 $((0xF993FAC8)) 2
	le 8 1 2
	le 4 1 0 0
}
array_0() {
	le 4 2 1 2 1 0 0
}
ends() {
	le 8 $#
	for n in "$@"; do name "$n"; done
}
convert() {
	rm -f "$2"
	"$BUILDDIR/muconvert" "$1" "$2" >"$log" 2>&1
	status=$?
}

part "layouts"
for layout in "array 0" array_1 array_0; do
	{
		begin 2
		for _ in 1 2; do $layout && printf '%b' "$numbers"; done
		ends arg:a_weight aux:m
	} >x.params
	convert x.params "${layout%% *}.h5"
	[ $status = 0 ] || fail "exit status $status of $layout: $(cat "$log")"
	expect '^muconvert: 2 arrays of x.params in '
	convert "${layout%% *}.h5" back.params
	[ $status = 0 ] || fail "exit status $status back from $layout: $(cat "$log")"
	[ "$layout" != "array 0" ] || cp x.params new.params
	cmp new.params back.params || fail "$layout: other bytes after two conversions"
done
same_model array.h5 array_1.h5 || fail "layout of 0.11"
same_model array.h5 array_0.h5 || fail "layout of 0.10"
{
	begin 2
	array 2
	le 2 $((0x3c00)) $((0xc000))
	array 1
	le 8 $((0x3ff << 52)) $((1 << 62 | 1 << 63))
	ends arg:a_weight aux:m
} >y.params
convert y.params y.h5
same_model array.h5 y.h5 || fail "float16 and float64: $(cat "$log")"
{ begin 1; array 0; printf '%b' "$numbers"; ends plain; } >z.params
convert z.params z.h5
convert z.h5 back.params
cmp z.params back.params || fail "a name without a prefix: $(cat "$log")"

part "wrong files"
# refuse REGEX: bad.params is refused, and nothing is left
refuse() {
	convert bad.params bad.h5
	[ $status = 1 ] || fail "exit status $status, not 1"
	expect "$1"
	ls bad.h5* 2>/dev/null && fail "a file is left"
}
printf 'This is text, and no list of arrays.' >bad.params
refuse 'bad.params: begins with 0x2073692073696854, not with 0x112'
: >bad.params
refuse 'bad.params: ends at byte 0'
for n in 5 20 30 50 65 70 100 140 $(($(stat -c %s new.params) - 1)); do
	head -c "$n" new.params >bad.params
	refuse 'bad.params(: ends at byte|, byte [0-9]+:|: array [01] at byte)'
done
{ cat new.params; printf x; } >bad.params
refuse 'bad.params: 1 bytes are left behind its end at byte'
{ begin 1; le 4 $magic 1 2; } >bad.params
refuse 'bad.params, byte 28: array 0 has storage of kind 1; only dense'
{ begin 1; array 6; le 8 1 2; ends arg:a; } >bad.params
refuse 'bad.params, byte 60: array 0 has numbers of type 6, int64; float32'
{ begin 1; array 77; } >bad.params
refuse 'has numbers of type 77; float32'
{ begin 1; le 4 $magic 0 1; le 8 -1; le 4 1 0 0; } >bad.params
refuse 'byte 36: dimension 0 of array 0 is -1, in a file of 56 bytes'
{ begin 1; le 4 $magic 0 2; le 8 50 50; le 4 1 0 0; printf '%b' "$numbers"; } >bad.params
refuse 'dimension 1 of array 0 is 50, in a file of 72 bytes'
{ begin 1; le 4 $magic 0 2; le 8 1 60; le 4 1 0 0; printf '%b' "$numbers"; } >bad.params
refuse 'array 0 at byte 24 has 240 bytes of numbers, and the file ends after 8'
{ begin 1; le 4 $magic 0 9; } >bad.params
refuse 'array 0 has 9 dimensions, not 1 to 8'
{ begin -1; array 0; printf '%b' "$numbers"; } >bad.params
refuse 'ends at byte 72, within a number that begins at 72'
{ begin 1; array 0; printf '%b' "$numbers"; le 8 1 -1; } >bad.params
refuse 'byte 80: the name of array 0 has 18446744073709551615 letters'
{ begin 1; array 0; printf '%b' "$numbers"; le 8 0; } >bad.params
refuse '0 names for 1 arrays: a list without names'
{ begin 2; array 0; printf '%b' "$numbers"; array 0; printf '%b' "$numbers"; ends arg:a arg:a; } >bad.params
refuse 'two arrays have the name "arg:a"'
{ begin 1; array 0; printf '%b' "$numbers"; ends /a; } >bad.params
refuse 'the name of array 0 is not a name'
convert nothing.params bad.h5
[ $status = 1 ] || fail "exit status $status of a file that is not there"
expect 'nothing.params: cannot be opened'
convert new.params nowhere/x.h5
[ $status = 1 ] || fail "exit status $status of a folder that is not there"
convert array.h5 x.onnx
[ $status = 2 ] || fail "exit status $status of a name that MXNet's format does not have"
expect 'x.onnx: a name that ends in .params is needed'
"$BUILDDIR/muconvert" new.params >"$log" 2>&1
[ $? = 2 ] || fail "one word is enough"

part "a checkpoint"
log=trainer.log
small_set set 200 50
train 1 --network lenet --data-dir set --batch-size 20 --num-epochs 1 --optimizer adam --lr 0.001 --model-prefix A
"$BUILDDIR/muconvert" A-0001.h5 A.params >tool.log || fail "$(cat tool.log)"
"$BUILDDIR/muconvert" A.params B.h5 >tool.log || fail "$(cat tool.log)"
same_model A-0001.h5 B.h5 || fail "other weights after two conversions"
train 1 --network lenet --data-dir set --batch-size 20 --load B.h5 --evaluate
run_limited 60 1 --network lenet --data-dir set --batch-size 20 --load A.params --evaluate
expect "A.params: is not an HDF5 file; it is MXNet's: muconvert makes one of it"
finish
