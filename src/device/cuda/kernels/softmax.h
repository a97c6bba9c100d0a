/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax cross-entropy. */
#ifndef DEVICE_CUDA_KERNELS_SOFTMAX_H
#define DEVICE_CUDA_KERNELS_SOFTMAX_H

#include <float.h>

#include "numbers.h"

CUDA_FUNCTION int is_counted(const struct cuda_targets *t, size_t prediction)
{
	return prediction / t->area < t->count &&
	       !(t->use_ignore && t->labels[prediction] == t->ignored);
}

CUDA_FUNCTION double target_of(const struct cuda_targets *t, size_t prediction, size_t k)
{
	double smoothing = (double)t->smoothing;

	return ((k == (size_t)t->labels[prediction] ? 1 - smoothing : 0) +
		smoothing / (double)t->classes) *
	       (t->weights ? (double)t->weights[k] : 1);
}

/* The sum of the target. */
CUDA_FUNCTION double total_of(const struct cuda_targets *t, size_t label)
{
	const double smoothing = (double)t->smoothing;

	return t->weights ? (1 - smoothing) * (double)t->weights[label] +
				    smoothing * (double)t->mean_weight
			  : 1;
}

/* log_sum: ln(sum exp(x)); target, label: the sum over k of q[k] x[k], with the target q or the
 * label's. */
CUDA_FUNCTION void set_prediction(const struct cuda_softmax *a, size_t i, double log_sum,
				  double target, double label, double place)
{
	const int counted = is_counted(&a->t, i);

	a->predictions[i].loss =
		counted ? total_of(&a->t, (size_t)a->t.labels[i]) * log_sum - target : 0;
	a->predictions[i].cross_entropy = counted ? (float)(log_sum - label) : 0;
	a->predictions[i].place = counted ? (uint32_t)place : 0;
}

/* Class k with probability p comes before the label. */
CUDA_FUNCTION bool is_before(size_t k, float p, size_t label, float p_label)
{
	return p > p_label || (k < label && !(p < p_label));
}

/* A row of 16-bit scores, eight at a time, in float32. Sums begin again, smaller, when a thread
 * meets a larger score. A kernel of its own: with that of floats, registers would be spilled. */
CUDA_FUNCTION void softmax_halves_row(const struct cuda_softmax *a, size_t i, size_t thread,
				      size_t threads)
{
	const struct cuda_targets *t = &a->t;
	const size_t at = i * a->row, step = threads * CUDA_EIGHT;
	const int counted = is_counted(t, i);
	const size_t label = counted ? (size_t)t->labels[i] : 0;
	float v[CUDA_EIGHT], most = -FLT_MAX, sum = 0, largest, factor, score, p_label, share, all;
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
	/* Before the sum, behind which threads overwrite it. */
	score = number_at(a->x, a->type, at + label);
	total = sum_of((double)(sum * expf(most - largest)));
	share = t->smoothing / (float)t->classes; /* of every class in the target */
	all = (float)total_of(t, label);
	factor = (float)(1 / total);
	p_label = expf(score - largest) * factor;
	for (size_t k = thread * CUDA_EIGHT; k < a->row; k += step) {
		const int m = k < t->classes ? of_eight(k, t->classes) : 0;

		eight_at(v, a->x, a->type, at + k, CUDA_EIGHT);
		for (int j = 0; j < CUDA_EIGHT; j++) {
			const float p = expf(v[j] - largest) * factor;
			const float q = (share + (k + (size_t)j == label ? 1 - t->smoothing : 0)) *
					(t->weights && j < m ? t->weights[k + (size_t)j] : 1);

			if (q > 0 && j < m)
				target += (double)q * (double)v[j];
			places += j < m && is_before(k + (size_t)j, p, label, p_label);
			v[j] = j >= m || (a->scale > 0 && !counted) ? 0
			       : a->scale > 0                       ? a->scale * (p * all - q)
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
CUDA_FUNCTION void softmax_row(const struct cuda_softmax *a, size_t i, size_t thread,
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

CUDA_FUNCTION void softmax_backward_at(const struct cuda_softmax_backward *a, size_t i)
{
	const struct cuda_targets *t = &a->t;
	const size_t sample = i / (t->classes * t->area), k = i / t->area % t->classes;
	const size_t prediction = sample * t->area + i % t->area;

	a->dx[i] = is_counted(t, prediction)
			   ? (float)((double)a->scale *
				     ((double)a->p[i] * total_of(t, (size_t)t->labels[prediction]) -
				      target_of(t, prediction, k)))
			   : 0;
}

#endif
