# SPDX-License-Identifier: Apache-2.0
# What the shell tests of the trainer share. Sourced by bash, in the empty folder of a test.
# shellcheck shell=bash

failures=0
status=0
log=trainer.log
run_mark=
# What a log must not have, as a regular expression of Perl. MPICH's launcher now and then tells of a rank that ended
# itself by MPI_Abort, or that it killed, as one that ended badly: that alone (1, 2; 9) is no crash.
crashes='EXIT CODE: (?!1$|2$|9$)\d|Sanitizer|Segmentation|Bus error|core dumped|runtime error|MPIR_|double free'

# fail TEXT: count it, with the line of the test that called the check.
fail() {
	local i=0
	while [ "${BASH_SOURCE[$i]##*/}" = lib.sh ]; do i=$((i + 1)); done
	echo "${BASH_SOURCE[$i]}:${BASH_LINENO[$((i - 1))]}: failed: $1"
	failures=$((failures + 1))
}

# The end of a test.
finish() {
	[ $failures = 0 ] || echo "$failures failures"
	[ $failures = 0 ]
	exit
}

# part TEXT: what the checks below are about, and when they began, so that the log of the test can be read.
part() {
	local now=${EPOCHREALTIME/[.,]/}
	begun_at=${begun_at:-$now}
	now=$(((now - begun_at) / 100000))
	echo "== $1 (at $((now / 10)).$((now % 10)) s)"
}

# in_tier full, in_tier long: does the suite run in this tier, or in a larger one? See mpi_tests/run.
in_tier() {
	case $1.${MU_TIER:-quick} in
	full.quick | long.quick | long.full) return 1 ;;
	esac
}

# What a sanitizer says is told however long the log is: mpi_tests/run looks for it.
show_log() {
	grep -P "$crashes" "$log" | head -n 3 | sed 's/^/    /'
	grep -v 'start with arguments' "$log" | cut -c 1-300 | tail -n 25 | sed 's/^/    /'
}

# same_model A.h5 B.h5 [PATTERN]: the same parameters and running statistics, bit for bit; or those of
# them that match
same_model() {
	"$BUILDDIR/mpi_tests/lib/same_model" "$@"
}

# test_program NAME: its path; tests lie in folders by what they test.
test_program() {
	echo "$BUILDDIR"/mpi_tests/*/"$1"
}

# small_set DIR TRAIN TEST
small_set() {
	"$DIGITS" --output "$1" --train "$2" --test "$3" && [ -s "$1/train-images-idx3-ubyte.gz" ] && return
	fail "cannot make a data set: $DIGITS --output $1 --train $2 --test $3"
	finish
}

# Is the trainer built with the address sanitizer?
is_sanitized() {
	"${NM:-nm}" "$TRAINER" 2>/dev/null | grep -q __asan_init
}

has_files() {
	! "$TRAINER" --info | grep -q '^HDF5: *not built in'
}

# The python that has these modules, "h5py": $PY, or one of the system; prints nothing where none has.
find_python() {
	local candidate
	for candidate in ${PY:+"$PY"} python3 /usr/bin/python3; do
		$candidate -c "import $1" 2>/dev/null && echo "$candidate" && return
	done
}

# Debian: python3-h5py.
find_h5py() {
	find_python h5py
}

# The rest of the test needs HDF5.
needs_files() {
	has_files && return
	echo "skipped: this build has no HDF5"
	exit 77
}

# The MPI of this build: mpich, openmpi or other.
mpi_kind() {
	case $("$TRAINER" --info | grep '^MPI:') in
	*MPICH*) echo mpich ;;
	*"Open MPI"*) echo openmpi ;;
	*) echo other ;;
	esac
}

# Processes that the last job left, if it was started by launch or train. Ranks may take a moment
# to end after mpirun.
leftovers() {
	local pids
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		pids=$(grep -lzs "^MU_TEST_PART=$run_mark\$" /proc/[0-9]*/environ | cut -d / -f 3)
		[ -z "$pids" ] && return
		sleep 0.2
	done
	echo "$pids"
	# shellcheck disable=SC2086 # a list of numbers
	kill -KILL $pids 2>/dev/null
}

# newest FILE...: the checkpoint of the latest step, by its name: two may have one time
newest() {
	[ -e "$1" ] && printf '%s\n' "$@" | sed 's/\.h5$//' | sort -V | tail -n 1 | sed 's/$/.h5/'
}

# launch LIMIT NP ARGUMENT...: the trainer on NP ranks, at most LIMIT seconds; what it prints goes
# to $log. Becomes the command, so that $! of a job in the background is timeout's number.
launch() {
	local limit=$(($1 * ${MU_TIMEOUT_SCALE:-1})) np=$2
	shift 2
	# shellcheck disable=SC2086 # MPIRUN may hold options
	MU_TEST_PART=$run_mark exec timeout -k 5 "$limit" $MPIRUN -n "$np" "$TRAINER" "$@" \
		>"$log" 2>&1 </dev/null
}

# launcher_of JOB: the launcher of a job that launch began in the background. A signal to JOB itself, which is
# timeout, reaches the launcher twice, and MPICH's ends all ranks at the second Ctrl-C.
launcher_of() {
	grep -ls "^PPid:[[:space:]]*$1\$" /proc/[0-9]*/status | cut -d / -f 3
}

new_mark() {
	run_mark=$$.$RANDOM.$RANDOM
}

# run_limited LIMIT NP ARGUMENT...: sets $status and leaves $log.
run_limited() {
	local left
	new_mark
	(launch "$@")
	status=$?
	left=$(leftovers)
	[ -z "$left" ] || fail "left running: ${left//$'\n'/ }"
}

# train NP ARGUMENT...: a run that must succeed.
train() {
	run_limited 100 "$@"
	[ $status = 0 ] && return
	fail "exit status $status of -n $*"
	show_log
	return 1
}

# expect REGEX: a line of the log matches. P: the regular expressions of Perl, with \t.
expect() {
	grep -Pq "$1" "$log" && return
	fail "no line matches $1"
	show_log
}

expect_none() {
	grep -Pq "$1" "$log" || return
	fail "a line matches $1: $(grep -P "$1" "$log" | head -n 1)"
	show_log
}

# expect_count N REGEX
expect_count() {
	local n
	n=$(grep -Pc "$2" "$log")
	[ "$n" = "$1" ] && return
	fail "$n lines match $2, not $1"
	show_log
}

# value NAME: what the last line NAME=... of the log says
value() {
	sed -n "s/.*$1=\\([0-9.]*\\).*/\\1/p" "$log" | tail -n 1
}

# at_least NAME NUMBER
at_least() {
	awk -v a="$(value "$1")" -v b="$2" 'BEGIN { exit !(a != "" && a + 0 >= b + 0) }' && return
	fail "$1 is $(value "$1"), less than $2"
	show_log
}
