/* SPDX-License-Identifier: Apache-2.0 */
/* Continuation of elements.h: random numbers, softmax, embedding, LSTM. */
#ifndef DEVICE_CUDA_SEQUENCES_H
#define DEVICE_CUDA_SEQUENCES_H

#include <float.h>

#include "elements.h"

/* ---- dropout: the numbers of mu_random_uniform (src/base/random.c) ---- */

enum { PHILOX_ROUNDS = 10 };

/* Word `which` of the block of Philox4x32-10. */
CUDA_FUNCTION uint32_t philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint64_t seed,
			      int which)
{
	uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);

	for (int i = 0; i < PHILOX_ROUNDS; i++) {
		uint64_t p0 = (uint64_t)0xD2511F53u * c0;
		uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;

		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)p1;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)p0;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	return which == 0 ? c0 : which == 1 ? c1 : which == 2 ? c2 : c3;
}

/* Uniform in [0, 1), of an element of a sample in an epoch. first: of the operation. See struct
 * mu_op's index. */
CUDA_FUNCTION float uniform_of(uint64_t seed, uint32_t purpose, uint32_t epoch, uint32_t sample,
			       uint64_t first, uint64_t element)
{
	const uint64_t draw = first + (element & 0xFFFFFF);
	const uint32_t high = purpose << 24 | (uint32_t)(element >> 24) << 8;
	const uint32_t bits =
		philox((uint32_t)(draw / 4), epoch, sample, high, seed, (int)(draw % 4));

	return (float)(bits >> 8) * (1.0f / 16777216);
}

CUDA_FUNCTION void dropout_at(const struct cuda_dropout *a, size_t i)
{
	const size_t place = a->last ? plain_place(i, a->channels, a->area) : i;
	const size_t features = a->channels * a->area, s = place / features;
	const uint32_t sample = a->ids ? a->ids[s] : (uint32_t)s;
	const uint32_t epoch = a->epochs ? a->epochs[0] : a->epoch;
	const float uniform = uniform_of(a->seed, a->purpose, epoch, sample, a->first,
					 a->from + place % features);

	a->mask[i] = uniform < a->p ? 0 : 1 / (1 - a->p);
	set_number(a->y, a->type, i, number_at(a->x, a->type, i) * a->mask[i]);
}

/* ---- softmax cross-entropy ---- */

CUDA_FUNCTION int is_counted(const struct cuda_targets *t, size_t prediction)
{
	return prediction / t->area < t->count &&
	       !(t->use_ignore && t->labels[prediction] == t->ignored);
}

CUDA_FUNCTION double target_of(const struct cuda_targets *t, size_t prediction, size_t k)
{
	double smoothing = (double)t->smoothing;

	return (k == (size_t)t->labels[prediction] ? 1 - smoothing : 0) +
	       smoothing / (double)t->classes;
}

/* log_sum: ln(sum exp(x)); target, label: the sum over k of q[k] x[k], with the target q or the
 * label's. */
CUDA_FUNCTION void set_prediction(const struct cuda_softmax *a, size_t i, double log_sum,
				  double target, double label, double place)
{
	const int counted = is_counted(&a->t, i);

	a->predictions[i].loss = counted ? log_sum - target : 0;
	a->predictions[i].cross_entropy = counted ? (float)(log_sum - label) : 0;
	a->predictions[i].place = counted ? (uint32_t)place : 0;
}

/* Class k with probability p comes before the label. */
CUDA_FUNCTION bool is_before(size_t k, float p, size_t label, float p_label)
{
	return p > p_label || (k < label && !(p < p_label));
}

/* A row of 16-bit scores, eight at a time, in float32. Sums begin again, smaller, when a thread
 * meets a larger score. */
CUDA_FUNCTION void softmax_of_halves(const struct cuda_softmax *a, size_t i, size_t thread,
				     size_t threads)
{
	const struct cuda_targets *t = &a->t;
	const size_t at = i * a->row, step = threads * CUDA_EIGHT;
	const int counted = is_counted(t, i);
	const size_t label = counted ? (size_t)t->labels[i] : 0;
	const float score = number_at(a->x, a->type, at + label); /* before it is overwritten */
	const float share = t->smoothing / (float)t->classes; /* of every class in the target */
	float v[CUDA_EIGHT], most = -FLT_MAX, sum = 0, largest, factor, p_label;
	double target = 0, total, place;
	uint32_t places = 0;

	for (size_t k = thread * CUDA_EIGHT; k < t->classes; k += step) {
		const int m = of_eight(k, t->classes);

		eight_at(v, a->x, a->type, at + k, CUDA_EIGHT);
		largest = most;
		for (int j = 0; j < CUDA_EIGHT; j++)
			largest = j < m ? fmaxf(largest, v[j]) : largest;
		sum *= expf(most - largest);
		most = largest;
		for (int j = 0; j < CUDA_EIGHT; j++)
			sum += j < m ? expf(v[j] - most) : 0;
	}
	largest = (float)most_of((double)most);
	total = sum_of((double)(sum * expf(most - largest)));
	factor = (float)(1 / total);
	p_label = expf(score - largest) * factor;
	for (size_t k = thread * CUDA_EIGHT; k < a->row; k += step) {
		const int m = k < t->classes ? of_eight(k, t->classes) : 0;

		eight_at(v, a->x, a->type, at + k, CUDA_EIGHT);
		for (int j = 0; j < CUDA_EIGHT; j++) {
			const float p = expf(v[j] - largest) * factor;
			const float q = share + (k + (size_t)j == label ? 1 - t->smoothing : 0);

			if (q > 0 && j < m)
				target += (double)q * (double)v[j];
			places += j < m && is_before(k + (size_t)j, p, label, p_label);
			v[j] = j >= m || (a->scale > 0 && !counted) ? 0
			       : a->scale > 0                       ? a->scale * (p - q)
								    : p;
		}
		set_eight(a->y, a->type, at + k, CUDA_EIGHT, v);
	}
	target = sum_of(target);
	place = sum_of(places);
	if (thread == 0)
		set_prediction(a, i, (double)largest + log(total), target, (double)score, place);
}

/* As ref has it. */
CUDA_FUNCTION void softmax_of_floats(const struct cuda_softmax *a, size_t i, size_t thread,
				     size_t threads)
{
	const struct cuda_targets *t = &a->t;
	const size_t at = i / t->area * t->classes * t->area + i % t->area;
	const float *x = (const float *)a->x + at;
	float *y = (float *)a->y + at;
	const int counted = is_counted(t, i);
	const size_t label = counted ? (size_t)t->labels[i] : 0;
	const float score = x[label * t->area];
	double largest = (double)x[0], sum = 0, target = 0, places = 0;
	float p_label;

	for (size_t k = thread; k < t->classes; k += threads)
		largest = fmax(largest, (double)x[k * t->area]);
	largest = most_of(largest);
	for (size_t k = thread; k < t->classes; k += threads)
		sum += exp((double)x[k * t->area] - largest);
	sum = sum_of(sum);
	p_label = (float)(exp((double)score - largest) / sum);
	for (size_t k = thread; k < t->classes; k += threads) {
		const float p = (float)(exp((double)x[k * t->area] - largest) / sum);
		const double q = counted ? target_of(t, i, k) : 0;

		if (q > 0)
			target += q * (double)x[k * t->area];
		places += is_before(k, p, label, p_label) ? 1 : 0;
		y[k * t->area] = p;
	}
	target = sum_of(target);
	places = sum_of(places);
	if (thread == 0)
		set_prediction(a, i, largest + log(sum), target, (double)score, places);
}

CUDA_FUNCTION void softmax_row(const struct cuda_softmax *a, size_t i, size_t thread,
			       size_t threads)
{
	if (a->type == CUDA_FLOAT32)
		softmax_of_floats(a, i, thread, threads);
	else
		softmax_of_halves(a, i, thread, threads);
}

CUDA_FUNCTION void softmax_backward_at(const struct cuda_softmax_backward *a, size_t i)
{
	const struct cuda_targets *t = &a->t;
	const size_t sample = i / (t->classes * t->area), k = i / t->area % t->classes;
	const size_t prediction = sample * t->area + i % t->area;

	a->dx[i] = is_counted(t, prediction)
			   ? (float)((double)a->scale *
				     ((double)a->p[i] - target_of(t, prediction, k)))
			   : 0;
}

/* ---- embedding ---- */

/* The row at a position of all samples, or -1 if the number is invalid. Samples that do not count
 * use row 0. */
CUDA_FUNCTION long row_at(const float *x, size_t position, size_t area, size_t count, int inputs)
{
	float v = x[position];

	if (position / area >= count)
		return 0;
	return v >= 0 && v < (float)inputs && v == floorf(v) ? (long)v : -1;
}

CUDA_FUNCTION void embed_at(const struct cuda_embed *a, size_t i)
{
	const size_t s = i / (a->units * a->area), u = i / a->area % a->units;
	const long row = row_at(a->x, s * a->area + i % a->area, a->area, a->count, a->inputs);

	if (row < 0)
		set_flag(a->bad);
	a->y[i] = row < 0 ? 0 : a->weight[(size_t)row * a->units + u];
}

/* The number at a position; samples that do not count have row 0. */
CUDA_FUNCTION float number_of(const struct cuda_embed_backward *a, size_t k)
{
	return k < a->count * a->area ? a->x[k] : 0;
}

/* The block of the first position of a row adds the gradients of all its positions, in order. Most
 * rows have one. */
CUDA_FUNCTION void embed_backward_row(const struct cuda_embed_backward *a, size_t i, size_t thread,
				      size_t threads)
{
	CUDA_SHARED int same[CUDA_THREADS];
	const float x = number_of(a, i);
	const long row = row_at(a->x, i, a->area, a->count, a->inputs);
	double before = row < 0, after = 0;
	size_t end;

	for (size_t k = thread; k < a->n; k += threads)
		if (number_of(a, k) == x) {
			before += k < i;
			after += k > i;
		}
	if (sum_of(before) > 0)
		return;
	end = sum_of(after) > 0 ? a->n : i + 1;
	for (size_t from = i; from < end; from += threads) {
		const size_t m = end - from < threads ? end - from : threads;

		same[thread] = thread < m && number_of(a, from + thread) == x;
		if (sum_of(same[thread]) == 0)
			continue;
		for (size_t u = thread; u < a->units; u += threads) {
			float *dw = a->dw + (size_t)row * a->units + u, sum = *dw;

			for (size_t k = from; k < from + m; k++)
				if (same[k - from])
					sum += a->dy[(k / a->area * a->units + u) * a->area +
						     k % a->area];
			*dw = sum;
		}
		CUDA_BARRIER();
	}
}

/* ---- lstm ---- */

/* Place of step t of channel k of a sample in the tensor. */
CUDA_FUNCTION size_t step_place(const struct cuda_steps *a, size_t s, size_t k, size_t t)
{
	return a->last ? (s * a->steps + t) * a->c + k : (s * a->c + k) * a->steps + t;
}

CUDA_FUNCTION void to_steps_at(const struct cuda_steps *a, size_t i)
{
	const size_t k = i % a->c, s = i / a->c % a->samples, t = i / (a->c * a->samples);

	set_number(a->to, a->type, i, number_at(a->from, a->type, step_place(a, s, k, t)));
}

CUDA_FUNCTION void from_steps_at(const struct cuda_steps *a, size_t i)
{
	const size_t s = i / (a->steps * a->c);
	const size_t t = a->last ? i / a->c % a->steps : i % a->steps;
	const size_t k = a->last ? i % a->c : i / a->steps % a->c;

	set_number(a->to, a->type, i, number_at(a->from, a->type, (t * a->samples + s) * a->c + k));
}

/* Element *i of all parameters: find its parameter, and its place in the space. */
CUDA_FUNCTION int lstm_place(const struct cuda_lstm_space *a, size_t *i, size_t *place)
{
	size_t gate = a->units * a->width[0];
	int p = 0;

	while (*i >= CUDA_LSTM_GATES * gate) {
		*i -= CUDA_LSTM_GATES * gate;
		gate = a->units * a->width[++p];
	}
	*place = a->at[p][*i / gate] + *i % gate;
	return p;
}

CUDA_FUNCTION void lstm_weights_at(const struct cuda_lstm_space *a, size_t i)
{
	size_t place;
	const int p = lstm_place(a, &i, &place);

	set_number(a->space, a->type, place, a->params[p][i]);
}

CUDA_FUNCTION void lstm_gradients_at(const struct cuda_lstm_space *a, size_t i)
{
	size_t place;
	const int p = lstm_place(a, &i, &place);
	const float v = number_at(a->space, a->type, place);

	a->params[p][i] = a->adds ? a->params[p][i] + v : v;
}

#endif
