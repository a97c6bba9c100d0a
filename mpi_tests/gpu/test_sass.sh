#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The machine code of the kernels for sm_90, without a GPU: no kernel has local memory, and hot ones load 16 bytes at a
# time, several at once, nothing else in their loops, in few registers. sass.awk says what is counted.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

# Kernel, most registers (blocks of 256 threads on a processor: 4 with 64, 3 with 80; norm.c counts on them), wide loads
# in flight at least, narrow loads in its loops at most: none, the eight bits of a ReLU, a byte for each 48 bytes, eight
# places of maxima or weights of classes for each 16; wide loads in flight at least where the last block adds lanes.
hot="
normalize_float16 64 4
normalize_bfloat16 64 4
normalize_backward_float16 80 4
normalize_backward_bfloat16 80 4
value_sums_float16 64 4
value_sums_bfloat16 64 4
gradient_sums_float16 80 4 0 8
gradient_sums_bfloat16 80 4 0 8
joined_sums_float16 80 6 3 8
joined_sums_bfloat16 80 6 3 8
pool_float16 64 1
pool_bfloat16 64 1
pool_backward_float16 64 4 4
pool_backward_bfloat16 64 4 4
softmax_halves 64 1 8
"

fatbin=$BUILDDIR/cuda_kernels.fatbin
if [ ! -f "$fatbin" ]; then
	echo "skipped: this build has no CUDA"
	exit 77
fi
# On the PATH, beside nvcc, or as pip unpacks them into a build folder. cuobjdump starts nvdisasm.
nvcc=$(sed -n 's/^NVCC = //p' "$BUILDDIR/Makefile")
for dir in "$(dirname "${nvcc:-nvcc}")" "$SRCDIR"/build*/venv/lib/python3*/site-packages/nvidia/*/bin; do
	PATH=$PATH:$dir
done
for tool in cuobjdump nvdisasm; do
	if ! command -v $tool >/dev/null; then
		echo "skipped: no $tool (python3 -m venv build/venv && build/venv/bin/pip install nvidia-cuda-$tool)"
		exit 77
	fi
done

part "the counts"
cuobjdump -sass -arch sm_90 "$fatbin" >sass 2>&1 || fail "cuobjdump -sass: $(tail -3 sass)"
cuobjdump -res-usage -arch sm_90 "$fatbin" >usage 2>&1 || fail "cuobjdump -res-usage: $(tail -3 usage)"
awk '$1 == "Function" { name = $2; sub(":", "", name) }
	$1 ~ /^REG:/ { split($1, r, ":"); split($2, s, ":"); print name, r[2], s[2] }' usage | sort >registers
LC_ALL=C awk -f "$SRCDIR/mpi_tests/gpu/sass.awk" sass | sort | join registers - >counts
echo "kernel registers stack loads wide narrow at-once local past"
cat counts
[ "$(wc -l <counts)" -gt 20 ] || fail "only $(wc -l <counts) kernels"

part "no local memory"
awk '$3 + $8 > 0' counts >stacks
[ ! -s stacks ] || fail "local memory in $(cut -d' ' -f1 stacks | tr '\n' ' ')"

part "hot kernels"
while read -r kernel most least bytes lanes; do
	[ -n "$kernel" ] || continue
	if ! read -r _ registers _ _ _ narrow at_once _ past < <(grep "^$kernel " counts); then
		fail "no kernel $kernel"
		continue
	fi
	[ "$registers" -le "$most" ] || fail "$kernel: $registers registers, more than $most"
	[ "$at_once" -ge "$least" ] || fail "$kernel: $at_once wide loads at once, fewer than $least"
	[ "$narrow" -le "${bytes:-0}" ] || fail "$kernel: $narrow loads of less than 16 bytes in its loop"
	[ "$past" -ge "${lanes:-0}" ] || fail "$kernel: $past wide loads of lanes at once, fewer than $lanes"
done <<<"$hot"
finish
