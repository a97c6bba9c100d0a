#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A checkpoint says what its model is and how its input is made: --evaluate, --predict, --sample, --load
# and --resume need no --network. test_user_model.sh has networks of a user's own.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

needs_files
export OMP_NUM_THREADS=1
plain="--batch-size 4 --log-prefix none --log-time 0 --devices ref"
JPEG=$BUILDDIR/mpi_tests/lib/make_jpeg
mkdir out

# refuse REGEX ARGUMENT...: exit status 2, one error
refuse() {
	local regex=$1
	shift
	run_limited 60 "$@"
	[ $status = 2 ] || fail "exit status $status, not 2, of $*"
	expect_count 1 "error: $regex"
}

# validation: the numbers of the last one
validation() {
	grep -o 'Validation-.*' "$log" | tail -n 2
}

part "values"
small_set set 60 20
train 1 --network mlp --data-dir set --num-epochs 2 --lr 0.1 --model-prefix out/m $plain
validation >trained
train 3 --evaluate --load out/m-0002.h5 --data-dir set --kv-store dist_sync $plain
expect '^options from out/m-0002.h5: network mlp, num-classes 10$'
validation | cmp - trained || fail "other results than in training"
train 1 --predict p.csv --load out/m-0002.h5 --data-dir set $plain
train 1 --summary --load out/m-0002.h5 --data-dir set
train 1 --network mlp --num-classes 0 --evaluate --load out/m-0002.h5 --data-dir set $plain
expect_none '^options from.*network'
refuse '--network lenet: out/m-0002.h5 was saved with network mlp; leave the option out' 1 \
	--network lenet --evaluate --load out/m-0002.h5 --data-dir set $plain
run_limited 60 3 --evaluate --load out/none.h5 --data-dir set $plain
[ $status = 2 ] || fail "exit status $status of a file that is not there"
expect_count 1 'error: out/none.h5: cannot be opened'

part "to resume"
train 1 --resume out/m-0001.h5 --data-dir set --num-epochs 2 --lr 0.1 --model-prefix out/n $plain
same_model out/m-0002.h5 out/n-0002.h5 || fail "a run that resumed without --network has other bits"
rm out/n-0002.h5
train 3 --resume auto --model-prefix out/m --data-dir set --num-epochs 3 $plain
expect '^options from out/m-0002.h5: network mlp, num-classes 10$'
run_limited 60 1 --resume auto --model-prefix out/m --network lenet --data-dir set --num-epochs 4 $plain
expect 'error: out/m-0003.h5 was saved with network mlp, and this run has lenet, so that arrays have other shapes'

part "words"
printf 'the cat sees\nthe dog sees\na bird sings\nthe bird sees the cat\n' >train.txt
printf 'the bird sees\na cat sings\nthe dog sings\na dog sees\n' >val.txt
train 1 --network lstm --num-layers 1 --num-hidden 6 --num-embed 4 --data-train train.txt --data-val val.txt \
	--text words --buckets 4,6 --num-epochs 1 --model-prefix out/w $plain
validation >trained
train 1 --evaluate --load out/w-best --data-val val.txt $plain
# What no --override can change is named, and none is offered.
for override in "" "--override all"; do
	run_limited 60 1 --network lstm --num-hidden 7 --num-embed 5 --data-train train.txt --data-val val.txt \
		--text words --buckets 4,6 --num-epochs 2 --model-prefix out/w --resume auto $override $plain
	[ $status = 2 ] || fail "exit status $status, not 2, of another width"
	expect 'error: out/w-0001.h5 was saved with num-hidden 6, num-embed 4, and this run has 7, 5, so that arrays'
	expect_none 'error: .*override|has dimensions'
done
mv out/w-0001.h5 alone.h5
rm out/*
train 1 --evaluate --load alone.h5 --data-val val.txt $plain
expect '^options from alone.h5: network lstm, num-layers 1, num-hidden 6, num-embed 4, text words, vocab alone.h5, '
expect ' vocab alone.h5, buckets 4,6$'
validation | cmp - trained || fail "other results than in training"
train 1 --sample 5 --load alone.h5
train 1 --summary --load alone.h5
expect '^lstm, input \(1, 6, 1\)'
expect '^softmax +softmax +\(\d+, 6, 1\)'
train 1 --benchmark 1 --num-batches 2 --evaluate --load alone.h5 $plain
refuse '--num-hidden 7: alone.h5 was saved with num-hidden 6' 1 --sample 5 --load alone.h5 --num-hidden 7
# Without a name that says it, the checkpoint does: a text, which has no options of images.
cp val.txt corpus
train 1 --evaluate --load alone.h5 --data-val corpus $plain
expect ' text words, vocab alone.h5, buckets 4,6$'
validation | cmp - trained || fail "other results than in training"
refuse '--rgb-mean is a setting of colour images, not of sequences of words' 1 --evaluate --load alone.h5 \
	--data-val corpus --rgb-mean 1 $plain
refuse '--image-shape with --data-val corpus: it is for images, and this file is read as text' 1 --evaluate \
	--load alone.h5 --data-val corpus --image-shape 1,4,1 $plain

if [ -x "$JPEG" ]; then
	part "images"
	mkdir -p images/ant images/bee
	for i in 1 2 3 4; do
		"$JPEG" write images/ant/$i.jpg $((30 + i)) 26 rgb $i
		"$JPEG" write images/bee/$i.jpg 25 $((25 + i)) grey 1$i
	done
	train 1 --network mlp --data-train images --data-val images --image-shape 3,8,8 --resize 12 \
		--rgb-mean 90,80,70 --rgb-std 50,60,70 --num-epochs 1 --lr 0.01 --model-prefix out/i $plain
	validation >trained
	train 1 --evaluate --load out/i-0001.h5 --data-val images $plain
	expect ': network mlp, num-classes 2, image-shape 3,8,8, rgb-mean 90,80,70, rgb-std 50,60,70, resize 12$'
	validation | cmp - trained || fail "other results than in training"
	train 1 --evaluate --load out/i-0001.h5 --data-val images --resize 9 $plain
	expect '^out/i-0001.h5 was saved with resize 12: the options of this run are used$'
	validation | cmp -s - trained && fail "--resize of the command line has no effect"
	train 1 --summary --load out/i-0001.h5
	expect '\(3, 8, 8\)'
	train 1 --network mlp --load out/i-0001.h5 --data-train images --image-shape 3,8,8 --num-epochs 1 $plain
	expect '^out/i-0001.h5 was saved with rgb-mean 90,80,70, rgb-std 50,60,70, resize 12: the options of this run'
fi
finish
