#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 900
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
