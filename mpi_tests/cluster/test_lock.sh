#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One job a prefix: a second one is refused at its start, on this host and on another; one that died holds nothing.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"

needs_files
scale=${MU_TIMEOUT_SCALE:-1}
run="--network mlp --benchmark 1 --num-batches 2 --batch-size 20 --lr 0.0001 --keep 2 --resume auto --model-prefix P
	--log-prefix none --log-time 0"
endless="$run --num-epochs 1000000"

# wait_until COMMAND...: for a minute at most
wait_until() {
	local k
	for ((k = 0; k < 600 * scale; k++)); do
		"$@" && return
		sleep 0.1
	done
	fail "$* did not come true"
}

# begin: a job that saves, in the background
begin() {
	new_mark
	rm -f P-*
	log=first.log
	: >"$log"
	launch 100 2 $endless "$@" &
	job=$!
	log=trainer.log
	wait_until grep -q '^Saved' first.log
}

# refused HOST: a second job ends at its start, with one line
refused() {
	(log=second.log && run_limited 30 2 $endless && exit $status)
	[ $? = 1 ] || fail "exit status $status of a second job"
	log=second.log
	expect_count 1 "error: --model-prefix P: another job saves there \(host $1, pid \d+, since .* P.lock"
	expect_count 1 'error: '
	log=trainer.log
	kill -0 $job || fail "the first job has ended"
}

# processes_of_job: of the first job, all
processes_of_job() {
	grep -lzs "^MU_TEST_PART=$run_mark\$" /proc/[0-9]*/environ | cut -d / -f 3
}

kill_all() {
	kill -KILL $(processes_of_job)
	wait $job
	[ -e P.lock ] || fail "a job that was killed has no lock"
} 2>/dev/null

# goes_on EPOCHS: the next job begins, and ends
goes_on() {
	train 2 $run --num-epochs "$(($(newest P-[0-9]*.h5 | sed 's/P-0*\([0-9]*\).*/\1/') + 1))"
	expect_count 1 '^Resumed from'
	[ ! -e P.lock ] || fail "a lock is left"
}

part "a second job on this host"
begin
refused "$(hostname)"
part "other uses of the prefix"
running=$(processes_of_job)
kill -STOP $running # it removes its older files while another reads them
train 1 $run --num-epochs 1000000 --check
kill -CONT $running

kill -INT "$(launcher_of $job)"
wait $job # may return before the launcher does
wait_until test ! -e P.lock
goes_on

part "a job that was killed"
begin
kill_all
goes_on
expect_none 'waiting'

part "the process has another's number"
echo 'host x' >P.lock
sed "s/^host.*/host $(hostname)/" <<TEXT >P.lock
host -
pid $$
started 1
place $(cat /proc/sys/kernel/random/boot_id)/$(readlink /proc/self/ns/pid)
since then
TEXT
goes_on
expect_none 'waiting'

in_tier full || finish
part "what is no lock"
echo text >P.lock
goes_on
expect_count 1 '^P.lock is of .*, which cannot be asked from here: waiting'
rm -f P.lock
ln -s elsewhere P.lock
run_limited 30 1 $run --num-epochs 1000000
expect_count 1 'error: P.lock: cannot be read: '
rm -f P.lock
[ ! -e elsewhere ] || fail "a link is followed"

part "on another host"
hosts_possible || finish
hosts_up 2 || fail "cannot lay private hosts"
# Jobs of one host each; what lies between them is the folder alone.
one_host() {
	hosts_use 2
	MPIRUN=${MPIRUN/ -hosts */ -hosts $(hosts_name "$1")}
	MPIRUN=${MPIRUN/ --host */ --host $(hosts_name "$1"):9}
}
one_host 1
begin
one_host 2
refused "$(hosts_name 1)"
hosts_vanish 1 told
kill_all
goes_on
expect_count 1 "^P.lock is of process \d+ on $(hosts_name 1), which cannot be asked from here: waiting"
leftovers >/dev/null
finish
