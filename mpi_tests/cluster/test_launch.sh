#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# jobs/launch: what it starts, on this machine and on private hosts, and what it refuses before anything starts.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"
export LC_ALL=C
plain="--network mlp --batch-size 50 --num-epochs 1 --benchmark 1 --num-batches 3 --devices ref"
plain_mpirun=$MPIRUN
path=$PATH

# launch_it ARGUMENT...: log and status
launch_it() {
	timeout -k 5 $((60 * ${MU_TIMEOUT_SCALE:-1})) "$SRCDIR/jobs/launch" "$@" >"$log" 2>&1 </dev/null
	status=$?
}

# shows REGEX ARGUMENT...: the command line that would be run
shows() {
	local regex=$1
	shift
	launch_it --dry-run "$@"
	[ $status = 0 ] || fail "exit status $status of --dry-run $*"
	expect_count 1 "$regex"
}

# refuses STATUS REGEX ARGUMENT...
refuses() {
	local wanted=$1 regex=$2
	shift 2
	launch_it "$@"
	[ $status = "$wanted" ] || fail "exit status $status, not $wanted, of $*"
	expect_count 1 "^launch: error: .*$regex"
	expect_none 'start with arguments|BAD TERMINATION'
}

# fake_mpirun VERSION: says that, and shows its words otherwise
fake_mpirun() {
	cat >fake_mpirun <<EOF
#!/bin/sh
[ "\$1" = --version ] && echo "$1" && exit
printf "%s " "\$@"
EOF
	chmod +x fake_mpirun
	export MPIRUN=$PWD/fake_mpirun
}

# A PATH with every program of this one but rsync.
without_rsync() {
	mkdir -p tools
	find /usr/bin /bin -maxdepth 1 -name '[a-z]*' ! -name rsync -exec ln -sft tools {} +
	PATH=$PWD/tools
}

part "each MPI's own words"
printf '#!/bin/sh\n' >t
chmod +x t
printf 'a:2\n\n# all\nb slots=1 # small\n' >three
printf 'a\nb\nc\n' >even
echo no.such.host >away
fake_mpirun "HYDRA build details:"
shows '^\S+ -n 3 -launcher fork ./t --num-servers 1 $' -n 2 -s 1 ./t
shows '^\S+ -n 3 -hosts a:2,b:1 -genv K '\'' a b '\'' ./t $' -n 3 --launcher mpi -H three --env 'K= a b ' ./t
shows '^\S+ -n 4 -hosts a:2,b:1,c:1 ./t -n 7 $' --num-workers=4 --launcher=mpi -H even -- ./t -n 7
shows '^\S+ -n 2 -hosts a:2 ' -n 2 --launcher mpi -H three ./t
without_rsync
shows '^\S+ -n 2 -launcher ssh -launcher-exec \S+ -hosts no.such.host:2 -wdir /d ./t $' \
	-n 2 -H away --ssh sh --sync-dst-dir /d ./t
PATH=$path
expect_count 1 '^rsync -a -e sh ./ no.such.host:/d/ $'
shows '^\S+ -n 2 -launcher ssh -launcher-exec \S+ -hosts no.such.host:2 ./t $' -n 2 -H away --ssh /nothing/ssh ./t
shows '^\S+ -n 2 .*-iface lo -genv DMLC_INTERFACE lo ' -n 2 --interface lo ./t
launch_it -n 2 ./t
expect_count 1 '^-n 2 -launcher fork ./t $'
fake_mpirun "mpirun (Open MPI) 4.1.4"
shows '^\S+ -n 3 --host a:2,b:1 --mca oob_tcp_if_include lo -x DMLC_INTERFACE=lo -x K=1 ./t $' \
	-n 3 --launcher mpi -H three --interface lo --env K=1 ./t
fake_mpirun "Intel(R) MPI Library for Linux"
shows '^\S+ -n 3 -hosts a:2,b:1 ./t $' -n 3 --launcher mpi -H three ./t

part "YARN, without one"
# Of Hadoop what --dry-run reads: its folders, and whether addresses count.
mkdir -p hadoop/bin hadoop/conf hadoop/share/hadoop/yarn
touch hadoop/share/hadoop/yarn/hadoop-yarn-applications-distributedshell-3.4.2.jar
printf '#!/bin/sh\n[ "$1" = classpath ] && echo "%s"\n' "$PWD/hadoop/conf:$PWD/hadoop/share/hadoop/yarn/*" \
	>hadoop/bin/yarn
chmod +x hadoop/bin/yarn
site() { # VALUE: of vmem-check-enabled
	cat >hadoop/conf/yarn-site.xml <<EOF
<configuration><!-- <property><name>yarn.nodemanager.vmem-check-enabled</name><value>true</value></property> -->
<property> <name>yarn.nodemanager.vmem-check-enabled</name>
	<value>$1</value> </property></configuration>
EOF
}
site false
fake_mpirun "HYDRA build details:"
export HADOOP_HOME=$PWD/hadoop
unset HADOOP_CONF_DIR
shows '^\S+ -launcher manual -hosts container1:1,container2:1,container3:1 -n 3 -genv OMP_NUM_THREADS 2 sh -c .* ./t ' \
	-n 2 -s 1 --launcher yarn --worker-cores 2 ./t
jar=$PWD/hadoop/share/hadoop/yarn/hadoop-yarn-applications-distributedshell-3.4.2.jar
expect_count 1 "^$PWD/hadoop/bin/yarn jar $jar -jar $jar -appname muster -queue default -num_containers 3 \
-container_memory 1024 -container_vcores 2 -master_memory 256 -timeout 2000000000 -localize_files proxy.sh "
site true
shows ' -queue q -num_containers 1 -container_memory 3072 .* -master_memory 2400 ' \
	-n 1 --launcher yarn --queue q --worker-memory 3g ./t
shows ' -n 1 -iface lo -genv DMLC_INTERFACE lo -genv K a=b -genv OMP_NUM_THREADS 1 sh ' \
	-n 1 --launcher yarn --interface lo --env K=a=b ./t
# A network's memory is the trainer's own estimate, and 256 MB.
MPIRUN=$plain_mpirun shows ' -container_memory 512 ' -n 2 --launcher yarn "$TRAINER" --network lenet --benchmark 1
MPIRUN=$plain_mpirun shows ' -container_memory \d{4} ' -n 2 --launcher yarn "$TRAINER" --network vgg --benchmark 1 \
	--batch-size 8 --devices ref
refuses 2 "--worker-memory '4t': megabytes are needed" -n 1 --launcher yarn --worker-memory 4t ./t
refuses 2 "--jobname '../x': letters, digits" -n 1 --launcher yarn --jobname ../x ./t
refuses 2 '--queue is for yarn, not for --launcher slurm' -n 1 --launcher slurm --queue q ./t
printf '#!/bin/sh\necho "error Command \\"$1\\" not found."\nexit 1\n' >hadoop/bin/yarn
refuses 1 "hadoop/bin/yarn classpath failed; is it Hadoop's, .*\? error Command .classpath. not found" \
	-n 1 --launcher yarn ./t
HADOOP_HOME=/nothing refuses 1 'there is no /nothing/bin/yarn: have ' -n 1 --launcher yarn ./t
HADOOP_HOME=/nothing shows '^/nothing/bin/yarn jar hadoop-yarn-applications-distributedshell.jar ' \
	-n 1 --launcher yarn ./t
fake_mpirun "mpirun (Open MPI) 4.1.4"
refuses 1 "--launcher yarn needs MPICH's mpirun, .*: load MPICH, or set MPIRUN" -n 1 --launcher yarn ./t
unset HADOOP_HOME

part "wrong use"
refuses 2 'number of workers, is missing' ./t
refuses 2 "-n '0': a whole number from 1" -n 0 ./t
refuses 2 "-s 'x': a whole number from 0" -n 1 -s x ./t
refuses 2 '--launcher: a value is missing' -n 1 --launcher
refuses 2 'unknown option --host' -n 1 --host a ./t
refuses 2 '--launcher mesos: unknown; known are local, mpi, ssh, slurm' -n 1 --launcher mesos ./t
refuses 2 '--launcher ssh needs --hostfile' -n 1 --launcher ssh ./t
refuses 1 '--launcher ssh: there is no /nothing/ssh in the PATH' -n 1 -H three --ssh /nothing/ssh ./t
refuses 2 'no such file' -n 1 --launcher mpi -H nowhere ./t
refuses 2 '3 slots for 4 ranks \(3 workers, 1 servers\)' -n 3 -s 1 --launcher mpi -H three ./t
refuses 2 "--reach '0': a whole number from 1" -n 1 --reach 0 ./t
refuses 2 "--env 'a-b=c'" -n 1 --env a-b=c ./t
refuses 2 '--env NOT_SET_AT_ALL: is not set' -n 1 --env NOT_SET_AT_ALL ./t
refuses 2 '--time is for slurm, sge, pbs, yarn, not for --launcher local' -n 1 --time 1:00:00 ./t
refuses 1 './nothing: there is no such program' -n 1 ./nothing
refuses 1 'no_such_program: there is no such program' -n 1 no_such_program
refuses 1 '\.: there is no such program' -n 1 ./.
for system in slurm sge pbs; do
	refuses 1 './nothing: there is no such program' -n 1 --launcher $system ./nothing
done
refuses 2 '--nodes is for slurm, pbs, not for --launcher sge' -n 1 --launcher sge --nodes 2 ./t
refuses 2 '--gpus-per-node is for slurm, pbs, not for --launcher sge' -n 1 --launcher sge --gpus-per-node 1 ./t
refuses 1 'no network interface nic7; it has: .*lo' -n 1 --interface nic7 ./t
printf 'a\nb\n\na\n' >bad
refuses 2 'bad, line 4: host a stands in line 1, too' -n 1 --launcher mpi -H bad ./t
printf 'a:2\nb\n' >bad
refuses 2 'host b has no number of slots' -n 1 --launcher mpi -H bad ./t
printf 'a:0\n' >bad
refuses 2 'bad, line 1: "a:0": the number of slots' -n 1 --launcher mpi -H bad ./t
printf -- '-oProxyCommand=x\n' >bad
refuses 2 'bad, line 1: .* is no name of a host' -n 1 --launcher mpi -H bad ./t
printf '# none\n' >bad
refuses 2 'bad: it names no host' -n 1 --launcher mpi -H bad ./t
fake_mpirun "mpiexec of somebody 3"
refuses 1 'of no MPI that is known here .*mpiexec of somebody 3' -n 1 ./t
MPIRUN=$PWD/nothing refuses 1 'there is no .*/nothing in the PATH' -n 1 ./t

part "batch files"
for system in slurm sge pbs; do
	launch_it -n 3 -s 1 --launcher $system --time 1:00:00 --env 'K=a b' --dry-run ./t --model-prefix 'x y'
	[ $status = 0 ] || fail "exit status $status of --launcher $system --dry-run"
	bash -n "$log" || fail "bash cannot read the batch file of $system"
	expect_count 1 "^export 'K=a b' \$"
	words="--model-prefix 'x y' --num-servers 1 --resume auto"
	expect_count 1 "^exec \S+/jobs/supervise --queue $system .*fake_mpirun -n 4 ./t $words \$"
	expect_count 1 '^#(SBATCH|\$|PBS) .*(time=|h_rt=|walltime=)1:00:00$'
	expect_count 1 '^#(SBATCH --requeue|\$ -r y|PBS -r y)$'
	expect_none 's_rt=' # Grid Engine may kill a parallel job at it, without a signal
	shows "^exec \S+/supervise .* ./t --model-prefix=P --resume auto \$" -n 3 --launcher $system \
		./t --model-prefix=P --resume auto
	shows "^exec \S+fake_mpirun -n 3 ./t \$" -n 3 --launcher $system ./t
	expect_none '(--requeue|-r y)'
	refuses 2 '--resume F: .* --resume auto' -n 3 --launcher $system ./t --model-prefix P --resume F
	refuses 2 "--time '60': hours, minutes and seconds" -n 3 --launcher $system --time 60 ./t
	refuses 2 '--time 0:03:00: too short' -n 3 --launcher $system --time 0:03:00 ./t --model-prefix P
	PATH=/usr/bin:/bin command -v qsub >/dev/null || [ $system = slurm ] ||
		refuses 1 "--launcher $system: there is no qsub" -n 3 --launcher $system ./t
done
part "hostile words"
# What a batch file, run by bash, gives the program must be the words that it was given, and nothing else may happen.
cat >words_mpirun <<'EOF'
#!/bin/sh
[ "$1" = --version ] && echo HYDRA && exit
shift 3
printf '%s\0' "$K" "$@" >got
EOF
chmod +x words_mpirun
hostile=('x\c' '\101\047;touch owned;' "it's" '' ' ' $'a\nb' '*' '$(touch owned)'
	$'\n#$ -l h_rt=9\n#PBS -l walltime=9\n#SBATCH -t 9\n'
	'`touch owned`' '"' '\' -n "'" "''" $'tab\t' $'end\n' "é" '$HOME' '!!' '# no' '&' 'a;b')
printf '%s\0' '\c\047$(touch owned) "' "${hostile[@]}" >wanted
for shell in sh dash bash; do
	command -v $shell >/dev/null || continue
	for system in slurm sge pbs; do
		rm -f got
		MPIRUN=$PWD/words_mpirun $shell "$SRCDIR/jobs/launch" -n 3 --launcher $system --dry-run \
			--env 'K=\c\047$(touch owned) "' --time 1:00:00 ./t "${hostile[@]}" \
			>batch 2>"$log" </dev/null ||
			fail "exit status $? of $system"
		PBS_O_WORKDIR=$PWD PBS_JOBID=7 bash batch || fail "exit status $? of the batch file of $system"
		cmp wanted got || fail "$shell, $system: other words: $(tr '\0' '|' <got)"
		[ "$(grep -c '9$' batch)" = 0 ] || fail "$system: a word gives orders to the queue"
	done
done
[ ! -e owned ] || fail "a word was obeyed"
for system in slurm sge pbs; do
	for words in $'1:00:00\n#PBS -l x' $'x\n1:00:00' '1:00:0a' '11111:00:00' ':00:00'; do
		refuses 2 "--time '" -n 1 --launcher $system --time "$words" --dry-run ./t
	done
	MULAUNCH_SGE_PE=$'mpi 9\n#$ -l x' refuses 2 "MULAUNCH_SGE_PE 'mpi 9" -n 1 --launcher $system --dry-run ./t
done
# Flux's and PBS's own batch files; supervise takes its job's command from the PATH.
mkdir own
cat >own/muster <<'EOF'
#!/bin/sh
while [ "$1" != ./t ]; do shift; done
printf '%s\0' "$@" >got
EOF
printf '#!/bin/sh\necho 3\n' >own/flux
chmod +x own/*
printf '%s\0' ./t "${hostile[@]}" --resume auto >wanted
PATH=$PWD/own:$PATH bash "$SRCDIR/jobs/flux/train.sh" ./t "${hostile[@]}" >"$log" 2>&1
cmp wanted got || fail "flux: other words: $(tr '\0' '|' <got)"
printf '%s\0' ./t 'a  b' "it's" '*' '$(touch owned)' 'x\c' '`touch owned`' --resume auto >wanted
PATH=$PWD/own:$PATH PBS_O_WORKDIR=$PWD ARGS=$'./t \'a  b\' "it\'s" * $(touch\\ owned) \'x\\c\' "`touch owned`"' \
	bash "$SRCDIR/jobs/pbs/train.sh" >"$log" 2>&1
cmp wanted got || fail "pbs: other words: $(tr '\0' '|' <got)"
rm got
PATH=$PWD/own:$PATH PBS_O_WORKDIR=$PWD ARGS="./t 'a" bash "$SRCDIR/jobs/pbs/train.sh" >"$log" 2>&1 &&
	fail "a quote that does not end"
[ ! -e got ] && [ ! -e owned ] || fail "a word was obeyed, or half of them"
PATH=$path
mkdir -p bin
printf '#!/bin/sh\n[ "$1" != a ] || exit 3\necho fine\n' >bin/rsh
chmod +x bin/rsh
printf 'b\nc\n' >n=4
fake_mpirun "HYDRA build details:"
shows '^\S+ -n 2 -hosts b:1,c:1 ./t $' -n 2 --launcher mpi -H n=4 ./t
printf 'a\na.text\n..\n' >hosts
refuses 1 'host a cannot be reached by ' -n 3 --ssh $PWD/bin/rsh -H hosts ./t
expect_count 1 'error: '

# OpenHPC's prun, by name, or where there is no mpirun.
mkdir only_prun
printf '#!/bin/sh\n' >only_prun/prun
chmod +x only_prun/prun
for tool in sh dirname bash awk sed grep cat mktemp; do ln -s "$(command -v $tool)" only_prun/$tool; done
for system in slurm pbs; do
	MPIRUN=/opt/bin/prun shows '^exec /opt/bin/prun ./t --lr 1 $' -n 3 --launcher $system ./t --lr 1
	(
		failures=0
		unset MPIRUN
		timeout=$(command -v timeout)
		timeout() { "$timeout" "$@"; }
		PATH=$PWD/only_prun
		launch_it --dry-run -n 3 --launcher $system ./t
		PATH=$path
		expect_count 1 '^exec prun ./t $'
		exit $failures
	)
	failures=$((failures + $?))
	MPIRUN=prun refuses 1 'prun passes no warning' -n 3 --launcher $system ./t --model-prefix P
	MPIRUN=prun refuses 1 "prun cannot pass on 'a b'" -n 3 --launcher $system ./t 'a b'
done
MPIRUN=prun refuses 1 'prun is for slurm and pbs' -n 3 --launcher sge ./t
# A queue of our own: a job runs when it is submitted, and leaves its status.
mkdir queue
printf '#!/bin/sh\nbash >muster-7.log 2>&1\necho $? >status\necho 7\n' >queue/sbatch
cat >queue/squeue <<'EOF'
#!/bin/sh
head -n 1 states && sed -i 1d states
EOF
printf 'PENDING None\nPENDING Resources\nPENDING Resources\nRUNNING None\n' >states
printf '#!/bin/sh\necho "   ExitCode=$(cat status):0"\n' >queue/scontrol
chmod +x queue/*
export MPIRUN=$plain_mpirun
PATH=$PWD/queue:$PATH
launch_it -n 2 --launcher slurm "$TRAINER" --network lenat --kv-store dist_sync
[ $status = 2 ] || fail "exit status $status, not 2, of a job that ends with 2"
expect_count 1 'network lenat: unknown'
expect_count 1 '^launch: job 7 has ended with status 2'
expect_count 1 '^launch: job 7 waits in the queue: Resources$'
expect_count 1 'waits in the queue'
launch_it -n 2 --launcher slurm --no-wait "$TRAINER" --version
expect_count 1 '^7$'
expect_count 1 .
PATH=$path

part "on this machine"
export MPIRUN=$plain_mpirun
# shellcheck disable=SC2086 # words
launch_it -n 2 -s 1 "$TRAINER" $plain --kv-store dist_sync
[ $status = 0 ] || fail "exit status $status"
expect_count 1 '2 workers, 1 server,'
launch_it -n 2 "$TRAINER" --network lenat --kv-store dist_sync
[ $status = 2 ] || fail "exit status $status, not 2, of a wrong network"

part "a job of an array has a prefix of its own"
# In place of mpirun, a program that prints its words.
mkdir array
printf '#!/bin/sh\nprintf "<%%s>" "$@"\n' >array/mpirun
chmod +x array/mpirun
# in_array OPTION...: the third task's
in_array() {
	PATH=$PWD/array:$PATH SLURM_ARRAY_TASK_ID=2 "$SRCDIR/jobs/slurm/array.sbatch" "$TRAINER" "$@" >"$log" 2>&1
}
in_array --model-prefix out/x --log='run-%a.log' --profile --check
expect '^<.*><--model-prefix><out/x-2><--log=run-2\.log><--profile><--check><--lr><0\.05>$'
in_array --model_prefix='%a/x'
expect '><--model_prefix=2/x><'
in_array --log run.log && fail "tasks that write one log"
expect_count 1 'array.sbatch: error: --log run.log: every task of the array would write it; put %a'

part "what the log says of cores, and of Slurm"
if command -v taskset >/dev/null && [ "$(nproc)" -gt 1 ]; then
	# shellcheck disable=SC2086 # words
	launch_it -n 2 taskset -c 0 "$TRAINER" $plain --kv-store dist_allreduce
	expect_count 1 'node 0 \(\S+\): 2 workers are bound to the same 1 core of \d+; see'
	# shellcheck disable=SC2086 # words
	launch_it -n 2 "$TRAINER" $plain --kv-store dist_allreduce
	expect_none 'are bound to the same'
fi
# in_slurm VARIABLE=VALUE...: one rank, with these in the environment
in_slurm() {
	# shellcheck disable=SC2086 # words
	env SLURM_JOB_ID=7 "$@" "$TRAINER" $plain $options >"$log" 2>&1 </dev/null
	status=$?
}
options=
in_slurm
expect_none '[Ss]lurm'
in_slurm SLURM_RESTART_COUNT=2 SLURM_CPUS_PER_TASK=4096 SLURM_GPUS_ON_NODE=2
expect_count 1 'Slurm job 7 was queued anew: restart 2$'
expect_count 1 'Slurm gives 4096 cores to a task \(SLURM_CPUS_PER_TASK\), and worker 0 may run on \d+: '
expect_count 1 'Slurm gives 2 GPUs on this node'
expect_none 'starts training from'
in_slurm SLURM_CPUS_PER_TASK=1
expect_count 1 ', 1 thread per worker;'
in_slurm SLURM_CPUS_PER_TASK=many
[ $status = 2 ] || fail "exit status $status, not 2"
expect_count 1 "error: SLURM_CPUS_PER_TASK is 'many': a number from 1 to"
if has_files; then
	options='--model-prefix P'
	in_slurm SLURM_RESTART_COUNT=1
	expect_count 1 'starts training from the beginning: --resume auto'
	options='--model-prefix P --resume auto'
	in_slurm SLURM_RESTART_COUNT=1
	expect_none 'starts training from'
fi

part "on private hosts"
[ "$(mpi_kind)" = mpich ] || { echo "not on private hosts: their addresses are given to MPICH's mpirun" && finish; }
if ! hosts_possible >why; then
	echo "not on private hosts: $(cat why)"
	finish
fi
hosts_up 3 || fail "cannot lay private hosts"
hosts_use 3
for i in 1 2 3; do hosts_name $i; done >hosts
export MPIRUN="$hosts_mpirun -iface $hosts_bridge" MULAUNCH_SSH=$PWD/hosts_exec
# shellcheck disable=SC2086 # words
launch_it -n 4 -s 2 -H hosts "$TRAINER" $plain --kv-store dist_sync
[ $status = 0 ] || fail "exit status $status"
for i in 1 2 3; do expect "^\S* ?.*node \d \\($(hosts_name $i), eth0 $hosts_net.$i\\): "; done
echo nobody-there >>hosts
refuses 1 'host nobody-there cannot be reached' -n 4 -H hosts "$TRAINER"
sed -i '$d' hosts
ip netns exec "$(hosts_name 3)" ip link set eth0 name eth5
refuses 1 "host $(hosts_name 3) has no network interface eth0" -n 4 -H hosts --interface eth0 "$TRAINER"
ip netns exec "$(hosts_name 3)" ip link set eth5 name eth0

part "a host is silent"
hosts_silence 2 || fail "cannot silence host 2"
new_mark
HOSTS_PATIENCE=1000 MU_TEST_PART=$run_mark refuses 1 \
	"host $(hosts_name 2) cannot be reached by \S+: it has not answered in 6 s \(--reach\)\$" \
	-n 4 --reach 6 -H hosts "$TRAINER" $plain
expect_count 1 .
left=$(leftovers)
[ -z "$left" ] || fail "left running: ${left//$'\n'/ }"
hosts_silence 2 end
hosts_wait 2 || fail "host 2 is not reached again"

part "Ctrl-C leaves nothing on three hosts"
for signal in INT TERM; do
	new_mark
	: >"$log"
	MU_TEST_PART=$run_mark "$SRCDIR/jobs/launch" -n 3 -H hosts "$TRAINER" --network mlp --benchmark 1 \
		--num-batches 1000000 --devices ref --kv-store dist_allreduce >"$log" 2>&1 </dev/null &
	job=$!
	for _ in $(seq 300); do
		grep -q 'Batch \[' "$log" && break
		sleep 0.1
	done
	grep -q 'Batch \[' "$log" || fail "no job to end by $signal"
	kill -$signal $job
	for _ in $(seq 150); do
		kill -0 $job 2>/dev/null || break
		sleep 0.1
	done
	kill -0 $job 2>/dev/null && fail "still running 15 s after $signal"
	wait $job
	left=$(leftovers)
	[ -z "$left" ] || fail "left running after $signal: ${left//$'\n'/ }"
done

part "a folder is copied first"
without_rsync
refuses 1 'needs rsync, which is not installed' -n 3 -H hosts --sync-dst-dir "$PWD/there" ./trainer
PATH=$path
if ! command -v rsync >/dev/null; then
	echo "not copied: there is no rsync"
	finish
fi
mkdir from
ln "$TRAINER" from/trainer 2>/dev/null || cp "$TRAINER" from/trainer
cd from || exit 1
log=../$log
# shellcheck disable=SC2086 # words
launch_it -n 3 -H ../hosts --sync-dst-dir "$PWD/../there" ./trainer $plain --kv-store dist_allreduce
[ $status = 0 ] || fail "exit status $status"
[ -x ../there/trainer ] || fail "nothing was copied"
finish
