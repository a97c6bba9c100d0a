#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Arrays of samples end to end: a linear regression on a table ends where the normal equations do,
# on one rank and with servers; predictions, checkpoints, held-out samples; and every answer to data
# that do not fit.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

# Integers from 0 to 255 as a .npy file of bytes: npy FILE SHAPE NUMBER...
npy() {
	local file=$1 header
	header="{'descr': '|u1', 'fortran_order': False, 'shape': ($2), }"
	shift 2
	{
		printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header"
		printf "$(printf '\\x%02x' "$@")"
	} >"$file"
}

run() { timeout 100 "$TRAINER" "$@" >"$log" 2>&1; }
refuse() { # PATTERN OPTION...
	local pattern=$1
	shift
	run "$@" && fail "was not refused: $*"
	expect "error: .*$pattern"
}
log=train.log

# 240 samples of 4 inputs and 2 targets, numbers that float32 holds exactly.
awk 'BEGIN {
	srand(3)
	print "a,b,c,d,price,area"
	for (i = 0; i < 240; i++) {
		for (k = 0; k < 4; k++) {
			sum = -6
			for (j = 0; j < 12; j++)
				sum += rand()
			x[k] = int(128 * sum) / 128
			printf "%s,", x[k]
		}
		price = 2 * x[0] - x[1] + x[2] / 2 + 3 + rand() / 4
		printf "%s,%s\n", int(1024 * price) / 1024, int(1024 * (x[3] - x[0] + rand())) / 1024
	}
}' >table.csv

# The root mean square error of predictions is that of the best linear function: of the normal
# equations of table.csv, by elimination. compare PREDICTIONS TARGETS
compare() {
	awk -F , -v targets="$2" '
	FNR == 1 { next }
	NR == FNR {
		n++
		for (k = 1; k <= 4; k++)
			x[n, k] = $k
		x[n, 5] = 1
		for (t = 1; t <= targets; t++)
			y[n, t] = $(4 + t)
		next
	}
	{
		m++
		for (t = 1; t <= targets; t++)
			found += ($(1 + targets + t) - y[m, t]) ^ 2
	}
	END {
		for (t = 1; t <= targets; t++) {
			split("", a)
			split("", b)
			for (s = 1; s <= n; s++)
				for (i = 1; i <= 5; i++) {
					b[i] += x[s, i] * y[s, t]
					for (j = 1; j <= 5; j++)
						a[i, j] += x[s, i] * x[s, j]
				}
			for (i = 1; i <= 5; i++)
				for (k = 1; k <= 5; k++)
					if (k != i) {
						f = a[k, i] / a[i, i]
						b[k] -= f * b[i]
						for (j = i; j <= 5; j++)
							a[k, j] -= f * a[i, j]
					}
			for (s = 1; s <= n; s++) {
				d = -y[s, t]
				for (i = 1; i <= 5; i++)
					d += x[s, i] * b[i] / a[i, i]
				best += d * d
			}
		}
		d = sqrt(found / n / targets) - sqrt(best / n / targets)
		print m " predictions; " d " above the smallest error"
		exit !(m == n && d < 1e-6 && d > -1e-6)
	}' table.csv "$1" >compared || fail "rmse: $(cat compared)"
}

model="--network mlp --num-layers 0 --objective mse --lr 0.1 --lr-schedule cosine --wd 0 --num-epochs 300"
two="--data-train table.csv --label-columns price,area --batch-size 240 --model-prefix one --save-period 300"
three="--data-train one.csv --batch-size 120 --model-prefix three --save-period 300"

part "one rank, two targets"
run $model $two || fail "exit status $?"
expect 'shape .4., 2 values: table.csv .float32., numbers as they are; 2 targets of table.csv'
run --load one-0300.h5 --data-val table.csv --label-columns price,area --predict p.csv || fail "exit status $?"
[ "$(head -n 1 p.csv)" = id,target0,target1,value0,value1 ] || fail "names: $(head -n 1 p.csv)"
compare p.csv 2
run --load one-0300.h5 --data-val table.csv --label-columns price,area --evaluate || fail "exit status $?"
expect 'one-0300.h5: mse 0\.[0-9]*; validated 240 samples'

part "predictions as an array, with and without targets"
cut -d , -f 1-4 table.csv >inputs.csv
run --load one-0300.h5 --data-val inputs.csv --label-columns none --predict p.npy || fail "exit status $?"
expect 'predicted 240 samples'
[ "$(wc -c <p.npy)" = $((192 + 240 * 2 * 4)) ] || fail "p.npy has $(wc -c <p.npy) bytes"
head -c 90 p.npy | tr -d '\0' | grep -aq "'descr': '[<>]f4', 'fortran_order': False, 'shape': (240, 2), }" ||
	fail "header of p.npy"
# What was predicted is an array that is read, and is what the other file says.
run $model --num-epochs 1 --data-train inputs.csv --label-columns none --label-train p.npy --batch-size 240 \
	--load one-0300.h5 || fail "exit status $?"
expect 'Epoch\[0\] Train-mse=0\.000000$'

part "two workers and a server, and the last column as the target"
cut -d , -f 1-5 table.csv >one.csv
timeout 100 $MPIRUN -np 3 "$TRAINER" $model --kv-store dist_sync --num-servers 1 $three >"$log" 2>&1 ||
	fail "exit status $?"
expect 'one.csv: the last one of 5 columns is the target, column price'
run --load three-0300.h5 --data-val one.csv --predict p.csv || fail "exit status $?"
compare p.csv 1

part "checkpoints know the data and the model"
refuse 'was saved with (data|other training data)' $model --num-epochs 301 $three --label-columns a --resume auto
run $model --num-epochs 301 $two --resume auto || fail "exit status $?"
expect 'Epoch\[300\] Train-mse'
refuse 'samples .*4.*5|needs|shape|5' --load one-0300.h5 --data-val one.csv --label-columns none --evaluate

part "classes, other shapes, parts of the data"
npy x.npy '12, 1, 2, 2' 0 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 \
	2
npy y.npy '12,' 0 1 2 0 1 2 0 1 2 0 1 2
npy rows.npy '12, 3' 0 0 1 0 1 0 1 0 0 0 0 1 0 1 0 1 0 0 0 0 1 0 1 0 1 0 0 0 0 1 0 1 0 1 0 0
npy short.npy '11,' 0 1 2 0 1 2 0 1 2 0 1
classes="--network mlp --num-epochs 1 --batch-size 2"
run $classes --data-train x.npy --label-train y.npy --val-split 0.25 --num-examples 8 --shuffle 0 ||
	fail "exit status $?"
expect '8 samples for training, 3 for validation, shape .1, 2, 2., 3 classes: x.npy .uint8., numbers as they are; 1 t'
expect '1 target of y.npy .uint8., classes'
expect 'Validation-accuracy'
run $classes --data-train x.npy --label-train y.npy --data-val x.npy --label-val y.npy || fail "exit status $?"
expect 'Validation-accuracy'
run $classes --data-train x.npy --label-train y.npy --objective mse || fail "exit status $?"
expect 'Train-mse'
printf 'a,t\n1,0\n2,1\n,0\n4,1\n5,nan\n6,1\n' >holes.csv
run $classes --data-train holes.csv --skip-bad-records 1 --objective mse || fail "exit status $?"
expect_none "skip-bad-records 1 has no effect"
expect 'skipped: holes.csv, sample 2|skipped: holes.csv: sample 2'
expect 'skipped: .*sample 4, column t is NaN'

if in_tier full; then
	part "an array that is too large for memory is read by rows"
	{
		printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' \
			"{'descr': '>i2', 'fortran_order': False, 'shape': (1100, 500000), }"
		head -c 998 /dev/zero
		printf '\x01\x02'
	} >large.npy
	truncate -s $((128 + 1100 * 1000000)) large.npy
	awk 'BEGIN { for (i = 0; i < 1100; i++) print i % 2 }' >large.csv
	run --network mlp --num-layers 0 --objective mse --initializer one --lr 0 --num-epochs 1 --batch-size 4 \
		--shuffle 0 --num-examples 4 --data-train large.npy --label-train large.csv --model-prefix large ||
		fail "exit status $?"
	expect 'shape .500000., 1 value: large.npy .int16.'
	# Number 499 of sample 0 is 258, all others are 0: the sum of weights 1.
	run --load large-0001.h5 --data-val large.npy --label-val large.csv --max-val-samples 4 --batch-size 4 \
		--predict large-p.csv || fail "exit status $?"
	head -n 3 large-p.csv | tail -n 2 | tr '\n' ' ' | grep -q '^0,0,258 1,1,0 $' ||
		fail "predictions: $(head -n 3 large-p.csv)"
	rm large.npy large-*
fi

part "volumes, in a network for images"
npy volumes.npy '6, 1, 16, 16, 16' $(seq 0 24575 | awk '{ print ($1 * 7 + int($1 / 4096) * 40) % 256 }')
npy parts.npy '6,' 0 1 0 1 0 1
volumes="--network lenet --data-train volumes.npy --label-train parts.npy --batch-size 2 --lr 0.001 --log-time 0"
run $volumes --num-epochs 1 --model-prefix V && run $volumes --num-epochs 2 --model-prefix V --resume auto ||
	fail "exit status $?"
expect 'Resumed from "V-0001.h5"'
expect 'shape .1, 16, 16, 16., 2 classes'
losses() { sed -n "s/.*Epoch\[1\] Train-cross-entropy=\(.....\).*/\1/p" "$1"; }
cp "$log" cpu.log
run $volumes --num-epochs 2 --devices ref || fail "exit status $?"
[ -n "$(losses cpu.log)" ] && [ "$(losses cpu.log)" = "$(losses "$log")" ] ||
	fail "losses $(losses cpu.log) on cpu, $(losses "$log") on ref"
refuse 'vit-tiny: .* needs an input' --network vit-tiny --benchmark 1 --image-shape 3,16,16,16

part "what does not fit"
refuse 'one.csv: its targets are values, not classes .they are float32., and the loss, softmax.*--objective mse' \
	--network mlp --data-train one.csv
refuse 'rows.npy: has 3 targets a sample .integers..*numpy.argmax' $classes --data-train x.npy --label-train rows.npy
refuse 'x.npy has 12 samples, and short.npy has targets of 11' $classes --data-train x.npy --label-train short.npy
refuse 'x.npy: its targets are not known.*--label-train' $classes --data-train x.npy
refuse 'holes.csv:4:1: column a is missing.*--skip-bad-records' $classes --data-train holes.csv
refuse 'label 2; labels must be from 0 to 1.*--num-classes' $classes --data-train x.npy --label-train y.npy \
	--num-classes 2
refuse 'x.npy is read as|x.npy: network lstm reads sequences' --network lstm --data-train x.npy --label-train y.npy
refuse '--rgb-mean is a setting of colour images, not of arrays of numbers' $classes --data-train x.npy \
	--label-train y.npy --rgb-mean 1,2,3
refuse '--label-train is a setting of arrays of numbers in .npy.*, not of images in' \
	$classes --data-train list.lst --label-train y.npy
refuse '--label-columns is a setting of arrays .*, not of a folder of --data-dir' $classes --data-dir . \
	--label-columns a
refuse '--data-train-idx is a setting of colour images, not of arrays of numbers' $classes --data-train x.npy \
	--data-train-idx a
refuse 'label-val needs --data-val' $classes --data-train x.npy --label-train y.npy --label-val y.npy
refuse 'network lstm has hidden layers' --network lstm --num-layers -1 --benchmark 1

part "validation that does not fit training"
npy first.npy '4, 2' 1 2 3 4 5 6 7 8
npy zero.npy '4,' 0 1 0 1
npy two.npy '4, 2' 0 1 0 1 1 0 1 0
printf '0\n1\n-1\n0\n' >below.csv
printf '0\n0.5\n1\n0\n' >half.csv
linear="--network mlp --num-layers 0 --num-epochs 1 --batch-size 2 --data-train first.npy --data-val first.npy"
refuse 'below.csv: targets for validation are values, sample 2 has -1, those for training classes' $linear \
	--label-train zero.npy --label-val below.csv
refuse 'half.csv: targets for validation are values, .*, those for training classes' $linear --label-train zero.npy \
	--label-val half.csv
refuse 'two.npy: a sample for validation has 2 targets, one for training 1' $linear --label-train zero.npy \
	--label-val two.npy
refuse 'zero.npy: a sample for validation has 1 target, one for training 2' $linear --objective mse \
	--label-train two.npy --label-val zero.npy
printf 'a,b,t\n1,2,3\n4,5,6\n' >order.csv
printf 'b,a,t\n2,1,3\n5,4,6\n' >other.csv
linear="--network mlp --num-layers 0 --num-epochs 1 --batch-size 2 --objective mse"
refuse 'other.csv: its columns are b,a, those for training a,b' $linear --data-train order.csv --data-val other.csv

part "which columns are targets"
printf 'id,t\n0,1\n1,2\n2,3\n3,4\n' >named.csv
run $linear --data-train first.npy --label-train named.csv || fail "exit status $?"
expect 'named.csv: the last one of 2 columns is the target, column t'
expect '1 target of named.csv'
printf 'a,t\n1,2\n3,4\n5,6\n7,8\n' >pair.csv
run $linear --data-train pair.csv --label-train named.csv --label-columns t || fail "exit status $?"
expect 'shape .2., 1 value: pair.csv .*; 1 target of named.csv'
refuse '--label-columns t: zero.npy, which has the targets, is no table' $linear --data-train first.npy \
	--label-train zero.npy --label-columns t
printf 'a,t\n9007199254740993,1\n2,3\n' >whole.csv
refuse 'whole.csv:2:1: column a is 9007199254740993, an integer that float32 does not hold' $linear \
	--data-train whole.csv
npy marked.npy '4,' 0 255 1 0
run --network mlp --num-layers 0 --num-epochs 1 --batch-size 2 --data-train first.npy --label-train marked.npy \
	--ignore-class 255 || fail "exit status $?"
expect 'shape .2., 2 classes: first.npy'

if ! grep -q '^EXPORT_DYNAMIC = *$' "$BUILDDIR/Makefile"; then
	part "a class for each position"
	cat >positions.c <<-'END'
		#include <muster/net.h>
		static enum mu_status build(struct mu_net *net, const struct mu_net_config *c)
		{
			const struct mu_convolution one = {.filters = (int)c->classes, .kernel = {1, 1}};
			mu_net_objective(net, mu_net_convolution(net, mu_net_input(net), &one, "one"));
			return MU_OK;
		}
		static const struct mu_network positions = {.name = "positions", .shape = MU_SAMPLE(1, 2, 2),
			.classes = 2, .objective = "softmax", .training = {.lr = 0.1, .batch = 2}, .build = build};
		MU_NETWORK_EXPORT(positions);
	END
	$CC -O1 -std=c11 -shared -fPIC -I"$SRCDIR/include" positions.c -o positions.so || fail "positions.c"
	npy image.npy '4, 1, 2, 2' 9 0 0 9 0 9 9 0 9 9 0 0 0 0 9 9
	npy mask.npy '4, 2, 2' 1 0 0 1 0 1 1 0 1 1 0 0 0 0 1 1
	positions="--network ./positions.so --data-train image.npy --label-train mask.npy --num-epochs 1"
	run $positions --objective dice --loss iou --data-val image.npy --label-val mask.npy --model-prefix D ||
		fail "exit status $?"
	expect 'Validation-iou='
	refuse '--predict p.csv: the network has outputs for 4 positions of a sample.*--predict x.npy' \
		--network ./positions.so --load D-0001.h5 --data-val image.npy --label-val mask.npy --predict p.csv
	npy void.npy '4, 2, 2' 1 0 0 1 0 1 1 0 1 1 0 0 255 255 1 1
	refuse 'void.npy: its targets are integers up to 255, and only 3 of these 256 .* --ignore-class 255 says so' \
		$positions --label-train void.npy --batch-size 2
	run $positions --label-train void.npy --ignore-class 255 || fail "exit status $?"
	# shellcheck disable=SC2046 # 16 floats of 0.5
	npy soft.npy '4, 2, 2' $(printf '0 0 0 63 %.0s' $(seq 16))
	LC_ALL=C sed -i 's/|u1/<f4/' soft.npy
	refuse 'soft.npy: a sample.s targets are 2 x 2 values .*, needs the number of a class at each position' \
		$positions --label-train soft.npy
	refuse '--label-smoothing 0.1: the network.s loss is Dice .*, which has no such targets' $positions \
		--objective dice --label-smoothing 0.1
	refuse '--top-k 2: the network.s loss is Dice .*, which has no such metric' $positions --top-k 2 \
		--objective dice
fi

if ! grep -q '^EXPORT_DYNAMIC = *$' "$BUILDDIR/Makefile"; then
	part "predictions of a shape of their own: channels x and x x, or their softmax, on 1 and 3 ranks"
	cat >squares.c <<-'END'
		#include <muster/net.h>
		static enum mu_status build(struct mu_net *net, const struct mu_net_config *c)
		{
			const struct mu_convolution one = {.filters = 1, .kernel = {1, 1}, .no_bias = true};
			const int x = mu_net_convolution(net, mu_net_input(net), &one, "one");
			const int both[] = {x, mu_net_product(net, x, x, NULL)};
			(void)c;
			mu_net_objective(net, mu_net_concat(net, 2, both, NULL));
			return MU_OK;
		}
		static const struct mu_network squares = {.name = "squares", .shape = MU_SAMPLE(1, 2, 3),
			.classes = 2, .objective = "mse", .training = {.lr = 0.1, .batch = 2}, .build = build};
		MU_NETWORK_EXPORT(squares);
	END
	$CC -O1 -std=c11 -shared -fPIC -I"$SRCDIR/include" squares.c -o squares.so || fail "squares.c"
	numbers="0 1 2 3 1 0  2 2 1 0 3 1  1 3 0 2 2 1  0 0 1 3 2 2  3 1 2 0 1 1"
	# shellcheck disable=SC2046 # numbers
	npy five.npy '5, 1, 2, 3' $numbers
	# shellcheck disable=SC2046 # numbers
	npy pairs.npy '5, 2, 2, 3' $(seq 60 | awk '{ print $1 % 4 }')
	# shellcheck disable=SC2046 # numbers
	npy classes.npy '5, 2, 3' $(seq 30 | awk '{ print $1 % 2 }')
	squares="--network ./squares.so --initializer one --lr 0 --wd 0 --num-epochs 1 --num-classes 2 --batch-size 1"
	# Numbers of the array that differ from SHAPE and the formula: check FILE SOFTMAX
	check() {
		[ "$(wc -c <"$1")" = $((192 + 60 * 4)) ] || fail "$1 has $(wc -c <"$1") bytes"
		head -c 190 "$1" | tr -d '\0' | grep -aq "'shape': (5, 2, 2, 3), }" || fail "header of $1"
		tail -c +193 "$1" | od -An -v -tf4 | awk -v numbers="$numbers" -v softmax="$2" '
		BEGIN { split(numbers, x) }
		{
			for (i = 1; i <= NF; i++) {
				n = k % 6 + int(k / 12) * 6 + 1
				square = int(k / 6) % 2
				want = square ? x[n] * x[n] : x[n]
				if (softmax)
					want = 1 / (1 + exp((square ? 1 : -1) * (x[n] - x[n] * x[n])))
				d = $i - want
				bad += d > 1e-6 || d < -1e-6
				k++
			}
		}
		END { exit bad > 0 || k != 60 }' || fail "numbers of $1"
	}
	run $squares --data-train five.npy --label-train pairs.npy --model-prefix values || fail "exit status $?"
	run $squares --data-train five.npy --label-train classes.npy --objective softmax --model-prefix shares ||
		fail "exit status $?"
	for ranks in 1 3; do
		for kind in values shares; do
			target=pairs && [ $kind = shares ] && target=classes
			[ $ranks = 1 ] || kv="--kv-store dist_allreduce"
			timeout 100 $MPIRUN -np $ranks "$TRAINER" --network ./squares.so --load $kind-0001.h5 ${kv-} \
				--batch-size 1 --data-val five.npy --label-val $target.npy --predict $kind.npy \
				>"$log" 2>&1 || fail "exit status $?"
			softmax=0 && [ $kind = shares ] && softmax=1
			check $kind.npy $softmax
			[ $ranks = 1 ] || continue
			run --network ./squares.so --load $kind-0001.h5 --data-val five.npy --label-columns none \
				--predict none.npy || fail "without targets: exit status $?"
			check none.npy $softmax
		done
	done
	run --network ./squares.so --load shares-0001.h5 --data-val five.npy --label-val classes.npy --predict s.h5 ||
		fail "exit status $?"
	if command -v h5ls >shapes; then
		h5ls s.h5 >shapes
		grep -q 'probabilities .*{5, 2, 2, 3}' shapes && grep -q 'labels .*{5, 2, 3}' shapes ||
			fail "shapes of s.h5: $(cat shapes)"
	fi
fi

part "names of columns, where weights are loaded, too"
printf 'a,b,u,v\n1,2,3,4\n5,6,7,9\n2,1,0,1\n0,3,1,2\n' >uv.csv
printf 'a,b,v,u\n1,2,4,3\n5,6,9,7\n2,1,1,0\n0,3,2,1\n' >vu.csv
printf 'b,a,u,v\n2,1,3,4\n6,5,7,9\n1,2,0,1\n3,0,1,2\n' >ba.csv
linear="--network mlp --num-layers 0 --batch-size 2 --objective mse --num-epochs 2"
run $linear --data-train uv.csv --label-columns u,v --data-val uv.csv --model-prefix UV || fail "exit status $?"
same=$(grep -o 'Validation-mse=.*' "$log")
run $linear --data-train uv.csv --label-columns u,v --data-val vu.csv || fail "exit status $?"
[ "$(grep -o 'Validation-mse=.*' "$log")" = "$same" ] || fail "targets in another order"
refuse 'vu.csv: its targets are the columns u, those for training v' $linear --data-train first.npy \
	--label-train uv.csv --data-val first.npy --label-val vu.csv
load="--network mlp --num-layers 0 --load UV-0002.h5"
refuse 'UV-0002.h5 was trained with the columns a,b, and ba.csv has b,a' $load --data-val ba.csv --label-columns u,v \
	--evaluate
refuse 'UV-0002.h5 was trained with the target-columns u,v, and uv.csv has v,u' $load --data-val uv.csv \
	--label-columns v,u --evaluate
refuse 'UV-0002.h5 was trained with the columns a,b, and ba.csv has b,a' $linear --load UV-0002.h5 --data-train ba.csv \
	--label-columns u,v
sed 1s/b,a/b,c/ ba.csv >bc.csv
run $linear --load UV-0002.h5 --data-train bc.csv --label-columns u,v --skip-mismatch || fail "exit status $?"
expect 'warning: .*trained with the columns a,b, and bc.csv has b,c.*; --skip-mismatch trains on them'
printf '0,1,2\n1,2,3\n4,5,6\n' >pandas.csv
run $linear --data-train pandas.csv --batch-size 1 || fail "exit status $?"
expect 'line 1, which counts from 0 on, is taken as names of columns'
expect 'trained 4 samples'
printf 't\n1\n2\n' >two.csv
expect 'pandas.csv: the last one of 3 columns is the target, column 2'
run $linear --data-train pandas.csv --label-train two.csv --batch-size 1 || fail "exit status $?"
expect 'pandas.csv: all 3 columns are inputs, the last one, column 2, too'
printf '1,2\n1,0\n' >one.csv
run $linear --data-train one.csv --batch-size 1 || fail "exit status $?"
expect 'line 1, which counts from 1 on, is taken as a sample'
printf '0,1\n1,0\n' >pair.csv
run $linear --data-train pair.csv --batch-size 1 || fail "exit status $?"
expect 'line 1, which counts from 0 on, is taken as a sample'

part "what is there already, what counts nowhere, what is no class"
cp first.npy mine.npy
printf 'a,b\n1,2\n' >mine.csv
for file in mine.npy mine.csv; do
	refuse "--predict $file: the file is there already, and holds no predictions" $load --data-val uv.csv \
		--label-columns u,v --predict $file
done
for _ in 1 2; do
	for file in again.npy again.csv; do
		run $load --data-val uv.csv --label-columns u,v --predict $file || fail "$file: exit status $?"
	done
done
npy nowhere.npy '4,' 1 1 1 1
npy binary.npy '4,' 0 1 1 0
run --network mlp --num-layers 0 --num-epochs 1 --batch-size 2 --data-train first.npy --label-train binary.npy \
	--data-val first.npy --label-val nowhere.npy --ignore-class 1 --model-prefix none || fail "exit status $?"
expect 'none of the targets of 4 samples counts'
expect 'Validation-accuracy=-?nan'
expect_none 'best so far'
expect_none 'nothing to learn'
refuse 'nowhere.npy: all of its targets are 1, which --ignore-class leaves out: there is nothing to learn' \
	--network mlp --data-train first.npy --label-train nowhere.npy --ignore-class 1
npy gap.npy '4,' 0 5 1 0
run --network mlp --num-layers 0 --num-epochs 1 --batch-size 2 --data-train first.npy --label-train gap.npy \
	--ignore-class 9 || fail "exit status $?"
expect 'warning: gap.npy: its targets are integers up to 5: 6 classes, of which 3 occur; --num-classes'
expect 'warning: gap.npy: none of its targets is 9, which --ignore-class leaves out'
npy many.npy '4,' 0 200 1 0
refuse 'many.npy: the largest of its targets, which are integers, is 200, and there are 4 samples; .*--objective mse' \
	--network mlp --data-train first.npy --label-train many.npy
run --network mlp --data-train first.npy --label-train many.npy --num-classes 201 --num-epochs 1 ||
	fail "exit status $?"
npy outside.npy '4,' 0 1 0 2
refuse 'first.npy: bce: target 0 of sample 3 is 2; targets are probabilities, from 0 to 1' --network mlp \
	--num-layers 0 --objective bce --batch-size 2 --data-train first.npy --label-train outside.npy
# shellcheck disable=SC2046 # numbers
npy turned.npy '4, 3, 1, 2' $(seq 24)
# shellcheck disable=SC2046 # numbers
npy upright.npy '4, 3, 2, 1' $(seq 24)
run $linear --data-train turned.npy --label-train zero.npy --model-prefix T || fail "exit status $?"
expect_none moveaxis
# shellcheck disable=SC2046 # numbers
npy keras.npy '4, 5, 2, 3' $(seq 120)
run $linear --data-train keras.npy --label-train zero.npy || fail "exit status $?"
expect 'warning: keras.npy: samples of .5, 2, 3. have 5 channels; .*numpy.moveaxis'
run $linear --load T-0002.h5 --data-train upright.npy --label-train zero.npy || fail "exit status $?"
expect 'warning: T-0002.h5 was trained on samples of shape 3,1,2, and these are 3,2,1'

part "files of other programs"
printf 'PAR1 and more' >t.parquet
printf 'II*\0 and more' >t.tif
printf 'CDF\001 and more' >t.nc
printf 'MATLAB 5.0' >t.mat
printf '\211HDF\r\n\032\n\002 and more' >t.h5
mkdir arrays && cp x.npy arrays
for file in t.parquet t.tif t.nc t.mat; do
	refuse "$file: .*(x.npy|x.csv)" --network mlp --data-train $file
	refuse "$file: .*(x.npy|x.csv)" $classes --data-train x.npy --label-train $file
done
refuse 't.h5: .*HDF5.*numpy.save' $classes --data-train x.npy --label-train t.h5
refuse 'arrays: holds no data files.*--data-train x.npy and --label-train y.npy' --network mlp --data-dir arrays
refuse 'x.npy: is not a folder.*--data-train x.npy' --network mlp --data-dir x.npy
finish
