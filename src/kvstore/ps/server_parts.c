/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that a server end holds: their optimiser, the workers that push them, their memory and
 * the requests of their messages. See wire.h.
 */
#include "dist.h"

static enum mu_status copy_parts(struct mu_kv_server *s, struct mu_piece **pieces)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_plan *plan = &s->kv->plan;
	size_t n = 0;

	for (size_t i = 0; i < plan->n_parts; i++)
		n += plan->parts[i].server == s->index;
	MU_TRY(MU_ALLOC(s->parts, n + 1, "parts of a server"));
	MU_TRY(MU_ALLOC(*pieces, n + 1, "pieces of the optimizer"));
	for (size_t i = 0; i < plan->n_parts; i++) {
		const struct mu_kv_part *part = &plan->parts[i];

		if (part->server != s->index)
			continue;
		s->parts[s->n_parts] = *part;
		(*pieces)[s->n_parts] = (struct mu_piece){part->at, part->n, part->local};
		s->n += part->n;
		s->n_parts++;
	}
out:
	return st;
}

static enum mu_status make_memory(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;
	size_t n_all = s->n_workers * s->n_parts, n = mu_kv_server_requests(s);

	if (!s->flat)
		MU_TRY(MU_ALLOC(s->weights, s->n + 1, "weights of a server"));
	MU_TRY(MU_ALLOC(s->inbox, s->n_inboxes * s->n_inbox + 1, "gradients on a server"));
	if (s->policy->needs_outbox)
		MU_TRY(MU_ALLOC(s->outbox, s->n_inboxes * s->n + 1, "answers of a server"));
	MU_TRY(mu_kv_sum_init(&s->sum, s->kv));
	MU_TRY(MU_ALLOC(s->completed, n + 1, "completed requests"));
	MU_TRY(MU_ALLOC(s->arrived, n_all + 1, "parts that are here"));
	MU_TRY(MU_ALLOC(s->withheld, n_all + 1, "parts that wait for other workers"));
	MU_TRY(MU_ALLOC(s->n_arrived, s->n_parts + 1, "workers of every part"));
	MU_TRY(MU_ALLOC(s->updates, s->n_parts + 1, "updates of every part"));
	MU_TRY(mu_requests_new(&s->orders, n));
	MU_TRY(mu_requests_new(&s->answers, n));
	s->pushes = s->orders + s->n_remote;
	s->pulls = s->answers + s->n_remote;
out:
	return st;
}

/* The tag comes from part p's number in the plan; p counts this server's parts only. */
static enum mu_status make_part_requests(struct mu_kv_server *s, size_t p, int tag)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_coded_server *c = &s->coded;
	int n = mu_count(s->parts[p].n);

	for (size_t f = 0; f < s->n_inboxes; f++) {
		size_t w = mu_kv_source(s, p, f), i = mu_kv_request(s, p, w);
		int rank = s->kv->topology->worker_ranks[w];
		float *out = s->outbox ? mu_kv_outbox(s, p, w) : mu_kv_held(s, p);

		if (c->pushes.data)
			MU_MPI(MPI_Recv_init(mu_kv_codes_part(&c->pushes, p, f),
					     mu_kv_codes_count(&c->pushes, p), MPI_BYTE, rank, tag,
					     s->kv->comm, &s->pushes[i]));
		else
			MU_MPI(MPI_Recv_init(mu_kv_inbox(s, p, w), n, MPI_FLOAT, rank, tag,
					     s->kv->comm, &s->pushes[i]));
		if (c->pulls.data)
			MU_MPI(MPI_Send_init(mu_kv_codes_part(&c->pulls, p, s->outbox ? f : 0),
					     mu_kv_codes_count(&c->pulls, p), MPI_BYTE, rank, tag,
					     s->kv->comm, &s->pulls[i]));
		else
			MU_MPI(MPI_Send_init(out, n, MPI_FLOAT, rank, tag, s->kv->comm,
					     &s->pulls[i]));
	}
out:
	return st;
}

static enum mu_status make_requests(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_plan *plan = &s->kv->plan;
	size_t p = 0;

	for (size_t f = 0; f < s->n_remote; f++) {
		struct mu_kv_peer *peer = &s->peers[s->remote[f]];
		int rank = s->kv->topology->worker_ranks[s->remote[f]];

		MU_MPI(MPI_Recv_init(&peer->order, sizeof peer->order, MPI_BYTE, rank,
				     WIRE_TAG_ORDER, s->kv->comm, &s->orders[f]));
		MU_MPI(MPI_Send_init(&peer->answer, sizeof peer->answer, MPI_BYTE, rank,
				     WIRE_TAG_ANSWER, s->kv->comm, &s->answers[f]));
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

	MU_TRY(MU_ALLOC(s->sources, s->n_workers, "sources of gradients"));
	for (size_t f = 0; f < s->n_remote; f++) {
		const struct mu_kv_group g = mu_kv_group_of(s->kv, s->remote[f], s->index);
		const size_t first = g.workers[0];

		if (first == s->remote[f]) {
			s->peers[first].inbox = s->n_inboxes;
			s->sources[s->n_inboxes++] = g;
		}
		s->peers[s->remote[f]].inbox = s->peers[first].inbox;
	}
	s->n_sources = s->n_inboxes;
	for (size_t w = 0; w < s->n_workers; w++)
		if (!mu_kv_is_remote(s, w))
			s->sources[s->n_sources++] = mu_kv_group_of(s->kv, w, s->index);
out:
	return st;
}

/* Which workers share memory with this server end, and which are remote. */
static enum mu_status find_workers(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(s->peers, s->n_workers, "workers of a server"));
	MU_TRY(MU_ALLOC(s->remote, s->n_workers, "workers of other nodes"));
	for (size_t w = 0; w < s->n_workers; w++) {
		struct mu_kv_peer *peer = &s->peers[w];

		mu_kv_shm_find(s->kv, mu_count(w), s->index, &peer->shm);
		if (w == s->self) {
			peer->shm.gradients = s->kv->gradients;
			peer->shm.results = s->kv->results;
		}
		if (!mu_kv_is_remote(s, w))
			continue;
		peer->slot = s->n_remote;
		s->remote[s->n_remote++] = w;
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
		MU_TRY(mu_optim_new(&s->optim, &optim, kv->slices, kv->n_slices, pieces,
				    s->n_parts));
		MU_TRY(mu_kv_norms_init(&s->norms, s->optim, kv->topology->peers, kv->n_servers));
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
	mu_requests_free(s->orders, mu_kv_server_requests(s));
	mu_requests_free(s->answers, mu_kv_server_requests(s));
	mu_kv_norms_release(&s->norms);
	mu_optim_free(s->optim);
	mu_kv_coded_server_close(&s->coded);
	mu_kv_server_shards_close(&s->shards);
	mu_free(s->weights);
	mu_free(s->inbox);
	mu_free(s->outbox);
	mu_free(s->remote);
	mu_free(s->sources);
	mu_kv_sum_release(&s->sum);
	mu_free(s->parts);
	mu_free(s->peers);
	mu_free(s->completed);
	mu_free(s->arrived);
	mu_free(s->withheld);
	mu_free(s->n_arrived);
	mu_free(s->updates);
}
