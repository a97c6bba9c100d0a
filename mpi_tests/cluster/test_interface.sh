#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --interface: gradients and weights take the network interface that is named, of two.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"

net="--network mlp --benchmark 1 --num-batches 10 --num-epochs 1 --batch-size 20 --log-prefix none --log-time 0"

# refused REGEX NP ARGUMENT...: wrong use, told once, before anything else is.
refused() {
	local regex=$1
	shift
	run_limited 60 "$@"
	[ $status = 2 ] || fail "exit status $status, not 2"
	expect_count 1 'error: '
	expect "^trainer: error: $regex"
	expect_none 'BAD TERMINATION|start with arguments|Abort'
}

unset UCX_NET_DEVICES OMPI_MCA_btl_tcp_if_include # mpi_tests/run's
part "an interface that does not exist"
list='host \S+ has no such interface with an address; it has: .*\blo \(127\.0\.0\.1\)'
refused "--interface eth7: $list" 1 $net --interface eth7
refused "--interface eth7: $list" 3 $net --interface eth7
DMLC_INTERFACE=eth8 refused "DMLC_INTERFACE=eth8: $list" 2 $net

part "one that does"
DMLC_INTERFACE=eth8 train 2 $net --interface lo
expect '^node 0 \(\S+, lo 127\.0\.0\.1\): worker 0'
expect_none 'which takes precedence'
UCX_NET_DEVICES=all train 2 $net --interface lo
expect 'interface lo: UCX_NET_DEVICES is set to all, which takes precedence'
DMLC_INTERFACE=eth8 "${TRAINER:?}" --version || fail "an interface is asked for by --version"

hosts_possible || {
	[ $failures = 0 ] || finish
	exit 77
}
hosts_up 2 && hosts_second || exit 1
hosts_use 2
unset UCX_NET_DEVICES OMPI_MCA_btl_tcp_if_include

# What is pushed and pulled in a run, 2 workers and 2 servers, bytes of one host.
bytes=$((109386 * 4 * 10))
# over N ARGUMENT...: more than half of it leaves host 1 by its interface N, little by the other.
over() {
	local n=$1 before1 before2 sent1 sent2 temporary
	shift
	before1=$(hosts_sent 1) before2=$(hosts_sent2 1)
	train 4 $net "$@" || return
	sent1=$(($(hosts_sent 1) - before1)) sent2=$(($(hosts_sent2 1) - before2))
	echo "eth0 $sent1 bytes, eth1 $sent2 bytes, of $bytes"
	[ "$n" = 1 ] || { temporary=$sent1 sent1=$sent2 sent2=$temporary; }
	[ "$sent1" -gt $((bytes / 2)) ] || fail "$sent1 bytes over eth$((n - 1)), of $bytes"
	[ "$sent2" -lt $((bytes / 10)) ] || fail "$sent2 bytes over the other interface"
	expect "^node 0 \\(mu.*-1, eth$((n - 1)) 10\\.[0-9.]+\\.1\\): worker 0"
	expect "^node 1 \\(mu.*-2, eth$((n - 1)) 10\\.[0-9.]+\\.2\\): worker 1"
}

part "the first of two"
over 1 --interface eth0
part "the second"
over 2 --interface eth1
part "by the environment"
export DMLC_INTERFACE=eth1
over 2
over 1 --interface eth0
unset DMLC_INTERFACE

part "a host that has it not"
ip -n "$(hosts_name 2)" link del eth1
refused "--interface eth1: host mu.*-2 has no such interface with an address; it has: lo .*eth0 " \
	4 $net --interface eth1
finish
