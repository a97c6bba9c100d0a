/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an owner of keys sends to workers: values, answers, failures. See keys/wire.h.
 */
#include <stdio.h>
#include <string.h>

#include "serving.h"
#include "traffic.h"

enum mu_status mu_keys_need_completed(struct mu_keys_server *s, size_t n)
{
	enum mu_status st = MU_OK;

	while (s->max_completed < n)
		MU_TRY(mu_keys_grow((void **)&s->completed, s->max_completed, &s->max_completed,
				    sizeof *s->completed, "completed requests"));
out:
	return st;
}

/* The last piece of a message has the note about its buffer. */
static enum mu_status send(struct mu_keys_server *s, int rank, int tag, const void *data,
			   size_t nbytes, struct mu_keys_send note)
{
	enum mu_status st = MU_OK;
	const char *p = data;

	for (size_t n; nbytes > 0; nbytes -= n, p += n) {
		n = nbytes < KEYS_MESSAGE_BYTES ? nbytes : KEYS_MESSAGE_BYTES;
		MU_TRY(mu_keys_grow((void **)&s->sends, s->n_sends, &s->max_sends, sizeof *s->sends,
				    "sends"));
		MU_TRY(mu_keys_grow((void **)&s->sending, s->n_sends, &s->max_sending,
				    sizeof *s->sending, "sends"));
		MU_MPI(MPI_Isend(p, mu_count(n), MPI_BYTE, rank, tag, s->keys->comm,
				 &s->sends[s->n_sends]));
		s->sending[s->n_sends] = (struct mu_keys_send){NULL, note.run};
		if (note.run)
			note.run->n_sends++;
		if (n == nbytes)
			s->sending[s->n_sends].buffer = note.buffer;
		s->n_sends++;
	}
out:
	return st;
}

enum mu_status mu_keys_poll_sends(struct mu_keys_server *s)
{
	enum mu_status st = MU_OK;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */
	size_t kept = 0;
	int n = 0;

	if (s->n_sends == 0)
		goto out;
	MU_TRY(mu_keys_need_completed(s, s->n_sends));
	MU_MPI(MPI_Testsome(mu_count(s->n_sends), s->sends, &n, s->completed, ignore));
	for (size_t i = 0; n > 0 && i < s->n_sends; i++) {
		if (s->sends[i] != MPI_REQUEST_NULL) {
			s->sends[kept] = s->sends[i];
			s->sending[kept++] = s->sending[i];
			continue;
		}
		if (s->sending[i].run)
			s->sending[i].run->n_sends--;
		mu_pool_give(&s->keys->pool, s->sending[i].buffer);
	}
	if (n > 0)
		s->n_sends = kept;
out:
	return st;
}

/* Who gets them has pushed again, so they have arrived: this only lets MPI forget them. */
enum mu_status mu_keys_sends_end(struct mu_keys_server *s, const struct mu_keys_run *run)
{
	enum mu_status st = MU_OK;
	struct mu_waiter waiter;

	mu_waiter_init(&waiter, s->keys->members);
	while (run->n_sends > 0) {
		MU_TRY(mu_keys_poll_sends(s));
		if (run->n_sends == 0)
			break;
		mu_waiter_nap(&waiter);
		MU_TRY(mu_waiter_check(&waiter, NULL, "workers to take a value"));
	}
out:
	return st;
}

static enum mu_status answer_head(struct mu_keys_server *s, struct mu_keys_conn *c, size_t nbytes)
{
	enum mu_status st = MU_OK;

	/* The worker has the last one, or it would not ask again. */
	MU_TRY(mu_wait_woken(s->keys->members, 1, &s->answers[c->worker],
			     "a worker to take an answer"));
	MU_MPI(MPI_Isend(c->answer, mu_count(nbytes), MPI_BYTE, c->rank, KEYS_TAG_ANSWER,
			 s->keys->comm, &s->answers[c->worker]));
	mu_wake(s->keys->members, c->rank);
out:
	return st;
}

void mu_keys_end_call(struct mu_keys_server *s, struct mu_keys_conn *c)
{
	for (size_t i = 0; i < c->n_items; i++) {
		struct mu_keys_run *run = s->runs[c->items[i].part];

		if (run)
			run->queues[c->worker].waiting = 0;
		mu_pool_give(&s->keys->pool, c->data[i]);
		c->data[i] = NULL;
	}
	c->n_items = 0;
	c->busy = false;
}

enum mu_status mu_keys_answer_failure(struct mu_keys_server *s, struct mu_keys_conn *c)
{
	enum mu_status st = MU_OK;
	struct keys_answer *answer = (struct keys_answer *)(void *)c->answer;
	char *text = (char *)(answer + 1);

	MU_TRY(mu_wait_woken(s->keys->members, 1, &s->answers[c->worker],
			     "a worker to take an answer"));
	*answer = (struct keys_answer){.status = (uint64_t)s->status, .left = s->left};
	memcpy(text, s->failure, KEYS_TEXT_BYTES);
	memcpy(text + KEYS_TEXT_BYTES, c->sent, KEYS_MAX_ITEMS + 1);
	MU_TRY(answer_head(s, c, sizeof *answer + KEYS_TEXT_BYTES + KEYS_MAX_ITEMS + 1));
	mu_keys_end_call(s, c);
out:
	return st;
}

static struct mu_transfer transfer_of(const struct mu_keys_conn *c, size_t i)
{
	const struct mu_keys_gradient *data = c->data[i];

	return (struct mu_transfer){.coding = (enum mu_coding)c->items[i].coding,
				    .data = data ? data + 1 : NULL,
				    .n_rows = c->items[i].n_rows,
				    .row_length = c->items[i].row_length};
}

/* Small values of a call, one after another, to out; NULL: only their bytes. */
static enum mu_status small_values(struct mu_keys_server *s, const struct mu_keys_conn *c,
				   char *out, size_t *nbytes)
{
	enum mu_status st = MU_OK;

	*nbytes = 0;
	for (size_t i = 0; i < c->n_items; i++) {
		const struct mu_owned *p = &s->runs[c->items[i].part]->owned;
		const struct mu_transfer x = transfer_of(c, i);
		size_t n = mu_coding_answer_bytes(p, &x);

		if (!c->items[i].wanted || n >= KEYS_LARGE_BYTES)
			continue;
		if (out)
			MU_TRY(mu_coding_answer(p, &x, out + *nbytes));
		*nbytes += n;
	}
out:
	return st;
}

enum mu_status mu_keys_answer(struct mu_keys_server *s, struct mu_keys_conn *c)
{
	enum mu_status st = MU_OK;
	struct keys_answer *answer = (struct keys_answer *)(void *)c->answer;
	enum mu_status result;
	char *body = NULL;
	size_t nbytes, head = sizeof *answer;

	MU_TRY(mu_wait_woken(s->keys->members, 1, &s->answers[c->worker],
			     "a worker to take an answer"));
	MU_TRY(small_values(s, c, NULL, &nbytes));
	*answer = (struct keys_answer){.status = MU_OK, .body_bytes = nbytes};
	if (head + nbytes > KEYS_HEAD_BYTES)
		MU_TRY(mu_pool_take(&s->keys->pool, (void **)&body, nbytes, "values of keys"));
	result = small_values(s, c, body ? body : c->answer + head, &nbytes);
	if (result != MU_OK) {
		mu_pool_give(&s->keys->pool, body);
		MU_TRY(mu_keys_fail(s, result, mu_trace_message()));
		goto out;
	}
	if (body)
		MU_TRY(send(s, c->rank, KEYS_TAG_VALUES, body, nbytes,
			    (struct mu_keys_send){body, NULL}));
	else
		head += nbytes;
	MU_TRY(answer_head(s, c, head));
	mu_keys_end_call(s, c);
out:
	return st;
}

/*
 * A large value leaves at once. In a synchronous store it leaves from where it lies: it does not
 * change before its receiver pushes again.
 */
static enum mu_status send_large(struct mu_keys_server *s, struct mu_keys_conn *c, size_t i,
				 size_t nbytes)
{
	enum mu_status st = MU_OK;
	struct mu_keys_run *run = s->runs[c->items[i].part];
	const struct mu_transfer x = transfer_of(c, i);
	struct mu_keys_send note = {NULL, run};
	const void *data = run->owned.weights;
	enum mu_status result = MU_OK;

	if (!s->keys->kind.synchronous || run->owned.dtype != MU_FLOAT32 ||
	    !(x.coding == MU_CODING_NONE || mu_coding_is_push(x.coding))) {
		note.run = NULL;
		MU_TRY(mu_pool_take(&s->keys->pool, &note.buffer, nbytes, "value of a key"));
		result = mu_coding_answer(&run->owned, &x, note.buffer);
		data = note.buffer;
	}
	if (result != MU_OK) {
		mu_pool_give(&s->keys->pool, note.buffer);
		MU_TRY(mu_keys_fail(s, result, mu_trace_message()));
		goto out;
	}
	c->sent[i] = 1;
	MU_TRY(send(s, c->rank, KEYS_TAG_VALUE + (int)i, data, nbytes, note));
	mu_wake(s->keys->members, c->rank);
out:
	return st;
}

enum mu_status mu_keys_ready(struct mu_keys_server *s, struct mu_keys_conn *c, size_t i)
{
	enum mu_status st = MU_OK;
	const struct mu_transfer x = transfer_of(c, i);
	size_t nbytes = mu_coding_answer_bytes(&s->runs[c->items[i].part]->owned, &x);

	if (mu_traffic_messages(&s->keys->traffic))
		mu_keys_traffic_item(s, c, i, MU_TRAFFIC_OUT, nbytes);
	if (nbytes >= KEYS_LARGE_BYTES)
		MU_TRY(send_large(s, c, i, nbytes));
	if (--c->n_unready == 0 && c->received && c->busy && c->answered)
		MU_TRY(mu_keys_answer(s, c));
out:
	return st;
}

enum mu_status mu_keys_fail(struct mu_keys_server *s, enum mu_status status, const char *text)
{
	enum mu_status st = MU_OK;

	if (s->status == MU_OK) {
		s->status = status;
		snprintf(s->failure, sizeof s->failure, "%s", text);
	}
	mu_trace_clear();
	for (size_t w = 0; w < s->n_workers; w++) {
		struct mu_keys_conn *c = &s->conns[w];

		if (c->busy && c->received && c->answered && c->op != KEYS_FINISH)
			MU_TRY(mu_keys_answer_failure(s, c));
	}
out:
	return st;
}
