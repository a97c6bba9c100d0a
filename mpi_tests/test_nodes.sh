#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 300
# Tests of the stores once more, with the ranks of this machine dealt over several nodes, as MPICH
# can be told to: shared memory inside a node and messages between them, sums by nodes.
set -u

mpi=$(${MPIRUN:?} -n 1 "${TRAINER:?}" --info | grep '^MPI:')
case $mpi in
*MPICH*) ;;
*)
	echo "needs an MPICH, which can deal the ranks of one machine over nodes: $mpi"
	exit 77
	;;
esac
failures=0
for job in "2 3 test_store" "2 5 test_store" "3 5 test_store" "2 4 test_whole_step" \
	"2 5 test_async" "3 4 test_staleness" "2 5 test_local_sgd" "2 5 test_keys" "2 4 test_window"; do
	# shellcheck disable=SC2086 # words
	set -- $job
	# shellcheck disable=SC2086 # MPIRUN may hold options
	MPIR_CVAR_NUM_CLIQUES=$1 timeout $((100 * ${MU_TIMEOUT_SCALE:-1})) $MPIRUN -n "$2" \
		"$BUILDDIR/mpi_tests/$3" >log 2>&1 || {
		echo "$3 on $2 ranks of $1 nodes: exit status $?"
		tail -n 20 log | sed 's/^/    /'
		failures=$((failures + 1))
	}
done
[ $failures = 0 ]
