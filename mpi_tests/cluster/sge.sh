# SPDX-License-Identifier: Apache-2.0
# A Grid Engine of our own on the private hosts of hosts.sh: the master on the first, an execd on each. What it keeps is
# a copy of Debian's new installation, mounted over it for these processes only. Needs root and gridengine-*. Sourced by
# bash after hosts.sh, in the empty folder of a test.
# shellcheck shell=bash

sge_root=/var/lib/gridengine
sge_spool=/var/spool/gridengine

sge_possible() {
	local tool
	for tool in sge_qmaster sge_execd qsub qconf; do
		command -v $tool >/dev/null || {
			echo "skipped: there is no $tool (Debian: gridengine-master, -exec, -client)"
			return 1
		}
	done
	hosts_possible
}

# sge_on I COMMAND: on host I, a line of shell
sge_on() {
	local name
	name=$(hosts_name "$1")
	ip netns exec "$name" unshare --uts --mount sh -c "hostname $name && mount --bind '$PWD/sge/lib' $sge_root &&
		mount --bind '$PWD/sge/spool' $sge_spool && export SGE_ROOT=$sge_root SGE_CELL=default && $2"
}

# sge_set WORD VALUE: change a line of the settings on standard input
sge_set() {
	awk -v word="$1" -v value="$2" '$1 == word { $0 = word " " value } { print }'
}

sge_pe() {
	cat <<'EOF'
pe_name mpi
slots 999
user_lists NONE
xuser_lists NONE
start_proc_args NONE
stop_proc_args NONE
allocation_rule $round_robin
control_slaves TRUE
job_is_first_task FALSE
urgency_slots min
accounting_summary FALSE
qsort_args NONE
EOF
}

# Root may run jobs, and nothing takes long.
sge_configure() {
	local i
	sge_on 1 'qconf -sconf' | sge_set min_uid 0 | sge_set min_gid 0 | sge_set load_report_time 00:00:05 |
		sge_set max_unheard 00:00:20 | sge_set reschedule_unknown 00:00:10 >sge/global &&
		sge_on 1 "qconf -Mconf sge/global" &&
		sge_on 1 'qconf -ssconf' | sge_set schedule_interval 0:0:1 | sge_set flush_submit_sec 1 |
		sge_set flush_finish_sec 1 >sge/schedule && sge_on 1 "qconf -Msconf sge/schedule" &&
		sge_pe >sge/pe && sge_on 1 'qconf -Ap sge/pe' || return
	for ((i = 1; i <= $1; i++)); do
		sge_on 1 "qconf -as $(hosts_name "$i") && qconf -ah $(hosts_name "$i")" &&
			sge_on "$i" sge_execd || return
	done
	printf 'group_name @allhosts\nhostlist %s\n' "$(hosts_list "$1" | tr , ' ')" >sge/group
	sge_on 1 'qconf -Ahgrp sge/group' &&
		sge_on 1 'EDITOR=cat qconf -aq all.q' 2>/dev/null | sed -n '/^qname/,/^h_vmem/p' |
		sge_set hostlist @allhosts | sge_set slots 4 | sge_set pe_list mpi | sge_set load_thresholds NONE |
			sge_set shell /bin/bash | sge_set rerun TRUE >sge/queue &&
		sge_on 1 'qconf -Aq sge/queue'
}

# sge_up N: hosts_up must have laid as many. What its tools say is in sge/log.
sge_up() {
	mkdir -p sge && cp -a $sge_root sge/lib && cp -a $sge_spool sge/spool &&
		hosts_name 1 >sge/lib/default/common/act_qmaster &&
		sge_on 1 sge_qmaster || return
	for _ in $(seq 80); do
		sge_on 1 'qconf -sh' >/dev/null 2>&1 && break
		sleep 0.25
	done
	sge_configure "$1" >sge/log 2>&1 || { tail -n 3 sge/log && return 1; }
	for _ in $(seq 80); do
		[ "$(sge_on 1 'qstat -f' | grep -c '^all.q.* [0-9.]* *lx')" = "$1" ] && return
		sleep 0.25
	done
	sge_on 1 'qstat -f'
	return 1
}
