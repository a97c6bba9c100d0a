#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mpi_tests/run itself: which tests and numbers of ranks each tier has, ONLY, what counts as failed and as skipped, and
# that nothing but the tier full runs a test twice.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

mkdir -p tree/mpi_tests/{unit,cluster,lib} build/mpi_tests/unit
# shell NAME TAGS COMMAND: a shell test that leaves its name, and does this
shell() {
	printf '#!/bin/sh\n# %s\necho %s $MU_TIER >>%s/ran\n%s\n' "$2" "${1##*/}" "$PWD" "$3" >"tree/mpi_tests/$1.sh"
	chmod +x "tree/mpi_tests/$1.sh"
	tests="$tests mpi_tests/$1.sh"
}
tests=mpi_tests/unit/test_c
echo '/* @np 1 3 @np-full 1 2 3 4 */' >tree/mpi_tests/unit/test_c.c
printf '#!/bin/sh\nexit 0\n' >build/mpi_tests/unit/test_c
printf '#!/bin/sh\necho "test_c $2" >>%s/ran\n' "$PWD" >launcher
chmod +x build/mpi_tests/unit/test_c launcher
shell unit/test_small '' ''
shell unit/test_minutes '@tier full' ''
shell cluster/test_hour '@tier long @timeout 600' ''

# suite TIER WANTED...: what ran in it, in any order
suite() {
	local tier=$1 wanted
	shift
	wanted=$([ $# = 0 ] || printf '%s\n' "$@" | sort | tr '\n' ' ')
	: >ran
	# shellcheck disable=SC2086 # words
	env -u ONLY MU_TIER="$tier" SRCDIR="$PWD/tree" BUILDDIR="$PWD/build" MPIRUN="$PWD/launcher" \
		${only:+"ONLY=$only"} "$SRCDIR/mpi_tests/run" $tests >"$log" 2>&1
	status=$?
	sed 's/ [a-z]*$//' ran | sort | tr '\n' ' ' >found
	[ "$(cat found)" = "$wanted" ] || fail "$tier${only:+, $only}: ran: $(cat found)"
}

part "tiers"
only=
suite quick "test_c 1" "test_c 3" test_small
[ $status = 0 ] || { fail "exit status $status" && show_log; }
expect '^PASS test_c np=3 [0-9.]+s cpu [0-9.]+$'
expect '^left to make check-all or check-long: test_minutes test_hour$'
suite full "test_c 1" "test_c 2" "test_c 3" "test_c 4" test_small test_minutes
expect '^6 passed, 0 failed, 0 skipped$'
suite long "test_c 1" "test_c 2" "test_c 3" "test_c 4" test_small test_minutes test_hour
expect_none '^left to'
suite fast
[ $status = 2 ] || fail "exit status $status, not 2, of a tier that is none"

part "some tests"
only="test_hour.sh" # by its name whatever its tier
suite quick test_hour
only="unit"
suite quick "test_c 1" "test_c 3" test_small
only="cluster test_c"
suite quick "test_c 1" "test_c 3"
only=

part "verdicts"
shell unit/test_bad '' 'echo why; exit 3'
shell unit/test_skipped '' 'echo "skipped: no such machine"; exit 77'
shell unit/test_silent '' 'exit 77'
shell cluster/test_left '' 'sleep 100 >/dev/null 2>&1 &'
only="test_bad.sh test_skipped.sh test_silent.sh test_left.sh"
suite quick test_bad test_left test_silent test_skipped
[ $status = 1 ] || fail "exit status $status, not 1"
expect '^FAIL test_bad [0-9.]+s \(exit status 3\)'
expect '^    why$'
expect '^SKIP test_skipped .*: skipped: no such machine$'
expect '^FAIL test_silent '
expect '^FAIL test_left '
expect '^    left running and killed: \d+$'
expect '^0 passed, 3 failed, 1 skipped$'

part "input"
shell unit/test_input '' 'timeout 0.2 cat; [ $? = 124 ]'
only=test_input.sh
suite quick test_input
[ $status = 0 ] || fail "a test's input has an end: mpirun may end by SIGPIPE"

part "a second try"
shell unit/test_unsteady '' "rm $PWD/first 2>/dev/null && exit 1; exit 0"
only=test_unsteady.sh
touch first
suite quick test_unsteady
expect '^0 passed, 1 failed, 0 skipped$'
touch first
suite full test_unsteady test_unsteady
expect '^AGAIN test_unsteady '
expect '^unsteady, .*: test_unsteady$'
expect '^1 passed, 0 failed, 0 skipped$'
finish
