#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @tier full
# A queue of two nodes: jobs/slurm/*.sbatch and jobs/launch train there; a job that is requeued by hand ends with the
# same bits as one that nobody disturbed. make check-cluster: also one that loses a node, and runs into its time limit
# again and again.
# shellcheck disable=SC2317 # wait_for calls them
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"
# shellcheck source=mpi_tests/cluster/slurm.sh
. "$SRCDIR/mpi_tests/cluster/slurm.sh"
# shellcheck source=mpi_tests/lib/queue.sh
. "$SRCDIR/mpi_tests/lib/queue.sh"
export LC_ALL=C OMP_NUM_THREADS=1

slurm_possible || exit 77
[ "$(mpi_kind)" = mpich ] || { echo "skipped: srun --mpi=pmi2 starts MPICH's programs" && exit 77; }
needs_files
is_sanitized && { echo "skipped: a queue starts the sanitized trainer no other way" && exit 77; }
small_set set 2000 500
link_jobs
hosts_up 2 || { fail "no private hosts" && finish; }
slurm_up 2 || { echo "skipped: SLURM does not run on this machine" && exit 77; }
plain="--network mlp --data-dir set --batch-size 20 --kv-store dist_sync --num-servers 1 --disp-batches 1000000"

queue_shows() { squeue -h; }
state() { scontrol show job "$id" 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p'; }
restarts() { scontrol show job "$id" 2>/dev/null | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p'; }
has_restarted() { [ "$(restarts)" -ge "$1" ] 2>/dev/null; }
is_running() { [ "$(state)" = RUNNING ]; }
is_done() { [[ $(state) =~ COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL ]]; }

# job LOG WORD...: submits, waits for the end, and sets $code
job() {
	log=$1
	shift
	id=$(sbatch --parsable -o "$log" "$@") || fail "sbatch: exit status $?"
	wait_for 60 "the end of $*" is_done
	code=$(scontrol show job "$id" | sed -n 's/.* ExitCode=\([0-9]*\):.*/\1/p')
}

part "batch files, srun, and jobs/launch train"
# shellcheck disable=SC2086 # words
{
	UCX_TLS=tcp,self job mpirun.log -N 2 -n 3 "$SRCDIR/jobs/slurm/train.sbatch" "$TRAINER" $plain \
		--num-epochs 2 --model-prefix one --job-comment
	[ "$code" = 0 ] || fail "train.sbatch: exit status $code"
	expect_count 1 '^.*Epoch\[1\] Train-accuracy'
	for i in 1 2; do expect "node [01] \\($(hosts_name $i), eth0 $hosts_net.$i\\)"; done
	expect_none 'queued anew'
	scontrol show job "$id" | grep -Eq '^ *Comment=muster: 4000 samples, validation accuracy 0\.[0-9]{4} *$' ||
		fail "the job's comment: $(scontrol show job "$id" | grep Comment)"
	# From here on UCX shares memory between the private hosts: faster, and the same bits.
	job srun.log -N 2 -n 3 "$SRCDIR/jobs/slurm/srun.sbatch" "$TRAINER" $plain --num-epochs 2 --model-prefix two
	[ "$code" = 0 ] || fail "srun.sbatch: exit status $code"
	expect_count 1 '^.*Epoch\[1\] Train-accuracy'
	same_model one-0002.h5 two-0002.h5 || fail "mpirun and srun train different models"
	"$SRCDIR/jobs/launch" -n 2 -s 1 --launcher slurm --nodes 2 "$TRAINER" $plain --num-epochs 1 \
		>launch.log 2>&1 || fail "jobs/launch: exit status $?"
	log=launch.log
	expect_count 1 'Epoch\[0\] Train-accuracy'
}

part "an array, a learning rate for each of its jobs"
# shellcheck disable=SC2086 # words
LIST="0.3 0.7" sbatch -Q --wait -o 'array_%a.log' --array=0-1 -n 1 "$SRCDIR/jobs/slurm/array.sbatch" "$TRAINER" \
	--network mlp --data-dir set --num-epochs 1 --model-prefix rate || fail "array.sbatch: exit status $?"
for i in 0 1; do
	log=array_$i.log
	expect_count 1 "start with arguments .* lr=0\\.$((3 + 4 * i)),"
	expect_count 1 '^.*Epoch\[0\] Train-accuracy'
	[ -e rate-$i-0001.h5 ] || fail "task $i has no prefix of its own: $(echo rate*)"
done

part "wrong use is told, and not requeued"
# shellcheck disable=SC2086 # words
{
	MPI_KIND=none job none.log -N 2 -n 3 "$SRCDIR/jobs/slurm/srun.sbatch" "$TRAINER" $plain --model-prefix none
	[ "$code" = 2 ] || fail "srun --mpi=none: exit status $code, not 2"
	expect 'error: the launcher, srun, started 3 processes' # of each that srun leaves the time for it
	job few.log -n 2 "$SRCDIR/jobs/slurm/train.sbatch" "$TRAINER" $plain --num-servers 2 --model-prefix few
	[ "$code" = 2 ] || fail "too few tasks for the servers: exit status $code, not 2"
	expect_count 1 'error: --num-servers 2 leaves no worker of 2 ranks: at most 1 server, or at least mpirun -np 3'
	expect_count 1 '^supervise: exit status 2, an error that would come again'
}

part "requeued by hand: the same bits"
epochs=60 limit=
! in_tier long || { epochs=600 limit="-t 1 --signal=B:USR1@30"; }
steps="--num-epochs $epochs --save-period 20 --keep 3"
# shellcheck disable=SC2086 # words
id=$(sbatch --parsable -N 2 -n 3 $limit "$SRCDIR/jobs/slurm/train.sbatch" "$TRAINER" $plain $steps \
	--model-prefix again) || fail "sbatch: exit status $?"
wait_for 30 "the first checkpoint" test -e again-latest
scontrol requeue "$id"
wait_for 60 "the restart by hand" has_restarted 1
wait_for 60 "it to run again" is_running
before=$(epochs)
wait_for 30 "epochs after the restart" has_trained "$before"
log=muster-$id.log
expect "Slurm job $id was queued anew: restart 1$" # supervise may start it again in the job, too

if in_tier long; then
	part "by a lost node, and by the time limit: the same bits"
	# On a busy machine the time limit may have requeued it meanwhile.
	n=$(restarts)
	scontrol update nodename="$(hosts_name 2)" state=down reason=test
	wait_for 60 "the restart after the node was lost" has_restarted $((n + 1))
	scontrol update nodename="$(hosts_name 2)" state=resume
	wait_for 300 "the end of the job" is_done
	expect '^supervise: exit status 85, .*: slurm is to start the job again$'
fi
wait_for 60 "the end of the job" is_done
[ "$(state)" = COMPLETED ] || fail "the job: $(state)"
n=$(restarts)
# shellcheck disable=SC2086 # words
run_limited 200 3 $plain $steps --model-prefix whole
same_model again-latest whole-latest || fail "after $n restarts other weights than without any"
echo "$n restarts, the same bits"

part "what is cancelled stays so"
# shellcheck disable=SC2086 # words
id=$(sbatch --parsable -N 2 -n 3 "$SRCDIR/jobs/slurm/train.sbatch" "$TRAINER" $plain --num-epochs 100000 \
	--model-prefix ended) || fail "sbatch: exit status $?"
wait_for 60 "the first epoch" has_trained 0
scancel "$id"
wait_for 60 "its end" is_done
sleep 2
[ "$(state) $(restarts)" = "CANCELLED 0" ] || fail "after scancel: $(state), $(restarts) restarts"
finish
