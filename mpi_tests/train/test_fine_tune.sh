#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Going on from another network's parameters: --load, --skip-mismatch, --fixed, --lr-mult, --wd-mult.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

needs_files
export OMP_NUM_THREADS=1 # bits depend on it
small_set set 400 100
plain="--log-prefix none --log-time 0 --disp-batches 5"
mlp="--network mlp --data-dir set --batch-size 20 --num-epochs 1 --lr 0.1 $plain"
train 1 $mlp --model-prefix A

# refuse STATUS ARGUMENT...
refuse() {
	local wanted=$1
	shift
	run_limited 60 1 $mlp "$@"
	[ $status = "$wanted" ] || fail "exit status $status, not $wanted, of $*"
}

part "parameters of a file, another beginning"
train 1 $mlp --load A-0001.h5 --lr 0 --model-prefix L
expect '^Loaded parameters of A-0001.h5$'
expect '^Epoch\[0\] Train-accuracy='
expect_none 'Resumed'
same_model A-0001.h5 L-0001.h5 || fail "--load gives other weights"
# Fresh states: as if the weights were there by chance.
train 3 $mlp --load A-0001.h5 --optimizer adam --lr 0.001 --num-servers 1 --model-prefix L --overwrite 1
same_model A-0001.h5 L-0001.h5 && fail "nothing is trained after --load"

part "what does not fit"
refuse 2 --load A-0001.h5 --num-classes 20
expect 'error: A-0001.h5: it does not fit the network; of another shape: arg/fc3_(bias|weight) \(.*\), not'
expect '; --skip-mismatch takes what fits'
train 3 $mlp --load A-0001.h5 --num-classes 20 --skip-mismatch --lr 0 --model-prefix M --num-servers 1
expect 'warning: A-0001.h5: 4 of 6 arrays are taken; of another shape: arg/fc3_bias \(10\), not \(20\), arg'
same_model A-0001.h5 M-0001.h5 'arg/fc[12]_*' || fail "--skip-mismatch leaves out what fits"
same_model A-0001.h5 M-0001.h5 'arg/fc3_*' 2>/dev/null && fail "another shape is equal"
refuse 2 --load A-0001.h5 --network lenet --skip-mismatch
expect 'none of its arrays fits the network; not in the file: arg/convolution0_weight.*; not in the network: arg'
refuse 2 --load set/nothing.h5
expect 'set/nothing.h5: cannot be opened'
printf 'no file of arrays' >text.h5
refuse 2 --load text.h5
expect 'text.h5: is not an HDF5 file$'
printf 'PK\3\4 and more' >model.pth
refuse 2 --load model.pth
expect 'model.pth: is not an HDF5 file; it is a zip file, as PyTorch and NumPy write them'
size=$(stat -c %s A-0001.h5)
cp A-0001.h5 damaged.h5
printf '\1\2\3' | dd of=damaged.h5 bs=1 seek=$((size / 4)) conv=notrunc status=none # in fc1_weight
refuse 2 --load damaged.h5
expect 'array "[^"]+" is damaged'

part "options"
refuse 2 --load A-0001.h5 --load-epoch 1 --model-prefix A
expect 'error: --load with --load-epoch 1: start with'
refuse 2 --load A-0001.h5 --resume A-0001.h5
refuse 2 --skip-mismatch
refuse 2 --fixed 'fc9_*'
expect 'error: --fixed: no parameter.s name matches "fc9_\*"; the nearest names are fc._(bias|weight), '
refuse 2 --fixed 'fc1_*,,fc2_*'
refuse 2 --fixed '*'
expect 'nothing is left to train'
refuse 2 --lr-mult 'fc1_*'
expect 'error: --lr-mult: "fc1_\*" is not PATTERN=X'
refuse 2 --lr-mult 'fc1_*=-1'
refuse 2 --wd-mult 'fc1_*=nan'
run_limited 60 1 ${mlp/--lr 0.1/} --lr-mult 'fc1_*=2' --optimizer adadelta
[ $status = 2 ] || fail "exit status $status, not 2, of a multiplier of no rate"
expect 'error: --lr-mult with --optimizer adadelta, which has no such setting'

part "fixed"
train 1 $mlp --load A-0001.h5 --fixed 'fc1_*,fc2_weight' --kv-store local --model-prefix F1
expect '^fixed: 3 of 6 arrays, 108672 of 109386 values$'
same_model A-0001.h5 F1-0001.h5 'arg/fc1_*' || fail "fc1 is not fixed"
same_model A-0001.h5 F1-0001.h5 'arg/fc2_weight' || fail "fc2_weight is not fixed"
for name in fc2_bias fc3_weight fc3_bias; do
	same_model A-0001.h5 F1-0001.h5 "arg/$name" 2>/dev/null && fail "$name is fixed"
done
train 1 $mlp --load A-0001.h5 --lr-mult '*=1,fc1_*=0,fc2_weight=0' --kv-store local --model-prefix F2
same_model F1-0001.h5 F2-0001.h5 || fail "--lr-mult 0 is not --fixed"
for np in 2 $(in_tier full && echo 3 5); do
	for store in "dist_sync --num-servers 1" dist_sharded dist_allreduce; do
		[ "$store" != dist_allreduce ] || in_tier full || continue
		[ $np = 5 ] && [ "$store" != dist_sharded ] && continue
		train $np $mlp --load A-0001.h5 --fixed 'fc1_*,fc2_weight' --kv-store $store \
			--model-prefix F --overwrite 1
		same_model A-0001.h5 F-0001.h5 'arg/fc1_*' || fail "fc1 is not fixed: $np $store"
		same_model A-0001.h5 F-0001.h5 'arg/fc2_weight' || fail "fc2_weight is not fixed: $np $store"
		same_model A-0001.h5 F-0001.h5 'arg/fc3_weight' 2>/dev/null && fail "fc3 is fixed: $np $store"
	done
done
train 3 $mlp --load A-0001.h5 --fixed 'fc1_*' --kv-store dist_async --model-prefix F --overwrite 1
same_model A-0001.h5 F-0001.h5 'arg/fc1_*' || fail "fc1 is not fixed: dist_async"

part "multipliers"
train 1 $mlp --lr 0.05 --kv-store local --model-prefix H --overwrite 1
train 1 $mlp --lr 0.1 --lr-mult '*=0.5' --kv-store local --model-prefix G --overwrite 1
same_model H-0001.h5 G-0001.h5 || fail "--lr-mult *=0.5 is not half the rate"
train 3 $mlp --lr 0.05 --num-servers 1 --model-prefix H --overwrite 1
for store in "dist_sync --num-servers 1" "dist_sharded"; do
	np=3
	[ "$store" = dist_sharded ] && np=2
	train $np $mlp --lr 0.1 --lr-mult '*=0.5' --kv-store $store --model-prefix G --overwrite 1
	same_model H-0001.h5 G-0001.h5 || fail "--lr-mult *=0.5 is not half the rate: $store"
done
train 1 $mlp --wd 0.002 --kv-store local --model-prefix H --overwrite 1
train 1 $mlp --wd 0.001 --wd-mult '*_weight=2' --kv-store local --model-prefix G --overwrite 1
same_model H-0001.h5 G-0001.h5 || fail "--wd-mult *_weight=2 is not twice the decay"
train 1 $mlp --wd 0.001 --wd-mult '*_weight=2,*_bias=2' --kv-store local --model-prefix G --overwrite 1
same_model H-0001.h5 G-0001.h5 'arg/*_bias' 2>/dev/null && fail "--wd-mult *_bias=2 decays no bias"

part "the record"
train 1 $mlp --fixed 'fc1_*' --kv-store local --model-prefix R
train 1 $mlp --num-epochs 2 --lr-mult 'fc1_*=0.1' --kv-store local --model-prefix R --resume auto
expect 'not as when R-0001.h5 was saved: fixed none \(was fc1_\*\), lr-mult fc1_\*=0.1 \(was none\)'
# A checkpoint that is there goes before --load.
train 1 $mlp --num-epochs 3 --kv-store local --model-prefix R --resume auto --load A-0001.h5
expect '^Resumed from "R-0002.h5"'
expect_none 'Loaded parameters of'

part "running statistics"
net="--network resnet --num-layers 8 --image-shape 3,28,28 --benchmark 1 --num-batches 2 --batch-size 4 $plain"
net="$net --num-epochs 1"
train 1 $net --model-prefix S
train 2 $net --load S-0001.h5 --seed 5 --fixed '*_gamma' --kv-store dist_sharded --model-prefix T
same_model S-0001.h5 T-0001.h5 'arg/*_gamma' || fail "gammas are not fixed"
same_model S-0001.h5 T-0001.h5 'aux/stage1_unit1_bn1_moving_mean' 2>/dev/null &&
	fail "running statistics stay where only gammas are fixed"
train 2 $net --load S-0001.h5 --seed 5 --fixed '*bn*' --kv-store dist_sharded --model-prefix T --overwrite 1
same_model S-0001.h5 T-0001.h5 '*bn*' || fail "a batch-norm layer is not fixed"
same_model S-0001.h5 T-0001.h5 'arg/conv0_weight' 2>/dev/null && fail "conv0 is fixed"
finish
