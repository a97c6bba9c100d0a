#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From MPI_Init to the end of a run no rank calls what blocks inside MPI: with more ranks than cores that takes seconds.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"

$CC -O1 -shared -fPIC "$SRCDIR/mpi_tests/lib/blocking.c" -o blocking.so || exit 1
cat >call.c <<'EOF'
#include <mpi.h>
int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
EOF
$CC call.c -o call || exit 1

# quiet RANKS PROGRAM ARGUMENTS
quiet() {
	local np=$1
	shift
	# shellcheck disable=SC2086 # MPIRUN may hold options
	timeout 100 $MPIRUN -np "$np" env LD_PRELOAD="$PWD/blocking.so" "$@" >log 2>&1 ||
		fail "$*: status $?: $(tail -n 3 log)"
}

part "a blocking call is seen"
quiet 2 ./call
[ "$(grep -c 'blocking: MPI_Barrier, rank [01]$' log)" = 2 ] || fail "MPI_Barrier was not seen: $(cat log)"

stores=("dist_sync --num-servers 2")
! in_tier full || stores+=("dist_async --num-servers 1" dist_sharded)
net="--network lenet --benchmark --num-batches 2 --num-epochs 1 --batch-size 2 --log-prefix none"
for nodes in 1 2; do
	[ $nodes = 1 ] || { nodes_up 2 && nodes_use 2; } || break
	for store in "${stores[@]}"; do
		part "$store, $nodes nodes"
		# shellcheck disable=SC2086 # words
		quiet 5 "$TRAINER" $net --kv-store $store
		grep 'blocking: ' log | sort | uniq -c >seen
		! grep 'environment: .*DNNL_JIT_PROFILE' log || fail "the log has what the trainer itself set"
		[ ! -s seen ] || fail "$store on $nodes nodes: $(cat seen)"
	done
done
nodes_end

# opens PROGRAM ARGUMENTS: of rank 1 of 3, but for libraries that are there.
opens() {
	# shellcheck disable=SC2016,SC2086 # the rank's shell reads the variable; words
	$MPIRUN -np 3 sh -c '[ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 1 ] || exec "$@"
		exec strace -f -qq -e trace=open,openat -o opens "$@"' sh "$@" >log 2>&1 || fail "$*: $(tail -n 3 log)"
	grep -v '\.so[.0-9]*", .* = [0-9]' opens | wc -l
}

part "files that a rank opens"
if in_tier full && strace -o none true 2>/dev/null; then
	none=$(opens ./call)
	# shellcheck disable=SC2086 # words
	some=$(opens "$TRAINER" $net --kv-store dist_sync)
	[ $((some - none)) -le 40 ] || fail "$some, $none by an empty program"
	! grep -q JitPI opens || fail "oneDNN looks for a profiler: $(grep -c JitPI opens) opens"
else
	echo "not tested: needs strace, tier full"
fi
finish
