#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @tier full
# Hosts that answer slowly are not lost: a slow link does not end a job with a short limit of waits. A host that falls
# silent is lost: one line says so, whichever ranks of other hosts wait for it.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"

hosts_possible || exit 77
hosts_up 3 || exit 1
hosts_use 3
scale=${MU_TIMEOUT_SCALE:-1}
run="--network mlp --benchmark 1 --batch-size 20 --lr 0.0001 --disp-batches 1 --log-prefix none --log-time 0"

part "a slow link"
hosts_rate 4mbit || fail "the wires keep their rate"
train 3 $run --num-batches 1 --num-epochs 1 --kv-store dist_allreduce --comm-timeout 4
expect '^a link of [0-9.]+ GB/s bounds a step'
hosts_rate ""

# silent RANKS ARGUMENT...: host 3 falls silent in the middle of a step; one line names it, or a rank that waits for it
silent() {
	local np=$1 k started
	shift
	new_mark
	rm -f "$log"
	launch 100 $np $run --num-epochs 1000000 --comm-timeout 3 "$@" &
	job=$!
	for ((k = 0; k < 300 * scale; k++)); do
		[ "$(grep -c 'Batch \[' "$log" 2>/dev/null)" -lt 3 ] || break
		sleep 0.1
	done
	ip link set "muv$$-3" down
	started=$SECONDS
	wait $job
	status=$?
	[ $status != 0 ] && [ $status -lt 124 ] || fail "exit status $status of -n $np $*"
	[ $((SECONDS - started)) -le $((30 * scale)) ] || fail "it took $((SECONDS - started)) s"
	[ "$(grep -c 'error: ' "$log")" = 1 ] || fail "not one error of -n $np $*: $(grep 'error: ' "$log")"
	expect "error: .* has waited [0-9.]+ s for .*: nothing from .*mu$$-[123].*; the limit is 3 s \(--comm-timeout\)"
	leftovers >/dev/null # its part of the launcher
	ip link set "muv$$-3" up
	hosts_wait 3 || fail "the host is not reached again"
}

part "a host falls silent"
silent 3 --kv-store dist_allreduce
silent 6 --kv-store dist_sync
silent 4 --kv-store dist_async --num-servers 1
silent 6 --kv-store dist_sharded
finish
