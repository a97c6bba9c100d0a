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

# expected SMOOTHING FILE: samples, and in FILE what gradient descent gives: name, value. Train-loss is that of the
# last update.
expected() {
	awk -v lr=2 -v epochs=5 -v smooth="$1" -v want="$2" 'BEGIN {
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
		split("", hits)
		split("", targets)
		split("", found)
		split("", score)
		ce = smoothed = share = right = second = counted = squared = bce = good = 0
		for (i = 0; i < n; i++) {
			for (k = 0; k < 6; k++)
				o[k] = w[k, 0] * a[i] + w[k, 1] * b[i] + w[k, 2]
			sum = exp(o[0]) + exp(o[1]) + exp(o[2])
			t = class[i]
			f = t == 1 ? 2 : 1
			all = 0
			for (k = 0; k < 3; k++) {
				q[k] = ((k == t) * (1 - smooth) + smooth / 3) * (k == 1 ? 2 : 1)
				all += t == 7 ? 0 : q[k]
				smoothed += t == 7 ? 0 : q[k] * (log(sum) - o[k])
			}
			for (k = 0; k < 3; k++)
				d[k] = t == 7 ? 0 : all * exp(o[k]) / sum - q[k]
			if (t != 7) {
				ce += f * (log(sum) - o[t])
				share += f
				counted++
				best = 0
				for (k = 1; k < 3; k++)
					if (o[k] > o[best])
						best = k
				right += best == t
				larger = 0
				for (k = 0; k < 3; k++)
					larger += o[k] > o[t]
				second += larger < 2
				targets[t]++
				found[best]++
				hits[t] += best == t
			}
			squared += (o[3] - x[i]) ^ 2 + (o[4] - y[i]) ^ 2
			d[3] = 0.25 * (o[3] - x[i])
			d[4] = 0.25 * (o[4] - y[i])
			p = 1 / (1 + exp(-o[5]))
			bce -= flag[i] ? log(p) : log(1 - p)
			good += (p >= 0.5) == flag[i]
			score[i] = p
			d[5] = 0.5 * (p - flag[i])
			for (k = 0; k < 6; k++) {
				g[k, 0] += d[k] * a[i]
				g[k, 1] += d[k] * b[i]
				g[k, 2] += d[k]
			}
		}
		if (e < epochs)
			trained = (smoothed + 0.25 * squared / 2 + 0.5 * bce) / n
		for (k = 0; k < 6 && e < epochs; k++)
			for (j = 0; j < 3; j++)
				w[k, j] -= lr * g[k, j] / n
	}
	for (k = 0; k < 3; k++) {
		recall += hits[k] / targets[k] / 3
		iou += hits[k] / (targets[k] + found[k] - hits[k]) / 3
		dice += 2 * hits[k] / (targets[k] + found[k]) / 3
	}
	for (i = 0; i < n; i++)
		for (k = 0; k < n; k++)
			if (flag[i] && !flag[k]) {
				pairs++
				area += score[i] > score[k] ? 1 : score[i] == score[k] ? 0.5 : 0
			}
	for (k = 3; k < 5; k++) {
		mean = errors = around = 0
		for (i = 0; i < n; i++)
			mean += (k == 3 ? x[i] : y[i]) / n
		for (i = 0; i < n; i++) {
			t = k == 3 ? x[i] : y[i]
			around += (t - mean) ^ 2
			errors += (w[k, 0] * a[i] + w[k, 1] * b[i] + w[k, 2] - t) ^ 2
		}
		r2 += (1 - errors / around) / 2
	}
	print "Train-loss", trained >want
	print "Validation-loss", (ce + 0.25 * squared / 2 + 0.5 * bce) / n >want
	print "Validation-class-accuracy", right / counted >want
	print "Validation-class-top_k_accuracy_2", second / counted >want
	print "Validation-class-cross-entropy", ce / share >want
	print "Validation-class-recall", recall >want
	print "Validation-class-iou", iou >want
	print "Validation-class-dice-score", dice >want
	print "Validation-place-mse", squared / 2 / n >want
	print "Validation-place-rmse", sqrt(squared / 2 / n) >want
	print "Validation-place-r2", r2 >want
	print "Validation-flag-bce", bce / n >want
	print "Validation-flag-binary-accuracy", good / n >want
	print "Validation-flag-auc", area / pairs >want
	for (k = 0; k < 3; k++)
		print k, targets[k], found[k] + 0, hits[k] + 0 >"classes.txt"
	}' >t.csv
}
expected 0.2 smoothed.txt
expected 0 want.txt
table="--data-val t.csv --label-columns class,x,y,flag"
rule="--optimizer sgd --mom 0 --wd 0 --lr 2 --num-epochs 5"
plain="--log-prefix none --log-time 0"
of_all="--loss place-rmse,class-recall,class-iou,class-dice-score,place-r2,flag-auc"
all="--network ./heads.so --data-train t.csv $table $rule $plain $of_all --top-k 2"

# The last epoch is as computed.
check() {
	local name want file=$1
	while read -r name want; do
		sed -n "s/^Epoch.4. $name=//p" "$log" |
			awk -v want="$want" '{ found = 1; d = $1 - want } END { exit !(found && d * d < 4e-11) }' ||
			fail "$name is not $want ($*): $(grep "Epoch.4. $name" "$log")"
	done <"$file"
	expect_none '^Epoch.*Train-.*-(recall|iou|dice-score|r2|auc)='
}

part "losses, metrics and updates are those of each head, by its weight, on any number of ranks"
for np in 1 2 3; do
	train $np $all --batch-size $((60 / np)) --kv-store dist_allreduce
	check want.txt "$np ranks"
done
train 3 $all --batch-size 30 --kv-store dist_sync --num-servers 1
check want.txt "a server"
train 1 $all --batch-size 60 --devices ref
check want.txt ref
train 1 $all --batch-size 60 --devices cpu:0,cpu:1
check want.txt "two devices"
train 1 $all --batch-size 60 --group2dev group0=cpu:0,group1=cpu:1,group2=cpu:1
check want.txt "stages that cut between heads"
for np in 1 3; do
	train $np $all --batch-size $((60 / np)) --kv-store dist_allreduce --label-smoothing 0.2
	check smoothed.txt "$np ranks, smoothed"
	expect '^label smoothing 0.2 in training of head class; metrics .*, and Train-loss, the sum, has the smoothed'
done

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
refuse "--top-k 4: $sum, which has no head of so many classes" $all --top-k 4
refuse "--best-metric: $sum, which has no place-iou; its metrics are: loss, class-accuracy, class-top-k, class-ce, " \
	$all --best-metric place-iou
refuse '--best-metric class-top-k needs --top-k, from 1 to 3' $all --top-k 0 --best-metric class-top-k
refuse 'auc: of two classes, and head class has 3' $all --loss class-auc
refuse "--best-metric: $sum, which has no place-errors; its metrics are: loss, class-acc" $all \
	--best-metric place-errors
refuse '--loss place-bce: the network.s loss is the sum' $all --loss place-bce
refuse '--loss place-foo: the network.s loss is the sum .*, whose metrics are: loss, class-acc' $all --loss place-foo
refuse '--best-metric: "class-iou2" is not known; choose one of: none accuracy' --network mlp --data-train t.csv \
	$table $plain --best-metric class-iou2
refuse '--target-accuracy: the network.s loss is the sum .*, which has no accuracy' $all --target-accuracy 0.5
refuse '--objective mse: network heads ends in a loss of its own' $all --objective mse
refuse '--time-block: network heads cannot work on blocks of steps' $all --time-block 2
refuse 'network heads has 4 targets a sample, in this order: class 1, place 2, flag 1; t.csv has 3' \
	$two --network ./heads.so --label-columns class,x,y
sed '1s/class/kind/; 1s/flag/sign/' t.csv >other.csv
other="$all --data-train other.csv --data-val other.csv"
refuse 'other.csv: head class: target 0 of sample \d+ is [-0-9.]+; it is a class, which must be .* 0 to 2' \
	$other --label-columns x,kind,y,sign
refuse 'other.csv: flag: target 0 of sample \d+ is [-0-9.]+; targets are probabilities, .* 0 to 1' $other \
	--label-columns kind,x,sign,y
refuse 'network heads has targets in this order: class 1, place 2, flag 1; --label-columns x,class,y,flag is another' \
	$all --label-columns x,class,y,flag
refuse 'network heads has targets in this order: .*; --label-columns class,x,flag,y is another' $all \
	--label-columns class,x,flag,y
values='{.name = "place", .loss = "mse", .weight = 1}'
compile values "-DHEADS=$values"
sum='the network.s loss is the sum of place mse'
values="--network ./values.so --data-train t.csv --data-val t.csv $rule $plain --batch-size 60"
values="$values --label-columns x,y,class"
refuse "--top-k 2: $sum, which has no such metric" $values --top-k 2
refuse "--label-smoothing 0.1: $sum, which has no such targets" $values --label-smoothing 0.1
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
heads 'head a: network heads: 5: 1 weight, and there are 3 classes .its setting class-weights.$' \
	'{.name = "a", .loss = "softmax", .settings = "class-weights=5", .weight = 1}'
heads 'head a: network heads: regionloss a_dice needs an input \(n, 3, h, w\)' \
	'{.name = "a", .loss = "dice", .weight = 1}'

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
	train 1 $all --batch-size 60 --model-prefix C --best-metric class-iou
	expect '^best so far: class-iou '
	for np in 1 3; do
		train $np --network ./heads.so --load C-0005.h5 $table $plain --evaluate $of_all --top-k 2 \
			--kv-store dist_allreduce
		expect 'loss [0-9.]+, class-accuracy [0-9.]+, class-top_k_accuracy_2 [0-9.]+, class-cross'
		expect 'place-r2 [0-9.]+, flag-auc [0-9.]+; validated 60 samples'
		grep -E '^head class, (class|confusion)|Validation-(class|place|flag)' "$log" >told.$np
	done
	cmp told.1 told.3 || fail "evaluated by 3 workers: $(diff told.1 told.3)"
	sed -n 's/^head class, class \(.\): \(.*\) targets, \(.*\) predicted, \(.*\) of.*/\1 \2 \3 \4/p' told.1 |
		cmp - classes.txt || fail "classes: $(cat told.1 classes.txt)"
	[ "$(grep -c '^head class, confusion of class [0-2]: [0-9 ]*$' told.1)" = 3 ] || fail "$(cat told.1)"
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
