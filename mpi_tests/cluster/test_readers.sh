#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who reads the log stops reading, or ends; the launcher's process on this host is killed. Training goes on in the first
# case, and ends with a checkpoint in the others: nobody waits for ever.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

needs_files
export OMP_NUM_THREADS=1
small_set set 200 50
run="--network mlp --data-dir set --batch-size 20 --log-prefix none"

part "a reader that does not read"
mkfifo pipe
exec 8<>pipe
# more lines than a pipe holds
timeout 120 "$TRAINER" $run --num-epochs 150 --disp-batches 1 --model-prefix S 2>pipe
status=$?
exec 8>&-
[ $status = 0 ] || fail "exit status $status of a run whose log nobody read"
[ -e S-0150.h5 ] || fail "no last checkpoint: $(echo S-*)"

part "a reader that ends"
timeout 120 "$TRAINER" $run --num-epochs 100000 --disp-batches 1 --keep 1 --model-prefix E --log E.log 2>&1 |
	head -n 40 >/dev/null
status=${PIPESTATUS[0]}
[ $status = 85 ] || fail "exit status $status, not 85, where the reader of the log has ended"
ls E-0*.h5 >/dev/null 2>&1 || fail "no checkpoint where the reader of the log has ended"
[ ! -e E.lock ] || fail "E.lock is left"
[ "$(grep -c 'the program that read the log of .* has ended: training ends' E.log)" = 1 ] ||
	fail "E.log: $(tail -n 2 E.log)"

if [ "$(mpi_kind)" = mpich ]; then
	part "the launcher's process is killed"
	new_mark
	MU_TEST_PART=$run_mark $MPIRUN -np 3 "$TRAINER" $run --num-epochs 100000 --disp-batches 1 --comm-timeout 20 \
		--keep 1 --model-prefix L --log L.log >"$log" 2>&1 &
	job=$!
	until grep -qs 'Epoch\[2\]' "$log"; do
		kill -0 $job 2>/dev/null || { fail "the job has ended" && finish; }
		sleep 0.1
	done
	pkill -KILL -P $job hydra_pmi_proxy
	for ((k = 0; k < 600; k++)); do
		ranks=$(grep -lzs "^MU_TEST_PART=$run_mark\$" /proc/[0-9]*/environ | cut -d / -f 3 | grep -vx $job)
		[ -n "$ranks" ] || break
		sleep 0.1
	done
	[ -z "$ranks" ] || fail "ranks that still run: $ranks"
	kill -KILL $job 2>/dev/null
	wait $job
	left=$(leftovers)
	[ -z "$left" ] || fail "left running: ${left//$'\n'/ }"
	grep -q 'the launcher of .* has ended: training ends' L.log || fail "L.log: $(tail -n 2 L.log)"
	ls L-0*.h5 >/dev/null 2>&1 || fail "no checkpoint where the launcher was killed"
	[ ! -e L.lock ] || fail "L.lock is left"
fi
finish
