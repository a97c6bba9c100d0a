#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The kit of packaging/ for a computing centre, without network and without the programs that it is for (kit.py):
# packaging/check-centre runs those.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export LC_ALL=C OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
kit=$SRCDIR/packaging

python=$(find_python types)
[ -n "$python" ] || { echo "skipped: there is no python3" && exit 77; }
has_files || { echo "skipped: this build has no HDF5" && exit 77; }

# ask KIND FILE ARGUMENT...: kit.py's answer in the file $log
ask() {
	"$python" "$SRCDIR/mpi_tests/centre/kit.py" "$@" >"$log" 2>&1 || { fail "kit.py $*" && show_log; }
}

# Each --with-X and --without-X in $log is an option of configure.
expect_options() {
	local option
	for option in $(grep -Eo -e '--with(out)?-[a-z0-9]+' "$log" | sed -E 's/--with(out)?-//' | sort -u); do
		grep -q -e "--with-$option\b" configure.help || fail "configure has no --with-$option"
	done
}

part "every file is Python"
"$SRCDIR/configure" --help >configure.help || fail "configure --help"
for file in "$kit"/easybuild/*.eb "$kit"/reframe/*.py "$kit"/spack/packages/*/package.py; do
	"$python" -c 'import sys; compile(open(sys.argv[1], encoding="utf-8").read(), sys.argv[1], "exec")' "$file" ||
		fail "$file"
done

part "EasyBuild: words of configure, and one version"
version=$("$TRAINER" --version)
version=${version##* }
for file in "$kit"/easybuild/*.eb; do
	ask easybuild "$file"
	case $file in */Muster-"$version"*) ;; */Muster*) fail "$file is not of version $version" ;; *) continue ;; esac
	expect_options
	expect '^--without-cuda'
done

part "Spack: its variants are options of configure, and what it uses is a dependency"
for state in on off; do
	ask spack "$kit/spack/packages/muster/package.py" $state
	expect_options
	expect "^CC=/mpi/bin/mpicc\$"
	expect_count 10 '^--with'
done
expect_none '^--with-'

part "ReFrame: its words find the figures of a run"
train 3 --network lenet --benchmark 1 --num-epochs 1 --num-batches 3 --batch-size 8 --kv-store dist_allreduce
sed -nE 's/.*(Total .*|Img.sec per .*): ([0-9.]+)$/\2/p' "$log" >figures
mv "$log" run.log
ask reframe "$kit/reframe/muster_check.py" run.log
expect_count 1 '^MusterSpeed has_ranks True$'
expect_count 1 "^MusterSpeed throughput_each $(sed -n 1p figures | sed -E 's/0+$|\.0+$//')"
expect_count 1 "^MusterSpeed total_throughput $(sed -n 2p figures | sed -E 's/0+$|\.0+$//')"
speed=$(sed -n 's/^MusterSpeed --/--/p' "$log") learns=$(sed -n 's/^MusterLearns --/--/p' "$log")
small_set digits 640 100
train 3 $learns --check # its options are known
train 3 $speed --check
train 3 $learns
mv "$log" run.log
ask reframe "$kit/reframe/muster_check.py" run.log
expect_count 1 '^MusterLearns has_learned (True|False)$'
expect_count 1 '^MusterLearns throughput [0-9.]+$'
expect_none '^MusterSpeed has_ranks True$'

part "CITATION.cff"
log=$SRCDIR/CITATION.cff
expect_count 1 "^version: $version\$"
expect_count 1 '^license: Apache-2\.0$'
expect '^cff-version: 1\.2\.0$'
finish
