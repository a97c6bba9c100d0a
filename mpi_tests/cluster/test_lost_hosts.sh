#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 300 @tier full
# jobs/supervise on hosts that are really taken away: they are gone, or their wire is cut. The run ends, one line names
# the host, the others go on from the checkpoint, and the end has the bits that it should.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"

needs_files
hosts_possible || exit 77
[ "$(mpi_kind)" = mpich ] || { echo "skipped: the launcher that hangs is MPICH's" && exit 77; }
hosts_up 3 || exit 1
hosts_use 3
scale=${MU_TIMEOUT_SCALE:-1}
export HOSTS_PATIENCE=5
export OMP_NUM_THREADS=1 # bits depend on it
run="--network mlp --benchmark 1 --num-batches 40 --num-epochs 30 --batch-size 20 --save-steps 20 --keep 3 --mom 0.9
	--kv-store dist_allreduce --resume auto --comm-timeout 4 --log-prefix none --log-time 0"

# until_said N REGEX: N lines of the log match
until_said() {
	local k
	for ((k = 0; k < 300 * scale; k++)); do
		[ "$(grep -Pc "$2" "$log" 2>/dev/null)" -lt "$1" ] || return 0
		kill -0 $job 2>/dev/null || break
		sleep 0.1
	done
	fail "$1 lines with $2 did not come"
	show_log
	return 1
}

# begin SUPERVISE'S OPTION... -- RANKS TRAINER'S OPTION...
begin() {
	local words=()
	while [ "$1" != -- ]; do words+=("$1") && shift; done
	local np=$2
	shift 2
	: >"$log"
	rm -f R-*
	new_mark
	MU_TEST_PART=$run_mark exec timeout -k 5 $((150 * scale)) "$SRCDIR/jobs/supervise" --backoff 1 \
		--reach 8 --ask-after 4 "${words[@]}" $MPIRUN -n $np "$TRAINER" $run --model-prefix R "$@" \
		>"$log" 2>&1 </dev/null &
	job=$!
	until_said 2 '^Saved checkpoint'
}

# ended STATUS: of supervise
ended() {
	local left
	wait $job
	status=$?
	grep '^supervise: ' "$log"
	[ $status = "$1" ] || { fail "exit status $status, not $1" && show_log; }
	left=$(leftovers)
	[ -z "$left" ] || fail "left running: ${left//$'\n'/ }"
}

same_end() {
	cmp U-0030.h5 R-0030.h5 || fail "other bits than a run that lost no host"
}

train 2 $run --model-prefix U
unreachable="hosts? .*$(hosts_name 2).* cannot be reached by hosts_exec: .*: (No route to host|Connection timed out)"

part "a host is gone, and left out: a spare one takes its place"
begin -- 2
hosts_vanish 2 told
ended 0
expect_count 1 "^supervise: exit status \d+: .*\b$(hosts_name 2)\b.*; restart 1 of 10 in 1 s\$"
expect_count 1 "^supervise: $unreachable; host $(hosts_name 2) is left out, for it failed 2 times; restart 2 of 10 in "
expect_count 2 '^supervise: '
expect_count 1 '^Resumed from'
same_end

part "a host is gone, and comes back"
hosts_return 2 || fail "host 2 does not come back"
begin --leave-out-after 0 -- 2
hosts_vanish 2
until_said 1 "^supervise: $unreachable; restart 2" && hosts_return 2
ended 0
expect_none 'left out'
same_end

part "the wire of a host is cut"
begin -- 2
ip link set "muv$$-2" down
until_said 1 "^supervise: .*host $(hosts_name 2) is left out"
ended 0
expect_count 1 '^supervise: .*left out'
same_end
ip link set "muv$$-2" up
hosts_wait 2 || fail "host 2 is not reached again"

part "the launcher is cut off from all hosts"
begin --leave-out-after 0 --restarts 1 -- 2
for i in 1 2 3; do ip link set "muv$$-$i" down; done
ended 1
expect_count 2 '^supervise: '
expect_count 1 "^supervise: exit status \d+: $unreachable; restart 1 of 1 in "
expect_count 1 "^supervise: $unreachable; not started again after 1 restarts"
for i in 1 2 3; do ip link set "muv$$-$i" up; done
for i in 1 2 3; do hosts_wait $i || fail "host $i is not reached again"; done

part "Ctrl-C when the launcher is cut off from all hosts"
begin --ask-after 0 -- 2
for i in 1 2 3; do ip link set "muv$$-$i" down; done
supervise=$(grep -ls "^PPid:[[:space:]]*$job\$" /proc/[0-9]*/status | cut -d / -f 3)
begun=$SECONDS
while kill -0 $job 2>/dev/null && [ $((SECONDS - begun)) -le $((60 * scale)) ]; do
	kill -INT $supervise 2>/dev/null # the second one ends it
	sleep 1
done
wait $job
[ $((SECONDS - begun)) -le $((40 * scale)) ] || fail "it took $((SECONDS - begun)) s"
expect_count 1 '^supervise: SIGINT: not started again$'
leftovers >/dev/null # what runs on hosts that cannot be reached
for i in 1 2 3; do ip link set "muv$$-$i" up; done
for i in 1 2 3; do hosts_wait $i || fail "host $i is not reached again"; done

part "jobs/launch is cut off from all hosts"
for i in 1 2 3; do hosts_name $i; done >hosts
: >"$log"
new_mark
MU_TEST_PART=$run_mark MPIRUN="$hosts_mpirun -iface $hosts_bridge" timeout -k 5 $((100 * scale)) "$SRCDIR/jobs/launch" \
	-n 3 -H hosts --ssh "$PWD/hosts_exec" --ask-after 2 "$TRAINER" $run --model-prefix L --num-epochs 1000000 \
	>"$log" 2>&1 </dev/null &
job=$!
until_said 1 '^Epoch\[1\] Train-accuracy'
for i in 1 2 3; do ip link set "muv$$-$i" down; done
begun=$SECONDS
wait $job
[ $((SECONDS - begun)) -le $((60 * scale)) ] || fail "it took $((SECONDS - begun)) s"
expect_count 1 '^launch: error: none of the hosts can be reached by .*hosts_exec any more: mpirun is ended'
leftovers >/dev/null # what runs on hosts that cannot be reached
for i in 1 2 3; do ip link set "muv$$-$i" up; done
for i in 1 2 3; do hosts_wait $i || fail "host $i is not reached again"; done

part "a host without ssh"
if command -v ssh >/dev/null; then
	timeout -k 5 $((60 * scale)) "$SRCDIR/jobs/supervise" --backoff 0 --restarts 2 \
		$hosts_mpirun -hosts $hosts_net.1,$hosts_net.2 -n 2 "$TRAINER" $run --model-prefix S \
		>"$log" 2>&1 </dev/null
	status=$?
	[ $status = 1 ] || fail "exit status $status, not 1"
	refused="cannot be reached by ssh: ssh: connect to host $hosts_net.[12] port 22: Connection refused"
	expect_count 3 "^supervise: hosts $hosts_net.1, $hosts_net.2 $refused"
	expect_none 'left out' # where no host answers it is not the hosts
else
	echo "not asked by ssh: there is none"
fi

part "a run that does not begin"
cat >mute <<'TEXT'
#!/bin/sh
echo "a greeting of the host"
trap '' TERM
sleep 1000 &
while :; do wait; done
TEXT
chmod +x mute
ln -s mute trainer
new_mark
MU_TEST_PART=$run_mark timeout -k 5 $((60 * scale)) "$SRCDIR/jobs/supervise" --backoff 0 --restarts 1 --start-limit 2 \
	./mute ./trainer --resume auto >"$log" 2>&1 </dev/null
status=$?
[ $status = 137 ] || fail "exit status $status, not 137"
expect_count 1 '^supervise: exit status 137: no line of the trainer came in 2 s \(--start-limit\); restart 1 of 1'
expect_count 1 '^supervise: exit status 137: no line of the trainer came in 2 s \(--start-limit\); not started again'
left=$(leftovers)
[ -z "$left" ] || fail "left running: ${left//$'\n'/ }"
finish
