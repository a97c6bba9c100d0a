#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two machines on one: 2 workers and 2 servers (-n 2 -s 2), started by muster launch, of which each half believes to be
# on a machine of its own, so that all gradients travel as messages. MPICH pretends that; with another MPI
# --node-reduce none sends the same messages.
#
#	jobs/examples/two_machines.sh DATA_DIR [trainer option ...]
#
# DATA_DIR as for mnist_dist_sync.sh. common.sh says what can be set by the environment.
. "$(dirname "$0")/common.sh"
need 1 DATA_DIR "$@"
data=$1
shift

export MPIR_CVAR_NUM_CLIQUES=2 # of MPICH
"$muster" launch -n 2 -s 2 "$muster" train --network lenet --kv-store dist_sync --node-reduce none \
	--data-dir "$data" --batch-size 64 --num-epochs 5 --lr 0.05 --disp-batches 100 "$@" 2>&1 | tee "$log"
table "$log"
