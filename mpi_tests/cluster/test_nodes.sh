#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests of the stores once more, with the ranks dealt over several nodes: shared memory inside a node
# and messages between them, sums by nodes.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"

nodes_up 3 || exit 77
jobs=("2 3 test_store" "2 4 test_window")
! in_tier full || jobs+=("2 3 test_coded" "3 7 test_whole_step" "2 3 test_placement" "2 5 test_shards"
	"2 5 test_async" "2 5 test_keys" "2 4 test_comm_thread")
! in_tier long || jobs+=("2 5 test_store" "2 5 test_placement" "2 5 test_memory"
	"2 4 test_store" "3 5 test_store" "2 4 test_whole_step" "2 4 test_placement"
	"3 7 test_placement"
	"3 7 test_memory" "3 7 test_shards" "3 4 test_staleness" "2 5 test_local_sgd" "3 5 test_coded")
for job in "${jobs[@]}"; do
	# shellcheck disable=SC2086 # words
	set -- $job
	nodes_use "$1"
	# shellcheck disable=SC2086 # MPIRUN may hold options
	timeout $((100 * ${MU_TIMEOUT_SCALE:-1})) $MPIRUN -n "$2" "$(test_program "$3")" >log 2>&1
	status=$?
	[ $status != 77 ] || { grep 'skip' log && continue; }
	[ $status = 0 ] && continue
	fail "$3 on $2 ranks of $1 nodes: exit status $status"
	grep -v ' UCX  WARN ' log | tail -n 20 | sed 's/^/    /'
done
finish
