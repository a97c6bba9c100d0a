#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make install and make installcheck, in a folder of the test; and nothing is left after make uninstall. A user who
# cannot write the build folder can install, too.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

if is_sanitized; then
	echo "skipped: programs of users are linked without sanitizers"
	exit 77
fi

# in_build TARGET
in_build() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -C "$BUILDDIR" -s --no-print-directory prefix="$PWD/there" "$1" \
		>"$log" 2>&1
	status=$?
	[ $status = 0 ] || { fail "exit status $status of make $1" && show_log; }
}

in_build install
in_build installcheck
expect '^installcheck: .*/there/bin is good$'
in_build uninstall
left=$(find there ! -type d)
[ -z "$left" ] || fail "left by make uninstall: ${left//$'\n'/ }"

part "by a user who cannot write the build folder"
other="setpriv --reuid 65534 --regid 65534 --clear-groups"
if $other test -x "$BUILDDIR" -a ! -w "$BUILDDIR" 2>/dev/null && mkdir -m 777 theirs && $other test -w theirs; then
	# No HOME, for the user may have none in which git could be told whom to trust.
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $other make -C "$BUILDDIR" -s --no-print-directory \
		prefix="$PWD/theirs" install >"$log" 2>&1 || { fail "exit status $? of make install" && show_log; }
	[ -x theirs/bin/trainer ] || fail "nothing is installed"
else
	echo "skipped: this needs root, and folders that others can read"
fi
finish
