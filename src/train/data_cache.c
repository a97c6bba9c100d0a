/* SPDX-License-Identifier: Apache-2.0 */
/* --data-cache node. */
#include "train.h"

static enum mu_status cache_one(const struct train_run *run, struct mu_input *in, const char *what)
{
	enum mu_status st = MU_OK;
	const struct mu_topology *t = &run->topology;
	size_t bytes;

	MU_TRY(mu_input_cache(in, t, &bytes));
	if (bytes == 0 && t->node_rank == 0)
		mu_log_warn("/dev/shm of %s has no room for the %s: their files are read in every "
			    "epoch",
			    t->host, what);
	else if (t->rank == 0)
		mu_log_info("data cache: %.3f MB of %s in memory that the ranks of a node share",
			    (double)bytes * 1e-6, what);
out:
	return st;
}

enum mu_status mu_train_cache_data(struct train_run *run)
{
	enum mu_status st = MU_OK;
	const bool worker = run->topology.role == MU_ROLE_WORKER;
	long validate = run->has_validation;

	MU_TRY(mu_allreduce_long(&validate, 1, MPI_MAX, run->topology.world));
	/* From here on a node meets itself alone: another may fail, or take longer. */
	MU_TRY(cache_one(run, worker ? &run->train : NULL, "training images"));
	if (validate)
		MU_TRY(cache_one(run, worker ? &run->validate : NULL, "validation images"));
out:
	return st;
}
