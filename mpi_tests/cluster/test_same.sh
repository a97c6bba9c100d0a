#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What must be the same on every rank, and when a run resumes: the program, its options, each byte of the data. A
# difference is refused or told, with its name.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

export OMP_NUM_THREADS=1
small_set a/set 200 60
gunzip a/set/*.gz
plain="--data-dir set --batch-size 10 --lr 0.1 --log-prefix none --log-time 0"
mlp="--network mlp $plain"
images=train-images-idx3-ubyte labels=train-labels-idx1-ubyte
val_images=t10k-images-idx3-ubyte val_labels=t10k-labels-idx1-ubyte

# spoil FILE AT VALUE: one byte
spoil() {
	printf "\\x$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# others FILE AT: folder b is folder a, but for a byte of a file
others() {
	rm -rf b
	cp -r a b
	spoil "b/set/$1" "$2" 5
	cmp -s "a/set/$1" "b/set/$1" && spoil "b/set/$1" "$2" 6
}

# in_folders "FOLDER..." ARGUMENT...: a rank in each, of $program there or of the trainer
in_folders() {
	local folder folders=$1 words=()
	shift
	for folder in $folders; do
		[ ${#words[@]} = 0 ] || words+=(:)
		words+=(-n 1 sh -c "cd $folder && test ! -x trainer || set -- ./trainer \"\$@\"
			test -x trainer || set -- $TRAINER \"\$@\"; exec \"\$@\"" sh "$@")
	done
	timeout -k 5 $((60 * ${MU_TIMEOUT_SCALE:-1})) $MPIRUN "${words[@]}" >"$log" 2>&1 </dev/null
	status=$?
}

# refused REGEX: one error
refused() {
	[ $status = 2 ] || { fail "exit status $status, not 2" && show_log; }
	expect_count 1 "error: .*$1"
	expect_count 1 'error: '
	expect_none '^Epoch'
}

part "the data of a rank are others"
in_folders "a a" $mlp --num-epochs 1
[ $status = 0 ] || { fail "exit status $status of equal data" && show_log; }
rows=("$images:500:other records for training" "$labels:107:other records for training"
	"$val_images:3000:other records for validation" "$val_labels:30:other records for validation")
for row in "${rows[@]}"; do
	IFS=: read -r file at what <<<"$row"
	others "$file" "$at"
	in_folders "a a b" $mlp --kv-store dist_sharded --num-epochs 1
	refused "set, idx: worker 2 \(rank 2, \S+\) has $what than worker 0 \(rank 0, .*same files on every node"
done
others $images 500
in_folders "a b b a" $mlp --kv-store dist_sync --num-servers 2 --num-epochs 1
refused 'has other records for training than' # whichever ranks are workers

part "the options of a rank are others"
new_mark
timeout 60 $MPIRUN -n 1 "$TRAINER" $mlp --num-epochs 1 : -n 1 "$TRAINER" $mlp --num-epochs 1 --lr 0.2 >"$log" 2>&1
status=$?
refused 'rank 1 \(\S+\) was started with other options than rank 0'

part "the program of a rank is another build"
others $images 500
cp a/set/$images b/set/$images
cp "$TRAINER" b/trainer
in_folders "a b" $mlp --num-epochs 1
[ $status = 0 ] || { fail "exit status $status of a copy" && show_log; }
echo >>b/trainer
in_folders "a b" $mlp --num-epochs 1
refused 'rank 1 \(\S+\) runs another build of this program than rank 0'
rm b/trainer

has_files || finish

# resume FOLDER ARGUMENT...: from a's checkpoint, on the data of the folder
resume() {
	local folder=$1
	shift
	cp a/P-* "$folder/" 2>/dev/null
	cd "$folder" || exit 1
	log=../trainer.log
	run_limited 60 1 $mlp --model-prefix P --num-epochs 4 --resume auto "$@"
	cd .. || exit 1
	log=trainer.log
}

part "a run resumes on other data"
cd a || exit 1
train 1 $mlp --model-prefix P --num-epochs 2
cd .. || exit 1
others $val_images 3000
in_folders "a b" --evaluate --load P-0002.h5 $plain
refused 'has other records for validation than'
for row in "${rows[@]:0:2}"; do
	IFS=: read -r file at what <<<"$row"
	others "$file" "$at"
	resume b
	refused 'was saved with (data|other training data: .* \(200 of 200 records\)).*--override data resumes'
	resume b --override data
	[ $status = 0 ] || { fail "exit status $status with --override data" && show_log; }
	expect 'warning: not as when P-0002.h5 was saved: (data \S+ \(was \S+\), )?data-contents '
done
rm -rf b
cp -r a b
resume b
[ $status = 0 ] || fail "exit status $status of a copy"
expect_none 'not as when|files of the data'

part "a run resumes with other validation data: the best so far is not theirs"
for file in $val_labels $val_images; do
	others $file 33
	# The old best is so good that no epoch of other data can take its place.
	resume b --num-epochs 3
	[ $status = 0 ] || { fail "exit status $status of other validation data" && show_log; }
	expect 'warning: not as when P-0002.h5 was saved: data-validation '
	expect 'warning: the validation data are others: the best epoch so far, [12], is forgotten'
	[ "$(readlink b/P-best)" = P-0003.h5 ] || fail "the best is $(readlink b/P-best)"
done
others $file 33
resume b --num-epochs 3 --keep 1 --best-metric none
[ ! -L b/P-best ] || fail "P-best points to $(readlink b/P-best), which says nothing about other validation data"

part "a run resumes in another placement on as many nodes"
if [ "$(mpi_kind)" = mpich ]; then
	set -- $mlp --kv-store dist_sharded --model-prefix Q
	cd a || exit 1
	export MPIR_CVAR_NUM_CLIQUES=2 MPIR_CVAR_CLIQUES_BY_BLOCK=1
	train 4 "$@" --num-epochs 1
	train 4 "$@" --num-epochs 2 --resume auto
	expect_none 'not as when'
	MPIR_CVAR_CLIQUES_BY_BLOCK=0 train 4 "$@" --num-epochs 3 --resume auto
	expect 'not as when Q-0002.h5 .*: placement 1 on node 0, 1 on node 1, .* \(was 2 on node 0, 2 on node 1\)'
	cd .. || exit 1
fi
finish
