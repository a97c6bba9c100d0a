#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Manual pages and completion, which are made of --help: every program has a page, mandoc finds nothing, nothing of a
# text is lost or taken for a macro. --help needs no MPI.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

part "a command for every program, and a page for every command"
names=$(sed -n '/^pkglibexec_PROGRAMS/{s/.*=//;p}' "$SRCDIR/Makefile.am" "$SRCDIR"/*/*.am "$SRCDIR"/*/*/*.am)
"$BUILDDIR/muster" help >"$log" 2>&1 || fail "exit status $? of muster help"
commands=$(sed -nE 's/^  ([a-z-]+( run| report)?)   *.*/\1/p' "$log" | tr ' ' -)
for name in $names check-job launch supervise; do
	expect "(^  | )($name  |\\S+ is $name(,|$))" # jobs/muster wants its name
done
for name in $commands; do
	page=$BUILDDIR/doc/muster-$name.1
	[ -s "$page" ] || { fail "no page of muster $name: doc/pages.am wants its name" && continue; }
	grep -q "^_muster_options\\['$name'\\]='.*--help" "$BUILDDIR/doc/completion" || fail "no completion of $name"
	words=${name/bench-/bench }
	sed 's/\\-/-/g' "$page" | grep -qE "^(mpirun -np N )?muster $words " ||
		fail "muster-$name(1) has another synopsis"
done
n=$("$TRAINER" --help-all | grep -cE '^  (-[a-z], )?--[a-z]')
[ "$(grep -c '^\.It Fl ' "$BUILDDIR/doc/muster-train.1")" = "$n" ] ||
	fail "muster-train(1) has not the $n options of --help-all"

part "mandoc"
if command -v mandoc >/dev/null; then
	mandoc -T lint -W warning "$BUILDDIR"/doc/muster*.1 "$SRCDIR"/doc/*.[57] >"$log" 2>&1
	[ -s "$log" ] && fail "mandoc: $(head -n 3 "$log")"
else
	echo "there is no mandoc"
fi

part "a page of a text"
awk -f "$SRCDIR/doc/page.awk" -v name=x -v what="do it" -v date="January 1, 2026" >x.1 <<'TEXT'
usage: x FILE [options]

Do it to FILE, as in:
  .hidden \n 'quoted'
Then stop.

Group:
  --name A|B                  first words
                              --flag and more, .dotted, back\slash. Next
  -s, --short N               S
  --flag                      .starts with a dot
TEXT
log=x.1
expect '^Do it to FILE, as in:$'
expect '^\\&\.hidden \\en .quoted.$'
expect '^Then stop\.$'
expect '^\.Ss Group$'
expect '^\.It Fl "\\&\\-name" Ar "\\&A\|B"$'
expect '^first words \\-\\-flag and more, \.dotted, back\\eslash\.$'
expect '^Next$'
expect '^\.It Fl "\\&s," Fl "\\&\\-short" Ar "\\&N"$'
expect '^\\&\.starts with a dot$'
expect_count 1 '^\.Bl '
expect_count 1 '^\.El$'

part "--help without MPI"
log=help.log
if [ "$(mpi_kind)" = mpich ]; then
	export PMI_PORT=127.0.0.1:1 PMI_ID=0 # nobody is there
	timeout -k 5 60 "$TRAINER" --network mlp --benchmark 1 --num-batches 1 --num-epochs 1 >"$log" 2>&1 &&
		echo "this MPI starts all the same"
fi
for program in "trainer --help" "trainer --info" "measure --help" "mubench --help"; do
	# shellcheck disable=SC2086 # words
	timeout -k 5 60 "$BUILDDIR"/$program >"$log" 2>&1 || fail "exit status $? of $program"
	expect '^(usage: mpirun|networks: .*lenet)'
done
finish
