/* SPDX-License-Identifier: Apache-2.0 */
/* Compression in a store of a model. See coded.h. */
#include <string.h>

#include "dist.h"

/* ---- runs of a part: a block of a key, or a key that is sent as floats ---- */

struct run {
	size_t at, n;
	bool whole; /* floats */
};

struct walk {
	size_t key, at, end;
};

static bool is_coded(const struct mu_coder *coder, const struct mu_slice *s)
{
	return s->rule == MU_SLICE_LEARN && s->n >= MU_COMPRESS_BLOCK &&
	       (mu_compress_keeps_zero(coder) || s->n == s->n_padded);
}

/* Begins at the key that holds the first element, or ends before it. */
static struct walk walk_from(const struct mu_kv *kv, size_t at, size_t n)
{
	size_t low = 0, high = kv->model.n_slices;

	while (high - low > 1) {
		const size_t middle = (low + high) / 2;

		if (kv->model.slices[middle].at <= at)
			low = middle;
		else
			high = middle;
	}
	return (struct walk){low, at, at + n};
}

static bool next_run(const struct mu_kv *kv, const struct mu_coder *coder, struct walk *w,
		     struct run *run)
{
	for (; w->key < kv->model.n_slices && kv->model.slices[w->key].at < w->end; w->key++) {
		const struct mu_slice *s = &kv->model.slices[w->key];
		const size_t from = w->at > s->at ? w->at : s->at;
		size_t to = s->at + s->n_padded < w->end ? s->at + s->n_padded : w->end;

		if (from >= to)
			continue;
		run->whole = !is_coded(coder, s);
		if (!run->whole && to > (from / MU_COMPRESS_BLOCK + 1) * MU_COMPRESS_BLOCK)
			to = (from / MU_COMPRESS_BLOCK + 1) * MU_COMPRESS_BLOCK;
		run->at = from;
		run->n = to - from;
		w->at = to;
		return true;
	}
	return false;
}

static size_t run_bytes(const struct mu_coder *coder, const struct run *run)
{
	return run->whole ? run->n * sizeof(float) : mu_compress_bytes(coder, run->n);
}

size_t mu_kv_coded_bytes(const struct mu_kv *kv, const struct mu_coder *coder, size_t at, size_t n)
{
	struct walk walk = walk_from(kv, at, n);
	struct run run;
	size_t nbytes = 0;

	if (!coder->codec)
		return n * sizeof(float);
	while (next_run(kv, coder, &walk, &run))
		nbytes += run_bytes(coder, &run);
	return nbytes;
}

size_t mu_kv_message_bytes(const struct mu_kv *kv, const struct mu_coder *coder)
{
	size_t nbytes = 0;

	for (size_t p = 0; p < kv->model.plan.n_parts; p++)
		nbytes += mu_kv_coded_bytes(kv, coder, kv->model.plan.parts[p].at,
					    kv->model.plan.parts[p].n);
	return nbytes;
}

/* ---- messages ---- */

enum mu_status mu_kv_codes_init(struct mu_kv_codes *codes, const struct mu_kv *kv,
				const struct mu_coder *coder, const struct mu_kv_part *parts,
				size_t n_parts, size_t copies)
{
	enum mu_status st = MU_OK;

	codes->n_parts = n_parts;
	MU_TRY(MU_ALLOC(codes->at, n_parts + 1, "places of codes"));
	for (size_t p = 0; p < n_parts; p++)
		codes->at[p + 1] =
			codes->at[p] + mu_kv_coded_bytes(kv, coder, parts[p].at, parts[p].n);
	MU_TRY(MU_ALLOC(codes->data, copies * codes->at[n_parts] + 1, "codes"));
out:
	return st;
}

void mu_kv_codes_release(struct mu_kv_codes *codes)
{
	mu_free(codes->data);
	mu_free(codes->at);
}

unsigned char *mu_kv_codes_part(const struct mu_kv_codes *codes, size_t part, size_t copy)
{
	return codes->data + copy * codes->at[codes->n_parts] + codes->at[part];
}

int mu_kv_codes_count(const struct mu_kv_codes *codes, size_t part)
{
	return mu_count(codes->at[part + 1] - codes->at[part]);
}

static void decode(const struct mu_kv *kv, const struct mu_coder *coder, const struct mu_kv_part *p,
		   const unsigned char *codes, float *out)
{
	struct walk walk = walk_from(kv, p->at, p->n);
	struct run run;

	while (next_run(kv, coder, &walk, &run)) {
		float *to = out + (run.at - p->at);

		if (run.whole)
			memcpy(to, codes, run.n * sizeof *to);
		else
			mu_decompress(coder, run.n, codes, to);
		codes += run_bytes(coder, &run);
	}
}

MU_LOOP
static void add_floats(size_t n, float *restrict out, const float *restrict change)
{
	for (size_t i = 0; i < n; i++)
		out[i] += change[i];
}

MU_LOOP
static void subtract_floats(size_t n, float *restrict out, const float *restrict to,
			    const float *restrict from)
{
	for (size_t i = 0; i < n; i++)
		out[i] = to[i] - from[i];
}

/* Encodes residual + values, and sets the residual to the rounding error. */
static void encode(const struct mu_kv *kv, const struct mu_coder *coder, const struct mu_kv_part *p,
		   const float *values, float *residual, unsigned char *codes)
{
	struct walk walk = walk_from(kv, p->at, p->n);
	struct run run;

	while (next_run(kv, coder, &walk, &run)) {
		const size_t i = run.at - p->at;

		if (run.whole) {
			memcpy(codes, values + i, run.n * sizeof *values);
		} else {
			add_floats(run.n, residual + i, values + i);
			mu_compress(coder, run.n, residual + i, codes);
		}
		codes += run_bytes(coder, &run);
	}
}

/* Encodes the change from sent, the weights of the receivers, to right, and adds the decoded change
 * to sent. */
static void encode_change(const struct mu_kv *kv, const struct mu_coder *coder,
			  const struct mu_kv_part *p, const float *right, float *sent,
			  unsigned char *codes)
{
	struct walk walk = walk_from(kv, p->at, p->n);
	float change[MU_COMPRESS_BLOCK];
	struct run run;

	while (next_run(kv, coder, &walk, &run)) {
		const size_t i = run.at - p->at;

		if (run.whole) {
			memcpy(codes, right + i, run.n * sizeof *right);
			memcpy(sent + i, right + i, run.n * sizeof *right);
		} else {
			subtract_floats(run.n, change, right + i, sent + i);
			mu_compress(coder, run.n, change, codes);
			mu_decompress(coder, run.n, codes, change);
			add_floats(run.n, sent + i, change);
		}
		codes += run_bytes(coder, &run);
	}
}

static void decode_change(const struct mu_kv *kv, const struct mu_coder *coder,
			  const struct mu_kv_part *p, const unsigned char *codes, float *weights)
{
	struct walk walk = walk_from(kv, p->at, p->n);
	float change[MU_COMPRESS_BLOCK];
	struct run run;

	while (next_run(kv, coder, &walk, &run)) {
		const size_t i = run.at - p->at;

		if (run.whole) {
			memcpy(weights + i, codes, run.n * sizeof *weights);
		} else {
			mu_decompress(coder, run.n, codes, change);
			add_floats(run.n, weights + i, change);
		}
		codes += run_bytes(coder, &run);
	}
}

/* ---- worker ---- */

enum mu_status mu_kv_coded_worker_open(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_kv_coded_worker *c = &kv->ends.worker->coded;
	const struct mu_kv_plan *plan = &kv->model.plan;

	if (!mu_kv_is_coded(kv))
		goto out;
	MU_TRY(MU_ALLOC(c->residual, plan->n, "residual of compressed gradients"));
	MU_TRY(mu_kv_codes_init(&c->pushes, kv, &kv->push_coder, plan->parts, plan->n_parts, 1));
	if (kv->pull_coder.codec)
		MU_TRY(mu_kv_codes_init(&c->pulls, kv, &kv->pull_coder, plan->parts, plan->n_parts,
					1));
out:
	return st;
}

void mu_kv_coded_worker_close(struct mu_kv_coded_worker *c)
{
	mu_free(c->residual);
	mu_kv_codes_release(&c->pushes);
	mu_kv_codes_release(&c->pulls);
}

/* dist_async skips an update of no samples, which must not use up the residual. */
static bool is_skipped(const struct mu_kv *kv)
{
	return !kv->kind.synchronous && kv->step.count == 0;
}

void mu_kv_coded_push(struct mu_kv *kv, size_t bucket)
{
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];
	struct mu_kv_coded_worker *c = &kv->ends.worker->coded;

	mu_clock_start(MU_CLOCK_COMPRESS);
	for (size_t i = b->first_part; !is_skipped(kv) && i < b->first_part + b->n_parts; i++) {
		const struct mu_kv_part *part = &kv->model.plan.parts[i];
		float *gradients = kv->arrays.gradients + part->at;
		unsigned char *codes = mu_kv_codes_part(&c->pushes, i, 0);

		encode(kv, &kv->push_coder, part, gradients, c->residual + part->at, codes);
		if (kv->ends.worker->routes[i].kind != MU_KV_ROUTE_SEND)
			decode(kv, &kv->push_coder, part, codes, gradients);
	}
	mu_clock_stop(MU_CLOCK_COMPRESS);
}

void mu_kv_coded_pulled(struct mu_kv *kv, size_t bucket)
{
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];
	struct mu_kv_coded_worker *c = &kv->ends.worker->coded;

	mu_clock_start(MU_CLOCK_COMPRESS);
	for (size_t i = b->first_part; i < b->first_part + b->n_parts; i++) {
		const struct mu_kv_part *part = &kv->model.plan.parts[i];
		float *results = kv->arrays.results + part->at;
		const unsigned char *codes = mu_kv_codes_part(&c->pulls, i, 0);

		if (kv->ends.worker->routes[i].kind != MU_KV_ROUTE_SEND)
			continue;
		if (kv->kind.workers_update)
			decode(kv, &kv->pull_coder, part, codes, results);
		else
			decode_change(kv, &kv->pull_coder, part, codes, results);
	}
	mu_clock_stop(MU_CLOCK_COMPRESS);
}

/* ---- server end ---- */

static enum mu_status open_answers(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;
	struct mu_kv_coded_server *c = &s->coded;

	MU_TRY(mu_kv_codes_init(&c->pulls, s->kv, &s->kv->pull_coder, s->held.parts,
				s->held.n_parts, s->arrivals.outbox ? s->from.n_inboxes + 1 : 1));
	if (s->kv->kind.workers_update)
		MU_TRY(MU_ALLOC(c->residual, s->kv->model.plan.n, "residual of compressed sums"));
	else if (!s->policy->needs_outbox)
		MU_TRY(MU_ALLOC(c->sent, s->held.n + 1, "weights that the workers have"));
out:
	return st;
}

enum mu_status mu_kv_coded_server_open(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;

	if (mu_kv_is_coded(s->kv))
		MU_TRY(mu_kv_codes_init(&s->coded.pushes, s->kv, &s->kv->push_coder, s->held.parts,
					s->held.n_parts, s->from.n_inboxes));
	if (s->kv->pull_coder.codec)
		MU_TRY(open_answers(s));
out:
	return st;
}

void mu_kv_coded_server_close(struct mu_kv_coded_server *c)
{
	mu_kv_codes_release(&c->pushes);
	mu_kv_codes_release(&c->pulls);
	mu_free(c->sent);
	mu_free(c->residual);
}

void mu_kv_coded_arrived(struct mu_kv_server *s, size_t p, size_t w)
{
	const size_t inbox = s->from.peers[w].inbox;

	mu_clock_start(MU_CLOCK_COMPRESS);
	decode(s->kv, &s->kv->push_coder, &s->held.parts[p],
	       mu_kv_codes_part(&s->coded.pushes, p, inbox), mu_kv_inbox(s, p, w));
	mu_clock_stop(MU_CLOCK_COMPRESS);
}

/* Encodes part p once for all workers. */
static void answer_all(struct mu_kv_server *s, size_t p)
{
	const struct mu_coder *coder = &s->kv->pull_coder;
	struct mu_kv_coded_server *c = &s->coded;
	const struct mu_kv_part *part = &s->held.parts[p];
	unsigned char *codes = mu_kv_codes_part(&c->pulls, p, 0);

	if (c->residual)
		encode(s->kv, coder, part, mu_kv_held(s, p), c->residual + part->at, codes);
	else
		encode_change(s->kv, coder, part, mu_kv_held(s, p), c->sent + part->local, codes);
	for (size_t w = 0; w < s->from.n_workers; w++) {
		float *results = s->from.peers[w].shm.results;

		if (mu_kv_is_remote(s, w))
			continue;
		if (c->residual)
			decode(s->kv, coder, part, codes, results + part->at);
		else
			memcpy(results + part->at, c->sent + part->local,
			       part->n * sizeof *results);
	}
}

void mu_kv_coded_answer(struct mu_kv_server *s, size_t p, size_t w)
{

	mu_clock_start(MU_CLOCK_COMPRESS);
	if (w == s->from.n_workers)
		answer_all(s, p);
	else
		encode_change(s->kv, &s->kv->pull_coder, &s->held.parts[p], mu_kv_held(s, p),
			      mu_kv_outbox(s, p, w),
			      mu_kv_codes_part(&s->coded.pulls, p,
					       mu_kv_is_remote(s, w) ? s->from.peers[w].inbox
								     : s->from.n_inboxes));
	mu_clock_stop(MU_CLOCK_COMPRESS);
}
