# SPDX-License-Identifier: Apache-2.0
# Private hosts on one machine, for tests between nodes: network namespaces with host names of their
# own, joined by a bridge. MPI's messages travel by TCP, so that what passes a host's wire can be
# counted, slowed down and cut. Needs root. Sourced by bash after lib.sh.
# shellcheck shell=bash

hosts_bridge=mub$$
hosts_net=10.$((77 + $$ % 100)).$(($$ / 100 % 250))
hosts_n=0

hosts_name() { # I
	echo "mu$$-$1"
}

hosts_list() { # N: the first N, as mpirun wants them
	local i names=
	for ((i = 1; i <= $1; i++)); do names="$names,$(hosts_name "$i")"; done
	echo "${names#,}"
}

# Can this machine have any?
hosts_possible() {
	[ "$(id -u)" = 0 ] && command -v ip >/dev/null && command -v tc >/dev/null &&
		ip netns add "mu$$-try" 2>/dev/null && ip netns del "mu$$-try"
}

hosts_add() { # I
	local name wire=muv$$-$1
	name=$(hosts_name "$1")
	ip netns add "$name" &&
		ip link add "$wire" type veth peer name eth0 netns "$name" &&
		ip link set "$wire" master "$hosts_bridge" up &&
		ip -n "$name" addr add "$hosts_net.$1/24" dev eth0 &&
		ip -n "$name" link set eth0 up &&
		ip -n "$name" link set lo up
}

# hosts_up N
hosts_up() {
	local i k
	hosts_n=$1
	trap hosts_down EXIT
	ip link add "$hosts_bridge" type bridge &&
		ip addr add "$hosts_net.254/24" dev "$hosts_bridge" &&
		ip link set "$hosts_bridge" up || return
	for ((i = 1; i <= hosts_n; i++)); do
		hosts_add "$i" || return
		mkdir -p "/etc/netns/$(hosts_name "$i")"
		{
			echo "127.0.0.1 localhost"
			echo "$hosts_net.254 $(hostname)"
			for ((k = 1; k <= hosts_n; k++)); do echo "$hosts_net.$k $(hosts_name "$k")"; done
		} >"/etc/netns/$(hosts_name "$i")/hosts"
	done
	cat >hosts_exec <<'EOF'
#!/bin/sh
# In place of ssh: [-x] HOST COMMAND...
[ "$1" = -x ] && shift
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host && cd '$PWD' && exec $*"
EOF
	chmod +x hosts_exec
	hosts_mpirun=$MPIRUN
}

hosts_down() {
	local i name
	for ((i = 1; i <= hosts_n; i++)); do
		name=$(hosts_name "$i")
		# shellcheck disable=SC2046 # a list of numbers
		kill -KILL $(ip netns pids "$name" 2>/dev/null) 2>/dev/null
		ip netns del "$name" 2>/dev/null
		rm -rf "/etc/netns/$name"
	done
	ip link del "$hosts_bridge" 2>/dev/null
}

# hosts_use N: the next jobs run on the first N hosts, ranks in turn.
hosts_use() {
	MPIRUN="$hosts_mpirun -launcher ssh -launcher-exec $PWD/hosts_exec -iface $hosts_bridge \
-hosts $(hosts_list "$1")"
	export UCX_TLS=tcp,self UCX_NET_DEVICES=eth0
}

# hosts_rate RATE: of every host's wire, both ways, such as 100mbit; "" for no limit.
hosts_rate() {
	local i
	for ((i = 1; i <= hosts_n; i++)); do
		tc qdisc del dev "muv$$-$i" root 2>/dev/null
		ip netns exec "$(hosts_name "$i")" tc qdisc del dev eth0 root 2>/dev/null
		[ -n "$1" ] || continue
		tc qdisc add dev "muv$$-$i" root tbf rate "$1" burst 256kb latency 50ms &&
			ip netns exec "$(hosts_name "$i")" \
				tc qdisc add dev eth0 root tbf rate "$1" burst 256kb latency 50ms || return
	done
}

# Bytes that host I has sent so far.
hosts_sent() {
	cat "/sys/class/net/muv$$-$1/statistics/rx_bytes"
}
