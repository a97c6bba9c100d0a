#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A launcher starts programs that are not of its MPI, or of none: each process is alone, and says so. The variables of a
# launcher contradict the job: a line.
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
	for rank in 0 1 2; do
		expect_count 1 "error: the launcher, $1, started 3 processes.* each is alone, as this one, number $rank"
	done
	expect_count 3 .
}

part "mpirun of another MPI"
case $(mpi_kind) in
mpich) started 'mpirun of Open MPI' OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK ;;
*) started 'mpirun of MPICH.*' PMI_SIZE PMI_RANK ;;
esac

part "srun without --mpi"
started srun SLURM_STEP_NUM_TASKS SLURM_PROCID
expect 'srun --mpi=pmi2'

part "launchers of others"
started 'torchrun or one like it' WORLD_SIZE RANK
expect 'start it with mpirun -np N; if it is to be alone, unset WORLD_SIZE'
export DMLC_ROLE=worker DMLC_NUM_SERVER=1
env DMLC_NUM_WORKER=1 "$TRAINER" --network mlp --benchmark 1 >"$log" 2>&1
[ $? = 2 ] || fail "not exit status 2 of a worker of MXNet"
expect_count 1 'error: the launcher, a launcher of MXNet, started 2 processes'
unset DMLC_ROLE DMLC_NUM_SERVER

part "a job with other ranks than its environment says"
mlp="--network mlp --benchmark 1 --num-batches 2 --num-epochs 1"
# says N REGEX VARIABLE=VALUE...: a warning, and it trains
says() {
	local n=$1 regex=$2
	shift 2
	# shellcheck disable=SC2086 # words
	(export "$@" && launch 60 "$n" $mlp)
	status=$?
	[ $status = 0 ] || fail "exit status $status with $*"
	expect_count 1 "warning: $regex"
}
says 1 'Slurm gives this job 4 tasks or nodes, and one process trains: mpirun' SLURM_JOB_ID=7 SLURM_NTASKS=4
says 1 'Slurm gives this job 2 tasks or nodes' SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2
says 1 'Slurm gives this job 2 tasks or nodes' SLURM_JOB_ID=7 SLURM_NPROCS=2
says 1 'LOCAL_WORLD_SIZE is 4 in the environment, and this node has 1 rank:' LOCAL_WORLD_SIZE=4
says 1 'PMIX_RANK is 1 in the environment' PMIX_RANK=1
says 2 'WORLD_SIZE is 4 in the environment, and this job has 2 ranks' WORLD_SIZE=4
says 1 'DMLC_ROLE is server in the environment, and has no effect' DMLC_ROLE=server
says 2 'DMLC_NUM_WORKER is 2 and DMLC_NUM_SERVER 2 .* this job has 2 workers and 0 servers' \
	DMLC_NUM_WORKER=2 DMLC_NUM_SERVER=2
for words in SLURM_JOB_ID=7 "SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=1" WORLD_SIZE=1; do
	# shellcheck disable=SC2086 # words
	(export $words && launch 60 1 $mlp)
	expect_none 'warning: (Slurm|WORLD_SIZE)'
done
finish
