# SPDX-License-Identifier: Apache-2.0
# What the campaigns share. A campaign draws cases from seeds, runs one after the other, prints a line of a table for
# each, and totals. Sourced by bash with the arguments of the campaign, which then defines one_case and calls campaign.
#
#	jobs/bench/campaign/NAME [--build DIR] [--seed S] [--cases N] [--seconds T]
#
# Case k has seed S + k: --seed S+k --cases 1 draws it again. No case begins after T seconds.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # shared with the campaigns
set -u
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
SRCDIR=$(cd "$here/../../.." && pwd)
build=${BUILDDIR:-$SRCDIR/build} seed=1 cases=20 seconds=100000
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help)
		sed -n 's/^#\tjobs/usage: jobs/p' "$here/common.sh"
		exit 0
		;;
	--build) build=$2 ;;
	--seed) seed=$2 ;;
	--cases) cases=$2 ;;
	--seconds) seconds=$2 ;;
	*)
		sed -n 's/^#\tjobs/usage: jobs/p' "$here/common.sh" >&2
		exit 2
		;;
	esac
	shift 2 || exit 2
done
BUILDDIR=$(cd "$build" && pwd) || exit 2
MPIRUN=${MPIRUN:-mpirun} TRAINER=$BUILDDIR/trainer DIGITS=$BUILDDIR/digits
export SRCDIR BUILDDIR MPIRUN TRAINER DIGITS
export OMP_NUM_THREADS=1 UCX_NET_DEVICES=${UCX_NET_DEVICES-lo} # bits depend on the threads
scratch=$(mktemp -d "${TMPDIR:-/tmp}/campaign.XXXXXX") && cd "$scratch" || exit 2
trap 'rm -rf "$scratch"' EXIT
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/hosts.sh
. "$SRCDIR/mpi_tests/lib/hosts.sh"

hang_limit=30 # seconds beyond the limits that the documentation states
hangs=0 lost=0 signals=0 causes=0 left=0 unequal=0 equal=0 events=0 done_cases=0
mkfifo "$scratch/nap" && exec 9<>"$scratch/nap"

draw() { # N: 0 to N - 1, into $drawn
	drawn=$(((RANDOM * 32768 + RANDOM) % $1))
}

pick() { # WORD...: one of them, into $picked
	draw $#
	shift "$drawn"
	picked=$1
}

nap_ms() { # N
	read -rt "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))" -u 9
	return 0
}

# until_there SECONDS COMMAND...: false if the job $job ends before
until_there() {
	local k n=$(($1 * 50))
	shift
	for ((k = 0; k < n; k++)); do
		"$@" && return
		kill -0 "$job" 2>/dev/null || return 1
		nap_ms 20
	done
	return 1
}

said() {
	grep -q "$1" "$log" 2>/dev/null
}

# bad KIND TEXT: the case has failed; KIND is one of the totals
bad() {
	verdict="$verdict${verdict:+, }$1: $2"
	eval "$1=\$(($1 + 1))"
	[ ! -s "$log" ] || cp "$log" "$BUILDDIR/campaign-${0##*/}-$case_seed.log"
}

# check_end: of a job that was not supervised. $status 0, or one line with the cause; no signal, no hang, nothing left.
check_end() {
	local n remains
	remains=$(leftovers)
	[ -z "$remains" ] || bad left "processes ${remains//$'\n'/ }"
	n=$(grep -c 'error: ' "$log")
	if [ "$status" = 124 ] || [ "$status" = 137 ]; then
		bad hangs "no end"
	elif [ "$status" -ge 128 ] || grep -Pq "$crashes" "$log"; then
		bad signals "$(grep -Pm 1 "$crashes" "$log" | cut -c 1-60)"
	elif [ "$status" != 0 ] && [ "$n" != 1 ]; then
		bad causes "$n lines"
	elif [ "$status" = 0 ] && [ "$n" != 0 ]; then
		bad causes "status 0 and an error"
	fi
}

# check_supervised: of a job under supervise: every end of a run is one line, with a cause
check_supervised() {
	local line remains
	[ "$status" != 124 ] && [ "$status" != 137 ] || bad hangs "no end"
	[ "$status" = 0 ] || bad lost "status $status"
	while read -r line; do
		case $line in
		*"exit status "*": "*"; restart "* | *"cannot be reached"*"; restart "*) ;;
		*"; restart "*) bad causes "$line" ;;
		esac
	done < <(grep '^supervise: ' "$log")
	! grep -P "$crashes" "$log" | grep -Pvq 'EXIT CODE: (9|15|137|143)\b' ||
		bad signals "$(grep -Pm 1 "$crashes" "$log")"
	remains=$(leftovers)
	[ -z "$remains" ] || bad left "processes ${remains//$'\n'/ }"
}

# same_bits A B: do the files have the same bits?
same_bits() {
	if cmp -s "$1" "$2"; then
		equal=$((equal + 1))
	else
		bad unequal "$2 is not $1"
	fi
}

campaign() {
	local k begun
	echo "| seed | what was done | status | s | verdict |"
	echo "| --- | --- | --- | --- | --- |"
	for ((k = 0; k < cases && SECONDS < seconds; k++)); do
		case_seed=$((seed + k)) what='' status='' verdict=''
		RANDOM=$case_seed
		begun=$EPOCHREALTIME
		one_case
		done_cases=$((done_cases + 1))
		printf '| %d | %s | %s | %d.%d | %s |\n' $case_seed "$what" "$status" \
			$(((${EPOCHREALTIME/./} - ${begun/./}) / 1000000)) \
			$(((${EPOCHREALTIME/./} - ${begun/./}) / 100000 % 10)) "${verdict:-good}"
	done
	printf '\n%s: %d cases, %d events; hangs %d, lost runs %d, crashes by signal %d, ' \
		"${0##*/}" $done_cases $events $hangs $lost $signals
	printf 'ends without one line that names the cause %d, processes left %d, other bits %d, bit-equal ends %d\n' \
		$causes $left $unequal $equal
	[ $((hangs + lost + signals + causes + left + unequal)) = 0 ]
}
