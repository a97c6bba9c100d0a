#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A site's file: what it sets for the trainer and for jobs/launch, what goes before it, what it may not hold.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export LC_ALL=C MUSTER_SITE=$PWD/site
unset DMLC_INTERFACE SLURM_JOB_ID PBS_JOBID JOB_ID
job="--network mlp --benchmark 1 --num-batches 2 --num-epochs 1 --log-prefix none --log-time 0"

# site LINE...: the file
site() {
	printf '%s\n' "$@" >site
}

part "the trainer: defaults, and what goes before them"
site '# all' 'interface = lo' 'comm_timeout 200 # s' '--co2-factor "300"' 'launcher slurm' 'account a' 'scratch /s'
printf 'comm-warn 20\ncomm-timeout 100\n' >config
train 2 $job
expect_count 1 "^site file $PWD/site sets interface=lo, comm-timeout=200, co2-factor=300\$"
expect '^start with arguments .*interface=lo, comm_timeout=200,.* co2_factor=300,'
expect '^node 0 \(\S+, lo 127\.0\.0\.1\): worker 0'
expect_none 'has no effect' # such as --co2-factor without a counter: only what a user gives is told of
train 1 $job
expect_none 'has no effect'
train 2 $job --config config
expect_count 1 "^site file .* sets interface=lo, co2-factor=300; set otherwise by this run: comm-timeout\$"
expect '^start with arguments .* comm_timeout=100, .*comm_warn=20,'
train 2 $job --config config --comm-timeout 50
expect '^start with arguments .* comm_timeout=50,'
DMLC_INTERFACE=lo train 2 $job
expect_count 1 "^site file .* sets comm-timeout=200, co2-factor=300; set otherwise by this run: interface\$"
MUSTER_SITE=none train 2 $job
expect_none 'site file'
expect '^start with arguments .* comm_timeout=300,'

part "beside the program"
cp "$TRAINER" site .
mv site muster.conf
(
	unset MUSTER_SITE
	TRAINER=$PWD/trainer train 1 $job
	expect_count 1 "^site file $PWD/muster.conf sets "
	exit $failures
)
failures=$((failures + $?))
mv muster.conf site

part "the same weights and records"
if has_files; then
	train 2 $job --model-prefix with
	MUSTER_SITE=none train 2 $job --model-prefix without
	cmp with-0001.h5 without-0001.h5 || fail "a checkpoint depends on the site's file"
	[ "$(sed -n '/"given"/,/]/p' with-run.json)" = "$(sed -n '/"given"/,/]/p' without-run.json)" ] ||
		fail "the run's file calls options of the site given"
fi

# refuses REGEX LINE...: by the trainer, once for all ranks; REGEX without what site.c puts before it
refuses() {
	local regex=$1
	shift
	site "$@"
	run_limited 60 2 $job
	[ $status = 2 ] || fail "exit status $status, not 2, with the file: $*"
	expect_count 1 'error: '
	expect "^trainer: error: site file $PWD/site$regex"
}

part "what may not stand there"
may='a site.s file cannot set this; it may have: interface, comm-timeout, .*, scratch$'
refuses ":2: batch-size: $may" 'interface lo' 'batch-size 3'
refuses ":1: interfaces: $may" 'interfaces lo'
refuses ':3: --comm-timeout: "x" is not a finite number' '' '' 'comm-timeout x'
refuses ':1: .*config: a file cannot name another' 'config other'
rm site
MUSTER_SITE=$PWD/site run_limited 60 1 $job
[ $status != 0 ] || fail "a file that is not there is passed over"
expect "site file $PWD/site: cannot be read: No such file"
site 'batch-size 3'
"$TRAINER" --version || fail "--version reads the site's file"

part "an interface that this machine lacks"
site 'interface nic7'
train 2 $job # of one machine: it is not needed
expect 'interface nic7: this host has none of that name'
export MPIR_CVAR_NUM_CLIQUES=2
if [ "$(mpi_kind)" = mpich ]; then
	run_limited 60 2 $job # of two, as MPICH is told
	[ $status = 2 ] || fail "exit status $status, not 2"
	expect_count 1 "error: site file $PWD/site: interface nic7: host \\S+ has no such interface"
fi
unset MPIR_CVAR_NUM_CLIQUES

# launches REGEX ARGUMENT...: in the log of a dry run
launches() {
	local regex=$1
	shift
	"$SRCDIR/jobs/launch" --dry-run "$@" >"$log" 2>&1 || fail "exit status $? of launch $*"
	expect_count 1 "$regex"
}

part "jobs/launch: the queue, its account, and folders"
export MPIRUN=true # shown only
cat >true <<'END'
#!/bin/sh
echo HYDRA
END
chmod +x true
MPIRUN=$PWD/true
site 'launcher = slurm' 'account  "proj-1"' '--partition batch' 'scratch /scratch/a b # c' 'comm-warn 3'
launches "^launch: site file $PWD/site sets launcher=slurm, account=proj-1, partition=batch, scratch=/scratch/a b\$" \
	-n 2 ./t
expect_count 1 '^#SBATCH --account=proj-1$'
expect_count 1 '^#SBATCH --partition=batch$'
expect_count 1 "^export 'TMPDIR=/scratch/a b' \$"
launches '^#SBATCH --account=mine$' -n 2 --account mine --scratch /t ./t
expect_count 1 'sets launcher=slurm, partition=batch$'
expect_count 1 '^export TMPDIR=/t $'
launches '^#PBS -q batch$' -n 2 --launcher pbs ./t
expect_count 1 '^#PBS -A proj-1$'
launches '^\#\$ -q batch$' -n 2 --launcher sge ./t
expect_count 1 '^#\$ -A proj-1$'
launches '^\S+true -n 2 -launcher fork -genv TMPDIR .* ./t ' -n 2 --launcher local ./t
expect_count 1 'sets scratch=/scratch/a b$'
echo no.such.host >away
launches 'sets scratch=' -n 2 -H away ./t
SLURM_JOB_ID=1 launches 'sets scratch=/scratch/a b$' -n 2 ./t # inside a job: no other is submitted
MUSTER_SITE=none launches '^\S+true -n 2 -launcher fork ./t ' -n 2 ./t
expect_none 'site file'
site 'interface lo'
launches 'sets interface=lo$' -n 2 ./t
expect_count 1 'DMLC_INTERFACE lo '
DMLC_INTERFACE=eth5 launches 'sets nothing here$' -n 2 ./t
expect_none 'genv DMLC_INTERFACE'
site 'interface nic7'
launches 'sets nothing here$' -n 2 ./t

# launch_refuses REGEX LINE...
launch_refuses() {
	local regex=$1
	shift
	site "$@"
	"$SRCDIR/jobs/launch" -n 2 true >"$log" 2>&1
	status=$?
	[ $status = 2 ] || fail "exit status $status of launch, not 2, with the file: $*"
	expect_count 1 "^launch: error: $regex"
}

part "jobs/launch: what may not stand there"
launch_refuses "site file $PWD/site:2: batch-size: $may" '# x' 'batch-size 3'
launch_refuses "site file $PWD/site:1: account: \"a b\" is no account" 'account a b'
launch_refuses "site file $PWD/site:1: scratch: \"tmp\" is no absolute path" 'scratch tmp'
launch_refuses '--launcher nothing: unknown' 'launcher nothing'
launch_refuses "site file $PWD/site:1: account: a quotation mark begins the value" 'account "a'
site 'account a'
"$SRCDIR/jobs/launch" -n 2 --account b true >"$log" 2>&1
expect "error: --account is for slurm, sge, pbs, not for --launcher local"
finish
