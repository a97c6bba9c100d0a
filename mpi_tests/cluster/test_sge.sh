#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Grid Engine of two nodes (make check-cluster): jobs/sge/train.sh and jobs/launch train there; a job that comes
# back after a warning ends with the same bits as one that nobody disturbed.
# shellcheck disable=SC2086,SC2317 # words; functions that wait_for calls
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"
# shellcheck source=mpi_tests/cluster/sge.sh
. "$SRCDIR/mpi_tests/cluster/sge.sh"
# shellcheck source=mpi_tests/lib/queue.sh
. "$SRCDIR/mpi_tests/lib/queue.sh"
export LC_ALL=C OMP_NUM_THREADS=1

sge_possible || exit 77
[ "$(mpi_kind)" = mpich ] || { echo "skipped: the mpirun of jobs/sge is MPICH's here" && exit 77; }
needs_files
small_set set 2000 500
link_jobs
hosts_up 2 || { fail "no private hosts" && finish; }
sge_up 2 || { echo "skipped: Grid Engine does not run on this machine" && exit 77; }
plain="--network mlp --data-dir set --batch-size 20 --kv-store dist_sync --num-servers 1 --disp-batches 1000000"

queue_shows() { sge_on 1 'qstat -f'; }
# qstat does not know a job for a moment when it is rescheduled: what the trainer says counts.
is_finished() { grep -qs '"exit": "finished"' "$1-run.json"; } # PREFIX
# submit OPTION... train.sh ARGUMENT...: sets $id; the job's log is muster-$id.log
submit() {
	id=$(sge_on 1 "qsub -terse -pe mpi 3 -o 'muster-\$JOB_ID.log' $*") || fail "qsub: exit status $?"
}

part "jobs/sge/train.sh and jobs/launch train"
UCX_TLS=tcp,self submit jobs/sge/train.sh "$TRAINER" $plain --num-epochs 2 --model-prefix one
wait_for 60 "the end of the job" is_finished one
log=muster-$id.log
wait_for 10 "the end of its log" grep -q "worker 0's seconds" "$log"
expect_count 1 'Epoch\[1\] Train-accuracy'
for i in 1 2; do expect "node [01] \\($(hosts_name $i), eth0 $hosts_net.$i\\)"; done
sge_on 1 "'$SRCDIR/jobs/launch' -n 2 -s 1 --launcher sge '$TRAINER' $plain --num-epochs 1" >launch.log 2>&1 ||
	fail "jobs/launch: exit status $?"
log=launch.log
expect_count 1 'Epoch\[0\] Train-accuracy'

has_resumed() { # TIMES: at least
	[ -e "muster-$id.log" ] && [ "$(grep -c 'Resumed from' "muster-$id.log")" -ge "$1" ]
}

# warn: to the process group of the batch file, as Grid Engine sends it where it does
warn() {
	local pid
	for pid in $(ip netns pids "$(hosts_name 1)") $(ip netns pids "$(hosts_name 2)"); do
		tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q 'jobs/supervise --queue sge' || continue
		kill -USR1 -- "-$(ps -o pgid= -p "$pid" | tr -d ' ')" && return
	done
	fail "no job to warn"
}

part "a job that comes back after a warning: the same bits"
steps="--num-epochs 150 --save-period 20 --keep 3"
submit jobs/sge/train.sh "$TRAINER" $plain $steps --model-prefix again
wait_for 60 "the first checkpoint" test -e again-latest
warn
wait_for 60 "the restart" has_resumed 1
wait_for 100 "the end of the job" is_finished again
log=muster-$id.log
expect '^supervise: exit status 85, .*: sge is to start the job again$'
n=$(grep -c 'Resumed from' "$log")

part "a job that comes back before its limit"
# 120 s before it, which is 6 s after it begins; each time anew.
submit -l h_rt=0:2:06 jobs/sge/train.sh "$TRAINER" $plain $steps --model-prefix late
wait_for 60 "the restart" has_resumed 1
wait_for 150 "the end of the job" is_finished late
log=muster-$id.log
expect '^supervise: exit status 85, .*: sge is to start the job again$'
echo "$(grep -c 'Resumed from' "$log") restarts before the limit"
submit jobs/sge/train.sh "$TRAINER" $plain $steps --model-prefix whole
wait_for 100 "the end of the other job" is_finished whole
same_model again-latest whole-latest || fail "after $n restarts other weights than without any"
same_model late-latest whole-latest || fail "other weights after restarts before the limit"
echo "$n restarts, the same bits"
finish
