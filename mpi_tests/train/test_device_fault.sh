#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A device that fails while its worker waits for others' sums, which update the whole model: the error
# is told, and nobody waits for ever (late_net.c). A process without others that hangs (spoil_net.c) ends after a
# signal. OpenMP that has fewer threads than planned. Ranks of another environment. A oneDNN that the trainer was
# not built for: one line.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

if grep -q '^EXPORT_DYNAMIC = *$' "$BUILDDIR/Makefile"; then
	echo "skip: this build cannot load models"
	exit 77
fi
$CC -O2 -std=c11 -shared -fPIC -I"$SRCDIR/include" "$SRCDIR/mpi_tests/lib/late_net.c" -o late.so || exit 1
export OMP_NUM_THREADS=1
run_limited 60 2 --network ./late.so --benchmark 1 --num-batches 8 --num-epochs 1 --batch-size 8 \
	--devices cpu:0,cpu:1 --kv-store dist_allreduce --clip-global-norm 5 --node-reduce none \
	--log-prefix none --log-time 0
[ $status = 1 ] || fail "exit status $status"
expect 'rank 0, worker 0 .*error: .*fails0? fails, as it is told to'

part "a process that hangs, and SIGTERM"
$CC -O2 -std=c11 -shared -fPIC -I"$SRCDIR/include" "$SRCDIR/mpi_tests/lib/spoil_net.c" -o spoil.so || exit 1
# hangs SIGNALS SECONDS...: the first after the layer hangs, then one every SECONDS
hangs() {
	local signals=$1 limit=$2 job pid k
	new_mark
	rm -f "$log"
	(
		export MU_SPOIL="0 0 2 99 hang" MU_TEST_PART=$run_mark
		exec timeout -k 5 $((60 * ${MU_TIMEOUT_SCALE:-1})) "$TRAINER" --network ./spoil.so --benchmark 1 \
			--num-batches 8 --num-epochs 1 --batch-size 8 --devices ref --comm-timeout "$limit" \
			--log-time 0 >"$log" 2>&1
	) &
	job=$!
	for _ in $(seq 600); do
		grep -qs 'the layer hangs' "$log" && break
		sleep 0.05
	done
	pid=$(launcher_of $job)
	for ((k = 0; k < signals; k++)); do
		[ $k = 0 ] || sleep 1.2
		kill -TERM "$pid" || fail "there is no process to signal"
	done
	wait $job
	status=$?
	[ $status = 143 ] || fail "exit status $status, not 143"
}
hangs 1 1
expect_count 1 '^trainer: error: no progress in 1 s since the signal: .*--comm-timeout'
hangs 2 0
expect_count 0 'error:'

part "fewer threads than planned"
small_set set 200 100
# threads AS NAME=VALUE...: the weights after an epoch of $network are those of AS; without such a file they become AS
threads() {
	local as=$1 launcher=$MPIRUN
	shift
	MPIRUN="env -u OMP_WAIT_POLICY $* $launcher"
	run_limited 60 1 --network $network --data-dir set --batch-size 20 --num-epochs 1 --model-prefix P \
		--overwrite 1 --log-prefix none --log-time 0 $options
	MPIRUN=$launcher
	[ $status = 0 ] || fail "$network $options, $*: exit status $status"
	[ -e $as ] || cp P-0001.h5 $as
	same_model P-0001.h5 $as || fail "$network $options, $*: not the weights of $as"
	expect "^environment: .*$1"
}
# The limit of threads is one of each device.
teams() {
	local n
	rm -f as-*.h5
	for n in 1 2 4; do
		threads as-$n.h5 OMP_NUM_THREADS=$n
	done
	threads as-4.h5 OMP_DYNAMIC=true OMP_NUM_THREADS=4
	threads as-4.h5 OMP_MAX_ACTIVE_LEVELS=0 OMP_NUM_THREADS=4
	threads as-4.h5 OMP_NUM_THREADS=4,1
	threads as-4.h5 OMP_PROC_BIND=true OMP_NUM_THREADS=4
	threads as-2.h5 OMP_THREAD_LIMIT=2 OMP_NUM_THREADS=4
	threads as-1.h5 OMP_THREAD_LIMIT=1 OMP_NUM_THREADS=4
}
if has_files; then
	network=mlp options=
	teams
	network=lenet options="--num-examples 60"
	teams
	network=mlp options="--devices cpu:0,cpu:1"
	teams
	if in_tier full; then
		network=mlp options="--devices ref --num-examples 60"
		teams
		network=lenet options="--num-examples 60 --conv-algo direct"
		teams
	fi
	network=mlp options=
	unset OMP_NUM_THREADS
	threads as-all.h5 OMP_CANCELLATION=false
	threads as-all.h5 OMP_PROC_BIND=true
	export OMP_NUM_THREADS=1
fi
part "ranks of another environment"
plain="--log-prefix none --log-time 0"
mlp="--network mlp --data-dir set --batch-size 20 --kv-store dist_allreduce $plain"
# two FIRST SECOND: an argument of each rank; $variable: the second's environment
two() {
	new_mark
	# shellcheck disable=SC2086 # words
	MU_TEST_PART=$run_mark timeout -k 5 60 $MPIRUN -n 1 "$TRAINER" $mlp --num-epochs 1 $1 : \
		-n 1 env $variable "$TRAINER" $mlp --num-epochs 1 $2 >"$log" 2>&1 </dev/null
	status=$?
}
variable=OMP_NUM_THREADS=2
two "--lr 0.01" "--lr 0.01"
[ $status = 0 ] || fail "exit status $status, not 0"
expect_count 1 'warning: 1 of 2 workers has another environment .*worker 1 .*OMP_NUM_THREADS=2, worker 0 has'

if grep -q '^#define HAVE_ONEDNN 1' "$BUILDDIR/config.h"; then
	part "another oneDNN"
	cat >other.c <<-'END'
		struct { int major, minor, patch; const char *hash; unsigned cpu, gpu; } other = {9, 8, 7, "", 0, 0};
		const void *dnnl_version(void) { return &other; }
	END
	$CC -O2 -std=c11 -shared -fPIC other.c -o other.so || exit 1
	export LD_PRELOAD=$PWD/other.so ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
	run_limited 60 2 --network lenet --benchmark 1 --num-batches 1 --kv-store dist_allreduce
	unset LD_PRELOAD
	[ $status = 2 ] || fail "exit status $status, not 2"
	expect_count 1 'error: oneDNN 9\.8\.7 is loaded, but this Muster was built with .*: build it again'
	expect_none '^    at src'
fi
finish
