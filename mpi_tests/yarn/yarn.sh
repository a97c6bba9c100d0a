# SPDX-License-Identifier: Apache-2.0
# A YARN of two nodes on this machine, by the scripts that lie beside the checkout, ../shared/hadoop, or where
# MUSTER_HADOOP says. Sourced by bash after lib.sh.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # variables are lib.sh's

yarn_job=
yarn_name=muster-test-$$

# yarn_possible: says why not
yarn_possible() {
	hadoop=${MUSTER_HADOOP:-$SRCDIR/../shared/hadoop}
	[ -x "$hadoop/cluster" ] || {
		echo "skipped: there is no Hadoop in $hadoop (MUSTER_HADOOP)"
		return 1
	}
	command -v java >/dev/null || {
		echo "skipped: needs Java, which Hadoop runs on"
		return 1
	}
	[ "$(mpi_kind)" = mpich ] || {
		echo "skipped: needs MPICH's mpirun, whose proxies can be started by hand"
		return 1
	}
}

yarn_down() {
	[ ! -e cluster/rm.pid ] || "$hadoop/cluster" stop cluster
	[ -z "$yarn_job" ] || kill -KILL "$yarn_job" 2>/dev/null
	rm -rf "$(yarn_home)/${yarn_name:?}"
}

# yarn_up OPTION...: two nodes
yarn_up() {
	trap yarn_down EXIT
	"$hadoop/cluster" start cluster "$@" >cluster.env || return
	# shellcheck source=/dev/null
	. ./cluster.env
	mkdir -p tmp
	export TMPDIR=$PWD/tmp
}

# Java's idea of the user's home, where the distributed shell puts its files.
yarn_home() {
	getent passwd "$(id -u)" | cut -d : -f 6
}

# yarn_begin OPTION... COMMAND...: jobs/launch in the background; yarn_end: sets $status
yarn_begin() {
	new_mark
	: >"$log"
	MU_TEST_PART=$run_mark env --default-signal=INT,TERM "$SRCDIR/jobs/launch" --launcher yarn \
		--jobname "$yarn_name" "$@" >"$log" 2>&1 </dev/null &
	yarn_job=$!
}

yarn_end() {
	wait_for 400 "the end of the job" yarn_has_ended || kill -KILL "$yarn_job"
	wait "$yarn_job"
	status=$?
	yarn_job=
	yarn_is_clean
}

yarn_has_ended() {
	! kill -0 "$yarn_job" 2>/dev/null
}

# yarn_says REGEX: the log has it, or nobody will write it any more
yarn_says() {
	grep -Pq "$1" "$log" || yarn_has_ended
}

# Of the ResourceManager: hosts of the masters of applications that have not ended, and how many containers there are.
yarn_left() {
	python3 - "$(cat cluster/rm.url)" <<'PYTHON'
import json, sys, urllib.request
def get(path):
    with urllib.request.urlopen(sys.argv[1] + "/ws/v1/cluster/" + path, timeout=20) as answer:
        return json.load(answer)
apps = (get("apps?states=NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING")["apps"] or {}).get("app", [])
nodes = (get("nodes?states=RUNNING")["nodes"] or {}).get("node", [])
print(*(a.get("amHostHttpAddress", "?").split(":")[0] for a in apps), sum(n["numContainers"] for n in nodes))
PYTHON
}

yarn_master_host() {
	yarn_left | cut -d ' ' -f 1
}

yarn_is_empty() {
	[ "$(yarn_left)" = 0 ]
}

# What queue.sh shows where something is waited for in vain.
queue_shows() {
	yarn_left
	tail -n 20 "$log" | cut -c 1-300
}

# No application, container, rank, process or folder of the last job is left.
yarn_is_clean() {
	local left
	left=$(leftovers)
	[ -z "$left" ] || fail "left running: ${left//$'\n'/ }"
	wait_for 60 "applications and containers to be gone" yarn_is_empty
	[ ! -e "$(yarn_home)/$yarn_name" ] || fail "left: $(find "$(yarn_home)/$yarn_name")"
	left=$(find tmp -mindepth 1 -maxdepth 1 ! -name 'hsperfdata*' ! -name 'Jetty*' ! -name 'jetty-*')
	[ -z "$left" ] || fail "left: $left"
}
