#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --profile: its rows are the layers of --summary, its times make up the training, its operations
# and bytes are those of the shapes; several workers and devices; files that cannot be written.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

export OMP_NUM_THREADS=1
plain="--log-prefix none --log-time 0 --num-epochs 1"
lenet="--network lenet --benchmark 1 --batch-size 32 $plain"

# No name here holds a comma. field FILE LAYER PHASE COLUMN
field() {
	awk -F, -v layer="\"$2\"" -v phase="$3" -v name="$4" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) column = i }
		$1 == layer && $4 == phase { print $column }' "$1"
}

# holds FILE: 14 fields in every row, and all times together are the training; 3: that alone is not so.
holds() {
	local seconds
	seconds=$(grep -oP '^trained \d+ samples in \K[0-9.]+' "$log")
	awk -F, -v wall="$seconds" '
		NF != 14 { print FILENAME ": " NF " fields in " $0; wrong = 1 }
		NR > 1 { all += $7; shares += $8 }
		NR > 1 && $7 < 0 && $7 > -1e-6 { next }
		NR > 1 && $7 < 0 { print FILENAME ": a time below 0 in " $0; wrong = 1 }
		END {
			if (all > 1.5 * wall || wall > 1.5 * all || shares < 0.999 || shares > 1.001) {
				print FILENAME ": " all " s and " shares " in rows, " wall " s of training"
				apart = 3
			}
			exit wrong ? 1 : apart
		}' "$1"
}

# profiled FILE NP ARGUMENT...: a run whose profile holds. Profile and log read the clock one after the other,
# and a busy machine may run other programs in between, for longer than a short run takes: not twice in a row.
profiled() {
	local file=$1 st
	shift
	train "$@" --profile "$file"
	holds "$file"
	st=$?
	if [ $st = 3 ]; then
		train "$@" --profile "$file"
		holds "$file"
		st=$?
	fi
	[ $st = 0 ] || fail "the times of $file"
}

# layers FILE: those of --summary with their kinds, in order; log: a summary
layers() {
	awk '$1 == "layer" { on = 1; next } $1 == "total" { on = 0 } on' "$log" | cut -c 1-59 |
		sed -E 's/^(\S+) +(.*\S) *$/\1|\2/' >expected
	awk -F, '$4 == "forward" { gsub("\"", ""); print $1 "|" $2 }' "$1" >found
	[ -s expected ] && cmp -s expected found ||
		fail "layers of $1: $(diff expected found | head -n 4)"
}

part "lenet"
profiled lenet.csv 1 $lenet --num-batches 20
expect '^Saved profile to "lenet.csv"'
expect_none '^profile'
awk -F, -v wall="$(grep -oP '^trained \d+ samples in \K[0-9.]+' "$log")" '
	$1 != "\"\"" && NR > 1 { sum += $7 }
	END { print "layers " sum " s of " wall; exit !(sum <= wall && sum >= wall / 2) }' lenet.csv ||
	fail "layers are less than half of a run that computes, or more than all"
train 1 $lenet --summary
layers lenet.csv
grep -q '^"fullyconnected0","fullyconnected + tanh",' lenet.csv || fail "no fused layer"

# is LAYER PHASE COLUMN NUMBER
is() {
	local found
	found=$(field lenet.csv "$1" "$2" "$3")
	[ "$found" = "$4" ] || fail "$3 of $1, $2: $found, not $4"
}
samples=$((20 * 32))
is convolution0 forward calls 20
is convolution0 forward samples $samples
is convolution0 forward flop $((samples * 2 * 20 * 25 * 24 * 24))
is convolution0 backward flop $((samples * 2 * 20 * 25 * 24 * 24)) # nobody reads the data's gradient
is convolution1 forward flop $((samples * 2 * 50 * 20 * 25 * 8 * 8))
is convolution1 backward flop $((samples * 4 * 50 * 20 * 25 * 8 * 8))
is fullyconnected0 backward flop $((samples * 4 * 800 * 500))
is pooling0 forward flop 0
is convolution0 forward bytes $((4 * (samples * (28 * 28 + 20 * 24 * 24) + 20 * 520)))
# Gradients of both sides, the input, weights with their gradients.
is convolution1 backward bytes $((4 * (samples * (2 * 20 * 12 * 12 + 50 * 8 * 8) + 20 * 2 * 25050)))
is activation0 backward bytes $((4 * samples * 3 * 20 * 12 * 12))

part "other networks, a short last step, other devices"
small_set set 100 40
profiled short.csv 1 --network lenet --data-dir set --batch-size 30 $plain
[ "$(field short.csv convolution0 forward calls) $(field short.csv convolution0 forward samples)" = "4 100" ] ||
	fail "calls and samples with a short last step"
[ "$(field short.csv convolution0 backward calls)" = 4 ] || fail "backward with a short last step"
resnet="--network resnet --num-layers 20 --image-shape 3,32,32 --num-classes 10 --benchmark 1 --batch-size 8"
profiled resnet.csv 1 $resnet $plain --num-batches 3
train 1 $resnet --summary
layers resnet.csv
profiled ref.csv 1 $lenet --num-batches 2 --devices ref
[ "$(field ref.csv convolution0 forward of_limit)" = 0.0000 ] || fail "a limit of the device ref"
profiled two.csv 1 $lenet --num-batches 4 --devices ref:0,ref:1
[ "$(field two.csv convolution1 forward samples)" = 64 ] || fail "samples of the first of two devices"

part "the table"
train 1 $lenet --num-batches 3 --profile
expect '^profile of worker 0: \d'
expect '^convolution0 +convolution +(direct +)?forward +3 '
expect '^ +update '
expect_count 1 '^by kind '
train 1 $lenet --num-batches 3
expect_none '^profile|^by kind'

# The table is on standard output, and a line of the log may come in the middle of one of it.
part "a validation"
if has_files; then
	few="--network lenet --data-dir set --batch-size 16 --load E-0001.h5 --evaluate $plain"
	train 1 --network lenet --data-dir set --batch-size 50 $plain --model-prefix E
	train 1 $few --profile valid.csv
	expect '^Saved profile to "valid.csv"'
	awk -F, 'NR > 1 { share += $8; backward += $4 == "backward" } NR > 1 && $7 < -1e-6 { wrong = 1 }
		END { exit wrong || backward || share < 0.999 || share > 1.001 }' valid.csv ||
		fail "the rows of a validation"
	[ "$(field valid.csv convolution0 forward calls)" = 3 ] || fail "40 records are not 3 calls"
	train 1 --network lenet --benchmark 1 --summary
	layers valid.csv
	train 3 $few --kv-store dist_sync --profile
	expect_count 1 'profile of worker 0: [0-9.]+ s of validation$'
	expect '^convolution0 +convolution .*forward +2 '
	expect_count 1 'profile over 2 workers, seconds: '
fi

part "several workers"
jobs=("2 dist_allreduce" "3 dist_sync")
! in_tier full || jobs+=("3 dist_async" "5 dist_sync --num-servers 2" "3 dist_sharded")
for job in "${jobs[@]}"; do
	set -- $job
	np=$1 store=$2
	shift 2
	profiled several.csv "$np" $lenet --kv-store "$store" "$@" --num-batches 3
	expect_count 1 "profile over [23] workers, seconds: data \d.* \(worker \d\), push .*forward \d.*other \d"
done
train 2 $lenet --kv-store dist_allreduce --num-batches 3 --comm-thread 1 --profile
expect_count 1 'profile of worker 0:'

part "files"
rm -rf none
run_limited 60 2 $lenet --kv-store dist_allreduce --num-batches 3 --profile none/p.csv
[ $status = 2 ] || fail "exit status $status, not 2, with a file that cannot be written"
expect_count 1 'error: .*--profile none/p.csv: cannot be written: No such file'
run_limited 60 1 --network mlp --benchmark 1 $plain --lr 1e6 --num-batches 40 --profile lost.csv
[ $status = 1 ] || fail "exit status $status of a run that breaks"
! ls lost.csv* >/dev/null 2>&1 || fail "a run that breaks left $(ls lost.csv*)"
finish
