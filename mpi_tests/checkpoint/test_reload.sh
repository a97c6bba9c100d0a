#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --on-error reload: after an error that passes, the run ends with the bits of one without it.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

if grep -q '^EXPORT_DYNAMIC = *$' "$BUILDDIR/Makefile"; then
	echo "skip: this build cannot load models"
	exit 77
fi
needs_files
$CC -O2 -std=c11 -shared -fPIC -I"$SRCDIR/include" "$SRCDIR/mpi_tests/lib/spoil_net.c" -o spoil.so || exit 1
export OMP_NUM_THREADS=1 MU_SPOIL
small_set set 120 20
run="--network ./spoil.so --data-dir set --batch-size 10 --lr 0.05 --mom 0.9 --num-epochs 2 --log-prefix none
	--log-time 0 --disp-batches 1000"
sync="--kv-store dist_sync --num-servers 1"
reload="--on-error reload --save-every 2steps"

# spoilt RANK EPOCH FIRST LAST loss|gradient|once
spoilt() { MU_SPOIL="$*"; }

# undisturbed RANKS OPTION...: the models A of a run without an error
undisturbed() {
	MU_SPOIL=
	rm -f A-* P-*
	train "$@" --model-prefix A
}

# goes_back RANKS OPTION...: once, to a checkpoint; the models of both epochs are the undisturbed run's
goes_back() {
	train "$@" $reload --model-prefix P --overwrite 1
	expect_count 1 'warning: worker \d+: .* \(--on-error reload\)'
	expect_count 1 'an error of .*: training goes back from .* to the newest checkpoint'
	for epoch in 1 2; do
		same_model A-000$epoch.h5 P-000$epoch.h5 || fail "epoch $epoch: another model"
	done
	"$BUILDDIR/mpi_tests/lib/whole_file" P-*.h5 || fail "a damaged file"
	grep -q '"exit": "finished"' P-run.json || fail "P-run.json: $(head -n 3 P-run.json)"
}

jobs=("1 --kv-store local" "3 $sync")
! in_tier full || jobs+=("5 --kv-store dist_sync --num-servers 2" "2 --kv-store dist_allreduce --update-period 2"
	"2 --kv-store dist_sharded --shard-gradients 1")
for job in "${jobs[@]}"; do
	part "${job#* }, ${job%% *} ranks"
	undisturbed ${job%% *} $run ${job#* }
	spoilt 0 1 1 1 once
	goes_back ${job%% *} $run ${job#* }
	expect_count 1 'Resumed from "P-000(1|0-0+[246])\.h5"'
	rm -f P-*
	spoilt 0 0 0 0 once
	goes_back ${job%% *} $run ${job#* }
	expect_count 0 'Resumed from'
done

if ! is_sanitized; then
	part "a disk that is full for a moment"
	$CC -O1 -shared -fPIC "$SRCDIR/mpi_tests/lib/fail_call.c" -o fail_call.so -ldl || exit 1
	MU_SPOIL=
	rm -f A-*
	train 3 $run --kv-store dist_sharded --model-prefix A
	export FAIL_WHAT=files FAIL_FOLDER=$PWD/out FAIL_NAME=trainer FAIL_REPORT=$PWD/report FAIL_RANK FAIL_AT
	for where in "0 12" "0 27" "1 3" "1 5" "2 8"; do
		read -r FAIL_RANK FAIL_AT <<<"$where"
		rm -rf out report
		mkdir out
		LD_PRELOAD=$PWD/fail_call.so train 3 $run --kv-store dist_sharded $reload --model-prefix out/P
		grep -q '^failed' report || fail "$where: no call has failed"
		expect_count 1 'warning: worker [0-2]: .*out/P-.* (No space left on device|$) ?\(--on-error reload\)'
		expect_count 1 'an error of .*: training goes back from .* to the newest checkpoint'
		same_model A-0002.h5 out/P-0002.h5 || fail "$where: another model"
	done
	unset FAIL_WHAT
fi

part "a signal with the error: no file has the step that lacks a part"
for job in "3 $sync" "2 --kv-store dist_sharded"; do
	undisturbed ${job%% *} $run ${job#* }
	spoilt 0 1 2 2 signal
	run_limited 60 ${job%% *} $run ${job#* } $reload --save-every 1steps --model-prefix P
	[ $status = 85 ] || fail "exit status $status"
	# a signal that is seen a step later ends the run that goes back
	grep -q 'training goes back' "$log" || expect 'SIGTERM came .*, and nothing is saved, for a worker had no part'
	MU_SPOIL=
	train ${job%% *} $run ${job#* } --model-prefix P --resume auto
	same_model A-0002.h5 P-0002.h5 || fail "another model"
done

part "the newest checkpoint is damaged, or gone"
for job in "1 --kv-store local" "3 $sync"; do
	undisturbed ${job%% *} $run ${job#* }
	spoilt 0 1 0 0 once
	export MU_SPOIL_FILE=P-0001.h5
	goes_back ${job%% *} $run ${job#* } --save-async 0
	unset MU_SPOIL_FILE
	expect_count 1 'left out: P-0001.h5: damaged'
	expect_count 1 'Resumed from "P-0000-0000\d+\.h5"'
done
rm -f P-*
spoilt 0 1 0 0 once
MU_SPOIL_FILE=set/train-images-idx3-ubyte.gz run_limited 60 2 $run --kv-store dist_sharded $reload --model-prefix P
[ $status = 1 ] || fail "exit status $status, not 1: another start may find the files"
grep -q '"exit": "error"' P-run.json || fail "P-run.json: $(head -n 3 P-run.json)"
grep -q '"cause": ".*the loss is not finite' P-run.json || fail "P-run.json: $(head -n 3 P-run.json)"
rm -rf set
small_set set 120 20

part "--on-nan rollback takes what is its own"
rm -f P-*
spoilt 0 1 1 1 once
train 3 $run $sync $reload --on-nan rollback --model-prefix P
expect_count 1 'a batch of worker 0 .* was not finite: training goes back from .* to the newest checkpoint'
expect_count 0 '\(--on-error reload\)'

python=$(find_h5py)
if [ -n "$python" ]; then
	part "back to a file of parameters alone"
	rm -f P-* Q-*
	cp A-0001.h5 P-0001.h5
	$python -c 'import h5py, numpy
a = h5py.File("P-0001.h5", "a").attrs
del a["format"]
a["num_layers"] = numpy.bytes_("0")' || fail "no P-0001.h5"
	cp P-0001.h5 Q-0001.h5
	MU_SPOIL=
	train 2 $run --kv-store dist_sharded --model-prefix Q --resume 1
	spoilt 0 1 1 1 once
	train 2 $run --kv-store dist_sharded $reload --model-prefix P --resume 1
	expect_count 1 'an error of .*: training goes back from .* to the newest checkpoint'
	same_model Q-0002.h5 P-0002.h5 || fail "another model"
fi

part "an evaluation takes no error"
MU_SPOIL=
run_limited 60 1 $run --on-error reload --model-prefix A --load A-0001.h5 --evaluate
[ $status = 0 ] || fail "exit status $status"
expect 'warning: .*--on-error reload.* no effect with --evaluate'
mv set/t10k-labels-idx1-ubyte.gz labels
head -c 20 labels >set/t10k-labels-idx1-ubyte.gz
run_limited 60 1 $run --on-error reload --model-prefix A --load A-0001.h5 --evaluate
[ $status = 2 ] || fail "exit status $status of labels that are cut"
mv labels set/t10k-labels-idx1-ubyte.gz

part "an error that does not pass"
rm -f P-*
spoilt 0 1 2 2 loss
run_limited 60 2 $run --kv-store dist_allreduce $reload --model-prefix P
[ $status = 1 ] || fail "exit status $status"
expect_count 3 'Resumed from "P-0001-000002.h5"'
expect 'error: --on-error reload: training has gone back to P-0001-000002.h5 3 times in a row, and an error came'

part "weights that are not finite are not saved"
rm -f P-*
spoilt 0 0 2 2 gradient
for more in "" "--on-error reload"; do
	run_limited 60 2 $run --kv-store dist_allreduce --save-every 1steps --save-async 0 --model-prefix P \
		--overwrite 1 $more
	[ $status = 1 ] || fail "exit status $status"
	expect 'fullyconnected[01]_(weight|bias) is not finite, and is not saved'
	[ "$(echo P-*.h5)" = "P-0000-000001.h5 P-0000-000002.h5" ] || fail "there are $(echo P-*.h5)"
done

part "wrong use"
run_limited 60 1 $run --on-error reload
expect 'error: --on-error reload needs --model-prefix P'
run_limited 60 3 $run --on-error reload --model-prefix P --kv-store dist_async
expect 'error: --on-error reload with --kv-store dist_async'
finish
