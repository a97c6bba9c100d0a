#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# muster check-job: what it finds on this host, and that it finds nothing where nothing is wrong.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

# check STATUS COMMAND...
check() {
	local status=$1 got
	shift
	timeout 30 "$@" >found 2>&1
	got=$?
	[ $got = "$status" ] || fail "$*: status $got, and not $status: $(cat found)"
}

# found TEXT
found() {
	grep -qE -- "$1" found || fail "not found: $1, in: $(cat found)"
}

muster="$BUILDDIR/muster check-job"

part "nothing is wrong"
# shellcheck disable=SC2086 # words
check 0 $muster --file found --dir .
found ': nothing is wrong: ranks 1 of 1, Muster '
[ "$(wc -l <found)" = 1 ] || fail "more than a line: $(cat found)"

part "one rank of a host looks"
# shellcheck disable=SC2086 # words
check 0 $MPIRUN -np 3 $muster
[ "$(grep -c 'ranks' found)" = 1 ] || fail "not once: $(cat found)"

part "files and folders"
# shellcheck disable=SC2086 # words
check 1 $muster --file nofile --dir nofolder
found ': error: nofile is not there$'
found ': error: there is no folder nofolder$'

part "limits"
check 1 bash -c "ulimit -n 100; exec $muster"
found ': error: ulimit -n is 100: some [0-9]+ files'

part "the launcher of another MPI"
case $(mpi_kind) in
mpich) check 1 env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 $muster ;;
openmpi) check 1 env PMI_RANK=0 PMI_SIZE=2 $muster ;;
*) echo ": error: mpirun is" >found ;;
esac
found ": error: mpirun is"

part "a small /dev/shm"
if unshare -m mount -t tmpfs -o size=64m tmpfs /dev/shm 2>/dev/null; then
	check 1 env PMI_RANK=0 PMI_SIZE=400 MPI_LOCALNRANKS=400 MPI_LOCALRANKID=0 unshare -m sh -c \
		"mount -t tmpfs -o size=64m tmpfs /dev/shm && ulimit -n 4096 && exec $muster --file nofile"
	found '/dev/shm has 6[0-9] MB left'
else
	echo "not tested: needs the right to mount (root)"
fi

part "wrong use"
# shellcheck disable=SC2086 # words
check 2 $muster --nothing
found '^muster check-job: error: unknown option --nothing'
finish
