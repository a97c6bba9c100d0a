#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
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

if in_tier full && [ "$(mpi_kind)" = mpich ]; then
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
[ $status = 1 ] || fail "exit status $status, not 1: other jobs may leave room"
expect_count 1 'has no room for \d+\.\d MB of every worker; make it larger, .* \(node-reduce auto, mpi or none\)'
part "a rank is killed at every call that makes shared memory"
# In a /dev/shm of its own: what is there afterwards is the killed job's.
cat >kills <<'EOF'
#!/usr/bin/env bash
mount -t tmpfs -o size=200m tmpfs /dev/shm || exit
for rank in 0 1; do
	for ((n = 0, calls = 1; n <= calls; n++)); do
		rm -f /dev/shm/muster-*
		KILL_RANK=$rank KILL_AT=$n timeout -k 5 100 $MPIRUN -n 2 ./traced $NET >kills.log 2>&1 </dev/null
		status=$?
		[ $n = 0 ] && { [ $status != 77 ] || exit 77; calls=$(cat muster--calls) || exit; continue; }
		left=$(du -sk /dev/shm/muster-* 2>/dev/null | awk '{ s += $1 } END { print s + 0 }')
		echo "rank $rank, call $n of $calls: status $status, $left KB"
		[ $left = 0 ] && [ $status != 0 ] || echo "$rank $n" >>bad
	done
done
rm -f /dev/shm/muster-*
head -c 100000 /dev/zero >/dev/shm/muster-999999999-a
head -c 100000 /dev/zero >/dev/shm/muster-999999999-young
head -c 100000 /dev/zero >/dev/shm/muster-$$-alive
touch -d '2 minutes ago' /dev/shm/muster-999999999-a /dev/shm/muster-$$-alive
$MPIRUN -n 2 "$TRAINER" $NET >swept.log 2>&1
ls /dev/shm/muster-* | sed 's/.*-//' >swept
EOF
cat >traced <<'EOF'
#!/bin/sh
exec "$BUILDDIR/mpi_tests/lib/kill_at" "$KILL_RANK" "$KILL_AT" muster- "$TRAINER" "$@"
EOF
chmod +x kills traced
small="--network mlp --benchmark 1 --num-batches 1 --num-epochs 1 --batch-size 1"
MPIRUN=$mpirun NET="$small --kv-store dist_allreduce" \
	unshare -m ./kills
if [ -e muster--calls ]; then
	[ ! -e bad ] || fail "memory is left, or a kill missed, at calls $(tr '\n' ',' <bad)"
	[ "$(tr '\n' ' ' <swept)" = "alive young " ] || fail "not swept: $(cat swept)"
else
	echo "no kills: processes cannot be traced here"
fi
finish
