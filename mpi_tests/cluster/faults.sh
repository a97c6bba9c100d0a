#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kills at random: mpi_tests/cluster/faults.sh KILLS SEED
#
# Trains with many checkpoints, kills a random process of the job at a random moment, checks what is left, and goes on
# with --resume auto; a few kills later the run may end, and must have the bits of one that was never interrupted.
# Prints a line per kill, and at last "kills K, survived S, lost L". The same SEED draws the same victims and moments;
# what they meet there is a matter of time. make check-faults starts it; by hand it needs BUILDDIR.
# shellcheck disable=SC2086 # lists of options are words
set -u
here=$(cd "$(dirname "$0")" && pwd)
SRCDIR=${SRCDIR:-$here/..}
BUILDDIR=$(cd "${BUILDDIR:-.}" && pwd) || exit 2
TRAINER=${TRAINER:-$BUILDDIR/trainer} DIGITS=${DIGITS:-$BUILDDIR/digits} MPIRUN=${MPIRUN:-mpirun}
export SRCDIR BUILDDIR TRAINER DIGITS MPIRUN
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

wanted=${1:-25} seed=${2:-1}
RANDOM=$seed
scale=${MU_TIMEOUT_SCALE:-1}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/faults.XXXXXX") || exit 2
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 2
export OMP_NUM_THREADS=1 # bits depend on it

needs_files

# Ranks and options. Each has its last word about a run that was never interrupted in U-<number>.h5.
cases=(
	"3 --kv-store dist_sync --mom 0.9"
	"1 --kv-store local --mom 0.9"
	"2 --kv-store dist_sharded --optimizer adam --lr 0.001"
	"3 --kv-store dist_async --mom 0"
	"2 --kv-store dist_allreduce --mom 0.9"
	"5 --kv-store dist_sync --num-servers 2 --optimizer adam --lr 0.001"
	"1 --kv-store device --devices cpu:0,cpu:1 --mom 0.9"
	"4 --kv-store dist_sharded --mom 0.9 --save-async 0"
	"3 --kv-store dist_sync --gc-type 2bit --gc-threshold 0.5"
	"5 --kv-store dist_allreduce --sync-period 4 --block-momentum 0.5"
	"4 --kv-store dist_async --num-servers 2 --mom 0"
	"4 --kv-store dist_sync --update-period 2 --mom 0.9"
)
epochs=25
common="--network mlp --data-dir set --batch-size 20 --lr 0.05 --num-epochs $epochs --save-steps 2 --keep 5
	--disp-batches 5 --log-prefix none --log-time 0"
last=$(printf %04d $epochs)

small_set set 600 100
mkfifo nap
exec 9<>nap

# The trainer, after a note of its number: a rank can be killed before it has said a word.
cat >noted_trainer <<TEXT
#!/bin/sh
echo \$\$ >pid.\${PMI_RANK:-\${OMPI_COMM_WORLD_RANK:-0}}
exec "$TRAINER" "\$@"
TEXT
chmod +x noted_trainer

# nap_ms N: without another process
nap_ms() {
	read -rt "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))" -u 9
	return 0
}

draw() { # N: 0 to N-1, into $drawn
	drawn=$(((RANDOM * 32768 + RANDOM) % $1))
}

is_running() {
	kill -0 $job 2>/dev/null
}

# until_there COMMAND...: true as soon as it is; false if the run ends before, or a minute is over
until_there() {
	local k
	for ((k = 0; k < 20000 * scale; k++)); do
		"$@" && return
		is_running || return 1
		nap_ms 3
	done
	fail "$* was not there in time"
	return 1
}

all_noted() {
	local r
	for ((r = 0; r < np; r++)); do [ -s pid.$r ] || return 1; done
}

said() {
	grep -q "$1" "$log" 2>/dev/null
}

is_writing() {
	compgen -G 'R-*.tmp-*' >/dev/null
}

# Wait for the moment that was drawn, and choose the victim.
moments=(start resume train train save save save rename)
await() {
	moment=${moments[$1]}
	draw $np
	victim=$drawn
	until_there all_noted || return
	case $moment in
	start)
		draw 400
		nap_ms $drawn
		;;
	resume)
		until_there said '^network ' || return
		draw 60
		nap_ms $drawn
		;;
	train)
		until_there said '^Saved' || return
		draw 800
		nap_ms $drawn
		;;
	save | rename)
		until_there said '^Saved' || return
		draw 500
		nap_ms $drawn
		draw 2
		[ $drawn = 0 ] || victim=0 # which makes the file and names it
		until_there is_writing || return
		draw 5
		[ $moment = save ] || { until_there is_complete && drawn=0; }
		nap_ms $drawn
		;;
	esac
	is_running
}

# Worker 0 will rename the file: its arrays lie there to the end.
is_complete() {
	local f
	for f in R-*.tmp-*; do
		[ -s "$f" ] && [ "$(stat -c %s "$f" 2>/dev/null || echo 0)" -ge 800000 ] && return
	done
	return 1
}

# Another than the victim may be named, whom its end has ended. Before MPI has started, a rank that dies
# in the middle of its talk with MPICH's launcher ends the launcher, which names the host alone.
check_message() {
	local line named
	line=$(grep -m 1 -E 'RUNNING AT|exited on signal' "$log")
	case $line in
	*"RUNNING AT $(hostname)"*)
		named=$(echo "$line" | sed 's/.*PID \([0-9]*\).*/\1/')
		cat pid.* | grep -qx "$named" || fail "no rank of the job is named: $line"
		;;
	*"on node"*"exited on signal"*) ;;
	*)
		! said 'start with arguments' && said "^\[proxy:.*@$(hostname)\]" && return
		fail "no line says which process was killed, and where"
		show_log
		;;
	esac
	[ "$(grep -c 'BAD TERMINATION' "$log")" -le 1 ] && [ "$(grep -c 'error: ' "$log")" -le 1 ] ||
		fail "the end is told more than once"
}

# Did the victim get its kill when the run had trained to its end and saved? Then status 0 is right.
came_late() {
	[ -s "R-$last.h5" ] && "$BUILDDIR/mpi_tests/lib/whole_file" "R-$last.h5" && late=1
}

# What a kill must leave: nothing that runs, one message, no damaged file.
check_end() {
	local begun=$EPOCHREALTIME left took
	late=
	while is_running && [ $((${EPOCHREALTIME/./} - ${begun/./})) -lt $((60000000 * scale)) ]; do nap_ms 10; done
	is_running && fail "still running after $((60 * scale)) s" && kill -KILL $job
	wait $job 2>/dev/null # without bash's word about a kill
	status=$?
	took=$(((${EPOCHREALTIME/./} - ${begun/./}) / 1000))
	[ $took -le $slowest ] || slowest=$took
	[ $status != 0 ] || came_late || fail "exit status 0 of a job with a process that was killed"
	left=$(leftovers)
	[ -z "$left" ] || fail "left running: ${left//$'\n'/ }"
	[ -n "$late" ] || [ "$victim" = launcher ] || check_message
}

check_files() {
	local files
	files=$(compgen -G 'R-*.h5')
	[ -z "$files" ] || "$BUILDDIR/mpi_tests/lib/whole_file" $files || fail "a checkpoint is not whole"
	newest=$(newest R-*.h5)
}

# What a run that went on has said: the newest file, and none left out.
check_choice() {
	expect_none 'left out, for it is damaged'
	if [ -z "$newest" ]; then
		expect_none '^Resumed from'
	elif said '^network ' && said '^Saved'; then
		expect "^Resumed from \"$newest\": "
	fi
}

# One run that is killed. False: it came to its end before.
one_kill() {
	rm -f pid.* "$log"
	new_mark
	draw ${#moments[@]}
	TRAINER=$PWD/noted_trainer launch 100 $np $options $common --model-prefix R --resume auto &
	job=$!
	if ! await $drawn; then
		wait $job
		status=$?
		[ $status = 0 ] || { fail "exit status $status of a run that was not killed" && show_log; }
		check_choice
		check_files
		return 1
	fi
	if [ $(((kills + 1) % 16)) = 0 ]; then
		victim=launcher
		kill -KILL "$(cat /proc/$job/task/$job/children)"
	elif ! kill -KILL "$(cat pid.$victim)" 2>/dev/null; then
		wait $job
		check_files
		return 1 # it ended a moment ago
	fi
	check_end
	check_choice
	check_files
	[ -z "$late" ] || return 1
	kills=$((kills + 1))
	printf '%3d: np %d, %s, in %s: %s; then %s\n' $kills $np "${options%% --mom*}" $moment \
		"$([ $victim = launcher ] && echo the launcher || echo rank $victim)" "${newest:-no checkpoint}"
}

reference() {
	[ -s "U-$1.h5" ] && return
	rm -f R-*
	train $np $options $common --model-prefix R || return
	mv "R-$last.h5" "U-$1.h5"
}

check_result() {
	train $np $options $common --model-prefix R --resume auto || return
	check_choice
	[ -s "R-$last.h5" ] || { fail "no R-$last.h5 at the end" && return; }
	case $options in
	*dist_async*) "$BUILDDIR/mpi_tests/lib/whole_file" "R-$last.h5" || fail "the last file is not whole" ;;
	*) cmp "U-$1.h5" "R-$last.h5" || fail "other bits after $n kills: -n $np $options" ;;
	esac
}

# chain CASE KILLS
chain() {
	local before=$failures at=$kills k n
	read -r np options <<<"${cases[$1]}"
	reference "$1"
	rm -f R-*
	newest=
	for ((k = 0; k < $2; k++)); do one_kill || break; done
	n=$((kills - at))
	check_result "$1"
	if [ $failures = $before ]; then
		survived=$((survived + n))
	else
		lost=$((lost + (n > 0 ? n : 1)))
		echo "lost: chain of case $1 with $n kills, seed $seed"
	fi
}

kills=0 survived=0 lost=0 slowest=0
for ((c = 0; kills < wanted && lost < 20; c++)); do
	draw 4
	chain $((c % ${#cases[@]})) $((drawn + 1))
done
echo "slowest end after a kill: $slowest ms"
echo "kills $kills, survived $survived, lost $lost"
finish
