#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make install and make installcheck, in a folder of the test; and nothing is left after make uninstall. What is
# installed may be moved, or staged (DESTDIR) with folders of other names. A user who cannot write the build folder can
# install, too.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

if is_sanitized; then
	echo "skipped: programs of users are linked without sanitizers"
	exit 77
fi

# in_build TARGET [VARIABLE=VALUE...]
in_build() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -C "$BUILDDIR" -s --no-print-directory prefix="$PWD/there" "$@" \
		>"$log" 2>&1
	status=$?
	[ $status = 0 ] || { fail "exit status $status of make $1" && show_log; }
}

in_build install
in_build installcheck
expect '^installcheck: .*/there/bin is good$'
[ "$(ls there/bin)" = muster ] || fail "more than muster in bin: $(ls -m there/bin)"
[ -d "$(PKG_CONFIG_PATH=there/lib/pkgconfig pkg-config --variable=includedir muster)/muster" ] ||
	fail "muster.pc names no folder of headers"
mv there moved
ln -s "$PWD/moved/bin/muster" linked
moved/bin/muster pack --help >"$log" 2>&1 || { fail "muster in a folder that was moved" && show_log; }
./linked --version >"$log" 2>&1 || { fail "a link to muster" && show_log; }
mv moved there
in_build uninstall
left=$(find there ! -type d)
[ -z "$left" ] || fail "left by make uninstall: ${left//$'\n'/ }"
[ -z "$(find there -name muster)" ] || fail "folders left by make uninstall: $(find there -name muster)"

part "staged, with other folders"
other="prefix=/usr bindir=/usr/games libexecdir=/usr/lib DESTDIR=$PWD/stage"
# shellcheck disable=SC2086 # words
in_build install $other
stage/usr/games/muster --version >"$log" 2>&1 || { fail "muster in a folder that is staged" && show_log; }
[ -x stage/usr/lib/muster/trainer ] || fail "no trainer in stage/usr/lib/muster"
grep -rIlF -e "$PWD" stage >"$log" && fail "files that name the stage: $(tr '\n' ' ' <"$log")"
grep -qx 'set bindir "/usr/games"' stage/usr/share/muster/modulefiles/muster/* || fail "no module file"
# shellcheck disable=SC2086
in_build uninstall $other
left=$(find stage ! -type d)
[ -z "$left" ] || fail "left in the stage by make uninstall: ${left//$'\n'/ }"

part "by a user who cannot write the build folder"
other="setpriv --reuid 65534 --regid 65534 --clear-groups"
if $other test -x "$BUILDDIR" -a ! -w "$BUILDDIR" 2>/dev/null && mkdir -m 777 theirs && $other test -w theirs; then
	# No HOME, for the user may have none in which git could be told whom to trust.
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $other make -C "$BUILDDIR" -s --no-print-directory \
		prefix="$PWD/theirs" install >"$log" 2>&1 || { fail "exit status $? of make install" && show_log; }
	[ -x theirs/bin/muster ] || fail "nothing is installed"
else
	echo "skipped: this needs root, and folders that others can read"
fi
finish
