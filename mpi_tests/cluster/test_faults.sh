#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Processes that die or stop in the middle of a run: the job ends within seconds and leaves nothing
# running; a process that was only stopped for a while does no harm.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"

endless="--network mlp --benchmark 1 --batch-size 20 --lr 0.0001 --num-epochs 1000000 --disp-batches 10"
endless="$endless --log-prefix none --log-time 0"
limit=$((60 * ${MU_TIMEOUT_SCALE:-1})) # seconds: a job that hangs does so for ever
job=

# begin NP ARGUMENT...: start a run in the background, and wait until it trains.
begin() {
	new_mark
	rm -f "$log"
	launch 100 "$@" &
	job=$!
	for _ in $(seq 300); do
		grep -q 'Batch \[' "$log" 2>/dev/null && return
		sleep 0.1
	done
	fail "-n $* does not begin to train"
	show_log
}

# pid_of WHO: "worker 1"
pid_of() {
	sed -n "s/.*node.*$1 (rank [0-9]*, pid \\([0-9]*\\)).*/\\1/p" "$log"
}

# strike SIGNAL PID WHAT: send it, to a job that still runs
strike() {
	if [ -z "$2" ] || ! kill -0 $job 2>/dev/null; then
		fail "$3: no such process, or the run has ended before it"
		show_log
	else
		kill -"$1" "$2"
	fi
}

# The launcher: what timeout started. (A small system has no ps.)
launcher() {
	grep -ls "^PPid:[[:space:]]*$job\$" /proc/[0-9]*/status | cut -d / -f 3
}

# ends WHAT: the run ends in time and leaves nothing; $status is its exit status.
ends() {
	local start=$SECONDS left
	while kill -0 $job 2>/dev/null && [ $((SECONDS - start)) -le $limit ]; do sleep 0.1; done
	if kill -0 $job 2>/dev/null; then
		fail "$1: still running after $limit s"
		show_log
		kill -KILL $job
	fi
	wait $job 2>/dev/null
	status=$?
	left=$(leftovers)
	[ -z "$left" ] || fail "$1: left running: ${left//$'\n'/ }"
}

# dies WHO NP ARGUMENT...
dies() {
	local who=$1
	shift
	begin "$@"
	strike KILL "$(pid_of "$who")" "kill -9 of $who of -n $*"
	ends "kill -9 of $who of -n $*"
	[ $status != 0 ] || fail "kill -9 of $who of -n $*: exit status 0"
	# The launcher tells what it saw first: the signal 9, or its own 15 for a rank that the
	# transport ended because its neighbour was gone.
	expect '(?i)(signal|exit code):? (9|15|6)\b'
}

part "a process is killed"
dies "worker 1" 3 $endless --kv-store dist_sync
dies "server 0" 3 $endless --kv-store dist_async
if in_tier full; then
	dies "server 0" 3 $endless --kv-store dist_sync
	dies "worker 0" 3 $endless --kv-store dist_sync
	dies "worker 1" 3 $endless --kv-store dist_async
	dies "worker 0" 3 $endless --kv-store dist_async
	dies "server 1" 7 $endless --num-servers 3
	dies "worker 3" 7 $endless --num-servers 3
	dies "worker 1" 3 $endless --comm-thread 1
	dies "server 0" 3 $endless --comm-thread 1 --node-reduce none
	dies "worker 0" 1 $endless
fi
if in_tier full && nodes_up 2; then
	nodes_use 2
	dies "worker 3" 6 $endless # on another node than server 0, and not alone on it
	dies "worker 2" 4 $endless --kv-store dist_allreduce
	dies "worker 3" 6 $endless --node-reduce mpi
	dies "worker 2" 4 $endless --kv-store dist_allreduce --node-reduce mpi
	nodes_end
fi

# Its exit status is its own affair: MPICH's is now and then 0 after a SIGTERM.
part "the launcher is told to end"
for signal in INT TERM; do
	begin 3 $endless
	strike $signal "$(launcher)" "signal $signal"
	ends "signal $signal to the launcher"
	in_tier full || break
	begin 7 $endless --num-servers 3 --kv-store dist_async
	strike $signal "$(launcher)" "signal $signal"
	ends "signal $signal to the launcher of 7"
done

part "a process is stopped for a while"
run="${endless/--num-epochs 1000000/--num-epochs 8} --num-batches 500"
if has_files; then
	train 3 $run --model-prefix P
	run="$run --model-prefix Q --overwrite"
fi
for who in "worker 1" "server 0"; do
	if [ "$who" = "server 0" ] && ! in_tier full; then break; fi
	begin 3 $run
	pid=$(pid_of "$who")
	strike STOP "$pid" "stop of $who"
	sleep 1
	strike CONT "$pid" "continue $who"
	wait $job
	status=$?
	[ $status = 0 ] || { fail "exit status $status after a stop of $who" && show_log; }
	left=$(leftovers)
	[ -z "$left" ] || fail "left running: ${left//$'\n'/ }"
	expect '^trained 160000 samples'
	! has_files || cmp P-0008.h5 Q-0008.h5 || fail "a stop of $who changed the result"
done

if has_files; then
	part "what was saved is good"
	begin 3 ${endless/--num-epochs 1000000/--num-epochs 500} --num-batches 11 --model-prefix S
	for _ in $(seq 100); do
		[ -s S-0002.h5 ] && break
		sleep 0.1
	done
	strike KILL "$(pid_of "worker 0")" "kill -9 of rank 0"
	ends "kill -9 of rank 0"
	last=$(ls S-*.h5 | tail -n 1)
	last=$((10#$(echo "$last" | tr -dc 0-9 | cut -c 1-4)))
	train 3 ${endless/--num-epochs 1000000/--num-epochs $((last + 1))} --num-batches 11 \
		--model-prefix S --load-epoch $last
	expect '^Loaded model S-'
fi
finish
