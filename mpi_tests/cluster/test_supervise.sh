#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# jobs/supervise: what is started again and what is not, waits, hosts that are left out, signals; with a launcher that
# pretends, and with runs that are killed and go on from their checkpoints.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

limit=$((60 * ${MU_TIMEOUT_SCALE:-1}))

# supervised ARGUMENT...: log and status
supervised() {
	timeout -k 5 $limit "$SRCDIR/jobs/supervise" --reach 0 "$@" >"$log" 2>&1 </dev/null
	status=$?
}

# ended STATUS RUNS: of a command that was pretended
ended() {
	local runs
	runs=$(grep -c . runs)
	[ $status = "$1" ] || fail "exit status $status, not $1: $(tail -n 5 "$log")"
	[ "$runs" = "$2" ] || fail "$runs runs, not $2"
}

# acts N TEXT...: what the Nth run does
cat >mpirun <<'TEXT'
#!/usr/bin/env bash
echo "$*" >>runs
n=$(grep -c . runs)
[ -x "act.$n" ] || exit 0
exec "./act.$n"
TEXT
chmod +x mpirun
acts() {
	printf '#!/usr/bin/env bash\n%s\n' "$2" >"act.$1"
	chmod +x "act.$1"
}
anew() {
	rm -f act.* runs
	: >"$log"
}

part "exit statuses"
anew
supervised ./mpirun -np 2 ./trainer --resume auto
ended 0 1
expect_none supervise
for words in "2 an error that would come again" "85 wants to go on" "127 no such command"; do
	anew
	acts 1 "exit ${words%% *}"
	supervised --backoff 0 ./mpirun -np 2 ./trainer --resume auto
	ended "${words%% *}" 1
	expect_count 1 "^supervise: exit status ${words%% *}, .*${words#* }"
done
anew
acts 1 'exit 85'
acts 2 'exit 85'
supervised --backoff 60 --requeue ./mpirun -np 2 ./trainer --resume auto
ended 0 3
expect_count 2 '^supervise: exit status 85; restart [12] of 10 in 0 s$'
anew
for n in 1 2 3 4; do acts $n "exit $n"; done
rm act.2
acts 2 'echo "trainer: rank 1, worker 1 on here: error: P-0001.h5: No space left (input/output error)" >&2; exit 1'
supervised --restarts 2 --backoff 0 ./mpirun -np 2 ./trainer --resume=auto
ended 3 3
expect_count 1 '^supervise: exit status 1; restart 1 of 2 in 0 s$'
expect_count 1 '^supervise: exit status 1: P-0001.h5: No space left \(input/output error\); restart 2 of 2 in 0 s$'
expect_count 1 '^supervise: exit status 3; not started again after 2 restarts \(--restarts\)$'
expect_count 1 '^trainer: rank 1, worker 1' # what the command says is passed on

part "an end with 0 that is none"
anew
acts 1 'echo "Saved checkpoint to \"P-0001.h5\""'
acts 2 'echo "Saved checkpoint to \"P-0002.h5\""; echo "trained 200 samples in 0.1 s: 2000 samples/sec"'
supervised --backoff 0 ./mpirun -np 2 ./trainer --resume auto
ended 0 2
expect_count 1 '^supervise: exit status 1; restart 1 of 10 in 0 s$'

part "waits"
anew
# So many runs fail, and then one that has saved: 3 s of waits, or 8.
fails=$(in_tier full && echo 3 || echo 1)
for ((n = 1; n <= fails; n++)); do acts $n 'exit 1'; done
acts $((fails + 1)) 'echo "Saved checkpoint to \"P-0001.h5\""; exit 1'
acts $((fails + 2)) 'exit 1'
supervised --backoff 1 ./mpirun ./trainer --resume auto
ended 0 $((fails + 3))
for ((n = 1; n <= fails; n++)); do expect "restart $n of 10 in $((1 << (n - 1))) s"; done
expect "restart $((fails + 1)) of 10 in 1 s"
expect "restart $((fails + 2)) of 10 in 2 s"
expect_count 1 '^Saved checkpoint'

part "lines come at once"
anew
acts 1 'echo first; for _ in $(seq 1500); do [ -e go ] && exit 0; sleep 0.02; done; exit 1'
rm -f go
supervised ./mpirun ./trainer --resume auto &
for _ in $(seq $((500 * ${MU_TIMEOUT_SCALE:-1}))); do
	grep -q '^first$' "$log" && break
	sleep 0.02
done
grep -q '^first$' "$log" || fail "a line of the command is held back"
: >go
wait $!

part "hosts that fail"
killed='echo "=   PID 77 RUNNING AT h2.site"; exit 9'
anew
acts 1 "echo 'node 1 (h2): worker 1 (rank 1, pid 77)'; $killed"
acts 2 "$killed"
supervised --backoff 0 ./mpirun -hosts h1:2,h2:2,h3 -np 4 ./trainer --resume auto
ended 0 3
expect 'exit status 9: worker 1 \(rank 1, pid 77\) was killed on host h2.site; restart 1'
expect 'exit status 9: process 77 was killed on host h2.site; host h2.site is left out, for it failed 2 times'
[ "$(tail -n 1 runs)" = "-hosts h1:2,h3 -np 4 ./trainer --resume auto" ] || fail "the third run: $(tail -n 1 runs)"
anew
waited='trainer: rank 0, worker 0 on h1: error: worker 0 has waited 4.0 s for it: nothing from worker 2 (rank 2, h3),
	worker 3 (rank 3, h3; stopped); the limit is 4 s (--comm-timeout) (waited too long)'
waited=${waited//$'\n\t'/ }
acts 1 "echo '$waited' >&2; exit 1"
acts 2 "echo '$waited' >&2; exit 1"
acts 3 "$killed"
acts 4 "$killed"
printf '# all\nh1 slots=2\nh2:2\n\nh3' >hosts
supervised --backoff 0 ./mpirun --hostfile hosts -np 4 ./trainer --resume auto
ended 0 5
expect 'host h3 is left out, for it failed 2 times; restart 2'
expect 'host h2.site is left out, for it failed 2 times; restart 4'
expect_count 2 'is left out'
acts 1 "echo '$waited' >&2; exit 1"
rm -f act.[2-9] runs
acts 2 'cat "$(sed -n "s/.*-f \([^ ]*\).*/\1/p" runs | tail -n 1)" >>seen; exit 0'
supervised --backoff 0 --leave-out-after 1 ./mpirun -f hosts -np 4 ./trainer --resume auto
ended 0 2
[ "$(cat seen)" = "$(printf 'h1 slots=2\nh2:2\n')" ] || fail "hosts of the second run: $(cat seen)"
anew
acts 1 "$killed"
acts 2 "$killed"
supervised --backoff 0 ./mpirun -H h2 ./trainer --resume auto
ended 0 3
expect 'host h2.site failed 2 times and stays, for no other host is named; restart 2'
anew
acts 1 'echo "=   PID 77 RUNNING AT 10.0.0.2"; exit 9'
supervised --backoff 0 --leave-out-after 1 ./mpirun -hosts 10.0.0.1,10.0.0.2:3 ./trainer --resume auto
ended 0 2
[ "$(tail -n 1 runs)" = "-hosts 10.0.0.1 ./trainer --resume auto" ] || fail "the second run: $(tail -n 1 runs)"
anew
acts 1 "echo 'trainer: rank 0, worker 0 on h1: error: the loss is not finite (not a finite number)' >&2; exit 1"
cp act.1 act.2
supervised --backoff 0 ./mpirun -hosts h1,h2 ./trainer --resume auto
ended 0 3
expect_none 'left out'

part "signals"
for signal in TERM INT USR1; do
	anew
	acts 1 'trap "echo got TERM; exit 1" TERM; trap "echo got INT; exit 1" INT; trap "echo got USR1; exit 85" USR1
		touch begun; while :; do sleep 0.1; done'
	rm -f begun
	timeout -k 5 $limit "$SRCDIR/jobs/supervise" --backoff 0 ./mpirun ./trainer --resume auto \
		>"$log" 2>&1 </dev/null &
	job=$!
	for _ in $(seq 100); do [ ! -e begun ] || break && sleep 0.1; done
	kill -$signal "$(grep -ls "^PPid:[[:space:]]*$job\$" /proc/[0-9]*/status | cut -d / -f 3)"
	wait $job
	status=$?
	ended "$([ $signal = USR1 ] && echo 85 || echo 1)" 1
	expect_count 1 "^got $signal"
	[ $signal = USR1 ] || expect_count 1 "^supervise: SIG$signal: not started again"
done
anew
acts 1 'exit 1'
timeout -k 5 $limit "$SRCDIR/jobs/supervise" --backoff 600 ./mpirun ./trainer --resume auto >"$log" 2>&1 </dev/null &
job=$!
for _ in $(seq 100); do grep -q restart "$log" && break; sleep 0.1; done
kill -TERM "$(grep -ls "^PPid:[[:space:]]*$job\$" /proc/[0-9]*/status | cut -d / -f 3)"
wait $job
status=$?
ended 1 1

part "a signal before supervise has the number of what it has begun"
cat >at_start <<'TEXT'
unset BASH_ENV
set -T
trap 'case "${FUNCNAME-} $BASH_COMMAND" in "$at child=\$!") kill -"$early" $$ && : ;; esac' DEBUG
TEXT
# early SIGNAL FUNCTION ARGUMENT...: it comes in the moment before the function notes the number
early() {
	local left
	new_mark
	MU_TEST_PART=$run_mark early=$1 at=$2 BASH_ENV=$PWD/at_start supervised "${@:3}" --resume auto
	left=$(leftovers)
	[ -z "$left" ] || fail "left running after an early $1: ${left//$'\n'/ }"
	[ "$1" = USR1 ] || expect_count 1 "^supervise: SIG$1: not started again"
}
printf '#!/bin/sh\nexec sleep 30\n' >asleep
chmod +x asleep
for signal in TERM INT USR1; do
	early $signal run_once --restarts 0 ./asleep
	[ $status = $((128 + $(kill -l $signal))) ] || fail "exit status $status of an early $signal: $(cat "$log")"
done
anew
acts 1 'exit 1'
early TERM pause_for --backoff 600 ./mpirun
ended 1 1

part "in a job of a queue"
# Tools of queues that note what they are asked for; those that take a job back end it.
mkdir tools
for tool in scontrol qrerun flux qstat; do
	printf '#!/bin/sh\necho %s "$*" >>asked\n' $tool >tools/$tool
done
echo 'kill $PPID' | tee -a tools/scontrol >>tools/qrerun
printf 'case $3 in info) echo the job ;; submit) cat >>asked ;; esac\n' >>tools/flux
cat >>tools/qstat <<'END'
case $1 in
-f) echo "    Resource_List.walltime = 00:00:02" ;;
-j) printf 'job_number:   %s\nhard resource_list:   mem=1G,%s\nsoft resource_list:   h_rt=9\n' "$2" "$(cat h_rt)" ;;
esac
END
echo slots=2 >h_rt
chmod +x tools/*

# in_queue NAME ARGUMENT...: as job 7 of it
in_queue() {
	anew
	rm -f asked
	acts 1 "${act:-exit 85}"
	(
		PATH=$PWD/tools:$PATH TMPDIR=$PWD
		export PATH TMPDIR SLURM_JOB_ID=7 PBS_JOBID=7 JOB_ID=7 FLUX_ENCLOSING_ID=7
		supervised --backoff 600 --queue "$@" ./mpirun ./trainer --resume auto
		exit $status
	)
	status=$?
	ls -d supervise.* 2>/dev/null && fail "a scratch folder is left"
}
# warned_in_queue NAME ARGUMENT...: once more, five times at most, where the warning came before the run: before its
# trap was set, or, of a run that fails, before it had failed
warned_in_queue() {
	for _ in 1 2 3 4 5; do
		rm -f begun
		in_queue "$@"
		[ ! -e begun ] && ! grep -q '; restart 1 of' "$log" || return
	done
}
in_queue slurm
ended 143 1
[ "$(cat asked)" = "scontrol requeue 7" ] || fail "of slurm was asked: $(cat asked)"
expect_count 1 '^supervise: exit status 85, .*: slurm is to start the job again$'
in_queue sge
ended 99 1
expect_count 1 '^supervise: sge sets no limit that could be learned: '
in_queue flux
ended 85 1
[ "$(sort asked | tr '\n' ' ')" = "flux --parent job info 7 jobspec flux --parent job submit the job " ] ||
	fail "of flux was asked: $(cat asked)"
# Grid Engine has no warning for a parallel job, but one may come all the same, to all processes: one is enough.
for words in h_rt=2 h_rt=0:0:2,arch=lx; do
	echo $words >h_rt
	act="trap 'exit 85' USR1; touch begun; while :; do sleep 0.1; done" warned_in_queue sge --warn-before 1
	ended 99 1
	expect_count 1 '^supervise: exit status 85, .*: sge is to start the job again$'
	[ "$(cat asked)" = "qstat -j 7" ] || fail "of sge was asked: $(cat asked)"
done
act="trap 'echo warned' USR1; touch begun; kill -USR1 \$PPID \$\$; for i in {1..30}; do sleep 0.1; done; exit 85" \
	warned_in_queue sge --warn-before 1
ended 99 1
expect_count 1 '^warned$'
in_queue sge --warn-before 2
[ $status = 2 ] || fail "exit status $status, not 2, of a limit that is too short"
[ ! -e runs ] || fail "a run that cannot come back"
expect_count 1 '^supervise: error: --warn-before 2: the job may take 2 s only'
echo slots=2 >h_rt
# PBS sends no warning: supervise does. A run that fails after it comes back, too.
for n in 85 1; do
	act="trap 'exit $n' USR1; touch begun; while :; do sleep 0.1; done" warned_in_queue pbs --warn-before 1
	ended 143 1
	expect_count 1 "^supervise: exit status ${n}[ ,].*: pbs is to start the job again\$"
	[ "$(tail -n 1 asked)" = "qrerun 7" ] || fail "of pbs was asked: $(cat asked)"
done
# The warning comes while nothing runs: before another run that failed.
act='exit 1' warned_in_queue pbs --warn-before 1
ended 143 1
expect_count 1 "^supervise: the queue's warning: pbs is to start the job again"
# The command says that it wants to go on, and its mpirun says 0.
act='echo "SIGTERM came: training ends after step 3; exit status 85; a second"; exit 0' in_queue sge
ended 99 1
for words in "--queue lsf" "--queue slurm" "--queue slurm --requeue"; do
	SLURM_JOB_ID='' supervised $words ./mpirun
	[ $status = 2 ] || fail "exit status $status, not 2, of supervise $words"
	expect_count 1 '^supervise: error: '
done

part "a job of Slurm on GPUs"
printf '#!/bin/sh\necho "srun $*; $SRUN_CPUS_PER_TASK cores"\n' >tools/srun
chmod +x tools/srun
ln -s "$SRCDIR/jobs" jobs
# gpu_job VARIABLE=VALUE...: the batch file in such a job
gpu_job() {
	env PATH="$PWD/tools:$PATH" SLURM_JOB_ID=7 "$@" \
		"$SRCDIR/jobs/slurm/gpu.sbatch" ./trainer --kv-store nccl >"$log" 2>&1 </dev/null
	status=$?
}
gpu_job SLURM_GPUS_ON_NODE=4 SLURM_NTASKS_PER_NODE=4 SLURM_CPUS_PER_TASK=8
[ $status = 0 ] || fail "exit status $status of gpu.sbatch"
expect_count 1 "^srun --mpi=pmi2 --gpu-bind=none .* ./trainer --kv-store nccl --gpus auto --resume auto; 8 cores\$"
gpu_job SLURM_GPUS_ON_NODE=
[ $status = 2 ] || fail "exit status $status, not 2, of gpu.sbatch without GPUs"
expect_count 1 'gpu.sbatch: the job has no GPU'
gpu_job SLURM_GPUS_ON_NODE=4 SLURM_NTASKS_PER_NODE=5
[ $status = 2 ] || fail "exit status $status, not 2, of gpu.sbatch with more tasks than GPUs"
expect_count 1 '5 tasks on a node with 4 GPUs'

part "wrong use"
for words in "" "--restarts" "--restarts x ./mpirun" "--backoff -1 ./mpirun" "--often ./mpirun"; do
	supervised $words
	[ $status = 2 ] || fail "exit status $status, not 2, of supervise $words"
	expect_count 1 '^supervise: error: '
done
anew
supervised ./mpirun ./trainer
ended 0 1
expect_count 1 '^supervise: warning: the command has no --resume auto'

part "runs that are killed"
if has_files; then
	export OMP_NUM_THREADS=1 # bits depend on it
	small_set set 600 100
	# Long enough for this shell to come between twice, however fast the machine is.
	epochs=$(in_tier full && echo 60 || echo 30)
	run="--network mlp --data-dir set --batch-size 20 --mom 0.9 --num-epochs $epochs --save-steps 2 --keep 3
		--resume auto --log-prefix none --log-time 0"
	train 3 $run --model-prefix U
	: >"$log"
	new_mark
	MU_TEST_PART=$run_mark timeout -k 5 $limit "$SRCDIR/jobs/supervise" --backoff 0 $MPIRUN -n 3 "$TRAINER" \
		$run --model-prefix R >"$log" 2>&1 </dev/null &
	job=$!
	saved_by() { # RUN: how often the job has saved since it was started for the RUNth time
		awk -v run="$1" '/^node/ { runs++ } /^Saved/ && runs >= run { n++ } END { print n + 0 }' "$log"
	}
	started=0
	for who in "worker 0" "server 0"; do
		started=$((started + 1))
		until [ "$(saved_by $started)" -gt 3 ] || ! kill -0 $job 2>/dev/null; do sleep 0.02; done
		kill -KILL "$(sed -n "s/^node.*$who (rank [0-9]*, pid \([0-9]*\)).*/\1/p" "$log" | tail -n 1)" ||
			fail "$who cannot be killed"
	done
	wait $job
	status=$?
	[ $status = 0 ] || { fail "exit status $status" && show_log; }
	left=$(leftovers)
	[ -z "$left" ] || fail "left running: ${left//$'\n'/ }"
	expect_count 2 '^supervise: exit status .* was killed on host .*; restart [12] of 10 in 0 s$'
	expect_count 2 '^Resumed from'
	cmp U-00$epochs.h5 R-00$epochs.h5 || fail "other bits than a run that was never interrupted"
fi

part "muster train is the trainer, whose first line is waited for"
printf '#!/bin/sh\necho a greeting of the host\nexec sleep 1000\n' >muster
chmod +x muster
supervised --restarts 0 --start-limit 1 ./muster train --resume auto
expect_count 1 'no line of the trainer came in 1 s \(--start-limit\)'
finish
