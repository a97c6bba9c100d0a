#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which checkpoint is the newest, where clocks were put back, differ between hosts, or files were copied: by epoch and
# step, not by times. --resume auto and --keep.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

needs_files
run="--network mlp --benchmark 1 --num-batches 4 --batch-size 20 --devices ref --log-prefix none --log-time 0"

# goes_on_from FILE EPOCHS ARGUMENT...
goes_on_from() {
	local file=$1 epochs=$2
	shift 2
	train 1 $run --model-prefix P --resume auto --num-epochs "$epochs" "$@"
	expect_count 1 "^Resumed from \"$file\": "
}

# are FILE...: these are the checkpoints
are() {
	[ "$(echo P-*.h5)" = "$*" ] || fail "checkpoints: $(echo P-*.h5), not $*"
}

part "a clock that was put back"
train 1 $run --model-prefix P --num-epochs 3
touch -d '2 hours ago' P-0003.h5
touch -h -d '2 hours ago' P-latest
touch -d '1 hour ago' P-0002.h5
touch -d '3 hours' P-0001.h5
goes_on_from P-0003.h5 4 --keep 2
expect_count 1 '^warning: P-0001.h5 is from the future, by 1\d{4} s: '
are P-0003.h5 P-0004.h5
touch -d '2 hours' P-0003.h5
goes_on_from P-0004.h5 5 --keep 3 --save-steps 2
expect_count 1 '^warning: P-0003.h5 is from the future'
are P-0004-000002.h5 P-0004.h5 P-0005.h5

part "copied files"
rm -f P-latest
touch P-0004-000002.h5
goes_on_from P-0005.h5 6
expect_none 'from the future'
touch -d '1 hour' P-0004.h5
cp -L P-latest file && rm P-latest && mv file P-latest # no link any more
rm -f P-0006.h5
goes_on_from P-0005.h5 6

part "killed before the link was moved"
rm -f P-*
train 1 $run --model-prefix P --num-epochs 3
ln -sfn P-0002.h5 P-latest
touch -h -d '1 minute ago' P-latest
goes_on_from P-0003.h5 4

part "two runs with one prefix"
mkdir old
cp -p P-0003.h5 P-0004.h5 old
train 1 $run --model-prefix P --overwrite --num-epochs 2
are P-0001.h5 P-0002.h5
cp -p old/* . # as a version before --overwrite left them
goes_on_from P-0002.h5 3
rm -f P-*
train 1 $run --model-prefix P --num-epochs 4
touch -d '1 hour' P-0004.h5
train 1 $run --model-prefix P --overwrite --num-epochs 1 --keep 2
are P-0001.h5
train 1 $run --model-prefix P --overwrite --num-epochs 2 --keep 2
are P-0001.h5 P-0002.h5
finish
