# SPDX-License-Identifier: Apache-2.0
# What the examples share: sourced by them. A log of everything is kept, and at the end muster table shows accuracy and
# time of each epoch.
# From the environment: WORKERS (2), SERVERS (1), MPIRUN (mpirun), MUSTER (build/muster in a checkout, else that of
# PATH), LOG (the script's name with .log), OMP_NUM_THREADS (a node's cores, shared by its workers).
# shellcheck shell=bash
set -eu -o pipefail

top=$(dirname "$0")/../..
muster=$top/build/muster
[ -x "$muster" ] || muster=muster
muster=${MUSTER:-$muster}
workers=${WORKERS:-2}
servers=${SERVERS:-1}
log=${LOG:-$(basename "$0" .sh).log}
case ${1-} in
-h | --help) sed -n '3,/^[^#]/s/^#\(\t\| \|$\)//p' "$0" && exit ;; # the text at its beginning
--version) exec "$muster" --version ;;
esac

# need N TEXT ARGUMENT...: at least N arguments, which TEXT names
need() {
	[ $# -ge $(($1 + 2)) ] && [[ ${3-} != -* ]] && return
	echo "usage: $0 $2 [trainer option ...]" >&2
	exit 2
}

table() {
	"$muster" table "$@"
}

# job STORE OPTION...: the trainer on as many ranks as the store has
job() {
	local store=$1 start=()
	shift
	# shellcheck disable=SC2206 # MPIRUN may hold options
	case $store in
	local | device) ;;
	dist_allreduce | dist_sharded) start=(${MPIRUN:-mpirun} -n "$workers") ;;
	*)
		start=(${MPIRUN:-mpirun} -n $((workers + servers)))
		set -- --num-servers "$servers" "$@"
		;;
	esac
	${start[@]+"${start[@]}"} "$muster" train --kv-store "$store" "$@" 2>&1 | tee "$log"
	table "$log"
}
