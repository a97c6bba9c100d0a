#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --evaluate and --predict: the metrics and the probabilities of a file's parameters, on any number of ranks.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

needs_files
export OMP_NUM_THREADS=1
small_set set 300 137
plain="--network mlp --data-dir set --batch-size 20 --log-prefix none --log-time 0"
train 1 $plain --num-epochs 3 --lr 0.1 --model-prefix A
value() {
	sed -n "s/^Epoch\[[0-9]*\] Validation-$1=//p" "$log" | tail -n 1
}
accuracy=$(value accuracy)
loss=$(value cross-entropy)

# close X Y LIMIT
close() {
	awk -v a="$1" -v b="$2" -v limit="$3" '
		BEGIN { d = a - b; exit !(a != "" && b != "" && d <= limit && -d <= limit) }'
}

# worth: the log has the metrics of the training run's end, once.
worth() {
	[ "$(grep -c 'Validation-accuracy=' "$log")" = 1 ] || fail "$* not one line of accuracy"
	close "$(value accuracy)" "$accuracy" 0 || fail "$*: accuracy $(value accuracy), not $accuracy"
	close "$(value cross-entropy)" "$loss" 2e-6 || fail "$*: loss $(value cross-entropy), not $loss"
	expect_none 'Train-accuracy|Speed:'
}

part "metrics"
train 1 $plain --load A-0003.h5 --evaluate
worth one rank
expect '^Epoch\[0\] Validation-accuracy='
train 1 $plain --num-epochs 3 --lr 0.1 --model-prefix A --load-epoch 3 --evaluate
expect '^Epoch\[2\] Validation-accuracy='
worth load-epoch
for np in 1 3; do
	train $np $plain --kv-store $([ $np = 1 ] && echo local || echo dist_sharded) --load A-0003.h5 --evaluate \
		--batch-size 1000 # more than there are
	worth a large batch
done
# Nothing of the training counts but the network, nor must the data be the same.
small_set other 250 90
train 1 $plain --num-epochs 1 --seed 7 --optimizer adam --model-prefix A --load-epoch 3 --evaluate
worth other settings
train 1 $plain --num-epochs 1 --model-prefix A --resume auto --evaluate
worth --resume
train 1 ${plain/--data-dir set/--data-dir other} --resume A-0003.h5 --evaluate
expect '^A-0003.h5: accuracy [01]\.\d{6}, .*cross-entropy \d+\.\d{6}.*; validated 90 samples in '
run_limited 60 1 ${plain/mlp/lenet} --resume A-0003.h5 --evaluate
[ $status = 2 ] || fail "exit status $status, not 2, of another network"
expect 'error: A-0003.h5 was saved with network mlp, and this run has lenet'
for np in $(in_tier full && echo 2 5) 3; do
	train $np $plain --load A-0003.h5 --evaluate --kv-store dist_sharded
	worth dist_sharded $np
done
train 4 $plain --load A-0003.h5 --evaluate --kv-store dist_sync --num-servers 1
worth dist_sync
train 3 $plain --load A-0003.h5 --evaluate --kv-store dist_async --num-servers 1
worth dist_async

# rows FILE: ids in order, each once; the accuracy is the log's.
rows() {
	awk -F , -v accuracy="$accuracy" 'NR == 1 { bad = $0 !~ /^id,label,predicted,p0,.*,p9$/; next }
		{ bad += $1 != NR - 2 || NF != 13; right += $2 == $3; sum = 0; best = 4
		  for (i = 4; i <= NF; i++) { sum += $i; if ($i > $best) best = i }
		  bad += sum < 0.9999 || sum > 1.0001 || best - 4 != $3 }
		END { exit !(!bad && NR == 138 && sprintf("%.6f", right / 137) == accuracy) }' "$1" ||
		fail "$1: wrong rows"
}

part "probabilities"
train 1 $plain --load A-0003.h5 --predict one.csv
worth --predict
rows one.csv
jobs=("3 dist_sharded" "3 dist_sync")
! in_tier full || jobs+=("2 dist_sharded" "5 dist_allreduce")
for job in "${jobs[@]}"; do
	rm -f more.csv
	train ${job% *} $plain --load A-0003.h5 --predict more.csv --kv-store ${job#* }
	worth $job
	rows more.csv
	paste -d , one.csv more.csv | awk -F , '
		NR > 1 { for (i = 1; i <= 13; i++) { d = $i - $(i + 13); bad += d > 1e-5 || d < -1e-5 } }
		END { exit bad > 0 }' || fail "$job: other probabilities"
done
train 2 $plain --batch-size 21 --devices cpu:0,cpu:1 --load A-0003.h5 --predict more.csv --kv-store dist_sharded
rows more.csv
train 3 $plain --load A-0003.h5 --predict more.h5 --kv-store dist_sharded
expect '^predictions of 137 records are in more.h5$'
python=
for candidate in python3 /usr/bin/python3; do
	[ -z "$python" ] && $candidate -c 'import h5py' 2>/dev/null && python=$candidate
done
if [ -n "$python" ]; then
	$python - <<-'END' || fail "more.h5 is not one.csv"
		import csv, zlib, h5py, numpy
		f = h5py.File("more.h5")
		rows = list(csv.reader(open("one.csv")))[1:]
		p, labels = f["probabilities"], f["labels"]
		assert p.shape == (137, 10) and p.dtype == "float32" and f.attrs["network"] == b"mlp"
		assert f.attrs["parameters"] == b"A-0003.h5"
		assert abs(p[:] - numpy.array(rows)[:, 3:].astype("f4")).max() < 1e-5
		assert (labels[:] == numpy.array(rows)[:, 1].astype("f4")).all()
		sums = [f["checksums"][a.attrs["checksum_index"]] for a in (p, labels)]
		assert sums == [zlib.crc32(a[:].tobytes()) for a in (p, labels)]
	END
else
	echo "more.h5: skipped, there is no h5py"
fi
ls ./*.tmp-* 2>/dev/null && fail "temporary files are left"

part "from C"
"$BUILDDIR/infer" A-0003.h5 set/t10k-images-idx3-ubyte >classes 2>infer.log || fail "infer: $(cat infer.log)"
awk -F , 'NR > 1 { best = 4; for (i = 4; i <= NF; i++) if ($i > $best) best = i; print best - 4, $best }' one.csv |
	paste - classes | awk '
		{ d = $2 - $4; bad += $1 != $3 || d > 1e-5 || d < -1e-5 } END { exit bad > 0 || NR != 137 }' ||
	fail "infer: other classes or probabilities"
"$BUILDDIR/infer" A-0003.h5 set/t10k-images-idx3-ubyte lenet >classes 2>infer.log && fail "infer takes another network"
grep -q 'A-0003.h5: none of its arrays fits' infer.log || fail "infer: $(cat infer.log)"

part "files that it would replace"
cp A-0003.h5 copy.h5
ln -s copy.h5 link.h5
for target in copy.h5 link.h5; do
	run_limited 60 1 $plain --load copy.h5 --predict $target
	[ $status = 2 ] || fail "exit status $status of --predict $target"
	expect "error: --predict $target: the run reads this file; predictions need another name"
done
run_limited 60 1 $plain --load A-0003.h5 --predict copy.h5
expect 'error: --predict copy.h5: the file is there already, and holds no predictions; '
cmp A-0003.h5 copy.h5 || fail "--predict replaced a checkpoint"
train 1 $plain --load A-0003.h5 --predict more.h5

part "wrong use"
# refuse STATUS REGEX ARGUMENT...
refuse() {
	local wanted=$1 text=$2
	shift 2
	run_limited 60 1 $plain "$@"
	[ $status = "$wanted" ] || fail "exit status $status, not $wanted, of $*"
	expect "$text"
}
refuse 2 'error: --evaluate: it needs parameters: use --load' --evaluate
refuse 2 'error: --predict x.txt: a name that ends in .h5, .csv or .npy' --load A-0003.h5 --predict x.txt
refuse 2 'error: --predict .h5: a name' --load A-0003.h5 --predict .h5
refuse 1 'error: --predict nowhere/x.h5' --load A-0003.h5 --predict nowhere/x.h5
refuse 1 'error: --predict nowhere/x.csv: cannot be written' --load A-0003.h5 --predict nowhere/x.csv
refuse 2 'error: --evaluate: there is no checkpoint' --resume auto --model-prefix none --evaluate
run_limited 60 1 --network mlp --benchmark 1 --load A-0003.h5 --predict x.csv
[ $status = 2 ] || fail "exit status $status, not 2, of random data"
expect 'error: --predict: it needs validation data'

part "the speed of it"
fast="--network mlp --benchmark 1 --batch-size 20 --evaluate --log-prefix none --log-time 0"
train 1 $fast --num-batches 31 --disp-batches 10
expect_count 3 '^Epoch\[0\] Batch \[(0-1|10-2|20-3)0\]\tSpeed: [0-9.]+ samples/sec\taccuracy='
expect_count 1 '^Epoch\[0\] Validation-accuracy='
expect_count 1 '^initial parameters: .*; validated 620 samples in [0-9.]+ s: [0-9.]+ samples/sec$'
expect_none 'Train-|^trained'
train 1 $fast --num-examples 210 --load A-0003.h5
expect_count 1 '; validated 210 samples in '
for job in "3 dist_sync" "2 dist_sharded"; do
	train ${job% *} $fast --num-batches 21 --kv-store ${job#* }
	expect_count 1 '^Epoch\[0\] Batch \[0-20\]\tSpeed: '
	expect_count 1 '; validated 840 samples in '
done
finish
