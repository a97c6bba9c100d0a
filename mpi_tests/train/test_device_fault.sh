#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A device that fails while its worker waits for others' sums, which update the whole model: the error
# is told, and nobody waits for ever (late_net.c).
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

if grep -q '^EXPORT_DYNAMIC = *$' "$BUILDDIR/Makefile"; then
	echo "skip: this build cannot load models"
	exit 77
fi
$CC -O2 -std=c11 -shared -fPIC -I"$SRCDIR/include" "$SRCDIR/mpi_tests/lib/late_net.c" -o late.so || exit 1
export OMP_NUM_THREADS=1
run_limited 60 2 --network ./late.so --benchmark 1 --num-batches 8 --num-epochs 1 --batch-size 8 \
	--devices cpu:0,cpu:1 --kv-store dist_allreduce --clip-global-norm 5 --node-reduce none \
	--log-prefix none --log-time 0
[ $status = 1 ] || fail "exit status $status"
expect 'rank 0, worker 0 .*error: .*fails0? fails, as it is told to'
finish
