#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The trainer as a user starts it, on a small data set of digits: stores and rank counts, the log,
# stopping early, checkpoints, equal bits.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"

small_set set 600 200
plain="--log-prefix none --log-time 0"
mlp="--network mlp --data-dir set --batch-size 20 --lr 0.1 $plain"

part "stores and ranks"
jobs=("1 local" "1 device" "3 dist_sync" "4 dist_async --num-servers 2")
! in_tier full || jobs+=("2 dist_sync" "4 dist_sync --num-servers 2" "7 dist_sync --num-servers 3" "2 dist_async"
	"3 dist_async" "7 dist_async --num-servers 3")
for job in "${jobs[@]}"; do
	set -- $job
	np=$1 store=$2
	shift 2
	# Momentum and staleness together make larger steps than each of them.
	case $store in *async) set -- --mom 0 --lr 0.05 "$@" ;; esac
	train "$np" $mlp --kv-store "$store" "$@" --num-epochs 3
	expect "^kv-store $store: 6 keys"
	expect_count 3 '^Epoch\[\d\] Validation-accuracy='
	expect '^trained 1800 samples'
	at_least Validation-accuracy 0.25
	if [ "$store" = dist_async ]; then
		expect '^staleness: mean \d+\.\d+, max \d+ updates'
	else
		expect_none '^staleness'
	fi
done
for store in dist_sync $(in_tier full && echo dist_sharded dist_allreduce); do
	train 3 $mlp --kv-store $store --node-reduce none --verify-steps 4 --num-epochs 1
done
train 3 --network lenet --data-dir set --batch-size 20 --num-epochs 2
expect 'Node\[0\] network lenet: 431080 parameters in 8 arrays'
expect 'Node\[0\] Epoch\[1\] Validation-accuracy='
train 1 $mlp --num-epochs 1
expect '^kv-store device:'

part "the lines of the log"
# Numbers become F and their count of decimals.
shape_of_log() {
	grep -E '^(Epoch|Saved)' "$log" | sed -E 's/[0-9]+\.[0-9]{2}( |$)/F2\1/g
		s/=[0-9]+\.[0-9]{6}(\t|$)/=F6\1/g; s/=[0-9]+\.[0-9]{3}$/=F3/; s/=[0-9]+\.[0-9]%$/=F1%/'
}
speed="Speed: F2 samples/sec	accuracy=F6	top_k_accuracy_3=F6	cross-entropy=F6	comm=F1%"
epoch_lines() {
	cat <<END
Epoch[$1] Batch [0-5]	$speed
Epoch[$1] Batch [5-10]	$speed
Epoch[$1] Train-accuracy=F6
Epoch[$1] Train-top_k_accuracy_3=F6
Epoch[$1] Train-cross-entropy=F6
Epoch[$1] Time cost=F3
Epoch[$1] Exposed communication=F3
END
	cat <<END
Epoch[$1] Validation-accuracy=F6
Epoch[$1] Validation-top_k_accuracy_3=F6
Epoch[$1] Validation-cross-entropy=F6
END
	[ -z "$2" ] || printf 'Saved checkpoint to "%s-%04d.h5"\n' "$2" $(($1 + 1))
}
prefix=
if has_files; then prefix=./lines; fi
train 3 $mlp --disp-batches 5 --top-k 3 --num-epochs 2 ${prefix:+--model-prefix $prefix --save-async 0}
{ epoch_lines 0 "$prefix" && epoch_lines 1 "$prefix"; } >expected
shape_of_log >found
cmp -s expected found || fail "other lines than expected: $(diff expected found)"
expect '^start with arguments network=mlp, .*batch_size=20,'
expect '^node 0 \(.+\): worker 0 \(rank 0, pid \d+\), worker 1 \(rank 1, pid \d+\), server 0 \(rank 2, pid \d+\)$'
expect '^2 workers, 1 server, \d+ threads? per worker; '
expect '^batch size 20 per device, 20 per worker, 40 global; 600 samples in 15 steps an epoch$'
expect '^optimizer sgd: lr 0.1, gradients rescaled by 1/40$'
expect '^3 ranks: 2 workers, 1 server; --kv-store dist_sharded lets all 3 train$'
train 2 $mlp --num-epochs 1 --num-batches 2
expect '^kv-store dist_sharded: '
expect '^2 workers, 0 servers, '
expect_none '^\d+ ranks: '
cores=$(nproc)
if [ "$cores" -le 4 ]; then
	train $((cores + 1)) $mlp --batch-size 1 --num-epochs 1 --num-batches 1 --kv-store dist_sharded
	expect_count 1 "^warning: node 0 \(\S+\): $((cores + 1)) workers on $cores cores?: speed suffers"
	train "$cores" $mlp --batch-size 1 --num-epochs 1 --num-batches 1
	expect_none ' speed suffers'
fi
if [ "$(mpi_kind)" = mpich ]; then
	# NODES RANKS: of each node; STORE; workers; servers. Hosts of one machine count as nodes.
	while read -r nodes each store workers servers more; do
		hosts=
		for ((i = 1; i <= nodes; i++)); do hosts+=,127.0.0.$i:$each; done
		np=$((nodes * each))
		timeout -k 5 $((100 * ${MU_TIMEOUT_SCALE:-1})) $MPIRUN -launcher fork -hosts "${hosts#,}" -n $np \
			"$TRAINER" $mlp --batch-size 1 --num-epochs 1 --num-batches 1 $more >"$log" 2>&1 </dev/null ||
			fail "$nodes nodes of $each ranks: exit status $?"
		expect "^kv-store $store: "
		expect "^$workers workers?, $servers servers?, "
		[ $servers != 0 ] ||
			expect "^$np ranks on $nodes nodes: all train .* dist_sync makes"
	done <<-END
		2 1 dist_sharded 2 0
		4 1 dist_sharded 4 0
		2 2 dist_sharded 4 0
		3 3 dist_sharded 9 0
		2 4 dist_sync 6 2
		4 1 dist_sync 3 1 --kv-store dist_sync
		8 1 dist_async 6 2 --kv-store dist_async
		3 1 dist_sync 2 1 --server-placement packed
		2 2 dist_sync 2 2 --num-servers 2
	END
fi
train 2 $mlp --num-epochs 1 --num-batches 2 --num-servers 1
expect '^kv-store dist_sync: .*, 1 server with'
expect '^2 ranks: 1 worker, 1 server; '
train 3 $mlp --num-epochs 1 --num-batches 2 --kv-store dist_sync
expect_none '^\d+ ranks: '
train 3 $mlp --disp-batches 5 --loss perplexity,nll,ce,nll_loss --num-epochs 1
{
	for batches in 0-5 5-10; do
		printf 'Epoch[0] Batch [%s]\tSpeed: F2 samples/sec\t' "$batches"
		printf 'accuracy=F6\tcross-entropy=F6\tperplexity=F6\tnll-loss=F6\tcomm=F1%%\n'
	done
	for what in Train Validation; do
		for name in accuracy cross-entropy perplexity nll-loss; do echo "Epoch[0] $what-$name=F6"; done
		[ $what = Validation ] || printf 'Epoch[0] %s=F3\n' 'Time cost' 'Exposed communication'
	done
} >expected
shape_of_log >found
cmp -s expected found || fail "other lines than expected: $(diff expected found)"
train 3 $mlp --num-epochs 1 --update-period 4 --label-smoothing 0.1
expect '^batch size 20 per device, 20 per worker, 160 global \(4 batches of each worker make an update\);'
expect ' 600 samples in 15 batches and 4 updates an epoch$'
expect '^optimizer sgd: lr 0.1, gradients rescaled by 1/160$'
expect '^label smoothing 0.1 in training'
train 2 --network mlp --data-dir set --num-epochs 1 --batch-size 100 --disp-batches 2
stamp='\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} Node\[0\] '
expect "^${stamp}Epoch\[0\] Batch \[0-2\]\tSpeed: \d+\.\d\d samples/sec\taccuracy=\d\.\d{6}\t"
expect_none "^(?!$stamp)"

part "how long it trains"
train 3 $mlp --num-epochs 60 --target-accuracy 0.2
expect '^target accuracy 0.2 reached'
expect_none '^Epoch\[59\]'
at_least Validation-accuracy 0.2
train 3 $mlp --num-ep 1 --num-batches 3 --disp 1
expect '^trained 120 samples'
expect_count 2 'Speed:'
jobs=("3 41" "7 121 --num-servers 3")
! in_tier full || jobs+=("3 333" "4 61")
for job in "${jobs[@]}"; do
	set -- $job
	np=$1 n=$2
	shift 2
	for store in dist_sync dist_async; do
		train "$np" $mlp --num-epochs 2 --num-examples "$n" --kv-store $store "$@"
		expect "^trained $((2 * n)) samples"
	done
done
train 1 $mlp --num-epochs 1 --num-examples 59
expect '^trained 59 samples'
train 3 --network mlp --data-dir set --num-epochs 1 --global-batch-size 30 $plain
expect '^batch size 15 per device, 15 per worker, 30 global'

part "without data, without training"
train 3 --network mlp --benchmark 1 --num-batches 30 --num-epochs 1 --batch-size 10 $plain
expect '^Epoch\[0\] Batch \[0-20\]\tSpeed: '
expect '^trained 600 samples'
expect_none Validation
train 3 $mlp --test-io 1 --disp-batches 5
expect '^Batch \[4\]\tSpeed: \d+\.\d\d samples/sec$'
expect '^Batch \[14\]\tSpeed'
expect_none '^Epoch'
train 3 $mlp --check
expect '^check: options, data and layout are good$'
expect_none '^Epoch'

part "about"
train 3 --version
expect_count 1 '^Muster trainer \d+\.\d+'
train 3 --info
for line in Muster MPI: HDF5: device: CUDA: cores: threads:; do expect "^$line +\S"; done
train 3 --help
expect_count 1 '^usage: '
[ "$(wc -l <"$log")" -le 60 ] || fail "--help has $(wc -l <"$log") lines, more than a screen"
awk 'length > 100 { n++ } END { exit n > 0 }' "$log" || fail "--help has lines of more than 100 columns"
expect_none bucket-bytes
train 1 --help-all
expect '^  --bucket-bytes N'
awk 'length > 100 { n++ } END { exit n > 0 }' "$log" || fail "--help-all has lines of more than 100 columns"

if has_files; then
	export OMP_NUM_THREADS=1 # bits depend on it
	part "the same run has the same bits"
	train 3 $mlp --num-epochs 1 --model-prefix one
	train 3 $mlp --num-epochs 1 --model-prefix two
	cmp one-0001.h5 two-0001.h5 || fail "the same run twice: other bits"
	train 4 $mlp --num-epochs 1 --model-prefix servers --num-servers 2
	same_model one-0001.h5 servers-0001.h5 || fail "two servers instead of one: other bits"
	train 3 $mlp --num-epochs 1 --model-prefix buckets --bucket-bytes 10000
	same_model one-0001.h5 buckets-0001.h5 || fail "smaller buckets: other bits"
	train 3 $mlp --num-epochs 1 --model-prefix seed --seed 1
	same_model one-0001.h5 seed-0001.h5 && fail "another seed: the same bits"
	train 4 $mlp --num-epochs 1 --model-prefix workers
	same_model one-0001.h5 workers-0001.h5 && fail "three workers instead of two: the same bits"

	part "from a checkpoint"
	train 3 $mlp --num-epochs 3 --model-prefix P --save-period 1
	grep -E '^Epoch\[2\] Validation' "$log" >expected
	[ -s P-0001.h5 ] && [ -s P-0002.h5 ] && [ -s P-0003.h5 ] || fail "P-0001.h5 to P-0003.h5 are not all there"
	train 3 $mlp --num-epochs 3 --model-prefix P --load-epoch 3
	expect '^Loaded model P-0003.h5$'
	expect_none 'Train-|Speed:|Saved'
	grep -E '^Epoch\[2\] Validation' "$log" >found
	cmp -s expected found || fail "loaded: $(cat found), at saving: $(cat expected)"
	train 3 $mlp --num-epochs 2 --model-prefix P --load-epoch 1
	expect_none '^Epoch\[0\]'
	expect '^Epoch\[1\] Train-accuracy='
	expect '^Saved checkpoint to "P-0002.h5"$'
	train 1 $mlp --num-epochs 3 --model-prefix P --load-epoch 3
	expect "^$(sed -n 's/\[/\\[/; s/\]/\\]/; 1p' expected)$"
	rm -f P-*.h5
	train 2 $mlp --num-epochs 3 --model-prefix P --save-period 2 --best-metric none
	[ ! -e P-0001.h5 ] && [ -s P-0002.h5 ] && [ ! -e P-0003.h5 ] || fail "--save-period 2 of 3: $(ls P-*.h5)"
else
	echo "checkpoints: skipped, this build has no HDF5"
fi
unset OMP_NUM_THREADS

part "real MNIST"
mnist=${MUSTER_MNIST-}
if in_tier full && ls "$mnist"/train-images-idx3-ubyte* >/dev/null 2>&1; then
	for store in dist_sync dist_async; do
		train 3 --network mlp --data-dir "$mnist" --kv-store $store --num-epochs 1 --batch-size 64 \
			--lr 0.05 --mom 0.5 --num-examples 12000 $plain
		at_least Validation-accuracy 0.85
	done
else
	echo "real MNIST: skipped, it is for check-all, with the folder of MNIST's files in MUSTER_MNIST"
fi
part "placement of servers, on two nodes"
jobs="packed:1 $(in_tier full && echo spread:2 colocated:0)"
if nodes_up 2; then nodes_use 2; else jobs=; fi
for job in $jobs; do
	set -- ${job/:/ }
	more=$([ "$1" = colocated ] || echo --num-servers 2)
	train 5 $mlp --kv-store dist_sync --server-placement "$1" $more --num-epochs 1
	expect_count "$2" 'server \d \(rank \d, pid'
	expect '^a link of \d.* bounds a step'
	expect '^push and pull: .* ms a step, .* of the bound'
	[ "$1" != spread ] || expect '^node 0 .*server 1'
	[ "$1" != packed ] || expect_none '^node 0 .*server'
	[ "$1" != colocated ] || expect '^kv-store dist_sharded'
done
nodes_end

finish
