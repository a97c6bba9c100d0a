/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saves concurrent with training: when one is due, and its way from the copy in memory through the
 * workers' threads and their vote to the rename of the file.
 */
#include "saver.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "snapshot.h"

#define WARN_SECONDS 30.0

/* The stages of a save, in order. */
enum stage {
	NONE,
	WRITE,  /* this worker's thread writes */
	AGREE,  /* this worker has written; have all others? */
	COMMIT, /* worker 0: all have */
	FAILED, /* another worker could not write, and ends the job as soon as it knows; where
		   the run goes on, no worker ends it */
};

struct checkpoint_saver {
	const struct mu_engine *e;
	struct checkpoint_rollback *back; /* its path: the newest complete file */
	enum stage stage;
	struct checkpoint_snapshot snapshot;
	struct checkpoint_new_file file;
	bool inside; /* the file is of a step inside an epoch */
	struct checkpoint_writer writer;
	struct mu_vote vote;                 /* of the workers: the lowest that failed, if any */
	size_t best_epoch;                   /* of the position that is saved */
	int lowest;                          /* worker that failed; INT_MAX: none */
	enum mu_status error;                /* of the thread */
	char message[CHECKPOINT_PATH + 256]; /* its message */
	double started, waited;              /* last save: its start, seconds training waited */
	double last;                         /* when the last save, or the run, began */
	bool late;                           /* --save-minutes have passed for worker 0 */
	bool wanted;                         /* a save is due at the end of this update */
	bool refuses;                        /* this worker's part: see saver.h */
	bool survives; /* the run goes on after a save of all workers that fails */
};

enum mu_status mu_checkpoint_saver_open(struct checkpoint_saver **out, const struct mu_engine *e,
					struct checkpoint_rollback *back, bool survives)
{
	enum mu_status st = MU_OK;
	struct checkpoint_saver *s = NULL;

	*out = NULL;
	if (!e->conf->model_prefix)
		goto out;
	MU_TRY(MU_ALLOC(s, 1, "saving of checkpoints"));
	*out = s;
	s->e = s->file.e = e;
	s->back = back;
	s->survives = survives;
	s->last = mu_now();
	MU_TRY(mu_vote_open(&s->vote, e->members));
out:
	return st;
}

void mu_checkpoint_saver_close(struct checkpoint_saver *s)
{
	if (!s)
		return;
	mu_trace_hold(true); /* another error ends the run if the writer is still at work */
	mu_checkpoint_writer_end(&s->writer);
	mu_trace_hold(false);
	mu_replace_release(&s->file.replace);
	mu_vote_close(&s->vote);
	mu_checkpoint_snapshot_release(&s->snapshot);
	mu_free(s);
}

/* ---- when ---- */

/* --save-minutes, by worker 0's clock. */
static bool is_late(const struct checkpoint_saver *s)
{
	const double minutes = s->e->conf->save_minutes;

	return minutes > 0 && mu_now() - s->last >= 60 * minutes;
}

enum mu_status mu_checkpoint_saver_check_minutes(struct checkpoint_saver *s)
{
	enum mu_status st = MU_OK;

	if (!s || s->e->conf->save_minutes <= 0)
		goto out;
	s->late = is_late(s);
	MU_TRY(mu_peers_share(s->e->members, &s->late, sizeof s->late));
out:
	return st;
}

bool mu_checkpoint_saver_due(struct checkpoint_saver *s, size_t done)
{
	const struct conf *v = s ? s->e->conf : NULL;

	if (!s || done >= s->e->steps)
		return false;
	if (!s->e->store->synchronous) {
		if (s->e->members->index != 0)
			return false;
		s->late = is_late(s);
	}
	/* Gradients of an incomplete update are only in memory: wait for its end. */
	s->wanted |= s->late || (v->save_steps > 0 && done % (size_t)v->save_steps == 0);
	if (!s->wanted || done % (size_t)v->update_period != 0)
		return false;
	/* Others may need this worker's updates before they vote: do not wait for them here. */
	if (!s->e->store->synchronous && s->stage != NONE && !s->file.alone)
		return false;
	s->late = s->wanted = false;
	return true;
}

/* ---- the start of a save ---- */

/* Does the run go on, should this save fail? */
static bool goes_on(const struct checkpoint_saver *s)
{
	return s->survives && !s->file.alone;
}

void mu_checkpoint_saver_refuse(struct checkpoint_saver *s)
{
	if (s)
		s->refuses = true;
}

/* The save before is complete, and no worker refuses this one. */
static enum mu_status agree_to_save(struct checkpoint_saver *s)
{
	enum mu_status st = mu_checkpoint_saver_finish(s), mine = st;
	long refused = s->refuses || mine != MU_OK;

	if (!goes_on(s))
		return mine;
	MU_TRY(mu_peers_reduce(s->e->members, &refused, 1, MPI_MAX));
	if (refused && mine == MU_OK)
		MU_FAIL(MU_ERR_PEER, "checkpoint: a worker goes back to an older one");
out:
	return mine != MU_OK ? mine : st;
}

static enum mu_status write_pieces(void *context)
{
	const struct checkpoint_saver *s = context;

	return mu_checkpoint_pieces_write(s->file.written, s->snapshot.pieces,
					  s->snapshot.n_pieces);
}

enum mu_status mu_checkpoint_save(struct checkpoint_saver *s,
				  const struct checkpoint_position *position, bool alone)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = s->e;
	struct checkpoint_position at = *position;
	struct checkpoint_arrays arrays = {.n = 0};

	MU_TRY(agree_to_save(s));
	s->started = s->last = mu_now();
	s->file.alone = alone;
	s->inside = at.step > 0;
	s->best_epoch = at.best.epoch;
	mu_checkpoint_path(e->conf->model_prefix, at.epoch, at.step, s->file.path,
			   sizeof s->file.path);
	MU_TRY(mu_kv_step_end(e->kv));
	MU_TRY(mu_checkpoint_arrays_make(e, &arrays, !alone));
	at.workers = (size_t)arrays.workers;
	at.batch = e->team.n * e->train->config.batch;
	MU_TRY(mu_checkpoint_snapshot_copy(&s->snapshot, e, &arrays, &at, alone));
	MU_TRY(mu_checkpoint_new_file_create(&s->file, &arrays, &at, &s->snapshot));
	mu_checkpoint_writer_begin(&s->writer, write_pieces, s);
	s->stage = WRITE;
	if (!e->conf->save_async)
		MU_TRY(mu_checkpoint_saver_finish(s));
	s->waited = mu_now() - s->started;
out:
	if (st != MU_OK && s->stage == NONE)
		mu_replace_release(&s->file.replace);
	mu_checkpoint_arrays_release(&arrays);
	return st;
}

/* ---- its progress ---- */

/* This worker's part is on disk, or has failed: the lowest worker that failed reports. */
static enum mu_status begin_vote(struct checkpoint_saver *s)
{
	enum mu_status st = MU_OK;

	st = mu_checkpoint_writer_end(&s->writer);
	s->message[0] = '\0';
	if (st != MU_OK) {
		snprintf(s->message, sizeof s->message, "%s", mu_trace_message());
		mu_trace_clear();
	}
	s->error = st;
	s->lowest = st != MU_OK ? s->e->members->index : INT_MAX;
	s->stage = AGREE;
	st = MU_OK;
	if (!s->file.alone)
		MU_TRY(mu_vote_begin(&s->vote, s->lowest));
out:
	return st;
}

/* In worker 0's thread. */
static enum mu_status commit(void *context)
{
	enum mu_status st = MU_OK;
	struct checkpoint_saver *s = context;

	MU_TRY(mu_replace_commit(&s->file.replace));
	MU_TRY(mu_checkpoint_files_settle(s->e->conf, s->file.path, s->best_epoch));
out:
	return st;
}

static enum mu_status end_vote(struct checkpoint_saver *s)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = s->e->members;
	bool done = true;

	if (!s->file.alone) {
		MU_TRY(mu_vote_test(&s->vote, &done));
		s->lowest = s->vote.least;
	}
	if (!done)
		goto out;
	s->stage = NONE;
	if (s->lowest < INT_MAX) {
		unlink(s->file.written); /* the job may end before worker 0 removes it */
		mu_replace_release(&s->file.replace);
		if (s->lowest == m->index)
			MU_FAIL(s->error, "checkpoint: %s", s->message);
		if (goes_on(s))
			MU_FAIL(MU_ERR_PEER,
				"checkpoint: worker %d could not write its part", s->lowest);
		/* That worker may need this one's part of a step before it ends the job. */
		s->stage = FAILED;
		goto out;
	}
	if (m->index != 0)
		goto out;
	mu_checkpoint_writer_begin(&s->writer, commit, s);
	s->stage = COMMIT;
out:
	return st;
}

static enum mu_status end_commit(struct checkpoint_saver *s)
{
	enum mu_status st = MU_OK;

	st = mu_checkpoint_writer_end(&s->writer);
	s->stage = NONE;
	mu_replace_release(&s->file.replace);
	MU_TRY(st);
	/* The plain log names an epoch's file in its line. */
	mu_log_in(s->inside ? MU_LOG_ANY : MU_LOG_MXNET, MU_LOG_INFO, "Saved checkpoint to \"%s\"",
		  s->file.path);
	if (strcmp(s->back->path, s->file.path) != 0)
		strcpy(s->back->before, s->back->path);
	snprintf(s->back->path, sizeof s->back->path, "%s", s->file.path);
	mu_log_detail("checkpoint: %.3f MB; training waited %.3f s, complete after %.3f s",
		      (double)s->file.n_bytes * 1e-6, s->waited, mu_now() - s->started);
out:
	return st;
}

enum mu_status mu_checkpoint_saver_poll(struct checkpoint_saver *s)
{
	enum mu_status st = MU_OK;

	if (!s || s->stage == NONE)
		goto out;
	if (s->stage == WRITE && mu_checkpoint_writer_done(&s->writer))
		MU_TRY(begin_vote(s));
	if (s->stage == AGREE)
		MU_TRY(end_vote(s));
	if (s->stage == COMMIT && mu_checkpoint_writer_done(&s->writer))
		MU_TRY(end_commit(s));
out:
	return st;
}

/* ---- its end ---- */

/* A worker that has voted waits for those that have not, and does not know which these are. */
static void await_votes(const void *context, struct mu_awaited *a)
{
	const struct mu_members *m = context;

	snprintf(a->what, sizeof a->what, "the other workers' parts of a checkpoint");
	mu_awaited_peers(a, m);
}

/* The time limit of waits holds for other workers, not for the disk. */
static enum mu_status nap(const struct checkpoint_saver *s, struct mu_waiter *disk,
			  struct mu_waiter *votes)
{
	const struct mu_members *m = s->e->members;

	if (s->stage != AGREE && s->stage != FAILED) {
		mu_waiter_nap(disk);
		return MU_OK;
	}
	if (votes->since == 0)
		mu_waiter_init(votes, m);
	mu_waiter_nap(votes);
	return mu_waiter_check(votes, await_votes, m);
}

enum mu_status mu_checkpoint_saver_finish(struct checkpoint_saver *s)
{
	enum mu_status st = MU_OK;
	struct mu_waiter disk, votes = {.since = 0};
	double warned = mu_now();

	mu_waiter_init(&disk, NULL);
	while (s && s->stage != NONE) {
		MU_TRY(mu_checkpoint_saver_poll(s));
		MU_TRY(mu_kv_poll(s->e->kv)); /* other ranks may wait for messages */
		MU_TRY(nap(s, &disk, &votes));
		if (mu_now() - warned < WARN_SECONDS)
			continue;
		warned = mu_now();
		mu_log_warn("worker %d has waited %.0f s for the checkpoint %s to be on the disk",
			    s->e->members->index, warned - s->started, s->file.path);
	}
out:
	return st;
}

void mu_checkpoint_saver_rescue(struct checkpoint_saver *s, double seconds)
{
	const double begun = mu_now();
	struct mu_waiter waiter;
	bool told = false;

	mu_waiter_init(&waiter, NULL);
	while (s && s->stage != NONE && s->stage != FAILED && mu_now() < begun + seconds) {
		if (s->stage != AGREE && !told)
			mu_alarm_busy();
		told |= s->stage != AGREE;
		if (s->stage == AGREE && mu_alarm_nobody_comes(begun))
			break;
		if (mu_checkpoint_saver_poll(s) != MU_OK)
			break;
		mu_waiter_nap(&waiter);
	}
}

enum mu_status mu_checkpoint_saver_finish_shared(struct checkpoint_saver *s)
{
	return s && !s->e->store->synchronous && !s->file.alone ? mu_checkpoint_saver_finish(s)
								: MU_OK;
}
