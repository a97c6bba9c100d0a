/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store alone: every worker pushes its number under key 0, and pulls the sum over all workers.
 *
 *	mpicc keys.c -o keys $(pkg-config --cflags --libs muster-keys)
 *	mpirun -np 4 ./keys           three workers and one server: prints "sum 6" three times
 */
#include <muster/keys.h>

static enum mu_status run(MPI_Comm world)
{
	enum mu_status st = MU_OK;
	struct mu_keys *keys = NULL;
	float value = 0;
	struct mu_array array = {&value, 1, MU_FLOAT32};
	struct mu_kv_item item = mu_kv_item_of(0, &array);

	MU_TRY(mu_keys_open(&keys, world, "dist_sync", MU_SERVERS_DEFAULT));
	if (mu_keys_is_server(keys)) {
		MU_TRY(mu_keys_serve(keys));
		goto out;
	}
	MU_TRY(mu_keys_init(keys, 1, &item));
	value = (float)(mu_keys_rank(keys) + 1);
	MU_TRY(mu_keys_push(keys, 1, &item, 0));
	MU_TRY(mu_keys_pull(keys, 1, &item, 0));
	printf("sum %g\n", (double)value);
	MU_TRY(mu_keys_finish(keys));
out:
	mu_keys_free(keys);
	return st;
}

int main(int argc, char **argv)
{
	MPI_Comm world = MPI_COMM_NULL;
	enum mu_status st;

	if (argc > 1) { /* --help */
		printf("usage: mpirun -np N keys\n");
		return argv[1][0] == '-' ? 0 : 2;
	}
	st = mu_world_open(&argc, &argv, &world);

	if (st == MU_OK)
		st = run(world);
	if (st != MU_OK)
		mu_world_fail(st, "keys", 0, "");
	return mu_world_close(&world, 0);
}
