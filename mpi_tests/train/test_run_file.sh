#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# P-run.json, the file about a run: valid JSON with what is true, however the run ends.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

if ! command -v python3 >/dev/null; then
	echo "skipped: there is no python3 to read JSON with"
	exit 77
fi
needs_files
small_set set 600 200
mlp="--network mlp --data-dir set --batch-size 20 --num-epochs 2 --lr 0.25 --log-prefix none --log-time 0"

# says FILE EXPRESSION: of the run r, in python
says() {
	python3 -m json.tool "$1" >tool.out 2>&1 || { fail "$1 is no JSON: $(cat tool.out)"; return; }
	python3 -c '
import json, sys
r = json.load(open(sys.argv[1], encoding="utf-8"))
sys.exit(not eval(sys.argv[2]))' "$1" "$2" || fail "$1: not $2: $(head -c 600 "$1")"
}

part "a run that ends"
train 3 $mlp --kv-store dist_sync --seed 7 --model-prefix P
says P-run.json 'r["exit"] == "finished" and r["cause"] is None and r["seed"] == 7'
says P-run.json 'min(x["peak_memory"] for x in r["ranks"]) > 1e6'
says P-run.json 'r["started"] <= r["ended"] and len(r["ended"]) == 20 and r["ended"].endswith("Z")'
says P-run.json '[(x["rank"], x["role"], x["index"]) for x in r["ranks"][:2]] == [(0, "worker", 0), (1, "worker", 1)]'
says P-run.json '[(x["rank"], x["role"], x["index"]) for x in r["ranks"][2:]] == [(2, "server", 0)]'
says P-run.json "r[\"ranks\"][2][\"host\"] == \"$(hostname)\""
says P-run.json 'r["options"]["lr"] == 0.25 and r["options"]["num-epochs"] == 2 and r["options"]["override"] is None'
says P-run.json 'r["options"]["network"] == "mlp" and r["options"]["check"] is False and r["resumed_from"] is None'
says P-run.json 'all(r["versions"][k] for k in ("muster", "mpi", "hdf5", "device"))'
version=$("$TRAINER" --version | sed 's/.* //')
says P-run.json "r[\"versions\"][\"muster\"] == \"$version\""
train 1 $mlp --kv-store local --num-epochs 3 --model-prefix P --resume auto --override seed
says P-run.json 'r["resumed_from"] == "P-0002.h5"'

part "names that need care"
name=$(printf 'a"b\\c\001\303\251\t\377\355\240\200z')
train 1 $mlp --kv-store local --model-prefix "$name"
says "$name-run.json" 'r["options"]["model-prefix"] == "a\"b\\c\x01\u00e9\t\ufffd\ufffd\ufffd\ufffdz"'

part "while it runs, and after it was killed"
# kill_one RANK ARGUMENT...: a job of two ranks, one of which is killed; before that, `meanwhile` is called.
kill_one() {
	local rank=$1
	shift
	new_mark
	rm -f "$log"
	(launch 60 2 $mlp --num-epochs 100000 --kv-store dist_sync --model-prefix K --save-period 5 --keep 2 "$@") &
	job=$!
	for _ in $(seq 2000); do
		[ -e K-latest ] && grep -qs '^Epoch\[[0-9]*\] Train' "$log" && break
		sleep 0.01
	done
	says K-run.json 'r["exit"] == "running" and r["ended"] is None'
	meanwhile
	kill -s KILL "$(sed -n "s/^node .*(rank $rank, pid \\([0-9]*\\)).*/\\1/p" "$log")"
	wait $job
	[ -z "$(leftovers)" ] || fail "left running"
	says K-run.json 'r["exit"] == "running" and r["ended"] is None'
}
meanwhile() {
	local log=other.log
	says K-run.json \
		"r[\"process\"][\"pid\"] == $(sed -n 's/^node .*worker 0 (rank 0, pid \([0-9]*\)).*/\1/p' trainer.log)"
	cp K-run.json L-run.json
	(launch 60 1 $mlp --kv-store local --model-prefix L --overwrite 1) ||
		fail "exit status $? of a run beside the other"
	expect_count 1 'L-run.json: another run with this prefix is under way, its worker 0 is process \d+'
	[ -e L-run-1.json ] && fail "a run that is under way counts as lost"
}
kill_one 1
meanwhile() { :; }
rm -f K-latest
kill_one 0 --resume auto
expect_count 1 'the run before this one was killed, or its host was lost: K-run-1.json tells of it'
says K-run-1.json 'r["exit"] == "lost" and r["ended"] is None and r["cause"].startswith("it told no end")'
says K-run-1.json 'r["resumed_from"] is None and r["options"]["resume"] == "none"'
sed -i 's/"running"/"lost"/' K-run.json # killed as it began, before its own file
train 1 $mlp --kv-store local --model-prefix K --overwrite 1
train 1 $mlp --kv-store local --model-prefix K --overwrite 1
expect_none 'the run before this one'
says K-run-2.json 'r["exit"] == "lost" and r["resumed_from"].startswith("K-")'
says K-run.json 'r["exit"] == "finished"'
[ -e K-run-3.json ] && fail "a run that ended counts as lost"
: >K-run.json
train 1 $mlp --kv-store local --model-prefix K --overwrite 1
says K-run.json 'r["exit"] == "finished"'

part "after one whose worker 0 has ended, of which nobody has taken note yet"
bash -c '(until [ "$(cat /proc/$$/comm)" = sleep ]; do sleep 0.01; done) & echo $! >ended; exec sleep 100' &
parent=$!
for _ in $(seq 2000); do
	pid=$(cat ended 2>/dev/null)
	grep -qs ') Z ' "/proc/$pid/stat" && break
	sleep 0.01
done
ticks=$(sed 's/.*) //' "/proc/$pid/stat" | cut -d ' ' -f 20)
train 1 $mlp --kv-store local --model-prefix Z
sed -i -e 's/"finished"/"running"/' -e "s/\"pid\": [0-9]*/\"pid\": $pid/" \
	-e "s/\"start_ticks\": [0-9]*/\"start_ticks\": $ticks/" Z-run.json
train 1 $mlp --kv-store local --model-prefix Z --overwrite 1
expect_count 1 'the run before this one was killed, or its host was lost: Z-run-1.json tells of it'
kill $parent

part "a signal"
rm -f "$log"
new_mark
(launch 60 2 $mlp --num-epochs 100000 --kv-store dist_sync --model-prefix S --save-period 100000 --best-metric none) &
job=$!
for _ in $(seq 2000); do
	grep -qs '^Epoch\[1\] Train' "$log" && break
	sleep 0.01
done
kill -s TERM "$(sed -n 's/^node .*(rank 1, pid \([0-9]*\)).*/\1/p' "$log")"
wait $job
[ $? = 85 ] || fail "not exit status 85"
says S-run.json 'r["exit"] == "halted" and r["cause"].startswith("SIGTERM came to server 0 (rank 1, ")'

part "an error"
run_limited 60 1 $mlp --kv-store local --lr 1e6 --model-prefix E
[ $status = 1 ] || fail "exit status $status of weights that are not finite"
says E-run.json 'r["exit"] == "error" and "not finite" in r["cause"] and r["trace"][0].startswith("src/train/guard.c:")'
expect 'not finite'
run_limited 60 2 $mlp --kv-store dist_sync --num-servers 7 --model-prefix U
[ $status = 2 ] || fail "exit status $status of too many servers"
[ -e U-run.json ] && fail "a run that did not begin has a file"

part "a folder where nothing can be written"
mkdir full
if mount -t tmpfs -o size=4k tmpfs full 2>/dev/null; then
	head -c 4096 /dev/zero >full/zero 2>/dev/null
	run_limited 60 1 $mlp --kv-store local --model-prefix full/P --save-period 9 --best-metric none
	expect 'the file about this run cannot be written: .*No space left'
	expect 'full/P.lock: cannot be written: No space left on device; another job with this prefix is not refused'
	[ "$(ls full)" = zero ] || fail "left: $(ls full)"
	umount full
else
	echo "skipped, no file system can be mounted here"
fi
finish
