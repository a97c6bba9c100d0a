/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 */
/* mu_comm_same, which paranoid builds call at every collective: silent when ranks agree, an error
 * on all when not. */
#include <muster/base.h>
#include <muster/comm.h>

#include "../lib/check.h"

int main(int argc, char **argv)
{
	MPI_Comm world;
	long failures;
	int rank = 0, size = 1;

	if (mu_world_open(&argc, &argv, &world) != MU_OK)
		return 1;
	CHECK(mu_comm_rank(world, &rank, &size) == MU_OK);
	CHECK(mu_comm_same(world, -7, "seven", __FILE__, __LINE__) == MU_OK);
	if (size > 1) {
		CHECK(mu_comm_same(world, rank == 1 ? 5 : 4, "batch", __FILE__, __LINE__) ==
		      MU_ERR_ARGUMENT);
		CHECK_HAS(mu_trace_message(),
			  rank == 1 ? "batch is 5 here, and from 4 to 5" : "batch is 4 here");
		mu_trace_clear();
	}
	failures = check_failures();
	CHECK(mu_allreduce_long(&failures, 1, MPI_SUM, world) == MU_OK);
	return mu_world_close(&world, failures ? 1 : 0);
}
