/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: heads of its tensors, and weights. */
#ifndef DEVICE_CUDA_KERNELS_ATTENTION_H
#define DEVICE_CUDA_KERNELS_ATTENTION_H

#include <float.h>

#include "dropout.h"
#include "positions.h"

/* ---- heads ---- */

/* Where element i of the heads lies in the tensor, and what it is rotated with. */
struct cuda_head_place {
	size_t tensor, other; /* other: in the tensor */
	size_t angle;
	bool rotated, lower; /* lower: the first of the two */
};

/* In 32 bits: divisions by 64 bits take longer than the memory does. */
CUDA_FUNCTION struct cuda_head_place head_place(const struct cuda_heads *a, size_t i)
{
	const uint32_t steps = (uint32_t)a->steps, d = (uint32_t)a->d, of_head = steps * d;
	const uint32_t queries = (uint32_t)(a->samples * a->heads) * of_head;
	const uint32_t keys = (uint32_t)(a->samples * a->kv) * of_head, half = d / 2;
	const size_t channels = (a->heads + 2 * a->kv) * a->d;
	uint32_t heads = (uint32_t)a->heads, first = 0, at = (uint32_t)i, channel, k, t, head;
	struct cuda_head_place p;
	size_t s;

	p.rotated = a->angles != NULL;
	if (at >= queries) {
		at -= queries;
		first = heads;
		heads = (uint32_t)a->kv;
		if (at >= keys) {
			at -= keys;
			first += heads;
			p.rotated = false;
		}
	}
	head = at / of_head;
	at -= head * of_head;
	t = at / d;
	k = at - t * d;
	s = head / heads;
	channel = (first + head % heads) * d + k;
	p.lower = k < half;
	p.tensor = place_of(a->last, s, channel, t, channels, a->steps);
	p.other = place_of(a->last, s, p.lower ? channel + half : channel - half, t, channels,
			   a->steps);
	p.angle = p.rotated ? 2 * ((size_t)t * half + (p.lower ? k : k - half)) : 0;
	return p;
}

/* Eight of them, rotated; sign -1: back. */
CUDA_FUNCTION void rotate(const struct cuda_heads *a, const struct cuda_head_place *p, float *v,
			  const float *other, float sign, int m)
{
	for (int j = 0; j < CUDA_EIGHT; j++)
		if (j < m) {
			const float cosine = a->angles[p->angle + 2 * (size_t)j];
			const float sine = a->angles[p->angle + 2 * (size_t)j + 1] * sign;

			v[j] = p->lower ? v[j] * cosine - other[j] * sine
					: v[j] * cosine + other[j] * sine;
		}
}

/* How many elements of a head, one or eight, are neighbours wherever they are. A thread does eight
 * elements: neighbours, or single ones that lie apart, so that threads write neighbours. */
CUDA_FUNCTION int of_heads(const struct cuda_heads *a)
{
	return a->last && a->d % (a->angles ? 2 * CUDA_EIGHT : CUDA_EIGHT) == 0 ? CUDA_EIGHT : 1;
}

CUDA_FUNCTION size_t head_element(const struct cuda_heads *a, size_t at, int k, int step)
{
	return step > 1 ? at : at / CUDA_EIGHT + (size_t)k * ((a->n + CUDA_EIGHT - 1) / CUDA_EIGHT);
}

/* joins: from the heads to the tensor. */
CUDA_FUNCTION void move_heads(const struct cuda_heads *a, size_t at, bool joins)
{
	const int step = of_heads(a);
	const size_t half = a->d / 2;
	float v[CUDA_EIGHT], other[CUDA_EIGHT];

	for (int k = 0; k < CUDA_EIGHT; k += step) {
		const size_t i = head_element(a, at, k, step);
		struct cuda_head_place p;

		if (i >= a->n)
			return;
		p = head_place(a, i);
		eight_at(v, a->from, a->from_type, joins ? i : p.tensor, step);
		if (p.rotated) {
			const size_t pair = p.lower ? i + half : i - half;

			eight_at(other, a->from, a->from_type, joins ? pair : p.other, step);
			rotate(a, &p, v, other, joins ? -1 : 1, step);
		}
		set_eight(a->to, a->to_type, joins ? p.tensor : i, step, v);
	}
}

CUDA_FUNCTION void split_heads_at(const struct cuda_split_heads *a, size_t at)
{
	move_heads(a, at, false);
}

CUDA_FUNCTION void join_heads_at(const struct cuda_join_heads *a, size_t at)
{
	move_heads(a, at, true);
}

/* ---- weights ---- */

struct cuda_query {
	size_t at, sees;  /* its row; keys that it sees */
	uint64_t weight;  /* its first, of the sample's */
	uint32_t sample, epoch;
};

CUDA_FUNCTION struct cuda_query query_of(const struct cuda_attend *a, size_t row)
{
	const size_t batch = row / a->rows, r = a->first + row % a->rows, t = r % a->steps;
	const size_t head = batch % a->kv * (a->heads / a->kv) + r / a->steps;
	const size_t sample = a->sample + batch / a->kv;
	struct cuda_query q;

	q.at = row * a->keys;
	q.sees = a->causal ? t + 1 : a->steps;
	q.weight = (head * a->steps + t) * a->steps;
	q.sample = a->ids ? a->ids[sample] : (uint32_t)sample;
	q.epoch = a->epochs ? a->epochs[0] : a->epoch;
	return q;
}

/* Dropout's factor of a weight. */
CUDA_FUNCTION float keep_of(const struct cuda_attend *a, const struct cuda_query *q, size_t j)
{
	if (a->p == 0)
		return 1;
	return uniform_of(a->seed, a->purpose, q->epoch, q->sample, a->element, q->weight + j) <
			       a->p
		       ? 0
		       : 1 / (1 - a->p);
}

/* How many of eight numbers from j on are before the end: 0 to 8. */
CUDA_FUNCTION int of_those(size_t j, size_t end)
{
	return j < end ? of_eight(j, end) : 0;
}

/* Eight numbers of a query's row from key j on. Behind the row's end there are none. */
CUDA_FUNCTION void eight_of_query(float *v, const struct cuda_attend *a, const float *from,
				  const struct cuda_query *q, size_t j)
{
	const int m = of_eight(j, a->keys);

	from += q->at + j;
	if (a->keys % CUDA_EIGHT == 0)
		eight_floats(v, from);
	else
		for (int k = 0; k < CUDA_EIGHT; k++)
			v[k] = k < m ? from[k] : 0;
}

CUDA_FUNCTION void set_eight_of_query(void *to, const struct cuda_attend *a,
				      const struct cuda_query *q, size_t j, const float *v)
{
	const int m = of_eight(j, a->keys);

	if (a->keys % CUDA_EIGHT == 0)
		set_eight(to, a->type, q->at + j, CUDA_EIGHT, v);
	else
		for (int k = 0; k < CUDA_EIGHT; k++)
			if (k < m)
				set_number(to, a->type, q->at + j + (size_t)k, v[k]);
}

/* Dropout's factors of eight weights. */
CUDA_FUNCTION void eight_kept(float *keep, const struct cuda_attend *a, const struct cuda_query *q,
			      size_t j)
{
	const int m = of_those(j, q->sees);

	for (int k = 0; k < CUDA_EIGHT; k++)
		keep[k] = a->p > 0 && k < m ? keep_of(a, q, j + (size_t)k) : 1;
}

/* Largest score, 1 / sum of exp(score - largest), and the mean of `grads` with these weights. */
struct cuda_share {
	float most, factor, mean;
};

/* A thread's sums begin again, smaller, when it meets a larger score. */
CUDA_FUNCTION struct cuda_share share_of(const struct cuda_attend *a, const struct cuda_query *q,
					 size_t thread, size_t threads, bool with_mean)
{
	struct cuda_share s;
	float v[CUDA_EIGHT], g[CUDA_EIGHT], keep[CUDA_EIGHT];
	float most = -FLT_MAX, sum = 0, mixed = 0, largest, less;

	for (size_t j = thread * CUDA_EIGHT; j < q->sees; j += threads * CUDA_EIGHT) {
		const int m = of_those(j, q->sees);

		eight_of_query(v, a, a->scores, q, j);
		if (with_mean) {
			eight_of_query(g, a, a->grads, q, j);
			eight_kept(keep, a, q, j);
		}
		largest = most;
		for (int k = 0; k < CUDA_EIGHT; k++)
			largest = k < m ? fmaxf(largest, v[k]) : largest;
		less = expf(most - largest);
		sum *= less;
		mixed *= less;
		most = largest;
		for (int k = 0; k < CUDA_EIGHT; k++) {
			const float e = k < m ? expf(v[k] - most) : 0;

			sum += e;
			mixed += with_mean && k < m ? e * keep[k] * g[k] : 0;
		}
	}
	s.most = warp_most(most);
	less = expf(most - s.most);
	s.factor = 1 / warp_sum(sum * less);
	s.mean = with_mean ? warp_sum(mixed * less) * s.factor : 0;
	return s;
}

/* Eight weights from key j on, without dropout; 0 for keys that the query does not see. */
CUDA_FUNCTION void eight_weights(float *w, const struct cuda_attend *a, const struct cuda_query *q,
				 const struct cuda_share *s, size_t j)
{
	const int m = of_those(j, q->sees);

	if (m > 0)
		eight_of_query(w, a, a->scores, q, j);
	for (int k = 0; k < CUDA_EIGHT; k++)
		w[k] = k < m ? expf(w[k] - s->most) * s->factor : 0;
}

CUDA_FUNCTION void attend_row(const struct cuda_attend *a, size_t row, size_t thread,
			      size_t threads)
{
	const struct cuda_query q = query_of(a, row);
	const struct cuda_share s = share_of(a, &q, thread, threads, false);
	float w[CUDA_EIGHT], keep[CUDA_EIGHT];

	for (size_t j = thread * CUDA_EIGHT; j < a->keys; j += threads * CUDA_EIGHT) {
		eight_weights(w, a, &q, &s, j);
		eight_kept(keep, a, &q, j);
		for (int k = 0; k < CUDA_EIGHT; k++)
			w[k] *= keep[k];
		set_eight_of_query(a->weights, a, &q, j, w);
	}
}

/* With g = gradient keep: the slope of a score is w (g - sum of w g). */
CUDA_FUNCTION void attend_backward_row(const struct cuda_attend_backward *a, size_t row,
				       size_t thread, size_t threads)
{
	const struct cuda_query q = query_of(a, row);
	const struct cuda_share s = share_of(a, &q, thread, threads, true);
	float w[CUDA_EIGHT], g[CUDA_EIGHT], keep[CUDA_EIGHT];

	for (size_t j = thread * CUDA_EIGHT; j < a->keys; j += threads * CUDA_EIGHT) {
		const int m = of_those(j, q.sees);

		eight_weights(w, a, &q, &s, j);
		if (m > 0)
			eight_of_query(g, a, a->grads, &q, j);
		eight_kept(keep, a, &q, j);
		for (int k = 0; k < CUDA_EIGHT; k++) {
			g[k] = k < m ? w[k] * (keep[k] * g[k] - s.mean) : 0;
			w[k] *= keep[k];
		}
		set_eight_of_query(a->weights, a, &q, j, w);
		set_eight_of_query(a->slopes, a, &q, j, g);
	}
}

#endif
