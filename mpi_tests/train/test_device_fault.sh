#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A device that fails while its worker waits for others' sums, which update the whole model: the error
# is told, and nobody waits for ever (late_net.c). A oneDNN that the trainer was not built for: one line.
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

if grep -q '^#define HAVE_ONEDNN 1' "$BUILDDIR/config.h"; then
	part "another oneDNN"
	cat >other.c <<-'END'
		struct { int major, minor, patch; const char *hash; unsigned cpu, gpu; } other = {9, 8, 7, "", 0, 0};
		const void *dnnl_version(void) { return &other; }
	END
	$CC -O2 -std=c11 -shared -fPIC other.c -o other.so || exit 1
	export LD_PRELOAD=$PWD/other.so ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
	run_limited 60 2 --network lenet --benchmark 1 --num-batches 1 --kv-store dist_allreduce
	unset LD_PRELOAD
	[ $status = 2 ] || fail "exit status $status, not 2"
	expect_count 1 'error: oneDNN 9\.8\.7 is loaded, but this Muster was built with .*: build it again'
	expect_none '^    at src'
fi
finish
