#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 900
# The kernels of GPUs (src/device/cuda/kernels), compiled for the host and run there in blocks of 256 threads,
# against plain formulas: with the address and undefined sanitizers; in the tier full with ThreadSanitizer, with
# optimisation and by clang, too. Needs neither CUDA nor a GPU. rig.h says how a case is written: without one for every
# kernel the test is not linked.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/kernels/kernels.sh
. "$SRCDIR/mpi_tests/kernels/kernels.sh"

# try_kernels NAME CC CXX CASES OPTIONS: build and run them in a folder of this name
try_kernels() {
	local name=$1 cc=$2 cxx=$3 cases=$4
	shift 4
	part "$cxx $*"
	mkdir "$name"
	echo 'int main(int argc, char **argv) { return argc - 1 + !argv; }' >"$name/empty.cc"
	if ! "$cxx" "$@" "$name/empty.cc" -o "$name/empty" >"$name/log" 2>&1 || ! "$name/empty" >>"$name/log" 2>&1; then
		echo "not tested: $cxx $*: $(tail -n 1 "$name/log")"
		return
	fi
	compile_kernels "$name" "$cc" "$cxx" "$@"
	for f in rig elements norms lanes losses space windows sequences transformer; do
		"$cc" $kernel_flags -Wall -Wextra -g "$@" -include "$SRCDIR/src/device/cuda/kernels/args.h" -c \
			"$SRCDIR/mpi_tests/kernels/$f.c" -o "$name/$f.o" || fail "$f.c does not compile"
	done
	"$cxx" "$@" "$name"/*.o -o "$name/test" -lm -lpthread || fail "no case for a kernel, or a function is missing"
	log=$name/log
	"$name/test" $cases >"$log" 2>&1 || { fail "exit status $?" && show_log; }
	nm "$name/kernels.o" | sed -n 's/.* T //p' | while read -r kernel; do
		grep -q "^$kernel: [1-9]" "$log" || echo "$kernel"
	done >missing
	[ ! -s missing ] || fail "kernels that no case has run: $(tr '\n' ' ' <missing)"
	echo "$(grep -c ' launches$' "$log") kernels"
}

if ! type g++ >/dev/null 2>&1; then
	echo "skipped: there is no g++"
	exit 77
fi
part "each header of the kernels alone"
gcc $kernel_flags -fsyntax-only -Werror -Wall -Wextra -Wno-unused-function -D 'CUDA_FUNCTION=static inline' \
	-D CUDA_SHARED= -D 'CUDA_BARRIER()=' -D 'sum_of(v)=(v)' -D 'most_of(v)=(v)' -D 'warp_sum(v)=(v)' \
	-D 'warp_most(v)=(v)' -x c "$SRCDIR"/src/device/cuda/kernels/*.h || fail "a header needs another one before it"
try_kernels address gcc g++ few -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
if in_tier full; then
	try_kernels thread gcc g++ races -O1 -fsanitize=thread
fi
if in_tier long; then
	try_kernels fast gcc g++ all -O3
	if type clang++ >/dev/null 2>&1; then
		try_kernels clang clang clang++ few -O2 -fsanitize=undefined -fno-sanitize-recover=undefined
	fi
fi
finish
