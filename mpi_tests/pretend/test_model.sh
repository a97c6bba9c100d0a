#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# jobs/gpu/model: bytes and operations of small networks equal closed forms, times are those of the ceilings given, and
# what it counts without doing it is what a step does, kernel by kernel, on a pretended GPU that works.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/pretend/pretend.sh
. "$SRCDIR/mpi_tests/pretend/pretend.sh"

model() {
	"$SRCDIR/jobs/gpu/model" --build "$BUILDDIR" --libraries "$PWD" "$@" >step 2>err ||
		fail "the model of $* fails: $(cat err)"
	awk -F '\t' 'NF == 7 && !$7 && $1 != "cuDNN, LSTM" { print $1 }' step >unknown
	[ ! -s unknown ] || fail "no costs of $(sort -u unknown | tr '\n' ' ')in mpi_tests/pretend/costs.c"
}
# sum COLUMN NAME: over all sizes
sum() {
	awk -F '\t' -v c="$1" -v name="$2" '$1 == name { s += $2 * (c == 2 ? 1 : $c) } END { printf "%.0f", s }' step
}
# is NAME COUNT READ WRITTEN OPERATIONS
is() {
	local got
	got="$(sum 2 "$1") $(sum 3 "$1") $(sum 4 "$1") $(sum 5 "$1")"
	[ "$got" = "$(($2)) $(($3)) $(($4)) $(($5))" ] || fail "$1: $got, not $(($2)) $(($3)) $(($4)) $(($5))"
}

part "closed forms: lenet"
b=6 x0=28*28 y0=20*24*24 w0=20*25 x1=20*12*12 y1=50*8*8 w1=50*20*25
lenet="--network lenet --batch-size $b"
model --raw $lenet
multiplies="$b*($y0*25+$y1*500)"
is "cuDNN, forward" 2 "4*($b*($x0+$x1)+$w0+$w1)" "4*$b*($y0+$y1)" "2*$multiplies"
is "cuDNN, weights" 2 "4*$b*($x0+$x1+$y0+$y1)" "4*($w0+$w1)" "2*$multiplies"
is "cuDNN, data" 1 "4*($b*$y1+$w1)" "4*$b*$x1" "2*$b*$y1*500"
w="500*800+10*500" x="800+500" y="500+10" # forward y = x w; dw = x dy; dx = dy w
is cuBLAS 6 "4*(2*($w)+$b*2*($x+$y))" "4*($w+$b*($x+$y))" "6*$b*($w)"
is softmax 1 "4*$b*11" "4*$b*10+16*$b" 0
model --raw $lenet --dtype float16
is "cuDNN, forward" 2 "2*($b*($x0+$x1)+$w0+$w1)" "2*$b*($y0+$y1)" "2*$multiplies"
model $lenet --copy 1 --flops32 1 --gap 0
awk -v b=$b '/^softmax / { found = $6 == sprintf("%.0f", (4 * b * 11 + 4 * b * 10 + 16 * b) / 1000) }
	END { exit !found }' step || fail "softmax takes $(grep '^softmax ' step), at 1 GB/s"

part "counts: those of steps that are done, as CUDA graphs"
net="--network resnet-v1 --num-layers 14 --image-shape 3,16,16 --batch-size 4"
model --raw $net --dtype float16
awk -F '\t' '{ n[$1] += $2 } END { for (k in n) print k, n[k] }' step | sort >counted
for n in 2 3; do
	PRETEND_COSTS=done.$n train 1 $net --dtype float16 --benchmark 1 --gpus 0 --num-batches $n --num-epochs 1 \
		--log-prefix none --log-time 0 --lr 0.01
	expect '^a step is . CUDA graphs'
done
awk -F '\t' 'NR == FNR { n[$1] -= $2; next } { n[$1] += $2 } END { for (k in n) if (n[k]) print k, n[k] }' \
	done.2 done.3 | sort >happened
grep -q '^cuDNN, forward 16$' counted || fail "no 16 convolutions"
cmp counted happened || fail "$(diff counted happened | tr '\n' ' ')"
finish
