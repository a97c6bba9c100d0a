#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 200 @plain
# A small /dev/shm, as containers have: the ranks of a node send messages then, say so, and get the
# same bits; with --node-reduce shm it is an error.
set -u
# shellcheck source=mpi_tests/lib.sh
. "$SRCDIR/mpi_tests/lib.sh"

# The weights of this network take 240 MB, what MPI itself needs less than 64.
alexnet="--network alexnet --benchmark 1 --num-batches 1 --num-epochs 1 --batch-size 1 \
--kv-store dist_sync --num-servers 1 --log-prefix none --log-time 0"
mpirun=$MPIRUN

unshare -m mount -t tmpfs -o size=64m tmpfs /dev/shm 2>/dev/null || {
	echo "skip: needs the right to mount (root)"
	exit 77
}

cat >small <<'EOF'
#!/bin/sh
mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"
EOF
chmod +x small

part "room for all"
# shellcheck disable=SC2086 # lists of options are words
train 3 $alexnet
expect '^ranks of a node share memory'
expected=$(value Train-cross-entropy)

part "no room: messages"
MPIRUN="unshare -m $PWD/small $mpirun"
# shellcheck disable=SC2086
train 3 $alexnet
expect '/dev/shm of \S+ has no room for \d+\.\d MB of every worker: the ranks of this node send messages'
expect '^ranks of a node send messages$'
[ -n "$expected" ] && [ "$(value Train-cross-entropy)" = "$expected" ] ||
	fail "cross-entropy is $(value Train-cross-entropy), with shared memory $expected"

part "no room, and it is wanted"
# shellcheck disable=SC2086
run_limited 100 3 $alexnet --node-reduce shm
[ $status = 1 ] || fail "exit status $status"
expect_count 1 'has no room for \d+\.\d MB of every worker; make it larger, or let the ranks send messages'
finish
