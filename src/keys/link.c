/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a worker to and from the owners of keys, and waiting for them.
 */
#include <stdio.h>
#include <string.h>

#include "comm/requests.h"
#include "link.h"

/* ---- waiting ---- */

/* What a worker waits for: context of the functions below. */
struct waiting {
	struct mu_keys *keys;
	const char *what;
	const struct mu_key *key; /* whose round is open */
};

/* Whoever completes some requests; and workers, if this rank owns what they wait for. */
static void await_somebody(const void *context, struct mu_awaited *a)
{
	const struct waiting *x = context;

	snprintf(a->what, sizeof a->what, "%s", x->what);
	a->somebody = true;
}

/* The first key of the present call on an owner; NULL if it has none there. */
static const struct mu_key *key_on(const struct mu_keys *keys, size_t owner)
{
	for (size_t i = 0; i < keys->call.n; i++) {
		const struct mu_key_part *part = &keys->table.parts[keys->call.transfers[i].part];

		if ((size_t)part->owner == owner)
			return &keys->table.keys[part->key];
	}
	return NULL;
}

/* Owners that have not answered. */
static void await_heads(const void *context, struct mu_awaited *a)
{
	const struct waiting *x = context;
	const struct mu_keys_links *w = x->keys->end;

	snprintf(a->what, sizeof a->what, "%s", x->what);
	a->patient = w->finishing; /* until the last worker is done, whenever that is */
	for (size_t o = 0; o < (size_t)x->keys->n_owners; o++) {
		const struct mu_key *key = key_on(x->keys, o);

		if (w->heads[o] == MPI_REQUEST_NULL)
			continue;
		if (a->n == 0 && key)
			snprintf(a->what, sizeof a->what, "%.60s (key %.60s)", x->what,
				 mu_key_text(key->number, key->name).text);
		mu_awaited_add(a, w->links[o].rank);
	}
	/* An owner waits for all pushes of a key. */
	if (x->keys->server)
		mu_keys_late_workers(x->keys->server, a);
}

/* What a worker that leaves tells the others, who may own nothing. */
static enum mu_status hear_left(struct mu_keys *keys)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = keys->end;
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Status from;
	char text[KEYS_TEXT_BYTES];
	int found = 0;

	MU_MPI(MPI_Iprobe(MPI_ANY_SOURCE, KEYS_TAG_LEFT, keys->comm, &found, &from));
	if (!found)
		goto out;
	MU_MPI(MPI_Irecv(text, KEYS_TEXT_BYTES, MPI_BYTE, from.MPI_SOURCE, KEYS_TAG_LEFT,
			 keys->comm, &request));
	MU_TRY(mu_wait_woken(keys->members, 1, &request, "the words of a worker that leaves"));
	w->left = true;
	if (w->status == MU_OK) {
		w->status = MU_ERR_ARGUMENT;
		memcpy(w->failure, text, sizeof w->failure);
	}
out:
	return st;
}

enum mu_status mu_keys_link_check_left(struct mu_keys *keys)
{
	enum mu_status st = MU_OK;
	const struct mu_keys_links *w = keys->end;

	if (keys->server) {
		if (keys->server->left)
			MU_FAIL(keys->server->status, "%s", keys->server->failure);
		goto out;
	}
	if (!w->left)
		MU_TRY(hear_left(keys));
	if (w->left)
		MU_FAIL(w->status, "%s", w->failure);
out:
	return st;
}

/* After a poll that found nothing. A rank that owns keys, of any store, serves while it waits. */
static enum mu_status idle(struct mu_keys *keys, struct mu_waiter *waiter, mu_awaited_fn *fn,
			   const void *context)
{
	enum mu_status st = MU_OK;
	int n = 0;

	MU_TRY(mu_keys_servers_poll(&n));
	MU_TRY(mu_keys_link_check_left(keys));
	if (n > 0) {
		mu_waiter_reset(waiter);
		goto out;
	}
	mu_waiter_nap(waiter);
	MU_TRY(mu_waiter_check(waiter, fn, context));
out:
	return st;
}

/* The owners of a key whose round is open, and if this rank is one, the workers that they await. */
static void await_round(const void *context, struct mu_awaited *a)
{
	const struct waiting *x = context;
	const struct mu_keys *keys = x->keys;

	snprintf(a->what, sizeof a->what, "a round of key %.100s to close",
		 mu_key_text(x->key->number, x->key->name).text);
	for (size_t p = x->key->first_part; p < x->key->first_part + x->key->n_parts; p++)
		mu_awaited_add(a, keys->owner_ranks[keys->table.parts[p].owner]);
	if (keys->server)
		mu_keys_late_workers(keys->server, a);
}

enum mu_status mu_keys_link_nap(struct mu_keys *keys, struct mu_waiter *waiter,
				const struct mu_key *key)
{
	const struct waiting waiting = {.keys = keys, .key = key};

	return idle(keys, waiter, await_round, &waiting);
}

enum mu_status mu_keys_link_wait(struct mu_keys *keys, size_t n, MPI_Request *requests,
				 const char *what)
{
	enum mu_status st = MU_OK;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */
	const struct waiting waiting = {.keys = keys, .what = what};
	struct mu_waiter waiter;
	int done = 0;

	mu_waiter_init(&waiter, keys->members);
	for (;;) {
		MU_MPI(MPI_Testall(mu_count(n), requests, &done, ignore));
		if (done)
			break;
		MU_TRY(idle(keys, &waiter, await_somebody, &waiting));
	}
out:
	return st;
}

enum mu_status mu_keys_link_meet(struct mu_keys *keys, const struct mu_meeting *meeting,
				 MPI_Request *request)
{
	enum mu_status st = MU_OK;
	struct mu_waiter waiter;
	int done = 0;

	mu_waiter_init(&waiter, keys->members);
	mu_meeting_enter(meeting, &waiter);
	for (;;) {
		MU_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE));
		if (done)
			break;
		MU_TRY(idle(keys, &waiter, mu_awaited_meeting, meeting));
	}
out:
	if (st != MU_OK)
		mu_memory_keep(); /* of the collective */
	return st;
}

enum mu_status mu_keys_link_serve(struct mu_keys *keys)
{
	enum mu_status st = MU_OK;
	struct mu_waiter waiter;

	mu_waiter_init(&waiter, keys->members);
	while (!mu_keys_server_is_done(keys->server))
		MU_TRY(idle(keys, &waiter, mu_keys_late_workers, keys->server));
	MU_TRY(mu_keys_server_end(keys->server));
out:
	return st;
}

/* ---- requests of a call ---- */

enum mu_status mu_keys_link_send(struct mu_keys *keys, const void *data, size_t nbytes, int rank,
				 int tag)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = keys->end;
	const char *p = data;

	for (size_t n; nbytes > 0; nbytes -= n, p += n) {
		n = nbytes < KEYS_MESSAGE_BYTES ? nbytes : KEYS_MESSAGE_BYTES;
		MU_TRY(mu_keys_grow((void **)&w->sends, w->n_sends, &w->max_sends, sizeof *w->sends,
				    "messages of a call"));
		MU_MPI(MPI_Isend(p, mu_count(n), MPI_BYTE, rank, tag, keys->comm,
				 &w->sends[w->n_sends]));
		w->n_sends++;
	}
out:
	return st;
}

enum mu_status mu_keys_link_receive(struct mu_keys *keys, void *data, size_t nbytes,
				    struct mu_keys_link_note note)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = keys->end;
	const int tag =
		note.item == KEYS_MAX_ITEMS ? KEYS_TAG_VALUES : KEYS_TAG_VALUE + (int)note.item;
	char *p = data;

	for (size_t n; nbytes > 0; nbytes -= n, p += n) {
		n = nbytes < KEYS_MESSAGE_BYTES ? nbytes : KEYS_MESSAGE_BYTES;
		MU_TRY(mu_keys_grow((void **)&w->receives, w->n_receives, &w->max_receives,
				    sizeof *w->receives, "messages of a call"));
		MU_TRY(mu_keys_grow((void **)&w->notes, w->n_receives, &w->max_notes,
				    sizeof *w->notes, "messages of a call"));
		MU_MPI(MPI_Irecv(p, mu_count(n), MPI_BYTE, w->links[note.owner].rank, tag,
				 keys->comm, &w->receives[w->n_receives]));
		w->notes[w->n_receives++] = note;
	}
out:
	return st;
}

enum mu_status mu_keys_link_receive_head(struct mu_keys *keys, size_t owner)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = keys->end;
	struct mu_keys_link *l = &w->links[owner];

	l->answered = true;
	MU_MPI(MPI_Irecv(l->answer, mu_count(KEYS_HEAD_BYTES), MPI_BYTE, l->rank, KEYS_TAG_ANSWER,
			 keys->comm, &w->heads[owner]));
out:
	return st;
}

/* ---- answers ---- */

/* The store has failed: this owner needs to know. */
static enum mu_status pass_on(struct mu_keys *keys, struct mu_keys_link *l)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = keys->end;
	struct keys_head *head = (struct keys_head *)(void *)l->head;

	*head = (struct keys_head){
		.op = KEYS_FAIL, .status = (uint32_t)w->status, .body_bytes = sizeof w->failure};
	memcpy(head + 1, w->failure, sizeof w->failure);
	MU_TRY(mu_keys_link_send(keys, head, sizeof *head + sizeof w->failure, l->rank,
				 KEYS_TAG_HEAD));
	mu_wake(keys->members, l->rank);
out:
	return st;
}

/* An owner's answer is an error. The others have to answer too, or somebody waits for ever. */
static enum mu_status take_failure(struct mu_keys *keys, struct mu_keys_link *from)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = keys->end;
	const struct keys_answer *answer = (const struct keys_answer *)(void *)from->answer;

	if (w->status != MU_OK)
		goto out;
	w->status = (enum mu_status)answer->status;
	w->left = answer->left;
	snprintf(w->failure, sizeof w->failure, "%s", (const char *)(answer + 1));
	for (int o = 0; !w->finishing && o < keys->n_owners; o++) {
		if (&w->links[o] != from)
			MU_TRY(pass_on(keys, &w->links[o]));
	}
out:
	return st;
}

enum mu_status mu_keys_link_wait_heads(struct mu_keys *keys, int n, const char *what)
{
	enum mu_status st = MU_OK;
	struct mu_keys_links *w = keys->end;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */
	const struct waiting waiting = {.keys = keys, .what = what};
	struct mu_waiter waiter;

	mu_waiter_init(&waiter, keys->members);
	while (n > 0) {
		int found = 0;

		MU_MPI(MPI_Testsome(keys->n_owners, w->heads, &found, w->completed, ignore));
		for (int i = 0; i < found; i++) {
			struct mu_keys_link *l = &w->links[w->completed[i]];

			n--;
			if (((struct keys_answer *)(void *)l->answer)->status != MU_OK)
				MU_TRY(take_failure(keys, l));
		}
		if (found > 0)
			mu_waiter_reset(&waiter);
		else
			MU_TRY(idle(keys, &waiter, await_heads, &waiting));
	}
out:
	return st;
}

/* Does this owner still send, or has it sent, item i of the call as a message of its own? */
static bool is_sent(const struct mu_keys_link *l, size_t i)
{
	const struct keys_answer *answer = (const struct keys_answer *)(void *)l->answer;
	const char *sent = (const char *)(answer + 1) + KEYS_TEXT_BYTES;

	return answer->status == MU_OK || sent[i];
}

enum mu_status mu_keys_link_take_back(struct mu_keys_links *w)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < w->n_receives; i++) {
		if (!is_sent(&w->links[w->notes[i].owner], w->notes[i].item) &&
		    w->receives[i] != MPI_REQUEST_NULL)
			MU_MPI(MPI_Cancel(&w->receives[i]));
	}
out:
	return st;
}

void mu_keys_link_failed(struct mu_keys *keys, const struct mu_keys_links *w, enum mu_status st)
{
	struct mu_keys_links *end = keys->end;
	const bool in_flight = !mu_requests_are_complete(w->heads, (size_t)keys->n_owners) ||
			       !mu_requests_are_complete(w->sends, w->n_sends) ||
			       !mu_requests_are_complete(w->receives, w->n_receives);

	if (in_flight)
		mu_memory_keep();
	if (end->status != MU_OK || !(in_flight || w->n_sends > 0))
		return;
	end->status = st;
	snprintf(end->failure, sizeof end->failure, "%s", mu_trace_message());
}

void mu_keys_link_leave(struct mu_keys *keys)
{
	struct mu_keys_links *w = keys->end;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */
	const struct mu_members *m = keys->members;
	const double end = mu_now() + 1;
	char who[128];
	int done = 0;

	w->n_sends = 0;
	for (int o = 0; o < keys->n_owners; o++) {
		struct keys_head *head = (struct keys_head *)(void *)w->links[o].head;
		char *text = (char *)(head + 1);

		if (w->links[o].rank == m->rank)
			continue;
		*head = (struct keys_head){.op = KEYS_LEAVE,
					   .status = MU_ERR_ARGUMENT,
					   .body_bytes = KEYS_TEXT_BYTES};
		snprintf(text, KEYS_TEXT_BYTES,
			 "%s has freed the store of keys without "
			 "mu_keys_finish",
			 mu_members_who(m, who, sizeof who));
		if (mu_keys_link_send(keys, head, sizeof *head + KEYS_TEXT_BYTES, w->links[o].rank,
				      KEYS_TAG_HEAD) != MU_OK)
			break;
		mu_wake(m, w->links[o].rank);
	}
	/* Workers own nothing where there are servers. */
	for (int o = 0; keys->kind.has_servers && o < m->num_workers; o++) {
		const char *text = w->links[0].head + sizeof(struct keys_head);

		if (m->worker_ranks[o] == m->rank)
			continue;
		if (mu_keys_link_send(keys, text, KEYS_TEXT_BYTES, m->worker_ranks[o],
				      KEYS_TAG_LEFT) != MU_OK)
			break;
		mu_wake(m, m->worker_ranks[o]);
	}
	while (!done && mu_now() < end &&
	       MPI_Testall(mu_count(w->n_sends), w->sends, &done, ignore) == MPI_SUCCESS)
		;
	if (!done)
		mu_memory_keep();
	mu_trace_clear();
	w->left = true; /* nobody may receive these messages: close_worker */
}
