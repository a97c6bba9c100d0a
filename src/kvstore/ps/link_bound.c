/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the links between ranks allow at best.
 */
#include "dist.h"

/* The model in the direction that has more to carry. */
static double model_bytes(const struct mu_kv *kv)
{
	const size_t there = mu_kv_message_bytes(kv, &kv->push_coder);
	const size_t back = mu_kv_message_bytes(kv, &kv->pull_coder);

	return (double)(there > back ? there : back);
}

double mu_kv_bound(const struct mu_kv *kv, double bytes_per_second)
{
	double n = kv->topology->num_workers, k = kv->n_servers;
	double models; /* that the busiest link moves each way */

	if (kv->ops->one_worker || kv->ops->on_gpus)
		return 0;
	if (kv->ops->hosted)
		models = 2 * (n - 1) / n;
	else
		models = n > k ? n / k : 1;
	return models * model_bytes(kv) / bytes_per_second;
}

double mu_kv_bound_split(const struct mu_kv *kv, double bytes_per_second)
{
	double n = kv->topology->num_workers, k = kv->topology->num_servers;

	if (kv->ops->one_worker || kv->ops->on_gpus || n < 2)
		return 0;
	return 2 * n * (n - 1) * model_bytes(kv) / ((n * n + k * n - 2 * k) * bytes_per_second);
}
