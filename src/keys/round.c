/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds of keys on their owner. Every worker has a queue for every run of a key; a round closes
 * when all queues have something, so workers are counted, not messages. dist_async has no rounds: a
 * gradient is used as it comes.
 */
#include <stdio.h>
#include <string.h>

#include "serving.h"
#include "traffic.h"

enum mu_status mu_keys_runs_make(struct mu_keys_server *s, const struct keys_new *list, size_t n)
{
	enum mu_status st = MU_OK;
	const int me = s->keys->members->index;

	for (size_t i = 0; i < n; i++) {
		struct mu_keys_run *run = NULL;

		MU_TRY(mu_keys_grow((void **)&s->runs, s->n_runs, &s->max_runs, sizeof(void *),
				    "runs of keys"));
		s->runs[s->n_runs++] = NULL;
		if (list[i].owner != (uint32_t)me)
			continue;
		MU_TRY(MU_ALLOC(run, 1, "run of a key"));
		s->runs[s->n_runs - 1] = run;
		MU_TRY(MU_ALLOC(run->queues, s->n_workers, "queues of a key"));
		run->owned = (struct mu_owned){.key = (int)list[i].key,
					       .from = list[i].from,
					       .n = list[i].n,
					       .dtype = (enum mu_dtype)list[i].dtype};
		memcpy(run->owned.name, list[i].name, sizeof run->owned.name);
		MU_TRY(mu_owner_add(&s->owner, &run->owned));
		if (mu_traffic_connections(&s->keys->traffic))
			mu_log_info("placement: %s %d has elements %zu to %zu of key %s, %s",
				    mu_role_name(s->keys->members->role), me, run->owned.from,
				    run->owned.from + run->owned.n - 1,
				    mu_key_text(run->owned.key, run->owned.name).text,
				    mu_dtype_name(run->owned.dtype));
	}
out:
	return st;
}

void mu_keys_runs_release(struct mu_keys_server *s)
{
	for (size_t i = 0; i < s->n_runs; i++) {
		struct mu_keys_run *run = s->runs[i];

		if (!run)
			continue;
		for (size_t w = 0; run->queues && w < s->n_workers; w++) {
			while (run->queues[w].first) {
				struct mu_keys_gradient *g = run->queues[w].first;

				run->queues[w].first = g->next;
				mu_pool_give(&s->keys->pool, g);
			}
		}
		mu_free(run->queues);
		mu_owner_drop(&run->owned);
		mu_free(run);
	}
	mu_free(s->runs);
}

static struct mu_keys_gradient *pop(struct mu_keys_run *run, size_t w)
{
	struct mu_keys_queue *q = &run->queues[w];
	struct mu_keys_gradient *g = q->first;

	q->first = g->next;
	if (!q->first)
		run->n_here--;
	return g;
}

static void append(struct mu_keys_run *run, size_t w, struct mu_keys_gradient *g)
{
	struct mu_keys_queue *q = &run->queues[w];

	g->next = NULL;
	if (q->first)
		q->last->next = g;
	else
		q->first = g;
	q->last = g;
	if (q->first == g)
		run->n_here++;
	q->pushed++;
}

/* The next gradient of a worker that came whole; NULL: it came as rows. */
static const struct mu_source *whole(const struct mu_keys_run *run, size_t w)
{
	const struct mu_keys_gradient *g = run->queues[w].first;

	return g->rows ? NULL : &g->source;
}

/* A word for what mu_keys_set_compression was told. */
static const char *coding_text(const struct mu_source *s, char text[48])
{
	if (s->coding == MU_CODING_DENSE)
		return "none";
	snprintf(text, 48, "%s with threshold %g", s->coding == MU_CODING_2BIT ? "2bit" : "1bit",
		 (double)s->threshold);
	return text;
}

/* Workers that compress differently would give a sum of nothing that one can name. */
static enum mu_status check_codings(const struct mu_keys_server *s, const struct mu_keys_run *run)
{
	enum mu_status st = MU_OK;
	const struct mu_source *first = NULL;
	size_t v = 0;
	char a[48], b[48];

	for (size_t w = 0; w < s->n_workers; w++) {
		const struct mu_source *x = whole(run, w);

		if (!first && x) {
			first = x;
			v = w;
		}
		if (x && (x->coding != first->coding ||
			  (x->coding != MU_CODING_DENSE && x->threshold != first->threshold)))
			MU_FAIL(MU_ERR_ARGUMENT,
				"compression is %s on worker %zu (rank %d), and %s on worker %zu "
				"(rank %d): all call mu_keys_set_compression alike, after the same "
				"push",
				coding_text(x, a), w, s->conns[w].rank, coding_text(first, b), v,
				s->conns[v].rank);
	}
out:
	return st;
}

/* The update of a round, or by the push of one worker. */
static enum mu_status sum(struct mu_keys_server *s, struct mu_keys_run *run, size_t n)
{
	enum mu_status st = MU_OK;

	if (s->keys->kind.synchronous)
		MU_TRY(check_codings(s, run));
	MU_TRY(mu_owner_update(&s->owner, &run->owned, s->sources, n));
out:
	return st;
}

/* One update by the gradients of some workers, [from, to). Failures are the store's. */
static enum mu_status update(struct mu_keys_server *s, struct mu_keys_run *run, size_t from,
			     size_t to)
{
	enum mu_status st = MU_OK;
	enum mu_status result;

	for (size_t w = from; w < to; w++)
		s->sources[w - from] = run->queues[w].first->source;
	MU_TRY(mu_keys_sends_end(s, run));
	mu_clock_start(MU_CLOCK_UPDATE);
	result = sum(s, run, to - from);
	mu_clock_stop(MU_CLOCK_UPDATE);
	for (size_t w = from; w < to; w++)
		mu_pool_give(&s->keys->pool, pop(run, w));
	if (result != MU_OK) {
		char text[KEYS_TEXT_BYTES];

		snprintf(text, sizeof text, "update of key %s on server %d (rank %d): %s",
			 mu_key_text(run->owned.key, run->owned.name).text, s->keys->members->index,
			 s->keys->members->rank, mu_trace_message());
		MU_TRY(mu_keys_fail(s, result, text));
	}
out:
	return st;
}

/* Close what rounds can be closed, and answer who waits for the last of them. */
static enum mu_status close_rounds(struct mu_keys_server *s, struct mu_keys_run *run)
{
	enum mu_status st = MU_OK;

	while (s->status == MU_OK && run->n_here == s->n_workers) {
		MU_TRY(update(s, run, 0, s->n_workers));
		run->owned.rounds++;
	}
	for (size_t w = 0; s->status == MU_OK && w < s->n_workers; w++) {
		struct mu_keys_queue *q = &run->queues[w];

		if (q->waiting && q->pushed == run->owned.rounds) {
			size_t item = q->waiting - 1;

			q->waiting = 0;
			MU_TRY(mu_keys_ready(s, &s->conns[w], item));
		}
	}
out:
	return st;
}

static enum mu_status take_gradient(struct mu_keys_server *s, struct mu_keys_run *run, size_t w,
				    const struct keys_item *item, struct mu_keys_gradient *g)
{
	enum mu_status st = MU_OK;
	struct mu_keys_gradient *expanded = NULL;

	if ((enum mu_coding)item->coding == MU_CODING_ROWS) {
		MU_TRY(mu_pool_take(&s->keys->pool, (void **)&expanded,
				    sizeof *expanded + run->owned.n * sizeof(float),
				    "rows of a push"));
		mu_coding_expand(&run->owned, g + 1, item->n_rows, item->row_length,
				 (float *)(void *)(expanded + 1));
		mu_pool_give(&s->keys->pool, g);
		g = expanded;
		g->source = (struct mu_source){g + 1, MU_CODING_DENSE, MU_FLOAT32, 0};
		g->rows = true;
	} else {
		g->source = (struct mu_source){g + 1, (enum mu_coding)item->coding,
					       run->owned.dtype, item->threshold};
		g->rows = false;
	}
	append(run, w, g);
	if (!s->keys->kind.synchronous) {
		MU_TRY(update(s, run, w, w + 1));
		run->owned.rounds++;
	}
out:
	return st;
}

/* Who waits for a worker that has finished waits for ever. */
static enum mu_status check_finished(struct mu_keys_server *s, const struct mu_keys_run *run,
				     size_t w)
{
	enum mu_status st = MU_OK;
	char text[KEYS_TEXT_BYTES];

	for (size_t v = 0; v < s->n_workers; v++) {
		if (!s->conns[v].finished || run->queues[v].pushed >= run->queues[w].pushed)
			continue;
		snprintf(text, sizeof text,
			 "key %s: worker %zu (rank %d) waits for round %llu, and worker %zu (rank "
			 "%d) has finished after %llu pushes of it",
			 mu_key_text(run->owned.key, run->owned.name).text, w, s->conns[w].rank,
			 (unsigned long long)run->queues[w].pushed, v, s->conns[v].rank,
			 (unsigned long long)run->queues[v].pushed);
		MU_TRY(mu_keys_fail(s, MU_ERR_ARGUMENT, text));
		break;
	}
out:
	return st;
}

enum mu_status mu_keys_finished(struct mu_keys_server *s)
{
	enum mu_status st = MU_OK;

	for (size_t w = 0; w < s->n_workers; w++) {
		const struct mu_keys_conn *c = &s->conns[w];

		for (size_t i = 0; c->busy && i < c->n_items && s->status == MU_OK; i++) {
			const struct mu_keys_run *run = s->runs[c->items[i].part];

			if (run->queues[w].waiting)
				MU_TRY(check_finished(s, run, w));
		}
	}
out:
	return st;
}

/* Item i wants a value: now, or after a round that is still open. */
static enum mu_status want(struct mu_keys_server *s, struct mu_keys_conn *c, size_t i)
{
	enum mu_status st = MU_OK;
	struct mu_keys_run *run = s->runs[c->items[i].part];
	const enum mu_coding coding = (enum mu_coding)c->items[i].coding;
	struct mu_keys_queue *q = &run->queues[c->worker];

	/* Who asks for a round that nobody can close gets the error instead. */
	if (coding == MU_CODING_ROUNDS_GET && q->pushed > run->owned.rounds) {
		if (c->items[i].n_rows > 0)
			q->asked = q->pushed;
		MU_TRY(check_finished(s, run, c->worker));
		if (s->status != MU_OK)
			goto out;
	}
	if (!s->keys->kind.synchronous || q->pushed == run->owned.rounds ||
	    coding == MU_CODING_STATE_GET || coding == MU_CODING_UPDATES_GET ||
	    coding == MU_CODING_WEIGHTS_GET || coding == MU_CODING_ROUNDS_GET) {
		MU_TRY(mu_keys_ready(s, c, i));
		goto out;
	}
	q->waiting = i + 1;
	MU_TRY(check_finished(s, run, c->worker));
out:
	return st;
}

enum mu_status mu_keys_accept(struct mu_keys_server *s, struct mu_keys_conn *c, size_t i,
			      struct mu_keys_gradient *data)
{
	enum mu_status st = MU_OK;
	const struct keys_item *item = &c->items[i];
	const enum mu_coding coding = (enum mu_coding)item->coding;
	struct mu_keys_run *run = s->runs[item->part];
	bool keep = false;

	if (mu_traffic_messages(&s->keys->traffic))
		mu_keys_traffic_item(s, c, i, MU_TRAFFIC_IN, item->nbytes);
	if (s->status != MU_OK)
		goto out;
	if (mu_coding_is_push(coding)) {
		keep = true;
		MU_TRY(take_gradient(s, run, c->worker, item, data));
	} else if (coding == MU_CODING_ROW_IDS) {
		keep = true;
		c->data[i] = data;
	} else if (data) {
		struct mu_transfer x = {.coding = coding, .data = data + 1, .n_rows = item->n_rows};
		enum mu_status result = mu_coding_put(&s->owner, &run->owned, &x);

		if (result != MU_OK)
			MU_TRY(mu_keys_fail(s, result, mu_trace_message()));
	}
	if (item->wanted && s->status == MU_OK)
		MU_TRY(want(s, c, i));
	if (mu_coding_is_push(coding) && s->keys->kind.synchronous)
		MU_TRY(close_rounds(s, run));
out:
	if (!keep)
		mu_pool_give(&s->keys->pool, data);
	return st;
}
