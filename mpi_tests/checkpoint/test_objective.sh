#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --objective: the loss of a network that leaves it open, its settings, and what checkpoints hold of
# them. test_user_model.sh has networks that end in a loss of their own.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

needs_files
export OMP_NUM_THREADS=1
plain="--batch-size 5 --log-prefix none --log-time 0 --devices ref"
small_set set 60 20
data="--data-dir set --lr 0.001 $plain"

# refuse REGEX ARGUMENT...: exit status 2, one error
refuse() {
	local regex=$1
	shift
	run_limited 60 1 "$@"
	[ $status = 2 ] || fail "exit status $status, not 2, of $*"
	expect_count 1 "error: $regex"
}

part "names"
refuse '--objective hubr: unknown; the nearest is huber; known losses are: softmax mse mae huber bce dice' \
	--network mlp --objective hubr $data
refuse '--objective cross-entropy: unknown; the nearest is softmax; known' --network mlp --objective cross-entropy $data
refuse '--loss mse: the network.s loss is softmax cross-entropy, .*; --objective mse chooses the loss' \
	--network mlp --loss mse $data
refuse '--loss: unknown metric "softmax".*; --objective softmax chooses the loss' --network mlp --loss softmax $data
refuse '--huber-delta is a setting of huber, not of mse' --network mlp --objective mse --huber-delta 2 $data
refuse '--huber-delta is a setting of huber, not of softmax' --network mlp --huber-delta 2 $data
refuse '--top-k 3 with --objective mse: its targets are values' --network mlp --objective mse --top-k 3 $data
refuse '--label-smoothing 0.1 with --objective bce: its targets are values' --network mlp --objective bce \
	--label-smoothing 0.1 $data
refuse '--num-classes 1: at least 2 are needed' --network mlp --num-classes 1 $data
refuse 'network mlp has 4 outputs, one for each target \(--num-classes\); set has 1 a sample' \
	--network mlp --objective mse --num-classes 4 $data
run_limited 60 1 --network mlp --objective bce $data
expect 'error: \S+: bce: target 0 of sample \d+ is \d; targets are probabilities, from 0 to 1'
train 1 --help huber
expect '^settings of huber:'
expect '^  --huber-delta D .*default 1'
train 1 --help mse
expect '^mse: mean squared error'
train 1 --help-all
expect '^settings of huber:'
expect '^  softmax +softmax cross-entropy'

part "all losses train, on random data, with as many outputs as there are targets"
for loss in mse mae huber bce; do
	train 3 --network mlp --benchmark 1 --objective $loss --num-classes 3 --num-batches 2 --num-epochs 2 --lr 0.01 \
		--kv-store dist_sync $plain
	expect "^Epoch\[1\] Train-$loss=0\.[0-9]+$"
done
train 1 --network lenet --objective mse --num-classes 3 --summary
expect '^mse +'

part "a checkpoint has the objective and its settings"
train 1 --network mlp --objective Huber --huber-delta 2 $data --num-epochs 2 --model-prefix V
last() { grep -o 'Validation-huber=.*' "$log" | tail -n 1; }
trained=$(last)
train 1 --evaluate --load V-0002.h5 $data
[ "$(last)" = "$trained" ] || fail "$(last) and not $trained"
expect '^options from V-0002.h5: network mlp, objective huber, huber-delta 2, num-classes 1$'
train 1 --network mlp --resume V-0001.h5 --num-epochs 2 $data --model-prefix W
[ "$(last)" = "$trained" ] || fail "after it resumed: $(last) and not $trained"
same_model V-0002.h5 W-0002.h5 || fail "a run that resumed without --objective has other bits"
train 1 --predict V.csv --load V-0002.h5 $data
[ "$(head -n 1 V.csv)" = id,target0,value0 ] || fail "V.csv begins $(head -n 1 V.csv)"
refuse '--objective mae: V-0002.h5 was saved with objective huber; leave the option out' --evaluate \
	--objective mae --load V-0002.h5 $data
refuse '--objective mae: V-0002.h5 was saved with objective huber' \
	--predict X.csv --objective mae --load V-0002.h5 $data
refuse '--huber-delta 1: V-0002.h5 was saved with huber-delta 2' --evaluate --huber-delta 1 --load V-0002.h5 $data
refuse 'V-0002.h5 was saved with objective huber, and this run has mse; --override objective' --network mlp \
	--objective mse --resume auto --model-prefix V --num-epochs 3 $data
run_limited 60 1 --network mlp --huber-delta 3 --resume auto --model-prefix V --num-epochs 3 $data
expect 'error: V-0002.h5 was saved with huber-delta 2, and this run has 3; --override huber-delta'
train 1 --network mlp --objective softmax --load V-0002.h5 --skip-mismatch --num-epochs 1 $data
expect '^Epoch\[0\] Train-cross-entropy='

part "metrics of a whole validation, over several workers"
expected=$(awk -F, 'NR > 1 { n++; t[n] = $2; mean += $2; e += ($3 - $2) ^ 2 }
	END { mean /= n; for (i = 1; i <= n; i++) s += (t[i] - mean) ^ 2; printf "%.5f", 1 - e / s }' V.csv)
for np in 1 3; do
	train $np --evaluate --load V-0002.h5 --loss r2 --kv-store dist_allreduce $data
	found=$(sed -n 's/^Epoch.*Validation-r2=//p' "$log")
	awk "BEGIN { d = $found - $expected; exit !(d < 2e-5 && d > -2e-5) }" || fail "r2 is $found, not $expected"
done
train 3 --network mlp $data --num-epochs 1 --kv-store dist_allreduce --loss recall,iou,dice-score --best-metric iou \
	--model-prefix C
expect '^Epoch\[0\] Validation-recall=0\.'
expect_none 'Train-(recall|iou|dice)'
expect '^best so far: iou '
for np in 1 3; do
	train $np --evaluate --load C-0001.h5 --loss recall,iou --kv-store dist_allreduce $data
	grep -E '^(class|confusion of class) |Validation-(recall|iou)=' "$log" >classes.$np
done
cmp classes.1 classes.3 || fail "other classes with 3 workers"
[ "$(grep -c '^confusion of class' classes.1)" = 10 ] || fail "$(cat classes.1)"
awk '/^confusion/ { for (i = 5; i <= NF; i++) n += $i } END { exit n != 20 }' classes.1 || fail "not 20 predictions"
refuse 'auc: of two classes, and this network has 10' --network mlp --loss auc $data

part "classes with weights, and one that is ignored"
weights=1,1,1,1,1,1,1,1,1,1
train 1 --network mlp $data --num-epochs 1
plainly=$(grep -o 'Validation-.*' "$log")
train 1 --network mlp $data --num-epochs 1 --class-weights $weights --model-prefix D
[ "$(grep -o 'Validation-[^l].*' "$log")" = "$plainly" ] || fail "weights of 1: $(grep -o 'Validation-.*' "$log")"
expect '^training minimises loss-by-sample: .*; cross-entropy is the mean of the targets that count, by weight'
[ "$(sed -n 's/.*-loss-by-sample=//p' "$log")" = "$(sed -n 's/.*-cross-entropy=//p' "$log")" ] || fail "weights of 1"
train 3 --network mlp $data --num-epochs 2 --class-weights 1,2,3,4,5,6,7,8,9,.5 --ignore-class 3 --model-prefix D \
	--overwrite 1 --kv-store dist_sync
last() { grep -o 'Validation-.*' "$log" | tail -n 2; }
trained=$(last)
train 3 --network mlp $data --num-epochs 2 --resume D-0001.h5 --kv-store dist_sync
[ "$(last)" = "$trained" ] || fail "after it resumed: $(last)"
refuse '--class-weights 1,1.*: D-0002.h5 was saved with class-weights 1,2,3,4' --evaluate --load D-0002.h5 \
	--class-weights $weights $data
refuse 'network mlp: 1,2: 2 weights, and there are 10 classes \(--class-weights\)' --network mlp \
	--class-weights 1,2 $data
refuse 'network mlp: 1,x: numbers above 0 .* \(--class-weights\)' --network mlp --class-weights 1,x $data
refuse '--class-weights is a setting of softmax, not of mse' --network mlp --objective mse --class-weights 1 $data
printf 'the cat sees\nthe dog sees\na bird sings\nthe bird sees the cat\n' >train.txt
refuse '--ignore-class: of a text number 0' --network lstm --num-layers 1 --num-hidden 4 --num-embed 4 \
	--data-train train.txt --text words --buckets 6 --num-epochs 1 --ignore-class 2 ${plain/size 5/size 4}
refuse 'network lstm: its loss is mean squared error; a text needs one of classes' --network lstm --num-layers 1 \
	--num-hidden 4 --num-embed 4 --data-train train.txt --text words --buckets 6 --num-epochs 1 \
	--objective mse ${plain/size 5/size 4}
refuse 'network mlp: regionloss dice needs an input' --network mlp --objective dice $data

if has_files; then
	part "another run from its parameters has its objective and that's settings"
	train 1 --network mlp $data --objective huber --huber-delta 2 --num-classes 1 --num-epochs 1 --model-prefix H
	train 1 --network mlp $data --load H-0001.h5 --num-epochs 1
	expect '^options from H-0001.h5: .*objective huber, huber-delta 2'
fi

if ! grep -q '^EXPORT_DYNAMIC = *$' "$BUILDDIR/Makefile"; then
	part "a loss of the user's own: softmax's where gamma is 0, its setting, what a checkpoint holds"
	compile() { # SOURCE OBJECT
		$CC -O2 -std=c11 -Wall -shared -fPIC -I"$SRCDIR/include" -I"$SRCDIR" "$1" -o "$2" || fail "$CC $1"
	}
	compile "$SRCDIR/jobs/examples/focal.c" focal.so
	compile "$SRCDIR/jobs/examples/regression.c" own.so
	"$TRAINER" --help ./focal.so >help 2>&1
	grep -q -e '--focal-gamma G  *the less .*(default 2)' help || fail "--help: $(cat help)"
	short="--network mlp $data --num-epochs 2"
	train 1 $short --loss nll
	sed -n 's/.*cross-entropy=//p' "$log" >softmax.losses
	train 1 $short --objective ./focal.so --focal-gamma 0 --loss ce
	sed -n 's/.*focal=//p' "$log" >focal.losses
	[ "$(wc -l <focal.losses)" = 4 ] || fail "no losses"
	cmp -s focal.losses softmax.losses ||
		fail "gamma 0: $(cat focal.losses), softmax: $(cat softmax.losses)"
	refuse 'network lstm: its loss is .*; a text needs one of classes that leaves out' --network lstm \
		--num-layers 1 --num-hidden 4 --num-embed 4 --data-train train.txt --text words --buckets 6 \
		--num-epochs 1 --objective ./focal.so ${plain/size 5/size 4}
	train 3 $short --objective ./focal.so --focal-gamma 1.5 --kv-store dist_allreduce \
		--best-metric focal --loss recall --model-prefix L
	expect '^Epoch\[1\] Validation-focal='
	expect '^Epoch\[1\] Validation-recall='
	expect '^best so far: focal '
	run_limited 60 1 --network lenet $data --num-epochs 1 --focal-gamma 2
	expect 'error: .*focal-gamma'
	run_limited 60 1 --network ./focal.so $data
	expect 'error: --network ./focal.so: .*not a model.*it is a loss, for --objective'
	run_limited 60 1 --network mlp --objective ./own.so $data
	expect 'error: --objective ./own.so: .*not a loss.*it is a model, for --network'
	run_limited 60 1 --network ./own.so --objective ./focal.so $data
	expect 'error: --objective ./focal.so: network regression ends in a loss of its own'
	if has_files; then
		run_limited 60 1 --evaluate --load L-0002.h5 $data
		[ $status = 2 ] || fail "exit status $status, not 2: a checkpoint loads no program"
		expect 'error: L-0002.h5: its objective is one of your own, focal: name its file, --objective'
		train 1 --evaluate --load L-0002.h5 --objective ./focal.so $data
		expect '^options from L-0002.h5: .*focal-gamma 1.5'
		run_limited 60 1 --resume L-0002.h5 $short --num-epochs 3 --objective ./focal.so --focal-gamma 2
		expect 'error: L-0002.h5 was saved with focal-gamma 1.5, and this run has 2'
	fi
	sed 's/\.name = "focal",$/.name = "mse",/; s/^	MU_LOSS_OF_CLASSES,//' "$SRCDIR/jobs/examples/focal.c" >wrong.c
	compile wrong.c wrong.so
	run_limited 60 1 --network mlp --objective ./wrong.so $data
	expect 'error: --objective ./wrong.so: its struct mu_loss needs sums, targets and measure'
	sed 's/\.name = "focal",$/.name = "mse",/' "$SRCDIR/jobs/examples/focal.c" >wrong.c
	compile wrong.c twice.so
	run_limited 60 1 --network mlp --objective ./twice.so $data
	expect 'error: --objective ./twice.so: there is a loss mse already: rename it'

	part "a network's own loss: its metrics are known once it is built, and decide"
	cat >sure.c <<'END'
#include <muster/metrics.h>
#include <muster/net.h>
#undef MU_LOSS_EXPORT
#undef MU_METRICS_OF_CLASSES
#define MU_LOSS_EXPORT(loss) static const struct mu_loss *const brought = &(loss)
#define MU_METRICS_OF_CLASSES {.name = "sure", .other = "hits", .printed = "sure-share", .better = 1, \
	.use = MU_METRIC_CHOSEN, .value = mu_metric_accuracy}
#include "jobs/examples/focal.c"
static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_fully_connected last = {.units = (int)config->classes};
	static const struct settings values = {.gamma = 1};

	brought->add(net, mu_net_fully_connected(net, mu_net_input(net), &last, NULL), brought, &values);
	return MU_OK;
}
static const struct mu_network network = {
	.name = "sure", .shape = MU_SAMPLE(1, 28, 28), .classes = 10, .build = build};
MU_NETWORK_EXPORT(network);
END
	compile sure.c sure.so
	sure="--network ./sure.so $data --num-epochs 2"
	for np in 1 3; do
		train $np $sure --kv-store dist_allreduce --loss sure --best-metric hits --early-stopping 5 \
			--model-prefix S --overwrite 1
		expect_count 2 '^Epoch\[\d\] Validation-sure-share='
		expect '^best so far: sure 0\.'
	done
	train 1 $sure --num-epochs 3 --resume auto --model-prefix S --best-metric sure
	expect_none "the checkpoint's best validation is of"
	for wrong in "--best-metric sur" "--loss accuracy"; do
		run_limited 60 1 $sure $wrong
		[ $status = 2 ] || fail "exit status $status, not 2, of $wrong"
		expect_count 1 "error: ${wrong%% *}.*: the network's loss is focal loss .* metrics are: focal, sure"
	done
	run_limited 60 1 --network mlp $data --best-metric sure
	expect_count 1 'error: --best-metric: "sure" is not known'
fi

if ! grep -q '^EXPORT_DYNAMIC = *$' "$BUILDDIR/Makefile"; then
	part "two outputs, a loss and a target for each: both are learnt, the value only by its weight"
	compile "$SRCDIR/jobs/examples/two_heads.c" two_heads.so
	awk 'BEGIN {
		srand(2)
		print "a,b,class,value"
		for (i = 0; i < 121; i++) {
			a = int(64 * (2 * rand() - 1)) / 64
			b = int(64 * (2 * rand() - 1)) / 64
			above = (a + b > 0)
			printf("%s,%s,%d,%s\n", a, b, above, a / 2 - b / 4 + 2)
		}
	}' >two.csv
	heads="--network ./two_heads.so --data-train two.csv --data-val two.csv --label-columns class,value"
	heads="$heads --lr 0.02 --num-epochs 40 ${plain/size 5/size 20}"
	# Of the last validation: ends METRIC CONDITION
	ends() {
		sed -n "s/^Epoch.39. Validation-$1=//p" "$log" | awk "{ good = (\$1 $2) } END { exit !good }" ||
			fail "$1 is not $2: $(grep 'Epoch.39' "$log")"
	}
	for np in 1 3; do
		train $np $heads --kv-store dist_allreduce --model-prefix T$np
		ends class-accuracy '> 0.9'
		ends value-mse '< 0.01'
		expect '^best so far: loss '
	done
	train 1 $heads --value-weight 0
	ends class-accuracy '> 0.9'
	ends value-mse '> 1'
	if has_files; then
		train 1 --network ./two_heads.so --load T3-0040.h5 --data-val two.csv --label-columns class,value \
			--predict two-p.csv $plain
		[ "$(head -n 1 two-p.csv)" = id,target0,target1,value0,value1,value2 ] || fail "two-p.csv"
	fi
fi

part "one of before, without the attributes, is of classes"
train 1 --network mlp $data --num-epochs 1 --model-prefix O
python=$(find_h5py)
if [ -n "$python" ]; then
	$python -c 'import h5py
a = h5py.File("O-0001.h5", "a").attrs
for name in "objective", "class-weights", "ignore-class":
	del a[name]' || fail "no O-0001.h5"
	refuse '--objective mse: O-0001.h5 was saved with objective softmax' --network mlp --evaluate --objective mse \
		--load O-0001.h5 $data
	train 1 --network mlp --evaluate --load O-0001.h5 $data
	train 1 --network mlp --resume auto --model-prefix O --num-epochs 2 $data
	refuse 'O-0002.h5 was saved with objective softmax, and this run has mse' --network mlp --objective mse \
		--resume auto --model-prefix O --num-epochs 3 $data
fi

finish
