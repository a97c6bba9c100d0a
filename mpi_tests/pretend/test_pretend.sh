#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 800
# GPUs that are pretended: a driver, cuBLAS, cuDNN and NCCL of our own (pretend_*.c) whose streams take turns at random,
# so that what the host gives a GPU, in which order, and the formulas of the kernels are tested without one. What real
# kernels and libraries do is not. In the tier long networks, too.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"
# shellcheck source=mpi_tests/pretend/pretend.sh
. "$SRCDIR/mpi_tests/pretend/pretend.sh"

part "stores of GPUs: exact sums, updates, checkpoints"
for np in $(in_tier full && echo 1 3) 2; do
	# with three ranks, arrays of the host that cannot be registered
	[ $np = 3 ] && export PRETEND_NO_REGISTER=1
	PRETEND_GPUS=3 PRETEND_SEED=$np $MPIRUN -n $np "$BUILDDIR/mpi_tests/gpu/test_nccl" >out 2>&1 ||
		fail "test_nccl of $np ranks: $(tail -5 out)"
	unset PRETEND_NO_REGISTER
	grep -q 'the optimizer works on the GPUs' out || fail "no optimizer on the GPUs"
	grep -q 'the optimizer works on the CPU: sgd with a limit of the norm' out ||
		fail "an optimizer with norms, not on the CPU"
done

part "all operations"
for t in test_gpu test_versions test_recorded test_fused test_engines test_ops test_blocks test_transformer \
	$(in_tier full && echo test_dtype test_space) $(in_tier long && echo test_net); do
	MU_TEST_DEVICES=gpu PRETEND_SEED=7 "$(test_program "$t")" >out 2>&1 || fail "$t: $(tail -20 out)"
	grep -q '^skipped.* gpu' out && fail "$t: $(grep '^skipped' out)"
	case $t in
	test_ops) expected='^gpu: .* worst error' ;;
	test_blocks) expected='^gpu, .*: gradients' ;;
	test_transformer) expected='^gpu, bfloat16: loss' ;;
	test_dtype) expected='^gpu, \(float16\|bfloat16\): fused attention, [1-9]' ;;
	*) expected= ;;
	esac
	[ -z "$expected" ] || grep -q "$expected" out || fail "$t: no GPU"
done

part "transformers: the losses of PyTorch"
MU_TEST_DEVICES=gpu MU_TEST_CASES="gpt2 llama vit" PRETEND_SEED=7 "$(test_program test_golden)" >out 2>&1 ||
	fail "test_golden: $(tail -20 out)"
[ "$(grep -c '^\(gpt2\|llama\|llama-tied\|vit\) on gpu: 10 of 10 steps' out)" = 4 ] || fail "test_golden: no GPU"

part "types: convolutions, batch-norms and products by tensor cores"
small="--image-shape 3,16,16 --benchmark 1 --batch-size 4 --num-batches 2 --num-epochs 1 --lr 0.01 --log-prefix none
	--log-time 0"
# small_loss OPTIONS
small_loss() {
	train 1 $small "$@"
	sed -n 's/^Epoch\[0\] Train-cross-entropy=//p' "$log"
}
resnet_loss() {
	small_loss --network resnet --num-layers 8 "$@"
}
# small_losses NETWORK: as ref's
small_losses() {
	local type error wanted got
	wanted=$(small_loss $1 --devices ref)
	while read -r type error; do
		got=$(small_loss $1 --gpus 0 --dtype $type)
		awk -v a="$wanted" -v b="$got" -v e="$error" \
			'BEGIN { exit !(a > 0 && b > 0 && a - b < e && b - a < e) }' ||
			fail "$1, $type: a loss of $got, and $wanted by ref"
	done <<-END
		float32 0.0001
		float16 0.002
		bfloat16 0.01
	END
}
small_losses "--network resnet --num-layers 8"

part "convolutions whose list of algorithms has none that can be had; the log has the engine of each"
listed=$(small_loss --network resnet --num-layers 8 --gpus 0 --verbose 1)
expect_count 1 'engine of stage2_unit1_sc, weights: cuDNN.s algorithm 1, no tensor cores, 0.001 MB of workspace'
unlisted=$(PRETEND_NO_LIST=1 small_loss --network resnet --num-layers 8 --gpus 0)
[ -n "$listed" ] && [ "$listed" = "$unlisted" ] || fail "a loss of $unlisted, and $listed by the list"
unlisted=$(PRETEND_NO_LIST=1 small_loss --network resnet --num-layers 8 --gpus 0 --dtype float16)
[ -n "$unlisted" ] || fail "float16: no algorithm without a list"

part "--conv-algo tune tries the engines of cuDNN; a table of them trains like the choice"
resnet="--network resnet --num-layers 8 --gpus 0 --dtype float16"
train 1 $small $resnet --conv-algo tune --conv-table tuned
for k in 0 1 2 3; do # two, in each of cuDNN's two lists
	expect_count 1 "^--conv-algo tune: a step of 4 samples by engine$k but for weights takes"
	expect_count 1 "^--conv-algo tune: a step of 4 samples by engine$k for weights takes"
done
expect_none 'by engine4'
[ "$(grep -cE '^[a-z_0-9]+( (auto|direct|winograd|engine[0-3])){3}$' tuned)" = 10 ] || fail "the table: $(cat tuned)"
awk 'NR <= 4 { print; next } { print $1, "engine1 engine0 engine3" }' tuned >engines
usual=$(small_loss $resnet --conv-algo direct)
by_table=$(small_loss $resnet --conv-table engines)
expect '^convolutions auto: winograd does 0 of 10 forward,.*; the table.s engine does 10, 10 and 10, direct the others$'
[ "$usual" = "$by_table" ] || fail "a loss of $by_table by engines, and $usual without"

part "sums in batch-norms"
small_losses "--network resnet-v1 --num-layers 14"
for devices in "--gpus 0" "--devices cpu"; do
	"$TRAINER" --network resnet-v1 --num-layers 14 --image-shape 3,16,16 $devices --summary >out 2>&1 ||
		fail "--summary $devices ended with $?: $(tail -3 out)"
	n=$(grep -c 'batchnorm + sum + relu' out)
	[ "$n" = "$([ "$devices" = "--gpus 0" ] && echo 6 || echo 0)" ] || fail "$devices: $n batch-norms add"
done

part "LSTM: texts of two lengths, in all types"
awk 'BEGIN {
	for (i = 0; i < 40; i++)
		print "the", i % 3 ? "old cat" : "cat", i % 2 ? "sees" : "hears", i % 5 ? "the dog" : "it"
}' >text.txt
lstm="--network lstm --num-layers 2 --num-hidden 12 --num-embed 8 --data-train text.txt --data-val text.txt
	--buckets 5,8 --lr 1 --mom 0 --wd 0 --batch-size 8 --num-epochs 2 --dropout 0 --log-prefix none --log-time 0"
ranks=1
# lstm_losses OPTIONS: of both epochs, training and validation
lstm_losses() {
	train $ranks $lstm "$@"
	sed -n 's/^Epoch.*-cross-entropy=//p' "$log" | tr '\n' ' '
}
# near LOSSES OTHERS DIFFERENCE
near() {
	awk -v a="$1" -v b="$2" -v e="$3" 'BEGIN {
		split(b, y)
		for (i = n = split(a, x); i > 0; i--)
			bad += !(x[i] > 0 && x[i] - y[i] < e && y[i] - x[i] < e)
		exit bad || n < 4
	}'
}
wanted=$(lstm_losses --devices ref)
while read -r type error; do
	got=$(lstm_losses --gpus 0 --dtype $type)
	near "$wanted" "$got" $error || fail "LSTM, $type: losses of $got, and $wanted by ref"
done <<-END
	float32 0.00001
	float16 0.002
	bfloat16 0.02
END

part "transformers: tied weights, dropout, in all types; CUDA graphs change no bit"
gpt="--network gpt2 --num-layers 2 --num-hidden 16 --num-heads 4 --data-train text.txt --data-val text.txt
	--text characters --buckets 16 --optimizer adamw --lr 0.01 --batch-size 4 --num-epochs 2 --dropout 0.1
	--log-prefix none --log-time 0"
# gpt_losses OPTIONS: as lstm_losses
gpt_losses() {
	train 1 $gpt "$@"
	sed -n 's/^Epoch.*-cross-entropy=//p' "$log" | tr '\n' ' '
}
of_gpt=$(gpt_losses --devices ref)
while read -r type error; do
	got=$(gpt_losses --gpus 0 --loss-scale 128 --dtype $type)
	near "$of_gpt" "$got" $error || fail "gpt2, $type: losses of $got, and $of_gpt by ref"
	plain=$(gpt_losses --gpus 0 --loss-scale 128 --dtype $type --cuda-graph 0)
	[ "$got" = "$plain" ] || fail "gpt2, $type: losses of $got, and $plain without CUDA graphs"
done <<-END
	float32 0.00001
	float16 0.001
	bfloat16 0.005
END
got=$(gpt_losses --gpus 0 --recompute all) # behind the draws of the next batch
near "$of_gpt" "$got" 0.00001 || fail "gpt2, recomputed: losses of $got, and $of_gpt by ref"
got=$(gpt_losses --gpus 0 --micro-batches 2)
near "$of_gpt" "$got" 0.00001 || fail "gpt2 in micro-batches: losses of $got, and $of_gpt by ref"

part "fused attention: whole and in parts, as CUDA graphs, recomputed; none with dropout or an older cuDNN"
fused="--num-heads 2 --dropout 0 --gpus 0 --loss-scale 128 --dtype float16"
by_products=$(gpt_losses $fused)
fused="$fused --attention-algo fused"
got=$(gpt_losses $fused --verbose 1)
expect_count 2 "attention of .*: cuDNN's engine 2 forward, 2 backward, 4 samples at a time"
near "$by_products" "$got" 0.0004 || fail "losses of $got, and $by_products by products"
for options in "--cuda-graph 0" "--recompute attention"; do
	again=$(gpt_losses $fused $options)
	[ "$got" = "$again" ] || fail "$options: losses of $again, not $got"
done
again=$(PRETEND_MOST_SAMPLES=2 gpt_losses $fused --verbose 1)
expect_count 0 "attention of .*, 4 samples at a time"
expect_count 6 "attention of .*: cuDNN's engine 2 forward(, 2 backward)?, 2 samples at a time"
[ "$got" = "$again" ] || fail "in parts: losses of $again, not $got"
again=$(PRETEND_CUDNN=91500 gpt_losses $fused --verbose 1)
expect_count 0 "attention of .*: cuDNN's engine"
expect_count 1 'warning: fused attention was asked for, and h0_attention is by products: cuDNN is older than 9.16$'
[ "$by_products" = "$again" ] || fail "an older cuDNN: losses of $again, not $by_products"
by_products=$(gpt_losses --gpus 0 --dtype float16)
got=$(gpt_losses --gpus 0 --dtype float16 --attention-algo fused --verbose 1)
expect_count 0 "attention of .*: cuDNN's engine"
expect_count 1 'warning: fused attention was asked for, and h0_attention is by products: dropout$'
[ "$got" = "$by_products" ] || fail "with dropout: losses of $got, not $by_products"
got=$(gpt_losses --devices ref --attention-algo fused)
expect 'warning: --attention-algo fused has no effect: this job has no GPU$'

part "llama: in all types, recomputed, by fused attention"
llama="--network llama --num-layers 2 --num-hidden 16 --num-heads 2 --num-kv-heads 1 ${gpt#*--num-heads 4}"
llama=${llama/--dropout 0.1/} llama=${llama/--lr 0.01/--lr 0.002}
of_llama=$(gpt=$llama gpt_losses --devices ref)
while read -r error options; do
	got=$(gpt=$llama gpt_losses --gpus 0 --loss-scale 128 $options)
	near "$of_llama" "$got" $error || fail "llama, $options: losses of $got, and $of_llama by ref"
done <<-END
	0.00001 --dtype float32 --recompute all
	0.001 --dtype float16
	0.005 --dtype bfloat16 --recompute all
	0.001 --dtype float16 --attention-algo fused --verbose 1
END
expect_count 2 "attention of .*: cuDNN's engine 2 forward, 2 backward, 4 samples at a time"

part "a large vocabulary: in half precision the gradient is where the scores were; also in micro-batches"
many="--network gpt2 --num-layers 1 --num-hidden 16 --num-heads 2 --num-classes 4101 --seq-len 8 --batch-size 4
	--benchmark 1 --num-batches 3 --num-epochs 1 --optimizer adamw --lr 0.001 --log-prefix none --log-time 0"
# many_loss OPTIONS: with the top-k accuracy, which the same predictions give
many_loss() {
	train 1 $many --top-k 2000 "$@"
	sed -n 's/^Epoch\[0\] Train-\(cross-entropy\|top_k_accuracy_2000\)=//p' "$log" | tr '\n' ' '
}
wanted_many=$(many_loss --devices ref)
for options in "" "--micro-batches 2" "--dtype bfloat16" "--dtype bfloat16 --micro-batches 2"; do
	got=$(many_loss --gpus 0 $options)
	awk -v a="$wanted_many" -v b="$got" 'BEGIN {
		n = split(a, x)
		split(b, y)
		for (i = 1; i <= n; i++) # rank 2000 of one of 96 labels may change
			bad += !(y[i] > 0 && x[i] - y[i] < (e = x[i] > 1 ? 0.0005 : 0.011) && y[i] - x[i] < e)
		exit bad || n != 2
	}' || fail "a vocabulary of 4101, $options: $got, and $wanted_many by ref"
done

part "--allow-tf32: all products of float32 are TF32's, and without it none is"
# products FILE: kinds of products of a run's costs
products() {
	sed -n 's/^\(cu[BD][^\t]*\)\t.*/\1/p' $1 | sort -u | tr '\n' ';'
}
while read -r learner expected; do
	exact=$(PRETEND_COSTS=$PWD/exact.costs $learner --gpus 0 --allow-tf32 0)
	usual=$($learner --gpus 0)
	got=$(PRETEND_COSTS=$PWD/tf32.costs $learner --gpus 0 --allow-tf32 1)
	[ -n "$exact" ] && [ "$exact" = "$usual" ] || fail "$learner: losses of $exact, and $usual without the option"
	[ "$got" != "$exact" ] || fail "$learner: TF32 changes nothing: losses of $got"
	awk -v a="$exact" -v b="$got" 'BEGIN {
		split(b, y)
		for (i = n = split(a, x); i > 0; i--)
			bad += !(y[i] > 0 && x[i] - y[i] < 0.001 && y[i] - x[i] < 0.001)
		exit bad || n < 1
	}' || fail "$learner: losses of $got with TF32, and $exact without"
	[ "$(products exact.costs)" = "${expected//, TF32;/;}" ] || fail "$learner: $(products exact.costs)"
	[ "$(products tf32.costs)" = "$expected" ] || fail "$learner, TF32: $(products tf32.costs), not $expected"
done <<-END
	resnet_loss cuBLAS, TF32;cuDNN, data, TF32;cuDNN, forward, TF32;cuDNN, weights, TF32;
	lstm_losses cuDNN, LSTM, TF32;cuDNN, data, TF32;cuDNN, forward, TF32;cuDNN, weights, TF32;
	gpt_losses cuBLAS, TF32;cuDNN, data, TF32;cuDNN, forward, TF32;cuDNN, weights, TF32;
END
train 1 $small --network resnet --num-layers 8 --gpus 0 --allow-tf32 1
expect '^device gpu:.*, float32 with TF32$'
PRETEND_NO_LIST=1 train 1 $small --network resnet --num-layers 8 --gpus 0 --allow-tf32 1 --verbose 1
expect_count 1 'engine of stage2_unit1_sc, weights: cuDNN.s algorithm 1, tensor cores, '
resnet="--network resnet --num-layers 8 --gpus 0 --allow-tf32 1"
train 1 $small $resnet --conv-algo tune --conv-table of_tf32
for k in 0 1 2 3; do
	expect_count 1 "^--conv-algo tune: a step of 4 samples by engine$k but for weights takes"
done
grep -q '^measured batch 4, float32 with TF32, ' of_tf32 || fail "the table: $(head -4 of_tf32)"
awk 'NR <= 4 { print; next } { print $1, "engine1 engine0 engine3" }' of_tf32 >engines
for cut in "" "--micro-batches 2"; do # which adds gradients
	usual=$(small_loss $resnet $cut)
	by_table=$(small_loss $resnet $cut --conv-table engines)
	expect '^convolutions auto: .*; the table.s engine does 10, 10 and 10, direct the others$'
	[ "$usual" = "$by_table" ] || fail "TF32, $cut: a loss of $by_table by engines, and $usual without"
done
train 1 $small --network resnet --num-layers 8 --gpus 0 --conv-table of_tf32
expect '^convolutions auto: .*; direct the others$'
expect_count 1 'warning: of_tf32: .* measured with batch 4, float32 with TF32, .*this run has batch 4, float32,'
train 1 $small --network resnet --num-layers 8 --devices ref --num-batches 1 --allow-tf32 1
expect_count 1 'warning: --allow-tf32 1 has no effect: this job has no GPU'

part "LSTM: layers on two GPUs, in blocks of steps and micro-batches: the bits of one GPU"
for cut in "--time-block 3" "--micro-batches 4" "--time-block 3 --dtype float16"; do
	one=$(lstm_losses --gpus 0 $cut)
	near "$wanted" "$one" 0.002 || fail "$cut: losses of $one, and $wanted by ref"
	two=$(lstm_losses --gpus 0,1 --model-parallel 2 $cut)
	[ "$one" = "$two" ] || fail "$cut on two GPUs: losses of $two, and $one on one"
	ranks=2
	two=$(lstm_losses --gpus 0 --model-parallel-ranks 2 --kv-store dist_allreduce $cut)
	[ "$one" = "$two" ] || fail "$cut on GPUs of two ranks: losses of $two, and $one on one"
	ranks=1
done
run_limited 60 1 $lstm --gpus 0,1 --model-parallel 2 --kv-store nccl
[ $status = 2 ] || fail "exit status $status, not 2, of --kv-store nccl with --model-parallel"
expect_count 1 'error: --kv-store nccl keeps gradients .*--model-parallel'

if ! grep -q '^EXPORT_DYNAMIC = *$' "$BUILDDIR/Makefile"; then
	part "a loss of values: the losses of a CPU, where the GPU has the store, too"
	$CC -O2 -std=c11 -shared -fPIC -I"$SRCDIR/include" "$SRCDIR/jobs/examples/regression.c" -o regression.so ||
		fail "no regression.so"
	values="--network ./regression.so --benchmark 1 --num-batches 6 --num-epochs 2 --batch-size 12 --lr 0.01
		--log-prefix none --log-time 0"
	train 1 $values --devices cpu
	grep -E '^Epoch.*(mse|mae)=' "$log" >cpu.losses
	for store in local device; do
		train 1 $values --gpus 0 --kv-store $store
		grep -E '^Epoch.*(mse|mae)=' "$log" | paste -d = cpu.losses - | awk -F = '
			{ d = $2 - $4; bad += $1 != $3 || !(d < 1e-3 && d > -1e-3); n++ }
			END { exit bad || n < 2 }' || fail "$store: $(grep -E '^Epoch.*mse=' "$log" | tr '\n' ' ')"
	done
fi

part "the trainer: what two CPUs learn"
net="--network mlp --benchmark 1 --num-batches 8 --num-epochs 2 --wd 0.001 --lr 0.05 --optimizer adam"
net="$net --log-prefix none --log-time 0"
np=1
# learn OPTIONS: its last loss
learn() {
	train $np $net --batch-size $((24 / np)) "$@"
	loss=$(sed -n 's/^Epoch\[1\] Train-cross-entropy=//p' "$log")
	[ -n "$loss" ] || fail "no loss: $*"
}
learn --devices cpu:0,cpu:1 --kv-store device
wanted=$loss
# same OPTIONS
same() {
	learn "$@"
	awk -v a="$wanted" -v b="$loss" 'BEGIN { exit !(a - b < 1e-4 && b - a < 1e-4) }' ||
		fail "$*: a loss of $loss, and $wanted with two CPUs"
}
same --gpus 0,1 --kv-store local
expect_none 'the optimizer works on'
learn --devices cpu:0,cpu:1 --kv-store device --update-period 3
[ "$loss" != "$wanted" ] || fail "--update-period 3 changes nothing"
every_step=$wanted wanted=$loss
same --gpus 0,1 --kv-store local --update-period 3
wanted=$every_step
for store in device nccl nccl_allreduce; do
	same --gpus 0,1 --kv-store $store
	expect '^the optimizer works on the GPUs$'
done
PRETEND_PEERS=peers same --gpus 0,1 --kv-store device
[ "$(sort -u peers | tr '\n' ,)" = "0 1,1 0," ] || fail "access between GPUs: $(tr '\n' , <peers), and not 0 1,1 0"
PRETEND_NO_PEERS=1 same --gpus 0,1 --kv-store device

part "validation has the weights after its step, and the next step its own samples"
small_set data 240 60
# validate FILE OPTIONS: its losses, three an epoch
validate() {
	train 1 --network mlp --data-dir data --num-epochs 3 --lr 0.1 --batch-size 24 --log-prefix none --log-time 0 \
		--validate-steps 4 "${@:2}"
	sed -n "s/^Epoch.*[[:blank:]]Validation-cross-entropy=//p" "$log" >$1
}
validate wanted.txt --devices cpu:0
for devices in "0 --kv-store local" "0,1 --kv-store local" "0,1 --kv-store device"; do
	validate got.txt --gpus $devices
	paste wanted.txt got.txt | awk '$1 - $2 < 1e-4 && $2 - $1 < 1e-4 { n++ } END { exit n != 9 }' ||
		fail "--gpus $devices: losses of $(tr '\n' ' ' <got.txt), and $(tr '\n' ' ' <wanted.txt) on the CPU"
done

part "dist_allreduce and dist_sharded: NCCL, or MPI"
np=2
if nodes_up 2; then
	nodes_use 2
	export PRETEND_OWN=1
	learn --devices cpu:0 --kv-store dist_allreduce
	wanted=$loss
	for store in dist_allreduce dist_sharded; do
		same --gpus 0 --kv-store $store
		expect '^the optimizer works on the GPUs$'
		expect '^sums are NCCL'
	done
	same --gpus 0 --kv-store dist_allreduce --inter-node mpi
	expect_none 'the optimizer works on'
	ln -sf libold.so libnccl.so.2
	same --gpus 0 --kv-store dist_allreduce
	expect_count 1 'warning: --inter-node auto: libnccl.so.2 has no function nccl.*; sums of GPUs are .*MPI'
	expect_none 'the optimizer works on'
	run_limited 60 2 $net --batch-size 12 --gpus 0 --kv-store dist_allreduce --inter-node nccl
	[ $status = 2 ] || fail "exit status $status, not 2, of --inter-node nccl without NCCL"
	expect_count 1 'error: .*libnccl.so.2 has no function'
	ln -sf libpretend.so libnccl.so.2
	unset PRETEND_OWN
	nodes_end
fi

part "a network of NCCL that fails"
export PRETEND_NCCL_FAIL=5
run_limited 60 1 $net --batch-size 24 --gpus 0,1 --kv-store nccl
[ $status = 1 ] || fail "exit status $status, not 1"
expect_count 1 'error: .*NCCL, gpu:[01]'
finish
