#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two hosts of two workers: what passes the wire per step, counted at the wire, is one array of
# gradients and one of weights per host, not per worker; and the log of messages says so.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"

hosts_possible || exit 77
hosts_up 2 || exit 1
hosts_use 2
net="--network mlp --benchmark 1 --num-epochs 1 --batch-size 20 --log-prefix none --log-time 0"

# bytes_of STEPS NP ARGUMENT...: what both hosts send in a run, into $bytes
bytes_of() {
	local steps=$1 before
	shift
	before=$(($(hosts_sent 1) + $(hosts_sent 2)))
	# shellcheck disable=SC2086 # options
	train "$@" $net --num-batches "$steps"
	bytes=$(($(hosts_sent 1) + $(hosts_sent 2) - before))
}

# per_step NP ARGUMENT...: without what a job sends once, into $bytes. That differs by two models from job to job: the
# speed of the link is measured.
per_step() {
	local few
	bytes_of 10 "$@"
	few=$bytes
	bytes_of 210 "$@"
	bytes=$(((bytes - few) / 200))
}

# Every host sends to the other its gradients of one half of the model, and the results of the other
# half: the model once. An mlp has 109386 weights.
model=$((109386 * 4))
part "bytes of a step"
jobs=("4 dist_sharded")
! in_tier full || jobs+=("6 dist_sync --num-servers 2" "4 dist_allreduce")
for job in "${jobs[@]}"; do
	# shellcheck disable=SC2086 # words
	set -- $job
	per_step "$1" --kv-store "${@:2}" --node-reduce auto
	node=$bytes
	per_step "$1" --kv-store "${@:2}" --node-reduce mpi
	messages=$bytes
	per_step "$1" --kv-store "${@:2}" --node-reduce none
	echo "$2: $node bytes a step; by messages inside the node $messages; without node reduction $bytes;" \
		"two models are $((2 * model))"
	for sent in $node $messages; do
		[ $((sent * 100)) -ge $((2 * model * 95)) ] && [ $((sent * 100)) -le $((2 * model * 115)) ] ||
			fail "$2: both hosts send $sent bytes a step, and two models are $((2 * model))"
		[ $((bytes * 100)) -ge $((sent * 180)) ] ||
			fail "$2: $bytes bytes a step without node reduction, $sent with it"
	done
done

# count REGEX: lines of the log, into $lines
count() {
	lines=$(grep -Ec "^[0-9.]+ s: $1" "$log")
}

in_tier full || finish
part "the log of messages"
for what in push pull; do
	for node in none mpi auto; do
		# shellcheck disable=SC2086 # options
		train 6 $net --num-servers 2 --num-batches 3 --verbose 2 --node-reduce "$node"
		count "server [0-9] (from|to) worker .*: $what of bucket"
		servers=$lines
		count "worker [0-9] (from|to) server .*: $what of bucket"
		workers=$lines
		count "worker [0-9] (from|to) worker .*: $what of bucket"
		[ "$node" = none ] && all=$servers
		[ "$node" = mpi ] && lines=$((lines / 2)) # both workers tell of a message
		[ "$servers" = "$workers" ] && [ "$((servers + lines))" = "$all" ] && [ "$all" -gt 0 ] ||
			fail "$node: $what: $servers lines of servers, $workers of workers, $lines between workers"
	done
	# Of four workers' gradients of a part two come from the other host, as one message.
	[ $((servers * 4)) = $((all * 3)) ] || fail "$what: $servers messages, $all without node reduction"
done
finish
