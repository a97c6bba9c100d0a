/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the links between ranks allow at best.
 */
#include "kv.h"

double mu_kv_bound(const struct mu_kv *kv, double bytes_per_second)
{
	double n = kv->topology->num_workers, k = kv->n_servers;
	double models; /* that the busiest link moves each way */

	if (kv->ops->one_worker)
		return 0;
	if (kv->ops->hosted)
		models = 2 * (n - 1) / n;
	else
		models = n > k ? n / k : 1;
	return models * (double)(kv->plan.n * sizeof(float)) / bytes_per_second;
}

double mu_kv_bound_split(const struct mu_kv *kv, double bytes_per_second)
{
	double n = kv->topology->num_workers, k = kv->topology->num_servers;

	if (kv->ops->one_worker || n < 2)
		return 0;
	return 2 * n * (n - 1) * (double)(kv->plan.n * sizeof(float)) /
	       ((n * n + k * n - 2 * k) * bytes_per_second);
}
