#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @tier full
# @timeout 300
# Some cases of the campaign jobs/bench/campaign/flips: a flipped bit of a checkpoint ends in one line, or changes
# nothing. And a damaged newest file where the network is in the files alone.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

needs_files
part "flips"
TMPDIR=$PWD "$SRCDIR/jobs/bench/campaign/flips" --build "$BUILDDIR" --seed 1 --cases 15 || fail "exit status $?"

part "the network in the files alone"
plain="--benchmark 1 --batch-size 2 --num-batches 2 --log-prefix none --log-time 0"
# shellcheck disable=SC2086 # words
train 1 --network vit-tiny --num-layers 1 --num-hidden 8 --num-heads 2 --image-shape 3,16,16 --num-classes 3 $plain \
	--num-epochs 2 --model-prefix P
# Headers of heaps, and blocks.
cp P-0002.h5 good
for at in $(LC_ALL=C grep -aboE 'FRHP|FHDB' good | cut -d : -f 1 | awk 'NR % 4 == 1'); do
	cp good P-0002.h5
	printf '\125' | dd of=P-0002.h5 bs=1 seek=$((at + 30)) conv=notrunc status=none
	rm -f P-0003.h5
	# shellcheck disable=SC2086 # words
	train 1 --resume auto $plain --num-epochs 3 --model-prefix P
	expect 'left out, for it is damaged: P-0002.h5: '
	expect '^Resumed from "P-0001.h5'
done
finish
