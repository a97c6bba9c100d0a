/* SPDX-License-Identifier: Apache-2.0 */
/* --data-cache node. */
#include "data.h"

#include <muster/base.h>

static enum mu_status cache_one(const struct mu_members *m, struct mu_input *in, const char *what)
{
	enum mu_status st = MU_OK;
	size_t bytes;

	MU_TRY(mu_input_cache(in, &m->topology, &bytes));
	if (bytes == 0 && m->topology.node_rank == 0)
		mu_log_warn("/dev/shm of %s has no room for the %s: their files are read in every "
			    "epoch",
			    m->topology.host, what);
	else if (m->rank == 0)
		mu_log_detail("data cache: %.3f MB of %s in memory that the ranks of a node share",
			      (double)bytes * 1e-6, what);
out:
	return st;
}

enum mu_status mu_train_cache_data(const struct mu_members *m, struct mu_input *train,
				   struct mu_input *validate)
{
	enum mu_status st = MU_OK;
	long has_validation = validate != NULL;

	MU_TRY(mu_allreduce_long(&has_validation, 1, MPI_MAX, m->comm));
	/* From here on only the ranks of a node meet: another node may fail, or take longer. */
	MU_TRY(cache_one(m, train, "training images"));
	if (has_validation)
		MU_TRY(cache_one(m, validate, "validation images"));
out:
	return st;
}
