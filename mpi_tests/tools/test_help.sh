#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# -h, --help and --version of every program and script: status 0, a text on standard output, nothing on standard error,
# and no MPI.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export PMI_PORT=127.0.0.1:1 PMI_ID=0 MUSTER=$BUILDDIR/muster # a program that starts MPI would fail, or wait

version=$("$TRAINER" --version)
version=${version##* }

# answer WHAT COMMAND...: what it prints is in $log
answer() {
	local what=$1
	shift
	timeout -k 5 $((20 * ${MU_TIMEOUT_SCALE:-1})) "$@" >"$log" 2>errors </dev/null ||
		fail "$what: exit status $?: $(head -n 1 errors)"
	[ -s "$log" ] || fail "$what prints nothing"
	[ ! -s errors ] || fail "$what on standard error: $(head -n 1 errors)"
}

# help_of COMMAND...
help_of() {
	answer "$* --help" "$@" --help
	cp "$log" whole
	answer "$* -h" "$@" -h
	cmp -s "$log" whole || fail "$*: -h is not --help"
}

version_of() {
	answer "$* --version" "$@" --version
	grep -qi "muster.* $version\$" "$log" || fail "$* --version: $(head -n 1 "$log")"
}

part "programs"
names=$(sed -n '/^pkglibexec_PROGRAMS/{s/.*=//;p}' "$SRCDIR/Makefile.am" "$SRCDIR"/*/*.am "$SRCDIR"/*/*/*.am)
[ "$(wc -w <<<"$names")" -ge 12 ] || fail "only the programs $names"
for name in muster $names; do
	help_of "$BUILDDIR/$name"
	expect '\-\-help'
	expect '\-\-version'
	version_of "$BUILDDIR/$name"
done
help_of "$BUILDDIR/muster" train
help_of "$BUILDDIR/mubench" run
help_of "$BUILDDIR/mubench" report
version_of "$BUILDDIR/mubench" run
for name in infer keys bench_store bench_allreduce; do help_of "$BUILDDIR/$name"; done

part "scripts"
for name in check-job launch supervise; do
	help_of "$SRCDIR/jobs/$name"
	version_of "$SRCDIR/jobs/$name"
done
for path in "$SRCDIR"/jobs/examples/*.sh; do
	case $path in */common.sh) continue ;; esac
	help_of "$path"
	expect "jobs/examples/$(basename "$path")"
	version_of "$path"
done
for path in "$SRCDIR"/jobs/{slurm,sge,pbs,flux,dlbs}/* "$SRCDIR"/jobs/gpu-check.sh "$SRCDIR"/jobs/gpu/* \
	"$SRCDIR"/jobs/bench/campaign/* "$SRCDIR"/jobs/bench/* "$SRCDIR/fuzz/run" "$SRCDIR/packaging/check-debian"; do
	[ -f "$path" ] && [ -x "$path" ] || continue
	case $(head -n 1 "$path") in
	*python*) in_tier full && command -v python3 >/dev/null || continue ;;
	esac
	if in_tier full; then help_of "$path"; else answer "$path -h" "$path" -h; fi
done
finish
