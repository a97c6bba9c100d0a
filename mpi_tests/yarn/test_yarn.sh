#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 1800
# jobs/launch --launcher yarn, on Hadoop's own ResourceManager and two NodeManagers, which count addresses as Hadoop
# does by itself: a job in containers has the bits of one beside it. Tier full: what it says, and that nothing is left,
# where containers are not given, killed, lost or ended.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/queue.sh
. "$SRCDIR/mpi_tests/lib/queue.sh"
# shellcheck source=mpi_tests/yarn/yarn.sh
. "$SRCDIR/mpi_tests/yarn/yarn.sh"
export LC_ALL=C

yarn_possible || exit 77
is_sanitized && { echo "skipped: a sanitizer takes more addresses than YARN allows" && exit 77; }
small_set set 2000 500
if ! yarn_up --nodes 2 --memory 6000 --vmem-check; then
	fail "no YARN here"
	finish
fi
plain="--network mlp --data-dir set --batch-size 20 --kv-store dist_sync"
long="$plain --num-epochs 100000 --disp-batches 10"

part "three containers on two nodes train as three ranks beside each other"
saves=
! has_files || saves="--model-prefix yarn"
# shellcheck disable=SC2086 # words
yarn_begin -n 2 -s 1 "$TRAINER" $plain --num-epochs 2 $saves
yarn_end
[ $status = 0 ] || { fail "exit status $status" && show_log; }
expect_count 1 '^launch: application application_\d+_0001; Ctrl-C ends it$'
expect_count 1 'Epoch\[1\] Train-accuracy'
expect_count 1 'environment: OMP_NUM_THREADS=1$'
expect_none 'muster-launch|HYDRA| error: '
if has_files; then
	# shellcheck disable=SC2086 # words
	run_limited 100 3 $plain --num-servers 1 --num-epochs 2 --model-prefix beside
	same_model yarn-0002.h5 beside-0002.h5 || fail "containers train another model"
fi

part "what the cluster has not"
log=refusal.log
yarn_begin -n 1 --worker-memory 8g "$TRAINER"
yarn_end
[ $status = 1 ] || fail "exit status $status of a container that is too large"
expect_count 1 \
	'^launch: error: a container of 8192 MB \(--worker-memory\) is larger than any node: the largest has 6000 MB$'
in_tier full || finish

part "the status is the job's"
yarn_begin -n 1 sh -c 'exit 7'
yarn_end
[ $status = 7 ] || fail "exit status $status, not 7"
expect_none ' error: '

part "a queue that is not there"
yarn_begin -n 1 --queue nosuch "$TRAINER"
yarn_end
[ $status = 1 ] || fail "exit status $status of a queue that is not there"
expect_count 1 '^launch: error: --queue nosuch: there is no such queue \(Queue nosuch not present in .*\)$'

part "no ResourceManager"
mkdir nowhere
cp cluster/conf/* nowhere
sed -i 's/127\.0\.0\.1:[0-9]*/127.0.0.1:9/' nowhere/yarn-site.xml
HADOOP_CONF_DIR=$PWD/nowhere yarn_begin -n 1 --reach 5 --worker-memory 64 "$TRAINER"
yarn_end
[ $status = 1 ] || fail "exit status $status without a ResourceManager"
expect_count 1 '^launch: error: no ResourceManager answers( at \S+:9)? in 5 s \(--reach\); is it up, and does .*$'

part "a container above its memory"
# shellcheck disable=SC2086 # words
yarn_begin -n 2 --worker-memory 64 "$TRAINER" $long
yarn_end
[ $status != 0 ] || fail "exit status 0 of a job that was killed"
expect_count 1 "^launch: error: container container_\\d+_\\d+_01_\\d+ of rank [01] on host 127.0.0.[23] was killed by \
YARN: it is running \\d+B beyond the '(PHYSICAL|VIRTUAL)' memory limit.* ask for more than 64 MB by --worker-memory\$"
expect_none '\[mpiexec@'

part "signals and the end of --time: saved, or taken back where the job waits"
if has_files; then
	# shellcheck disable=SC2086 # words
	yarn_begin -n 2 "$TRAINER" $long --model-prefix halted
	wait_for 300 "the first batches" yarn_says 'Batch \[10'
	kill -INT "$yarn_job"
	yarn_end
	[ $status = 85 ] || { fail "exit status $status, not 85, after Ctrl-C" && show_log; }
	expect 'Saved checkpoint to "halted-'
fi
# shellcheck disable=SC2086 # words
yarn_begin -n 2 -s 1 --worker-memory 3500 "$TRAINER" $long
wait_for 300 "what the job waits for" yarn_says \
	'^launch: 2 of 3 containers of 3500 MB are there; .* waits for the others: all nodes together have room for 2$'
kill -TERM "$yarn_job"
yarn_end
[ $status = 143 ] || { fail "exit status $status, not 143, after SIGTERM" && show_log; }
# shellcheck disable=SC2086 # words
yarn_begin -n 2 -s 1 --worker-memory 3500 --time 0:00:30 "$TRAINER" $long
yarn_end
[ $status = 1 ] || { fail "exit status $status, not 1, of a job that got no containers" && show_log; }
expect_count 1 '^launch: error: [012] of 3 containers came in 0:00:30 \(--time\), and the job did not begin$'

part "yarn application -kill"
# shellcheck disable=SC2086 # words
yarn_begin -n 2 "$TRAINER" $long
wait_for 300 "the first batches" yarn_says 'Batch \[10'
yarn application -kill \
	"$(sed -n 's/^launch: application \(\S*\);.*/\1/p' "$log")" >kill.log 2>&1 ||
	fail "yarn application -kill: exit status $?"
yarn_end
[ $status != 0 ] || fail "exit status 0 of a job that was killed"
expect_count 1 '^launch: error: application application_\d+_\d+ was killed: .*killed by user'
expect_none '\[mpiexec@'

part "a node is lost"
# Each node has room for one of these, and one of them for the master too, whose node stays.
# shellcheck disable=SC2086 # words
yarn_begin -n 2 --worker-memory 3500 "$TRAINER" $long
wait_for 300 "the first batches" yarn_says 'Batch \[10'
lost=1
[ "$(yarn_master_host)" != 127.0.0.2 ] || lost=2
"$hadoop/cluster" kill-node cluster $lost
yarn_end
[ $status != 0 ] || fail "exit status 0 of a job that lost a node"
expect_count 1 "^launch: error: lost container \\S+ of rank [01] on host 127.0.0.$((lost + 1)): \
the host does not answer\$"
expect_none '\[mpiexec@'
finish
