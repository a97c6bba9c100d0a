#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Several losses in a net: losses, metrics and updates against a computation in awk, on 1 to 3 ranks and on
# several devices; what checkpoints, --best-metric, --evaluate and --predict make of them; what is refused.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

if grep -q '^EXPORT_DYNAMIC = *$' "$BUILDDIR/Makefile"; then
	echo "skipped: this build loads no networks"
	exit 77
fi
export OMP_NUM_THREADS=1

# Heads that read the input, and weights that begin at 0 but for rounding. HEADS and a name: other heads.
cat >heads.c <<'END'
#include <muster/net.h>
#ifndef HEADS
#define HEADS \
	{.name = "class", .loss = "softmax", .settings = "class-weights=1,2,1 ignore-class=7", .weight = 1}, \
	{.name = "place", .loss = "mse", .weight = 0.25}, {.name = "flag", .loss = "bce", .weight = 0.5}
#endif
static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	struct mu_head heads[] = {HEADS};
	const struct mu_fully_connected units[] = {{.units = 3}, {.units = 2}, {.units = 1}};
	const char *const names[] = {"c", "p", "f"};
	const int n = (int)(sizeof heads / sizeof *heads);
	const int x = mu_net_input(net);

	(void)config;
	for (int i = 0; i < n; i++) {
		mu_net_group(net, "group%d", i);
		heads[i].in = mu_net_fully_connected(net, x, &units[i], names[i]);
		mu_net_scale_initial(net, 1e-30f);
	}
	mu_net_losses(net, n, heads);
	return MU_OK;
}
static const struct mu_network heads = {.name = "heads", .help = "several losses", .shape = MU_SAMPLE(2),
	.classes = 3, .build = build};
MU_NETWORK_EXPORT(heads);
END

# compile NAME [FLAG...]
compile() {
	local name=$1
	shift
	cc -O2 -std=c11 -Wall -Wextra -Werror -shared -fPIC "-I$SRCDIR/include" "$@" heads.c -o "$name.so" ||
		fail "heads.c, $name"
}
compile heads

# Samples, and in want.txt what gradient descent gives: name, value.
awk -v lr=0.5 -v epochs=5 'BEGIN {
	srand(3)
	n = 60
	print "a,b,class,x,y,flag"
	for (i = 0; i < n; i++) {
		a[i] = int(64 * (2 * rand() - 1)) / 64
		b[i] = int(64 * (2 * rand() - 1)) / 64
		class[i] = i % 11 == 5 ? 7 : (a[i] > 0.2) + (b[i] > -0.1)
		x[i] = a[i] / 2 - b[i] + 1
		y[i] = a[i] * b[i] * 4
		flag[i] = a[i] + b[i] > 0
		printf("%s,%s,%d,%s,%s,%d\n", a[i], b[i], class[i], x[i], y[i], flag[i])
	}
	for (e = 0; e <= epochs; e++) {
		split("", g)
		ce = share = right = counted = squared = bce = good = 0
		for (i = 0; i < n; i++) {
			for (k = 0; k < 6; k++)
				o[k] = w[k, 0] * a[i] + w[k, 1] * b[i] + w[k, 2]
			sum = exp(o[0]) + exp(o[1]) + exp(o[2])
			t = class[i]
			f = t == 1 ? 2 : 1
			for (k = 0; k < 3; k++)
				d[k] = t == 7 ? 0 : f * (exp(o[k]) / sum - (k == t))
			if (t != 7) {
				ce += f * (log(sum) - o[t])
				share += f
				counted++
				best = 0
				for (k = 1; k < 3; k++)
					if (o[k] > o[best])
						best = k
				right += best == t
			}
			squared += (o[3] - x[i]) ^ 2 + (o[4] - y[i]) ^ 2
			d[3] = 0.25 * (o[3] - x[i])
			d[4] = 0.25 * (o[4] - y[i])
			p = 1 / (1 + exp(-o[5]))
			bce -= flag[i] ? log(p) : log(1 - p)
			good += (p >= 0.5) == flag[i]
			d[5] = 0.5 * (p - flag[i])
			for (k = 0; k < 6; k++) {
				g[k, 0] += d[k] * a[i]
				g[k, 1] += d[k] * b[i]
				g[k, 2] += d[k]
			}
		}
		for (k = 0; k < 6; k++)
			for (j = 0; j < 3; j++)
				w[k, j] -= lr * g[k, j] / n
	}
	print "loss", (ce + 0.25 * squared / 2 + 0.5 * bce) / n >"want.txt"
	print "class-accuracy", right / counted >"want.txt"
	print "class-cross-entropy", ce / share >"want.txt"
	print "place-mse", squared / 2 / n >"want.txt"
	print "place-rmse", sqrt(squared / 2 / n) >"want.txt"
	print "flag-bce", bce / n >"want.txt"
	print "flag-binary-accuracy", good / n >"want.txt"
}' >t.csv
table="--data-val t.csv --label-columns class,x,y,flag"
rule="--optimizer sgd --mom 0 --wd 0 --lr 0.5 --num-epochs 5"
plain="--log-prefix none --log-time 0"
all="--network ./heads.so --data-train t.csv $table $rule $plain --loss place-rmse"

# The last validation is as computed.
check() {
	local name want
	while read -r name want; do
		sed -n "s/^Epoch.4. Validation-$name=//p" "$log" |
			awk -v want="$want" '{ found = 1; d = $1 - want } END { exit !(found && d * d < 4e-11) }' ||
			fail "$name is not $want ($*): $(grep "Epoch.4. Validation-$name" "$log")"
	done <want.txt
}

part "losses, metrics and updates are those of each head, by its weight, on any number of ranks"
for np in 1 2 3; do
	train $np $all --batch-size $((60 / np)) --kv-store dist_allreduce
	check "$np ranks"
done
train 3 $all --batch-size 30 --kv-store dist_sync --num-servers 1
check "a server"
train 1 $all --batch-size 60 --devices ref
check ref
train 1 $all --batch-size 60 --devices cpu:0,cpu:1
check "two devices"
train 1 $all --batch-size 60 --group2dev group0=cpu:0,group1=cpu:1,group2=cpu:1
check "stages that cut between heads"

part "the weights are those of the loss, and a head of weight 0 does not train"
class='{.name = "class", .loss = "softmax", .settings = "ignore-class=7", .weight = 1}'
compile two "-DHEADS=$class, {.name = \"place\", .loss = \"huber\"}"
two="--network ./two.so --data-train t.csv --data-val t.csv $rule $plain --batch-size 60"
train 1 $two --label-columns class,x,y
[ "$(sed -n 's/^Epoch.*Validation-place-huber=//p' "$log" | sort -u | wc -l)" = 1 ] || fail "place was trained"
expect '^Epoch.4. Validation-class-accuracy='

part "refused in one line"
# refuse REGEX ARGUMENT...
refuse() {
	local regex=$1
	shift
	run_limited 60 1 "$@"
	[ $status != 0 ] || fail "exit status 0 of $*"
	expect_count 1 "error: $regex"
}
all="$all --batch-size 60"
sum='the network.s loss is the sum of class softmax, place mse \* 0.25, flag bce \* 0.5'
refuse "--top-k 2: $sum, which has no such metric" $all --top-k 2
refuse "--label-smoothing 0.1: $sum, which has no such targets" $all --label-smoothing 0.1
refuse "--best-metric: $sum, which has no class-iou; its metrics are: loss, class-accuracy, " \
	$all --best-metric class-iou
refuse '--best-metric: "place-errors" is not known; choose one of: none accuracy ' $all --best-metric place-errors
refuse '--loss place-bce: the network.s loss is the sum' $all --loss place-bce
refuse '--loss: unknown metric "place-foo"' $all --loss place-foo
refuse '--target-accuracy: the network.s loss is the sum .*, which has no accuracy' $all --target-accuracy 0.5
refuse '--objective mse: network heads ends in a loss of its own' $all --objective mse
refuse '--time-block: network heads cannot work on blocks of steps' $all --time-block 2
refuse 'network heads has 4 targets a sample, in this order: class 1, place 2, flag 1; t.csv has 3' \
	$two --network ./heads.so --label-columns class,x,y
refuse 'head class: target 0 of sample \d+ is [-0-9.]+; it is a class, which must be a whole number from 0 to 2' \
	$all --label-columns x,class,y,flag
refuse 'flag: target 0 of sample \d+ is [-0-9.]+; it must be 0 to 1' $all --label-columns class,x,flag,y
n=0
# heads REGEX HEAD: such heads are refused
heads() {
	n=$((n + 1))
	compile bad$n "-DHEADS=$2"
	refuse "$1" $two --network ./bad$n.so --label-columns class,x,y
}
heads 'head a: objective softmx: unknown; the nearest is softmax' '{.name = "a", .loss = "softmx", .weight = 1}'
heads 'head a: network heads: --huber-delta' \
	'{.name = "a", .loss = "huber", .settings = "huber-delta=-1", .weight = 1}'
heads 'network heads: two heads are called a' \
	'{.name = "a", .loss = "mse", .weight = 1}, {.name = "a", .loss = "mse", .weight = 1}'
heads 'network heads: head 0: a name of at most 15 letters' '{.name = "a b", .loss = "mse", .weight = 1}'
heads 'network heads: head a has no loss' '{.name = "a", .weight = 1}'
heads 'network heads: head a has weight -1; it must be 0 or above' '{.name = "a", .loss = "mse", .weight = -1}'
heads 'network heads: all its heads have weight 0' '{.name = "a", .loss = "mse"}'
heads "network heads: 5: 1 weights of 3 classes" \
	'{.name = "a", .loss = "softmax", .settings = "class-weights=5", .weight = 1}'
heads 'network heads: regionloss a_dice needs an input \(n, 3, h, w\)' '{.name = "a", .loss = "dice", .weight = 1}'

if has_files; then
	part "checkpoints go on with the sums of each head, and know the best by one of them"
	part_way="$all --save-steps 1 --batch-size 20 --kv-store local"
	train 1 $part_way --model-prefix A --best-metric place-rmse --early-stopping 9
	expect '^best so far: place-rmse '
	last=$(grep '^Epoch.4. Validation-' "$log")
	train 1 $part_way --num-epochs 3 --model-prefix B --best-metric place-rmse
	train 1 $part_way --model-prefix B --best-metric place-rmse --resume auto
	[ "$(grep '^Epoch.4. Validation-' "$log")" = "$last" ] || fail "resumed: $(grep '^Epoch.4. Val' "$log")"

	part "--evaluate and --predict"
	train 1 --network ./heads.so --load A-0005.h5 $table $plain --evaluate
	expect 'loss [0-9.]+, class-accuracy [0-9.]+, class-cross-entropy [0-9.]+, place-mse [0-9.]+, flag-bce'
	train 2 --network ./heads.so --load A-0005.h5 $table $plain --predict p.csv
	head=id,target0,target1,target2,target3,value0,value1,value2,value3,value4,value5
	[ "$(head -n 1 p.csv)" = $head ] || fail "p.csv"
	awk -F, 'NR > 1 { s = $6 + $7 + $8 - 1; bad += s * s > 1e-10 || $11 < 0 || $11 > 1 }
		END { exit bad > 0 || NR != 61 }' p.csv || fail "p.csv: $(head -n 3 p.csv)"
	train 1 --network ./heads.so --load A-0005.h5 $table $plain --predict p.npy
	head -c 128 p.npy | grep -aq "(60, 6)" || fail "p.npy"
	heads="class:softmax,place:mse,flag:bce, and this run has class:softmax,place:huber"
	refuse "A-0005.h5 was saved with objective $heads" $two --label-columns class,x,y \
		--model-prefix A --num-epochs 6 --resume auto
fi
finish
