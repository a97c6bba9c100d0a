/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that do not wait. A push begins at once, unless a call of one of its keys that began before
 * it still has to read the key; a pull is a call of its own as soon as the owners say that its
 * rounds have closed. So nothing that is sent waits for other workers, and a worker still has one
 * call at most that is not answered.
 */
#include <stdio.h>
#include <string.h>

#include "link.h"

enum stage {
	QUEUED, /* a push: not sent; a pull: its rounds may be open */
	SENT,   /* the push is on its way */
	DONE,
};

struct mu_keys_request {
	struct mu_keys *keys;
	struct mu_keys_request *next;
	enum mu_use use;
	enum stage stage;
	bool pushed;  /* pushpull: the push has left */
	bool is_free; /* in this pass: no earlier request holds one of its keys */
	size_t n;
	struct mu_kv_item *items;
	struct mu_array *arrays;
	struct mu_keys_links *sent;
	void **scratch; /* buffers of the pool that are being sent */
	size_t n_scratch;
	enum mu_status status;
	char *text; /* of an error */
};

static bool has_push(const struct mu_keys_request *r)
{
	return (r->use == MU_USE_PUSH || r->use == MU_USE_PUSHPULL) && !r->pushed;
}

/* Do later calls of its keys have to wait? A push that is sent keeps its place by itself. */
static bool holds_keys(const struct mu_keys_request *r)
{
	return r->stage == QUEUED || (r->stage == SENT && r->use != MU_USE_PUSH);
}

/* ---- life ---- */

static void free_request(struct mu_keys_request *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_scratch; i++)
		mu_pool_give(&r->keys->pool, r->scratch[i]);
	mu_free(r->scratch);
	mu_free(r->items);
	mu_free(r->arrays);
	mu_free(r->text);
	mu_free(r);
}

static void unlink_request(struct mu_keys_request **list, struct mu_keys_request *r)
{
	while (*list && *list != r)
		list = &(*list)->next;
	if (*list)
		*list = r->next;
}

/* It is over, with this result, and with this message if it is an error. */
static void finish_with(struct mu_keys_request *r, enum mu_status st, const char *text)
{
	struct mu_keys *keys = r->keys;

	r->status = st;
	if (st != MU_OK &&
	    mu_alloc((void **)&r->text, KEYS_TEXT_BYTES, "error of a request") == MU_OK)
		snprintf(r->text, KEYS_TEXT_BYTES, "%s", text);
	if (r->sent)
		keys->ops->push_end(keys, r->sent);
	r->sent = NULL;
	r->stage = DONE;
	unlink_request(&keys->requests, r);
	r->next = keys->done;
	keys->done = r;
}

/* The trace of an error ends here. */
static void finish(struct mu_keys_request *r, enum mu_status st)
{
	finish_with(r, st, mu_trace_message());
	if (st != MU_OK)
		mu_trace_clear();
}

/* With copies of the items, which the caller need not keep. */
static enum mu_status new_request(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				  enum mu_use use, struct mu_keys_request **out)
{
	enum mu_status st = MU_OK;
	struct mu_keys_request *r = NULL, **last = &keys->requests;
	size_t n_arrays = 0;

	for (size_t i = 0; i < n; i++)
		n_arrays += items[i].n_arrays;
	MU_TRY(MU_ALLOC(r, 1, "request"));
	*r = (struct mu_keys_request){.keys = keys, .use = use, .n = n};
	MU_TRY(MU_ALLOC(r->items, n + 1, "items of a request"));
	MU_TRY(MU_ALLOC(r->arrays, n_arrays + 1, "arrays of a request"));
	n_arrays = 0;
	for (size_t i = 0; i < n; i++) {
		const struct mu_key *key = mu_key_find(&keys->table, items[i].key, items[i].name);

		r->items[i] = items[i];
		r->items[i].name = key->name;
		r->items[i].arrays = r->arrays + n_arrays;
		if (items[i].n_arrays > 0)
			memcpy(r->arrays + n_arrays, items[i].arrays,
			       items[i].n_arrays * sizeof *r->arrays);
		n_arrays += items[i].n_arrays;
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

/* ---- steps ---- */

static enum mu_status send_push(struct mu_keys_request *r)
{
	enum mu_status st = MU_OK;
	struct mu_keys *keys = r->keys;

	mu_clock_start(keys->push_clock);
	mu_keys_begin(keys);
	MU_TRY(mu_keys_add_items(keys, r->n, r->items, MU_PUSH));
	if (keys->ops->push_begin) {
		MU_TRY(MU_ALLOC(r->scratch, keys->n_scratch + 1, "buffers of a request"));
		st = keys->ops->push_begin(keys, keys->n_transfers, keys->transfers, &r->sent);
		memcpy(r->scratch, keys->scratch, keys->n_scratch * sizeof *r->scratch);
		r->n_scratch = keys->n_scratch;
		keys->n_scratch = 0;
	} else {
		st = keys->ops->call(keys, keys->n_transfers, keys->transfers);
	}
	MU_TRY(st);
	r->stage = SENT;
out:
	mu_keys_end(keys);
	mu_clock_stop(keys->push_clock);
	return st;
}

/* The push of a request that is sent: has it left? */
static enum mu_status test_push(struct mu_keys_request *r, bool wait)
{
	enum mu_status st = MU_OK;
	bool done = true;

	if (r->sent)
		MU_TRY(r->keys->ops->push_test(r->keys, r->sent, wait, &done));
	if (!done)
		goto out;
	if (r->use == MU_USE_PUSH) {
		finish(r, MU_OK);
		goto out;
	}
	if (r->sent)
		r->keys->ops->push_end(r->keys, r->sent);
	r->sent = NULL;
	r->pushed = true;
	r->stage = QUEUED;
out:
	return st;
}

/* Waits for rounds that are open. */
static void pull(struct mu_keys_request *r)
{
	if (r->use == MU_USE_ROWS)
		finish(r, mu_keys_exchange_rows(r->keys, r->n, r->items));
	else
		finish(r, mu_keys_exchange(r->keys, r->n, r->items, MU_PULL));
}

/* Which requests may go on? Keys that an earlier one holds are marked by the pass's number. */
static void find_free(struct mu_keys *keys)
{
	keys->pass++;
	for (struct mu_keys_request *r = keys->requests; r; r = r->next) {
		r->is_free = true;
		for (size_t i = 0; i < r->n; i++)
			r->is_free &= mu_key_find(&keys->table, r->items[i].key, r->items[i].name)
					      ->pass != keys->pass;
		for (size_t i = 0; holds_keys(r) && i < r->n; i++)
			mu_key_find(&keys->table, r->items[i].key, r->items[i].name)->pass =
				keys->pass;
	}
}

/* Send what may be sent, and see what has left. */
static void move_pushes(struct mu_keys *keys)
{
	struct mu_keys_request *next;

	find_free(keys);
	for (struct mu_keys_request *r = keys->requests; r; r = next) {
		enum mu_status st = MU_OK;

		next = r->next;
		if (r->stage == QUEUED && has_push(r) && r->is_free)
			st = send_push(r);
		if (st == MU_OK && r->stage == SENT)
			st = test_push(r, false);
		if (st != MU_OK)
			finish(r, st);
	}
}

static bool is_pull(const struct mu_keys_request *r)
{
	return r->stage == QUEUED && !has_push(r) && r->is_free;
}

/* ---- have rounds closed? ---- */

/* waits: the worker does nothing else until this round has closed. */
static enum mu_status add_question(struct mu_keys *keys, const struct mu_kv_item *item, bool waits)
{
	enum mu_status st = MU_OK;
	const struct mu_key *key = mu_key_find(&keys->table, item->key, item->name);

	for (size_t p = 0; p < key->n_parts; p++) {
		struct mu_transfer *x;
		void *rounds;

		MU_TRY(mu_keys_scratch(keys, &rounds, sizeof(uint64_t)));
		MU_TRY(mu_keys_transfer(keys, &x));
		x->part = key->first_part + p;
		x->coding = MU_CODING_ROUNDS_GET;
		x->n_rows = waits;
		x->out = rounds;
		x->out_nbytes = sizeof(uint64_t);
	}
out:
	return st;
}

/* Marks requests whose keys have rounds that are open as not free. waits: for this request. */
static enum mu_status ask(struct mu_keys *keys, const struct mu_keys_request *waits)
{
	enum mu_status st = MU_OK;
	size_t next = 0;

	mu_keys_begin(keys);
	for (const struct mu_keys_request *r = keys->requests; r; r = r->next)
		for (size_t i = 0; is_pull(r) && i < r->n; i++)
			MU_TRY(add_question(keys, &r->items[i], r == waits));
	if (keys->n_transfers > 0)
		MU_TRY(keys->ops->call(keys, keys->n_transfers, keys->transfers));
	for (struct mu_keys_request *r = keys->requests; r; r = r->next) {
		bool closed = true;

		if (!is_pull(r))
			continue;
		for (size_t i = 0; i < r->n; i++) {
			const struct mu_key *key =
				mu_key_find(&keys->table, r->items[i].key, r->items[i].name);

			for (size_t p = 0; p < key->n_parts; p++) {
				uint64_t rounds;

				memcpy(&rounds, keys->transfers[next++].out, sizeof rounds);
				closed = closed && rounds == key->pushed;
			}
		}
		r->is_free = closed;
	}
out:
	mu_keys_end(keys);
	return st;
}

/* Pull what is there to be pulled. */
static void move_pulls(struct mu_keys *keys, const struct mu_keys_request *waits)
{
	struct mu_keys_request *next;
	enum mu_status st = MU_OK;
	char text[KEYS_TEXT_BYTES] = "";

	find_free(keys);
	if (keys->kind.synchronous && !keys->kind.one_worker)
		st = ask(keys, waits);
	if (st != MU_OK) {
		snprintf(text, sizeof text, "%s", mu_trace_message());
		mu_trace_clear();
	}
	for (struct mu_keys_request *r = keys->requests; r; r = next) {
		next = r->next;
		if (!is_pull(r))
			continue;
		if (st != MU_OK)
			finish_with(r, st, text);
		else
			pull(r);
	}
}

static enum mu_status move(struct mu_keys *keys, const struct mu_keys_request *waits)
{
	enum mu_status st = MU_OK;
	const struct mu_keys_request *before;
	int n;

	MU_TRY(mu_keys_servers_poll(&n));
	move_pushes(keys);
	do { /* what a pull has held back */
		before = keys->done;
		move_pulls(keys, waits);
		move_pushes(keys);
	} while (keys->requests && keys->done != before);
out:
	return st;
}

/* ---- waiting ---- */

static bool is_push_queued(const struct mu_keys *keys)
{
	for (const struct mu_keys_request *r = keys->requests; r; r = r->next) {
		if (r->stage == QUEUED && has_push(r))
			return true;
	}
	return false;
}

/* The first request that r waits for: an earlier one that holds a key of it, or itself. */
static struct mu_keys_request *find_holder(struct mu_keys *keys, struct mu_keys_request *r)
{
	const uint64_t mark = ++keys->pass;

	for (size_t i = 0; i < r->n; i++)
		mu_key_find(&keys->table, r->items[i].key, r->items[i].name)->pass = mark;
	for (struct mu_keys_request *e = keys->requests; e != r; e = e->next) {
		for (size_t i = 0; holds_keys(e) && i < e->n; i++) {
			if (mu_key_find(&keys->table, e->items[i].key, e->items[i].name)->pass ==
			    mark)
				return find_holder(keys, e);
		}
	}
	return r;
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

	mu_waiter_init(&waiter, keys->topology);
	move_pushes(keys);
	while (r->stage != DONE) {
		struct mu_keys_request *holder = find_holder(keys, r);

		if (holder->stage == SENT) {
			st = test_push(holder, true);
			if (st != MU_OK)
				finish(holder, st);
		} else if (!is_push_queued(keys)) {
			pull(holder);
		} else {
			const struct mu_keys_request *before = keys->done;
			const struct mu_kv_item *item = holder->items;

			/* An answer is no progress, so it must not look like a wait of its own. */
			mu_waiter_nest(&waiter, true);
			st = move(keys, holder);
			mu_waiter_nest(&waiter, false);
			MU_TRY(st);
			if (keys->done != before)
				mu_waiter_init(&waiter, keys->topology);
			else
				MU_TRY(mu_keys_link_nap(keys, &waiter,
							mu_key_find(&keys->table, item->key,
								    item->name)));
			continue;
		}
		st = MU_OK;
		move_pushes(keys);
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

	if (request->stage != DONE)
		MU_TRY(move(request->keys, NULL));
out:
	*done = request->stage == DONE;
	return st;
}

enum mu_status mu_keys_request_end(struct mu_keys_request *request)
{
	enum mu_status st = MU_OK;

	if (!request)
		return MU_OK;
	if (request->stage != DONE)
		MU_TRY(complete(request));
	unlink_request(&request->keys->done, request);
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

	while (keys->requests)
		MU_TRY(complete(keys->requests));
out:
	return st;
}

void mu_keys_requests_free(struct mu_keys *keys)
{
	struct mu_keys_request *next;

	for (struct mu_keys_request *r = keys->requests; r; r = next) {
		next = r->next;
		if (r->sent)
			keys->ops->push_end(keys, r->sent);
		free_request(r);
	}
	for (struct mu_keys_request *r = keys->done; r; r = next) {
		next = r->next;
		free_request(r);
	}
	keys->requests = keys->done = NULL;
}

enum mu_status mu_keys_request_begin(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				     enum mu_use use, struct mu_keys_request **out)
{
	enum mu_status st = MU_OK;

	MU_TRY(new_request(keys, n, items, use, out));
	move_pushes(keys);
out:
	return st;
}

enum mu_status mu_keys_check_all(struct mu_keys *keys, const char *call)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_keys_check_worker(keys, call));
	MU_TRY(mu_keys_requests_end(keys));
out:
	return st;
}
