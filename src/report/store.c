/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the start log and of the end log about the store: how workers keep step, compression. */
#include "report/scalars.h"

#include <string.h>

static void report_compression(const struct conf *v, const struct mu_kv_layout *layout)
{
	const struct mu_compression *c = &v->compression;
	char setting[48] = "";

	if (strstr(c->type, "bit"))
		snprintf(setting, sizeof setting, " (threshold %g)", c->threshold);
	else if (strcmp(c->type, "topk") == 0)
		snprintf(setting, sizeof setting, " (ratio %g)", c->ratio);
	mu_log_detail("compression %s%s: gradients %.3f MB, what comes back %.3f MB, of %.3f MB "
		      "each",
		      c->type, setting, (double)layout->bytes_pushed / 1e6,
		      (double)layout->bytes_pulled / 1e6, (double)layout->bytes / 1e6);
}

/* Where nobody named a store. */
static void report_carved(const struct mu_engine *e)
{
	const struct mu_members *m = e->members;
	const int servers = mu_members_usual_servers(m);
	char text[64];

	if (!e->conf->default_store || e->conf->facts.team)
		return;
	if (e->store->has_servers)
		mu_log_info("%d ranks: %s; --kv-store dist_sharded lets all %d train", m->size,
			    mu_members_text(m, text, sizeof text), m->size);
	else if (m->topology.num_nodes > 1)
		mu_log_info("%d ranks on %d nodes: all train (dist_sharded); --kv-store dist_sync "
			    "makes %d server%s of them",
			    m->size, m->topology.num_nodes, servers, MU_S(servers));
}

void mu_report_store(const struct mu_engine *e)
{
	const struct conf *v = e->conf;
	struct mu_kv_layout layout;

	report_carved(e);
	mu_kv_layout(e->kv, &layout);
	if (e->store->on_gpus && e->store->distributed)
		mu_log_detail(
			"sums %sare NCCL's, in an order of its own: their last bits depend on "
			"the GPUs, NCCL and the size of buckets",
			mu_engine_gpus_by_nodes(e->conf, e->store) ? "of a node's GPUs " : "");
	if (!e->store->synchronous)
		mu_log_detail(
			"weights as the workers have pulled them: %.3f MB on the servers (none "
			"for a worker that shares memory with its server)",
			(double)layout.bytes_copies / 1e6);
	if (v->max_staleness >= 0)
		mu_log_detail(
			"staleness is bounded: no worker starts a step before all have pushed "
			"the step %ld before it",
			v->max_staleness + 1);
	if (mu_compress_is_on(&v->compression))
		report_compression(v, &layout);
	if (v->sync_period <= 1)
		return;
	mu_log_detail(
		"local SGD: every worker updates by its own gradients; after every %ld updates "
		"and at the end of an epoch the weights are averaged by samples",
		v->sync_period);
	mu_log_detail("local SGD: weights of its own on every worker: %.3f MB",
		      (double)layout.bytes / 1e6);
	if (v->block_momentum > 0 || v->block_lr != 1)
		mu_log_detail("averages: block momentum %g%s, block learning rate %g",
			      v->block_momentum, v->block_nesterov ? " (Nesterov)" : "",
			      v->block_lr);
}

/* "0: 12, 1: 30, 11 or more: 2", without zero counts. */
static void list_counts(const struct mu_kv_staleness *s, char *text, size_t nbytes)
{
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < MU_KV_STALENESS_BINS && n < nbytes; i++)
		if (s->counts[i] > 0)
			n += (size_t)snprintf(text + n, nbytes - n, "%s%zu%s: %.0f", n ? ", " : "",
					      i, i + 1 < MU_KV_STALENESS_BINS ? "" : " or more",
					      s->counts[i]);
}

void mu_report_store_end(const struct mu_engine *e)
{
	struct mu_kv_staleness s;
	char counts[512];

	if (mu_compress_is_on(&e->conf->compression))
		mu_log_detail("worker 0's seconds: compression %.3f",
			      mu_clock_seconds(MU_CLOCK_COMPRESS));
	if (e->store->synchronous)
		return;
	mu_kv_staleness(e->kv, &s);
	list_counts(&s, counts, sizeof counts);
	mu_log_detail(
		"staleness: mean %.2f, max %.0f updates by others between a pull and the next "
		"push (%.0f pushes)",
		s.mean, s.max, s.pushes);
	mu_log_detail("pushes by staleness: %s", counts);
	if (e->conf->max_staleness >= 0)
		mu_log_detail("held back by the bound of staleness: %.0f pushes, %.3f s in all",
			      s.held_back, s.held_back_seconds);
}
