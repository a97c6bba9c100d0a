#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 400
# What the network itself is given in an epoch, from CIFAR's binary files, a .rec file and .h5 files with
# encoded and with raw images, on one and three workers: every sample exactly once, with its own label
# and its own pixels. A layer of a model of our own writes down what it sees.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export LC_ALL=C

if grep -q '^EXPORT_DYNAMIC = *$' "$BUILDDIR/Makefile"; then
	echo "skip: this build cannot load models, by one of which the test sees the samples"
	exit 77
fi

cat >witness.c <<'END'
/* A layer that changes nothing and appends a line "epoch step id label red green blue" per sample, of the
 * pixel in the middle, to a file of its process. */
#include <muster/net.h>

#include <stdio.h>
#include <unistd.h>

static enum mu_status same(struct mu_layer *layer)
{
	layer->output.shape = layer->inputs[0].shape;
	return MU_OK;
}

static void tell(const struct mu_layer *layer)
{
	const struct mu_shape *s = &layer->output.shape;
	const struct mu_batch *b = layer->batch;
	size_t area = s->dims[2] * s->dims[3], middle = s->dims[2] / 2 * s->dims[3] + s->dims[3] / 2;
	char name[64];
	FILE *f;

	snprintf(name, sizeof name, "seen.%ld", (long)getpid());
	f = fopen(name, "a");
	for (size_t i = 0; f && i < b->count; i++) {
		const float *pixel = layer->inputs[0].data + i * 3 * area + middle;

		fprintf(f, "%u %lu %u %g %g %g %g\n", b->epoch, (unsigned long)b->step, b->ids[i],
			(double)b->labels[i], (double)pixel[0], (double)pixel[area], (double)pixel[2 * area]);
	}
	if (f)
		fclose(f);
}

static enum mu_status forward(struct mu_layer *layer)
{
	const struct mu_shape *s = &layer->output.shape;

	for (size_t i = 0; i < s->dims[0] * s->dims[1] * s->dims[2] * s->dims[3]; i++)
		layer->output.data[i] = layer->inputs[0].data[i] / 1000;
	if (layer->phase == MU_PHASE_TRAIN)
		tell(layer);
	return MU_OK;
}

static enum mu_status backward(struct mu_layer *layer)
{
	(void)layer; /* its input is the data */
	return MU_OK;
}

static const struct mu_layer_ops ops = {"witness", same, forward, backward};

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	int x = mu_net_input(net);

	x = mu_net_custom(net, 1, &x, &(struct mu_custom){.ops = &ops}, NULL);
	x = mu_net_fully_connected(net, x, &(struct mu_fully_connected){.units = (int)config->classes}, NULL);
	mu_net_softmax(net, x, NULL);
	return MU_OK;
}

static const struct mu_network network = {
	.name = "witness", .shape = MU_SAMPLE(3, 32, 32), .classes = 10, .build = build};
MU_NETWORK_EXPORT(network);
END
cc -O2 -std=c11 -Wall -Wextra -Werror -shared -fPIC -I"$SRCDIR/include" witness.c -o witness.so >cc.log 2>&1 ||
	{ fail "cc witness.c: $(tail -n 5 cc.log)" && finish; }

# byte N, 1024 times
plane() {
	head -c 1024 /dev/zero | tr '\0' "\\$(printf %03o "$1")"
}
# Record i is of label i modulo 10 and of one colour, which tells i.
records=203
mkdir cifar
for ((i = 0; i < records; i++)); do
	printf "\\$(printf %03o $((i % 10)))"
	plane $i
	plane $((255 - i))
	plane $((i * 7 % 256))
done >all.bin
head -c $((100 * 3073)) all.bin >cifar/data_batch_1.bin
tail -c +$((100 * 3073 + 1)) all.bin >cifar/data_batch_2.bin
head -c $((20 * 3073)) all.bin >cifar/test_batch.bin
files="--data-dir cifar"
bins='cifar/data_batch_1.bin;cifar/data_batch_2.bin'
# convert NAME ARGUMENT...: if this build can
convert() {
	if "$BUILDDIR/h5rec" "$bins" "$@" >h5rec.log 2>&1; then
		files="$files
--data-train $1 --num-classes 10"
	elif grep -q 'this build has no lib\|this build has no HDF5' h5rec.log; then
		echo "not tried: $(head -n 1 h5rec.log)"
	else
		fail "h5rec $*: $(head -n 3 h5rec.log)"
	fi
}
convert images.rec
convert images.h5
convert raw.h5 --raw

# check_seen WORKERS: two epochs
check_seen() {
	local e
	e=$(find . -name 'seen.*' | wc -l)
	[ "$e" = "$1" ] || fail "$e workers saw samples, not $1"
	for e in 0 1; do
		cat seen.* | awk -v e=$e '$1 == e { print $3, $4, $5, $6, $7 }' | sort -n >got
		awk -v n=$records 'BEGIN { for (i = 0; i < n; i++) print i, i % 10, i, 255 - i, i * 7 % 256 }' >want
		cmp got want || { fail "epoch $e is not every sample once"; diff got want | head -n 5; }
	done
	# The short last step, too, is shared evenly.
	wc -l seen.* | awk -v low=$((2 * (records / $1))) -v high=$((2 * (records / $1 + 1))) \
		'$2 != "total" && ($1 < low || $1 > high) { exit 1 }' || fail "unequal shares: $(wc -l seen.*)"
}

net="--network ./witness.so --batch-size 8 --num-epochs 2 --lr 1e-9 --log-prefix none --log-time 0 --devices ref
	--rgb-mean 0,0,0 --rgb-std 1,1,1"
while read -r data; do
	for workers in 1 3; do
		if [ $workers = 3 ] && [ "$data" != "--data-dir cifar" ] && ! in_tier full; then break; fi
		for how in "--shuffle 0 --data-aug-level 0" \
			"--shuffle 1 --pad-size 4 --random-crop 1 --random-mirror 1" \
			"--shuffle chunk --shuffle-chunk 20"; do
			part "$workers workers, $data, $how"
			rm -f seen.*
			store=
			[ $workers = 1 ] || store="--kv-store dist_sharded"
			train $workers $net $data $how $store
			check_seen $workers
			[ $workers = 1 ] || continue
			awk '$1 == 0 { print $3 }' seen.* >order0
			awk '$1 == 1 { print $3 }' seen.* >order1
			sort -n order0 | cmp -s - order0
			sorted=$?
			case $how in
			"--shuffle 0"*) [ $sorted = 0 ] && cmp -s order0 order1 || fail "not in the file's order" ;;
			*) [ $sorted = 1 ] && ! cmp -s order0 order1 || fail "not shuffled anew" ;;
			esac
		done
	done
done <<<"$files"

part "with servers"
rm -f seen.*
train 4 $net --data-dir cifar --kv-store dist_sync --num-servers 1
check_seen 3
finish
