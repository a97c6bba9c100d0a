#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# jobs/gpu/model: bytes and operations of small networks, of images and of volumes with every loss, equal closed forms,
# times are those of the ceilings given, and what it counts without doing it is what a step does, kernel by kernel, on a
# pretended GPU that works.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/pretend/pretend.sh
. "$SRCDIR/mpi_tests/pretend/pretend.sh"

model() {
	"$SRCDIR/jobs/gpu/model" --build "$BUILDDIR" --libraries "$PWD" "$@" >step 2>err ||
		fail "the model of $* fails: $(cat err)"
	awk -F '\t' 'NF == 7 && !$7 && $1 != "cuDNN, LSTM" { print $1 }' step >unknown
	[ ! -s unknown ] || fail "no costs of $(sort -u unknown | tr '\n' ' ')in mpi_tests/pretend/costs.c"
}
# sum COLUMN NAME: over all sizes
sum() {
	awk -F '\t' -v c="$1" -v name="$2" '$1 == name { s += $2 * (c == 2 ? 1 : $c) } END { printf "%.0f", s }' step
}
# is NAME COUNT READ WRITTEN OPERATIONS
is() {
	local got
	got="$(sum 2 "$1") $(sum 3 "$1") $(sum 4 "$1") $(sum 5 "$1")"
	[ "$got" = "$(($2)) $(($3)) $(($4)) $(($5))" ] || fail "$1: $got, not $(($2)) $(($3)) $(($4)) $(($5))"
}

part "closed forms: lenet"
b=6 x0=28*28 y0=20*24*24 w0=20*25 x1=20*12*12 y1=50*8*8 w1=50*20*25
lenet="--network lenet --batch-size $b"
model --raw $lenet
multiplies="$b*($y0*25+$y1*500)"
is "cuDNN, forward" 2 "4*($b*($x0+$x1)+$w0+$w1)" "4*$b*($y0+$y1)" "2*$multiplies"
is "cuDNN, weights" 2 "4*$b*($x0+$x1+$y0+$y1)" "4*($w0+$w1)" "2*$multiplies"
is "cuDNN, data" 1 "4*($b*$y1+$w1)" "4*$b*$x1" "2*$b*$y1*500"
w="500*800+10*500" x="800+500" y="500+10" # forward y = x w; dw = x dy; dx = dy w
is cuBLAS 6 "4*(2*($w)+$b*2*($x+$y))" "4*($w+$b*($x+$y))" "6*$b*($w)"
is softmax 1 "4*$b*11" "4*$b*10+16*$b" 0
model --raw $lenet --dtype float16
is "cuDNN, forward" 2 "2*($b*($x0+$x1)+$w0+$w1)" "2*$b*($y0+$y1)" "2*$multiplies"
model $lenet --copy 1 --flops32 1 --gap 0
awk -v b=$b '/^softmax / { found = $6 == sprintf("%.0f", (4 * b * 11 + 4 * b * 10 + 16 * b) / 1000) }
	END { exit !found }' step || fail "softmax takes $(grep '^softmax ' step), at 1 GB/s"

part "closed forms: a network of volumes, transposed, of groups, resized, smooth; every loss"
cat >volumes.c <<'END'
#include <muster/net.h>

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_convolution conv = {.filters = 8, .kernel = {3, 3, 3}, .pad = {1, 1, 1}, .no_bias = true};
	const struct mu_batch_norm norm = {.eps = 1e-3f, .momentum = 0.9f};
	const struct mu_deconvolution twice = {
		.filters = 16, .kernel = {2, 2, 2}, .stride = {2, 2, 2}, .no_bias = true};
	const struct mu_group_norm groups = {.eps = 1e-3f, .groups = 2};
	const struct mu_layer_norm rms = {.eps = 1e-3f, .rms = true};
	const struct mu_pooling max = {.kernel = {2, 2, 2}, .stride = {2, 2, 2}};
	const struct mu_upsampling up = {.linear = true, .scale = {2, 1, 2}};
	const struct mu_pad pad = {.before = {1, 0, 2}, .after = {0, 1, 0}};
	const struct mu_crop crop = {.start = {1, 0, 2}, .size = {8, 6, 10}};
	const struct mu_convolution last = {
		.filters = (int)config->classes, .kernel = {1, 1, 1}, .no_bias = true};
	static const struct mu_activation smooth[] = {{MU_ACTIVATION_LEAKY_RELU, 0.2f}, {MU_ACTIVATION_ELU, 1},
		{MU_ACTIVATION_SOFTPLUS, 1}, {MU_ACTIVATION_SCALED_TANH, 2}};
	int x = mu_net_convolution(net, mu_net_input(net), &conv, NULL);

	x = mu_net_activation(net, mu_net_batch_norm(net, x, &norm, NULL), MU_ACTIVATION_RELU, NULL);
	x = mu_net_group_norm(net, mu_net_deconvolution(net, x, &twice, NULL), &groups, NULL);
	x = mu_net_pooling(net, mu_net_layer_norm(net, x, &rms, NULL), &max, NULL);
	x = mu_net_pad(net, mu_net_upsampling(net, x, &up, NULL), &pad, NULL);
	x = mu_net_crop(net, x, &crop, NULL);
	for (int i = 0; i < 4; i++)
		x = mu_net_activation_of(net, x, &smooth[i], NULL);
	x = mu_net_product(net, x, mu_net_activation(net, x, MU_ACTIVATION_SIGMOID, NULL), NULL);
	x = mu_net_convolution(net, x, &last, NULL);
#ifdef OBJECTIVE
	mu_net_objective(net, x);
#else
	mu_net_losses(net, 2, (const struct mu_head[]){
				      {"class", x, "softmax", NULL, 1}, {"value", x, "mse", NULL, 0.5}});
#endif
	return MU_OK;
}

static const struct mu_network volumes = {
	.name = "volumes", .shape = MU_SAMPLE(2, 4, 6, 5), .classes = 8, .build = build,
#ifdef OBJECTIVE
	.objective = OBJECTIVE,
#endif
};

MU_NETWORK_EXPORT(volumes);
END
{ ${CC:-cc} -shared -fPIC -I"$SRCDIR/include" -DOBJECTIVE='"softmax"' volumes.c -o volumes.so &&
	${CC:-cc} -shared -fPIC -I"$SRCDIR/include" volumes.c -o heads.so; } || fail "volumes.c does not compile"
b=3 c=8 p=4*6*5 q=8*12*10 r=8*6*10 s=9*7*12 # positions: of the input, of twice as many each, after crop, after pad
volumes="--image-shape 2,4,6,5 --batch-size $b --num-classes $c"
while read -r T type; do
	model --raw --network $PWD/volumes.so $volumes --dtype $type
	w0=2*27*8 w1=8*16*8 w2=16*$c
	x0="$b*2*$p" y0="$b*8*$p" y1="$b*16*$q" x2="$b*16*$r" y2="$b*$c*$r"
	multiplies="$b*($p*$w0+$p*$w1+$r*$w2)" # a transposed one has each weight once for a position of its input
	is "cuDNN, forward" 3 "$T*($x0+$w0+$y1+$w1+$x2+$w2)" "$T*(2*$y0+$y2)" "2*$multiplies"
	is "cuDNN, weights" 3 "$T*($x0+2*$y0+$y1+$x2+$y2)" "$T*($w0+$w1+$w2)" "2*$multiplies"
	is "cuDNN, data" 2 "$T*($y0+$w1+$y2+$w2)" "$T*($y1+$x2)" "2*$b*($p*$w1+$r*$w2)"
	is group_norm 1 "$T*$y1+8*16" "$T*$y1" 0
	is group_norm_backward 1 "2*$T*$y1+4*16" "$T*$y1" 0
	is group_sums 2 "3*$T*$y1" "2*16*$b*16*512" 0 # pairs of doubles; 512 threads to a channel of 960 positions
	is layer_norm 1 "$T*$y1+4*16" "$T*$y1+8*$b*$q" 0
	is layer_norm_backward 1 "2*$T*$y1+8*$b*$q+4*16" "$T*$y1" 0
	is pool 1 "$T*$y1" "($T+4)*$b*16*$p" 0 # with the place of each maximum
	is pool_backward 1 "($T+4)*$b*16*$p" "$T*$y1" 0
	is upsample 1 "$T*$b*16*$p" "$T*$x2" 0
	is upsample_backward 1 "$T*$x2" "$T*$b*16*$p" 0
	is pad 4 "2*$T*$b*16*($r+$s)" "2*$T*$b*16*($r+$s)" 0 # the crop, too; and backward
	is smooth 4 "4*$T*$x2" "4*$T*$x2" 0
	is smooth_backward 4 "8*$T*$x2" "4*$T*$x2" 0
	is product_of 1 "2*$T*$x2" "$T*$x2" 0
	is product_of_backward 1 "3*$T*$x2" "2*$T*$x2" 0
	is softmax 1 "4*$y2+4*$b*$r" "4*$y2+16*$b*$r" 0 # labels; predictions
	is softmax_backward 1 "4*$y2" "4*$y2" 0
done <<-END
	4 float32
	2 float16
END
for loss in mse mae huber bce; do
	model --raw --network $PWD/volumes.so $volumes --objective $loss
	is element_loss 1 "8*$y2" "4*$y2+8*$b" 0 # targets; the loss of a sample
	is element_loss_backward 1 "8*$y2" "4*$y2" 0
done
model --raw --network $PWD/volumes.so $volumes --objective dice
is region_softmax 1 "4*$y2+4*$b*$r" "4*$y2+16*$b*$r" 0
is region_sums 1 "8*$y2" "24*$b*$c" 0 # three sums of each class
is region_totals 1 "24*$b*$c" "24*$b*$c" 0
is region_backward 1 "4*$y2+4*$b*$r" "4*$y2" 0

part "counts: those of steps that are done, as CUDA graphs"
# counted N WORK OPTION...: what the model counts is what a step does, with N pieces of this work
counted() {
	local n=$1 work=$2 k
	shift 2
	model --raw "$@"
	awk -F '\t' '{ n[$1] += $2 } END { for (k in n) print k, n[k] }' step | sort >counted
	for k in 2 3; do
		PRETEND_COSTS=done.$k train 1 "$@" --benchmark 1 --gpus 0 --num-batches $k --num-epochs 1 \
			--log-prefix none --log-time 0 --lr 0.01
		expect '^a step is . CUDA graphs'
	done
	awk -F '\t' 'NR == FNR { n[$1] -= $2; next } { n[$1] += $2 } END { for (k in n) if (n[k]) print k, n[k] }' \
		done.2 done.3 | sort >happened
	grep -q "^$work $n\$" counted || fail "$*: not $n times $work"
	cmp counted happened || fail "$*: $(diff counted happened | tr '\n' ' ')"
}
counted 16 "cuDNN, forward" --network resnet-v1 --num-layers 14 --image-shape 3,16,16 --batch-size 4 --dtype float16
counted 3 "cuDNN, forward" --network $PWD/volumes.so $volumes --dtype bfloat16 --objective dice
counted 3 "cuDNN, forward" --network $PWD/heads.so $volumes
finish
