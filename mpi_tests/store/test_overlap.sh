#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the log says of communication that computation does not hide.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

export OMP_NUM_THREADS=1
net="--network lenet --benchmark 1 --batch-size 32 --num-epochs 1 --disp-batches 10 --log-time 0"

# The server runs a hundredth of the time only, from the first step to the last line of the log.
slow_server() {
	local pid
	until pid=$(grep -o 'server 0 (rank [0-9]*, pid [0-9]*' "$log" 2>/dev/null); do sleep 0.05; done
	pid=${pid##* }
	while ! grep -q 'exposed communication' "$log" && kill -STOP "$pid" 2>/dev/null; do
		sleep 0.1
		kill -CONT "$pid" 2>/dev/null
		sleep 0.001
	done
	kill -CONT "$pid" 2>/dev/null
}

part "exposed communication"
train 2 $net --num-batches 41 --kv-store dist_sync
expect_count 4 'Speed: .*\tcomm=\d+\.\d%$'
expect 'Epoch\[0\] Exposed communication=\d+\.\d{3}$'
expect 'exposed communication .*: \d+\.\d{3} s, \d+\.\d% of training$'
usual=$(value comm)

if in_tier full; then
	part "a slow server"
	rm "$log"
	slow_server &
	train 2 $net --num-batches 41 --kv-store dist_sync
	wait
	at_least comm 30
	at_least comm "$usual"
	at_least 'Exposed communication' 1
fi

part "a thread of communication"
train 2 $net --num-batches 11 --comm-thread 1 --kv-store dist_sync
expect 'a thread of communication in every worker, beside 1 that computes$'
cores=$(getconf _NPROCESSORS_ONLN)
if [ "$cores" = 2 ]; then
	expect_none 'warning: --comm-thread'
	train 3 $net --num-batches 11 --comm-thread 1
	expect 'warning: --comm-thread 1: 4 threads of workers share the 2 cores of '
fi
run_limited 60 1 $net --comm-thread 1
[ $status = 2 ] || fail "exit status $status of --comm-thread with --kv-store device"
expect '^trainer: error: --comm-thread 1 with --kv-store device: there are no messages between ranks$'

part "one rank has nothing to hide"
train 1 $net --num-batches 41
expect 'Speed: '
expect_none 'comm=|xposed communication'
finish
