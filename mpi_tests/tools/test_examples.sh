#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The scripts of jobs/examples on small data: each trains and prints the table of its log.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export OMP_NUM_THREADS=1 MUSTER=$BUILDDIR/muster MPIRUN

# example NAME ARGUMENT...: must end well
example() {
	local name=$1
	shift
	timeout -k 5 $((60 * ${MU_TIMEOUT_SCALE:-1})) "$SRCDIR/jobs/examples/$name" "$@" >"$log" 2>&1 </dev/null
	status=$?
	[ $status = 0 ] || { fail "exit status $status of $name $*" && show_log; }
}

# rows N: of the last table
rows() {
	local n
	n=$(awk '/^\| epoch/ { n = 0 } /^\| +[0-9]/ { n++ } END { print n + 0 }' "$log")
	[ "$n" = "$1" ] || { fail "$n rows in the table, not $1" && show_log; }
}

small_set set 400 100
small="--num-epochs 2 --num-examples 400"

part "MNIST"
for name in mnist_local.sh mnist_dist_sync.sh mnist_dist_async.sh two_machines.sh; do
	# shellcheck disable=SC2086 # a list of options
	example $name set $small --network mlp --batch-size 20
	rows 2
	[ -s "${name%.sh}.log" ] || fail "$name leaves no log"
done
[ "$(mpi_kind)" != mpich ] || grep -q 'node 1 ' two_machines.log || fail "two_machines.sh: one machine"

part "CIFAR-10"
mkdir cifar
for ((i = 0; i < 20; i++)); do
	printf '%b' "\\x0$((i % 10))" # the label
	head -c 3072 /dev/urandom
done >cifar/data_batch_1.bin
cp cifar/data_batch_1.bin cifar/test_batch.bin
example cifar10.sh dist_sync cifar --num-epochs 1 --batch-size 2 --num-batches 2
rows 1
if in_tier long; then
	example cifar10.sh all cifar --num-epochs 1 --batch-size 2 --num-batches 2
	expect_count 7 '^\| (log \| )?epoch '
fi

part "language models"
if has_files; then
	for ((i = 0; i < 40; i++)); do echo "the cat sees the dog $((i % 3))"; done >words.txt
	example lstm_ptb.sh words.txt words.txt --num-epochs 1 --num-layers 1 --num-hidden 8 --num-embed 4
	expect 'Epoch\[0\] Validation-perplexity='
	example lstm_characters.sh words.txt --num-epochs 1 --batch-size 4
	grep -qv 'Node\[0\]' "$log" || { fail "no text is written" && show_log; }
	PRIME="the cat" example gpt.sh words.txt words.txt --num-epochs 2 --num-layers 1 --num-hidden 16 --seq-len 8
	rows 2
	expect '^the cat'
	example gpt.sh words.txt words.txt --num-epochs 2 --num-layers 1 --num-hidden 16 --seq-len 8 # again
	"$SRCDIR/jobs/examples/gpt.sh" --help >/dev/null || fail "gpt.sh --help: status $?"
	"$SRCDIR/jobs/examples/mnist_local.sh" --bath-size 3 2>&1 | grep -q '^usage: .*DATA_DIR' ||
		fail "no usage of mnist_local.sh"
fi

part "ImageNet and the benchmark"
if in_tier long && [ -x "$BUILDDIR/mpi_tests/lib/make_jpeg" ]; then
	mkdir -p images/a images/b
	for name in a/1 a/2 b/1 b/2; do
		"$BUILDDIR/mpi_tests/lib/make_jpeg" write "images/$name.jpg" 260 240 rgb 1 ||
			fail "cannot make an image"
	done
	{ "$BUILDDIR/im2rec" --list --recursive train images && "$BUILDDIR/im2rec" train images; } >"$log" 2>&1 ||
		fail "cannot pack images"
	for network in resnet inception-bn; do
		example imagenet.sh $network train.rec train.rec --num-classes 2 --batch-size 1 --num-epochs 1 \
			--num-batches 2
		rows 1
	done
	example benchmark.sh local --batch-size 1 --num-batches 3
	rows 1
else
	echo "in the tier long only"
fi

part "wrong use"
for name in mnist_local.sh mnist_dist_sync.sh cifar10.sh imagenet.sh two_machines.sh; do
	"$SRCDIR/jobs/examples/$name" >"$log" 2>&1
	[ $? = 2 ] || fail "exit status of $name without data is not 2"
	expect '^usage: '
done
"$SRCDIR/jobs/examples/mnist_dist_sync.sh" nowhere >"$log" 2>&1
[ $? != 0 ] || fail "mnist_dist_sync.sh of a missing folder ends well"
expect_none '^\| epoch'
finish
