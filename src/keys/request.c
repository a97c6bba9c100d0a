/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that do not wait, and waiting for them. How they move on: parts.c.
 */
#include <stdio.h>
#include <string.h>

#include "parts.h"

/* ---- life ---- */

static void free_request(struct mu_keys_request *r)
{
	if (!r)
		return;
	mu_free(r->parts);
	mu_free(r->chosen);
	mu_free(r->arrays);
	mu_free(r->text);
	mu_free(r);
}

/* With copies of the items, which the caller need not keep. */
static enum mu_status new_request(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				  enum mu_use use, struct mu_keys_request **out)
{
	enum mu_status st = MU_OK;
	struct mu_keys_request *r = NULL,
			       **last = n > 0 ? &keys->requests.left : &keys->requests.done;
	size_t n_arrays = 0;

	for (size_t i = 0; i < n; i++)
		n_arrays += items[i].n_arrays;
	MU_TRY(MU_ALLOC(r, 1, "request"));
	*r = (struct mu_keys_request){.keys = keys, .use = use, .n = n, .n_open = n};
	MU_TRY(MU_ALLOC(r->parts, n + 1, "parts of a request"));
	MU_TRY(MU_ALLOC(r->chosen, n + 1, "items of a request"));
	MU_TRY(MU_ALLOC(r->arrays, n_arrays + 1, "arrays of a request"));
	n_arrays = 0;
	for (size_t i = 0; i < n; i++) {
		const struct mu_key *key = mu_key_find(&keys->table, items[i].key, items[i].name);
		struct mu_kv_item *item = &r->parts[i].item;

		r->parts[i].key = (size_t)(key - keys->table.keys);
		*item = items[i];
		item->name = key->name;
		item->arrays = r->arrays + n_arrays;
		if (item->n_arrays > 0)
			memcpy(r->arrays + n_arrays, items[i].arrays,
			       item->n_arrays * sizeof *r->arrays);
		n_arrays += item->n_arrays;
	}
	while (*last)
		last = &(*last)->next;
	*last = r;
	*out = r;
	r = NULL;
out:
	free_request(r);
	return st;
}

/* ---- waiting ---- */

static bool is_push_queued(const struct mu_keys *keys)
{
	for (const struct mu_keys_request *r = keys->requests.left; r; r = r->next)
		for (size_t i = 0; i < r->n; i++)
			if (r->parts[i].stage == MU_PART_QUEUED &&
			    mu_part_has_push(r, &r->parts[i]))
				return true;
	return false;
}

/* A part of a request. */
struct place {
	struct mu_keys_request *request;
	struct mu_request_part *part;
};

/* What r's first open part waits for: the first part that holds its key, or itself. */
static struct place find_holder(const struct mu_keys *keys, struct mu_keys_request *r)
{
	struct mu_request_part *part = r->parts;

	while (part->stage == MU_PART_DONE)
		part++;
	for (struct mu_keys_request *e = keys->requests.left; e != r; e = e->next) {
		for (size_t i = 0; i < e->n; i++) {
			if (e->parts[i].key == part->key && mu_part_holds_key(e, &e->parts[i]))
				return (struct place){e, &e->parts[i]};
		}
	}
	return (struct place){r, part};
}

/*
 * With no push left to send, waiting for one round keeps nobody from closing another. Else ask
 * again and again: a push may have to go out before this round can close.
 */
static enum mu_status complete(struct mu_keys_request *r)
{
	enum mu_status st = MU_OK;
	struct mu_keys *keys = r->keys;
	struct mu_waiter waiter;

	mu_waiter_init(&waiter, keys->members);
	mu_parts_move_pushes(keys);
	while (r->n_open > 0) {
		const struct place holder = find_holder(keys, r);
		const uint64_t before = keys->requests.n_parts_done;

		if (holder.part->stage == MU_PART_SENT) {
			mu_parts_wait_push(holder.request, holder.part);
			mu_parts_move_pushes(keys);
		} else if (!is_push_queued(keys)) {
			mu_parts_pull(holder.request, holder.request == r ? NULL : holder.part);
			mu_parts_move_pushes(keys);
		} else {
			/* An answer is no progress, so it must not look like a wait of its own. */
			mu_waiter_nest(&waiter, true);
			st = mu_parts_move(keys, holder.part);
			mu_waiter_nest(&waiter, false);
			MU_TRY(st);
			if (keys->requests.n_parts_done != before)
				mu_waiter_init(&waiter, keys->members);
			else
				MU_TRY(mu_keys_link_nap(keys, &waiter,
							&keys->table.keys[holder.part->key]));
		}
	}
out:
	return st;
}

/* ---- the calls ---- */

static enum mu_status result(const struct mu_keys_request *r)
{
	enum mu_status st = MU_OK;

	if (r->status != MU_OK)
		MU_FAIL(r->status, "%s", r->text ? r->text : "a request has failed");
out:
	return st;
}

enum mu_status mu_keys_request_test(struct mu_keys_request *request, bool *done)
{
	enum mu_status st = MU_OK;

	if (!request || !done)
		MU_FAIL(MU_ERR_ARGUMENT, "mu_keys_request_test: the %s is NULL",
			request ? "place for the answer" : "request");
	*done = request->n_open == 0;
	if (!*done)
		MU_TRY(mu_parts_move(request->keys, NULL));
	*done = request->n_open == 0;
out:
	return st;
}

enum mu_status mu_keys_request_end(struct mu_keys_request *request)
{
	enum mu_status st = MU_OK;

	if (!request)
		return MU_OK;
	if (request->n_open > 0)
		MU_TRY(complete(request));
	if (request->keys)
		mu_request_unlink(&request->keys->requests.done, request);
	st = result(request);
	free_request(request);
	MU_TRY(st);
out:
	return st;
}

enum mu_status mu_keys_after_requests(struct mu_keys *keys, size_t n,
				      const struct mu_kv_item *items, enum mu_use use)
{
	enum mu_status st = MU_OK;
	struct mu_keys_request *r = NULL;

	MU_TRY(new_request(keys, n, items, use, &r));
	MU_TRY(mu_keys_request_end(r));
out:
	return st;
}

enum mu_status mu_keys_requests_end(struct mu_keys *keys)
{
	enum mu_status st = MU_OK;

	while (keys->requests.left)
		MU_TRY(complete(keys->requests.left));
out:
	return st;
}

/* Waits at most a second for what MPI still sends; else its buffers are never freed. An error on
 * its way ends the job: no wait. */
static void abandon_part(struct mu_keys *keys, struct mu_request_part *part)
{
	const bool failing = *mu_trace_message() || mu_memory_is_kept();
	const double end = mu_now() + 1;
	bool done = !part->batch || !part->batch->sent;

	while (!done && !failing && mu_now() < end &&
	       keys->ops->push_test(keys, part->batch->sent, false, &done) == MU_OK)
		;
	if (!failing)
		mu_trace_clear();
	if (done)
		mu_request_drop_batch(keys, part);
	part->batch = NULL;
}

/* The caller still has the requests, and may end them later. */
void mu_keys_requests_abandon(struct mu_keys *keys)
{
	struct mu_keys_request *next;
	char who[128];
	size_t n = 0;

	for (struct mu_keys_request *r = keys->requests.done; r; r = next, n++) {
		next = r->next;
		r->keys = NULL;
	}
	for (struct mu_keys_request *r = keys->requests.left; r; r = next, n++) {
		next = r->next;
		for (size_t i = 0; i < r->n; i++)
			abandon_part(keys, &r->parts[i]);
		mu_request_keep_error(
			r, MU_ERR_ARGUMENT,
			"mu_keys_free of its store came before the end of this request");
		r->keys = NULL;
		r->n_open = 0;
	}
	keys->requests.left = keys->requests.done = NULL;
	if (n > 0 && !*mu_trace_message())
		mu_log_warn("%s calls mu_keys_free, and %zu requests have had no "
			    "mu_keys_request_end",
			    mu_members_who(keys->members, who, sizeof who), n);
}

enum mu_status mu_keys_request_begin(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				     enum mu_use use, struct mu_keys_request **out)
{
	enum mu_status st = MU_OK;

	MU_TRY(new_request(keys, n, items, use, out));
	mu_parts_move_pushes(keys);
out:
	return st;
}

enum mu_status mu_keys_check_alone(struct mu_keys *keys, const char *call)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_keys_check_worker(keys, call));
	MU_TRY(mu_keys_requests_end(keys));
out:
	return st;
}

enum mu_status mu_keys_check_all(struct mu_keys *keys, const char *call)
{
	enum mu_status st = MU_OK;
	struct call_name {
		char text[32];
	} mine = {""}, *all = NULL;
	int n;

	MU_TRY(mu_keys_check_alone(keys, call));
	snprintf(mine.text, sizeof mine.text, "%s", call);
	MU_TRY(mu_keys_gather(keys, &mine, sizeof mine, (void **)&all, &n));
	for (int w = 1; w < n; w++) {
		if (strcmp(all[w].text, all[0].text) != 0)
			MU_FAIL(MU_ERR_ARGUMENT,
				"worker %d (rank %d) calls %s, and worker 0 %s: all workers make "
				"the collective calls in one order",
				w, mu_worker_rank(keys->members, w), all[w].text, all[0].text);
	}
out:
	mu_free(all);
	return st;
}
