#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 600
# Checkpoints and going on from them: the bits of a run that was never interrupted, other numbers of
# ranks, damaged files, a full disk.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"

needs_files
export OMP_NUM_THREADS=1 # bits depend on it
small_set set 600 200
plain="--log-prefix none --log-time 0 --disp-batches 2"
mlp="--network mlp --data-dir set --batch-size 20 --num-epochs 2 --lr 0.1 $plain"

epochs() {
	grep -E '^Epoch\[1\] (Train|Validation)-' "$log"
}

# same_bits NP FILE ARGUMENT...: a run that saves now and then and one that does not end alike, and
# so does one that goes on from R-FILE.h5, with all its files as the first.
same_bits() {
	local np=$1 file=R-$2.h5 other
	shift 2
	rm -f U-* R-*
	train "$np" "$@" --model-prefix U
	epochs >expected
	train "$np" "$@" --model-prefix R --save-steps 3
	cmp U-0002.h5 R-0002.h5 || fail "saving changes the result of -n $np $*"
	for other in R-*.h5; do [ "$other" = "$file" ] || rm "$other"; done
	train "$np" "$@" --model-prefix R --resume auto
	expect "^Resumed from \"$file\": after "
	expect_none 'not as when|left out'
	cmp U-0002.h5 R-0002.h5 || fail "other bits after going on from $file: -n $np $*"
	epochs | cmp -s expected - || fail "other metrics: $(epochs | diff expected - | head -n 4)"
}

part "the same bits"
adam="--optimizer adam --lr 0.001"
same_bits 1 0000-000003 $mlp --kv-store local --mom 0.9
same_bits 3 0000-000003 $mlp --kv-store dist_sync --mom 0.9 --lr-schedule cosine
same_bits 2 0001-000003 $mlp --kv-store dist_sharded $adam
same_bits 2 0000-000003 $mlp --kv-store dist_allreduce --gc-type 2bit --gc-pull 1 --sync-period 2 --mom 0.9
if in_tier full; then
	same_bits 1 0001 $mlp --kv-store device $adam
	same_bits 1 0001-000009 $mlp --kv-store local --devices cpu:0,cpu:1 --mom 0.9
	same_bits 5 0001-000003 $mlp --kv-store dist_sync --num-servers 2 $adam
	same_bits 3 0000-000006 $mlp --kv-store dist_sharded --optimizer lamb --lr 0.01
	same_bits 5 0001 $mlp --kv-store dist_allreduce --mom 0.9
	same_bits 3 0000-000003 $mlp --kv-store dist_allreduce --sync-period 4 --block-momentum 0.5 --mom 0.9
	same_bits 4 0001-000003 $mlp --kv-store dist_sync --sync-period 4 --block-momentum 0.5 $adam
	same_bits 3 0000-000004 $mlp --kv-store dist_sync --update-period 2
	same_bits 3 0000-000003 $mlp --kv-store dist_sync --gc-type 2bit --gc-threshold 0.5
	same_bits 3 0000-000003 $mlp --kv-store dist_sharded --gc-type topk --gc-ratio 0.1
	same_bits 3 0000-000003 $mlp --kv-store dist_sync --gc-type topk --gc-pull 1 --optimizer rmsprop --lr 0.001
	same_bits 2 0000-000003 $mlp --kv-store dist_sharded --gc-type 2bit --gc-pull 1 --sync-period 2 --mom 0.9
	same_bits 3 0000-000003 $mlp --kv-store dist_allreduce --gc-type topk --gc-pull 1 --mom 0.9
	same_bits 2 0000-000003 --network resnet --num-layers 8 --image-shape 3,28,28 --benchmark 1 \
		--num-batches 5 --batch-size 4 --num-epochs 2 --kv-store dist_allreduce $plain
fi

part "a folder that is not there yet"
train 2 $mlp --num-epochs 1 --kv-store dist_allreduce --model-prefix new/deep/R --resume auto
part "nothing is left to train"
train 2 $mlp --num-epochs 1 --kv-store dist_allreduce --model-prefix new/deep/R --resume auto --lr 0.05 \
	--lr-schedule cosine --warmup-epochs 0.5
expect_count 1 '^new/deep/R-0001.h5 has 1 epoch: nothing is left to train; --num-epochs N for more$'
expect_none '^Resumed'
grep -q '"lr": 0.1,' new/deep/R-run.json || fail "not of the run that trained: $(cat new/deep/R-run.json)"
expect_count 1 '^warning: not as when new/deep/R-0001.h5 was saved: lr 0.05 \(was 0.1\), lr-schedule cosine '\
'down to 0 after a linear warm-up of 0.5 epochs from 0 \(was constant\)$'
train 2 $mlp --kv-store dist_allreduce --model-prefix new/deep/R --resume auto
expect_count 1 '^Resumed from "new/deep/R-0001.h5": after epoch 1 of 2, \d+ samples counted$'
train 2 $mlp --kv-store dist_allreduce --model-prefix new/deep/R --resume latest --quiet
expect_count 1 '^new/deep/R-0002.h5 has all 2 epochs: nothing is left to train; '
[ -s new/deep/R-0001.h5 ] || fail "no new/deep/R-0001.h5"

part "--save-minutes"
# The last file is always so old: one at each look, which comes with --disp-batches 2, after steps 3, 5, ...
minutes="$mlp --num-epochs 1 --mom 0.9"
jobs=("3 dist_sync 13")
! in_tier full || jobs+=("1 local 29" "2 dist_allreduce 13")
for job in "${jobs[@]}"; do
	set -- $job
	rm -f U-* R-*
	train $1 $minutes --kv-store $2 --model-prefix U --save-minutes 1000
	[ "$(echo U-*.h5)" = U-0001.h5 ] || fail "$2: saved before the time: $(echo U-*.h5)"
	train $1 $minutes --kv-store $2 --model-prefix R --save-minutes 1e-9
	[ "$(echo R-*.h5)" = "$(seq -f R-0000-%06g.h5 -s ' ' 3 2 $3) R-0001.h5" ] || fail "$2: saved $(echo R-*.h5)"
	for other in R-*.h5; do [ "$other" = R-0000-000007.h5 ] || rm "$other"; done
	train $1 $minutes --kv-store $2 --model-prefix R --resume auto
	expect '^Resumed from "R-0000-000007.h5"'
	cmp U-0001.h5 R-0001.h5 || fail "$2: other bits after going on"
done
rm -f R-*
train 3 $minutes --kv-store dist_async --model-prefix R --save-minutes 1e-9 # by worker 0 alone
ls R-0000-*.h5 >/dev/null || fail "dist_async saves nothing inside an epoch"

part "the same bits, two nodes"
if in_tier full && nodes_up 2; then
	nodes_use 2
	same_bits 5 0001-000003 $mlp --kv-store dist_sync --num-servers 2 $adam
	same_bits 3 0001-000003 $mlp --kv-store dist_sharded --mom 0.9
	nodes_end
fi

part "dist_async"
rm -f R-*
train 3 $mlp --kv-store dist_async --mom 0 --model-prefix R --save-steps 4
[ -s R-0000-000004.h5 ] && [ -s R-0001.h5 ] || fail "not all there: $(ls R-*)"
train 3 $mlp --kv-store dist_async --mom 0 --model-prefix R --resume R-0000-000004.h5
expect '^Resumed from "R-0000-000004.h5": after step 4 in epoch 1 of 2'
at_least Validation-accuracy 0.2

# Two steps an epoch, or some: the next save is due, and the other workers wait at the epoch's end or for worker 0's
# updates, before the last is on the disk.
jobs=("4 --num-examples 240 --max-staleness 0")
! in_tier full || jobs+=("3 --num-examples 80" "5 --num-examples 320 --max-staleness 0")
for words in "${jobs[@]}"; do
	rm -f R-*
	train $words $mlp --kv-store dist_async --num-epochs 6 --save-steps 1 --model-prefix R
	[ -s R-0006.h5 ] || fail "not all there: $(ls R-*)"
done

part "another number of ranks"
rm -f R-*
train 3 $mlp --kv-store dist_sync --mom 0.9 --model-prefix R --save-steps 4 --num-batches 10
train 4 $mlp --kv-store dist_sharded --mom 0.9 --model-prefix R --resume R-0000-000004.h5
expect 'not as when R-0000-000004.h5 was saved: kv-store dist_sharded \(was dist_sync\), workers 4 \(was 2\)'
expect '^Resumed from "R-0000-000004.h5": after step 2 in epoch 1 of 2, 160 samples counted$'
rm -f S-*
train 3 $mlp --kv-store dist_allreduce --sync-period 4 --mom 0.9 --model-prefix S --save-steps 6
train 2 $mlp --kv-store dist_allreduce --sync-period 4 --mom 0.9 --model-prefix S --resume S-0000-000006.h5
expect '^Resumed from "S-0000-000006.h5": after step 9 in epoch 1 of 2,'

part "counts after going on"
rm -f R-*
run="$mlp --kv-store dist_sync --model-prefix R"
train 3 $run --num-epochs 1 --save-steps 12
train 3 $run --num-epochs 1 --resume R-0000-000012.h5
expect '^trained 120 samples' # of 600, 480 were before
# Step 12 is past the end of an epoch of 400 samples: the next begins with nothing counted.
train 3 $run --num-examples 400 --resume R-0000-000012.h5 --override data
expect '^trained 400 samples'
accuracy=$(sed -n 's/^Epoch\[1\] Train-accuracy=//p' "$log")
awk -v a="$accuracy" 'BEGIN { exit !(a > 0 && sprintf("%.6f", int(400 * a + 0.5) / 400) == a) }' ||
	fail "an accuracy of $accuracy is not one of 400 samples"
train 3 $run --gc-type 2bit --gc-pull 1 --resume R-0000-000012.h5
expect 'gc-type 2bit \(was none\).*gc-pull 1 \(was 0\)'

part "what may differ"
run="$mlp --kv-store local --mom 0.9 --model-prefix R"
rm -f R-*
train 1 $run --num-epochs 1
refuse() {
	run_limited 60 1 $run "$@"
	[ $status = 2 ] || fail "exit status $status, not 2, of $*"
}
refuse --resume auto --wd 0.01
expect 'R-0001.h5 was saved with wd 0.0001\d*, and this run has 0.01.*--override wd'
refuse --resume auto --num-examples 500
expect 'R-0001.h5 was saved with data '
refuse --load-epoch 1 --seed 3
expect 'R-0001.h5 was saved with seed 0, and this run has 3'
train 1 $run --resume auto --wd 0.01 --seed 3 --override wd,seed
train 1 $run --resume R-0001.h5 --lr 0.2
expect 'not as when R-0001.h5 was saved: lr 0.2'
if grep -q '^#define HAVE_ONEDNN 1' "$BUILDDIR/config.h"; then
	ONEDNN_MAX_CPU_ISA=SSE41 train 1 $run --resume R-0001.h5
	expect 'not as when R-0001.h5 was saved: computed-by cpu: oneDNN \S+, sse4.1 \(was cpu: oneDNN \S+, [\w .]+\)$'
fi
run_limited 60 1 $run --resume auto --override wd,sed
[ $status = 2 ] || fail "exit status $status, not 2, of a name that is none"
expect 'error: --override wd,sed: "sed" is not one of all,class-names,network,'
for words in "--resume auto --load-epoch 1" "--override wd" "--resume nowhere.h5 --num-epochs x"; do
	run_limited 60 1 $run $words
	[ $status = 2 ] || fail "exit status $status, not 2, of $words"
done
train 1 $mlp --model-prefix none --resume auto
expect '^--resume auto: there is no checkpoint none-\*.h5'

part "damaged files"
rm -f R-* P-*
train 3 $mlp --model-prefix P --save-steps 5 --num-epochs 1
cp P-0001.h5 good.h5
size=$(stat -c %s good.h5)
# The contents of an array begin at a multiple of 4096, metadata before.
for at in $(in_tier full && echo 100 600 20000 $((size - 3000))) $((size / 2)); do
	cp good.h5 P-0001.h5
	printf '\377\376' | dd of=P-0001.h5 bs=1 seek="$at" conv=notrunc status=none
	cmp -s good.h5 P-0001.h5 && continue
	run_limited 60 3 $mlp --model-prefix P --resume auto --num-epochs 1
	if [ $status != 0 ] || ! grep -q 'Resumed from "P-0000-0000' "$log"; then
		grep -q 'Resumed from "P-0001.h5"' "$log" || fail "a file damaged at $at: $(tail -n 3 "$log")"
	else
		expect 'left out, for it is damaged: .*P-0001.h5'
	fi
done
cp good.h5 P-0001.h5
printf '\1' | dd of=P-0001.h5 bs=1 seek=$((size / 4)) conv=notrunc status=none
run_limited 60 3 $mlp --model-prefix P --load-epoch 1
[ $status = 2 ] || fail "exit status $status of a damaged file"
expect 'P-0001.h5: array "[^"]+" is damaged: its checksum is'
head -c $((size / 2)) good.h5 >P-0001.h5
run_limited 60 3 $mlp --model-prefix P --load-epoch 1
[ $status = 2 ] || fail "exit status $status of half a file"
expect 'P-0001.h5'

part "the newest files"
rm -f K-*
train 1 $mlp --model-prefix K --save-steps 7 --keep 3
[ "$(echo K-*.h5)" = "K-0001-000021.h5 K-0001-000028.h5 K-0002.h5" ] || fail "--keep 3: $(ls K-*)"
[ "$(readlink K-latest)" = K-0002.h5 ] || fail "K-latest: $(readlink K-latest)"

part "an earlier run's checkpoints are not replaced"
ls -l --time-style=full-iso K-* >before
for np in 1 3; do
	run_limited 60 $np $mlp --model-prefix K
	[ $status = 2 ] || fail "exit status $status, not 2, over an earlier run's files"
	expect_count 1 'error: '
	expect 'error: --model-prefix K: .* the newest K-0002.h5 \(epoch 2\): .*--resume auto.*--overwrite'
	ls -l --time-style=full-iso K-* | cmp -s before - || fail "files have changed: $(ls -l K-* | diff before -)"
done
run_limited 60 1 $mlp --model-prefix K --overwrite 1 --resume auto
[ $status = 2 ] || fail "exit status $status, not 2, of --overwrite with --resume"
train 1 $mlp --model-prefix K --num-epochs 3 --overwrite
train 1 $mlp --model-prefix K --num-epochs 2 --overwrite --save-async 0
[ ! -e K-0003.h5 ] || fail "a later file of the replaced run is left"
[ "$(readlink K-latest)" = K-0002.h5 ] || fail "K-latest: $(readlink K-latest)"
expect_none 'Resumed'

part "files of runs that were stopped"
rm -f T-*
# No process has a number so large.
touch T-0009.h5.tmp-9999999 "T-0009.h5.tmp-$$" T-x-0009.h5.tmp-9999999 T-0009-000001.h5.tmp-9999999x
ln -s nowhere T-latest.tmp-9999999
touch T-0008.h5.tmp-9999998 # of a job on another host, perhaps
touch -d '2 hours ago' T-0007.h5.tmp-9999997
printf 'host %s\npid 9999999\nstarted 1\nplace %s/%s\nsince 2000-01-01T00:00:00\n' "$(hostname)" \
	"$(cat /proc/sys/kernel/random/boot_id)" "$(readlink /proc/self/ns/pid)" >T.lock
train 1 $mlp --model-prefix T --num-epochs 1
expect '^removed T-0009.h5.tmp-9999999, which a run that was stopped has left$'
left="T-0008.h5.tmp-9999998 T-0009-000001.h5.tmp-9999999x T-0009.h5.tmp-$$ T-x-0009.h5.tmp-9999999"
[ "$(echo *.tmp-*)" = "$left" ] || fail "temporary files: $(ls ./*.tmp-*)"
rm -f ./*.tmp-*

part "a header"
if command -v h5dump >/dev/null; then
	h5dump -H -A K-0002.h5 >header 2>&1 || fail "h5dump: $(tail -n 2 header)"
	grep -q 'ATTRIBUTE "checksum_index"' header || fail "h5dump shows no checksum_index"
	h5dump -H -d state/momentum/fc1_weight K-0002.h5 >header 2>&1 || fail "h5dump finds no momentum"
else
	echo "h5dump: skipped, it is not installed"
fi

part "a full disk"
mkdir full
if mount -t tmpfs -o size=1500k tmpfs full 2>/dev/null; then
	run_limited 60 3 $mlp --model-prefix full/P --save-steps 4
	[ $status = 1 ] || fail "exit status $status of a full disk"
	expect 'No space left'
	ls full >left
	grep -q tmp left && fail "left on the full disk: $(cat left)"
	train 3 $mlp --model-prefix full/P --resume auto --num-epochs 1 --save-period 9 --best-metric none
	expect '^Resumed from "full/P-0000-000004.h5"'
	umount full
else
	echo "a full disk: skipped, no file system can be mounted here"
fi
finish
