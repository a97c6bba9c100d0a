/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do all workers have the same weights? Each hashes its own; workers that differ from the majority
 * are wrong, by their memory, processor or network.
 */
#include <string.h>

#include "kvstore/kv.h"

enum { LANES = 4, NAMED = 8, NAME = 160 };

/* Depends on every bit and its place. n is a multiple of the padding of keys. */
static uint64_t hash_weights(const float *w, size_t n)
{
	uint64_t lanes[LANES] = {1, 2, 3, 4}, words[LANES], h = 0;

	for (size_t i = 0; i + 2 * LANES <= n; i += 2 * LANES) {
		memcpy(words, w + i, sizeof words);
		for (int l = 0; l < LANES; l++) {
			lanes[l] = (lanes[l] ^ words[l]) * 0x9e3779b97f4a7c15u;
			lanes[l] ^= lanes[l] >> 32;
		}
	}
	for (int l = 0; l < LANES; l++)
		h = (h ^ lanes[l]) * 0x9e3779b97f4a7c15u;
	return h;
}

/* *most: the most frequent hash. Returns the number of workers that have it. */
static int find_majority(const uint64_t *all, int n, uint64_t *most)
{
	int best = 0;

	for (int i = 0; i < n; i++) {
		int same = 0;

		for (int k = 0; k < n; k++)
			same += all[k] == all[i];
		if (same > best) {
			best = same;
			*most = all[i];
		}
	}
	return best;
}

/* Names the workers whose hash differs from the majority's; all of them, if there is no
 * majority. */
static void list_differing(const struct mu_kv *kv, const uint64_t *all, int n_most, uint64_t most,
			   char *text, size_t nbytes)
{
	const bool known = 2 * n_most > kv->ends.n_workers;
	int n = 0;
	size_t used = 0;

	for (int w = 0; w < kv->ends.n_workers; w++) {
		char name[NAME];

		if (known && all[w] == most)
			continue;
		if (n++ < NAMED && used < nbytes)
			used += (size_t)snprintf(text + used, nbytes - used, "%s%s",
						 n > 1 ? ", " : "",
						 mu_worker_name(kv->members, w, name, sizeof name));
	}
	if (n > NAMED && used < nbytes)
		used += (size_t)snprintf(text + used, nbytes - used, " and %d more", n - NAMED);
	if (known && used < nbytes)
		snprintf(text + used, nbytes - used, " (%d others agree)", n_most);
}

static enum mu_status report_differing(const struct mu_kv *kv, const uint64_t *all,
				       const char *when)
{
	enum mu_status st = MU_OK;
	char names[NAMED * NAME];
	uint64_t most = 0;
	int n_most = find_majority(all, kv->ends.n_workers, &most);

	if (n_most == kv->ends.n_workers || kv->members->index != 0)
		goto out;
	list_differing(kv, all, n_most, most, names, sizeof names);
	MU_FAIL(MU_ERR_NUMERIC,
		"%s: the workers no longer hold the same weights: faulty memory or "
		"network; the weights of %s differ",
		when, names);
out:
	return st;
}

enum mu_status mu_kv_verify(struct mu_kv *kv, const char *when)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = kv->members;
	uint64_t mine, *all = NULL;
	int n;

	MU_TRY(mu_kv_check_worker(kv, "mu_kv_verify"));
	MU_TRY(mu_kv_step_end(kv));
	if (kv->kind.on_gpus) /* copies the weights alone */
		MU_TRY(kv->ops->fetch(kv));
	mine = hash_weights(mu_kv_weights(kv), mu_kv_n(kv));
	MU_TRY(mu_peers_gather(m, &mine, sizeof mine, (void **)&all, &n));
	MU_TRY(mu_peers_agree(m, report_differing(kv, all, when)));
out:
	mu_free(all);
	return st;
}
