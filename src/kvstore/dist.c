/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dist_sync and dist_async: the tables, and what both ends share.
 */
#include "dist.h"

enum mu_status mu_kv_requests_new(MPI_Request **out, size_t n)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_alloc((void **)out, (n + 1) * sizeof **out, "requests"));
	for (size_t i = 0; i < n; i++)
		(*out)[i] = MPI_REQUEST_NULL;
out:
	return st;
}

void mu_kv_requests_free(MPI_Request *requests, size_t n)
{
	for (size_t i = 0; requests && i < n; i++) {
		if (requests[i] != MPI_REQUEST_NULL)
			MPI_Request_free(&requests[i]);
	}
	mu_free(requests);
}

int mu_kv_part_tag(size_t part)
{
	return WIRE_TAG_PART + mu_count(part);
}

static enum mu_status check_tags(const struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	int *highest = NULL;
	int found = 0;

	MU_MPI(MPI_Comm_get_attr(kv->comm, MPI_TAG_UB, &highest, &found));
	if (found && kv->plan.n_parts > (size_t)*highest - WIRE_TAG_PART)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"the model makes %zu messages a step, and this MPI tells %d apart: larger "
			"buckets or messages are needed",
			kv->plan.n_parts, *highest - WIRE_TAG_PART);
out:
	return st;
}

static enum mu_status open_end(struct mu_kv *kv, const struct mu_kv_config *config,
			       const struct mu_kv_policy *policy)
{
	enum mu_status st = MU_OK;

	MU_TRY(check_tags(kv));
	if (kv->topology->role == MU_ROLE_WORKER)
		MU_TRY(mu_kv_worker_open(kv));
	else
		MU_TRY(mu_kv_server_open(kv, config, policy));
out:
	return st;
}

static enum mu_status open_sync(struct mu_kv *kv, const struct mu_kv_config *config)
{
	return open_end(kv, config, &mu_kv_policy_sync);
}

static enum mu_status open_async(struct mu_kv *kv, const struct mu_kv_config *config)
{
	return open_end(kv, config, &mu_kv_policy_async);
}

static void close_end(struct mu_kv *kv)
{
	if (kv->topology->role == MU_ROLE_WORKER)
		mu_kv_worker_close(kv);
	else
		mu_kv_server_close(kv);
}

const struct mu_kv_ops mu_kv_dist_sync = {
	.name = "dist_sync",
	.has_servers = true,
	.push_clock = MU_CLOCK_PUSH,
	.open = open_sync,
	.close = close_end,
	.init = mu_kv_worker_init,
	.step_begin = mu_kv_worker_step_begin,
	.push = mu_kv_worker_push,
	.poll = mu_kv_worker_poll,
	.pull = mu_kv_worker_pull,
	.step_end = mu_kv_worker_step_end,
	.finish = mu_kv_worker_finish,
	.serve = mu_kv_server_serve,
};

const struct mu_kv_ops mu_kv_dist_async = {
	.name = "dist_async",
	.async = true,
	.has_servers = true,
	.push_clock = MU_CLOCK_PUSH,
	.open = open_async,
	.close = close_end,
	.init = mu_kv_worker_init,
	.step_begin = mu_kv_worker_step_begin,
	.push = mu_kv_worker_push,
	.poll = mu_kv_worker_poll,
	.pull = mu_kv_worker_pull,
	.step_end = mu_kv_worker_step_end,
	.fetch = mu_kv_worker_fetch,
	.finish = mu_kv_worker_finish,
	.serve = mu_kv_server_serve,
};
