#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 200
# A small /dev/shm, as containers have: the ranks of a node send messages then, say so, and get the
# same bits; with --node-reduce shm it is an error. On several nodes they still reduce before they send.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

# The weights of this network take 85 MB, what MPI itself needs less than 64.
net="--network resnet --num-layers 34 --image-shape 3,32,32 --benchmark 1 --num-batches 1 --num-epochs 1 \
--batch-size 1 --kv-store dist_sync --num-servers 1 --log-prefix none --log-time 0"
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
train 3 $net
expect '^ranks of a node share memory'
expected=$(value Train-cross-entropy)

part "no room: messages"
MPIRUN="unshare -m $PWD/small $mpirun"
# shellcheck disable=SC2086
train 3 $net
expect '/dev/shm of \S+ has no room for \d+\.\d MB of every worker: the ranks of this node send messages'
expect '^ranks of a node send messages$'
[ -n "$expected" ] && [ "$(value Train-cross-entropy)" = "$expected" ] ||
	fail "cross-entropy is $(value Train-cross-entropy), with shared memory $expected"

if [ "$(mpi_kind)" = mpich ]; then
	part "no room on two nodes: messages, and one sum of gradients to the other node"
	export MPIR_CVAR_NUM_CLIQUES=2
	several=${net/dist_sync --num-servers 1/dist_allreduce}
	# shellcheck disable=SC2086
	train 4 $several
	expect '^ranks of a node send messages, and to other nodes one sum of gradients$'
	reduced=$(value Train-cross-entropy)
	MPIRUN=$mpirun
	# shellcheck disable=SC2086
	train 4 $several --node-reduce none
	[ -n "$reduced" ] && [ "$(value Train-cross-entropy)" = "$reduced" ] ||
		fail "cross-entropy is $reduced, and $(value Train-cross-entropy) without node reduction"
	unset MPIR_CVAR_NUM_CLIQUES
	MPIRUN="unshare -m $PWD/small $mpirun"
fi

part "no room, and it is wanted"
# shellcheck disable=SC2086
run_limited 100 3 $net --node-reduce shm
[ $status = 1 ] || fail "exit status $status"
expect_count 1 'has no room for \d+\.\d MB of every worker; make it larger, .* \(--node-reduce auto, mpi or none\)'
finish
