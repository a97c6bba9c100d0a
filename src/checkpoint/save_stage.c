/* SPDX-License-Identifier: Apache-2.0 */
/* A save from stage to stage, beside the training: written, agreed on, given its name. */
#include <unistd.h>

#include "save_state.h"

#define TELL_SECONDS 30.0

static enum mu_status write_pieces(void *context)
{
	const struct checkpoint_saver *s = context;

	return mu_checkpoint_pieces_write(s->written, s->pieces, s->n_pieces);
}

enum mu_status mu_checkpoint_saver_write(struct checkpoint_saver *s)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_checkpoint_writer_begin(&s->writer, write_pieces, s));
	s->stage = CHECKPOINT_SAVE_WRITE;
out:
	return st;
}

static enum mu_status commit(void *context)
{
	enum mu_status st = MU_OK;
	struct checkpoint_saver *s = context;

	MU_TRY(mu_replace_commit(&s->replace));
	MU_TRY(mu_checkpoint_files_settle(s->e->conf, s->path));
out:
	return st;
}

/* This worker's part is on the disk, or cannot be: the lowest worker that failed is to tell. */
static enum mu_status begin_agreement(struct checkpoint_saver *s)
{
	enum mu_status st = MU_OK;
	const struct mu_topology *t = s->e->topology;

	st = mu_checkpoint_writer_end(s->writer);
	s->writer = NULL;
	s->message[0] = '\0';
	if (st != MU_OK) {
		snprintf(s->message, sizeof s->message, "%s", mu_trace_message());
		mu_trace_clear();
	}
	s->lowest = st != MU_OK ? t->index : t->num_workers;
	s->stage = CHECKPOINT_SAVE_AGREE;
	st = MU_OK;
	if (!s->alone)
		MU_TRY(mu_vote_begin(&s->vote, s->lowest));
out:
	return st;
}

static enum mu_status end_agreement(struct checkpoint_saver *s)
{
	enum mu_status st = MU_OK;
	const struct mu_topology *t = s->e->topology;
	bool done = true;

	if (!s->alone) {
		MU_TRY(mu_vote_test(&s->vote, &done));
		s->lowest = s->vote.least;
	}
	if (!done)
		goto out;
	s->stage = CHECKPOINT_SAVE_NONE;
	if (s->lowest < t->num_workers) {
		unlink(s->written); /* the job may end before worker 0 comes to it */
		mu_replace_release(&s->replace);
		if (s->lowest == t->index)
			MU_FAIL(MU_ERR_IO, "checkpoint: %s", s->message);
		/* It may need this worker's part of a step before it looks: go on until the end. */
		s->stage = CHECKPOINT_SAVE_FAILED;
		goto out;
	}
	if (t->index != 0)
		goto out;
	s->stage = CHECKPOINT_SAVE_COMMIT;
	MU_TRY(mu_checkpoint_writer_begin(&s->writer, commit, s));
out:
	return st;
}

static enum mu_status end_commit(struct checkpoint_saver *s)
{
	enum mu_status st = MU_OK;

	st = mu_checkpoint_writer_end(s->writer);
	s->writer = NULL;
	s->stage = CHECKPOINT_SAVE_NONE;
	mu_replace_release(&s->replace);
	MU_TRY(st);
	mu_log_info("Saved checkpoint to \"%s\"", s->path);
	snprintf(s->back->path, sizeof s->back->path, "%s", s->path);
	mu_log_info("checkpoint: %.3f MB; training waited %.3f s, complete after %.3f s",
		    (double)s->n_bytes * 1e-6, s->waited, mu_now() - s->started);
out:
	return st;
}

enum mu_status mu_checkpoint_saver_poll(struct checkpoint_saver *s)
{
	enum mu_status st = MU_OK;

	if (!s || s->stage == CHECKPOINT_SAVE_NONE)
		goto out;
	if (s->stage == CHECKPOINT_SAVE_WRITE && mu_checkpoint_writer_done(s->writer))
		MU_TRY(begin_agreement(s));
	if (s->stage == CHECKPOINT_SAVE_AGREE)
		MU_TRY(end_agreement(s));
	if (s->stage == CHECKPOINT_SAVE_COMMIT && mu_checkpoint_writer_done(s->writer))
		MU_TRY(end_commit(s));
out:
	return st;
}

/* Who has written and votes waits for those who have not; which they are is not known. */
static void await_votes(const void *context, struct mu_awaited *a)
{
	const struct mu_topology *t = context;

	snprintf(a->what, sizeof a->what, "the other workers' parts of a checkpoint");
	for (int w = 0; w < t->num_workers; w++)
		if (w != t->index)
			mu_awaited_add(a, t->worker_ranks[w]);
}

/* A disk may take its time, other workers the time that waits may take. */
static enum mu_status finish_nap(const struct checkpoint_saver *s, struct mu_waiter *disk,
				 struct mu_waiter *votes)
{
	const struct mu_topology *t = s->e->topology;

	if (s->stage != CHECKPOINT_SAVE_AGREE && s->stage != CHECKPOINT_SAVE_FAILED) {
		mu_waiter_nap(disk);
		return MU_OK;
	}
	if (votes->since == 0)
		mu_waiter_init(votes, t);
	mu_waiter_nap(votes);
	return mu_waiter_check(votes, await_votes, t);
}

enum mu_status mu_checkpoint_saver_finish(struct checkpoint_saver *s)
{
	enum mu_status st = MU_OK;
	struct mu_waiter disk, votes = {.since = 0};
	double told = mu_now();

	mu_waiter_init(&disk, NULL);
	while (s && s->stage != CHECKPOINT_SAVE_NONE) {
		MU_TRY(mu_checkpoint_saver_poll(s));
		MU_TRY(mu_kv_poll(s->e->kv)); /* others may need what is under way here */
		MU_TRY(finish_nap(s, &disk, &votes));
		if (mu_now() - told < TELL_SECONDS)
			continue;
		told = mu_now();
		mu_log_warn("worker %d has waited %.0f s for the checkpoint %s to be on the disk",
			    s->e->topology->index, told - s->started, s->path);
	}
out:
	return st;
}

enum mu_status mu_checkpoint_saver_finish_shared(struct checkpoint_saver *s)
{
	return s && !s->e->store->synchronous && !s->alone ? mu_checkpoint_saver_finish(s) : MU_OK;
}
