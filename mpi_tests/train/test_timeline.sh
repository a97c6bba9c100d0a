#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --timeline: the trace is what viewers take (each event on a line of its own, which awk can check), has every rank and
# layer, and its times make sense: a thread does one thing at a time, within steps; what a server does for a step lies
# between the workers' first push and last pull of it.
. "$SRCDIR/mpi_tests/lib/lib.sh"

# check_trace FILE STEPS WORKERS SERVERS [DEVICES]: of LeNet. Several devices do several layers backward at a time.
check_trace() {
	awk -v steps="$2" -v layers=9 -v workers="$3" -v servers="$4" -v devices="${5:-1}" '
	function bad(what) {
		if (n_bad++ < 5)
			print FILENAME ":" FNR ": " what ": " substr($0, 1, 160)
	}
	function value(name, text) {
		text = $0
		if (!sub(".*\"" name "\": ", "", text))
			bad("no " name)
		sub(/[,}].*/, "", text)
		return text + 0
	}
	# between the quotes number n - 1 and n
	function quoted(n, parts) {
		split($0, parts, "\"")
		return parts[n]
	}
	FNR == 1 { if ($0 != "{") bad("the first line"); next }
	FNR == 2 { if ($0 != "  \"displayTimeUnit\": \"ms\",") bad("the second line"); next }
	FNR == 3 { if ($0 != "  \"traceEvents\": [") bad("the third line"); next }
	$0 == "  ]" || $0 == "}" { tail = tail $0; next }
	!/^    \{"name": "[^"]*", "cat": "[a-z]*", "ph": "[XMbe]", "pid": [0-9]+, "tid": 0, .*\},?$/ {
		bad("not an event")
		next
	}
	{ if (open) bad("no comma before"); open = !/,$/ }
	{ pid = value("pid"); name = quoted(4); kind = quoted(8); phase = quoted(12) }
	phase == "M" && name == "process_name" { role[pid] = /"name": "worker/ ? "worker" : "server"; next }
	phase == "M" { next }
	{ ts = value("ts"); if (ts < 0) bad("before the begin") }
	phase == "b" || phase == "e" {
		id = value("id")
		if (phase == "b")
			begun[id] = ts
		else if (++ended && (!(id in begun) || ts < begun[id]))
			bad("the end of a bucket")
		if (first_push == "" || ts < first_push) first_push = ts
		if (ts > last_pull) last_pull = ts
		next
	}
	{ end = ts + value("dur"); if (end < ts) bad("a negative length") }
	kind == "step" {
		n_steps[pid]++
		# Steps are written when they end, behind all that is in them.
		if (ts < in_step[pid] - 0.002) bad("a step before the last is over")
		in_step[pid] = end
		next
	}
	{ if (ts < busy[pid] - 0.002) bad("two things at a time") }
	{ busy[pid] = end; kinds[pid, kind]++ }
	kind == "forward" || kind == "backward" { n_seen[pid, kind] += !((pid, name) in seen); seen[pid, name] = 1 }
	role[pid] == "server" && kind == "update" {
		if (ts < first_push) bad("an update before all pushes")
		# The weights of the last step are pulled in the next one.
		n_inside[pid] += end < last_pull
	}
	END {
		if (tail != "  ]}" || open != 1) bad("the end of the file")
		for (p in role) {
			if (role[p] == "server") {
				n_servers++
				if (n_inside[p] < steps - 1) bad("server " p ": " n_inside[p] " updates")
				continue
			}
			n_workers++
			if (n_steps[p] != steps) bad("worker " p " has " n_steps[p] " steps")
			if (n_seen[p, "forward"] != layers) bad("worker " p ": " n_seen[p, "forward"] " layers forward")
			if (devices == 1 && n_seen[p, "backward"] != layers) bad("worker " p ": layers backward")
			if (kinds[p, "forward"] < steps * layers) bad("worker " p ": forward")
			if (kinds[p, "data"] < steps) bad("worker " p ": data")
			if (workers > 1 && (!kinds[p, "push"] || !kinds[p, "pull"])) bad("worker " p ": push, pull")
		}
		if (n_workers != workers || n_servers + 0 != servers) bad("ranks")
		for (id in begun) n_begun++
		if (n_begun != ended) bad("buckets")
		if (workers > 1 && n_begun < steps - 1) bad("few buckets")
		exit n_bad > 0
	}' "$1" && return
	fail "$1 is not a timeline"
}

small_set set 330 90
job="--network lenet --data-dir set --batch-size 20 --lr 0.05 --num-epochs 1"

part "servers"
train 3 $job --kv-store dist_sync --timeline t.json --timeline-steps 7
expect_count 1 'Saved timeline to "t.json"'
check_trace t.json 7 2 1
grep -q '"name": "worker 1 (rank 1, ' t.json || fail "no name of worker 1"
grep -q '"name": "server 0 (rank 2, ' t.json || fail "no name of the server"
grep -q '"name": "backward convolution1"' t.json || fail "no name of a layer"
train 3 $job --kv-store dist_async --timeline async.json --timeline-steps 7
check_trace async.json 7 2 1
if command -v python3 >/dev/null; then
	python3 -c 'import json, sys
for name in sys.argv[1:]:
    assert len(json.load(open(name))["traceEvents"]) > 100' t.json async.json || fail "not JSON"
else
	echo "python3 is not there: no other reader of JSON has seen the files"
fi

part "stores without servers, one worker, more steps than there are, messages only"
train 2 $job --kv-store dist_sharded --node-reduce none --timeline sharded.json
check_trace sharded.json 9 2 0
grep -q '"update part 0"' sharded.json || fail "updates of a worker's server end"
train 1 $job --kv-store local --num-batches 3 --num-epochs 2 --timeline local.json
check_trace local.json 6 1 0
grep -q '"update fullyconnected1"' local.json || fail "updates of one worker"
train 2 $job --kv-store dist_allreduce --comm-thread 1 --devices ref:0,ref:1 --num-batches 3 --timeline two.json
check_trace two.json 3 2 0 2

part "files that cannot be"
run_limited 60 2 $job --kv-store dist_allreduce --timeline none/t.json
[ $status = 2 ] || fail "exit status $status"
expect_count 1 'error: .*--timeline none/t\.json: cannot be written: No such file'
run_limited 60 1 $job --timeline io.json --test-io 1
[ $status = 2 ] || fail "exit status $status with --test-io"
expect_count 1 'error: .*--timeline with .*: it is about training'
run_limited 60 1 --network mlp --benchmark 1 --num-epochs 1 --lr 1e6 --num-batches 40 --timeline lost.json
[ $status = 1 ] || fail "exit status $status of a run that breaks"
! ls lost.json* io.json* none 2>/dev/null || fail "something is left"

if in_tier long; then
	part "what it costs"
	# rate FILE ARGUMENT...: of one run, added to FILE
	rate() {
		local to=$1
		shift
		train 1 --network lenet --benchmark 1 --num-epochs 1 --num-batches 100 --batch-size 64 "$@"
		sed -n 's/.*: \([0-9.]*\) samples.sec$/\1/p' "$log" | tail -n 1 >>"$to"
	}
	files="--timeline cost.json --metrics-file cost.jsonl --tensorboard cost"
	"$TRAINER" --network lenet --benchmark 1 --tensorboard cost --check >"$log" 2>&1 ||
		files=${files% --tensorboard*}
	# Single runs differ by more than 2 %: the best of several, in turn.
	for _ in 1 2 3 4 5 6 7 8; do
		rate plain.txt
		rate with.txt $files
	done
	plain=$(sort -g plain.txt | tail -n 1) with=$(sort -g with.txt | tail -n 1)
	echo "samples/s: $plain without, $with with $files"
	awk -v a="$plain" -v b="$with" 'BEGIN { exit !(b >= 0.98 * a) }' || fail "$files cost more than 2 %"
fi
finish
