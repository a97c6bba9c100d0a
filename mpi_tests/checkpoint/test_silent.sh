#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @tier full
# @timeout 300
# Nothing is silent: options that have nothing to work on are told in one line, and some cases of the campaign
# jobs/bench/campaign/silent, one of each kind and more.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

needs_files
export OMP_NUM_THREADS=1
small_set set 40 20
"$BUILDDIR/h5rec" set/train-images-idx3-ubyte.gz grey/ >/dev/null || fail "no folder"
mkdir cifar # black, and all of one class
for name in data_batch_{1..5} test_batch; do
	head -c $((8 * 3073)) /dev/zero >cifar/$name.bin
done
plain="--batch-size 20 --num-epochs 1 --log-prefix none --log-time 0"
mlp="--network mlp --data-dir set $plain"
grey="--network mlp --data-train grey --image-shape 1,28,28 $plain"

# tells TEXT OPTION...: a run warns once of options without effect, in these words; or, without TEXT, of none
tells() {
	local text=$1
	shift
	train 1 "$@"
	expect_count $((0 + (${#text} > 0))) 'warning: .* no effect'
	[ -z "$text" ] || expect "warning: .*$text\$"
}

part "options without effect"
tells '--conv-algo direct has no effect with --network mlp: it has no convolutions' $mlp --conv-algo direct
tells '--cuda-graph 0 has no effect: this job has no GPU' $mlp --cuda-graph 0
tells '--data-nthreads 2, --prefetch-buffer 9 have no effect: no threads read these data' $mlp --data-nthreads 2 \
	--prefetch-buffer 9
tells '--best-metric loss has no effect without --model-prefix P or --early-stopping N: no checkpoint .*' $mlp \
	--best-metric loss
tells '--num-examples 99 has no effect: there are fewer samples' $mlp --num-examples 99
tells '--fill-value 3 has no effect: no step shows .*' $grey --fill-value 3
tells 'grey: random hue and saturation have no effect on grey images; the first is .*' $grey --max-random-h 9
tells '--prefetch-buffer 9 has no effect with --data-nthreads 0: the training thread reads' $grey --data-nthreads 0 \
	--prefetch-buffer 9
tells '' $grey --max-random-s 9 --max-random-h 9 --data-nthreads 1 --prefetch-buffer 9 --pad-size 2 --fill-value 3
tells '' $mlp --conv-algo auto --cuda-graph 1 --data-nthreads -1 --num-examples 40 --model-prefix P --best-metric loss
tells '' ${mlp/mlp/lenet} --conv-algo direct
tells '--pad-size 3 has no effect: the middle of an image is taken, .*' ${mlp/set/cifar} \
	--image-shape 3,32,32 --random-crop 0 --pad-size 3
tells '--exif-orientation 0 has no effect: these images are no JPEG files' ${mlp/set/cifar} --no-exif-orientation
tells '--pad-size 3 has no effect: the middle .*' ${grey/28,28/20,16} --random-crop 0 --pad-size 3 --resize 20
tells '' ${grey/28,28/30,28} --random-crop 0 --pad-size 3
tells '' ${grey/28,28/30,28} --random-crop 0 --pad-size 3 --resize 29
tells '' $grey --random-crop 1 --pad-size 3
tells '' $grey --random-crop 0 --pad-size 3 --max-random-rotate-angle 9
tells '--max-val-samples 21 has no effect: there are fewer samples' $mlp --max-val-samples 21
tells '' $mlp --max-val-samples 20
tells '--early-stopping 4 has no effect: the first validation is the best so far, and fewer follow' $mlp \
	--num-epochs 4 --early-stopping 4
tells '' $mlp --num-epochs 4 --early-stopping 3
tells '' $mlp --num-epochs 2 --validate-steps 1 --early-stopping 3
tells '--interface lo has no effect: there is one rank' $mlp --interface lo
untrained=${mlp/--num-epochs 1/}
tells '--evaluate has no effect with --test-io: a run does one of them' $untrained --test-io 1 --evaluate \
	--load P-0001.h5
tells '--test-io has no effect with --dump-batch: .*' $untrained --dump-batch sheet.png --test-io 1
tells '--lr 0.5 has no effect with --dump-batch sheet.png: nothing is trained' $untrained --dump-batch sheet.png \
	--lr 0.5 --conv-algo auto
tells '--optimizer adam has no effect with --test-io 1: nothing is trained' $untrained --test-io 1 --optimizer adam
tells '--seed 3 has no effect with --export p.onnx: nothing is drawn at random' --seed 3 \
	--export p.onnx --load P-0001.h5
tells '--check has no effect with --summary: there is no job to check' $untrained --summary --check

# short TEXT OPTION...: the run is too short for an option, and says so; without TEXT it does not
short() {
	local text=$1
	shift
	train 1 $mlp --num-epochs 3 --model-prefix S --overwrite 1 "$@"
	expect_count $((0 + (${#text} > 0))) 'warning: '
	[ -z "$text" ] || expect "^warning: $text\$"
}
short '--save-every 2steps: an epoch has 2 steps, so that there is no checkpoint inside it' --save-every 2steps
short '--save-every 1steps: an epoch has 2 steps, .*' --save-every 1steps --update-period 2
short '--update-period 3: an epoch has 2 steps and ends with an update, so that this is .* 2' --update-period 3
short '' --save-every 1steps
short '--lr-factor-epoch 3: the run ends after epoch 3, before the rate changes' --lr-schedule factor \
	--lr-factor-epoch 3
short '' --lr-schedule factor --lr-factor-epoch 2
short '--warmup-epochs 4: the run ends before the warm-up, so that the rate does not reach --lr' --warmup-epochs 4
short '' --warmup-epochs 3
short '--warmup-steps 7: the run ends before the warm-up, .*' --warmup-steps 7
short '' --warmup-steps 6
tells '--num-epochs 3, --lr 0.5 have no effect with --evaluate: nothing is trained' --evaluate --load P-0001.h5 \
	--data-dir set --lr 0.5 --num-epochs 3
tells '--model-prefix Z has no effect with --evaluate: nothing is saved' --evaluate --load P-0001.h5 --data-dir set \
	--model-prefix Z
[ -z "$(compgen -G 'Z*')" ] || fail "--evaluate wrote $(echo Z*)"
tells '' --evaluate --load-epoch 1 --model-prefix P --data-dir set
tells '--initializer xavier has no effect with --load P-0001.h5: the weights are the file.s' $mlp --load P-0001.h5 \
	--initializer xavier
tells '--skip-mismatch has no effect: all arrays of P-0001.h5 fit' $mlp --load P-0001.h5 --skip-mismatch

part "the campaign"
TMPDIR=$PWD "$SRCDIR/jobs/bench/campaign/silent" --build "$BUILDDIR" --seed 7 --cases 36 --seconds 45 ||
	fail "exit status $?"
finish
