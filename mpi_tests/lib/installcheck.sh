#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The installed product, used from another folder and without our source or build: `make installcheck`, after
# `make install`, which gives the folders in the environment and the names of the manual pages as arguments.
# shellcheck disable=SC2154 # folders of make
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bin=$DESTDIR$bindir
examples=$SRCDIR/jobs/examples
cd "$work" || exit 1
PATH=$bin:$PATH
export PKG_CONFIG_PATH=$DESTDIR$libdir/pkgconfig OMP_NUM_THREADS=1
unset TRAINER BUILDDIR
# Open MPI: more ranks than cores, and root in a container.
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# die TEXT
die() {
	echo "installcheck: $1" >&2
	[ ! -s log ] || tail -n 20 log >&2
	exit 1
}

# tool TEXT COMMAND...
tool() {
	local text=$1
	shift
	timeout -k 5 120 "$@" >log 2>&1 </dev/null || die "$text: exit status $? of $*"
}

[ "$(command -v trainer)" = "$bin/trainer" ] || die "there is no $bin/trainer: make install comes first"
tool "the version" trainer --version
grep -q " $version\$" log || die "not version $version"

tool "a data set" digits --output set --train 400 --test 100
# shellcheck disable=SC2086 # MPIRUN may hold options
tool "training" $MPIRUN -n 3 trainer --network lenet --data-dir set --num-epochs 1 --batch-size 20 --lr 0.05
grep -q 'Validation-accuracy=' log || die "no validation"
tool "mulaunch" mulaunch -n 2 -s 1 trainer --network mlp --data-dir set --num-epochs 1 --batch-size 20
grep -q 'Validation-accuracy=' log || die "no validation"
[ -n "$DESTDIR" ] || # what it reads lies where it will be
	tool "mulaunch's batch files" mulaunch -n 2 --launcher slurm --dry-run trainer --network mlp
tool "musupervise" musupervise trainer --version
tool "tools" im2rec --help

if command -v pkg-config >/dev/null; then
	flags=$(pkg-config --define-variable=prefix="$DESTDIR$prefix" --cflags --libs muster) || die "no muster.pc"
	# shellcheck disable=SC2086 # flags are words
	tool "a program with the library" $CC "$examples/keys.c" -o keys $flags
	# shellcheck disable=SC2086
	tool "the store alone" $MPIRUN -n 3 ./keys
	# shellcheck disable=SC2046,SC2086 # words
	tool "a model" $CC -shared -fPIC "$examples/mynet.c" -o mynet.so \
		$(pkg-config --define-variable=prefix="$DESTDIR$prefix" --cflags muster)
	tool "training of a loaded model" trainer --network ./mynet.so --data-dir set --num-epochs 1 --batch-size 20
fi

for page; do
	[ -s "$DESTDIR$mandir/man1/$page.1" ] || die "there is no page $page(1)"
done
for page in man5/muster-files.5 man7/muster.7; do
	[ -s "$DESTDIR$mandir/$page" ] || die "there is no page $page"
done
if command -v mandoc >/dev/null; then
	tool "manual pages" mandoc -T lint -W warning "$DESTDIR$mandir"/man1/{trainer,mubench}.1 \
		"$DESTDIR$mandir"/man[57]/muster*
fi

# COMPREPLY of the words: the last of them is what was typed of a word
complete_words() {
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	_muster
}
# shellcheck disable=SC1090,SC1091 # it is installed
. "$DESTDIR$datadir/bash-completion/completions/mulaunch" || die "there is no completion"
complete_words trainer --network len
[ "${COMPREPLY[*]}" = lenet ] || die "completion of a network: ${COMPREPLY[*]}"
complete_words mulaunch -n 2 trainer --kv-store dist_s
[ "${COMPREPLY[*]}" = "dist_sync dist_sharded" ] || die "completion of a store: ${COMPREPLY[*]}"
complete_words im2rec --no-
[ "${COMPREPLY[*]}" = --no-shuffle ] || die "completion of an option: ${COMPREPLY[*]}"
case " $* " in
*" mubench-report "*)
	complete_words mubench report --type weak
	[ "${COMPREPLY[*]}" = weak-scaling ] || die "completion of mubench report: ${COMPREPLY[*]}"
	;;
esac
echo "installcheck: $bin is good"
