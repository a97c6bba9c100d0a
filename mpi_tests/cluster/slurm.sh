# SPDX-License-Identifier: Apache-2.0
# A SLURM of our own on the private hosts of hosts.sh: slurmctld on this machine, a slurmd in each host's network
# namespace. Needs root, slurm-wlm and munge. Sourced by bash after hosts.sh, in the empty folder of a test.
# shellcheck shell=bash
# shellcheck disable=SC2154 # of hosts.sh

slurm_possible() {
	local tool
	for tool in slurmctld slurmd sbatch munged; do
		command -v $tool >/dev/null || {
			echo "skipped: there is no $tool (Debian: slurm-wlm, munge)"
			return 1
		}
	done
	hosts_possible
}

# A munged of our own, asked by a path, so that one serves all private hosts.
slurm_munge() {
	slurm_munge_dir=$(mktemp -d) && chmod 755 "$slurm_munge_dir" &&
		(umask 077 && head -c 64 /dev/urandom >"$slurm_munge_dir/key") &&
		(cd "$slurm_munge_dir" && munged --force --socket="$PWD/socket" --key-file="$PWD/key" \
			--pid-file="$PWD/pid" --log-file="$PWD/log" --seed-file="$PWD/seed" 2>/dev/null) &&
		munge -n -S "$slurm_munge_dir/socket" | unmunge -S "$slurm_munge_dir/socket" >/dev/null
}

# slurm_up N: hosts_up must have laid as many
slurm_up() {
	local i port=$((20000 + $$ % 20000))
	slurm_dir=$PWD/slurm
	trap 'slurm_down; hosts_down' EXIT
	mkdir -p "$slurm_dir/state" && chmod 755 "$slurm_dir" && slurm_munge || return
	# Without this slurmd wants control groups, which ip netns exec hides.
	echo CgroupPlugin=cgroup/v1 >"$slurm_dir/cgroup.conf"
	cat >"$slurm_dir/slurm.conf" <<EOF
ClusterName=test
SlurmctldHost=$(hostname)($hosts_net.254)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm_munge_dir/socket,cred_expire=5
StateSaveLocation=$slurm_dir/state
SlurmdSpoolDir=$slurm_dir/spool-%n
SlurmctldPidFile=$slurm_dir/slurmctld.pid
SlurmdPidFile=$slurm_dir/slurmd-%n.pid
SlurmctldLogFile=$slurm_dir/slurmctld.log
SlurmdLogFile=$slurm_dir/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=pmi2
ReturnToService=1
PropagateResourceLimits=NONE
SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=0
KillWait=5
SlurmdTimeout=10
MinJobAge=300
EOF
	for ((i = 1; i <= $1; i++)); do
		echo "NodeName=$(hosts_name "$i") NodeAddr=$hosts_net.$i CPUs=4 RealMemory=2000"
	done >>"$slurm_dir/slurm.conf"
	echo "PartitionName=main Nodes=ALL Default=YES" >>"$slurm_dir/slurm.conf"
	export SLURM_CONF=$slurm_dir/slurm.conf
	slurmctld -i || return
	for ((i = 1; i <= $1; i++)); do
		mkdir -p "$slurm_dir/spool-$(hosts_name "$i")"
		ip netns exec "$(hosts_name "$i")" unshare --uts \
			sh -c "hostname $(hosts_name "$i") && exec slurmd" || return
	done
	for _ in $(seq 80); do
		[ "$(sinfo -h -t idle -o %D 2>/dev/null)" = "$1" ] && return
		sleep 0.25
	done
	echo "the nodes are not ready: $(sinfo -h 2>&1)"
	tail -n 5 "$slurm_dir"/*.log
	return 1
}

slurm_down() {
	scancel -u root 2>/dev/null
	# shellcheck disable=SC2046 # a list of numbers
	kill $(cat "$slurm_dir"/*.pid "$slurm_munge_dir/pid" 2>/dev/null) 2>/dev/null
	for _ in $(seq 20); do # munged removes files, too
		rm -rf "$slurm_munge_dir" 2>/dev/null && break
		sleep 0.1
	done
	unset SLURM_CONF
}
