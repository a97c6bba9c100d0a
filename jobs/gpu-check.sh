#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All that needs a GPU, in one call on a machine that has one: tests, speeds beside PyTorch's, a table of kernels. Such
# a machine may have no package manager, compiler, MPI, HDF5 or oneDNN, so there are two halves:
#
#	jobs/gpu-check.sh pack DIR        here: build with CUDA, and put all that runs, with its libraries, into DIR
#	DIR/gpu-check.sh run DIR OUT      there: within 9 minutes, OUT/gpu-check.json, OUT/gpu-check.md and the logs
#
# The machine with the GPU needs its driver, cuDNN, cuBLAS and NCCL (of the CUDA toolkit, or as pip unpacks them),
# bash, awk and tar; Python with PyTorch for the comparison, ncu for the table of kernels, compute-sanitizer. Each part
# has a time of its own, and none ends the others: what cannot run is in the report with the reason.
set -u
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
limit_mb=64  # of a pack
archive=muster-gpu.tar.gz

usage() {
	cat <<TEXT
usage: jobs/gpu-check.sh pack [--build DIR] [--configure OPTION]... PACK
       PACK/gpu-check.sh run PACK OUT

  pack  build trainer, tests and tools with CUDA, and write PACK/$archive (less than $limit_mb MB): programs, the
        shared libraries they need, MPICH's launcher, and the tests that say @gpu in their first lines
    --build DIR          take this build, which must have CUDA, in place of a new one in build-gpu
    --configure OPTION   for configure, such as --with-cuda=/opt/cuda
  run   unpack it to a temporary folder and write into OUT
          gpu-check.json, gpu-check.md   all results: how each part ended, speeds (medians) beside PyTorch's, tests,
                                         kernels, facts
          *.log *.txt kernels.csv        what the programs printed
        The parts, in this order, and the seconds that each may take (PARTS="machine tests" in the environment: these
        alone):
          machine    10  driver, clocks, PCIe, /dev/shm, limits, the libraries found, cuDNN's description of the GPU
          smoke      25  mlp, and lenet in float16 with and without CUDA graphs; the libraries that were opened
          ceilings   20  copies on the GPU and to it, a product of matrices; ResNet-50 by layers (trainer --profile)
          tests      80  the tests, 30 s each (TESTS="test_gpu test_ops": these alone)
          sanitizer  70  compute-sanitizer over some of them
          kernels    60  the kernels of a step of ResNet-50, by ncu
          speeds    140  training; CONFIGURATIONS=FILE in place of jobs/gpu/configurations
          peer      160  the same by PyTorch
exit status of run: 0 if no part failed (also where there is no GPU), else 1
TEXT
}

die() {
	printf 'gpu-check: %s\n' "$*" >&2
	exit 1
}

wrong() {
	printf 'gpu-check: %s; --help tells more\n' "$*" >&2
	exit 2
}

# Programs are packed without the kernels, which are the same in all (jobs/gpu/pack.sh).
join_programs() {
	local before program
	find "$tree" -name '*.before' >"$work/cut" || return
	while read -r before; do
		program=${before%.before}
		cat "$before" "$tree/kernels" "$program.after" >"$program" && chmod 755 "$program" &&
			rm "$before" "$program.after" || return
	done <"$work/cut"
}

run() {
	[ $# = 2 ] || wrong "run: two folders are needed, the pack and where results go"
	[ -f "$1/$archive" ] || die "there is no $1/$archive: make it with pack"
	mkdir -p "$2" || die "cannot make $2"
	out=$(cd "$2" && pwd)
	work=$(mktemp -d) || die "no temporary folder"
	trap 'rm -rf "$work"' EXIT
	tar -C "$work" -xzf "$1/$archive" || die "cannot unpack $1/$archive in $work"
	tree=$work/muster-gpu
	join_programs || die "cannot join the programs in $work"
	# shellcheck source=jobs/gpu/run.sh
	. "$tree/jobs/gpu/run.sh"
	run_parts
}

case ${1-} in
pack)
	# shellcheck source=jobs/gpu/pack.sh
	. "$here/gpu/pack.sh"
	"$@"
	;;
run) "$@" ;;
-h | --help) usage ;;
*)
	usage >&2
	exit 2
	;;
esac
