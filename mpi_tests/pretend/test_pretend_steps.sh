#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Steps of the training on pretended GPUs (pretend.sh), where every batch is another: samples, labels and draws come a
# batch ahead while the GPU is at the one before. What two CPUs learn is learnt.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/pretend/pretend.sh
. "$SRCDIR/mpi_tests/pretend/pretend.sh"

small_set set 130 20
cat >drop.c <<'END'
#include <muster/net.h>

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_fully_connected hidden = {.units = 24};
	const struct mu_fully_connected scores = {.units = (int)config->classes};
	int x = mu_net_flatten(net, mu_net_input(net), NULL);

	x = mu_net_dropout(net, x, 0.25f, NULL);
	x = mu_net_fully_connected(net, x, &hidden, NULL);
	x = mu_net_activation(net, x, MU_ACTIVATION_RELU, NULL);
	x = mu_net_dropout(net, x, 0.5f, NULL);
	mu_net_softmax(net, mu_net_fully_connected(net, x, &scores, NULL), "softmax");
	return MU_OK;
}

static const struct mu_network drop = {
	.name = "drop", .help = "dropout", .shape = MU_SAMPLE(1, 28, 28), .classes = 10, .build = build};

MU_NETWORK_EXPORT(drop);
END
${CC:-cc} -shared -fPIC -I"$SRCDIR/include" drop.c -o drop.so || fail "drop.c does not compile"

# Steps of 24 samples, and a last one of 10.
net="--network ./drop.so --data-dir set --batch-size 24 --num-epochs 2 --optimizer sgd --mom 0.9 --lr 0.05"
net="$net --lr-step-epochs 1 --log-prefix none --log-time 0"
# learn OPTION...: the losses of its epochs
learn() {
	train 1 $net "$@"
	losses=$(grep -o '^Epoch\[[01]\] \(Train\|Validation\)-cross-entropy=.*' "$log")
	[ "$(grep -c . <<<"$losses")" = 4 ] || fail "no losses: $*"
}
# near A B WHAT: losses, but for rounding
near() {
	paste -d= <(echo "$1") <(echo "$2") |
		awk -F= '{ d = $2 - $4; if ($1 != $3 || d > 1e-4 || d < -1e-4) exit 1 }' ||
		fail "$3: losses of $2, and $1 with two CPUs"
}

part "a batch ahead"
learn --devices cpu:0,cpu:1 --kv-store device
wanted=$losses
for seed in 1 $(in_tier full && echo 2 3); do
	export PRETEND_SEED=$seed
	learn --gpus 0 --kv-store device
	near "$wanted" "$losses" "one GPU, seed $seed"
	expect '^samples go to the GPUs as bytes$'
done
learn --gpus 0 --kv-store local
near "$wanted" "$losses" "one GPU, sums on the CPU"
learn --gpus 0,1 --kv-store nccl_allreduce
near "$wanted" "$losses" "two GPUs"
learn --gpus 0,1 --kv-store device --data-nthreads 2
near "$wanted" "$losses" "two GPUs, threads"

part "CUDA graphs"
# equal ANOTHER WHAT: the losses are those of the run before, to the digit
equal() {
	[ "$losses" = "$1" ] || fail "$2: losses of $losses, and $1 without CUDA graphs"
}
export PRETEND_SEED=4
for store in "--gpus 0 --kv-store device" "--gpus 0,1 --kv-store nccl" "--gpus 0,1 --kv-store local"; do
	learn $store --cuda-graph 0
	expect '^a step is no CUDA graph: --cuda-graph 0$'
	plain=$losses
	learn $store
	expect '^a step is 2 CUDA graphs, and 1 calls of layers that are not in them$'
	expect_none 'warning'
	equal "$plain" "$store"
done
learn --gpus 0 --kv-store device --loss-scale dynamic --loss-scale-window 3 --cuda-graph 0
plain=$losses
learn --gpus 0 --kv-store device --loss-scale dynamic --loss-scale-window 3
equal "$plain" "loss scales that change"
while read -r step function; do
	PRETEND_NO_GRAPH=$step learn --gpus 0 --kv-store device --loss-scale dynamic --loss-scale-window 3
	expect "warning: forward of layers .* to .* is no CUDA graph, and done call by call: .*$function"
	equal "$plain" "graphs that fail to $step"
done <<-END
	begin cuStreamBeginCapture
	run cuGraphInstantiate
END

part "energy of GPUs, by a library that stands for NVML"
cat >nvml.c <<'END'
#include <stdio.h>
#include <string.h>
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **gpu) { return (*gpu = strdup(bus)) == NULL; }
int nvmlDeviceGetTotalEnergyConsumption(void *gpu, unsigned long long *millijoules)
{
	char path[64];
	FILE *f;
	int n;
	snprintf(path, sizeof path, "energy.%s", (const char *)gpu);
	if (!(f = fopen(path, "r"))) return 3;
	n = fscanf(f, "%llu", millijoules);
	fclose(f);
	return n != 1;
}
END
${CC:-cc} -shared -fPIC nvml.c -o libnvidia-ml.so.1 || fail "nvml.c does not compile"
# used_on GPUS NP OPTION...: the line of energy of a run in which GPU 0 uses 5 J, and GPU 1 7 J if it has a counter
used_on() {
	local gpus=$1 np=$2 i
	shift 2
	for i in 0 1; do rm -f "energy.0000:0$i:00.0"; done
	for ((i = 0; i < gpus; i++)); do echo 1000000 >"energy.0000:0$i:00.0"; done
	new_mark
	rm -f "$log"
	(MUSTER_SYSFS=$PWD/none launch 100 "$np" ${net/num-epochs 2/num-epochs 100000} --disp-batches 1 "$@") &
	for _ in $(seq 1500); do
		grep -qs '^Epoch\[[1-9]' "$log" && break
		sleep 0.05
	done
	for ((i = 0; i < gpus; i++)); do
		echo $((1005000 + 2000 * i)) >new
		mv new "energy.0000:0$i:00.0"
	done
	kill -s TERM "$(sed -n 's/^node .*(rank 0, pid \([0-9]*\)).*/\1/p' "$log" | head -n 1)"
	wait $!
	grep '^energy: ' "$log" || tail -n 3 "$log"
}
text=$(used_on 2 1 --gpus 0,1 --kv-store device)
[[ $text == "energy: 12.0 J, "*"; of 2 GPUs (NVML); without CPUs, fans, disks, network" ]] || fail "two GPUs: $text"
text=$(used_on 1 1 --gpus 0,1 --kv-store device)
[[ $text == "energy: 5.0 J, "*"; of 1 GPU (NVML); without CPUs, the other GPUs, fans, disks, network" ]] ||
	fail "a GPU without a counter: $text"
text=$(PRETEND_OWN=1 used_on 1 2 --gpus 0 --kv-store dist_sharded --batch-size 12)
[[ $text == "energy: 5.0 J, "*"; of 1 GPU (NVML); without CPUs, fans, disks, network" ]] ||
	fail "a GPU of two workers: $text"
rm libnvidia-ml.so.1

# step_work OPTION...: names and counts of the kernels, products, convolutions and copies of a step of a residual
# network with 16 convolutions and 16 batch-norms, as CUDA graphs: what a fourth step adds to three
step_work() {
	local n
	for n in 3 4; do
		PRETEND_COSTS=costs.$n PRETEND_IDLE=idle.$n train 1 --network resnet-v1 --num-layers 14 \
			--image-shape 3,16,16 --benchmark 1 --batch-size 4 --num-batches $n --num-epochs 1 --lr 0.01 \
			--log-prefix none --log-time 0 --gpus 0 --kv-store device "$@"
	done
	awk -F '\t' -v OFS='\t' 'NR == FNR { n[$1] -= $2; next } { n[$1] += $2 }
		END { for (k in n) if (n[k]) print k, n[k] }' costs.3 costs.4 >work
	[ -s work ] || fail "no work of a step"
}
# at_most N KERNEL
at_most() {
	local n
	n=$(awk -F '\t' -v k="$2" '$1 == k { print $2 }' work)
	[ "${n:-0}" -le "$1" ] || fail "$n of kernel $2 in a step, more than $1"
}
# in_all N: kernels, at most
in_all() {
	local n
	n=$(awk -F '\t' '$1 !~ /^(copy|set)/ { n += $2 } END { print n + 0 }' work)
	[ "$n" -gt 100 ] && [ "$n" -le "$1" ] || fail "$n kernels in a step, more than $1: $(tr '\t\n' ' ;' <work)"
}

part "kernels of a step: three for a convolution, three to seven for a batch-norm, none for a parameter"
step_work --dtype float16 --loss-scale 16
in_all $((3 * 16 + 3 * 16 + 25))
at_most 1 value_sums_float16 # of the image's three channels
at_most 1 add                # after the pooling: batch-norms add the other branches' gradients
at_most 1 statistics         # of the image's three channels: elsewhere normalize makes its constants
at_most 0 normal_sums        # the last block of those that sum does its work
at_most 2 scale
at_most 2 lay_weights
at_most 4 convert
at_most 1 update
at_most 0 normals
grep -q '^unpack	1$' work || fail "random images do not come as bytes"
step_work --dtype float32
in_all $((3 * 16 + 7 * 16 + 28)) # outputs are restored
at_most 1 update
at_most 0 normals

part "convolutions that sum for batch-norms, and convolutions that do not: all but rounding is equal"
block="--network resnet-v1 --num-layers 8 --image-shape 3,8,8 --benchmark 1 --batch-size 4 --num-batches 2
	--num-epochs 1 --lr 0.01 --log-prefix none --log-time 0 --gpus 0 --dtype float16 --verbose 1"
# summed N OPTION...: this many convolutions of a training step make sums; the loss
summed() {
	train 1 $block "${@:2}"
	expect_count $1 '^engine of .*, forward: cuDNN.s engine 2, with sums for the batch-norm, 0.001 MB of workspace'
	loss=$(sed -n 's/^Epoch\[0\] Train-cross-entropy=//p' "$log")
}
summed 9
with=$loss
summed 0 --conv-algo direct
awk -v a="$with" -v b="$loss" 'BEGIN { exit !(a > 0 && a != b && a - b < 2e-3 && b - a < 2e-3) }' ||
	fail "a loss of $loss with sums of batch-norm's own, and $with with those of convolutions"
apart=$loss
PRETEND_NO_FUSION=1 summed 0
[ "$loss" = "$apart" ] || fail "no engine makes sums: a loss of $loss, and $apart by --conv-algo direct"
# Parts of which two end with a convolution and begin with its batch-norm: the sums go from GPU to GPU.
deep="${block/layers 8/layers 14} --verbose 0"
train 1 $deep
one=$(sed -n 's/^Epoch\[0\] Train-cross-entropy=//p' "$log")
PRETEND_GPUS=7 train 1 ${deep/gpus 0/gpus 0,1,2,3,4,5,6} --model-parallel 7
expect '^stage 1 on gpu:1: stage1_unit1_bn2 to'
expect "^Epoch\[0\] Train-cross-entropy=$one\$"

part "--conv-algo tune tries both; its table is read again"
train 1 $block --conv-algo tune --conv-table tuned
expect '^--conv-algo tune: a step of 4 samples by auto takes'
expect '^--conv-algo tune: wrote tuned: 10 convolutions'
[ "$(awk 'NR > 4 && $2 ~ /^(auto|direct|engine[0-3])$/' tuned | wc -l)" = 10 ] || fail "the table: $(cat tuned)"
summed "$(awk 'NR > 4 && $1 != "conv0" && $2 == "auto"' tuned | wc -l)" --conv-table tuned
awk 'NR > 4 { $2 = NR == 7 ? "auto" : "direct" } { print }' tuned >one
summed 1 --conv-table one

part "the GPU has work while the host waits for a loss"
idle=$(($(cat idle.4) - $(cat idle.3)))
[ $idle -le 0 ] || fail "a wait of the host leaves the GPU idle: $idle in a step"

part "a loss that is not finite, after backward was submitted"
run_limited 100 1 $net --gpus 0 --kv-store device --lr 1e6
[ $status = 1 ] || fail "status $status, not 1"
expect 'error: epoch 1 of 2, step \d: the loss is not finite; .* is in fullyconnected\d;'
finish
