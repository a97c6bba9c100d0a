#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Processes killed at random moments (faults.sh); make check-long draws others each time. MUSTER_SEED: those of one run.
set -u
seed=${MUSTER_SEED:-1}
case ${MU_TIER:-quick} in
quick) kills=2 ;;
full) kills=25 ;;
long) seed=${MUSTER_SEED:-$RANDOM} kills=200 ;;
esac
echo "seed $seed"
TMPDIR=$PWD exec "$SRCDIR/mpi_tests/cluster/faults.sh" $kills "$seed"
