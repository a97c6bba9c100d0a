#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The launcher of one MPI starts programs of another: each process is alone, and one of them says so.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

# started REGEX VARIABLE VARIABLE: three processes with what the launcher sets: their number, and that of each.
started() {
	local rank
	for rank in 0 1 2; do # all but the first give it time for its message
		env "$2=3" "$3=$rank" "${TRAINER:?}" --network mlp --benchmark 1 >"$log.$rank" 2>&1 &
	done
	for rank in 1 2 3; do
		wait -n
		status=$?
		[ $status = 2 ] || fail "exit status $status of a process"
	done
	cat "$log".? >"$log"
	expect_count 1 "error: the launcher, $1, started 3 processes.* each is alone"
	expect_count 1 .
}

part "mpirun of another MPI"
case $(mpi_kind) in
mpich) started 'mpirun of Open MPI' OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK ;;
*) started 'mpirun of MPICH.*' PMI_SIZE PMI_RANK ;;
esac

part "srun without --mpi"
started srun SLURM_STEP_NUM_TASKS SLURM_PROCID
expect 'srun --mpi=pmi2'
finish
