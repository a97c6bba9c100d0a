/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the parts of requests move on. A push is sent at once, unless a part of its key that began
 * before it still has to read the key; a pull is a call of its own as soon as the owners say that
 * its rounds have closed. So nothing that is sent waits for other workers, and a worker still has
 * one call at most that is not answered. What may go of one request goes together.
 */
#include <stdio.h>
#include <string.h>

#include "parts.h"

/* ---- the end of a part ---- */

void mu_request_unlink(struct mu_keys_request **list, struct mu_keys_request *r)
{
	while (*list && *list != r)
		list = &(*list)->next;
	if (*list)
		*list = r->next;
}

void mu_request_drop_batch(struct mu_keys *keys, struct mu_request_part *part)
{
	struct mu_push_batch *batch = part->batch;

	part->batch = NULL;
	if (!batch || --batch->n_parts > 0)
		return;
	if (batch->sent)
		keys->ops->push_end(keys, batch->sent);
	for (size_t i = 0; i < batch->n_scratch; i++)
		mu_pool_give(&keys->pool, batch->scratch[i]);
	mu_free(batch->scratch);
	mu_free(batch);
}

void mu_request_keep_error(struct mu_keys_request *r, enum mu_status st, const char *text)
{
	if (st == MU_OK || r->status != MU_OK)
		return;
	r->status = st;
	if (mu_alloc((void **)&r->text, KEYS_TEXT_BYTES, "error of a request") == MU_OK)
		snprintf(r->text, KEYS_TEXT_BYTES, "%s", text);
}

void mu_request_finish(struct mu_keys_request *r, struct mu_request_part *part, enum mu_status st,
		       const char *text)
{
	struct mu_keys *keys = r->keys;

	mu_request_keep_error(r, st, text);
	mu_request_drop_batch(keys, part);
	part->stage = MU_PART_DONE;
	keys->requests.n_parts_done++;
	if (--r->n_open > 0)
		return;
	mu_request_unlink(&keys->requests.left, r);
	r->next = keys->requests.done;
	keys->requests.done = r;
}

bool mu_part_has_push(const struct mu_keys_request *r, const struct mu_request_part *part)
{
	return (r->use == MU_USE_PUSH || r->use == MU_USE_PUSHPULL) && !part->pushed;
}

bool mu_part_holds_key(const struct mu_keys_request *r, const struct mu_request_part *part)
{
	return part->stage == MU_PART_QUEUED ||
	       (part->stage == MU_PART_SENT && r->use != MU_USE_PUSH);
}

static bool is_push(const struct mu_keys_request *r, const struct mu_request_part *part)
{
	return part->stage == MU_PART_QUEUED && part->is_free && mu_part_has_push(r, part);
}

static bool is_pull(const struct mu_keys_request *r, const struct mu_request_part *part)
{
	return part->stage == MU_PART_QUEUED && part->is_free && !mu_part_has_push(r, part);
}

/* Which parts may go on? Keys that an earlier part holds are marked by the pass's number. */
static void find_free(struct mu_keys *keys)
{
	keys->requests.pass++;
	for (struct mu_keys_request *r = keys->requests.left; r; r = r->next) {
		for (size_t i = 0; i < r->n; i++) {
			struct mu_key *key = &keys->table.keys[r->parts[i].key];

			r->parts[i].is_free = key->pass != keys->requests.pass;
			if (mu_part_holds_key(r, &r->parts[i]))
				key->pass = keys->requests.pass;
		}
	}
}

/* ---- parts of one request that go together ---- */

/* Returns how many. only: this part alone, if it is not NULL. */
static size_t choose(struct mu_keys_request *r,
		     bool (*is)(const struct mu_keys_request *, const struct mu_request_part *),
		     const struct mu_request_part *only)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		struct mu_request_part *part = &r->parts[i];

		part->chosen = is(r, part) && (!only || part == only);
		if (part->chosen)
			r->chosen[n++] = part->item;
	}
	return n;
}

/* The trace of an error ends here. */
static void finish_chosen(struct mu_keys_request *r, enum mu_status st)
{
	char text[KEYS_TEXT_BYTES] = "";

	if (st != MU_OK) {
		snprintf(text, sizeof text, "%s", mu_trace_message());
		mu_trace_clear();
	}
	for (size_t i = 0; i < r->n; i++) {
		if (r->parts[i].chosen)
			mu_request_finish(r, &r->parts[i], st, text);
	}
}

static void finish_one(struct mu_keys_request *r, struct mu_request_part *part, enum mu_status st)
{
	for (size_t i = 0; i < r->n; i++)
		r->parts[i].chosen = &r->parts[i] == part;
	finish_chosen(r, st);
}

/* ---- pushes ---- */

static enum mu_status send(struct mu_keys_request *r, size_t n)
{
	enum mu_status st = MU_OK;
	struct mu_keys *keys = r->keys;
	struct mu_push_batch *batch = NULL;

	mu_clock_start(keys->push_clock);
	mu_keys_begin(keys);
	MU_TRY(mu_keys_add_items(keys, n, r->chosen, MU_PUSH));
	if (keys->ops->push_begin) {
		MU_TRY(MU_ALLOC(batch, 1, "pushes of a request"));
		batch->n_parts = n;
		for (size_t i = 0; i < r->n; i++)
			r->parts[i].batch = r->parts[i].chosen ? batch : r->parts[i].batch;
		MU_TRY(MU_ALLOC(batch->scratch, keys->call.n_scratch + 1, "buffers of a request"));
		st = keys->ops->push_begin(keys, keys->call.n, keys->call.transfers, &batch->sent);
		if (keys->call.n_scratch > 0)
			memcpy(batch->scratch, keys->call.scratch,
			       keys->call.n_scratch * sizeof *batch->scratch);
		batch->n_scratch = keys->call.n_scratch;
		keys->call.n_scratch = 0;
	} else {
		st = keys->ops->call(keys, keys->call.n, keys->call.transfers);
	}
	MU_TRY(st);
	for (size_t i = 0; i < r->n; i++)
		r->parts[i].stage = r->parts[i].chosen ? MU_PART_SENT : r->parts[i].stage;
out:
	mu_keys_end(keys);
	mu_clock_stop(keys->push_clock);
	return st;
}

/* A push that is sent: has it left? */
static void test_push(struct mu_keys_request *r, struct mu_request_part *part, bool wait)
{
	enum mu_status st = MU_OK;
	bool done = true;

	if (part->batch)
		st = r->keys->ops->push_test(r->keys, part->batch->sent, wait, &done);
	if (st != MU_OK || (done && r->use == MU_USE_PUSH)) {
		finish_one(r, part, st);
	} else if (done) {
		mu_request_drop_batch(r->keys, part);
		part->pushed = true;
		part->stage = MU_PART_QUEUED;
	}
}

void mu_parts_wait_push(struct mu_keys_request *r, struct mu_request_part *part)
{
	test_push(r, part, true);
}

void mu_parts_move_pushes(struct mu_keys *keys)
{
	struct mu_keys_request *next;

	find_free(keys);
	for (struct mu_keys_request *r = keys->requests.left; r; r = next) {
		const size_t n = choose(r, is_push, NULL);
		enum mu_status st = MU_OK;

		next = r->next;
		if (n > 0)
			st = send(r, n);
		if (st != MU_OK)
			finish_chosen(r, st);
		for (size_t i = 0; i < r->n; i++) {
			if (r->parts[i].stage == MU_PART_SENT)
				test_push(r, &r->parts[i], false);
		}
	}
}

/* ---- have rounds closed? ---- */

/* waits: the worker does nothing else until this round has closed. */
static enum mu_status add_question(struct mu_keys *keys, const struct mu_key *key, bool waits)
{
	enum mu_status st = MU_OK;

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

/* Marks pulls of keys that have open rounds as not free. */
static enum mu_status ask(struct mu_keys *keys, const struct mu_request_part *waits)
{
	enum mu_status st = MU_OK;
	size_t next = 0;

	mu_keys_begin(keys);
	for (const struct mu_keys_request *r = keys->requests.left; r; r = r->next)
		for (size_t i = 0; i < r->n; i++)
			if (is_pull(r, &r->parts[i]))
				MU_TRY(add_question(keys, &keys->table.keys[r->parts[i].key],
						    &r->parts[i] == waits));
	if (keys->call.n > 0)
		MU_TRY(keys->ops->call(keys, keys->call.n, keys->call.transfers));
	for (struct mu_keys_request *r = keys->requests.left; r; r = r->next) {
		for (size_t i = 0; i < r->n; i++) {
			const struct mu_key *key = &keys->table.keys[r->parts[i].key];
			bool closed = true;

			for (size_t p = 0; is_pull(r, &r->parts[i]) && p < key->n_parts; p++) {
				uint64_t rounds;

				memcpy(&rounds, keys->call.transfers[next++].out, sizeof rounds);
				closed = closed && rounds == key->pushed;
			}
			r->parts[i].is_free = r->parts[i].is_free && closed;
		}
	}
out:
	mu_keys_end(keys);
	return st;
}

/* ---- pulls ---- */

static void pull(struct mu_keys_request *r, const struct mu_request_part *only)
{
	const size_t n = choose(r, is_pull, only);

	if (n == 0)
		return;
	if (r->use == MU_USE_ROWS)
		finish_chosen(r, mu_keys_exchange_rows(r->keys, n, r->chosen));
	else
		finish_chosen(r, mu_keys_exchange(r->keys, n, r->chosen, MU_PULL));
}

void mu_parts_pull(struct mu_keys_request *r, const struct mu_request_part *only)
{
	find_free(r->keys);
	pull(r, only);
}

static void refuse_pulls(struct mu_keys *keys, enum mu_status st)
{
	char text[KEYS_TEXT_BYTES];
	struct mu_keys_request *next;

	snprintf(text, sizeof text, "%s", mu_trace_message());
	mu_trace_clear();
	for (struct mu_keys_request *r = keys->requests.left; r; r = next) {
		next = r->next;
		for (size_t i = 0; i < r->n; i++) {
			if (is_pull(r, &r->parts[i]))
				mu_request_finish(r, &r->parts[i], st, text);
		}
	}
}

static void move_pulls(struct mu_keys *keys, const struct mu_request_part *waits)
{
	struct mu_keys_request *next;
	enum mu_status st = MU_OK;

	find_free(keys);
	if (keys->kind.synchronous && !keys->kind.one_worker)
		st = ask(keys, waits);
	if (st != MU_OK) {
		refuse_pulls(keys, st);
		return;
	}
	for (struct mu_keys_request *r = keys->requests.left; r; r = next) {
		next = r->next;
		pull(r, NULL);
	}
}

enum mu_status mu_parts_move(struct mu_keys *keys, const struct mu_request_part *waits)
{
	enum mu_status st = MU_OK;
	uint64_t before;
	int n;

	MU_TRY(mu_keys_servers_poll(&n));
	mu_parts_move_pushes(keys);
	do { /* what a pull has held back */
		before = keys->requests.n_parts_done;
		move_pulls(keys, waits);
		mu_parts_move_pushes(keys);
	} while (keys->requests.left && keys->requests.n_parts_done != before);
out:
	return st;
}
