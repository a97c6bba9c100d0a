#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mubench: figures for every size, sums that it checks by itself, errors told once. The example of the
# store alone.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

# program NAME NP ARGUMENT...
program() {
	local name=$1 np=$2
	shift 2
	# shellcheck disable=SC2086 # MPIRUN may hold options
	timeout -k 5 $((60 * ${MU_TIMEOUT_SCALE:-1})) $MPIRUN -n "$np" "$BUILDDIR/$name" "$@" >"$log" 2>&1 </dev/null
	status=$?
}

# ends STATUS
ends() {
	[ $status = "$1" ] || { fail "exit status $status, not $1" && show_log; }
}

part "every store: a line for every size, and two for the small keys"
for job in "1 local 0" "2 dist_sync 1" "3 dist_sync 2" "4 dist_async 1"; do
	read -r np store servers <<<"$job"
	[ "$servers" = 0 ] && option="" || option="--num-servers $servers"
	# shellcheck disable=SC2086 # an option and its number, or nothing
	program mubench "$np" --kv-store "$store" $option --max-bytes 262144 --rounds 3
	ends 0
	expect_count 6 '^     1 ' # 1 KiB to 256 KiB, and the small keys' bytes in one
	expect_count 1 '^   100      409600 '
done

part "JSON lines"
program mubench 3 --max-bytes 1024 --num-keys 10 --key-bytes 400 --rounds 2 --json
ends 0
expect_count 2 '^{"store":"dist_sync","workers":2,"servers":1,"keys":1,"bytes":[0-9]*,"rounds":2,"seconds":.*}$'
expect_count 1 '"keys":10,"bytes":4000,'

part "errors are told once"
program mubench 1 --kv-store local --num-servers 1
ends 2
expect_count 1 'has no servers'
program mubench 2 --num-servers 2
ends 2
expect_count 1 '2 servers of 2 ranks leave no worker'
program mubench 1 --min-bytes 4096 --max-bytes 1024
ends 2
expect_count 1 'min-bytes 4096 is more than --max-bytes 1024'

part "the example of the store alone"
program keys 4
ends 0
expect_count 3 '^sum 6$'
program keys 1
ends 2
expect_count 1 'keys: error: 1 server of 1 rank leaves no worker'
# MPICH's MPI_Abort of a rank alone only ends the process, and mpirun may then return 1.
expect_none 'MPI_Abort|BAD TERMINATION'

finish
