#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a newcomer types and reads: names of commands in messages, words of other programs, what a checkpoint holds.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
muster=$BUILDDIR/muster

# says STATUS TEXT COMMAND...: the last line is the text
says() {
	local wanted=$1 text=$2 got
	shift 2
	timeout -k 5 $((20 * ${MU_TIMEOUT_SCALE:-1})) "$@" >"$log" 2>&1 </dev/null
	got=$?
	[ "$got $(tail -n 1 "$log")" = "$wanted $text" ] || fail "$*: status $got, $(tail -n 1 "$log")"
}

# answers TEXT OPTION...: "trainer: error: TEXT"
answers() {
	says 2 "trainer: error: $1" "$TRAINER" --network mlp --benchmark 1 "${@:2}"
}

part "a command calls itself by its name"
says 2 "muster train: error: unknown option --bogus (--help lists them)" "$muster" train --bogus
says 2 "muster pack: error: expected PREFIX ROOT (see --help)" "$muster" pack
says 2 "muster launch: error: unknown option --bogus; --help lists them" "$muster" launch --bogus
says 2 "trainer: error: unknown option --bogus (--help lists them)" "$TRAINER" --bogus
# shellcheck disable=SC2086
timeout 60 $MPIRUN -n 2 "$muster" train --bogus >"$log" 2>&1 </dev/null
expect_count 1 '^muster train: error: unknown option --bogus'

part "words of other programs"
answers "unknown option -e; --num-epochs is for that (--help lists it)" -e 3
answers "unknown option -j; --data-nthreads is for that (--help-all lists it)" -j 4
answers "unknown option --gpuss; the nearest known one is --gpus, for which there is --devices" --gpuss 0
answers "unknown option -z (--help lists them)" -z
answers '--batch-size: "1e9" is not a whole number in digits' --batch-size 1e9
says 2 "trainer: error: --evaluate needs the file of parameters: --load FILE" "$TRAINER" --evaluate --data-dir set
first="a checkpoint comes first"
says 2 "muster: error: muster evaluate FILE.h5 --data-dir DIR: $first" "$muster" evaluate --data-dir set
says 1 "muster: error: this is the source: make writes muster into the build folder" "$SRCDIR/jobs/muster" train
answers '"-lr": an option begins with two dashes: --lr' -lr 0.1
answers "unknown option --lenet: write --network lenet" --lenet
answers "unknown option --dist-sync: write --kv-store dist_sync" --dist_sync
answers "unknown option --cosine: write --lr-schedule cosine" --cosine
answers "unknown option --resnet18: write --network resnet --num-layers 18" --resnet18
answers "unknown option --epoch-size; --num-batches is for that (--help-all lists it)" --epoch-size 3
answers "unknown option --num-parts: each rank reads its part of the records by itself: leave it out" --num-parts 2
answers "unknown option --batch-siez; the nearest known one is --batch-size (--help lists it)" --batch-siez 2
answers "unknown option --block-parts (--help lists them)" --block-parts 2
"$TRAINER" --network resent --benchmark 1 >"$log" 2>&1
expect 'error: --network resent: unknown; the nearest is resnet; known networks are: mlp '
answers "unknown option --rmsprop: write --optimizer rmsprop" --rmsprop
answers "unknown option --step-size; --lr-factor-epoch is for that (--help-all lists it)" --step-size 30
answers "unknown option --no-log-prefix: write --log-prefix none" --no-log-prefix
launcher="the launcher starts the ranks: mpirun -np N, or srun -n N, before the command"
answers "unknown option --nproc_per_node: $launcher" --nproc_per_node=2
mpi="ranks and hosts are known from MPI: leave it out, and start with mpirun -np N or srun"
answers "unknown option --local-rank: $mpi" --local-rank 0
answers "unknown option --fast-dev-run: write --num-batches 5 --num-epochs 1, or --check" --fast-dev-run
answers "unknown option --nesterov: write --optimizer nag" --nesterov
answers "unknown option --ckpt-path; --resume is for that (--help lists it)" --ckpt-path m
answers "unknown option --warmup-init-lr; --warmup-begin-lr is for that (--help-all lists it)" --warmup-init-lr 0
answers "unknown option --pin-memory: nothing has to be asked for here: leave it out" --pin-memory
few="--benchmark 1 --num-batches 2 --num-epochs 1 --log-format plain"
# shellcheck disable=SC2086 # words
train 1 --network MLP --optimizer AdamW --lr-schedule CosineAnnealingLR -b 3 --kv-store Local $few \
	--log-prefix none --verbose 1
expect '^network +mlp, '
expect 'network=MLP, .*batch_size=3, .*optimizer=adam, .*lr_schedule=cosine, .*adam_decay=decoupled, .*kv_store=local, '

part "what a checkpoint holds"
if has_files; then
	small_set set 60 20
	# shellcheck disable=SC2086
	train 1 --network mlp --data-dir set --num-epochs 1 --batch-size 20 --lr 0.05 --model-prefix m
	says 0 "no errors" "$muster" info m-best
	expect '^m-best: checkpoint of a training, \d+ bytes$'
	expect '^saved +after epoch 1$'
	expect '^trained +60 samples in 3 updates, 20 a step of 1 worker; last lr 0.05$'
	expect '^best validation +accuracy 0\.\d+ after epoch 1$'
	expect '^parameters +109386, in a file of \d+ arrays$'
	expect '^lr +0.05$'
	timeout 60 "$muster" evaluate m-best --data-dir set >"$log" 2>&1 || fail "muster evaluate"
	expect 'm-best: accuracy 0\.\d+, '
	timeout 60 "$muster" predict m-best p.csv --data-dir set >"$log" 2>&1 || fail "muster predict"
	[ "$(wc -l <p.csv)" = 21 ] || fail "$(wc -l <p.csv) lines of predictions"
	first="a checkpoint, and the file to write, come first"
	says 2 "muster: error: muster predict FILE.h5 OUTPUT --data-dir DIR: $first" "$muster" predict m-best
	log=m-run.json
	expect '^    "structure": null,$'
	expect '^    "layers": \d+,$'
	expect '^    "classes": 10,$'
	expect '^    "kv_store": "device",$'
	log=trainer.log
fi

part "as wide as the terminal"
if command -v script >/dev/null && script -qec true /dev/null </dev/null >/dev/null 2>&1; then
	for words in "help train" "train --help-all"; do
		script -qec "stty cols 115; unset COLUMNS; $muster $words" /dev/null </dev/null | tr -d '\r' >"$log"
		n=$(wc -L <"$log")
		[ "$n" -gt 100 ] && [ "$n" -le 115 ] ||
			fail "muster $words has lines of $n columns on a terminal of 115"
	done
	# An error clears the line of progress.
	if has_files; then
		mkdir -p cut-0001.h5/full # no file can have its name: the save fails when the epoch is over
		script -qec "$TRAINER --network mlp --benchmark 1 --num-batches 20 -b 8 --num-epochs 1 \
			--model-prefix cut" /dev/null </dev/null >"$log" 2>&1
		expect 'epoch 1/1 100%'
		expect_none 'epoch 1/1 100%[^\x1b]*$'
		expect 'trainer: .*error:.* cut-0001.h5'
	fi
fi
finish
