# SPDX-License-Identifier: Apache-2.0
# Private hosts on one machine, for tests between nodes: network namespaces with host names of their
# own, joined by a bridge. MPI's messages travel by TCP, so that what passes a host's wire can be
# counted, slowed down and cut. Needs root. Sourced by bash after lib.sh.
# shellcheck shell=bash

hosts_bridge=mub$$
hosts_net=10.$((77 + $$ % 100)).$(($$ / 100 % 250))
hosts_bridge2=
hosts_n=0

hosts_name() { # I
	echo "mu$$-$1"
}

hosts_list() { # N: the first N, as mpirun wants them
	local i names=
	for ((i = 1; i <= $1; i++)); do names="$names,$(hosts_name "$i")"; done
	echo "${names#,}"
}

# Can this machine have any, and do we know how to start jobs on them?
hosts_possible() {
	[ "$(mpi_kind)" != other ] || {
		echo "skipped: needs an MPICH or an Open MPI, to whose launchers hosts.sh speaks"
		return 1
	}
	if [ "$(id -u)" = 0 ] && command -v ip >/dev/null && command -v tc >/dev/null &&
		ip netns add "mu$$-try" 2>/dev/null; then
		ip netns exec "mu$$-try" true && ip netns del "mu$$-try" && return
		ip netns del "mu$$-try"
	fi
	echo "skipped: needs the right to make network namespaces and to mount (root, no chroot), ip and tc"
	return 1
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

# Does a packet from namespace FROM (or from here: "") reach host I? A refused connection is one that got there.
hosts_reaches() { # FROM I
	local there=$hosts_net.$2
	[ "$2" != here ] || there=$hosts_net.254
	${1:+ip netns exec "$1"} timeout 2 bash -c "exec 3<>/dev/tcp/$there/9" 2>&1 | grep -q refused
}

# hosts_wait I: until host I is reached from here and from every other host, and reaches here; for some minutes at most.
hosts_wait() {
	local j k name from
	name=$(hosts_name "$1")
	for ((k = 0; k < 100; k++)); do
		ip neigh flush dev "$hosts_bridge"
		ip -n "$name" neigh flush dev eth0
		from=
		for ((j = 1; j <= hosts_n; j++)); do
			[ $j = "$1" ] || ! ip -n "$(hosts_name $j)" neigh flush dev eth0 2>/dev/null ||
				hosts_reaches "$(hosts_name $j)" "$1" || from=$j
		done
		[ -z "$from" ] && hosts_reaches "" "$1" && hosts_reaches "$name" here && return
		sleep 0.2
	done
	return 1
}

# hosts_up N
hosts_up() {
	local i k
	hosts_n=$1
	unset UCX_NET_DEVICES OMPI_MCA_btl_tcp_if_include # mpi_tests/run's
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
	for ((i = 1; i <= hosts_n; i++)); do hosts_wait "$i" || return; done
	cat >hosts_exec <<EOF
#!/bin/sh
# In place of ssh: [-x] HOST COMMAND..., or more than one command after assignments
net=$hosts_net
EOF
	cat >>hosts_exec <<'EOF'
[ "$1" = -x ] && shift
host=$1
shift
# As ssh, over the wire: a connection that is refused has reached the host.
said=$(timeout --foreground "${HOSTS_PATIENCE:-10}" bash -c "exec 3<>/dev/tcp/$net.${host##*-}/9" 2>&1)
case $said in
*refused*) ;;
*)
	said=${said##*: }
	echo "hosts_exec: connect to host $host port 9: ${said:-Connection timed out}" >&2
	exit 255
	;;
esac
case $1 in
*=*) ;;
*) set -- exec "$@" ;;
esac
cores=
[ -z "$HOSTS_OWN_CORE" ] || cores="taskset -c $(((${host##*-} - 1) % $(nproc)))"
exec $cores ip netns exec "$host" unshare --uts sh -c "hostname $host && cd '$PWD' && $*"
EOF
	chmod +x hosts_exec
	hosts_mpirun=$MPIRUN
}

# A second interface of every host, eth1, on a bridge and in a net of its own. After hosts_up.
hosts_second() {
	local i name wire
	hosts_bridge2=mub$$b
	hosts_net2=10.$((177 + $$ % 70)).$(($$ / 70 % 250))
	ip link add "$hosts_bridge2" type bridge && ip link set "$hosts_bridge2" up || return
	for ((i = 1; i <= hosts_n; i++)); do
		name=$(hosts_name "$i") wire=muw$$-$i
		ip link add "$wire" type veth peer name eth1 netns "$name" &&
			ip link set "$wire" master "$hosts_bridge2" up &&
			ip -n "$name" addr add "$hosts_net2.$i/24" dev eth1 &&
			ip -n "$name" link set eth1 up || return
	done
}

# hosts_vanish I: there is no such host any more, and nothing said so; hosts_vanish I told: its processes are killed
# first, and their ends are heard of. hosts_return I: it is there again.
hosts_vanish() {
	local name
	name=$(hosts_name "$1")
	[ "${2-}" = told ] || ip link set "muv$$-$1" down
	# shellcheck disable=SC2046 # a list of numbers
	kill -KILL $(ip netns pids "$name") 2>/dev/null
	ip netns del "$name"
	ip link del "muv$$-$1" 2>/dev/null # the kernel takes a while to remove what a namespace held
}

hosts_return() {
	local k
	for ((k = 0; k < 100; k++)); do
		[ -e "/sys/class/net/muv$$-$1" ] || break
		sleep 0.1
	done
	hosts_add "$1" && hosts_wait "$1"
}

# hosts_silence I: host I is there and says nothing, and nobody hears so: packets to and from it are dropped, for none
# fits the wire. hosts_silence I end: as before.
hosts_silence() {
	local name address
	name=$(hosts_name "$1")
	if [ "${2-}" = end ]; then
		tc qdisc del dev "muv$$-$1" root
		ip netns exec "$name" tc qdisc del dev eth0 root
		ip neigh del "$hosts_net.$1" dev "$hosts_bridge"
		return
	fi
	address=$(ip netns exec "$name" cat /sys/class/net/eth0/address) &&
		ip neigh replace "$hosts_net.$1" lladdr "$address" dev "$hosts_bridge" nud permanent &&
		tc qdisc add dev "muv$$-$1" root tbf rate 8bit burst 1 latency 1ms &&
		ip netns exec "$name" tc qdisc add dev eth0 root tbf rate 8bit burst 1 latency 1ms
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
	[ -z "$hosts_bridge2" ] || ip link del "$hosts_bridge2" 2>/dev/null
}

# hosts_use N: the next jobs run on the first N hosts, ranks in turn.
hosts_use() {
	case $(mpi_kind) in
	mpich)
		MPIRUN="$hosts_mpirun -launcher ssh -launcher-exec $PWD/hosts_exec -iface $hosts_bridge \
-hosts $(hosts_list "$1")"
		export UCX_TLS=tcp,self UCX_NET_DEVICES=eth0
		;;
	openmpi)
		MPIRUN="$hosts_mpirun --mca plm_rsh_agent $PWD/hosts_exec --mca oob_tcp_if_include $hosts_net.0/24 \
--map-by node --host $(hosts_list "$1")"
		export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=eth0
		# After so many seconds mpirun sees that a host is gone: else 480.
		export OMPI_MCA_oob_tcp_keepalive_time=3 OMPI_MCA_oob_tcp_keepalive_intvl=1 \
			OMPI_MCA_oob_tcp_keepalive_probes=2
		;;
	esac
}

# nodes_up N: jobs over as many as N nodes can be had: pretended ones where MPICH can do that, without
# messages on a wire, else private hosts. Else says why not.
nodes_up() {
	[ "$(mpi_kind)" = mpich ] || { hosts_possible && hosts_up "$1"; }
}

# nodes_use N: the next jobs have their ranks in turn on N nodes; nodes_end: on one again.
nodes_use() {
	if [ "$(mpi_kind)" = mpich ]; then
		export MPIR_CVAR_NUM_CLIQUES=$1
	else
		hosts_use "$1"
	fi
}

nodes_end() {
	unset MPIR_CVAR_NUM_CLIQUES OMPI_MCA_pml OMPI_MCA_btl OMPI_MCA_btl_tcp_if_include
	MPIRUN=${hosts_mpirun:-$MPIRUN}
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

# Bytes that host I has sent so far; hosts_sent2: over its second interface.
hosts_sent() {
	cat "/sys/class/net/muv$$-$1/statistics/rx_bytes"
}

hosts_sent2() {
	cat "/sys/class/net/muw$$-$1/statistics/rx_bytes"
}
