#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The folder of the checkpoints is taken away at every system call with which a run of two epochs writes, names and
# removes them (kill_at.c). The job ends with one error that names a file in the folder and the cause, the files that
# were taken are whole, and put back a run goes on from them. The tier quick tries some of the calls, long all.
# @timeout 1500
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/traced.sh
. "$SRCDIR/mpi_tests/lib/traced.sh"

needs_files
small_set set 100 50
run="--network mlp --data-dir set --batch-size 20 --keep 1 --model-prefix away/P --log-prefix none --log-time 0"

KILL_PREFIX=away/

# traced N EPOCHS: the folder goes at the Nth call of $KILL_RANK
traced() {
	rm -rf away away-taken
	mkdir away
	run_traced "$1" $np $options --num-epochs $2
}

# What a run says that lost its folder at call $1, and what is left.
check_left() {
	local files newest
	[ $status = 1 ] || [ $status = 2 ] || { fail "exit status $status, folder taken at call $1" && show_log; }
	expect 'error: .*away/P.*: No such file or directory$'
	expect_count 1 'error: '
	[ ! -e away ] || { fail "the folder was made again after call $1: $(ls away)" && return; }
	mv away-taken away || fail "the folder was not taken at call $1"
	files=$(compgen -G 'away/P-*.h5') || return
	"$BUILDDIR/mpi_tests/lib/whole_file" $files || fail "a damaged file, folder taken at call $1"
	[ $(($1 % 4)) = 1 ] || in_tier long || return
	newest=$(newest $files)
	train $np $options --num-epochs 2 --resume auto
	expect "^Resumed from \"$newest\": |^$newest has all 2 epochs: nothing is left to train"
}

# walk STRIDE RANK NP OPTION...
walk() {
	local stride=$1 n calls before=$failures
	KILL_RANK=$2 np=$3
	shift 3
	options="$run $*"
	! in_tier long || stride=1
	traced 0 2
	read_calls away-calls
	# A run of four epochs: it has files to write after each of them.
	for ((n = 1; n <= calls; n += stride)); do
		traced $n 4
		check_left $n
	done
	echo "rank $KILL_RANK of $np, $*: $calls calls, every ${stride}th, $((failures - before)) failures"
}

if in_tier full; then
	walk 3 0 1 --kv-store local
	walk 11 0 3 --kv-store dist_sync
	walk 7 1 2 --kv-store dist_sharded
	walk 29 0 1 --kv-store local --save-async 0 --save-steps 2
else
	walk 14 0 1 --kv-store local
fi
finish
