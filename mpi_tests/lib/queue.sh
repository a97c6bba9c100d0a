# SPDX-License-Identifier: Apache-2.0
# What tests of batch systems share. Sourced by bash after lib.sh.
# shellcheck shell=bash
# shellcheck disable=SC2154 # the test's

# wait_for SECONDS WHAT COMMAND...: until the command succeeds
wait_for() {
	local n=$(($1 * 4 * ${MU_TIMEOUT_SCALE:-1})) what=$2
	shift 2
	for _ in $(seq $n); do
		"$@" && return
		sleep 0.25
	done
	fail "waited in vain for $what; the queue: $(queue_shows)"
	tail -n 5 muster-*.log
	return 1
}

# Epochs in the log of job $id.
epochs() {
	grep -c Train-accuracy "muster-$id.log" 2>/dev/null
}

has_trained() { # MORE: than so many epochs
	[ "$(epochs)" -gt "$1" ] 2>/dev/null
}

# Batch files find jobs/supervise where they are submitted.
link_jobs() {
	ln -s "$SRCDIR/jobs" jobs
}
