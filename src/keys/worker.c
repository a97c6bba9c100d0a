/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker end of a store of keys whose owners are other ranks. See keys/wire.h.
 */
#include <stdio.h>
#include <string.h>

#include "comm/icollective.h"
#include "link.h"
#include "traffic.h"

/* ---- a call's messages ---- */

static bool is_for(const struct mu_keys *keys, const struct mu_transfer *x, size_t owner)
{
	return (size_t)keys->table.parts[x->part].owner == owner;
}

static bool needs_answer(const struct mu_transfer *x)
{
	return x->out || !(mu_coding_is_push(x->coding) || x->coding == MU_CODING_NONE);
}

/* What goes to one owner: the head with its table, and how large everything is. */
static void make_head(struct mu_keys *keys, size_t owner, size_t n, const struct mu_transfer *x)
{
	struct mu_keys_links *w = keys->end;
	struct mu_keys_link *l = &w->links[owner];
	struct keys_head *head = (struct keys_head *)(void *)l->head;
	struct keys_item *items = (struct keys_item *)(head + 1);

	*head = (struct keys_head){.op = KEYS_CALL};
	l->answer_bytes = 0;
	for (size_t i = 0; i < n; i++) {
		if (!is_for(keys, &x[i], owner))
			continue;
		items[head->n_items++] = (struct keys_item){
			.part = (uint32_t)x[i].part,
			.coding = (uint16_t)x[i].coding,
			.wanted = x[i].out != NULL,
			.nbytes = x[i].nbytes,
			.n_rows = x[i].n_rows,
			.row_length = (uint32_t)x[i].row_length,
			.threshold = x[i].threshold,
		};
		if (x[i].nbytes < KEYS_LARGE_BYTES)
			head->body_bytes += x[i].nbytes;
		if (x[i].out && x[i].out_nbytes < KEYS_LARGE_BYTES)
			l->answer_bytes += x[i].out_nbytes;
		head->answered |= needs_answer(&x[i]);
	}
	l->used = head->n_items > 0;
	l->answered = head->answered;
	l->head_bytes = sizeof *head + head->n_items * sizeof *items;
	l->body_bytes = head->body_bytes;
}

/* Small items' data, into the head if it has room for all of them. */
static enum mu_status pack(struct mu_keys *keys, size_t owner, size_t n,
			   const struct mu_transfer *x)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = keys->end;
	struct mu_keys_link *l = &w->links[owner];
	char *to = l->head + l->head_bytes;

	if (l->head_bytes + l->body_bytes > KEYS_HEAD_BYTES) {
		MU_TRY(mu_pool_take(&keys->pool, &l->body, l->body_bytes, "small keys of a call"));
		to = l->body;
	} else {
		l->head_bytes += l->body_bytes;
	}
	for (size_t i = 0; i < n; i++) {
		if (is_for(keys, &x[i], owner) && x[i].nbytes < KEYS_LARGE_BYTES && x[i].nbytes) {
			memcpy(to, x[i].data, x[i].nbytes);
			to += x[i].nbytes;
		}
	}
out:
	return st;
}

static bool fits_answer(size_t nbytes)
{
	return sizeof(struct keys_answer) + nbytes <= KEYS_HEAD_BYTES;
}

/* Receives of a call, before it is sent. */
static enum mu_status expect(struct mu_keys *keys, size_t owner, size_t n,
			     const struct mu_transfer *x)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = keys->end;
	struct mu_keys_link *l = &w->links[owner];
	size_t item = 0;

	MU_TRY(mu_keys_link_receive_head(keys, owner));
	if (!fits_answer(l->answer_bytes)) {
		MU_TRY(mu_pool_take(&keys->pool, &l->answer_body, l->answer_bytes,
				    "small keys of an answer"));
		MU_TRY(mu_keys_link_receive(keys, l->answer_body, l->answer_bytes,
					    (struct mu_keys_link_note){owner, KEYS_MAX_ITEMS}));
	}
	for (size_t i = 0; i < n; i++) {
		if (!is_for(keys, &x[i], owner))
			continue;
		if (x[i].out && x[i].out_nbytes >= KEYS_LARGE_BYTES)
			MU_TRY(mu_keys_link_receive(keys, x[i].out, x[i].out_nbytes,
						    (struct mu_keys_link_note){owner, item}));
		item++;
	}
out:
	return st;
}

static enum mu_status send_call(struct mu_keys *keys, size_t owner, size_t n,
				const struct mu_transfer *x)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = keys->end;
	struct mu_keys_link *l = &w->links[owner];
	int tag = KEYS_TAG_ITEM;

	MU_TRY(mu_keys_link_send(keys, l->head, l->head_bytes, l->rank, KEYS_TAG_HEAD));
	if (l->body)
		MU_TRY(mu_keys_link_send(keys, l->body, l->body_bytes, l->rank, KEYS_TAG_BODY));
	for (size_t i = 0; i < n; i++) {
		if (!is_for(keys, &x[i], owner))
			continue;
		if (x[i].nbytes >= KEYS_LARGE_BYTES)
			MU_TRY(mu_keys_link_send(keys, x[i].data, x[i].nbytes, l->rank, tag));
		tag++;
	}
	mu_wake(keys->members, l->rank);
	if (mu_traffic_messages(&keys->traffic))
		mu_keys_traffic_call(keys, owner, n, x, MU_TRAFFIC_OUT, -1);
out:
	return st;
}

static void unpack(struct mu_keys *keys, size_t owner, size_t n, const struct mu_transfer *x)
{
	struct mu_keys_links *w = keys->end;
	struct mu_keys_link *l = &w->links[owner];
	const char *from = l->answer_body ? l->answer_body : l->answer + sizeof(struct keys_answer);

	for (size_t i = 0; i < n; i++) {
		if (is_for(keys, &x[i], owner) && x[i].out && x[i].out_nbytes < KEYS_LARGE_BYTES) {
			memcpy(x[i].out, from, x[i].out_nbytes);
			from += x[i].out_nbytes;
		}
	}
}

/* ---- calls ---- */

static enum mu_status check_failure(const struct mu_keys_links *w)
{
	enum mu_status st = MU_OK;

	if (w->status != MU_OK)
		MU_FAIL(w->status, "%s", w->failure);
out:
	return st;
}

static enum mu_status prepare(struct mu_keys *keys, size_t n, const struct mu_transfer *x,
			      int *n_answers)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = keys->end;

	w->n_sends = w->n_receives = 0;
	*n_answers = 0;
	for (size_t o = 0; o < (size_t)keys->n_owners; o++) {
		make_head(keys, o, n, x);
		if (w->links[o].used)
			MU_TRY(pack(keys, o, n, x));
		if (w->links[o].answered)
			MU_TRY(expect(keys, o, n, x));
		*n_answers += w->links[o].answered;
	}
out:
	return st;
}

static enum mu_status finish_answers(struct mu_keys *keys, size_t n, const struct mu_transfer *x,
				     int n_answers)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = keys->end;

	MU_TRY(mu_keys_link_wait_heads(keys, n_answers, "values from the owners of keys"));
	if (w->status != MU_OK)
		MU_TRY(mu_keys_link_take_back(w));
	MU_TRY(mu_keys_link_wait(keys, w->n_receives, w->receives, "large keys from their owners"));
	MU_TRY(mu_keys_link_wait(keys, w->n_sends, w->sends, "the owners to take a message"));
	MU_TRY(check_failure(w));
	for (size_t o = 0; o < (size_t)keys->n_owners; o++) {
		if (!w->links[o].answered)
			continue;
		unpack(keys, o, n, x);
		if (mu_traffic_messages(&keys->traffic))
			mu_keys_traffic_call(keys, o, n, x, MU_TRAFFIC_IN, mu_now() - w->began);
	}
out:
	return st;
}

enum mu_status mu_keys_links_send(struct mu_keys *keys, size_t n, const struct mu_transfer *x,
				  int *n_answers)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = keys->end;

	MU_TRY(check_failure(w));
	MU_TRY(prepare(keys, n, x, n_answers));
	if (mu_traffic_messages(&keys->traffic))
		w->began = mu_now();
	for (size_t o = 0; o < (size_t)keys->n_owners; o++) {
		if (w->links[o].used)
			MU_TRY(send_call(keys, o, n, x));
	}
out:
	return st;
}

/* At most KEYS_MAX_ITEMS transfers. */
static enum mu_status exchange(struct mu_keys *keys, size_t n, const struct mu_transfer *x)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = keys->end;
	int n_answers;

	MU_TRY(mu_keys_links_send(keys, n, x, &n_answers));
	MU_TRY(mu_keys_link_wait(keys, w->n_sends, w->sends, "the owners to take a push"));
	w->n_sends = 0;
	if (n_answers > 0)
		MU_TRY(finish_answers(keys, n, x, n_answers));
out:
	if (st != MU_OK)
		mu_keys_link_failed(keys, w, st);
	mu_keys_links_clear(keys, w);
	return st;
}

static enum mu_status in_turns(struct mu_keys *keys, size_t n, const struct mu_transfer *x)
{
	enum mu_status st = MU_OK;

	for (size_t from = 0; from < n; from += KEYS_MAX_ITEMS)
		MU_TRY(exchange(keys, n - from < KEYS_MAX_ITEMS ? n - from : KEYS_MAX_ITEMS,
				x + from));
out:
	return st;
}

/*
 * What is pushed and wanted at once, in several turns: all goes before anything is waited for, as
 * other workers may have it in another order.
 */
static enum mu_status call(struct mu_keys *keys, size_t n, const struct mu_transfer *x)
{
	enum mu_status st = MU_OK;
	struct mu_transfer *half = NULL;
	bool both = false;

	for (size_t i = 0; i < n; i++)
		both |= x[i].out && mu_coding_is_push(x[i].coding);
	if (n <= KEYS_MAX_ITEMS || !both) {
		MU_TRY(in_turns(keys, n, x));
		goto out;
	}
	MU_TRY(MU_ALLOC(half, n, "half of a call"));
	for (size_t i = 0; i < n; i++) {
		half[i] = x[i];
		half[i].out = NULL;
		half[i].out_nbytes = 0;
	}
	MU_TRY(in_turns(keys, n, half));
	for (size_t i = 0; i < n; i++) {
		half[i] = x[i];
		half[i].coding = MU_CODING_NONE;
		half[i].nbytes = 0;
	}
	MU_TRY(in_turns(keys, n, half));
out:
	mu_free(half);
	return st;
}

/* A head with a body to every owner, and all answers. */
static enum mu_status tell_all(struct mu_keys *keys, enum keys_op op, const void *body,
			       size_t nbytes)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = keys->end;

	w->n_sends = w->n_receives = 0;
	for (int o = 0; o < keys->n_owners; o++) {
		struct mu_keys_link *l = &w->links[o];
		struct keys_head *head = (struct keys_head *)(void *)l->head;
		const bool fits = sizeof *head + nbytes <= KEYS_HEAD_BYTES;

		*head = (struct keys_head){.op = op, .answered = 1, .body_bytes = nbytes};
		if (fits && nbytes > 0)
			memcpy(head + 1, body, nbytes);
		MU_TRY(mu_keys_link_receive_head(keys, (size_t)o));
		MU_TRY(mu_keys_link_send(keys, head, sizeof *head + (fits ? nbytes : 0), l->rank,
					 KEYS_TAG_HEAD));
		if (!fits)
			MU_TRY(mu_keys_link_send(keys, body, nbytes, l->rank, KEYS_TAG_BODY));
		mu_wake(keys->members, l->rank);
		if (mu_traffic_messages(&keys->traffic))
			mu_keys_traffic_order(keys, MU_TRAFFIC_OUT, l->rank, op,
					      sizeof *head + nbytes);
	}
	MU_TRY(mu_keys_link_wait(keys, w->n_sends, w->sends, "the owners to take a message"));
	w->n_sends = 0;
	MU_TRY(mu_keys_link_wait_heads(keys, keys->n_owners, "the owners of keys"));
	MU_TRY(mu_keys_link_wait(keys, w->n_sends, w->sends, "the owners to take a message"));
out:
	if (st != MU_OK)
		mu_keys_link_failed(keys, w, st);
	return st;
}

/* Every owner gets the whole list, and takes its own. */
static enum mu_status make(struct mu_keys *keys, size_t first_part)
{
	enum mu_status st = MU_OK;
	const struct mu_key_table *t = &keys->table;
	struct mu_keys_links *w = keys->end;
	struct keys_new *list = NULL;
	size_t n = t->n_parts - first_part;

	MU_TRY(check_failure(w));
	MU_TRY(MU_ALLOC(list, n + 1, "list of new keys"));
	for (size_t i = 0; i < n; i++) {
		const struct mu_key_part *part = &t->parts[first_part + i];
		const struct mu_key *key = &t->keys[part->key];

		list[i] = (struct keys_new){.part = (uint32_t)(first_part + i),
					    .dtype = (uint32_t)key->dtype,
					    .key = key->number,
					    .from = part->from,
					    .n = part->n,
					    .owner = (uint32_t)part->owner};
		snprintf(list[i].name, sizeof list[i].name, "%s", key->name ? key->name : "");
	}
	MU_TRY(tell_all(keys, KEYS_MAKE, list, n * sizeof *list));
	MU_TRY(check_failure(w));
out:
	mu_free(list);
	return st;
}

static enum mu_status rule(struct mu_keys *keys, const struct mu_rule_order *order)
{
	enum mu_status st = MU_OK;

	MU_TRY(check_failure(keys->end));
	MU_TRY(tell_all(keys, KEYS_RULE, order, sizeof *order));
	MU_TRY(check_failure(keys->end));
out:
	return st;
}

static enum mu_status finish(struct mu_keys *keys)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_keys_link_check_left(keys));
	/* Every owner answers this, whatever happens: no need to pass an error on. */
	((struct mu_keys_links *)keys->end)->finishing = true;
	MU_TRY(tell_all(keys, KEYS_FINISH, NULL, 0));
	if (keys->server) /* others may still wait for what I own */
		MU_TRY(mu_keys_link_serve(keys));
	MU_TRY(check_failure(keys->end));
out:
	return st;
}

static enum mu_status gather(struct mu_keys *keys, const void *mine, void *all, size_t nbytes)
{
	enum mu_status st = MU_OK;
	const struct mu_meeting others = mu_peers_meeting(keys->members, "the other workers");
	MPI_Request request = MPI_REQUEST_NULL;

	MU_TRY(mu_keys_link_check_left(keys));
	MU_TRY(mu_iallgather(mine, all, nbytes, others.comm, &request));
	MU_TRY(mu_keys_link_meet(keys, &others, &request));
out:
	return st;
}

/* Through the pool: data may lie on the stack, and what is abandoned may come later. */
static enum mu_status bcast(struct mu_keys *keys, void *data, size_t nbytes)
{
	enum mu_status st = MU_OK;
	const struct mu_meeting first = mu_peers_meeting(keys->members, "worker 0");
	MPI_Request request = MPI_REQUEST_NULL;
	void *copy = NULL, *place = data;

	MU_TRY(mu_keys_link_check_left(keys));
	if (mu_pool_take(&keys->pool, &copy, nbytes, "a value of worker 0") == MU_OK)
		place = memcpy(copy, data, nbytes);
	else
		mu_trace_clear(); /* the others are in the call */
	MU_TRY(mu_ibcast(place, nbytes, 0, first.comm, &request));
	MU_TRY(mu_keys_link_meet(keys, &first, &request));
	if (copy)
		memcpy(data, copy, nbytes);
out:
	mu_pool_give(&keys->pool, copy);
	return st;
}

static enum mu_status open_worker(struct mu_keys *keys, const struct mu_keys_config *config)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = NULL;

	(void)config;
	st = mu_keys_links_new(keys, &w);
	keys->end = w;
	MU_TRY(st);
out:
	return st;
}

static void close_worker(struct mu_keys *keys)
{
	struct mu_keys_links *w = keys->end;

	/* A message of a worker that left may still come, and must not find another store's
	 * communicator. */
	if (w->left)
		keys->comm = MPI_COMM_NULL;
	while (w) {
		struct mu_keys_links *next = w->next;

		mu_keys_links_free(keys, w);
		w = next;
	}
}

const struct mu_keys_ops mu_keys_remote = {
	.open = open_worker,
	.close = close_worker,
	.make = make,
	.call = call,
	.push_begin = mu_keys_pushes_begin,
	.push_test = mu_keys_pushes_test,
	.push_end = mu_keys_pushes_end,
	.rule = rule,
	.gather = gather,
	.bcast = bcast,
	.finish = finish,
	.leave = mu_keys_link_leave,
};
