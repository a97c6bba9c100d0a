# shellcheck shell=bash disable=SC2154 # variables of gpu-check.sh and run.sh
# SPDX-License-Identifier: Apache-2.0
# Sourced by jobs/gpu/run.sh: the tests that came along, one after the other, and compute-sanitizer over some of them.

# The most telling first. What else is packed runs behind them.
test_order="test_gpu test_ops test_dtype test_fused test_engines test_recorded test_versions test_nccl test_net
	test_custom test_space test_convolution test_blocks test_steps test_golden"

# The tests to run: those of the order that are packed, then the others.
test_names() {
	local name
	for name in ${TESTS-$test_order}; do
		compgen -G "$tree/mpi_tests/*/$name" >/dev/null && echo "$name"
	done
	[ -n "${TESTS-}" ] || sort "$tree/tests" | sed 's/\.c$//' | grep -vxF "$(tr -s ' \t' '\n' <<<"$test_order")"
}

# run_test NAME: one, in an empty folder; a C test without a launcher, as one rank. Records its result.
run_test() {
	local name=$1 begin=$SECONDS st word text path log=$out/tests/$1.log
	path=$(compgen -G "$tree/mpi_tests/*/$name" | head -n 1)
	mkdir -p "$work/scratch" "$out/tests"
	(cd "$work/scratch" && MU_TIER=quick MU_TEST_DEVICES=gpu ours limited 30 "$path") >"$log" 2>&1 </dev/null
	st=$?
	end_left
	rm -rf "$work/scratch"
	text=
	case $st in
	0)
		word=PASS
		text=$(grep -m 1 'skipped on gpu\|not tested on gpu' "$log")
		;;
	77) word=SKIP text=$(grep -i -m 1 skip "$log") ;;
	124 | 137) word="OUT OF TIME" text=$(tail -n 1 "$log") ;;
	*)
		word=FAIL
		text="exit status $st: $(grep -m 1 ':[0-9]*: failed: \|error: \|ERROR' "$log" || tail -n 1 "$log")"
		;;
	esac
	record test "$name" "$word" $((SECONDS - begin)) "$text"
	echo "$word" >>"$work/verdicts"
}

tests() {
	local name not_run=
	needs_gpu || return 77
	: >"$work/verdicts"
	export SRCDIR=$tree BUILDDIR=$tree MPIRUN=$tree/bin/mpirun TRAINER=$tree/trainer DIGITS=$tree/digits
	for name in $(test_names); do
		if [ "$(left)" -lt 2 ]; then
			record test "$name" "NOT RUN" 0 "no time left"
			not_run="$not_run $name"
			continue
		fi
		run_test "$name"
	done
	for name in PASS FAIL "OUT OF TIME" SKIP; do
		printf '%d %s, ' "$(grep -cx "$name" "$work/verdicts")" "$name"
	done
	echo "not run:${not_run:- none}"
	! grep -qx 'FAIL\|OUT OF TIME' "$work/verdicts"
}

# sanitize TOOL TEST
sanitize() {
	local log=$out/sanitizer-$1-$2.log path st word last
	path=$(compgen -G "$tree/mpi_tests/*/$2") || return 0
	mkdir -p "$work/scratch"
	# Tests ask on purpose for what the driver refuses, such as too much memory.
	(cd "$work/scratch" && MU_TEST_DEVICES=gpu ours limited 30 compute-sanitizer --tool "$1" --error-exitcode 99 \
		--report-api-errors no "$path") >"$log" 2>&1
	st=$?
	rm -rf "$work/scratch"
	word=FAIL
	[ $st != 0 ] || word=PASS
	[ $st != 124 ] && [ $st != 137 ] || word="OUT OF TIME"
	last=$(grep 'ERROR SUMMARY\|RACECHECK SUMMARY' "$log" | tail -n 1)
	record test "$1 over $2" "$word" 0 "${last:-$(tail -n 1 "$log")}"
	[ "$word" != PASS ] || ran=$((ran + 1))
	[ "$word" != FAIL ]
}

# memcheck of the device's own test and of operations that are kernels of our own, racecheck of those that share memory.
sanitizer() {
	local bad=0 ran=0
	needs_gpu || return 77
	command -v compute-sanitizer >/dev/null || { echo "no compute-sanitizer" && return 77; }
	export SRCDIR=$tree BUILDDIR=$tree
	sanitize memcheck test_gpu || bad=$((bad + 1))
	MU_TEST_CASES="softmax norm embed" sanitize racecheck test_ops || bad=$((bad + 1))
	MU_TEST_CASES="softmax norm embed attention max average concat lrn dropout" sanitize memcheck test_ops ||
		bad=$((bad + 1))
	echo "$ran of 3 without errors, $bad with"
	[ $bad = 0 ]
}
