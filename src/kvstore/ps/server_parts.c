/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that a server end holds: their optimiser, the workers that push them, their memory and
 * the requests of their messages. See wire.h.
 */
#include "dist.h"

static enum mu_status copy_parts(struct mu_kv_server *s, struct mu_piece **pieces)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_plan *plan = &s->kv->model.plan;
	size_t n = 0;

	for (size_t i = 0; i < plan->n_parts; i++)
		n += plan->parts[i].server == s->index;
	MU_TRY(MU_ALLOC(s->held.parts, n + 1, "parts of a server"));
	MU_TRY(MU_ALLOC(*pieces, n + 1, "pieces of the optimizer"));
	for (size_t i = 0; i < plan->n_parts; i++) {
		const struct mu_kv_part *part = &plan->parts[i];

		if (part->server != s->index)
			continue;
		s->held.parts[s->held.n_parts] = *part;
		(*pieces)[s->held.n_parts] = (struct mu_piece){part->at, part->n, part->local};
		s->held.n += part->n;
		s->held.n_parts++;
	}
out:
	return st;
}

static enum mu_status make_memory(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;
	size_t n_all = s->from.n_workers * s->held.n_parts, n = mu_kv_server_requests(s);

	if (!s->held.flat)
		MU_TRY(MU_ALLOC(s->held.weights, s->held.n + 1, "weights of a server"));
	MU_TRY(MU_ALLOC(s->arrivals.inbox, s->from.n_inboxes * s->arrivals.n_inbox + 1,
			"gradients on a server"));
	if (s->policy->needs_outbox)
		MU_TRY(MU_ALLOC(s->arrivals.outbox, s->from.n_inboxes * s->held.n + 1,
				"answers of a server"));
	MU_TRY(mu_kv_sum_init(&s->sum, s->kv));
	MU_TRY(MU_ALLOC(s->requests.completed, n + 1, "completed requests"));
	MU_TRY(MU_ALLOC(s->arrivals.arrived, n_all + 1, "parts that are here"));
	MU_TRY(MU_ALLOC(s->arrivals.withheld, n_all + 1, "parts that wait for other workers"));
	MU_TRY(MU_ALLOC(s->arrivals.n_arrived, s->held.n_parts + 1, "workers of every part"));
	MU_TRY(MU_ALLOC(s->held.updates, s->held.n_parts + 1, "updates of every part"));
	MU_TRY(mu_requests_new(&s->requests.orders, n));
	MU_TRY(mu_requests_new(&s->requests.answers, n));
	s->requests.pushes = s->requests.orders + s->from.n_remote;
	s->requests.pulls = s->requests.answers + s->from.n_remote;
out:
	return st;
}

/* The tag comes from part p's number in the plan; p counts this server's parts only. */
static enum mu_status make_part_requests(struct mu_kv_server *s, size_t p, int tag)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_coded_server *c = &s->coded;
	int n = mu_count(s->held.parts[p].n);

	for (size_t f = 0; f < s->from.n_inboxes; f++) {
		size_t w = mu_kv_source(s, p, f), i = mu_kv_request(s, p, w);
		int rank = mu_kv_worker_rank(s->kv, w);
		float *out = s->arrivals.outbox ? mu_kv_outbox(s, p, w) : mu_kv_held(s, p);

		if (c->pushes.data)
			MU_MPI(MPI_Recv_init(mu_kv_codes_part(&c->pushes, p, f),
					     mu_kv_codes_count(&c->pushes, p), MPI_BYTE, rank, tag,
					     s->kv->comm, &s->requests.pushes[i]));
		else
			MU_MPI(MPI_Recv_init(mu_kv_inbox(s, p, w), n, MPI_FLOAT, rank, tag,
					     s->kv->comm, &s->requests.pushes[i]));
		if (c->pulls.data)
			MU_MPI(MPI_Send_init(
				mu_kv_codes_part(&c->pulls, p, s->arrivals.outbox ? f : 0),
				mu_kv_codes_count(&c->pulls, p), MPI_BYTE, rank, tag, s->kv->comm,
				&s->requests.pulls[i]));
		else
			MU_MPI(MPI_Send_init(out, n, MPI_FLOAT, rank, tag, s->kv->comm,
					     &s->requests.pulls[i]));
	}
out:
	return st;
}

static enum mu_status make_requests(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_plan *plan = &s->kv->model.plan;
	size_t p = 0;

	for (size_t f = 0; f < s->from.n_remote; f++) {
		struct mu_kv_peer *peer = &s->from.peers[s->from.remote[f]];
		int rank = mu_kv_worker_rank(s->kv, s->from.remote[f]);

		MU_MPI(MPI_Recv_init(&peer->order, sizeof peer->order, MPI_BYTE, rank,
				     WIRE_TAG_ORDER, s->kv->comm, &s->requests.orders[f]));
		MU_MPI(MPI_Send_init(&peer->answer, sizeof peer->answer, MPI_BYTE, rank,
				     WIRE_TAG_ANSWER, s->kv->comm, &s->requests.answers[f]));
	}
	for (size_t i = 0; i < plan->n_parts; i++) {
		if (plan->parts[i].server == s->index)
			MU_TRY(make_part_requests(s, p++, mu_kv_part_tag(i)));
	}
out:
	return st;
}

/* Who pushes parts: remote workers first. */
static enum mu_status find_sources(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(s->from.groups, s->from.n_workers, "sources of gradients"));
	for (size_t f = 0; f < s->from.n_remote; f++) {
		const struct mu_kv_group g = mu_kv_group_of(s->kv, s->from.remote[f], s->index);
		const size_t first = g.workers[0];

		if (first == s->from.remote[f]) {
			s->from.peers[first].inbox = s->from.n_inboxes;
			s->from.groups[s->from.n_inboxes++] = g;
		}
		s->from.peers[s->from.remote[f]].inbox = s->from.peers[first].inbox;
	}
	s->from.n = s->from.n_inboxes;
	for (size_t w = 0; w < s->from.n_workers; w++)
		if (!mu_kv_is_remote(s, w))
			s->from.groups[s->from.n++] = mu_kv_group_of(s->kv, w, s->index);
out:
	return st;
}

/* Which workers share memory with this server end, and which are remote. */
static enum mu_status find_workers(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(s->from.peers, s->from.n_workers, "workers of a server"));
	MU_TRY(MU_ALLOC(s->from.remote, s->from.n_workers, "workers of other nodes"));
	for (size_t w = 0; w < s->from.n_workers; w++) {
		struct mu_kv_peer *peer = &s->from.peers[w];

		mu_kv_shm_find(s->kv, mu_count(w), s->index, &peer->shm);
		if (w == s->self) {
			peer->shm.gradients = s->kv->arrays.gradients;
			peer->shm.results = s->kv->arrays.results;
		}
		if (!mu_kv_is_remote(s, w))
			continue;
		peer->slot = s->from.n_remote;
		s->from.remote[s->from.n_remote++] = w;
	}
	MU_TRY(find_sources(s));
out:
	return st;
}

enum mu_status mu_kv_server_parts_open(struct mu_kv_server *s, const struct mu_kv_config *config)
{
	enum mu_status st = MU_OK;
	const struct mu_kv *kv = s->kv;
	struct mu_piece *pieces = NULL;
	struct mu_optim_config optim = config->optim;

	optim.prior = s->policy->needs_outbox; /* the outbox holds what each worker has pulled */
	MU_TRY(copy_parts(s, &pieces));
	MU_TRY(find_workers(s));
	if (!kv->kind.workers_update) {
		MU_TRY(mu_optim_new(&s->held.optim, &optim, kv->model.slices, kv->model.n_slices,
				    pieces, s->held.n_parts));
		MU_TRY(mu_kv_norms_init(&s->held.norms, s->held.optim, kv->members));
	}
	MU_TRY(mu_kv_server_shards_open(s));
	MU_TRY(make_memory(s));
	MU_TRY(mu_kv_coded_server_open(s));
	MU_TRY(make_requests(s));
out:
	mu_free(pieces);
	return st;
}

void mu_kv_server_parts_close(struct mu_kv_server *s)
{
	mu_requests_free(s->requests.orders, mu_kv_server_requests(s));
	mu_requests_free(s->requests.answers, mu_kv_server_requests(s));
	mu_kv_norms_release(&s->held.norms);
	mu_optim_free(s->held.optim);
	mu_kv_coded_server_close(&s->coded);
	mu_kv_server_shards_close(&s->shards);
	mu_free(s->held.weights);
	mu_free(s->arrivals.inbox);
	mu_free(s->arrivals.outbox);
	mu_free(s->from.remote);
	mu_free(s->from.groups);
	mu_kv_sum_release(&s->sum);
	mu_free(s->held.parts);
	mu_free(s->from.peers);
	mu_free(s->requests.completed);
	mu_free(s->arrivals.arrived);
	mu_free(s->arrivals.withheld);
	mu_free(s->arrivals.n_arrived);
	mu_free(s->held.updates);
}
