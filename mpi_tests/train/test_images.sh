#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training from image files: a .rec file, an .h5 file and a folder with one, two and three workers, the
# same bits for any number of threads, --dump-batch, --test-io, and what is wrong with images.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export LC_ALL=C
JPEG=$BUILDDIR/mpi_tests/lib/make_jpeg

if [ ! -x "$JPEG" ]; then
	echo "skip: this build has no libjpeg, of which the test makes its images"
	exit 77
fi

# misused REGEX ARGUMENT...: exit status 2 and one error
misused() {
	local regex=$1
	shift
	run_limited 60 1 "$@"
	[ $status = 2 ] || fail "exit status $status, not 2, of $*"
	expect "error: .*$regex"
}

mkdir -p set/ant set/bee set/cow
for i in 1 2 3 4 5 6 7 8 9; do
	"$JPEG" write set/ant/$i.jpg $((30 + i)) 26 rgb $i
	"$JPEG" write set/bee/$i.jpg 25 $((25 + i)) grey 1$i
	"$JPEG" write set/cow/$i.jpg 40 30 cmyk 2$i
done
"$BUILDDIR/h5rec" set all.rec >/dev/null || fail "no all.rec"
net="--network mlp --batch-size 4 --num-epochs 2 --image-shape 3,20,20 --lr 0.001 --disp-batches 2 --log-time 0
	--devices ref --log-prefix none"
images="--data-train all.rec --num-classes 3"

# results NAME: the metrics of a run, without times
results() {
	grep -E '^Epoch.*(Train|Validation)-' "$log" >"$1"
	[ -s "$1" ] || fail "no metrics"
}

part "kinds of files, one and more workers"
train 1 $net $images --data-val all.rec
expect 'data records: 27 samples for training, 27 for validation, shape \(3, 20, 20\), 3 classes:'
expect '3 classes: encoded images of all.rec; a value is'
expect 'training images: cut at random, mirrored at random$'
expect 'threads? per worker decodes?, at most 4 batches ahead: 0.1 MB, and as much for validation$'
expect 'Speed: .*\tdata=\d+\.\d%$'
results rec
train 1 $net --data-train set --data-val set
results folder
cmp rec folder || fail "a folder and its .rec file train differently"
for threads in $(in_tier full && echo 0 1) 3; do
	train 1 $net $images --data-val all.rec --data-nthreads $threads --prefetch-buffer 1
	results threads
	cmp rec threads || fail "$threads threads train differently"
done
for workers in $(in_tier full && echo 2) 3; do
	train $workers $net $images --data-val all.rec --kv-store dist_sharded
	expect_count 2 'Validation-accuracy'
done
train 3 $net $images --kv-store dist_async --num-servers 1 --skip-bad-records 1
expect_none 'Validation|skipped|left'
if has_files; then
	"$BUILDDIR/h5rec" set all.h5 >/dev/null || fail "no all.h5"
	train 3 $net --data-train all.h5 --data-val all.rec --num-servers 1 --shuffle chunk \
		--shuffle-chunk 5
	expect 'shape \(3, 20, 20\), 3 classes: encoded images of all.h5'
	expect 'shuffled in runs of 5 samples'
	misused 'all.h5 is of .*, and all.idx is to be its index: only RecordIO files' $net --data-train all.h5 \
		--data-train-idx all.idx
	train 1 $net $images --model-prefix P
	train 1 $net $images --resume P-0002.h5 --num-epochs 3 --shuffle chunk --num-batches 3 --random-mirror 0
	expect 'shuffle chunk of 1024 \(was 1\)'
	expect 'num-batches 3 \(was 0\)'
	expect 'augmentation cut at random \(was cut at random, mirrored at random\)'
fi

part "photographs"
cp -r set photos
"$JPEG" write photos/ant/3.jpg 33 26 rgb 3 6
"$JPEG" write photos/cow/4.jpg 40 30 cmyk 24 3
train 1 $net --loss ce --data-train set --data-val set
results plain
train 1 $net --loss ce --data-train photos --data-val photos
results upright
train 1 $net --loss ce --data-train photos --data-val photos --exif-orientation 0
expect 'training images: as stored, not turned upright, cut at random'
results stored
cmp plain stored || fail "--exif-orientation 0 turns pictures"
for part in Train Validation; do
	cmp -s <(grep $part-cross plain) <(grep $part-cross upright) && fail "pictures are not turned: $part"
	[ "$(grep -c $part-cross upright)" = 2 ] || fail "no cross-entropy: $part"
done

part "without training"
train 2 $net $images --test-io 1 --kv-store dist_sharded
expect '^worker 0 read 13 samples in .*samples/sec$'
expect_none '^network'
train 1 $net $images --dump-batch sheet.png --pad-size 3 --resize 24 --data-aug-level 3
expect '^sheet.png: the first 4 samples of epoch 1, 46 x 46 pixels$'
expect 'training images: shorter edge to 24, turned by up to 10 degrees, .*3 pixels of 127 around'
[ "$(od -An -tx1 -N 24 sheet.png | tr -d ' \n')" = 89504e470d0a1a0a0000000d494844520000002e0000002e ] ||
	fail "sheet.png does not begin as a PNG file of 46 x 46 pixels"
train 1 $net $images --test-io 1 --use-imagenet-data-augmentation 1
expect 'aspect 0.75 to 1.33333, random areas of 0.08 to 1, brightness, .*0.4.*PCA noise of 0.1, mirrored'
expect 'std 58.393,57.12,57.375'

part "validation sees pictures as they are"
for level in 0 $(in_tier full && echo 1) 3; do # with steps too small to change a weight
	train 1 $net $images --data-val all.rec --data-aug-level $level --pad-size $level --lr 1e-30
	grep -E '^Epoch.*Validation-' "$log" >level$level
	cmp level0 level$level || fail "--data-aug-level $level changes validation"
done
[ -s level0 ] || fail "no validation"

part "options"
misused 'data-dir with --data-train all.rec: use one of them' $net $images --data-dir set
misused 'benchmark 1 with --data-train all.rec: ' $net $images --benchmark 1
misused 'data-val needs --data-train' $net --data-dir set --data-val all.rec
misused 'pad-size is a setting of colour images, not of one batch of random data' $net --benchmark 1 --pad-size 4
misused 'exif-orientation is a setting of colour images' $net --benchmark 1 --exif-orientation 0
misused 'target-accuracy 0.5: it needs validation data' $net $images --target-accuracy 0.5
misused 'imagenet-data-augmentation 1 with --data-aug-level 2' $net $images --use-imagenet 1 --data-aug-level 2
misused 'random-resized-crop 1 takes the place of --random-crop 1' $net $images --random-resized-crop 1 --random-crop 1
misused 'max-random-aspect-ratio 1 without' $net $images --max-random-aspect-ratio 1
misused 'batch larger than a worker' $net $images --batch-size 28
misused 'image-shape 2,20,20: images have 1 channel or 3' $net $images --image-shape 2,20,20
cp all.rec unnamed.rec && cp all.idx unnamed.idx # without all.classes
misused '--num-classes is needed' $net --data-train unnamed.rec

mkdir -p other/ant other/cow
cp set/ant/1.jpg other/ant && cp set/cow/1.jpg other/cow
misused 'class 1 is "bee" in set and "cow" in other' $net --data-train set --data-val other
mkdir other/bee
train 1 $net --data-train set --data-val other

part "bad images"
head -c 700 set/cow/5.jpg >set/cow/cut && mv set/cow/cut set/cow/5.jpg
run_limited 60 1 $net --data-train set
[ $status = 1 ] || fail "exit status $status, not 1, with a bad image"
expect 'error: .*set/cow/5.jpg.*JPEG image of 30 x 40 pixels in 700 bytes'
run_limited 60 3 $net --data-train set --kv-store dist_sharded
[ $status = 1 ] || fail "exit status $status, not 1, with a bad image and 3 workers"
expect 'error: .*set/cow/5.jpg'
train 1 $net --data-train set --skip-bad-records 1
expect_count 2 '^warning: skipped: set/cow/5.jpg'
expect 'epoch 2 of \d+: worker 0 left 1 bad record out'
# The same pictures, and among them one that cannot be read: the same numbers.
mkdir -p good
cp -r set/ant set/bee set/cow good && rm good/cow/5.jpg
alone="--network lenet --num-epochs 2 --image-shape 3,28,28 --num-classes 3 --lr 0.01 --log-time 0 --devices ref
	--log-prefix none --data-aug-level 0 --shuffle 0 --resize 28"
train 1 $alone --data-train good --data-val good --batch-size 26
results good.log
train 1 $alone --data-train set --data-val set --batch-size 27 --skip-bad-records 1
results set.log
cmp good.log set.log || fail "a bad record counts: $(diff good.log set.log)"
expect_count 2 '^warning: validation: worker 0 left 1 bad record out'
train 1 $alone --data-train set --data-val set --batch-size 27 --skip-bad-records 1 --devices ref:0,ref:1,ref:2
results devices.log
[ "$(grep accuracy set.log)" = "$(grep accuracy devices.log)" ] ||
	fail "a bad record counts with three devices: $(diff set.log devices.log)"
# --predict: the rows of the good records are what they are without the bad one, which has none, or one of NaN.
if has_files; then
	train 1 $alone --data-train good --batch-size 26 --model-prefix G
	predict="$alone --load G-0002.h5 --batch-size 7"
	train 1 $predict --data-val good --predict good.csv
	bad_id=$(find set/ant set/bee set/cow/[1-4].jpg -type f | wc -l)
	awk -F , -v OFS=, -v bad="$bad_id" 'NR > 1 && $1 >= bad { $1++ } { print }' good.csv >expected.csv
	for job in $(in_tier full && echo 1,local 3,dist_sharded) 3,dist_sync; do
		train ${job%,*} $predict --kv-store ${job#*,} --data-val set --predict bad.csv --skip-bad-records 1
		expect_count 1 '^warning: validation: .*worker \d left 1 bad record out'
		cmp expected.csv bad.csv || fail "$job: other predictions: $(diff expected.csv bad.csv | head -n 4)"
	done
	run_limited 60 1 $predict --data-val set --predict none.csv
	[ $status = 1 ] || fail "exit status $status, not 1, of predictions with a bad image"
	[ -e none.csv ] && fail "predictions of a run with an error"
	train 3 $predict --kv-store dist_sharded --data-val set --predict bad.h5 --skip-bad-records 1
	python=$(find_h5py)
	[ -n "$python" ] || echo "bad.h5: skipped, there is no h5py"
	[ -z "$python" ] || $python - "$bad_id" <<-'END' || fail "bad.h5 cannot be looked at"
		import csv, sys, h5py, numpy
		names = ["ant", "bee", "cow"]
		rows = {int(r[0]): r for r in list(csv.reader(open("bad.csv")))[1:]}
		f, bad = h5py.File("bad.h5"), int(sys.argv[1])
		for i in range(27):
		    p = f["probabilities"][i]
		    good = numpy.isnan(p).all() and numpy.isnan(f["labels"][i]) if i == bad else \
		        (p == numpy.array(rows[i][3:], "f4")).all() and int(f["labels"][i]) == names.index(rows[i][1])
		    if not good:
		        open("wrong", "w").write(f"row {i}: {p}")
	END
	[ ! -e wrong ] || fail "bad.h5: $(cat wrong)"
fi
# Also where it is alone: the last step of worker 1 has it only.
mkdir -p few/a few/b
cp set/ant/[1-4].jpg few/a && cp set/cow/5.jpg few/b
for store in dist_sync $(in_tier full && echo dist_sharded dist_allreduce dist_async); do
	case $store in dist_sync|dist_async) ranks=3;; *) ranks=2;; esac
	train $ranks $alone --data-train few --data-val few --batch-size 2 --skip-bad-records 1 --kv-store $store
	expect_count 2 'Validation-accuracy'
	expect_count 2 'epoch \d of \d+: worker 1 left 1 bad record out'
done
train 1 $alone --data-train few --data-val few --batch-size 1 --skip-bad-records 1 --update-period 2
mkdir -p none/a
cp set/cow/5.jpg none/a
run_limited 60 1 $alone --data-train none --batch-size 1 --skip-bad-records 1
[ $status = 1 ] || fail "exit status $status, not 1, without any good record"
expect 'error: epoch 1 of \d+: none of the records can be read'
finish
