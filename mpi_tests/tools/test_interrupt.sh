#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Signals that end im2rec, h5rec and rec2idx in the middle of their work: the process ends by the signal,
# no temporary file is left, and what was there before is as it was.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export LC_ALL=C
JPEG=$BUILDDIR/mpi_tests/lib/make_jpeg
log=tool.log

if [ ! -x "$JPEG" ]; then
	echo "skip: this build has no libjpeg, of which the test makes its images"
	exit 77
fi

# ended SIGNAL WAIT-FOR TOOL ARGUMENT...: started in out/, sent SIGNAL when a file matches WAIT-FOR. A
# shell's jobs in the background ignore SIGINT, but not those of another kind of start: env.
ended() {
	local signal=$1 pattern=$2 number pid st
	shift 2
	number=$(kill -l "$signal")
	(cd out && exec env --default-signal=INT "$BUILDDIR/$1" "${@:2}") >"$log" 2>&1 </dev/null &
	pid=$!
	until compgen -G "out/$pattern" >/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
	compgen -G "out/$pattern" >/dev/null || fail "no out/$pattern of $*"
	kill -s "$signal" $pid
	wait $pid
	st=$?
	[ $st = $((128 + number)) ] || fail "exit status $st, not $((128 + number)), of $*: $(cat "$log")"
	expect "^$1: ended by a signal .*: what was not complete is removed$"
	expect_none 'error: |Sanitizer'
	[ "$(ls out)" = "$before" ] || fail "$* leaves $(ls out)"
}

mkdir -p set/a out
"$JPEG" write set/a/1.jpg 40 30 rgb 1
"$BUILDDIR/h5rec" set first.rec >"$log" || fail "no first.rec"
# Minutes of work: one picture many times, enlarged.
for i in $(seq 0 4999); do printf '%d\t%d\ta/1.jpg\n' "$i" $((i % 3)); done >out/many.lst
echo before >out/many.idx
before=$(ls out)

part "im2rec"
for signal in INT TERM; do ended $signal 'many.rec.tmp-*' im2rec many ../set --resize 900; done
ended TERM 'many.rec.tmp-*' im2rec many ../set --resize 900 --num-thread 3
[ "$(cat out/many.idx)" = before ] || fail "many.idx is another one"

part "a signal that is ignored"
for i in $(seq 0 39); do printf '%d\t%d\ta/1.jpg\n' "$i" $((i % 3)); done >large.lst
(trap '' INT && exec "$BUILDDIR/im2rec" large set --resize 500 >"$log" 2>&1) &
pid=$!
until compgen -G "large.rec.tmp-*" >/dev/null || [ -e large.rec ]; do sleep 0.01; done
kill -s INT $pid
wait $pid || fail "exit status $? of im2rec"
expect '^im2rec: 40 images'

part "h5rec"
if has_files; then
	# The temporary file of images has no name; nothing is left of it either way.
	"$BUILDDIR/h5rec" large.rec large.h5 --raw >"$log" 2>&1 || fail "no large.h5"
	if ! "$BUILDDIR/h5rec" large.h5 probe.rec --count 1 2>&1 | grep -q 'no libpng'; then
		ended INT 'x.tmp-*/00000/000000000.png' h5rec ../large.h5 x/
		ended TERM 'y.rec.tmp-*' h5rec ../large.h5 y.rec
	fi
fi

part "rec2idx"
for _ in $(seq 200); do cat large.rec; done >out/long.rec
before=$(ls out)
for pause in 0 0.01 0.02 0.05; do
	(cd out && exec "$BUILDDIR/rec2idx" long.rec many.idx) >"$log" 2>&1 &
	sleep $pause
	kill -s TERM $! 2>/dev/null
	wait $!
	[ "$(ls out)" = "$before" ] || fail "rec2idx leaves $(ls out)"
done
finish
