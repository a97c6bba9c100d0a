/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of the input. Step s uses slot s modulo the number of slots. A slot is free when the
 * caller has finished the step that used it. All fields of struct mu_pipeline and of slots are
 * changed under the lock. The arrays of a slot belong to the threads until its step is complete,
 * then to the caller until it has finished the step. Waits use condition variables, and no
 * processor time.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "pipeline.h"
#include "reader.h"

enum {
	RUN_MAX = 16, /* most samples that a thread reads at once */
	MESSAGE_BYTES = 1024,
};

struct slot {
	struct mu_input_batch batch;
	uint8_t *marks;
	size_t step, first; /* first: place of the first sample in the order */
	size_t given, done; /* samples */
};

struct mu_pipeline {
	struct mu_input *in;
	pthread_mutex_t lock;
	pthread_cond_t work, ready; /* for the threads; for the caller */
	bool has_lock;
	pthread_t *threads;
	int n_threads;
	struct slot *slots;
	size_t n_slots;
	float *data, *labels; /* of all slots */
	uint32_t *ids;
	uint8_t *marks, *bytes; /* bytes NULL: samples are floats */
	size_t hand;  /* step whose samples are being assigned to threads */
	size_t taken; /* step that the caller reads next, or is using */
	bool lent;
	size_t end;   /* no step from here on is started; equals hand when paused */
	int busy;     /* threads that are reading samples */
	bool pausing; /* the caller waits until no thread is busy */
	bool stop;
	enum mu_status st; /* of the first error */
	char message[MESSAGE_BYTES];
};

static bool has_work(const struct mu_pipeline *p)
{
	return p->st == MU_OK && p->hand < p->end && p->hand < p->taken + p->n_slots;
}

/* Assign the next samples of a free slot. Call with the lock held. */
static struct slot *assign_run(struct mu_pipeline *p, struct mu_input_run *run)
{
	struct slot *s = &p->slots[p->hand % p->n_slots];
	size_t left, fair;

	if (s->step != p->hand) {
		s->step = p->hand;
		s->given = s->done = 0;
		s->batch.count = mu_input_find(p->in, p->hand, &s->first);
	}
	left = s->batch.count - s->given;
	fair = left / (size_t)p->n_threads / 2 + 1; /* the last runs are short, so that all threads
						       end together */
	if (fair > RUN_MAX || p->n_threads == 1)
		fair = RUN_MAX;
	run->group = 0; /* data with groups is read without threads */
	run->first = s->first;
	run->from = s->given;
	run->to = s->given + (left < fair ? left : fair);
	s->given = run->to;
	if (s->given == s->batch.count)
		p->hand++;
	return s;
}

static void *run_thread(void *argument)
{
	struct mu_pipeline *p = argument;
	struct mu_input_thread thread = {0};

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		struct mu_input_run run;
		enum mu_status st;
		struct slot *s;

		if (!has_work(p)) {
			pthread_cond_wait(&p->work, &p->lock);
			continue;
		}
		s = assign_run(p, &run);
		p->busy++;
		pthread_mutex_unlock(&p->lock);
		st = mu_input_fill(p->in, &thread, &run, &s->batch, s->marks);
		pthread_mutex_lock(&p->lock);
		p->busy--;
		s->done += run.to - run.from;
		if (st != MU_OK && p->st == MU_OK) {
			p->st = st;
			snprintf(p->message, sizeof p->message, "%s", mu_trace_message());
		}
		if (s->done == s->batch.count || st != MU_OK || (p->pausing && p->busy == 0))
			pthread_cond_signal(&p->ready);
	}
	pthread_mutex_unlock(&p->lock);
	mu_input_thread_release(&thread);
	return NULL;
}

/* ---- life ---- */

/* Memory is written when it is allocated, so the system would kill the process instead of returning
 * an error. */
static enum mu_status check_memory(const struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const struct mu_input_config *c = &in->config;
	double sample = (double)mu_shape_sample(mu_input_shape(in));
	double batch =
		(double)c->batch * ((sample + (double)mu_input_width(in) + 2) * sizeof(float) +
				    (mu_input_has_bytes(in) ? sample : 0));
	double have = mu_memory_bytes();

	if (have > 0 && (double)c->prefetch * batch > have)
		MU_FAIL(MU_ERR_MEMORY,
			"prefetch buffer %zu needs %.1f GB, of %.1f GB here: a batch has %.3f GB",
			c->prefetch, (double)c->prefetch * batch / 1e9, have / 1e9, batch / 1e9);
out:
	return st;
}

static enum mu_status make_slots(struct mu_pipeline *p)
{
	enum mu_status st = MU_OK;
	const struct mu_input *in = p->in;
	size_t n = p->n_slots * in->config.batch, width = mu_input_width(in);
	size_t sample = mu_shape_sample(mu_input_shape(in)), batch = in->config.batch;

	MU_TRY(check_memory(in));
	MU_TRY(MU_ALLOC(p->slots, p->n_slots, "prefetched batches"));
	MU_TRY(MU_ALLOC(p->data, n * sample, "prefetched samples (prefetch buffer)"));
	MU_TRY(MU_ALLOC(p->labels, n * width, "prefetched labels"));
	MU_TRY(MU_ALLOC(p->ids, n, "prefetched numbers of records"));
	MU_TRY(MU_ALLOC(p->marks, n, "prefetched marks"));
	if (mu_input_has_bytes(in))
		MU_TRY(MU_ALLOC(p->bytes, n * sample, "prefetched samples as bytes"));
	for (size_t i = 0; i < p->n_slots; i++)
		p->slots[i] = (struct slot){
			.batch = {.data = p->data + i * batch * sample,
				  .labels = p->labels + i * batch * width,
				  .ids = p->ids + i * batch,
				  .bytes = p->bytes ? p->bytes + i * batch * sample : NULL},
			.marks = p->marks + i * batch,
			.step = SIZE_MAX,
		};
out:
	return st;
}

static enum mu_status make_lock(struct mu_pipeline *p)
{
	enum mu_status st = MU_OK;
	pthread_condattr_t monotonic;

	if (pthread_condattr_init(&monotonic) != 0 ||
	    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) != 0 ||
	    pthread_mutex_init(&p->lock, NULL) != 0 || pthread_cond_init(&p->work, NULL) != 0 ||
	    pthread_cond_init(&p->ready, &monotonic) != 0)
		MU_FAIL(MU_ERR_MEMORY, "threads of the input: no lock");
	pthread_condattr_destroy(&monotonic);
	p->has_lock = true;
out:
	return st;
}

/* Signals are handled by the caller's thread only. */
static enum mu_status start_threads(struct mu_pipeline *p, int n)
{
	enum mu_status st = MU_OK;
	sigset_t all, before;

	MU_TRY(MU_ALLOC(p->threads, (size_t)n, "threads of the input"));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (int error = 0; p->n_threads < n && !error; p->n_threads += !error) {
		error = pthread_create(&p->threads[p->n_threads], NULL, run_thread, p);
		if (error)
			st = mu_trace_start(MU_ERR_MEMORY, __FILE__, __LINE__,
					    "thread %d of the input: %s", p->n_threads,
					    strerror(error));
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
out:
	return st;
}

enum mu_status mu_pipeline_new(struct mu_pipeline **out, struct mu_input *in)
{
	enum mu_status st = MU_OK;
	struct mu_pipeline *p;

	MU_TRY(MU_ALLOC(p, 1, "input pipeline"));
	*out = p;
	p->in = in;
	p->n_slots = in->config.prefetch;
	MU_TRY(make_slots(p));
	MU_TRY(make_lock(p));
	MU_TRY(start_threads(p, in->config.threads));
out:
	return st;
}

void mu_pipeline_free(struct mu_pipeline *p)
{
	if (!p)
		return;
	if (p->has_lock) {
		pthread_mutex_lock(&p->lock);
		p->stop = true;
		pthread_cond_broadcast(&p->work);
		pthread_mutex_unlock(&p->lock);
		for (int i = 0; i < p->n_threads; i++)
			pthread_join(p->threads[i], NULL);
		pthread_cond_destroy(&p->ready);
		pthread_cond_destroy(&p->work);
		pthread_mutex_destroy(&p->lock);
	}
	mu_free(p->threads);
	mu_free(p->slots);
	mu_free(p->data);
	mu_free(p->labels);
	mu_free(p->ids);
	mu_free(p->marks);
	mu_free(p->bytes);
	mu_free(p);
}

/* ---- the caller's side ---- */

/* Free the slot of the current step. Call with the lock held. */
static void finish_step(struct mu_pipeline *p)
{
	p->lent = false;
	p->taken++;
	pthread_cond_broadcast(&p->work);
}

/* Call with the lock held. */
static void pause_threads(struct mu_pipeline *p)
{
	p->lent = false;
	p->end = p->hand;
	p->pausing = true;
	while (p->busy > 0)
		pthread_cond_wait(&p->ready, &p->lock);
	p->pausing = false;
	p->end = p->hand = p->taken = 0;
	for (size_t i = 0; i < p->n_slots; i++)
		p->slots[i].step = SIZE_MAX;
}

void mu_pipeline_pause(struct mu_pipeline *p)
{
	pthread_mutex_lock(&p->lock);
	pause_threads(p);
	pthread_mutex_unlock(&p->lock);
}

void mu_pipeline_start(struct mu_pipeline *p, size_t step)
{
	pthread_mutex_lock(&p->lock);
	if (p->lent)
		finish_step(p);
	if (p->end == 0 || step != p->taken) {
		pause_threads(p);
		p->hand = p->taken = step;
		p->end = p->in->steps;
		pthread_cond_broadcast(&p->work);
	}
	pthread_mutex_unlock(&p->lock);
}

/* A step past the end is ready. Call with the lock held. */
static bool is_ready(const struct mu_pipeline *p, size_t step)
{
	const struct slot *s = &p->slots[step % p->n_slots];

	return p->st != MU_OK || step >= p->in->steps ||
	       (p->hand > step && s->step == step && s->done == s->batch.count);
}

bool mu_pipeline_wait(struct mu_pipeline *p, size_t step, double seconds)
{
	struct timespec until;
	double end = mu_now() + seconds;
	bool ready;

	until.tv_sec = (time_t)end;
	until.tv_nsec = (long)((end - (double)until.tv_sec) * 1e9);
	pthread_mutex_lock(&p->lock);
	while (!(ready = is_ready(p, step)) &&
	       pthread_cond_timedwait(&p->ready, &p->lock, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&p->lock);
	return ready;
}

/* Copy its first n samples. */
static void copy_batch(const struct mu_input *in, struct mu_input_batch *out,
		       const struct mu_input_batch *batch, size_t n)
{
	size_t sample = mu_shape_sample(mu_input_shape(in));

	out->are_bytes = batch->are_bytes && out->bytes;
	if (out->are_bytes)
		memcpy(out->bytes, batch->bytes, n * sample);
	else if (batch->are_bytes)
		mu_input_from_bytes(in, out->data, batch->bytes, n);
	else
		memcpy(out->data, batch->data, n * sample * sizeof *out->data);
	memcpy(out->labels, batch->labels, n * mu_input_width(in) * sizeof *out->labels);
	memcpy(out->ids, batch->ids, n * sizeof *out->ids);
	out->count = batch->count;
}

enum mu_status mu_pipeline_borrow(struct mu_pipeline *p, size_t step, struct mu_input_batch *batch)
{
	enum mu_status st = MU_OK;
	struct slot *s = &p->slots[step % p->n_slots];

	batch->count = 0;
	pthread_mutex_lock(&p->lock);
	while (!is_ready(p, step))
		pthread_cond_wait(&p->ready, &p->lock);
	st = p->st;
	p->lent = st == MU_OK && step < p->in->steps;
	pthread_mutex_unlock(&p->lock);
	if (st != MU_OK) /* the message does not change any more */
		MU_FAIL(st, "%s", p->message);
	if (step >= p->in->steps)
		goto out;
	*batch = s->batch;
	mu_input_leave_out(p->in, batch, s->marks, &p->in->n_bad);
out:
	return st;
}

enum mu_status mu_pipeline_copy(struct mu_pipeline *p, size_t step, struct mu_input_batch *batch)
{
	enum mu_status st = MU_OK;
	struct mu_input_batch lent = {0};

	batch->count = 0;
	MU_TRY(mu_pipeline_borrow(p, step, &lent));
	if (!p->lent) /* past the end */
		goto out;
	copy_batch(p->in, batch, &lent, p->slots[step % p->n_slots].batch.count);
	pthread_mutex_lock(&p->lock);
	finish_step(p);
	pthread_mutex_unlock(&p->lock);
out:
	return st;
}
