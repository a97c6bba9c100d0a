#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A folder of images and few options: shape, depth and batch size come from the data; checkpoints hold the names of
# the classes; images without labels are predicted.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export LC_ALL=C OMP_NUM_THREADS=1
JPEG=$BUILDDIR/mpi_tests/lib/make_jpeg

if [ ! -x "$JPEG" ]; then
	echo "skip: this build has no libjpeg, of which the test makes its images"
	exit 77
fi
plain="--log-prefix none --log-time 0"

# refuse REGEX ARGUMENT...: exit status 2, one error
refuse() {
	local regex=$1
	shift
	run_limited 60 1 "$@" $plain
	[ $status = 2 ] || fail "exit status $status, not 2, of $*"
	expect_count 1 "error: .*$regex"
}

mkdir -p set/ant set/bee
for i in 1 2 3 4 5 6; do
	"$JPEG" write set/ant/$i.jpg 32 32 rgb $i
	"$JPEG" write set/bee/$i.jpg 32 32 grey 1$i
done
small_set idx 30 10

part "what the data say"
train 1 --network lenet --data-train set --summary
expect '^lenet, input \(1, 32, 32\), batch 12, '
expect '^fullyconnected1 .* \(2\) .* 1002 '
refuse 'idx: no images: .*files of MNIST or CIFAR are a data folder' --network lenet --data-train idx
train 1 --network resnet --data-train set --check $plain
expect '^image shape 3,32,32, as the images of set; --image-shape C,H,W sets another$'
expect '^network resnet: 20 layers, its usual depth for 32 x 32 pixels; --num-layers N sets another$'
expect '^batch size 12 of each worker, not the usual 128, because there are 12 training samples; --batch-size N'
expect '^optimizer sgd: lr 0.0046875,'
expect_none 'enlarged'
train 3 --network lenet --data-train set --kv-store dist_sync --check $plain
expect '^image shape 1,32,32, as the images of set'
expect '^batch size 6 of each worker, not the usual 64, because there are 12 training samples'
expect '^batch size 6 per device, 6 per worker, 12 global'
train 1 --network lenet --data-train set --image-shape 1,20,20 --batch-size 4 --check --num-classes 7 $plain
expect '^set has 2 classes, and the network 7 outputs: --num-classes 7$'
expect_none '^image shape|^batch size .* usual'
refuse '--batch-size 13: .* 12 training records over 1 worker; the largest possible is 12' --network lenet \
	--data-train set --batch-size 13
cp -r set mixed && "$JPEG" write mixed/bee/1.jpg 30 32 rgb 1
train 1 --network lenet --data-train mixed --check $plain
expect '^image shape 1,28,28, the usual one of lenet, .* of mixed are cut: their sizes differ; --image-shape C,H,W'
train 1 --network alexnet --data-train set --test-io 1 --num-epochs 1 $plain
expect '^image shape 3,224,224, the usual one of alexnet, .*: they are 32 x 32, too small for the network; '
expect_count 1 'enlarged'
expect '^warning: set: images smaller than the image shape 3,224,224 are enlarged, the first of 32 x 32 pixels; '

part "a share of the training images, held out for validation"
held="--network lenet --data-train set --batch-size 1 --val-split 0.25 --lr 0.01"
train 1 $held --num-epochs 1 --model-prefix held $plain
expect '^data records: 9 samples for training, 3 for validation,'
expect '^Epoch\[0\] Validation-accuracy=(0.000000|0.333333|0.666667|1.000000)$'
train 3 $held --num-epochs 2 --model-prefix held --resume auto --data-cache node --kv-store dist_sync $plain
refuse 'held-0002.h5 was saved with val-split 0.25, and this run has 0.5' $held --val-split 0.5 --num-epochs 3 \
	--model-prefix held --resume auto
train 1 --network lenet --data-train set --val-split 0.25 --load held-0002.h5 --evaluate $plain
expect '^Epoch\[0\] Validation-accuracy='
refuse '--data-val: .*val-split|--val-split.*data-val' $held --data-val set
refuse '--val-split 0.01: |0.01 held out for validation is 0 of 12 records' $held --val-split 0.01
refuse 'val-split.*data-train' --network mlp --data-dir idx --val-split 0.1

part "names of the classes of a packed folder"
"$BUILDDIR/im2rec" --list --recursive packed set >/dev/null && "$BUILDDIR/im2rec" packed set >"$log" || fail "im2rec"
train 1 --network lenet --data-train packed.rec --num-epochs 1 --model-prefix packed $plain
train 1 --load packed-0001.h5 --data-val set --predict packed.csv $plain
[ "$(head -n 1 packed.csv)" = id,label,predicted,ant,bee ] || fail "predictions of a packed folder: $(cat packed.csv)"
mkdir other && cp -r set/ant other/ant && cp -r set/bee other/cow
refuse 'class 1 is "bee" in packed-0001.h5 and "cow" in other' --load packed-0001.h5 --data-val other --evaluate

part "few samples"
train 1 --network mlp --data-dir idx --check $plain
expect '^batch size 30 of each worker, not the usual 64, because there are 30 training samples'
train 1 --network mlp --data-dir idx --num-examples 20 --check $plain
expect '^batch size 20 of each worker'
mkdir cifar && for i in 1 2; do head -c $((i * 3073)) /dev/zero >cifar/data_batch_$i.bin; done
head -c 3073 /dev/zero >cifar/test_batch.bin
train 1 --network mlp --data-dir cifar --check $plain
expect '^batch size 3 of each worker'
refuse '--network resnet18: unknown; use --network resnet with --num-layers 18' --network resnet18 --data-train set
train 1 --network LeNet --data-train set --check $plain

has_files || finish

part "names of classes"
train 1 --network mlp --data-train set --data-val set --image-shape 3,8,8 --num-epochs 1 --model-prefix P $plain
train 1 --evaluate --load P-0001.h5 --data-val set $plain
rm -rf other && cp -r set other && mv other/bee other/cow
mkdir fewer && cp -r set/ant fewer
wrong='class 1 is "bee" in P-0001.h5 and "cow" in other: the same classes are needed, .* folders\)'
refuse "$wrong" --evaluate --load P-0001.h5 --data-val other
refuse 'P-0001.h5 has 2 classes and fewer 1: class 1, "bee", is in one' --evaluate --load P-0001.h5 --data-val fewer
refuse "$wrong; --skip-mismatch" --network mlp --image-shape 3,8,8 --load P-0001.h5 --data-train other
train 1 --network mlp --image-shape 3,8,8 --load P-0001.h5 --data-train other --num-epochs 1 --skip-mismatch $plain
expect 'warning: P-0001.h5 names other classes than the data, whose names are taken: class i of the file is class i'
expect_none 'no effect'
resume="--resume P-0001.h5 --data-train other --num-epochs 2"
refuse "$wrong; --override class-names resumes anyway" $resume
train 1 $resume --override class-names $plain
train 1 --predict p.csv --load P-0001.h5 --data-val set $plain
awk -F , 'NR == 1 { bad = $0 != "id,label,predicted,ant,bee" }
	NR > 1 { bad += $2 != (NR <= 7 ? "ant" : "bee") || $3 != ($4 >= $5 ? "ant" : "bee") }
	END { exit bad || NR != 13 }' p.csv || fail "wrong rows: $(cat p.csv)"

part "images without labels"
mkdir photos && cp set/ant/1.jpg photos/b.jpg && cp set/bee/1.jpg "photos/a,1.jpg"
train 1 --predict q.csv --load P-0001.h5 --data-val photos $plain
expect '^P-0001.h5: predicted 2 images in '
expect_none 'Validation-accuracy|: accuracy'
# best ROW: "class,probability" of a line of p.csv
best() { sed -n "${1}p" p.csv | awk -F , '{ print $3 "," ($4 >= $5 ? $4 : $5) }'; }
printf '%s\n' file,class,probability "\"photos/a,1.jpg\",$(best 8)" "photos/b.jpg,$(best 2)" | cmp - q.csv ||
	fail "wrong predictions: $(cat q.csv)"
printf 'photos/b.jpg\r\n\n7\t0\tphotos/a,1.jpg\nset/bee/2.jpg\n' >some.lst
train 3 --predict q.csv --load P-0001.h5 --data-val some.lst --kv-store dist_sharded --top-k 2 $plain
awk -F , -v first="$(best 2)" 'NR == 1 { bad = $0 != "file,class,probability,class2,probability2" }
	NR > 1 { n = NF; bad += $(n - 3) == $(n - 1) || $(n - 2) < $n || $(n - 2) + $n < 0.999 }
	NR == 2 { bad += index($0, "photos/b.jpg," first) != 1 }
	END { exit bad || NR != 4 }' q.csv || fail "wrong predictions of a list: $(cat q.csv)"
refuse 'photos: images without labels; expected a folder with a folder of images' --network mlp --data-train photos
refuse 'photos: images without labels' --evaluate --load P-0001.h5 --data-val photos
echo photos/none.jpg >none.lst
run_limited 60 1 --predict q.csv --load P-0001.h5 --data-val none.lst $plain
[ $status != 0 ] || fail "a file that is not there was predicted"
expect_count 1 'error: .*photos/none.jpg'
finish
