#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 900
# Training that a signal, or the end of a Slurm job, ends early: exit status 85, a checkpoint, and after going on the
# bits of a run that was never interrupted. A second signal.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"

needs_files
export OMP_NUM_THREADS=1 # bits depend on it
small_set set 600 200
plain="--network lenet --data-dir set --batch-size 20 --lr 0.01 --log-prefix none --log-time 0 --disp-batches 3"
long="$plain --num-epochs 16 --best-metric none"

# begin NP ARGUMENT...: in the background; returns when training has got to the line $ready. A shell's jobs in the
# background ignore SIGINT, but not those of env.
ready='^Epoch\[1\] Batch'
begin() {
	new_mark
	rm -f "$log"
	(
		MPIRUN="env --default-signal=INT $MPIRUN"
		launch 100 "$@"
	) &
	job=$!
	wait_for "$ready"
}

wait_for() {
	for _ in $(seq 3000); do
		grep -Eqs "$1" "$log" && return
		kill -0 $job 2>/dev/null || break
		sleep 0.01
	done
	grep -Eqs "$1" "$log" && return
	fail "no line $1 while it runs"
	show_log
}

# pid_of RANK, or of the launcher (all)
pid_of() {
	if [ "$1" = all ]; then
		launcher_of $job
	else
		sed -n "s/^node .*(rank $1, pid \\([0-9]*\\)).*/\\1/p" "$log" | head -n 1
	fi
}

# end_of_job: sets $status
end_of_job() {
	local left
	wait $job
	status=$?
	left=$(leftovers)
	[ -z "$left" ] || fail "left running: ${left//$'\n'/ }"
}

# signalled SIGNAL RANK|all NP ARGUMENT...: a run that gets it when it has got to the line $ready. Once more, three
# times at most, where it was in its last epoch by then: it may have ended before the signal came.
signalled() {
	local signal=$1 to=$2 late=1
	shift 2
	for _ in 1 2 3; do
		rm -f R-*
		begin "$@"
		kill -s "$signal" "$(pid_of "$to")"
		grep -q '^Epoch\[15\]' "$log" || late=
		end_of_job
		[ -n "$late" ] || return
	done
}

# halt SIGNAL RANK|all NP ARGUMENT...
halt() {
	local signal=$1 to=$2
	signalled "$@"
	shift 2
	[ $status = 85 ] || { fail "exit status $status, not 85, of $signal to $to, -n $*" && show_log; }
	if [ "$to" = all ]; then to='\d+'; fi
	expect "^SIG$signal( \\(Ctrl-C\\))? came to (worker|server) \\d+ \\(rank $to, .*\\): training ends after "
	expect 'training ends after (step \d+ in )?epoch \d+ of \d+, with a checkpoint; exit status 85; a second signal'
	expect_count 1 'training ends'
}

# same SIGNAL RANK|all NP ARGUMENT...
same() {
	rm -f U-* R-*
	train "$3" "${@:4}" $long --save-period 16 --model-prefix U || return
	halt "$1" "$2" "$3" "${@:4}" $long --save-period 16 --model-prefix R
	[ "$(ls R-*.h5 | wc -l)" = 1 ] || fail "not one file: $(ls R-*)"
	train "$3" "${@:4}" $long --save-period 16 --model-prefix R --resume auto
	expect '^Resumed from "R-'
	same_model U-0016.h5 R-0016.h5 || fail "other weights after going on: $*"
}

# What mpirun passes on. Open MPI's makes a SIGTERM of SIGINT and SIGTERM, kills a second later, and returns 1.
int=INT term=TERM
[ "$(mpi_kind)" != openmpi ] || int=USR1 term=USR1

part "the same bits"
same $int all 2 --kv-store dist_sync --mom 0.9
if in_tier full; then
	same $int all 1 --kv-store device --optimizer adam --lr 0.001
	same INT 2 3 --kv-store dist_sharded --node-reduce none
	same TERM 1 3 --kv-store dist_allreduce --update-period 4
	same USR1 1 2 --kv-store dist_sharded --gc-type 2bit --comm-thread 1
fi
if in_tier long; then
	same USR1 0 2 --kv-store dist_sync --mom 0.9
	same TERM 4 5 --kv-store dist_sync --num-servers 2 --mom 0.9
	same TERM 0 1 --kv-store local --mom 0.9
	same TERM 1 2 --kv-store dist_sync --mom 0.9
	same USR1 all 3 --kv-store dist_sync --optimizer adam --lr 0.001
	same TERM 1 2 --kv-store dist_sharded --mom 0.9
	same USR1 1 3 --kv-store dist_allreduce --mom 0.9
	same $term all 5 --kv-store dist_allreduce --mom 0.9
	same TERM 1 2 --kv-store dist_allreduce --sync-period 4 --mom 0.9
fi

part "two nodes"
if in_tier full && nodes_up 2; then
	nodes_use 2
	same TERM 2 5 --kv-store dist_sync --num-servers 2 --mom 0.9
	nodes_end
fi

part "dist_async"
jobs=("USR1 0 3")
! in_tier full || jobs+=("TERM 4 5 --num-servers 2 --max-staleness 1")
! in_tier long || jobs+=("TERM 1 2" "$int all 5 --num-servers 2")
for words in "${jobs[@]}"; do
	rm -f R-*
	halt $words --kv-store dist_async --mom 0 $long --save-period 16 --model-prefix R
	set -- $words
	train "${@:3}" --kv-store dist_async --mom 0 $long --save-period 16 --model-prefix R --resume auto
	expect '^Resumed from "R-'
	at_least Validation-accuracy 0.2
done

part "inside an epoch, which would take minutes"
ready='^Epoch\[0\] Batch'
minutes="--network mlp --benchmark 1 --num-examples 2000000 --batch-size 20 --num-epochs 2 --log-time 0"
# inside SAMPLES SIGNAL RANK NP ARGUMENT...: so many samples a step
inside() {
	local samples=$1 step
	shift
	rm -f R-*
	halt "$@" $minutes --log-prefix none --model-prefix R
	expect 'training ends after step \d+ in epoch 1 of \d+, with a checkpoint'
	step=$(grep -oP 'training ends after step \K\d+' "$log")
	[ "$samples" = any ] || expect "^trained $((step * samples)) samples"
}
inside 40 TERM 2 3 --kv-store dist_sync
! in_tier long || inside 20 TERM 0 1 --kv-store local
! in_tier long || inside 60 USR1 1 3 --kv-store dist_sharded
! in_tier full || inside 40 TERM 1 2 --kv-store dist_allreduce --sync-period 4
# Momentum and stale gradients may diverge.
! in_tier full || inside any TERM 1 3 --kv-store dist_async --mom 0 --lr 0.01
ready='^Epoch\[1\] Batch'

part "nothing to save in"
halted_without() {
	signalled TERM 0 "$@" $long
	[ $status = 85 ] || fail "exit status $status without --model-prefix, -n $*"
	expect 'and nothing is saved, for that needs --model-prefix P; exit status 85'
}
! in_tier full || halted_without 1 --kv-store local
halted_without 3 --kv-store dist_sync

part "before the first step"
rm -f R-*
new_mark
rm -f "$log"
(launch 100 3 --kv-store dist_sync $long --save-period 16 --model-prefix R) &
job=$!
wait_for '^node .*pid'
kill -s TERM "$(pid_of 0)"
end_of_job
[ $status = 85 ] || fail "exit status $status of a signal at the start"

# is_pending PID: has it a signal of its own that it has not taken? No other program is begun, for that takes time.
is_pending() {
	local name value
	while read -r name value; do
		[ "$name" != ShdPnd: ] || break
	done <"/proc/$1/status"
	[ "$name" = ShdPnd: ] && [ "${value//0/}" != '' ]
} 2>/dev/null

part "two signals"
# A rank that waits for one that is stopped never ends its step.
begin 2 --kv-store dist_sharded $long
pid=$(pid_of 0)
other=$(pid_of 1)
kill -s STOP "$other"
until grep -q '^State:.T' /proc/"$other"/status; do sleep 0.01; done
kill -s TERM "$pid"
while is_pending "$pid"; do :; done
kill -s TERM "$pid" # the same one, by another way
while is_pending "$pid"; do :; done
sleep 1.3
kill -0 "$pid" 2>/dev/null || fail "a signal that comes twice at once ends the job"
kill -s TERM "$pid"
end_of_job
case $status in
143 | 15) ;;
*) fail "exit status $status after two signals" && show_log ;;
esac

part "the job's end"
mkdir bin
write_squeue() {
	printf '#!/bin/sh\necho "$@" >>"%s"\n%s\n' "$PWD/asked" "$1" >bin/squeue
	chmod +x bin/squeue
	rm -f asked R-*
}
# with_path NAME PATH: a trainer with this PATH; mpirun of Open MPI puts its own folder first.
program=$TRAINER
with_path() {
	printf '#!/bin/sh\nPATH=%s\nexec "%s" "$@"\n' "$2" "$program" >"$1"
	chmod +x "$1"
}
with_path with_squeue "$PWD/bin:\$PATH"
with_path no_squeue /nothing
TRAINER=$PWD/with_squeue
unset SLURM_JOB_START_TIME SLURM_JOB_END_TIME SLURM_JOB_ID SLURM_JOBID
refused() {
	run_limited 60 "$@" $long
	[ $status = 2 ] || fail "exit status $status, not 2, of $*"
}
write_squeue "echo 0:10"
refused 1 --halt-before 5m
expect 'error: --halt-before 5m is for jobs of Slurm, and neither SLURM_JOB_END_TIME nor SLURM_JOB_ID is set'
export SLURM_JOB_ID=4711
for words in 5 $(in_tier full && echo m -5m 5d 0s 1e99s) 5m3; do
	refused 2 "--halt-before=$words"
	expect "error: --halt-before $words: a length of time is needed"
done
# The rest of a longer job, or one whose limit is not told: it ends at once, and its queue may start it again.
lefts=("4:59 5:01")
! in_tier full || lefts+=("0-00:00:10 1:00:00" 4:59 "4:59 UNLIMITED")
for left in "${lefts[@]}"; do
	write_squeue "echo $left"
	run_limited 60 3 $long --save-period 16 --model-prefix R --halt-before 5m
	[ $status = 85 ] || { fail "exit status $status of $left" && show_log; }
	expect "the job's time is nearly over \\(--halt-before 5m\\): training ends"
	[ "$(cat asked)" = "-h -o %L %l -j 4711" ] || fail "asked: $(cat asked)"
done
# No start of such a job could train.
for limit in 1:00 5:00; do
	write_squeue "echo 0:58 $limit"
	refused 3 --halt-before 5m
	expect_count 1 "error: --halt-before 5m: the job's time limit is (60|300) s, and training would end"
done
lefts=(5:30)
! in_tier full || lefts+=("1-00:00:00 2-00:00:00" "UNLIMITED UNLIMITED")
for left in "${lefts[@]}"; do
	write_squeue "echo $left"
	train 3 $plain --num-epochs 1 --halt-before 5m
	expect_none 'nearly over|squeue'
	[ -s asked ] || fail "squeue was not asked"
done
write_squeue "echo INVALID"
train 3 $plain --num-epochs 1 --halt-before 5m
expect_count 1 'squeue does not say when job 4711 ends: INVALID'
write_squeue "exit 1"
train 1 $plain --num-epochs 1 --halt-before 5m
expect_count 1 'squeue does not say when job 4711 ends: no answer'
write_squeue "sleep 1000"
! in_tier full || train 1 $plain --num-epochs 1 --halt-before 5m # waits for it some seconds, once
# On a machine without Slurm.
(
	failures=0
	TRAINER=$PWD/no_squeue
	train 1 $plain --num-epochs 1 --halt-before 5m
	exit $failures
)
failures=$((failures + $?))
expect_count 1 'squeue does not say when job 4711 ends: No such file'
export SLURM_JOB_END_TIME
SLURM_JOB_END_TIME=$(($(date +%s) + 30))
run_limited 60 2 $long --num-epochs 5000 --model-prefix R --halt-before 15s
[ $status = 85 ] || fail "exit status $status of SLURM_JOB_END_TIME"
expect "nearly over \\(--halt-before 15s\\): training ends after"
refused 1 --halt-before 30s
expect 'error: --halt-before 30s: the job has only \d+ s left'
SLURM_JOB_START_TIME=$((SLURM_JOB_END_TIME - 29)) refused 1 --halt-before 30s
expect "error: --halt-before 30s: the job's time limit is 29 s, and training would end 30 s before it"
SLURM_JOB_START_TIME=$((SLURM_JOB_END_TIME - 3600)) run_limited 60 1 $long --halt-before 30s
[ $status = 85 ] || fail "exit status $status of the rest of a long job"
expect 'training ends before its first step|training ends after '
SLURM_JOB_START_TIME=then refused 1 --halt-before 30s
expect 'SLURM_JOB_START_TIME is "then", and not a number of seconds'
SLURM_JOB_END_TIME=soon refused 1 --halt-before 30s
expect 'SLURM_JOB_END_TIME is "soon", and not a number of seconds'
finish
