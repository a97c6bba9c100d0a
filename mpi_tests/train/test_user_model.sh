#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Models of users, as a user makes them: Muster is installed into an empty folder, jobs/examples is
# compiled outside of source and build with what pkg-config says, and the installed trainer trains
# the result. Then everything that can be wrong with such a file.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

if grep -q '^EXPORT_DYNAMIC = *$' "$BUILDDIR/Makefile"; then
	echo "skip: this build cannot load models"
	exit 77
fi
outside=$(mktemp -d) || exit 1
trap 'rm -rf "$outside"' EXIT
cd "$outside" || exit 1

part "install"
# As if by hand, not as a part of the make that runs this test.
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$BUILDDIR" install DESTDIR="$outside/root" >install.log 2>&1 ||
	{ fail "make install: $(tail -n 5 install.log)" && finish; }
TRAINER=$(find root -path '*/muster/trainer')
DIGITS=$(find root -path '*/muster/digits')
pc=$(find "$outside/root" -name muster.pc)
TRAINER=$outside/$TRAINER
DIGITS=$outside/$DIGITS
if [ ! -x "$TRAINER" ] || [ ! -x "$DIGITS" ] || [ ! -f "$pc" ]; then
	fail "not all of trainer, digits and muster.pc are installed"
	finish
fi

# What pkg-config says, with the prefix moved to where DESTDIR has put it.
pkg() {
	PKG_CONFIG_PATH=$(dirname "$pc") "${PKG_CONFIG:-pkg-config}" \
		--define-variable=prefix="$outside/root$(sed -n 's/^prefix=//p' "$pc")" "$@" muster
}
if ! command -v "${PKG_CONFIG:-pkg-config}" >/dev/null; then
	echo "without pkg-config the flags are taken from the installed folder"
	pkg() { echo "-I$(dirname "$(dirname "$(find "$outside/root" -name net.h)")")"; }
fi
flags=$(pkg --cflags)

# compile SOURCE OBJECT FLAG...: a shared object
compile() {
	local source=$1 object=$2
	shift 2
	cc -O2 -std=c11 -Wall -Wextra -Werror -shared -fPIC $flags "$@" "$source" -o "$object" >cc.log 2>&1 && return
	fail "cc $flags $source: $(tail -n 5 cc.log)"
	finish
}
cp "$SRCDIR"/jobs/examples/*.c .
compile mynet.c mynet.so
compile prelu.c prelu.so
small_set set 1500 300
export OMP_NUM_THREADS=1 # enough, and ranks do not get in each other's way
plain="--data-dir set --batch-size 25 --log-prefix none --log-time 0"

part "a model of ready layers trains"
# Of training: behind a batch-norm, validation of so few samples goes up and down between 0.3 and 0.9 in these epochs,
# while five seeds of one and of two workers had 0.905 to 0.975, and 0.396 to 0.671 after two. The ref device is slow.
epochs=2 goal=0.3
if "$TRAINER" --info | grep -q '^device: *cpu'; then epochs=6 goal=0.8; fi
train 1 --network ./mynet.so $plain --lr 0.1 --num-epochs $epochs
expect '^network mynet: 7514 parameters in 11 arrays, 128 auxiliary values'
at_least Train-accuracy $goal
at_least Validation-accuracy 0.15
train 3 --network mynet.so --kv-store dist_sync --num-servers 1 $plain --lr 0.1 --num-epochs $epochs
expect '^kv-store dist_sync: 17 keys'
expect '^2 workers, 1 server'
at_least Train-accuracy $goal
at_least Validation-accuracy 0.15

part "a model of volumes"
cat >vol.c <<'EOF'
#include <muster/net.h>

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_convolution first = {.filters = 8, .kernel = {3, 3, 3}, .pad = {1, 1, 1}, .no_bias = true};
	const struct mu_convolution second = {.filters = 16, .kernel = {3, 2, 3}, .stride = {2, 1, 2}, .groups = 2};
	const struct mu_convolution third = {.filters = 16, .kernel = {2, 2, 2}, .dilate = {1, 2, 1}};
	const struct mu_deconvolution up = {.filters = 6, .kernel = {2, 2, 2}, .stride = {2, 2, 2}, .extra = {0, 1, 0}};
	const struct mu_convolution last = {.filters = (int)config->classes, .kernel = {1, 1, 1}};
	const struct mu_batch_norm norm = {.eps = 1e-5f, .momentum = 0.9f};
	const struct mu_pooling pool = {.kernel = {2, 2, 2}, .stride = {2, 2, 2}};
	int x = mu_net_convolution(net, mu_net_input(net), &first, NULL), y, first_level;

	x = mu_net_activation(net, mu_net_batch_norm(net, x, &norm, NULL), MU_ACTIVATION_RELU, NULL);
	first_level = x;
	x = mu_net_pooling(net, x, &pool, NULL);
	y = mu_net_batch_norm(net, mu_net_convolution(net, x, &first, NULL), &norm, NULL);
	x = mu_net_sum(net, 2, (int[]){x, y}, NULL);
	x = mu_net_activation(net, mu_net_convolution(net, x, &second, NULL), MU_ACTIVATION_TANH, NULL);
	x = mu_net_convolution(net, mu_net_dropout(net, x, 0.1f, NULL), &third, NULL);
	x = mu_net_group_norm(net, mu_net_deconvolution(net, x, &up, NULL), &(struct mu_group_norm){1e-5f, 2}, NULL);
	x = mu_net_activation_of(net, x, &(struct mu_activation){MU_ACTIVATION_LEAKY_RELU, 0.1f}, NULL);
	x = mu_net_upsampling(net, x, &(struct mu_upsampling){.linear = true, .size = {6, 7, 8}}, NULL);
	x = mu_net_pad(net, x, &(struct mu_pad){.before = {1, 0, 0}, .after = {0, 1, 0}}, NULL);
	y = mu_net_crop(net, first_level, &(struct mu_crop){{0, 1, 2}, {7, 8, 8}}, NULL);
	x = mu_net_concat(net, 2, (int[]){x, y}, NULL);
	mu_net_softmax(net, mu_net_convolution(net, x, &last, NULL), NULL);
	return MU_OK;
}
static const struct mu_network network = {
	.name = "vol", .shape = MU_SAMPLE(1, 12, 12, 12), .classes = 3, .build = build};
MU_NETWORK_EXPORT(network);
EOF
compile vol.c vol.so
for np in 1 3; do
	for device in ref cpu; do
		"$TRAINER" --info | grep -q "^device: *$device" || continue
		train $np --network ./vol.so --benchmark 1 --batch-size 4 --num-batches 3 --num-epochs 2 --lr 0.001 \
			--devices $device --kv-store dist_allreduce --log-prefix none --log-time 0
		sed -n 's/^Epoch\[1\] Train-cross-entropy=\(.*\).$/\1/p' "$log" >$device.$np
	done
	cmp ref.$np "$([ -f cpu.$np ] && echo cpu.$np || echo ref.$np)" || fail "$np ranks: $(cat ref.$np cpu.$np)"
	[ -s ref.$np ] || fail "no loss of ref"
done
train 1 --network ./vol.so --benchmark 1 --batch-size 2 --num-batches 2 --num-epochs 1 --image-shape 1,16,16,16 \
	--recompute all --model-prefix vol --log-prefix none --log-time 0
expect 'shape \(1, 16, 16, 16\), 3 classes'
train 1 --network ./vol.so --load vol-0001.h5 --evaluate --devices ref --benchmark 1 --num-batches 2 \
	--batch-size 2 --image-shape 1,16,16,16

part "a layer of the user's own, on every device"
for device in cpu ref; do
	[ $device = ref ] || "$TRAINER" --info | grep -q '^device: *cpu' || continue
	train 1 --network ./prelu.so $plain --lr 0.05 --num-epochs 1 --num-examples 500 --devices $device
	expect '^network prelu-net: 35434 parameters in 11 arrays'
	grep -E '^Epoch.*cross-entropy' "$log" >losses.$device
done
# Sums of float32 in another order, amplified by the steps of an epoch.
if [ -f losses.cpu ]; then
	[ "$(wc -l <losses.cpu)" = 2 ] || fail "$(wc -l <losses.cpu) losses of prelu-net, not 2"
	paste losses.cpu losses.ref | sed 's/Epoch[^=]*=//g' |
		awk '{ d = $1 - $2; if (d > 1e-3 || d < -1e-3) exit 1 }' ||
		fail "cpu and ref differ: $(cat losses.cpu losses.ref)"
fi
if in_tier full; then
	train 3 --network ./prelu.so $plain --lr 0.05 --num-epochs 2
	at_least Validation-accuracy 0.7
fi

part "on several devices of a rank"
train 3 --network ./prelu.so $plain --lr 0.05 --num-epochs 2 --kv-store dist_device_sync --num-servers 1 \
	--devices cpu:0,cpu:1 --work-load-list 2,3
at_least Validation-accuracy 0.7

part "a loss of values: metrics, the best checkpoint and predictions follow it"
form=0
for metric in mse mae huber bce; do
	compile regression.c $metric.so -DFORM=$form
	form=$((form + 1))
done
few="$plain --num-examples 300 --lr 0.02 --num-epochs 2"
for np in 1 $(in_tier full && echo 2) 3; do
	train $np --network ./mse.so $few --kv-store dist_allreduce --loss rmse,mae --model-prefix V --overwrite 1
	expect_count 2 '^Epoch\[\d\] Validation-mse='
	expect '^best so far: mse '
	grep '^Epoch.1. Validation' "$log" >logged.$np
	train $np --network ./mse.so $plain --load V-0002.h5 --predict V.csv
	[ "$(grep -c . V.csv)" = 301 ] || fail "$(grep -c . V.csv) lines of 300 predictions"
	awk -F, -v log_of="$(sed 's/.*-//' logged.$np | tr '\n' ' ')" '
		NR > 1 { d = $3 - $2; s += d * d; a += d < 0 ? -d : d; n++ }
		END {
			should["mse"] = s / n; should["rmse"] = sqrt(s / n); should["mae"] = a / n
			for (k = split(log_of, words, " "); k; k--) {
				split(words[k], is, "=")
				d = is[2] - should[is[1]]
				if (!(is[1] in should) || d > 2e-6 || d < -2e-6) exit 1
				m++
			}
			exit m != 3
		}' V.csv || fail "$np ranks: the log has $(tr '\n' ' ' <logged.$np)"
done
train 2 --network ./mae.so $few --kv-store dist_allreduce
expect '^Epoch\[1\] Validation-mae='
train 2 --network ./huber.so $few --kv-store dist_allreduce
expect '^Epoch\[1\] Validation-huber='
for wrong in "--top-k 5" "--label-smoothing 0.1" "--loss ce" "--target-accuracy 0.5"; do
	run_limited 60 1 --network ./mse.so $few $wrong
	[ $status = 2 ] || fail "exit status $status, not 2, of $wrong"
	expect "error: ${wrong%% *}.*: the network's loss is mean squared error"
done
run_limited 60 1 --network ./mse.so $few --objective mae
[ $status = 2 ] || fail "exit status $status, not 2, of --objective"
expect_count 1 'error: --objective mae: network regression ends in a loss of its own'
sed 's/mu_net_element_loss.*/mu_net_objective(net, x);/; s/\.classes = 10,/&\n\t.objective = "mae",/' \
	regression.c >open.c
compile open.c open.so
train 1 --network ./open.so $few
expect '^Epoch\[1\] Validation-mae='
train 1 --network ./open.so $few --objective mse
expect '^Epoch\[1\] Validation-mse='
run_limited 60 2 --network ./bce.so $few --kv-store dist_allreduce
[ $status != 0 ] || fail "targets beyond 1 are taken"
expect 'error: \S+: loss: target 0 of sample \d+ is \d; targets are probabilities, from 0 to 1'

part "the summary"
train 1 --network ./prelu.so --summary
expect '^prelu1 +prelu +\(24, 8, 8\) +24 '
train 1 --network ./prelu.so --summary dot
expect 'label="prelu1\\nprelu\\n'

if has_files; then
	part "a checkpoint has the network's name, and where its file was"
	mkdir elsewhere
	train 1 --network ./mynet.so $plain --num-epochs 1 --num-batches 2 --model-prefix P
	grep -qa mynet P-0001.h5 || fail "P-0001.h5 does not hold the network's name"
	run_limited 60 1 --evaluate --load P-0001.h5 $plain
	[ $status = 2 ] || fail "exit status $status, not 2: a checkpoint loads no program"
	expect "error: P-0001.h5: its network is one of your own, mynet: name its file, --network $outside/mynet.so"
	mv mynet.so elsewhere/other.so
	train 1 --evaluate --load P-0001.h5 --network elsewhere/other.so $plain
	train 1 --network elsewhere/other.so $plain --num-epochs 1 --model-prefix P --load-epoch 1
	expect '^Loaded model P-0001.h5$'
	run_limited 60 1 --network ./prelu.so $plain --num-epochs 1 --model-prefix P --load-epoch 1
	[ $status = 2 ] || fail "exit status $status, not 2, of another network's checkpoint"
	expect 'error: P-0001.h5 was saved with network mynet, and this run has prelu-net'
	mv elsewhere/other.so mynet.so
fi

# ---- what can be wrong ----

# told STATUS REGEX: the last run ended with it, and one message, which matches.
told() {
	[ $status = "$1" ] || fail "exit status $status, not $1"
	expect_count 1 'error: '
	expect "error: .*$2"
	expect_none "$crashes"
}

# refused STATUS REGEX FILE OPTION...: with one rank and with three
refused() {
	local np status_wanted=$1 text=$2 file=$3
	shift 3
	for np in 1 $(in_tier full && echo 3); do
		run_limited 60 $np --network "$file" $plain "$@"
		told "$status_wanted" "$text"
	done
}

# model OBJECT TEXT FLAG...: a model file whose source has this text after the includes
model() {
	local object=$1
	{
		echo '#include <muster/net.h>'
		echo "$2"
	} >case.c
	shift 2
	compile case.c "$object" "$@"
}
# One fully connected layer, behind what BODY says.
small='static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	int x = mu_net_input(net);

	BODY
	x = mu_net_fully_connected(net, x, &(struct mu_fully_connected){.units = (int)config->classes}, NULL);
	mu_net_softmax(net, x, NULL);
	return MU_OK;
}
static const struct mu_network network = {.name = NAME, .shape = MU_SAMPLE(SHAPE), .classes = 10, .build = build};
MU_NETWORK_EXPORT(network);'

part "not a file that can be loaded"
refused 2 'nowhere/mynet.so: No such file' nowhere/mynet.so
refused 2 'nothing.so: No such file' nothing.so
refused 2 'root: not a file' ./root
mkfifo pipe.so
refused 2 'pipe.so: not a file' ./pipe.so
refused 2 'mynet.c: cannot be loaded: .*shared object' ./mynet.c
: >empty.so
refused 2 'empty.so: cannot be loaded: ' empty.so
cc -c $flags mynet.c -o mynet.o
refused 2 'mynet.o: cannot be loaded: ' ./mynet.o
refused 2 'mynet: unknown; known networks are:.* lenet' mynet

part "not a model, or not of this version"
model none.so 'int mu_something(void); int mu_something(void) { return 0; }'
refused 2 'none.so: .*no symbol mu_network_export.*MU_NETWORK_EXPORT' none.so
model undefined.so "int mu_net_fourier(struct mu_net *, int); $small" -DNAME='"undefined"' -DSHAPE=1,28,28 \
	-DBODY='x = mu_net_fourier(net, x);'
refused 2 'undefined.so: cannot be loaded: .*mu_net_fourier.*compile it again' undefined.so
model old.so 'struct old { int abi; void *elsewhere; };
extern const struct old mu_network_export;
const struct old mu_network_export = {999, (void *)8};'
refused 2 'old.so: compiled for binary interface 999 of Muster, and this is \d+: compile it again' old.so
model hidden.so "$small" -fvisibility=hidden -DNAME='"hidden"' -DSHAPE=1,28,28 -DBODY=
train 1 --network hidden.so $plain --num-epochs 1 --num-batches 2
expect '^network hidden: 7850 parameters'

part "settings of a model"
train 1 --network ./mynet.so --help ./mynet.so
expect '^mynet: three convolutions and a shortcut'
expect '^  --width N .*filters .* \(default 16\)'
expect_count 1 '^  --'
printf 'network ./mynet.so\nwidth 6\n' >width.conf
train 2 --config width.conf $plain --num-epochs 1 --num-batches 2 --model-prefix wide
expect 'network mynet: 1204 parameters'
"$TRAINER" --load wide-0001.h5 --network ./mynet.so --evaluate --data-dir set --verbose 1 >"$log" 2>&1 ||
	fail "exit status $? of an evaluation"
expect 'options from wide-0001.h5: .*width 6'
refused 2 "unknown option --widt: write the whole name --width" ./mynet.so --widt 6
refused 2 '--width: 0 is out of range: it must be from 1 to 4096' ./mynet.so --width 0
refused 2 'unknown option --width ' lenet --width 6
refused 2 '--width 5: wide-0001.h5 was saved with width 6' ./mynet.so --width 5 --load wide-0001.h5 --evaluate
refused 2 'wide-0001.h5 was saved with width 6, and this run has 5, so that' \
	./mynet.so --width 5 --num-epochs 2 --model-prefix wide --resume auto
row='static const struct mu_option rows[] = {{.name = "width", .type = MU_OPTION_INT, ROW}, {.name = NULL}};'
settings="$row
$(sed 's/\.build = build/.settings = rows, .settings_nbytes = 8, .build = build/' <<<"$small")"
model long.so "$settings" -DNAME='"long"' -DSHAPE=1,28,28 -DBODY= -DROW='.offset = 4, .help = ""'
refused 2 'long.so: its setting width needs a help text, a type, and a place within settings_nbytes \(8\)' long.so
model taken.so "${settings/\"width\"/\"lr\"}" -DNAME='"taken"' -DSHAPE=1,28,28 -DBODY= -DROW='.help = ""'
refused 2 'network taken: its setting lr has the name of an option of the trainer' taken.so
for name in momentum nodes format; do
	model taken.so "${settings/\"width\"/\"$name\"}" -DNAME='"taken"' -DSHAPE=1,28,28 -DBODY= -DROW='.help = ""'
	refused 2 "network taken: its setting $name has the name of an option of the trainer, of another" taken.so
done
refused 2 'network mynets: unknown' mynets --load wide-0001.h5 --evaluate
model named.so "${settings/\"width\"/\"My width\"}" -DNAME='"named"' -DSHAPE=1,28,28 -DBODY= -DROW='.help = ""'
refused 2 'named.so: "My width" is no name of a setting' named.so

part "a model that crashes"
model crash.so "#include <string.h>
static char *volatile nowhere;
int fill(int n);
int fill(int n) { memset(nowhere, n, 100); return n; }
$small" -DNAME='"crash"' -DSHAPE=1,28,28 -DBODY='x = fill(x);'
run_limited 60 2 --network ./crash.so $plain --num-epochs 1
[ $status != 0 ] || fail "status 0 of a model that crashes"
expect 'error: network ./crash.so: its code crashed \(Segmentation fault\), in fill or what that calls'

# A signal that is sent ends the process, too. The process's own stands in for one from outside.
model sent.so "#include <signal.h>
int ask(int n);
int ask(int n) { raise(SIGSEGV); return n; }
$small" -DNAME='"sent"' -DSHAPE=1,28,28 -DBODY='x = ask(x);'
run_limited 60 1 --network ./sent.so $plain --num-epochs 1
[ $status != 0 ] || fail "status 0 after a signal"
expect 'error: network ./sent.so: its code crashed \(Segmentation fault\), in ask or what that calls'

part "a model that is not right"
model nameless.so "$small" -DNAME=0 -DSHAPE=1,28,28 -DBODY=
refused 2 'nameless.so: .*needs a name and a build function' nameless.so
model flat.so "$small" -DNAME='"flat"' -DSHAPE=1,28,0 -DBODY=
refused 2 'flat.so: the shape of network flat, 1,28,0, has a 0' flat.so
braces='{3, 28, 28}'
model bare.so "${small/MU_SAMPLE(SHAPE)/$braces}" -DNAME='"bare"' -DBODY= -Wno-missing-braces
refused 2 'bare.so: the shape of network bare is not that of a sample; .*MU_SAMPLE\(c, h, w\)' bare.so
model vector.so "$small" -DNAME='"vector"' -DSHAPE=12 -DBODY=
for device in ref cpu; do
	train 1 --network ./vector.so --benchmark 1 --batch-size 8 --num-batches 3 --num-epochs 1 --log-time 0 \
		--log-prefix none --devices $device --image-shape 7
	expect '^network vector: 80 parameters'
done
run_limited 60 1 --network ./vector.so --benchmark 1 --image-shape 7,7
told 2 'image-shape 7,7: a shape such as 12 is needed'
model axes.so "$small" -DNAME='"axes"' -DSHAPE=1,28 -DBODY=
run_limited 60 1 --network ./axes.so --benchmark 1 --num-epochs 1
told 2 'network axes: layers read samples \(c\), \(c, h, w\) or \(c, d, h, w\), .* \(c, w, 1\), .* not \(1, 28\)'
model wrong.so "$small" -DNAME='"wrong"' -DSHAPE=1,28,28 \
	-DBODY='x = mu_net_activation(net, 5, MU_ACTIVATION_RELU, NULL);'
refused 2 'network wrong: a layer reads tensor 5; there are 0 to 0 so far' wrong.so
model kernel.so "$small" -DNAME='"kernel"' -DSHAPE=1,28,28 \
	-DBODY='x = mu_net_convolution(net, x, &(struct mu_convolution){.filters = 4}, NULL);'
refused 2 'network kernel: convolution0 has kernel 0 x 0, stride 1 x 1, padding 0 x 0; kernel and stride' kernel.so
model empty.so "$small" -DNAME='"empty"' -DSHAPE=1,28,28 \
	-DBODY='x = mu_net_pooling(net, x, &(struct mu_pooling){.kernel = {2, 2}, .pad = {2, 2}}, NULL);'
refused 2 'network empty: pooling0 has windows of 2 x 2 with nothing but padding' empty.so
layer='static enum mu_status same(struct mu_layer *layer)
{
	layer->output.shape = layer->inputs[0].shape;
	return MU_OK;
}
static enum mu_status bad(struct mu_layer *layer)
{
	enum mu_status st;

	MU_FAIL(MU_ERR_NUMERIC, "%s: says %d", layer->name, 7);
out:
	return st;
}
static const struct mu_layer_ops ops = {"bad", same, bad, bad};'
model fails.so "$layer $small" -DNAME='"fails"' -DSHAPE=1,28,28 \
	-DBODY='x = mu_net_custom(net, 1, &x, &(struct mu_custom){.ops = &ops}, NULL);'
run_limited 60 1 --network fails.so $plain
told 1 'bad0: says 7'
run_limited 60 3 --network fails.so $plain
if [ $status = 0 ] || [ $status -ge 124 ]; then fail "exit status $status of a layer that fails on every rank"; fi
expect 'error: .*bad0: says 7'

part "an error on one of several devices"
# 25 samples: 10 for one device, 15 for the other
counts='static enum mu_status same(struct mu_layer *layer)
{
	layer->output.shape = layer->inputs[0].shape;
	return MU_OK;
}
static enum mu_status check(struct mu_layer *layer)
{
	enum mu_status st = MU_OK;

	if (layer->batch->count == 15 && layer->batch->step == 3)
		MU_FAIL(MU_ERR_NUMERIC, "%s: has %zu samples", layer->name, layer->batch->count);
out:
	return st;
}
static enum mu_status copy(struct mu_layer *layer)
{
	for (size_t i = 0; i < layer->output.shape.dims[0] * 784; i++)
		layer->output.data[i] = layer->inputs[0].data[i];
	return WHERE == 0 ? check(layer) : MU_OK;
}
static enum mu_status back(struct mu_layer *layer)
{
	for (size_t i = 0; i < layer->output.shape.dims[0] * 784; i++)
		layer->inputs[0].grad[i] = layer->output.grad[i];
	return WHERE == 1 ? check(layer) : MU_OK;
}
static const struct mu_layer_ops ops = {"counts", same, copy, back};'
dense='x = mu_net_fully_connected(net, x, &(struct mu_fully_connected){.units = 784}, NULL);'
custom='x = mu_net_custom(net, 1, &x, &(struct mu_custom){.ops = &ops}, NULL);'
first="--devices ref:0,ref:1 --work-load-list 3,2" second="--devices ref:0,ref:1 --work-load-list 2,3"
for where in 0 1; do
	model counts.so "$counts $small" -DNAME='"counts"' -DSHAPE=1,28,28 -DWHERE=$where \
		-DBODY="$dense $custom"
	run_limited 60 1 --network counts.so $plain $first
	told 1 'device ref:0: counts0: has 15 samples'
	run_limited 60 1 --network counts.so $plain $second --kv-store local --verbose 1
	told 1 'device ref:1: counts0: has 15 samples'
	expect '^    at case.c:\d+$'
	expect '^    at src/engine/shared.c:\d+ in .*join'
	run_limited 60 3 --network counts.so $plain $second --kv-store dist_sharded
	if [ $status = 0 ] || [ $status -ge 124 ]; then fail "exit status $status of a device that fails"; fi
	expect 'error: device ref:1: counts0: has 15 samples'
done

part "dropout depends on samples, not on devices"
model drop.so "$small" -DNAME='"drop"' -DSHAPE=1,28,28 -DBODY='x = mu_net_dropout(net, x, 0.5f, NULL);'
losses() {
	train 1 --network drop.so $plain --num-epochs 1 --num-examples 110 --devices "$@"
	value Train-cross-entropy
}
one=$(losses ref)
several=$(losses ref:0,ref:1 --work-load-list 1,2)
awk -v a="$one" -v b="$several" 'BEGIN { d = a - b; exit !(a > 0 && d < 2e-6 && d > -2e-6) }' ||
	fail "the loss with dropout is $one with one device, $several with two"

part "one rank has no such file"
mkdir here there
cp mynet.so here
for lacking in 0 1 2; do
	new_mark
	set --
	for rank in 0 1 2; do
		[ $rank = 0 ] || set -- "$@" :
		folder=here
		[ $rank != $lacking ] || folder=there
		set -- "$@" -n 1 sh -c "cd $folder && exec \"\$0\" \"\$@\"" "$TRAINER" --network ./mynet.so $plain
	done
	timeout -k 5 $((60 * ${MU_TIMEOUT_SCALE:-1})) $MPIRUN "$@" >"$log" 2>&1 </dev/null
	status=$?
	told 2 "mynet.so: No such file"
	expect "^trainer: rank $lacking on .*error: "
done

part "another file of the network, on a rank or when a run resumes"
mkdir there/set && cp set/* there/set && ln -s ../set here/set
cp mynet.so there
# in_both: a rank in each folder
in_both() {
	set -- "$TRAINER" --network ./mynet.so $plain --num-epochs 1 --num-batches 2
	timeout -k 5 $((60 * ${MU_TIMEOUT_SCALE:-1})) $MPIRUN -n 1 sh -c 'cd here && exec "$0" "$@"' "$@" \
		: -n 1 sh -c 'cd there && exec "$0" "$@"' "$@" >"$log" 2>&1 </dev/null
	status=$?
}
in_both
[ $status = 0 ] || { fail "exit status $status of equal files" && show_log; }
echo >>there/mynet.so
in_both
told 2 './mynet.so: worker 1 \(rank 1, \S+\) has another file of the network than worker 0'
if has_files; then
	train 1 --network ./mynet.so $plain --num-epochs 1 --num-batches 2 --model-prefix M
	train 1 --network ./mynet.so $plain --num-epochs 2 --num-batches 2 --model-prefix M --resume auto
	expect_none 'not as when'
	train 1 --network there/mynet.so $plain --num-epochs 3 --num-batches 2 --model-prefix M --resume auto
	expect 'warning: not as when M-0002.h5 was saved: network-code \w{16} \(was \w{16}\)$'
fi
finish
