#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# measure: sums that are right, figures that hang together, errors told once.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

# measure NP ARGUMENT...
measure() {
	local np=$1
	shift
	# shellcheck disable=SC2086 # MPIRUN may hold options
	timeout -k 5 $((60 * ${MU_TIMEOUT_SCALE:-1})) $MPIRUN -n "$np" "$BUILDDIR/measure" "$@" >"$log" 2>&1 </dev/null
	status=$?
}

part "every store, several counts of ranks: sums are right to the bit"
jobs=("1 local 0" "3 dist_sync 1" "3 dist_async 1")
! in_tier full || jobs+=("1 device 0" "2 dist_sync 1" "5 dist_sync 2")
for job in "${jobs[@]}"; do
	read -r np store servers <<<"$job"
	[ "$servers" = 0 ] && option="" || option="--num-servers $servers"
	# shellcheck disable=SC2086 # an option and its number, or nothing
	measure "$np" --network lenet --kv-store "$store" $option --num-batches 3
	[ $status = 0 ] || fail "exit status $status, not 0"
	expect_count 3 '^iter [0-9]*, [0-9.]* sec, [0-9.]* GB/sec per worker, error 0.000000$'
	expect_count 1 '^num of arrays = 8, total size = 1.724320 MB$'
done

part "a bound where something travels over links"
measure 3 --network lenet --num-batches 1 --node-reduce shm
expect_none 'bounds a step'
measure 3 --network lenet --num-batches 1 --node-reduce none
expect_count 1 '^a link of [0-9.]+ GB/sec bounds a step to 0\.\d+ sec: reached '

part "one JSON line"
measure 3 --network lenet --num-batches 2 --json
[ $status = 0 ] || fail "exit status $status, not 0"
expect_count 1 '^{"network":"lenet","store":"dist_sync","workers":2,"servers":1,"bytes":1724320,.*"error":0}$'

part "errors are told once"
measure 3 --network lenat
[ $status = 2 ] || fail "exit status $status, not 2"
expect_count 1 'network lenat: unknown'
measure 2 --kv-store dist_sync --num-servers 2
[ $status = 2 ] || fail "exit status $status, not 2"
expect_count 1 '2 servers of 2 ranks leave no worker'
measure 1 --kv-store local --num-servers 1
[ $status = 2 ] || fail "exit status $status, not 2"
expect_count 1 'has no servers'
measure 1 --image-shape -1,3,3
[ $status = 2 ] || fail "exit status $status, not 2"
expect_count 1 'image-shape -1,3,3: three numbers are needed'
measure 1 --num-batches 0
[ $status = 2 ] || fail "exit status $status, not 2"

finish
