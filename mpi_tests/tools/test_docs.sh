#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 600 @alone
# The commands of README.md and of the pages of doc/ run, and print what the pages show. In a page,
#
#	<!-- run -->            the next block is a script of bash, which ends well
#	<!-- run: status 2 -->  or with this status
#	<!-- prints -->         the lines of the next block are in the output of the script before, in this order
#
# Numbers are not compared, and "..." stands for anything. Each page has an empty folder of its own, in which build/ is
# the build folder, and the data that digits makes are few. The tier quick runs README.md, the others all pages;
# MU_PAGES="doc/data.md" runs these alone. Links, files, options and functions that any page names must
# exist.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export OMP_NUM_THREADS=1
if is_sanitized; then
	echo "skipped: every command of the pages is tested by itself with sanitizers"
	exit 77
fi
needs_files
[ -x "$BUILDDIR/mpi_tests/lib/make_jpeg" ] || { echo "skipped: this build has no JPEG or no PNG images" && exit 77; }

# blocks PAGE: writes N.sh and N.prints for each marked block, N.status and N.line for each script.
blocks() {
	awk '
	function fail(text) {
		print FILENAME ":" FNR ": " text
		bad = 1
	}
	/^<!-- (run|prints)/ {
		if (kind != "")
			fail("no block follows the mark before")
		kind = $2 == "prints" ? "prints" : "run"
		if (kind == "prints" && !n)
			fail("nothing was run before")
		if ($0 !~ /^<!-- (run|run: status [0-9]+|prints) -->$/)
			fail("an unknown mark: " $0)
		want = $2 == "run:" ? $4 : 0
		next
	}
	/^```/ && open {
		close(file)
		open = 0
		kind = ""
		next
	}
	/^```/ && kind != "" {
		open = 1
		if (kind == "run") {
			n++
			print want >(n ".status")
			print FNR >(n ".line")
		}
		file = n (kind == "run" ? ".sh" : ".prints")
		printf "" >file
		next
	}
	open { print >file }
	END {
		if (kind != "")
			fail("a mark without a block")
		if (!n)
			fail("no block is marked")
		exit bad
	}' "$1"
}

# plain FILE: without what differs from run to run.
plain() {
	sed -E 's/[0-9]+([.,:][0-9]+)*(e[-+]?[0-9]+)?/#/g; s/[[:space:]]+/ /g; s/^ //; s/ $//' "$1"
}

# missing OUTPUT PRINTS: the first line of PRINTS that is not in OUTPUT, behind those before it.
missing() {
	plain "$1" >output.plain
	plain "$2" >prints.plain
	awk '
	function holds(line, want,    parts, i, n, at) {
		n = split(want, parts, / ?\.\.\. ?/)
		for (i = 1; i <= n; i++) {
			at = index(line, parts[i])
			if (parts[i] != "" && !at)
				return 0
			line = substr(line, at + length(parts[i]))
		}
		return 1
	}
	NR == FNR { lines[++n] = $0; next }
	$0 == "" || $0 == "..." { next }
	{
		while (++i <= n && !holds(lines[i], $0))
			;
		if (i > n) {
			print
			exit
		}
	}' output.plain prints.plain
}

# A folder as a reader has it after ./quickstart, but for the size of its data.
folder() {
	local file
	mkdir -p "$1/build/data" "$1/bin"
	for file in "$BUILDDIR"/*; do
		[ -f "$file" ] && [ -x "$file" ] && ln -s "$file" "$1/build/"
	done
	rm -f "$1/build/digits"
	printf '#!/bin/sh\nexec "%s" --train 2816 --test 256 "$@"\n' "$DIGITS" >"$1/build/digits"
	printf '#!/bin/sh\nPATH="%s" exec %s "$@"\n' "$PATH" "$MPIRUN" >"$1/bin/mpirun" # MPIRUN may be mpirun
	chmod +x "$1/build/digits" "$1/bin/mpirun"
	for file in include jobs nets; do ln -s "$SRCDIR/$file" "$1/$file"; done
}

# page NAME: run its blocks, in order.
page() {
	local n=0 line lost
	mkdir -p marks && rm -f marks/*
	(cd marks && blocks "$SRCDIR/$1") >"$log" 2>&1 || { fail "$(cat "$log")" && return; }
	folder page
	while [ -f marks/$((n += 1)).sh ]; do
		line=$(cat marks/$n.line)
		(cd page && PATH=$PWD/bin:$PATH timeout -k 5 $((120 * ${MU_TIMEOUT_SCALE:-1})) \
			bash -euo pipefail ../marks/$n.sh) >"$log" 2>&1 </dev/null
		status=$?
		if [ $status != "$(cat marks/$n.status)" ]; then
			fail "$1:$line: exit status $status"
			show_log
			break
		fi
		[ -f marks/$n.prints ] || continue
		lost=$(missing "$log" marks/$n.prints)
		[ -z "$lost" ] || { fail "$1:$line: it does not print: $lost" && show_log; }
	done
	echo "$1: $((n - 1)) blocks"
	rm -rf page
}

pages=README.md
! in_tier full || pages="README.md doc/train.md doc/data.md doc/stores.md doc/parallel.md doc/gpus.md doc/clusters.md
	doc/api.md doc/from-mxnet.md doc/from-pytorch.md"
for name in ${MU_PAGES:-$pages}; do
	part "$name"
	page "$name"
done

# What pages name must be there; capitals stand for a name of the reader's.
part "links, files, options and functions"
folders="src|include|nets|data|jobs|fuzz|mpi_tests|doc|packaging"
cd "$SRCDIR" && set -- README.md HACKING.md NEWS.md doc/*.md doc/design/*.md
for name; do
	for link in $(grep -oE '\]\([^)#]+' "$name" | sed 's/^](//' | grep -v '^http'); do
		[ -e "$(dirname "$name")/$link" ] || fail "$name: no page $link"
	done
	for file in $(grep -ohE "\`($folders)/[A-Za-z0-9_./-]+" "$name" | tr -d '`'); do
		case $file in *[A-Z]* | *_) ;; *) [ -e "$file" ] || fail "$name: no file $file" ;; esac
	done
	for file in $(grep -ohE '`[a-z0-9_]+\.(c|h|sh)`' "$name" | tr -d '`'); do
		# shellcheck disable=SC2086 # a list of folders
		[ -n "$(find ${folders//|/ } -name "$file" -print -quit)" ] || fail "$name: no file $file"
	done
done
{
	"$TRAINER" --help-all
	for name in digits h5rec im2rec rec2idx recinfo parse_log plot_log measure mubench muconvert cifar_pack \
		tokenize; do
		"$BUILDDIR/$name" --help
	done
	jobs/launch --help
	jobs/supervise --help
	./configure --help
	# aliases, old names and the form of switches
	sed -n 's/.*\.aliases = "\([^"]*\)".*/|\1/p; s/.*("\([a-z0-9-]*\)".*NOW(.*/|\1/p' src/conf/rows/*.def |
		sed 's/|/ --/g'
	echo "--no-x"
	echo "--mca --oversubscribe --export-dynamic --whole-archive" # Open MPI's mpirun, the linker
	echo "--x --no-x"                                             # any switch
	# Other names of options, and those that were replaced, are not in --help-all.
	grep -ohE '(\.aliases = |[A-Z]+\()"[a-z0-9|-]+"' src/conf/rows/*.def | sed 's/.*[( ]"/--/; s/|/ --/g'
} 2>/dev/null | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u >"$OLDPWD/options"
for name in $(grep -ohE '`--[a-z][a-z0-9-]+' "$@" | tr -d '`' | sort -u); do
	grep -qxe "$name" "$OLDPWD/options" || fail "no program has the option $name of $(grep -lFe "\`$name" "$@")"
done
for name in $(grep -ohE '`mu_[a-z0-9_]+' "$@" | tr -d '`' | sort -u); do
	grep -rqw -e "$name" include src || fail "there is no $name, which is in $(grep -lFe "\`$name" "$@")"
done
cd "$OLDPWD" || exit 1
finish
