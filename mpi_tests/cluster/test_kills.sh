#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 300 @plain
# Processes killed at random moments (faults.sh); make check-long draws others each time. MUSTER_SEED: those of one run.
set -u
seed=${MUSTER_SEED:-1} kills=25
[ -z "${MUSTER_LONG:-}" ] || seed=${MUSTER_SEED:-$RANDOM} kills=200
echo "seed $seed"
TMPDIR=$PWD exec "$SRCDIR/mpi_tests/cluster/faults.sh" $kills "$seed"
