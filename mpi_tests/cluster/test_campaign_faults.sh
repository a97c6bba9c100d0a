#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @tier long
# @timeout 900
# A minute of each campaign of jobs/bench/campaign, with other seeds each time. MUSTER_SEED: those of one run.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

seed=${MUSTER_SEED:-$RANDOM}
echo "seed $seed"
for name in kills hosts options disks clocks flips; do
	part $name
	TMPDIR=$PWD "$SRCDIR/jobs/bench/campaign/$name" --build "$BUILDDIR" --seed $seed --cases 10000 --seconds 60
	status=$?
	[ $status = 0 ] || [ $status = 77 ] || fail "campaign $name: exit status $status"
done
finish
