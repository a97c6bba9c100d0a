#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 400
# What a user can do wrong: the trainer's exit status is not 0, and it tells once, on any number of ranks, what is so.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

small_set set 300 100
ulimit -c unlimited 2>/dev/null
plain="--log-prefix none --log-time 0"
mlp="--network mlp --data-dir set --batch-size 20 $plain"

# refused NP REGEX ARGUMENT...: exactly one message, which matches, and nothing else of note. apart=1: workers find
# the same by themselves, and a second one tells it where the first is held for more than a second: not twice in a row.
apart=0
refused() {
	local np=$1 regex=$2 told
	shift 2
	run_limited 60 "$np" "$@"
	[ $apart = 0 ] || [ "$(grep -c 'error: ' "$log")" -le 1 ] || run_limited 60 "$np" "$@"
	if [ $status = 0 ] || [ $status -ge 124 ]; then
		fail "exit status $status of -n $np $*"
		show_log
	fi
	told=$(grep -c 'error: ' "$log")
	[ "$told" = 1 ] || fail "$told messages of -n $np $*"
	expect "error: .*$regex"
	expect_none "$crashes"
	! ls core* >/dev/null 2>&1 || { fail "a core file of -n $np $*" && rm -f core*; }
	[ "$told" = 1 ] && [ "$(grep -Pc "error: .*$regex" "$log")" = 1 ] || show_log
}

# misused NP REGEX ARGUMENT...: wrong use: status 2, nothing read or trained, no source lines.
misused() {
	refused "$@"
	[ $status = 2 ] || fail "exit status $status, not 2, of -n $1 ${*:3}"
	expect_none '^    at |^Epoch|^Abort'
}

# both KIND REGEX ARGUMENT...: with one rank and with three; in the tier quick with three every fourth time
turn=0
both() {
	local kind=$1 np
	shift
	turn=$(((turn + 1) % 4))
	for np in $(in_tier full && echo 1 3 || echo $((turn == 0 ? 3 : 1))); do $kind $np "$@"; done
}

part "names"
both misused 'lenett.*lenet' --network lenett --data-dir set
both misused 'network' --data-dir set
both misused "dist_asink.*local.*dist_sync.*dist_async" $mlp --kv-store dist_asink
for store in nccl nccl_allreduce; do
	both misused "('$store'.*this build has no CUDA with NCCL|no GPU in this job: --kv-store $store ).*dist_sync" \
		$mlp --kv-store $store
done
both misused "sdg.*sgd.*nag.*adam" $mlp --optimizer sdg
both misused 'device.*tpu' $mlp --devices tpu
misused 1 'initializer.*zeros.*zero' $mlp --initializer zeros
misused 1 'dtype float16.*float32' $mlp --dtype float16
misused 1 'gpus 0,x' $mlp --gpus 0,x

misused 1 'num-hidden is a setting of lstm, gpt2, llama, vit-tiny, not of mlp' $mlp --num-hidden 8
misused 1 'dropout is a setting of lstm, gpt2, vit-tiny, not of mlp' $mlp --dropout 0.5
both misused '--num-layers 7' --network lenet --num-layers 7 --summary
both misused 'device.*tpu' --network lenet --devices tpu --summary

part "devices"
both misused 'device "ref:x": .*number must follow.*as in ref:0' $mlp --devices ref:0,ref:x
both misused 'device "gpx:0"; this build has: .*ref' $mlp --devices gpx:0
misused 1 'device ""' $mlp --devices ref:0,,ref:1
misused 1 'device ""' $mlp --devices ref:0,
both misused 'devices ref:1,ref:2,ref:1: ref:1 is named twice' $mlp --devices ref:1,ref:2,ref:1
misused 1 'ref:0 is named twice' $mlp --devices ref,ref:0
if "$TRAINER" --info | grep -q '^device: *cpu'; then
	both misused 'devices cpu:0,ref:1: cpu and ref are of two kinds' $mlp --devices cpu:0,ref:1
fi
two="$mlp --devices ref:0,ref:1"
both misused 'work-load-list 3,1,1 has 3 numbers, and --devices names 2 devices' $two --work-load-list 3,1,1
misused 1 'work-load-list 3 has 1 number, and --devices names 2 devices' $two --work-load-list 3
misused 1 'work-load-list 3,1 has 2 numbers, and --devices names 1 device:' $mlp --work-load-list 3,1
for loads in 3,0 0,0 3,-1 3,x 3,1.5 3, ,3 3,1e3 1,1000001 1,99999999999999999999 nan,1 3,+1; do
	misused 1 "work-load-list ${loads//+/.}: .* no whole number from 1 to 1000000" $two --work-load-list=$loads
done
misused 3 'work-load-list 3,-1: "-1" is no whole number' $two --work-load-list 3,-1
both misused "worker's batch of 2 over 3 devices leaves none for ref:0; a larger --batch-size" --network mlp \
	--data-dir set --batch-size 2 --devices ref:0,ref:1,ref:2 $plain
misused 1 'batch of 20 over 2 devices leaves none for ref:0; .* less unequal' $two --work-load-list 1,100
misused 1 'batch-per-device 4 with --work-load-list 3,1' --network mlp --data-dir set --batch-per-device 4 \
	--devices ref:0,ref:1 --work-load-list 3,1 $plain
misused 1 'ref:1 is named twice' --network mlp --devices ref:1,ref:1 --summary
train 1 --network mlp --devices ref:0,ref:1 --batch-size 9 --work-load-list 2,1 --summary
expect '^mlp, input \(1, 28, 28\), batch 6, training, ref: '
train 1 --network mlp --data-dir set --batch-per-device 7 --devices ref:0,ref:1,ref:2 --num-batches 1 \
	--num-epochs 1 $plain
expect '^batch size 7 per device, 21 per worker, 21 global'
train 1 $two --test-io 1
expect 'worker 0 read 300 samples'
train 1 $two --check
expect '^check: '
apart=1 refused 3 'the loss is not finite; .* in fc\d' $two --lr 1e6
OMP_NUM_THREADS=1 train 1 $two --num-batches 1 --num-epochs 1
expect '^warning: 2 devices share 1 thread of a worker'

part "an environment that differs between ranks"
# shellcheck disable=SC2086 # lists of options
timeout -k 5 $((60 * ${MU_TIMEOUT_SCALE:-1})) $MPIRUN -n 1 env OMP_NUM_THREADS=abc "$TRAINER" $mlp : \
	-n 2 "$TRAINER" $mlp >"$log" 2>&1 </dev/null
status=$?
[ $status = 2 ] || fail "exit status $status, not 2, of a bad OMP_NUM_THREADS on one rank"
expect_count 1 'error: .*OMP_NUM_THREADS'

part "ranks and servers"
misused 3 'num-servers 3 .*3 ranks' $mlp --num-servers 3
misused 3 'num-servers 7 .*3 ranks' $mlp --num-servers 7
misused 3 'num-servers 0.*dist_sync' $mlp --num-servers 0
misused 3 'num-servers 0.*dist_async' $mlp --num-servers 0 --kv-store dist_async
misused 1 'dist_sync.*one rank' $mlp --kv-store dist_sync
misused 3 'kv-store local.*not 3' $mlp --kv-store local
misused 3 'kv-store device.*not 3' $mlp --kv-store device
misused 1 'num-servers 1.*local' $mlp --kv-store local --num-servers 1
misused 3 '--batch-size 301: .*largest possible is 150' --network mlp --data-dir set --batch-size 301 $plain
misused 1 '301' --network mlp --data-dir set --batch-size 301 $plain
misused 3 '--batch-size 20: .*largest possible is 15' $mlp --num-examples 30
misused 3 'global-batch-size 31.*2 workers' --network mlp --data-dir set --global-batch-size 31 $plain
OMP_NUM_THREADS=many misused 3 'OMP_NUM_THREADS.*many' $mlp

part "options"
both misused 'lr needs a value' $mlp --lr
misused 3 'lr needs a value' $mlp --lr --mom 0.9
both misused 'num is ambiguous.*num-epochs.*num-servers' $mlp --num 3
misused 1 'num-e is ambiguous.*num-examples.*num-epochs' $mlp --num-e 3
both misused 'bacth-size.*batch-size' $mlp --bacth-size 3
misused 1 '"lenet"' lenet $mlp
misused 1 'check.*neither 0 nor 1' $mlp --check=2
misused 1 'network' --network
for range in "batch-size 0" "batch-size -3" "lr -1" "lr 1e20" "mom 2" "num-epochs 0" "test-io 2" \
	"disp-batches 0" "top-k -1" "seed -1" "num-servers -2" "num-examples -1" "target-accuracy 1.5" \
	"batch-size 99999999999999999999"; do
	misused 1 "${range% *}.*${range#* }.*out of range.* from " $mlp --${range% *}=${range#* }
done
misused 3 'lr: -1 is out of range' $mlp --lr -1
misused 1 'shuffle: "2" is not known; choose one of: 0, 1, chunk' $mlp --shuffle 2
for value in "batch-size 1.5" "batch-size ten" "lr fast" "lr nan" "lr 0.1x" "num-epochs 3x" "seed 0x10"; do
	misused 1 "${value% *}.*\"${value#* }\"" $mlp --${value% *}=${value#* }
done
both misused 'loss: unknown metric "foo".*: ce, nll, perplexity' $mlp --loss ce,foo
misused 1 'loss: unknown metric "".*: ce, nll, perplexity' $mlp --loss ce,
misused 1 'loss: unknown metric "accuracy".*: ce, nll, perplexity' $mlp --loss accuracy
both misused 'label-smoothing 1: it must be below 1' $mlp --label-smoothing 1
misused 1 'label-smoothing: -0.1 is out of range' $mlp --label-smoothing -0.1
misused 1 'update-period: 0 is out of range' $mlp --update-period 0
misused 3 'global-batch-size 30 .*2 workers times --update-period' \
	--network mlp --data-dir set --global-batch-size 30 --update-period 2 $plain
both misused 'lr-step-epochs.*ten' $mlp --lr-step-epochs 10,ten
both misused 'image-shape 1,28: a shape such as 1,28,28 is needed' --network mlp --benchmark 1 --image-shape 1,28
misused 1 'image-shape 1,2,2,2,2: a shape such as 1,28,28' --network mlp --benchmark 1 --image-shape 1,2,2,2,2

part "networks"
net="--benchmark 1 --batch-size 2 $plain"
both misused 'num-classes: -1 is out of range' --network mlp --num-classes -1 $net
both misused 'num-classes 1: at least 2 .*0 for the network' --network mlp --num-classes 1 $net
train 1 --network mlp --num-classes 0 --num-batches 1 --num-epochs 1 $net # 0: the network's own, 10
expect 'network mlp: 109386 parameters'
misused 1 'lenet: convolution1 has an input of 1 x 12, and its window of 5 x 5 .* at least 5 x 5: a larger image' \
	--network lenet --image-shape 1,6,28 $net
both misused 'mixed_8_tower_conv_1_conv2d has an input of 2 x 2, .* at least 3 x 3' \
	--network inception-v3 --image-shape 3,60,60 $net
misused 3 'pooling4 has an input of 1 x 1, .* at least 2 x 2' --network vgg --image-shape 3,31,31 $net
misused 1 'pooling4 has an input' --network vgg --image-shape 3,31,31 --summary
both misused 'num-layers 15: network vgg .*11, 13, 16, 19' --network vgg --num-layers 15 $net
misused 1 'num-layers 51: network resnext .*50, 101, 152' --network resnext --num-layers 51 $net
both misused 'num-layers 19: network resnet .*height 224; .*18, 34, 50, 101, 152' \
	--network resnet --num-layers 19 --image-shape 3,224,224 $net
misused 1 'num-layers 51: network resnet-v1 .*height 20; .*8, 14, 20' \
	--network resnet-v1 --num-layers 51 --image-shape 3,20,20 $net
misused 1 'num-layers 16: network alexnet comes in one depth' --network alexnet --num-layers 16 $net

part "memory"
# Refused before anything large is allocated, or the machine would suffer.
memory="--network resnet --num-layers 50 --image-shape 3,224,224 --benchmark 1 $plain"
both refused 'network resnet needs about .* GB for a batch of 1000000; .*a batch of about \d+ would fit' \
	$memory --batch-size 1000000
refused 1 'for a batch of 10000000; .*a batch of about \d+ would fit' $memory --batch-size 10000000
refused 1 'network mlp needs about .* GB for weights .*: no batch fits' \
	--network mlp --image-shape 3,90000,90000 --benchmark 1 --batch-size 1 $plain
# Weights and gradients, of 12441.6 GB each, and adam's two states: on the server, or a third of them on each worker.
for store in "dist_sync 24883.2" "dist_sharded 33177.6"; do
	refused 3 "network mlp needs about ${store#* } GB for weights" --kv-store ${store% *} --optimizer adam \
		--network mlp --image-shape 3,90000,90000 --benchmark 1 --batch-size 1 $plain
done
# What a batch system or a container leaves to the job: a control group of our own.
group=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory:\(.*\)/\1/p' /proc/self/cgroup)/muster-$$
if [ -w "${group%/*}" ] && mkdir "$group" 2>/dev/null; then
	echo 700000000 >"$group/memory.limit_in_bytes"
	(
		failures=0
		echo "$BASHPID" >"$group/cgroup.procs"
		refused 1 'has 0\.7 GB here, by the limit of its control group: a batch of about \d+ would fit' \
			$memory --batch-size 100
		exit $failures
	)
	failures=$((failures + $?))
	rmdir "$group"
else
	echo "limits of control groups: skipped, none can be made here"
fi

part "contradictions"
both misused 'batch-size.*global-batch-size' $mlp --global-batch-size 40
misused 1 'batch-size.*batch-per-device' $mlp --batch-per-device 40
both misused 'benchmark 1.*data-dir' $mlp --benchmark 1
misused 1 'no data.*data-dir' --network mlp
misused 1 'mom .*adam' $mlp --optimizer adam --mom 0.5
misused 1 'beta1.*sgd' $mlp --beta1 0.5
misused 1 'image-shape.*set holds idx files' $mlp --image-shape 1,28,28
both misused 'rgb-mean.*set holds idx files' $mlp --rgb-mean 0,0,0
misused 2 '2 workers .* cannot be divided into teams of 4' $mlp --model-parallel-ranks 4
misused 1 'rgb-std.*set holds idx files' $mlp --rgb-std 1,1,1
misused 3 'rgb-mean is a setting of colour images, not of one batch' --network mlp --benchmark 1 --rgb-mean 0,0,0
misused 1 'rho with --optimizer sgd.*: adadelta$' $mlp --rho 0.5
both misused 'lars-eta with --optimizer lamb.*: lars$' $mlp --optimizer lamb --lars-eta 0.1
misused 1 'lr with --optimizer adadelta.*sgd, nag' $mlp --optimizer adadelta --lr 0.1
misused 1 'wd-gamma with --optimizer lars' $mlp --optimizer lars --wd-gamma 1
misused 1 'gamma2 0.5 needs --centered 1' $mlp --optimizer rmsprop --gamma2 0.5
misused 1 'adagrad: epsilon 0: more than 0' $mlp --optimizer adagrad --epsilon 0
misused 1 'adam: beta1 1' $mlp --optimizer adam --beta1 1
misused 1 'lower-bound 2 is above upper-bound 1' $mlp --optimizer lamb --lower-bound 2 --upper-bound 1
misused 1 "optimizer 'none' is for programs" $mlp --optimizer none
misused 1 'ftrl.*changes.*needs a constant one' $mlp --optimizer ftrl --lr-step-epochs 10
misused 1 'adadelta.*changes.*has none' $mlp --optimizer adadelta --warmup-epochs 1
both misused 'lr-power needs --lr-schedule poly' $mlp --lr-schedule cosine --lr-power 3
misused 1 'lr-factor needs --lr-schedule multifactor or factor or plateau' $mlp --lr-factor 0.5
misused 1 'lr-step-epochs needs --lr-schedule multifactor' $mlp --lr-schedule factor --lr-step-epochs 3
misused 1 'multifactor needs --lr-step-epochs' $mlp --lr-schedule multifactor
misused 1 'lr-step-epochs pow2.*another schedule' $mlp --lr-step-epochs pow2 --lr-schedule cosine
misused 1 'lr-step-epochs pow2.*another --lr-power' $mlp --lr-step-epochs pow2 --lr-power 3
misused 1 'lr-step-epochs powx.*such as pow2' $mlp --lr-step-epochs powx
misused 1 'lr-factor-epoch 0: more than 0' $mlp --lr-schedule factor --lr-factor-epoch 0
misused 1 'final-lr 0.2 with --lr 0.1: it is above' $mlp --lr 0.1 --lr-schedule poly --final-lr 0.2
misused 1 'warmup-begin-lr needs --warmup-epochs X above 0' $mlp --warmup-begin-lr 0.01
misused 1 'warmup-steps 3 with --warmup-epochs 1: both say how long' $mlp --warmup-steps 3 --warmup-epochs 1
misused 1 'constant needs --warmup-begin-lr' $mlp --warmup-epochs 1 --warmup-strategy constant
misused 1 'warmup-begin-lr 0.2 with --lr 0.1: it is above' $mlp --lr 0.1 --warmup-epochs 1 --warmup-begin-lr 0.2
misused 1 'warmup-epochs 3 with --num-epochs 3: it leaves nothing' $mlp --lr-schedule poly \
	--warmup-epochs 3 --num-epochs 3
misused 3 'lr-scale-with-workers 1 with --kv-store dist_async' $mlp --lr-scale-with-workers 1 --kv-store dist_async
misused 3 'max-staleness 2 with --kv-store dist_sync.*dist_async' $mlp --max-staleness 2
misused 3 'verify-steps 2 with --kv-store dist_async.*synchronous' $mlp --kv-store dist_async --verify-steps 2
misused 3 'verify-steps 3 with --sync-period 2: .*a multiple of it' $mlp --verify-steps 3 --sync-period 2
misused 1 'max-staleness 0 with --kv-store device' $mlp --max-staleness 0
misused 3 'sync-period 4 with --kv-store dist_async.*dist_sync.*dist_allreduce' $mlp --sync-period 4 \
	--kv-store dist_async
misused 1 'sync-period 4 with --kv-store local.*dist_sync' $mlp --sync-period 4 --kv-store local
misused 3 'block-momentum needs --sync-period' $mlp --block-momentum 0.5
misused 3 'block-momentum 1: it must be below 1' $mlp --sync-period 2 --block-momentum 1
misused 3 'block-lr 0: more than 0' $mlp --sync-period 2 --block-lr 0
misused 3 'block-nesterov 1 needs --block-momentum' $mlp --sync-period 2 --block-nesterov 1
misused 3 'lr-scale-with-workers 1 with --sync-period 2' $mlp --sync-period 2 --lr-scale-with-workers 1
refused 4 'lamb needs norms.*dist_async.*2 servers.*--num-servers 1' $mlp --optimizer lamb \
	--kv-store dist_async --num-servers 2
refused 4 'sgd needs norms.*clip-global-norm' $mlp --clip-global-norm 1 --kv-store dist_async --num-servers 2
misused 1 'target-accuracy.*benchmark' --network mlp --benchmark 1 --target-accuracy 0.9
both misused 'load-epoch 1.*model-prefix' $mlp --load-epoch 1
misused 1 'load-epoch 3.*num-epochs 2' $mlp --model-prefix P --load-epoch 3 --num-epochs 2

misused 1 '"2" belongs to no option' $mlp --allow-tf32 2
misused 1 'allow-tf32: 2 is out of range: it must be from 0 to 1' $mlp --allow-tf32=2
both misused 'allow-tf32 1 with --dtype bfloat16: it is for products of float32' $mlp --allow-tf32 1 --dtype bfloat16

part "options that would have no effect"
misused 1 'shuffle-chunk 64 needs --shuffle chunk' $mlp --shuffle-chunk 64
misused 1 'save-period needs --model-prefix' $mlp --save-period 2
misused 1 'timeline-steps 3 needs --timeline FILE.json' $mlp --timeline-steps 3
misused 1 'top-k 1: it is the accuracy, .*K must be at least 2' $mlp --top-k 1
misused 1 'top-k 11: there are 10 classes, and K is at most that' $mlp --top-k 11
misused 1 'lr-scale-with-workers 1 with --optimizer adadelta: it has no learning rate' $mlp --optimizer adadelta \
	--lr-scale-with-workers 1
both misused 'conv-table with --conv-algo winograd' $mlp --conv-table T --conv-algo winograd
misused 1 'num-batches 3 with --evaluate: it is about training, and nothing' $mlp --evaluate --load P.h5 \
	--num-batches 3
misused 1 'skip-mismatch with --sample 9: all parameters' --network lstm --sample 9 --vocab V --load P.h5 \
	--skip-mismatch $plain
for file in "profile x.csv" "metrics-file x.csv" "timeline x.json" "halt-before 5m"; do
	misused 1 "${file% *} with --test-io 1: it is about training, and nothing" $mlp --test-io 1 --$file
	misused 1 "${file% *} with --dump-batch x.png: .* nothing" $mlp --dump-batch x.png --$file
	misused 1 "${file% *} with --conv-algo tune: .* nothing" $mlp --conv-algo tune --conv-table T --$file
done
misused 3 'server-placement packed with --kv-store dist_sharded: it has no servers' $mlp --kv-store dist_sharded \
	--server-placement packed
misused 3 'priority 0 with --kv-store dist_async' $mlp --kv-store dist_async --priority 0
misused 1 'node-reduce shm with --kv-store local' $mlp --kv-store local --node-reduce shm
misused 3 "node-reduce mpi with kv-store 'dist_async', where every worker's push is an update" $mlp \
	--kv-store dist_async --node-reduce mpi
misused 3 'node-reduce mpi with compression 2bit, where every worker keeps a residual' $mlp \
	--kv-store dist_sync --gc-type 2bit --node-reduce mpi
misused 1 'node-reduce: "mpi2" is not known; choose one of: auto, shm, mpi, none' $mlp --node-reduce mpi2
both misused 'data-dir with --data-val set: use one of them' $mlp --evaluate --load P.h5 --data-val set
misused 1 'benchmark 1 with --data-val set: random data or files' --network mlp --benchmark 1 \
	--evaluate --data-val set $plain
folder="--network lenet --data-train set --image-shape 3,28,28 --num-classes 10 --batch-size 20 $plain"
misused 1 'min-random-area needs --random-resized-crop 1: ' $folder --min-random-area 0.5
misused 1 'max-random-area needs --random-resized-crop 1: ' $folder --max-random-area 0.9 \
	--random-resized-crop 0 --use-imagenet-data-augmentation 1
misused 1 'dump-batch x.jpg: .* a PNG: name it FILE.png' $mlp --dump-batch x.jpg
for action in "test-io 1" "dump-batch x.png"; do
	train 1 $mlp --check --$action
	expect '^check: options, data and layout are good$'
	expect_none '^data|samples of epoch|read 300'
done
! [ -e x.png ] || fail "--check wrote x.png"

part "data files"
# Each damage starts from a fresh copy, unpacked.
for file in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
	mkdir -p whole
	gzip -dc "set/$file-ubyte.gz" >"whole/$file-ubyte"
done
images=bad/train-images-idx3-ubyte labels=bad/train-labels-idx1-ubyte
test_images=bad/t10k-images-idx3-ubyte
fresh() {
	rm -rf bad
	cp -R whole bad
}
# poke FILE OFFSET BYTES: as printf writes them
poke() {
	printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
bad="--network mlp --data-dir bad --batch-size 20 $plain"

fresh
train 1 $bad --num-epochs 1 # plain files are as good as packed ones
both refused 'nowhere: .*train-images' --network mlp --data-dir nowhere $plain
refused 3 'nowhere: .*train-images' --network mlp --data-dir nowhere $plain
[ $status = 2 ] || fail "exit status $status, not 2, of a folder that is not there, on 3 ranks"
both refused 'LICENSE' --network mlp --data-dir "$SRCDIR/LICENSE" $plain
for file in $images $labels $test_images bad/t10k-labels-idx1-ubyte; do
	fresh
	rm $file
	both refused "$file" $bad
	fresh
	head -c 1001 whole/${file#bad/} >$file
	[ "$(wc -c <"$file")" -lt 1001 ] && head -c 50 whole/${file#bad/} >$file
	both refused "$file" $bad
done
fresh
: >$images
refused 1 "$images" $bad
fresh
head -c 10 whole/train-images-idx3-ubyte >$images
refused 1 "$images" $bad
fresh
poke $images 2 '\r'
both refused "$images" $bad
fresh
poke $images 0 'GIF8'
refused 1 "$images" $bad
fresh
cp $labels $images
both refused "$images" $bad
fresh
poke $images 4 '\377\377\377\377'
refused 1 "$images" $bad
fresh
poke $images 8 '\377\377\377\377\377\377\377\377'
refused 1 "$images" $bad
fresh
poke $images 8 '\0\0\0\0'
refused 1 "$images" $bad
fresh
echo more >>$labels
refused 1 "$labels" $bad
fresh
poke $labels 25 '\n'
both refused "$labels: record 17 has label 10; .* 0 to 9, .* 10 classes .--num-classes" $bad --num-classes 10
train 1 ${bad/mlp/resnet --num-layers 8} --num-epochs 1 --num-batches 1 && expect '^data idx: .*, 11 classes: '
fresh
poke bad/t10k-labels-idx1-ubyte 8 '\377'
refused 3 't10k-labels-idx1-ubyte: record 0 has label 255' $bad
fresh
both refused "$labels: record \d+ has label [4-9]; labels must be from 0 to 3" $bad --num-classes 4
fresh
cp whole/t10k-images-idx3-ubyte $images
refused 1 'holds 100 records.*holds 300' $bad
fresh
# 100 images of 14 x 14
printf '\0\0\10\3\0\0\0\144\0\0\0\16\0\0\0\16' >$test_images
tail -c +17 whole/t10k-images-idx3-ubyte | head -c 19600 >>$test_images
both refused '14 x 14.*28 x 28' $bad

part "packed data files"
zipped() {
	rm -rf bad
	cp -R set bad
}
zipped
head -c 3000 set/train-images-idx3-ubyte.gz >$images.gz
both refused "$images.gz" $bad
zipped
poke $images.gz 3000 'bad bytes in the middle of it'
both refused "$images.gz" $bad
zipped
echo 'no gzip' >$labels.gz
refused 1 "$labels.gz" $bad
zipped
: >$labels.gz
refused 1 "$labels.gz" $bad

part "CIFAR files"
# records FILE N: images of zeros with label 0
records() {
	head -c $(($2 * 3073)) /dev/zero >"$1"
}
cifar() {
	rm -rf bad
	mkdir bad
	records bad/data_batch_1.bin 30
	records bad/data_batch_2.bin 31
	records bad/test_batch.bin 29
}
cifar
train 3 $bad --num-epochs 1
expect 'data cifar: 61 samples for training, 29 for validation, shape \(3, 32, 32\), 10 classes'
expect_count 1 '^Epoch\[0\] Validation-accuracy'
train 1 $bad --num-epochs 1 --image-shape 3,28,30 --rgb-mean 0,0,0 --rgb-std 255,255,255 --num-classes 20 \
	--data-aug-level 0
expect 'shape \(3, 28, 30\), 20 classes: .* the middle .* mean 0,0,0, std 255,255,255'
train 1 $bad --test-io 1
expect 'data cifar: 61 samples for training'
both misused 'image-shape 1,28,28 .*3,H,W' $bad --image-shape 1,28,28
misused 1 'image-shape 3,33,32 .*1 to 32' $bad --image-shape 3,33,32
misused 1 'rgb-mean 1,2: three numbers' $bad --rgb-mean 1,2
misused 1 'rgb-mean 1,2,x: three numbers' $bad --rgb-mean 1,2,x
misused 1 'rgb-std 1,2,nan: three numbers' $bad --rgb-std 1,2,nan
both misused 'rgb-std 1,0,1: .* above 0' $bad --rgb-std 1,0,1
misused 1 'rgb-std 0.2,0.3,0.2: pixels are from 0 to 255; 0.2 of values from 0 to 1 is 51 here' \
	$bad --rgb-std 0.2,0.3,0.2
poke bad/data_batch_2.bin 3073 '\12'
both refused 'bad/data_batch_2.bin: record 1 has label 10; labels must be from 0 to 9' $bad
misused 3 'largest possible is 30' --network mlp --data-dir bad --batch-size 31 $plain --num-classes 11
mv bad/data_batch_2.bin bad/data_batch_3.bin
both refused 'bad/data_batch_2.bin: cannot be opened: No such file' $bad
cifar
rm bad/test_batch.bin
both refused 'bad/test_batch.bin: cannot be opened: No such file' $bad
cifar
echo more >>bad/test_batch.bin
both refused 'bad/test_batch.bin: truncated.*89122 bytes.*3073' $bad
: >bad/data_batch_1.bin
refused 3 'bad/data_batch_1.bin: the file is empty' $bad
cifar
cp set/t10k-images-idx3-ubyte.gz bad
both misused 'bad: holds 2 data sets .*data_batch_2.bin.*t10k-images' $bad
rm -rf bad
mkdir bad
mkdir bad/cat
both refused 'holds no data files; .*; a folder of images for each class is for --data-train' $bad
rmdir bad/cat
both refused 'bad: holds no data files; looked for .*data_batch_1.bin.*train-images-idx3-ubyte' $bad

part "losses that are not finite"
for np in 1 3 7; do
	apart=1 refused $np 'epoch 1 of \d+, step \d+: the loss is not finite; .* in fc\d' $mlp --lr 1e6
	expect_none '^Epoch.*Validation'
done
apart=1 refused 3 'step \d+: the loss is not finite; .* in fc\d' $mlp --lr 1e6 --kv-store dist_async
apart=1 refused 3 'validation: the loss is not finite' $mlp --lr 1e6 --num-batches 2 --num-epochs 1

if has_files; then
	part "checkpoints"
	both refused 'model-prefix /proc/none/P.*/proc/none.*cannot be made' $mlp --model-prefix /proc/none/P
	expect_none '^Epoch'
	train 1 $mlp --num-epochs 1 --model-prefix new/folder/P
	[ -s new/folder/P-0001.h5 ] || fail "no checkpoint in a new folder"
	refused 3 'model-prefix set/t10k-labels-idx1-ubyte.gz/P' $mlp --model-prefix set/t10k-labels-idx1-ubyte.gz/P
	expect_none '^Epoch'
	misused 1 'model-prefix new/: a name must follow the folder, as in new/run' $mlp --model-prefix new/
	mkdir D-0001.h5
	both refused 'D-0001.h5' $mlp --model-prefix D
	for file in D-*; do
		case $file in
		D-0001.h5 | D-run.json) ;;
		*) fail "left behind: $file" ;;
		esac
	done
	both refused 'P-0002.h5' $mlp --model-prefix P --load-epoch 2
	train 1 $mlp --model-prefix P --num-epochs 1
	both refused 'P-0001.h5.*mlp.*lenet' --network lenet --data-dir set --batch-size 20 \
		--model-prefix P --load-epoch 1 $plain
	head -c 20000 P-0001.h5 >Q-0001.h5
	both refused 'Q-0001.h5' $mlp --model-prefix Q --load-epoch 1
	echo 'no HDF5' >R-0001.h5
	refused 1 'R-0001.h5' $mlp --model-prefix R --load-epoch 1
else
	part "checkpoints in a build without HDF5"
	both refused 'model-prefix P.*HDF5' $mlp --model-prefix P
fi
finish
