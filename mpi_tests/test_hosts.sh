#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 300
# Jobs over several hosts: they train as on one, and end with the exit status that they should.
set -u
# shellcheck source=mpi_tests/lib.sh
. "$SRCDIR/mpi_tests/lib.sh"
# shellcheck source=mpi_tests/hosts.sh
. "$SRCDIR/mpi_tests/hosts.sh"

hosts_possible || {
	echo "needs the right to make network namespaces (root), ip and tc"
	exit 77
}
case $(${MPIRUN:?} -n 1 "${TRAINER:?}" --info | grep '^MPI:') in
*MPICH*) ;;
*)
	echo "needs an MPICH: hosts.sh speaks to its launcher"
	exit 77
	;;
esac
hosts_up 2 || exit 1
hosts_use 2

part "the end of a job"
for _ in $(seq 8); do
	train 5 --network mlp --benchmark 1 --num-batches 5 --num-epochs 1 --batch-size 20 --log-prefix none \
		--log-time 0
	expect_count 1 "^worker 0's seconds"
	expect_none 'BAD TERMINATION|the launcher did not take'
done

part "wrong use"
run_limited 100 3 --network mlp --benchmark 1 --kv-store dist
[ $status = 2 ] || fail "exit status $status of a wrong option"
finish
