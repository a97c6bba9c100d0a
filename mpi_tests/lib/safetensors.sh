#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Files of safetensors, written byte by byte. To be read by a test after lib.sh.

# le BYTES NUMBER...: numbers of so many bytes, the lowest first
le() {
	local n=$1 i
	shift
	for v in "$@"; do
		for ((i = 0; i < n; i++)); do printf "\\x$(printf %02x $((v >> 8 * i & 255)))"; done
	done
}
# st FILE HEADER NUMBERS: the header is filled up to a multiple of 8, as others do
st() {
	local header=$2
	while [ $((${#header} % 8)) != 0 ]; do header+=' '; done
	{ le 8 ${#header}; printf %s "$header"; printf '%b' "${3-}"; } >"$1"
}
# entry NAME TYPE SHAPE BEGIN END
entry() {
	printf '"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%s,%s]}' "$@"
}
