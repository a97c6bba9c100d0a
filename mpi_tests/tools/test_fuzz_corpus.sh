#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The corpus of the fuzzers, through the fuzz targets as plain programs: each file, parts of it, and
# it with bits changed. Nothing may crash or leak. Memory is filled, so that what was never set shows.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
log=replay.log

for target in rec index list data_file idx cifar decode params arrays text tokens safetensors rows tar; do
	MALLOC_PERTURB_=85 timeout 60 "$BUILDDIR/fuzz/replay_$target" "$SRCDIR/fuzz/corpus/$target" \
		>"$log" 2>&1 </dev/null ||
		fail "exit status $? of replay_$target"
	expect '^[1-9][0-9]{2,} inputs$'
	expect_none 'Sanitizer|runtime error'
done
finish
