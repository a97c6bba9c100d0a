# shellcheck shell=bash disable=SC2154 # variables of gpu-check.sh: tree, out, work
# SPDX-License-Identifier: Apache-2.0
# Sourced by jobs/gpu-check.sh, behind the unpacking: the order of the parts, their time, and how results are recorded.

scale=${MU_TIMEOUT_SCALE:-1} # of all limits, for tests on slow machines
all_seconds=$((510 * scale)) # of a run; what is left of 540 is for the report and slow disks
records=$work/records
failed=0
part_end=$all_seconds # of the part that runs, in seconds since the start

# record FIELD...: one line of results, fields with tabs between them. Printable ASCII, so that the JSON is sound.
record() {
	local line=$1 field
	shift
	for field in "$@"; do
		line=$line$'\t'$(tr '\t\n' '  ' <<<"$field" | tr -cd '\40-\176' | sed 's/ *$//' | cut -c 1-400)
	done
	printf '%s\n' "$line" >>"$records"
}

fact() {
	[ -z "$2" ] || record fact "$1" "$2"
}

# The results so far as JSON and as Markdown; called after every part, so that a run that is killed leaves what it has.
report() {
	awk -F '\t' -v seconds="$SECONDS" -v markdown="$out/gpu-check.md" -f "$tree/jobs/gpu/report.awk" "$records" \
		>"$out/gpu-check.json"
}

# Seconds that are left of the part, and of the run.
left() {
	local end=$((part_end < all_seconds ? part_end : all_seconds))
	echo $((end > SECONDS ? end - SECONDS : 0))
}

# limited SECONDS COMMAND...: as timeout, and never longer than the part has left; 124 too where nothing is left.
limited() {
	local seconds=$(($1 * scale)) most
	shift
	most=$(left)
	[ "$seconds" -le "$most" ] || seconds=$most
	if [ "$seconds" -lt 1 ]; then
		echo "no time left of this part"
		return 124
	fi
	timeout -k 3 "$seconds" "$@"
}

# Our programs, with the libraries that came along; Python has its own.
ours() {
	LD_LIBRARY_PATH=$libraries "$@"
}

# part NAME SECONDS: runs the function NAME; it prints a line of text, and its status is 0, 77 = skipped, or an error.
part() {
	local begin=$SECONDS text st
	case " ${PARTS-$1} " in
	*" $1 "*) ;;
	*) return ;;
	esac
	part_end=$((SECONDS + $2 * scale))
	text=$($1 2>>"$out/$1.stderr" </dev/null)
	st=$?
	[ $st = 0 ] || text="$text $(tail -n 1 "$out/$1.stderr" 2>/dev/null)"
	[ -s "$out/$1.stderr" ] || rm -f "$out/$1.stderr"
	end_left
	case $st in
	0) st='done' ;;
	77) st=skipped ;;
	124 | 137) st='out of time' failed=1 ;;
	*) st=failed failed=1 ;;
	esac
	record part "$1" "$st" $((SECONDS - begin)) "$text"
	echo "gpu-check: $1: $st, $((SECONDS - begin)) s of $2: $text"
	report
}

# Kill what a part left: a rank has a group of processes of its own, which timeout does not reach.
end_left() {
	local pids
	pids=$(grep -lzs "^GPU_CHECK_RUN=$$\$" /proc/[0-9]*/environ | cut -d / -f 3 | grep -vx "$$")
	# shellcheck disable=SC2086 # a list of numbers
	[ -z "$pids" ] || kill -KILL $pids 2>/dev/null
}

# Why nothing can be measured; nothing if it can.
no_gpu() {
	[ -f "$work/no_gpu" ] || ours limited 10 "$tree/trainer" --info 2>&1 |
		sed -n -e 's/^CUDA: *\(not built in\|built in, no device.*\)/\1/p' \
			-e '/error while loading/p' >"$work/no_gpu"
	cat "$work/no_gpu"
}

# The same, for a part that needs a GPU: prints the reason.
needs_gpu() {
	local why
	why=$(no_gpu)
	[ -z "$why" ] && return
	echo "$why"
	return 1
}

# Folders first, functions of the parts next.
run_parts() {
	local name
	: >"$records"
	export HWLOC_PLUGINS_PATH=/nonexistent GPU_CHECK_RUN=$$
	for name in machine tests kernels speeds; do
		# shellcheck source=/dev/null
		. "$tree/jobs/gpu/$name.sh"
	done
	cuda_folders=$(library_folders)
	libraries=$tree/lib:$cuda_folders${LD_LIBRARY_PATH-}
	libraries=${libraries%:} # an empty folder is the present one
	# The system's, where it has one: it may be newer, and CUDA's libraries may need that.
	ldconfig -p 2>/dev/null | grep -q 'libstdc++.so.6' || libraries=$tree/lib-fallback:$libraries
	part machine 10
	part smoke 25
	part ceilings 20
	part tests 80
	part sanitizer 70
	part kernels 60
	part speeds 140
	part peer 160
	part tuned 120
	record fact seconds "$SECONDS"
	report
	echo "gpu-check: $out/gpu-check.json, $out/gpu-check.md"
	return $failed
}
