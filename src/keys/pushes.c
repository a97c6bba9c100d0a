/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's buffers of calls, and pushes that are on their way while the worker goes on. Messages
 * of a pair of ranks keep their order, so a later call of the worker finds them on the owner.
 */

#include "comm/requests.h"
#include "link.h"

enum mu_status mu_keys_links_new(struct mu_keys *keys, struct mu_keys_links **out)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = NULL;
	const size_t n = (size_t)keys->n_owners;

	MU_TRY(MU_ALLOC(w, 1, "connections to owners"));
	*out = w;
	MU_TRY(MU_ALLOC(w->links, n, "connections to owners"));
	MU_TRY(MU_ALLOC(w->completed, n, "answers"));
	MU_TRY(mu_requests_new(&w->heads, n));
	for (size_t o = 0; o < n; o++) {
		w->links[o].rank = keys->owner_ranks[o];
		MU_TRY(MU_ALLOC(w->links[o].head, KEYS_HEAD_BYTES, "head of a call"));
		MU_TRY(MU_ALLOC(w->links[o].answer, KEYS_HEAD_BYTES, "head of an answer"));
	}
out:
	return st;
}

void mu_keys_links_free(struct mu_keys *keys, struct mu_keys_links *w)
{
	for (int o = 0; w->links && o < keys->n_owners; o++) {
		mu_free(w->links[o].head);
		mu_free(w->links[o].answer);
	}
	mu_requests_free(w->heads, (size_t)keys->n_owners);
	mu_free(w->links);
	mu_free(w->completed);
	mu_free(w->sends);
	mu_free(w->receives);
	mu_free(w->notes);
	mu_free(w);
}

void mu_keys_links_clear(struct mu_keys *keys, struct mu_keys_links *w)
{
	for (int o = 0; o < keys->n_owners; o++) {
		mu_pool_give(&keys->pool, w->links[o].body);
		mu_pool_give(&keys->pool, w->links[o].answer_body);
		w->links[o].body = w->links[o].answer_body = NULL;
	}
}

/* Send with buffers of the call's own. */
static enum mu_status send(struct mu_keys *keys, size_t n, const struct mu_transfer *x,
			   struct mu_keys_links **sent)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *end = keys->end, *w = end->next;
	int n_answers;

	if (w)
		end->next = w->next;
	else
		st = mu_keys_links_new(keys, &w);
	if (w) {
		w->next = *sent;
		*sent = w;
	}
	MU_TRY(st);
	keys->end = w;
	st = mu_keys_links_send(keys, n, x, &n_answers);
	keys->end = end;
	MU_TRY(st);
out:
	return st;
}

enum mu_status mu_keys_pushes_begin(struct mu_keys *keys, size_t n, const struct mu_transfer *x,
				    struct mu_keys_links **sent)
{
	enum mu_status st = MU_OK;
	const struct mu_keys_links *end = keys->end;

	*sent = NULL;
	if (end->status != MU_OK)
		MU_FAIL(end->status, "%s", end->failure);
	for (size_t from = 0; from < n; from += KEYS_MAX_ITEMS)
		MU_TRY(send(keys, n - from < KEYS_MAX_ITEMS ? n - from : KEYS_MAX_ITEMS, x + from,
			    sent));
out:
	for (const struct mu_keys_links *w = *sent; st != MU_OK && w; w = w->next)
		mu_keys_link_failed(keys, w, st);
	return st;
}

enum mu_status mu_keys_pushes_test(struct mu_keys *keys, struct mu_keys_links *sent, bool wait,
				   bool *done)
{
	enum mu_status st = MU_OK;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */

	*done = true;
	for (; sent; sent = sent->next) {
		int all = 1;

		if (wait)
			MU_TRY(mu_keys_link_wait(keys, sent->n_sends, sent->sends,
						 "the owners to take a push"));
		else
			MU_MPI(MPI_Testall(mu_count(sent->n_sends), sent->sends, &all, ignore));
		if (!all)
			MU_TRY(mu_keys_link_check_left(keys));
		*done = *done && all;
	}
out:
	for (; st != MU_OK && sent; sent = sent->next)
		mu_keys_link_failed(keys, sent, st);
	return st;
}

void mu_keys_pushes_end(struct mu_keys *keys, struct mu_keys_links *sent)
{
	struct mu_keys_links *end = keys->end;

	while (sent) {
		struct mu_keys_links *next = sent->next;

		mu_keys_links_clear(keys, sent);
		sent->n_sends = 0;
		sent->next = end->next;
		end->next = sent;
		sent = next;
	}
}
