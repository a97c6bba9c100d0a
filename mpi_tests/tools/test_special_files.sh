#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Files that are none: outputs replace no device and no pipe and follow no link that somebody has laid; inputs that are
# pipes do not block; a full standard output is an error. Devices are made in the test's own folder.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

run="--network mlp --benchmark 1 --num-batches 2 --batch-size 10 --num-epochs 1 --devices ref --log-prefix none"

# refused STATUS REGEX COMMAND...: at once
refused() {
	local wanted=$1 regex=$2
	shift 2
	timeout -k 5 $((30 * ${MU_TIMEOUT_SCALE:-1})) "$@" >"$log" 2>&1 </dev/null
	status=$?
	[ $status = "$wanted" ] || { fail "exit status $status, not $wanted, of $*" && show_log; }
	expect_count 1 "error: .*$regex"
}

part "outputs"
mkfifo pipe
targets=pipe
if [ "$(id -u)" = 0 ] && mknod device c 1 7 2>/dev/null; then
	targets="pipe device"
else
	echo "no device: this user cannot make one"
fi
mkdir set && small_set set 20 10
printf 'a.jpg 0\n' >list
for target in $targets; do
	before=$(stat -c '%F %i' $target)
	refused 2 "$target: cannot be written: it is a device or a pipe" "$TRAINER" $run --profile $target
	[ ! -x "$BUILDDIR/h5rec" ] || {
		ln -sfn $target a.rec
		refused 1 "a.rec: cannot be written: it is a device or a pipe" \
			"$BUILDDIR/h5rec" set/train-images-idx3-ubyte.gz a.rec
		[ -L a.rec ] || fail "the link is gone"
	}
	[ "$(stat -c '%F %i' $target)" = "$before" ] || fail "$target was replaced: $(stat -c %F $target)"
	[ -z "$(compgen -G '*.tmp-*')" ] || fail "left: $(echo *.tmp-*)"
done

part "a link in the way"
# The number of the process that writes is that of this shell, which becomes the trainer.
echo precious >precious
bash -c 'ln -s precious profile.csv.tmp-$$; exec "$@"' sh "$TRAINER" $run --profile profile.csv >"$log" 2>&1 ||
	{ fail "exit status $?" && show_log; }
[ "$(cat precious)" = precious ] || fail "a link was followed"
[ -s profile.csv ] && [ ! -L profile.csv ] || fail "profile.csv: $(ls -l profile.csv)"
if [ -x "$BUILDDIR/h5rec" ]; then
	mkdir elsewhere
	h5rec=("$BUILDDIR/h5rec" set/train-images-idx3-ubyte.gz)
	bash -c 'ln -s precious b.rec.tmp-$$; exec "$@"' sh "${h5rec[@]}" b.rec >"$log" 2>&1 || fail "exit status $?"
	[ "$(cat precious)" = precious ] && [ -s b.rec ] && [ ! -L b.rec ] || fail "b.rec: $(ls -l b.rec)"
	refused 1 'b.tmp-[0-9]+: the folder cannot be made: File exists' \
		bash -c 'ln -s elsewhere b.tmp-$$; exec "$@"' sh "${h5rec[@]}" b/
	[ -z "$(ls elsewhere)" ] || fail "a link was followed: $(ls elsewhere)"
	rm b.tmp-*
fi
[ -z "$(compgen -G '*.tmp-*')" ] || fail "left: $(echo *.tmp-*)"

part "inputs"
text="--network lstm --text words --data-train text --batch-size 1 --num-epochs 1 --num-hidden 4 --num-embed 4"
for _ in 1 2 3 4 5 6 7 8 9; do echo "a b c d e f g h"; done >text
refused 2 'pipe: cannot be read: it is not a plain file' "$TRAINER" $text --vocab pipe
refused 2 'pipe: cannot be read: it is not a plain file' "$TRAINER" ${text/-train text/-train pipe}
refused 2 'pipe: cannot be read: it is not a plain file' "$TRAINER" $run --conv-table pipe

mkdir -p pipes/ant && mkfifo pipes/ant/p.png x-images-idx3-ubyte x.tar
printf '0\t0\tant/p.png\n' >pipes.lst
plain='is not a plain file'
# What a tool reads: TOOL ARGUMENTS, parted by blanks.
while read -r tool arguments; do
	[ -x "$BUILDDIR/$tool" ] || continue
	refused 1 "$plain" "$BUILDDIR/$tool" $arguments
done <<-'END'
	im2rec pipes pipes
	im2rec pipes pipes --pass-through
	recinfo pipe
	recinfo pipe --no-decode
	recinfo x-images-idx3-ubyte
	h5rec pipe out.rec
	h5rec x-images-idx3-ubyte out.rec
	rec2idx pipe out.idx
	parse_log pipe
	plot_log pipe --output out.svg
	tokenize --train --vocab-size 300 tokens pipe
	muconvert pipe out.h5
	mubench run pipe
END
for tool in "h5rec x.tar out.rec" "cifar_pack --input pipe --output out"; do
	[ -x "$BUILDDIR/${tool%% *}" ] || continue
	"$BUILDDIR"/$tool 2>&1 </dev/null | grep -q 'has no libarchive' || refused 1 "$plain" "$BUILDDIR/"$tool
done
refused 2 "$plain" "$TRAINER" $run --load pipe
refused 2 "$plain" "$TRAINER" --network mlp --data-train pipe
[ ! -e out.rec ] && [ ! -e out.idx ] && [ ! -e pipes.rec ] || fail "left: $(ls)"
if [ -x "$BUILDDIR/parse_log" ]; then
	"$BUILDDIR/parse_log" <(echo 'Epoch[0] Train-accuracy=0.9') >"$log" 2>&1 || fail "a shell's pipe: $(cat "$log")"
fi

part "a full standard output"
if [ -w /dev/full ]; then
	"$TRAINER" --info >/dev/full 2>"$log" && fail "--info that nobody got"
	expect_count 1 'error: the output could not be written'
	[ ! -x "$BUILDDIR/recinfo" ] || {
		"$BUILDDIR/recinfo" set/train-images-idx3-ubyte.gz >/dev/full 2>"$log" && fail "recinfo that nobody got"
		expect_count 1 'error: the output could not be written'
	}
	for command in "measure --network mlp" "mubench --max-bytes 1024 --rounds 1" "tokenize --help"; do
		[ -x "$BUILDDIR/${command%% *}" ] || continue
		"$BUILDDIR/"$command >/dev/full 2>"$log" && fail "$command that nobody got"
		expect_count 1 'error: the output could not be written'
		"$BUILDDIR/"$command >&- 2>"$log" && fail "$command without a standard output"
		expect_count 1 'error: the output could not be written'
	done
fi
# Without a standard output the first file that is opened does not take its place.
[ ! -x "$BUILDDIR/rec2idx" ] || {
	printf '\n\043\327\316\004\0\0\0abcd' >one.rec
	"$BUILDDIR/rec2idx" one.rec one.idx >&- 2>"$log" && fail "rec2idx without a standard output"
	printf '0\t0\n' | cmp - one.idx || fail "one.idx: $(cat one.idx)"
}

part "a limit of file sizes"
for i in 1 2 3; do seq -s ' ' 3000; done >numbers.txt
[ ! -x "$BUILDDIR/tokenize" ] || {
	(ulimit -f 4 && exec "$BUILDDIR/tokenize" --train --vocab-size 300 tokens numbers.txt) >"$log" 2>&1 &&
		fail "tokenize beyond the limit"
	expect_count 1 'error: tokens/.*: cannot be written: '
	[ -z "$(ls -A tokens)" ] || fail "left: $(ls -A tokens)"
}

part "names"
refused 2 "--model-prefix '': a name is needed" "$TRAINER" $run --model-prefix ''
mkdir empty
printf '\0\0\010\003\0\0\0\0\0\0\0\034\0\0\0\034' >empty/train-images-idx3-ubyte
printf '\0\0\010\001\0\0\0\0' >empty/train-labels-idx1-ubyte
cp empty/train-images-idx3-ubyte empty/t10k-images-idx3-ubyte
cp empty/train-labels-idx1-ubyte empty/t10k-labels-idx1-ubyte
refused 2 'empty' "$TRAINER" --network mlp --data-dir empty
finish
