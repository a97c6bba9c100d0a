#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Jobs over several hosts: they train as on one, and end with the exit status that they should.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"

hosts_possible || exit 77
hosts_up 2 || exit 1
hosts_use 2

part "the end of a job"
for _ in $(seq "$(in_tier full && echo 8 || echo 2)"); do
	train 5 --network mlp --benchmark 1 --num-batches 5 --num-epochs 1 --batch-size 20 --log-prefix none \
		--log-time 0
	expect_count 1 "^worker 0's seconds"
	expect_none 'BAD TERMINATION|the launcher did not take'
done

endless="--network mlp --benchmark 1 --batch-size 20 --lr 0.0001 --num-epochs 1000000 --disp-batches 10"
endless="$endless --kv-store dist_sync --num-servers 2 --log-prefix none --log-time 0 --comm-timeout 4"

# begin ARGUMENT...: a run on two nodes of two ranks, in the background, until it trains
begin() {
	new_mark
	rm -f "$log"
	# shellcheck disable=SC2086 # words
	launch 60 4 $endless "$@" &
	job=$!
	for _ in $(seq 300); do
		grep -q 'Batch \[' "$log" 2>/dev/null && return
		sleep 0.1
	done
	fail "it does not begin to train"
	show_log
}

# ends SECONDS: so long after it, at most, the job is gone from mpirun's host
ends() {
	local start=$SECONDS
	wait $job
	status=$?
	[ $status != 0 ] && [ $status -lt 256 ] && [ $status != 124 ] || fail "exit status $status"
	[ $((SECONDS - start)) -le $(($1 * ${MU_TIMEOUT_SCALE:-1})) ] || fail "it took $((SECONDS - start)) s"
}

# The trainers on host 2.
away() {
	local pid
	for pid in $(ip netns pids "$(hosts_name 2)"); do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" = trainer ] && echo "$pid"
	done
}

# cut_wire: the wire to host 2 is cut; the job ends, and says that it waited for that host, or for who waits for it
cut_wire() {
	local host2='nothing from (.*mu.*-2\)(, .*)?|[^;]*mu[0-9]+-1; waits, too\))'
	ip link set "muv$$-2" down
	ends 60
	# Open MPI's launcher may notice first that a daemon is gone, and ends the job itself.
	if [ "$(mpi_kind)" != openmpi ] || ! grep -q 'Remote daemon' "$log"; then
		expect_count 1 'error: '
		expect "error: .* has waited [0-9.]+ s for .*: $host2; the limit is 4 s \(--comm-timeout\)"
	fi
	# There they notice 7 s later than here, wait 2.5 s for parts of a file, 5 s for other ranks' words, and 5 s for
	# the launcher.
	for _ in $(seq $((30 * ${MU_TIMEOUT_SCALE:-1}))); do
		[ -n "$(away)" ] || break
		sleep 1
	done
	[ -z "$(away)" ] || fail "trainers go on on the host that is cut off"
	leftovers >/dev/null # its part of the launcher
	ip link set "muv$$-2" up
	hosts_wait 2 || fail "the host is not reached again"
}

part "the wire to a host is cut in the middle of a step"
saving=()
has_files && saving=(--num-batches 12 --save-steps 4 --keep 3)
begin "${saving[@]}" ${saving[0]:+--model-prefix N}
cut_wire
if has_files; then
	newest=$(newest N-*.h5)
	"$BUILDDIR/mpi_tests/lib/whole_file" N-*.h5 || fail "a damaged checkpoint"
	last=$(echo "$newest" | sed 's/N-\([0-9]*\).*/\1/')
	last=$((10#$last + 2))
	# shellcheck disable=SC2086 # words
	for words in "--model-prefix N --resume auto" "--model-prefix M"; do
		train 4 ${endless/1000000/$last} "${saving[@]}" $words
		[ "$words" = "--model-prefix M" ] || expect "^Resumed from \"$newest\": "
	done
	last=$(printf %04d $last)
	cmp "M-$last.h5" "N-$last.h5" || fail "other bits after the wire was cut"
fi

part "the wire to a host is cut while workers wait for each other's parts of a checkpoint"
if in_tier full && has_files; then
	begin --num-batches 2 --disp-batches 1 --save-async 0 --keep 1 --model-prefix S
	for _ in $(seq 100); do
		[ -z "$(compgen -G 'S-*.h5')" ] || break
		sleep 0.1
	done
	cut_wire
	"$BUILDDIR/mpi_tests/lib/whole_file" S-*.h5 || fail "a damaged checkpoint"
fi

part "all ranks of a host are killed"
begin
# shellcheck disable=SC2046 # numbers
kill -KILL $(away)
ends 60
expect_count 1 'BAD TERMINATION|exited on signal 9'
left=$(leftovers)
[ -z "$left" ] || fail "left running: $left"

part "wrong use"
run_limited 100 3 --network mlp --benchmark 1 --kv-store dist
[ $status = 2 ] || fail "exit status $status of a wrong option"
finish
