#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Energy by counters of nodes, in a folder that stands for /sys: exact sums, where a test changes the counters between
# two lines of the log and then ends the run by a signal.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"

needs_files
export MUSTER_SYSFS=$PWD/sys OMP_NUM_THREADS=1
small_set set 200 40
job="--network mlp --data-dir set --batch-size 20 --lr 0.01 --log-prefix none --log-time 0 --disp-batches 1"

# zone NAME KIND UJ RANGE: of powercap
zone() {
	mkdir -p "sys/class/powercap/$1"
	echo "$2" >"sys/class/powercap/$1/name"
	echo "$4" >"sys/class/powercap/$1/max_energy_range_uj"
	shows "$1" "$3"
}

# in_place FILE TEXT: of one length, at once: the file stays open where it is read
in_place() {
	printf '%40s\n' "$2" 1<>"$1"
}

# shows NAME UJ: from now on
shows() {
	in_place "sys/class/powercap/$1/energy_uj" "$2"
}

# Two packages; what must not be counted twice: parts of packages, the whole platform, the same by another way.
packages() {
	rm -rf sys
	zone intel-rapl:0 package-0 900000000 1000000000
	zone intel-rapl:1 package-1 5000000 1000000000
	zone intel-rapl:0:0 core 1000000 1000000000
	zone intel-rapl:2 psys 1000000 1000000000
	zone intel-rapl-mmio:0 package-0 900000000 1000000000
}

# changed COMMAND NP OPTION...: a run during whose second epoch COMMAND is called, and which ends by a signal later
changed() {
	local command=$1 np=$2
	shift 2
	new_mark
	rm -f "$log"
	(launch 100 "$np" $job --num-epochs 100000 "$@") &
	wait_line '^Epoch\[[0-9]*[1-9]\] Batch' || return
	$command
	sleep 0.1
	kill -s TERM "$(sed -n 's/^node .*(rank 0, pid \([0-9]*\)).*/\1/p' "$log" | head -n 1)"
	wait $!
	status=$?
	[ $status = 85 ] || { fail "exit status $status, not 85" && show_log; }
}

wait_line() {
	for _ in $(seq 3000); do
		grep -Eqs "$1" "$log" && return
		sleep 0.02
	done
	fail "no line $1"
	show_log
	return 1
}

# number FILE NAME: of a run file
number() {
	sed -n "s/^ *\"$2\": \\([0-9.e+-]*\\),\\{0,1\\}\$/\\1/p" "$1" | tail -n 1
}

# 300 J: one counter begins anew, at 1000 J, after 200 J; the other 100 J.
use_300() {
	shows intel-rapl:0 100000000
	shows intel-rapl:1 105000000
	shows intel-rapl:0:0 900000000
	shows intel-rapl:2 900000000
	shows intel-rapl-mmio:0 1000000
}

part "two packages, one of which begins anew"
packages
changed use_300 1 --kv-store local --model-prefix one/P --metrics-file m.jsonl --co2-factor 400
of='of packages of 1 of 1 nodes \(RAPL\); without DRAM, fans, disks, network$'
expect "^energy: 300\.0 J, 0\.000083 kWh, [0-9.e-]+ J/sample; 0\.0333 g of CO2; $of"
[ "$(number one/P-run.json joules) $(number one/P-run.json joules_before)" = "300 0" ] ||
	fail "run file: $(grep -A 5 energy one/P-run.json)"
expect '^Epoch\[0\] Energy=0\.000$'
awk -F '"joules": ' '/"event": "train"/ && NF > 1 { split($2, a, /[,}]/); sum += a[1] }
	END { exit !(sum <= 300.001) }' m.jsonl || fail "lines of --metrics-file have more than the run"
awk -F '"joules": ' '/"event": "epoch"/ && NF > 1 { split($2, a, /[,}]/); n++; sum += a[1] }
	END { exit !(n > 0 && sum <= 300.001) }' m.jsonl ||
	fail "epochs of --metrics-file have more than the run, or nothing"

part "going on from it, on other ranks"
packages
changed use_300 3 --kv-store dist_sync --model-prefix one/P --resume auto
expect '^energy: 300\.0 J, .*; with the runs before it 600\.0 J, 0\.000167 kWh; of packages of 1 of 1 nodes'

part "DRAM"
packages
zone intel-rapl:0:1 dram 0 1000000000
dram() {
	shows intel-rapl:0:1 7000000
}
changed dram 2 --kv-store dist_sharded
expect '^energy: 7\.0 J, .*; of packages, DRAM of 1 of 1 nodes \(RAPL\); without fans, disks, network$'

part "two nodes, whose counters the first worker of each reads"
if in_tier full && nodes_use 2; then
	packages
	changed use_300 4 --kv-store dist_allreduce
	expect '^energy: 600\.0 J, .*; of packages of 2 of 2 nodes \(RAPL\)'
	nodes_end
fi

part "a counter of the whole node, in place of all others"
packages
mkdir -p sys/cray/pm_counters
in_place sys/cray/pm_counters/energy "1000 J 1234567 us"
whole() {
	in_place sys/cray/pm_counters/energy "1250 J 1334567 us"
	use_300
}
changed whole 2 --kv-store dist_async --num-servers 1
expect '^energy: 250\.0 J, .*; of 1 of 1 nodes \(pm_counters\); without fans, disks, network$'

part "a counter that goes away"
packages
gone() {
	shows intel-rapl:1 25000000
	: >sys/class/powercap/intel-rapl:0/energy_uj
}
changed gone 1 --kv-store local
gone='can no longer be read: No data available; from here on it is not counted$'
expect_count 1 "warning: energy: .*/intel-rapl:0/energy_uj $gone"
expect '^energy: 20\.0 J'

part "counters that may not be read, or make no sense"
rm -rf sys
zone intel-rapl:0 package-0 0 1000000000
rm sys/class/powercap/intel-rapl:0/energy_uj
mkdir sys/class/powercap/intel-rapl:0/energy_uj # root may read everything but a folder
train 2 $job --kv-store dist_sync --num-epochs 1 --co2-factor 400
cure='it is not counted \(an administrator can let users read it\)$'
expect_count 1 "^energy: .*/intel-rapl:0/energy_uj: Is a directory: $cure"
expect 'warning: --co2-factor .*no counter of energy can be read here'
expect_none '^energy: [0-9]|Energy='
rmdir sys/class/powercap/intel-rapl:0/energy_uj
for text in "" abc -5 nan 1e999; do
	shows intel-rapl:0 "$text"
	train 1 $job --kv-store local --num-epochs 1
	expect_count 1 '^energy: .*energy_uj: No data available: it is not counted'
done

part "no counters: not a word"
rm -rf sys
train 1 $job --kv-store local --num-epochs 1 --model-prefix none/P
expect_none '[Ee]nergy'
grep -q energy none/P-run.json && fail "a run file with energy"

finish
