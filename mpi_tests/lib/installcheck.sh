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

[ "$(command -v muster)" = "$bin/muster" ] || die "there is no $bin/muster: make install comes first"
command -v trainer >/dev/null && die "$(command -v trainer): plain names in PATH are another's"
tool "the version" muster --version
grep -qxF "muster (Muster) $version" log || die "not version $version"

for command in $(muster help | sed -nE 's/^  ([a-z-]+)   *.*/\1/p'); do
	tool "help" muster help "$command"
	grep -q "^usage: .*muster $command " log || die "muster help $command tells another name"
done
grep -q 'round trips' log || die "muster help does not list bench" # the last command
muster im2rec >log 2>&1
[ "$? $(cat log)" = "2 muster: error: there is no command 'im2rec'; the nearest is 'pack' (muster help lists all)" ] ||
	die "an unknown command"
muster strange >log 2>&1
[ "$? $(cat log)" = "2 muster: error: there is no command 'strange' (muster help lists all)" ] ||
	die "a strange command"

# With no folder but ours in PATH.
mpirun=$(command -v "${MPIRUN%% *}") || die "there is no ${MPIRUN%% *}"
case $MPIRUN in *' '*) mpirun="$mpirun ${MPIRUN#* }" ;; esac
few="--num-epochs 1 --batch-size 20 --lr 0.05"
tool "a data set" env PATH="$bin" muster digits --output set --train 400 --test 100
# shellcheck disable=SC2086 # lists of words
tool "training" env PATH="$bin" muster train --network mlp --data-dir set $few
grep -q 'Validation-accuracy=' log || die "no validation"
# shellcheck disable=SC2086
tool "training on ranks" env PATH="$bin" $mpirun -n 3 muster train --network lenet --kv-store dist_sync \
	--data-dir set $few
grep -q 'Validation-accuracy=' log || die "no validation"
cp log train.log
# The command becomes the trainer, which a launcher sends signals to and a script looks for.
muster train --network mlp --benchmark 1 --kv-store local --num-epochs 1000000 >log 2>&1 </dev/null &
for ((i = 0; i < 600; i++)); do
	[ "$(cat /proc/$!/comm 2>/dev/null)" = trainer ] && grep -qF 'Epoch[0]' log && break
	sleep 0.1
done
kill -TERM $!
wait $!
[ $? = 85 ] || die "muster train does not pass signals and exit status on"
tool "a table" muster table train.log
grep -q '^|  *1 |' log || die "no epoch in the table"
tool "a page" muster plot train.log --output run.html
[ -s run.html ] || die "no page"
if muster train --info | grep -q '^PNG: *[0-9]'; then
	tool "images" muster repack set/t10k-images-idx3-ubyte.gz images/
	tool "a list" muster pack --list --recursive packed images
	tool "packing" muster pack packed images
	tool "a look at it" muster info packed.rec --num-classes 10
fi
# shellcheck disable=SC2086
tool "launch" muster launch -n 2 -s 1 muster train --network mlp --kv-store dist_sync --data-dir set $few
grep -q 'Validation-accuracy=' log || die "no validation"
tool "a batch file" muster launch -n 2 --launcher slurm --dry-run muster train --network mlp --model-prefix out/x
grep -q "exec .*/supervise .* muster train .* --resume auto" log || die "a batch file without supervise"
[ -x "$(sed -n 's/^exec \([^ ]*\).*/\1/p' log)" ] || die "a batch file names no supervise that is there"
tool "supervise" muster supervise muster train --version
echo '{"parameters": {"exp.model": "mlp", "exp.num_batches": 3, "exp.replica_batch": 4}}' >sweep.json
case " $* " in *" muster-bench-run "*) tool "a sweep" muster bench run sweep.json ;; esac
# shellcheck disable=SC2086
tool "an example" "$DESTDIR$datadir/muster/jobs/examples/mnist_local.sh" set $few
for file in slurm/train.sbatch pbs/train.sh sge/train.sh flux/train.sh dlbs/config.json examples/mynet.c; do
	[ -s "$DESTDIR$datadir/muster/jobs/$file" ] || die "there is no $file"
done
grep -qx "set bindir \"$bindir\"" "$DESTDIR$datadir/muster/modulefiles/muster/$version" || die "the module file"

if command -v pkg-config >/dev/null; then
	place=${DESTDIR:+--define-variable=prefix=$DESTDIR$prefix}
	# shellcheck disable=SC2086 # nothing, or a word
	flags=$(pkg-config $place --cflags --libs muster) || die "no muster.pc"
	# shellcheck disable=SC2086 # flags are words
	tool "a program with the library" $CC "$examples/keys.c" -o keys $flags
	# shellcheck disable=SC2086
	tool "a program that is linked with all" $MPIRUN -n 3 ./keys
	# shellcheck disable=SC2046,SC2086
	tool "a program with the store of keys alone" $CC "$examples/keys.c" -o keys \
		$(pkg-config $place --cflags --libs muster-keys)
	# shellcheck disable=SC2086
	tool "the store alone" $MPIRUN -n 3 ./keys
	! $NM keys | grep -E ' (dnnl_|cu[A-Z]|cudnn|H5F)' || die "the store of keys brings more than MPI"
	sed 's|mu_keys_finish(keys)|mu_keys_save(keys, "keys.h5", MU_KEYS_WEIGHTS)); MU_TRY(&|' \
		"$examples/keys.c" >save.c
	# shellcheck disable=SC2046,SC2086
	tool "a program that saves keys" $CC save.c -o save \
		$(pkg-config $place --static --cflags --libs muster-keys)
	! $NM save | grep -E ' (dnnl_|cu[A-Z]|cudnn)' || die "files of keys bring more than HDF5"
	# shellcheck disable=SC2046,SC2086 # words
	tool "a model" $CC -shared -fPIC "$examples/mynet.c" -o mynet.so \
		$(pkg-config $place --cflags muster)
	# shellcheck disable=SC2086
	tool "training of a loaded model" muster train --network ./mynet.so --data-dir set $few
fi

for page; do
	[ -s "$DESTDIR$mandir/man1/$page.1" ] || die "there is no page $page(1)"
done
for page in man5/muster-files.5 man7/muster-tutorial.7; do
	[ -s "$DESTDIR$mandir/$page" ] || die "there is no page $page"
done
if command -v mandoc >/dev/null; then
	tool "manual pages" mandoc -T lint -W warning "$DESTDIR$mandir"/man1/{muster,muster-train,muster-bench}.1 \
		"$DESTDIR$mandir"/man[57]/muster*
fi

# COMPREPLY of the words: the last of them is what was typed of a word
complete_words() {
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	_muster
}
# As bash-completion reads it.
load() {
	# shellcheck disable=SC1090,SC1091 # it is installed
	. "$DESTDIR$datadir/bash-completion/completions/muster" || die "there is no completion"
}
load
# completes WHAT WANTED WORD...
completes() {
	local what=$1 wanted=$2
	shift 2
	complete_words muster "$@"
	[ "${COMPREPLY[*]}" = "$wanted" ] || die "completion of $what: ${COMPREPLY[*]}"
}
completes "a command" "pack pack-cifar" pa
completes "a network" lenet train --network len
completes "a store" "dist_sync dist_sharded" launch -n 2 muster train --kv-store dist_s
completes "an option" --no-shuffle pack --no-
completes "a command's help" supervise help sup
case " $* " in
*" muster-bench-report "*) completes "bench report" weak-scaling bench report --type weak ;;
esac
echo "installcheck: $bin is good"
