#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Processes that are stopped for ever: the job ends after --comm-timeout with one message, which
# names them, and leaves nothing. (Ranks that are only slow: test_watch.) And the log of messages.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"

plain="--log-prefix none --log-time 0"
net="--network mlp --benchmark 1 --batch-size 20 --lr 0.0001 $plain"
endless="$net --num-epochs 1000000 --disp-batches 10"
scale=${MU_TIMEOUT_SCALE:-1}
job=

# stops WHO NP LIMIT REGEX ARGUMENT...: WHO is stopped in the middle of a run with this
# --comm-timeout; the error matches, and comes once, soon after the limit.
stops() {
	local who=$1 np=$2 limit=$3 regex=$4 start pid left
	shift 4
	new_mark
	rm -f "$log"
	launch 100 "$np" "$@" --comm-timeout "$limit" --comm-warn "$(awk "BEGIN { print $limit / 3 }")" &
	job=$!
	for _ in $(seq 300); do
		grep -q 'Batch \[' "$log" 2>/dev/null && break
		sleep 0.1
	done
	pid=$(sed -n "s/.*node.*$who (rank [0-9]*, pid \\([0-9]*\\)).*/\\1/p" "$log")
	[ -n "$pid" ] && kill -STOP "$pid" || fail "-n $np $*: there is no $who"
	start=$(date +%s%N)
	wait $job
	status=$?
	took=$((($(date +%s%N) - start) / 1000000))
	[ $status != 0 ] && [ $status -lt 124 ] || fail "exit status $status of -n $np $*, $who stopped"
	[ $took -ge $((limit * 1000 - 100)) ] && [ $took -le $(((limit + 30) * 1000 * scale)) ] ||
		fail "-n $np $*, $who stopped: the end comes after $took ms"
	left=$(leftovers)
	[ -z "$left" ] || fail "left running: ${left//$'\n'/ }"
	told=$(grep -c 'error: ' "$log")
	[ "$told" = 1 ] || fail "$told errors, not 1"
	expect "error: .*$regex.*the limit is $limit s \\(--comm-timeout\\)"
	expect "warning: .*$regex"
}

part "a process is stopped for ever"
# Most likely in the exchange of a bucket.
wait='(bucket \d+|the servers|an all-reduce|all ranks to agree|a barrier|all workers)'
stops "worker 1" 3 1 'worker 1 \(rank 1, [^ ]+; stopped\)' $endless
stops "server 0" 2 1 "worker 0 has waited \d\.\d s for $wait.*: nothing from server 0 \(.*; stopped\)" $endless \
	--kv-store dist_sync
in_tier full && stops "worker 0" 2 1 'worker 0 \(rank 0, [^ ]+; stopped\) did not move' $endless --kv-store dist_async
in_tier full && stops "worker 2" 4 1 "for $wait.*worker 2 \(rank 2, [^ ]+; stopped\)" $endless --kv-store dist_allreduce

part "on another node"
if in_tier full && nodes_up 2; then
	nodes_use 2
	stops "worker 1" 3 1 'worker 1 \(rank 1, [^ ]+\)' $endless --kv-store dist_async --num-servers 1
	# Workers 1 and 3 are on one node, and send one sum.
	stops "worker 3" 6 2 'worker 3 \(rank 3, [^ ]+(; stopped)?\)' $endless --kv-store dist_sync
	for more in "" "--node-reduce mpi"; do
		stops "worker 3" 4 2 'worker 3 \(rank 3, [^ ]+(; stopped)?\)' $endless --kv-store dist_allreduce $more
	done
	timeout -k 5 $((60 * scale)) $MPIRUN -n 3 "$(test_program test_watch)" finish >"$log" 2>&1 </dev/null ||
		fail "a worker that finishes long before the others: exit status $?: $(head -n 3 "$log")"
	timeout -k 5 $((60 * scale)) $MPIRUN -n 2 "$(test_program test_watch)" setup >"$log" 2>&1 </dev/null ||
		fail "a rank that is late while the job is set up: exit status $?: $(head -n 3 "$log")"
	nodes_end
fi

part "a store of keys"
timeout -k 5 $((60 * scale)) $MPIRUN -n 3 "$BUILDDIR/mpi_tests/store/test_watch" keys >"$log" 2>&1 </dev/null
status=$?
[ $status = 1 ] || fail "exit status $status of a store of keys with a stopped worker"
expect_count 1 'error: '
expect 'error: .*key 7.*worker 1 \(rank 1, [^ ]+; stopped\)'

part "a request that waits for a push that nobody makes"
timeout -k 5 $((60 * scale)) $MPIRUN -n 3 "$(test_program test_watch)" asks >"$log" 2>&1 </dev/null
status=$?
[ $status = 1 ] || fail "exit status $status of a request that waits for ever"
expect_count 1 'error: '
expect 'warning: server 0 has waited .* for pushes of key 7: nothing from worker 1'
expect 'error: .*server 0 has waited .* for pushes of key 7: nothing from worker 1 .*the limit is 1 s'

part "a store of keys without mu_keys_finish"
for store in forgotten forgotten-servers; do
	timeout -k 5 $((60 * scale)) $MPIRUN -n 3 "$(test_program test_keys_turns)" $store >"$log" 2>&1 </dev/null
	status=$?
	[ $status = 1 ] || fail "exit status $status of a store of keys, $store"
	[ "$(grep -c 'error: ' "$log")" -le 2 ] || fail "more than an error of each of the other two ranks"
	expect 'warning: worker 1 \(rank 1, [^ ]+\) calls mu_keys_free of a .* store without mu_keys_finish'
	expect 'error: worker 1 \(rank 1, [^ ]+\) has freed the store of keys without mu_keys_finish'
done

part "the log of messages"
train 3 $net --num-epochs 1 --num-batches 2 --verbose 1
expect_count 3 '^role: '
expect_count 2 '^connection: worker \d \(rank \d, [^ ]+\) and server 0 \(rank 2, [^ ]+\): '
expect_count 1 '^placement: server 0 \(rank 2, [^ ]+\) serves (\d+) of \1 bytes'
expect_none ' bytes, \d+\.\d+ s$'
export PS_VERBOSE=2 MXNET_KVSTORE_BIGARRAY_BOUND=10
train 3 $net --num-epochs 1 --num-batches 2
expect 'PS_VERBOSE=2: the log has connections and every message'
expect 'MXNET_KVSTORE_BIGARRAY_BOUND=10 has no effect'
# Two steps of two workers: a worker and the server tell of every push, and of every pull.
line='^\d+\.\d{6} s: '
buckets=$(sed -n 's/.* in \([0-9]*\) buckets, .*/\1/p' "$log")
expect_count $((4 * buckets)) "$line"'worker \d to server 0 .*: push of bucket \d+, part 0, \d+ bytes$'
expect_count $((4 * buckets)) "$line"'server 0 from worker \d .*: push of bucket \d+, part 0, \d+ bytes$'
expect_count $((4 * buckets)) "$line"'server 0 to worker \d .*: pull of bucket \d+, part 0, \d+ bytes$'
expect_count $((4 * buckets)) "$line"'worker \d from server 0 .*: pull of bucket \d+, part 0, \d+ bytes, \d+\.\d+ s$'
train 2 $net --num-epochs 1 --num-batches 2 --verbose 0
expect_none 'PS_VERBOSE=|push of bucket|^role'
unset PS_VERBOSE MXNET_KVSTORE_BIGARRAY_BOUND

if in_tier full && [ "$(mpi_kind)" = mpich ]; then
	part "a rank that is another program"
	new_mark
	$MPIRUN -n 1 true : -n 1 "$TRAINER" $net >"$log" 2>&1 </dev/null &
	job=$!
	for _ in $(seq $((600 * scale))); do
		grep -q 'MPI_Init has waited' "$log" && break
		sleep 0.1
	done
	kill -KILL $job
	wait $job
	for _ in $(seq 100); do
		[ -z "$(leftovers)" ] && break
		sleep 0.1
	done
	expect_count 1 '^trainer: warning: rank 1: MPI_Init has waited 30 s: has each of the 2 ranks started this'
	[ -z "$(leftovers)" ] || fail "left running: $(leftovers)"
fi
finish
