# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Runs of the trainer that lib/kill_at strikes at one of their system calls. Read after lib.sh.
# shellcheck disable=SC2154 # from lib.sh

ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" # leaks cannot be looked for in a process that is traced
export ASAN_OPTIONS REAL_TRAINER=$TRAINER KILL_RANK KILL_AT KILL_PREFIX
cat >traced_trainer <<'TEXT'
#!/bin/sh
exec "$BUILDDIR/mpi_tests/lib/kill_at" "$KILL_RANK" "$KILL_AT" "$KILL_PREFIX" "$REAL_TRAINER" "$@"
TEXT
chmod +x traced_trainer

# run_traced N NP ARGUMENT...: run_limited, struck at the Nth call of $KILL_RANK; 0: the calls are counted
run_traced() {
	KILL_AT=$1
	shift
	TRAINER=$PWD/traced_trainer
	run_limited 100 "$@"
	TRAINER=$REAL_TRAINER
}

# read_calls FILE: $calls, of a run with N = 0; a test that cannot trace ends here
read_calls() {
	if grep -q '^skip: ' "$log"; then
		grep '^skip: ' "$log"
		exit 77
	fi
	calls=$(cat "$1")
	[ $status = 0 ] && [ "${calls:-0}" -ge 3 ] || fail "the calls were not counted: status $status, \"$calls\""
}
