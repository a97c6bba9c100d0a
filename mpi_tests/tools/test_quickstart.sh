#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# quickstart where oneDNN is missing or cannot be used: it stops with the remedy; --without-onednn goes on.
# A folder with a configure of our own stands for the sources, and no apt-get is on the PATH. Arguments, and the
# commands that it names in the end, which run in a folder that looks like the checkout.
#
# @timeout 200
. "$SRCDIR/mpi_tests/lib/lib.sh"

# configure, as far as quickstart looks: its arguments go to configured.txt, "built" shows that make ran.
write_configure() {
	mkdir -p sources && cp "$SRCDIR/quickstart" sources/ && : >sources/configure.ac
	cat >sources/configure <<'TEXT'
#!/bin/sh
echo "$*" >>../configured.txt
case $FAKE_ONEDNN:$* in
*--without-onednn*) : >config.h ;;
yes:*) echo '#define HAVE_ONEDNN 1' >config.h ;;
*) : >config.h ;;
esac
touch config.status
{
	printf 'ONEDNN_SUMMARY = no (found version 1.9)\nall:\n'
	for i in 1 2 3; do printf '\t@echo "  CC       file%d.o"\n' $i; done
	# what make -n says again
	printf '\t@echo \047echo "  CC       file1.o"\047 # $(MAKE)\n'
	printf '\t@echo built\n'
} >Makefile
TEXT
	chmod +x sources/configure
	touch -d '1 minute ago' sources/configure.ac sources/configure
}

# Every program but those that install packages.
write_path() {
	local tool
	mkdir -p bin
	for tool in awk bash cat dirname echo env gcc grep head id ls make mkdir mpicc nproc rm sed sh sort tail tee \
		touch tr uname wc; do
		ln -sf "$(type -P $tool)" bin/$tool
	done
}

# quickstart ARGUMENT...: its status is returned, its output in $log
quickstart() {
	rm -f sources/configured.txt
	FAKE_ONEDNN=${with_onednn-no} PATH=$PWD/bin CC=mpicc sources/quickstart "$@" >"$log" 2>&1 </dev/null
}

# stops: with the reason and the remedy, before anything is built
stops() {
	quickstart
	[ $? = 1 ] && [ "$(grep -c '^quickstart: oneDNN: ' "$log")" = 1 ] &&
		grep -q '^quickstart: oneDNN: no (found version 1.9).*--with-onednn=DIR.*--without-onednn' "$log" &&
		! grep -q '^built' "$log" && return
	fail "no clear stop without oneDNN"
	show_log
}

# builds [OPTION]: the build is reached
builds() {
	quickstart "$@"
	grep -q '^built' "$log" && [ "$(grep -c '^  CC       file[123].o  ([123] of 3)$' "$log")" = 3 ] && return
	fail "quickstart $* did not build"
	show_log
}

write_configure
write_path
stops
stops # configured already
rm -r sources/build
builds --without-onednn
grep -q -e --without-onednn sources/configured.txt || fail "configure was not told --without-onednn"
with_onednn=yes builds
! grep -q -e --without-onednn sources/configured.txt || fail "oneDNN is left out unasked"

part "arguments"
expect_usage() {
	sources/quickstart "$@" >"$log" 2>&1 </dev/null || fail "exit status $? of quickstart $*"
	expect '^usage: ./quickstart '
}
expect_usage --help
expect_usage check --help
for words in chek "check --al" "--without-onednn check" "check check"; do
	# shellcheck disable=SC2086 # words
	sources/quickstart $words >"$log" 2>&1 </dev/null
	[ "$? $(cat "$log")" = "2 quickstart: error: \"$words\" is not known; ./quickstart --help says what is" ] ||
		{ fail "no clear answer to quickstart $words" && show_log; }
done

part "what it names next"
sed -n '/^Next, in/,/^TEXT$/s/^  //p' sources/quickstart | sed -e 's/\\\\$/\\/' -e 's/   *[A-Za-z].*//' -e '/^$/d' \
	-e '/^.\/quickstart check$/d' -e "/^make -C build install /d" -e 's|DIR|build/data/digits|' \
	-e 's/--data-dir [^ ]*/& --num-examples 256 --batch-size 32/' >next.sh
[ "$(grep -c . next.sh)" = 4 ] || { fail "other commands: change this test" && cat next.sh; }
mkdir -p checkout/build/data run
ln -s "$TRAINER" checkout/build/
small_set checkout/build/data/digits 256 64
printf '#!/bin/sh\nexec %s "$@"\n' "$MPIRUN" >run/mpirun && chmod +x run/mpirun
(cd checkout && export PATH=$OLDPWD/run:$PATH OMP_NUM_THREADS=1 &&
	timeout $((100 * ${MU_TIMEOUT_SCALE:-1})) bash -eux ../next.sh) >"$log" 2>&1 </dev/null ||
	{ fail "exit status $? of the commands" && show_log; }
expect_count 2 'Epoch\[1\] Validation-accuracy='
finish
