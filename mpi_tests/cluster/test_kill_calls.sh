#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rank is killed at every system call with which a run opens the checkpoint that it goes on from, writes the next,
# names it and removes the older one (kill_at.c): there is always a whole file, --resume auto takes the newest, and the
# bits are those of a run that was never interrupted. make check tries some of the calls, make check-long all.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/traced.sh
. "$SRCDIR/mpi_tests/lib/traced.sh"

needs_files
export OMP_NUM_THREADS=1 # bits depend on it
small_set set 100 50
run="--network mlp --data-dir set --batch-size 20 --mom 0.9 --keep 1 --model-prefix R --log-prefix none --log-time 0"

KILL_PREFIX=R

# traced N: the second epoch, from the first's file; killed at the Nth call of $KILL_RANK
traced() {
	rm -f R-*
	cp -p one.h5 R-0001.h5
	run_traced "$1" $np $options --num-epochs 2 --resume auto
}

# What is left after a kill at call $1.
check_left() {
	local newest
	[ $status != 0 ] || fail "exit status 0 after a kill at call $1"
	"$BUILDDIR/mpi_tests/lib/whole_file" R-*.h5 || fail "a damaged file after a kill at call $1"
	newest=$(newest R-*.h5)
	[ ! -e R-0002.h5 ] || cmp two.h5 R-0002.h5 || fail "not the same file after a kill at call $1"
	[ ! -e R-latest ] || [ -e "$(readlink R-latest)" ] || fail "R-latest leads nowhere after a kill at call $1"
	train $np $options --num-epochs 2 --resume auto
	expect "^Resumed from \"$newest\": |^$newest has all 2 epochs: nothing is left to train"
	expect_none 'left out'
	cmp two.h5 R-0002.h5 || fail "other bits after a kill at call $1"
}

# walk STRIDE RANK NP OPTION...
walk() {
	local stride=$1 n calls before=$failures
	KILL_RANK=$2 np=$3
	shift 3
	options="$run $*"
	! in_tier long || stride=1
	last=$(in_tier full && echo 1 || echo 3)
	rm -f R-*
	train $np $options --num-epochs 1
	mv R-0001.h5 one.h5
	cp -p one.h5 R-0001.h5
	train $np $options --num-epochs 2 --resume auto
	mv R-0002.h5 two.h5
	traced 0
	read_calls R-calls
	# The last calls name the file and remove the older one: all of them, or a third.
	for ((n = 1; n <= calls; n += calls - n <= 14 && KILL_RANK == 0 ? last : stride)); do
		traced $n
		check_left $n
	done
	echo "rank $KILL_RANK of $np, $*: $calls calls, every ${stride}th, $((failures - before)) failures"
}

if in_tier full; then
	walk 9 0 1 --kv-store local
	walk 20 0 3 --kv-store dist_sync
	walk 8 1 2 --kv-store dist_sharded
else
	walk 30 0 1 --kv-store local
	walk 24 1 2 --kv-store dist_sharded
fi
if in_tier long; then
	walk 1 0 2 --kv-store dist_allreduce --save-async 0
	walk 1 1 5 --kv-store dist_sync --num-servers 2 --gc-type 2bit --gc-threshold 0.5
	walk 1 0 3 --kv-store dist_sync --save-steps 2
fi
finish
