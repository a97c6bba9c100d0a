/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner's end of a store of keys: connections and messages. It never stops reading: what comes
 * is put where its round will find it. See keys/wire.h and round.c.
 */
#include <stdio.h>
#include <string.h>

#include "comm/requests.h"
#include "serving.h"
#include "traffic.h"

/* Open stores that this rank owns keys of. */
static struct mu_keys_server *open_servers;

/* ---- memory ---- */

static enum mu_status open_conn(struct mu_keys_server *s, size_t w)
{
	enum mu_status st = MU_OK;
	struct mu_keys_conn *c = &s->conns[w];

	c->worker = w;
	c->rank = mu_worker_rank(s->keys->members, (int)w);
	MU_TRY(MU_ALLOC(c->head, KEYS_HEAD_BYTES, "head of a call"));
	MU_TRY(MU_ALLOC(c->answer, KEYS_HEAD_BYTES, "head of an answer"));
	MU_TRY(MU_ALLOC(c->items, KEYS_MAX_ITEMS, "items of a call"));
	MU_TRY(MU_ALLOC(c->data, KEYS_MAX_ITEMS, "data of items"));
	MU_TRY(MU_ALLOC(c->left, KEYS_MAX_ITEMS, "messages of items"));
	MU_TRY(MU_ALLOC(c->sent, KEYS_MAX_ITEMS + 1, "items that are sent"));
	MU_MPI(MPI_Recv_init(c->head, mu_count(KEYS_HEAD_BYTES), MPI_BYTE, c->rank, KEYS_TAG_HEAD,
			     s->keys->comm, &s->heads[w]));
	MU_MPI(MPI_Start(&s->heads[w]));
out:
	return st;
}

enum mu_status mu_keys_server_open(struct mu_keys *keys, const struct mu_keys_config *config)
{
	enum mu_status st = MU_OK;
	struct mu_keys_server *s = NULL;
	size_t n = (size_t)keys->members->num_workers;

	MU_TRY(MU_ALLOC(s, 1, "owner's end of the store of keys"));
	keys->server = s;
	s->keys = keys;
	s->next = open_servers;
	open_servers = s;
	s->n_workers = n;
	MU_TRY(mu_owner_init(&s->owner, config, &keys->pool, n));
	MU_TRY(MU_ALLOC(s->conns, n, "connections to workers"));
	MU_TRY(MU_ALLOC(s->sources, n, "gradients of a round"));
	MU_TRY(MU_ALLOC(s->arrived, n, "heads that are here"));
	MU_TRY(mu_requests_new(&s->heads, n));
	MU_TRY(mu_requests_new(&s->answers, n));
	for (size_t w = 0; w < n; w++)
		MU_TRY(open_conn(s, w));
out:
	return st;
}

/* Without mu_keys_finish messages may still arrive: not into memory that is freed. */
static void cancel(MPI_Request *requests, size_t n)
{
	for (size_t i = 0; requests && i < n && !mu_memory_is_kept(); i++) {
		if (requests[i] == MPI_REQUEST_NULL || mu_request_is_complete(requests[i]))
			continue;
		MPI_Cancel(&requests[i]);
		MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
	}
}

void mu_keys_server_close(struct mu_keys *keys)
{
	struct mu_keys_server *s = keys->server;

	if (!s)
		return;
	for (struct mu_keys_server **p = &open_servers; *p; p = &(*p)->next) {
		if (*p == s) {
			*p = s->next;
			break;
		}
	}
	cancel(s->heads, s->n_workers);
	cancel(s->receives, s->n_receives);
	if (!mu_requests_are_complete(s->sends, s->n_sends) ||
	    !mu_requests_are_complete(s->answers, s->n_workers))
		mu_memory_keep();
	mu_keys_runs_release(s);
	for (size_t w = 0; s->conns && w < s->n_workers; w++) {
		mu_free(s->conns[w].head);
		mu_free(s->conns[w].answer);
		mu_free(s->conns[w].items);
		mu_free(s->conns[w].data);
		mu_free(s->conns[w].left);
		mu_free(s->conns[w].sent);
	}
	mu_requests_free(s->heads, s->n_workers);
	mu_requests_free(s->answers, s->n_workers);
	mu_owner_release(&s->owner);
	mu_free(s->conns);
	mu_free(s->sources);
	mu_free(s->receives);
	mu_free(s->receiving);
	mu_free(s->sends);
	mu_free(s->sending);
	mu_free(s->completed);
	mu_free(s->arrived);
	mu_free(s);
	keys->server = NULL;
}

bool mu_keys_server_is_done(const struct mu_keys_server *s)
{
	return s->n_finished == s->n_workers && s->n_sends == 0;
}

enum mu_status mu_keys_server_end(struct mu_keys_server *s)
{
	return mu_wait_woken(s->keys->members, mu_count(s->n_workers), s->answers,
			     "the workers to take answers");
}

/* ---- messages ---- */

static enum mu_status receive(struct mu_keys_server *s, struct mu_keys_conn *c, size_t item,
			      void *data, size_t nbytes)
{
	enum mu_status st = MU_OK;
	const int tag = item == KEYS_MAX_ITEMS ? KEYS_TAG_BODY : KEYS_TAG_ITEM + (int)item;
	size_t *left = item == KEYS_MAX_ITEMS ? &c->body_left : &c->left[item];
	char *p = data;

	c->n_receiving++;
	*left = 0;
	for (size_t n; nbytes > 0; nbytes -= n, p += n) {
		n = nbytes < KEYS_MESSAGE_BYTES ? nbytes : KEYS_MESSAGE_BYTES;
		MU_TRY(mu_keys_grow((void **)&s->receives, s->n_receives, &s->max_receives,
				    sizeof *s->receives, "receives"));
		MU_TRY(mu_keys_grow((void **)&s->receiving, s->n_receives, &s->max_receiving,
				    sizeof *s->receiving, "receives"));
		MU_MPI(MPI_Irecv(p, mu_count(n), MPI_BYTE, c->rank, tag, s->keys->comm,
				 &s->receives[s->n_receives]));
		s->receiving[s->n_receives++] = (struct mu_keys_receive){c->worker, item};
		++*left;
	}
out:
	return st;
}

/* ---- calls ---- */

/* All workers sent the rule; theirs are equal. */
static enum mu_status obey(struct mu_keys_server *s, const struct mu_keys_conn *last)
{
	enum mu_status st = MU_OK;
	const struct mu_rule_order *order = (const struct mu_rule_order *)(const void *)last->body;
	enum mu_status result = mu_owner_set_rule(&s->owner, order);

	for (size_t i = 0; result == MU_OK && i < s->n_runs; i++) {
		if (s->runs[i])
			result = mu_owner_renew(&s->owner, &s->runs[i]->owned);
	}
	if (result != MU_OK)
		MU_TRY(mu_keys_fail(s, result, mu_trace_message()));
	s->n_rule = 0;
	for (size_t w = 0; s->status == MU_OK && w < s->n_workers; w++)
		MU_TRY(mu_keys_answer(s, &s->conns[w]));
out:
	return st;
}

static enum mu_status finish_one(struct mu_keys_server *s, struct mu_keys_conn *c)
{
	enum mu_status st = MU_OK;

	c->finished = true;
	s->n_finished++;
	if (s->keys->kind.synchronous && s->status == MU_OK)
		MU_TRY(mu_keys_finished(s));
	for (size_t w = 0; s->n_finished == s->n_workers && w < s->n_workers; w++) {
		if (!s->conns[w].busy) /* it left, and wants no answer */
			continue;
		if (s->status == MU_OK)
			MU_TRY(mu_keys_answer(s, &s->conns[w]));
		else
			MU_TRY(mu_keys_answer_failure(s, &s->conns[w]));
	}
out:
	return st;
}

/* The whole call is here. */
static enum mu_status received(struct mu_keys_server *s, struct mu_keys_conn *c)
{
	enum mu_status st = MU_OK;

	c->received = true;
	if (s->status != MU_OK && c->answered) {
		MU_TRY(mu_keys_answer_failure(s, c));
	} else if (c->op == KEYS_RULE) {
		if (++s->n_rule == s->n_workers)
			MU_TRY(obey(s, c));
	} else if (c->op == KEYS_MAKE) {
		MU_TRY(mu_keys_runs_make(s, (const struct keys_new *)(const void *)c->body,
					 c->body_bytes / sizeof(struct keys_new)));
		MU_TRY(mu_keys_answer(s, c));
	} else if (!c->answered) {
		mu_keys_end_call(s, c);
	} else if (c->n_unready == 0) {
		MU_TRY(mu_keys_answer(s, c));
	}
out:
	return st;
}

/* One of the things that a call consists of is here. */
static enum mu_status one_less(struct mu_keys_server *s, struct mu_keys_conn *c)
{
	enum mu_status st = MU_OK;

	if (--c->n_receiving > 0)
		goto out;
	MU_TRY(received(s, c));
	if (c->body_is_ours)
		mu_pool_give(&s->keys->pool, c->body);
	c->body = NULL;
	MU_MPI(MPI_Start(&s->heads[c->worker]));
out:
	return st;
}

/* A buffer for the data of item i, which begins with a gradient's head. */
static enum mu_status take_buffer(struct mu_keys_server *s, const struct keys_item *item,
				  struct mu_keys_gradient **g)
{
	return mu_pool_take(&s->keys->pool, (void **)g, sizeof **g + item->nbytes,
			    "a key's data on its owner");
}

/* The small items of a call, whose data are in the body, and those without data. */
static enum mu_status accept_small(struct mu_keys_server *s, struct mu_keys_conn *c)
{
	enum mu_status st = MU_OK;
	const char *from = c->body;

	for (size_t i = 0; i < c->n_items; i++) {
		const struct keys_item *item = &c->items[i];
		struct mu_keys_gradient *g = NULL;

		if (item->nbytes >= KEYS_LARGE_BYTES)
			continue;
		if (item->nbytes > 0 || mu_coding_is_push((enum mu_coding)item->coding)) {
			MU_TRY(take_buffer(s, item, &g));
			memcpy(g + 1, from, item->nbytes);
			from += item->nbytes;
		}
		MU_TRY(mu_keys_accept(s, c, i, g));
	}
out:
	return st;
}

static enum mu_status expect_large(struct mu_keys_server *s, struct mu_keys_conn *c)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < c->n_items; i++) {
		struct mu_keys_gradient *g;

		if (c->items[i].nbytes < KEYS_LARGE_BYTES)
			continue;
		MU_TRY(take_buffer(s, &c->items[i], &g));
		c->data[i] = g;
		MU_TRY(receive(s, c, i, g + 1, c->items[i].nbytes));
	}
out:
	return st;
}

static enum mu_status begin_call(struct mu_keys_server *s, struct mu_keys_conn *c,
				 const struct keys_head *head)
{
	enum mu_status st = MU_OK;
	const struct keys_item *items = (const struct keys_item *)(head + 1);
	const size_t used = sizeof *head + head->n_items * sizeof *items;

	c->op = (enum keys_op)head->op;
	c->busy = true;
	c->received = false;
	c->answered = head->answered;
	c->n_items = head->n_items;
	c->n_unready = 0;
	c->n_receiving = 1; /* until all receives are posted */
	memcpy(c->items, items, c->n_items * sizeof *items);
	memset(c->sent, 0, KEYS_MAX_ITEMS + 1);
	for (size_t i = 0; i < c->n_items; i++)
		c->n_unready += c->items[i].wanted;
	c->body_bytes = head->body_bytes;
	c->body_is_ours = used + c->body_bytes > KEYS_HEAD_BYTES;
	if (c->body_is_ours) {
		MU_TRY(mu_pool_take(&s->keys->pool, (void **)&c->body, c->body_bytes,
				    "small keys on their owner"));
		MU_TRY(receive(s, c, KEYS_MAX_ITEMS, c->body, c->body_bytes));
	} else {
		c->body = c->head + used;
	}
	MU_TRY(expect_large(s, c));
	if (!c->body_is_ours)
		MU_TRY(accept_small(s, c));
	MU_TRY(one_less(s, c));
out:
	return st;
}

static enum mu_status take_head(struct mu_keys_server *s, struct mu_keys_conn *c)
{
	enum mu_status st = MU_OK;
	const struct keys_head *head = (const struct keys_head *)(const void *)c->head;

	if (mu_traffic_messages(&s->keys->traffic) && head->op != KEYS_CALL)
		mu_keys_traffic_order(s->keys, MU_TRAFFIC_IN, c->rank, (enum keys_op)head->op,
				      sizeof *head + head->body_bytes);
	if (head->op == KEYS_FAIL) {
		MU_TRY(mu_keys_fail(s, (enum mu_status)head->status, (const char *)(head + 1)));
		MU_MPI(MPI_Start(&s->heads[c->worker]));
	} else if (head->op == KEYS_LEAVE) {
		s->left = true;
		MU_TRY(mu_keys_fail(s, (enum mu_status)head->status, (const char *)(head + 1)));
		c->op = KEYS_FINISH;
		MU_TRY(finish_one(s, c));
	} else if (head->op == KEYS_FINISH) {
		c->op = KEYS_FINISH;
		c->busy = c->received = c->answered = true;
		MU_TRY(finish_one(s, c));
	} else {
		MU_TRY(begin_call(s, c, head));
	}
out:
	return st;
}

static enum mu_status take_message(struct mu_keys_server *s, size_t worker, size_t item)
{
	enum mu_status st = MU_OK;
	struct mu_keys_conn *c = &s->conns[worker];
	struct mu_keys_gradient *g;

	if (item == KEYS_MAX_ITEMS) {
		if (--c->body_left > 0)
			goto out;
		MU_TRY(accept_small(s, c));
	} else {
		if (--c->left[item] > 0)
			goto out;
		g = c->data[item];
		c->data[item] = NULL;
		MU_TRY(mu_keys_accept(s, c, item, g));
	}
	MU_TRY(one_less(s, c));
out:
	return st;
}

/* What a completed message begins may post new receives: those complete in the next poll. */
static enum mu_status poll_receives(struct mu_keys_server *s, int *n)
{
	enum mu_status st = MU_OK;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */
	const size_t n_polled = s->n_receives;
	size_t kept = 0;

	*n = 0;
	if (n_polled == 0)
		goto out;
	MU_TRY(mu_keys_need_completed(s, n_polled));
	MU_MPI(MPI_Testsome(mu_count(n_polled), s->receives, n, s->completed, ignore));
	for (size_t i = 0; *n > 0 && i < n_polled; i++) {
		if (s->receives[i] == MPI_REQUEST_NULL)
			MU_TRY(take_message(s, s->receiving[i].worker, s->receiving[i].item));
	}
	for (size_t i = 0; *n > 0 && i < s->n_receives; i++) {
		if (s->receives[i] == MPI_REQUEST_NULL)
			continue;
		s->receives[kept] = s->receives[i];
		s->receiving[kept++] = s->receiving[i];
	}
	if (*n > 0)
		s->n_receives = kept;
out:
	return st;
}

/* Does the call only ask whether rounds have closed? Such items are a call of their own. */
static bool is_question(const struct mu_keys_conn *c)
{
	const struct keys_head *head = (const struct keys_head *)(const void *)c->head;
	const struct keys_item *items = (const struct keys_item *)(const void *)(head + 1);

	return head->op == KEYS_CALL && head->n_items > 0 &&
	       (enum mu_coding)items[0].coding == MU_CODING_ROUNDS_GET;
}

static enum mu_status poll_one(struct mu_keys_server *s, int *n)
{
	enum mu_status st = MU_OK;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */
	int n_heads = 0, n_received = 0;

	MU_MPI(MPI_Testsome(mu_count(s->n_workers), s->heads, &n_heads, s->arrived, ignore));
	for (int i = 0; i < n_heads; i++) {
		struct mu_keys_conn *c = &s->conns[s->arrived[i]];

		*n += !is_question(c);
		MU_TRY(take_head(s, c));
	}
	MU_TRY(poll_receives(s, &n_received));
	MU_TRY(mu_keys_poll_sends(s));
	*n += n_received;
out:
	return st;
}

enum mu_status mu_keys_servers_poll(int *n)
{
	enum mu_status st = MU_OK;

	*n = 0;
	for (struct mu_keys_server *s = open_servers; s; s = s->next)
		MU_TRY(poll_one(s, n));
out:
	return st;
}

/* ---- a server, which does nothing else ---- */

static bool is_wanted(const struct mu_keys_server *s, const struct mu_keys_run *run)
{
	for (size_t w = 0; w < s->n_workers; w++)
		if (run->queues[w].waiting || run->queues[w].asked > run->owned.rounds)
			return true;
	return false;
}

void mu_keys_late_workers(const void *context, struct mu_awaited *a)
{
	const struct mu_keys_server *s = context;

	a->direct = s->keys->members->role == MU_ROLE_SERVER;
	for (size_t i = 0; i < s->n_runs; i++) {
		const struct mu_keys_run *run = s->runs[i];

		if (!run || !is_wanted(s, run))
			continue;
		for (size_t w = 0; w < s->n_workers; w++) {
			if (run->queues[w].pushed > run->owned.rounds ||
			    s->conns[w].rank == s->keys->members->rank)
				continue;
			if (a->n == 0)
				snprintf(a->what, sizeof a->what, "pushes of key %.100s",
					 mu_key_text(run->owned.key, run->owned.name).text);
			mu_awaited_add(a, s->conns[w].rank);
		}
	}
}

enum mu_status mu_keys_serve(struct mu_keys *keys)
{
	enum mu_status st = MU_OK;
	struct mu_keys_server *s = keys ? keys->server : NULL;
	struct mu_waiter waiter;
	int n = 0;

	if (!keys)
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_keys_serve: the store is NULL: mu_keys_open makes one");
	if (keys->members->role != MU_ROLE_SERVER)
		MU_FAIL(MU_ERR_ARGUMENT, "mu_keys_serve is for servers");
	mu_waiter_init(&waiter, keys->members);
	while (!mu_keys_server_is_done(s) && !s->left) {
		MU_TRY(mu_keys_servers_poll(&n));
		if (n > 0) {
			mu_waiter_reset(&waiter);
			continue;
		}
		mu_waiter_nap(&waiter);
		MU_TRY(mu_waiter_check(&waiter, mu_keys_late_workers, s));
	}
	/* Where one has left, the others are told, and need not come. */
	if (!s->left)
		MU_TRY(mu_keys_server_end(s));
	if (s->status != MU_OK)
		MU_FAIL(s->status, "%s", s->failure);
out:
	return st;
}
