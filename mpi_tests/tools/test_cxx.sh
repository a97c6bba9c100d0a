#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs in C++ can use the library: every public header alone is valid C++17, and a program is linked and runs.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
log=cxx.log

if ! type g++ >/dev/null 2>&1; then
	echo "skipped: there is no g++"
	exit 77
fi
# What mpicc calls, of either MPI.
export MPICH_CC=g++ OMPI_CC=g++

for header in "$SRCDIR"/include/muster/*.h; do
	name=muster/${header##*/}
	echo "#include <$name>" >one.cc
	# shellcheck disable=SC2086 # CC may hold options
	$CC -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I "$SRCDIR/include" one.cc >"$log" 2>&1 ||
		{ fail "$name is not C++" && show_log; }
done

part "the example of the store of keys, as C++ of the strict kind"
# shellcheck disable=SC2086 # words
$CC -x c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I "$SRCDIR/include" \
	"$SRCDIR/jobs/examples/keys.c" >"$log" 2>&1 || { fail "jobs/examples/keys.c is not C++" && show_log; }

part "a program"
if is_sanitized; then
	echo "not linked: programs of users are linked without sanitizers"
	finish
fi
cat >sum.cc <<'END'
#include <muster/keys.h>
#include <muster/train.h>
#include <vector>

int main(int argc, char **argv)
{
	MPI_Comm world = MPI_COMM_NULL;
	mu_members members = {};
	mu_keys_config config = {};
	mu_keys *keys = nullptr;
	std::vector<float> x(10, 3);
	mu_array array = {x.data(), x.size(), MU_FLOAT32};
	mu_kv_item item = {};
	bool good;

	item.n_arrays = 1;
	item.arrays = &array;
	config.type = "dist_sharded";
	config.members = &members;
	good = mu_world_open(&argc, &argv, &world) == MU_OK &&
	       mu_members_init(&members, world, 0, MU_PLACEMENT_SPREAD) == MU_OK &&
	       mu_keys_new(&keys, &config) == MU_OK && mu_keys_init(keys, 1, &item) == MU_OK &&
	       mu_keys_pushpull(keys, 1, &item, 0) == MU_OK && mu_keys_finish(keys) == MU_OK;
	printf("sum %g\n", x[9]);
	mu_keys_free(keys);
	mu_members_release(&members);
	return mu_world_close(&world, good ? 0 : 1);
}
END
libs=$(sed -n 's/^Libs: //p' "$BUILDDIR/muster.pc")
# shellcheck disable=SC2086 # words
if $CC -std=c++17 -I "$SRCDIR/include" sum.cc -o sum -L "$BUILDDIR" ${libs/-L\$\{libdir\}/} >"$log" 2>&1; then
	timeout -k 5 60 $MPIRUN -n 2 ./sum >"$log" 2>&1 || fail "exit status $? of a program in C++"
	expect_count 2 '^sum 6$'
else
	fail "a program in C++ is not linked" && show_log
fi
finish
