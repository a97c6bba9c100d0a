#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The commands that pages print and test_docs.sh does not run, for they need a cluster, a GPU or hours: the indented
# blocks of README.md and of doc/*.md, commands in the text, the manual pages, comments of batch files, and what
# quickstart prints in the end. Each is checked as far as it goes here: launchers' words are taken off, the trainer gets
# its options with --check on a small network, launch shows what it would do, supervise starts "true", of other
# programs the options must be in --help; files and targets of make must exist. A line with a program of ours that
# begins with a word without a rule fails.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export OMP_NUM_THREADS=1
if is_sanitized; then
	echo "skipped: nothing here depends on how programs are compiled"
	exit 77
fi

# Lines "FILE:LINE<tab>COMMAND" of each kind of page. A line that ends with a backslash goes on.
of_page() {
	awk -v name="${1#"$SRCDIR"/}" -v ours="^(build/|jobs/|muster |./quickstart|make |mpirun .*(build/|muster))" '
	function put(text) {
		sub(/  +#.*/, "", text)
		if (text ~ /^[^#]/) print name ":" FNR "\t" text
	}
	/^```/ { fence = !fence }
	fence { next }
	held != "" || /^    [^ ]/ {
		sub(/^ +/, "")
		held = held $0
		if (!sub(/ *\\$/, " ", held)) { put(held); held = "" }
		next
	}
	{
		while (match($0, /`[^`]+`/)) {
			code = substr($0, RSTART + 1, RLENGTH - 2)
			$0 = substr($0, RSTART + RLENGTH)
			if (code ~ / / && code ~ ours)
				print name ":" FNR "\t" code
		}
	}' "$1"
}

of_manual() {
	sed -e 's/\\e$/\\/' -e 's/\\-/-/g' "$1" | awk -v name="${1#"$SRCDIR"/}" '
	/^\.Bd -literal/ { literal = 1; next }
	/^\.Ed/ { literal = 0 }
	literal && /^[^#]/ {
		sub(/^ +/, "")
		held = held $0
		if (!sub(/ *\\$/, " ", held)) { print name ":" FNR "\t" held; held = "" }
	}'
}

# A synopsis, with [] and |, is none.
of_comments() {
	awk -v name="${1#"$SRCDIR"/}" '
	held != "" || (/^#\t[^ ]/ && !/[[|]/) {
		sub(/^#\t+/, "")
		held = held $0
		if (sub(/ *\\$/, " ", held)) next
		sub(/  +[#a-z].*/, "", held)
		print name ":" FNR "\t" held
		held = ""
	}' "$1"
}

of_quickstart() {
	sed -n '/^Next, in/,/^TEXT$/s/^  *//p' "$SRCDIR/quickstart" | sed 's/\\\\$/\\/' | awk '
	{
		held = held $0
		if (sub(/ *\\$/, " ", held)) next
		sub(/   *[A-Za-z].*/, "", held)
		print "quickstart\t" held
		held = ""
	}'
}

# is_ours WORD: does a command of ours begin with it?
is_ours() {
	case $1 in build/* | jobs/* | muster | ./trainer | ./keys) ;; *) false ;; esac
}

# tells TEXT: of the command that is checked
tells() {
	fail "$at: $1: $command"
}

# options_in_help WORD...: options among the words are in the file $help
options_in_help() {
	local word
	for word; do
		case $word in --[a-z]*) grep -qe "${word%%=*}\b" "$help" || tells "there is no option $word" ;; esac
	done
}

# help_of PROGRAM [OPTION...]: sets $help, the name of a file with what it says
help_of() {
	help="help.${*//[\/ ]/_}"
	[ -e "$help" ] || "$@" >"$help" 2>&1 || tells "exit status $? of $*"
}

declare -A good # options that were checked

# Its options with --check on a network that needs no time, without data, checkpoints and GPUs, on one rank.
check_trainer() {
	local kept=()
	help_of "$TRAINER" --help-all
	case " $* " in
	*" --help "* | *" --help-all "* | *" --info "* | *" --version "*)
		"$TRAINER" "$@" >"$log" 2>&1 || tells "exit status $?"
		return
		;;
	esac
	while [ $# -gt 0 ]; do
		case $1 in
		...) shift && continue ;;
		--network) known_network "${2-}" ;;
		--kv-store) grep -qwe "${2-}" "$help" || tells "there is no store ${2-}" ;;
		--devices)
			options_in_help "$1"
			[[ ${2-} == gpu:* ]] || kept+=("$1" "${2-}")
			;;
		--data-dir | --data-train | --data-val | --num-servers | --gpus | --pad-size | --resize | \
			--load | --sample | --prime)
			options_in_help "$1"
			;;
		--devices)
			case ${2-} in *gpu*) ;; *) kept+=("$1") && shift && continue ;; esac
			;;
		*) kept+=("$1") && shift && continue ;;
		esac
		[ $# -gt 1 ] || { tells "$1 has no value" && return; }
		shift 2
	done
	[ -z "${good[" ${kept[*]-}"]-}" ] || return 0
	good[" ${kept[*]-}"]=1
	"$TRAINER" ${kept[@]+"${kept[@]}"} --network mlp --num-layers 0 --num-classes 0 --image-shape 1,28,28 \
		--benchmark 1 --batch-size 4 --check >"$log" 2>&1 </dev/null && return
	tells "exit status $? of --check"
	show_log
}

known_network() {
	case $1 in
	*.so | NAME) ;;
	*) "$TRAINER" --info | grep -q "^networks: .*\b$1\b" || tells "there is no network $1" ;;
	esac
}

# split WORD...: sets own, the launcher's words, and rest, from the first word of ours on
split() {
	own=() rest=()
	while [ $# -gt 0 ] && ! is_ours "$1" && [ "$1" != mpirun ] && [ "$1" != srun ]; do
		own+=("$1")
		shift
	done
	rest=("$@")
}

check_launch() {
	local own rest words
	split "$@"
	if [ ${#rest[@]} = 0 ]; then
		help_of "$SRCDIR/jobs/launch" --help && options_in_help "$@"
		return
	fi
	"$SRCDIR/jobs/launch" "${own[@]}" --dry-run "${rest[@]}" >"$log" 2>&1 ||
		{ tells "exit status $? of --dry-run" && show_log; }
	check "${rest[@]}"
}

check_supervise() {
	local own rest words
	split "$@"
	if [ ${#rest[@]} = 0 ]; then
		help_of "$SRCDIR/jobs/supervise" --help && options_in_help "$@"
		return
	fi
	"$SRCDIR/jobs/supervise" "${own[@]}" true >"$log" 2>&1 || { tells "exit status $?" && show_log; }
	check "${rest[@]}"
}

# check_queue sbatch|qsub|flux WORD...: the batch file is there, and what it starts is good
check_queue() {
	local own rest word
	split "${@:2}"
	for word in ${own[@]+"${own[@]}"}; do
		case $word in ARGS=*) eval "check ${word#ARGS=}" ;; esac
	done
	[ -f "$SRCDIR/${rest[0]-}" ] || { tells "there is no batch file ${rest[0]-}" && return; }
	[ ${#rest[@]} = 1 ] || check "${rest[@]:1}"
}

# A script of jobs/: options that it does not name are the trainer's.
check_script() {
	local file=$SRCDIR/$1
	[ -e "$file" ] || { tells "there is no $1" && return; }
	help_of "$TRAINER" --help-all
	[ -d "$file" ] || cat "$file" "${file%/*}"/common.sh "$help" >script.text 2>/dev/null
	help=script.text
	options_in_help "${@:2}"
}

check_make() {
	local word
	for word; do
		case $word in
		-C | build | *=* | -j) ;;
		*) grep -q "^$word:" "$BUILDDIR/Makefile" || tells "make has no target $word" ;;
		esac
	done
}

# check WORD...: a command
check() {
	while [[ ${1-} =~ ^[A-Z_]+= ]]; do shift; done
	local own rest words
	case ${1-} in
	build/trainer | ./trainer) check_trainer "${@:2}" ;;
	muster)
		case ${2-} in
		train | launch | supervise) "check_${2/train/trainer}" "${@:3}" ;;
		help) help_of "$BUILDDIR/muster" "${@:2}" ;;
		bench)
			case ${3-} in run | report) words="bench $3" ;; *) words=bench ;; esac
			# shellcheck disable=SC2086 # two words
			help_of "$BUILDDIR/muster" help $words && options_in_help "${@:3}"
			;;
		*) help_of "$BUILDDIR/muster" help "${2-}" && options_in_help "${@:3}" ;;
		esac
		;;
	buildah | apptainer)
		for words in "${@:2}"; do
			[[ $words != packaging/* ]] || [ -f "$SRCDIR/$words" ] || tells "there is no $words"
		done
		;;
	mpirun | srun | podman) # an image muster begins with the command muster
		split "${@:2}"
		[ ${#rest[@]} = 0 ] || check "${rest[@]}"
		;;
	jobs/launch) check_launch "${@:2}" ;;
	jobs/supervise) check_supervise "${@:2}" ;;
	sbatch | qsub | flux) check_queue "$@" ;;
	build/mubench) check muster bench "${@:2}" ;;
	build/*) help_of "$BUILDDIR/${1#build/}" --help && options_in_help "${@:2}" ;;
	jobs/*) check_script "$@" ;;
	gpu-pack/gpu-check.sh) check_script jobs/gpu-check.sh "${@:2}" ;;
	./quickstart) "$SRCDIR/quickstart" --help | grep -qwF -e "$*" || tells "quickstart --help does not know it" ;;
	../configure) help_of "$SRCDIR/configure" --help && options_in_help "${@:2}" ;;
	make) check_make "${@:2}" ;;
	./bootstrap) [ -x "$SRCDIR/bootstrap" ] || tells "there is no bootstrap" ;;
	./keys | mkdir | cd | module | export | apt-get | dnf | mpicc) ;;
	*) false ;;
	esac
}

{
	for name in "$SRCDIR"/README.md "$SRCDIR"/doc/*.md "$SRCDIR"/packaging/README.md; do of_page "$name"; done
	for name in "$SRCDIR"/doc/*.[0-9] "$SRCDIR"/doc/*.mdoc; do of_manual "$name"; done
	for name in "$SRCDIR"/jobs/{pbs,sge,flux,slurm,examples}/*.s*; do of_comments "$name"; done
	of_quickstart
} >commands
printf 'node01 slots=8\nnode02 slots=8\n' >hosts
mkdir out build && ln -s "$TRAINER" build/trainer && ln -s "$TRAINER" trainer && ln -s "$SRCDIR/jobs" jobs
PATH=$BUILDDIR:$PATH
n=0
while IFS=$'\t' read -r at command; do
	while IFS= read -r one; do
		set -f
		eval "words=($one)" 2>/dev/null || words=("$one")
		set +f
		if check "${words[@]}"; then
			n=$((n + 1))
		elif [[ $one =~ (^|[ \"=])(build/[a-z]|jobs/[a-z]|muster [a-z]) ]]; then
			tells "no rule for such a command"
		fi
	done <<<"${command//" && "/$'\n'}"
done <commands
echo "$n commands"
[ "$n" -ge 40 ] || fail "only $n commands were found in all pages"
finish
