/* SPDX-License-Identifier: Apache-2.0 */
/* Losses by element, and Dice by region. Formulas: struct mu_element_loss, struct mu_region_loss.
 */
#ifndef DEVICE_CUDA_KERNELS_LOSSES_H
#define DEVICE_CUDA_KERNELS_LOSSES_H

#include "softmax.h"

/* ---- by element ---- */

CUDA_FUNCTION double element_loss_of(int form, double delta, double x, double t)
{
	const double d = fabs(x - t);

	switch ((enum mu_element_form)form) {
	case MU_ELEMENT_SQUARED: return d * d;
	case MU_ELEMENT_ABSOLUTE: return d;
	case MU_ELEMENT_HUBER: return d <= delta ? d * d / 2 : delta * (d - delta / 2);
	case MU_ELEMENT_LOGISTIC: return fmax(x, 0.0) - x * t + log1p(exp(-fabs(x)));
	case MU_ELEMENT_N: break;
	}
	return (double)NAN;
}

/* y: the output. */
CUDA_FUNCTION double element_slope_of(int form, double delta, double y, double t)
{
	const double d = y - t;

	switch ((enum mu_element_form)form) {
	case MU_ELEMENT_SQUARED: return 2 * d;
	case MU_ELEMENT_ABSOLUTE: return d > 0 ? 1 : d < 0 ? -1 : d; /* NaN stays NaN */
	case MU_ELEMENT_HUBER: return d > delta ? delta : d < -delta ? -delta : d;
	case MU_ELEMENT_LOGISTIC: return d;
	case MU_ELEMENT_N: break;
	}
	return (double)NAN;
}

CUDA_FUNCTION void element_loss_row(const struct cuda_element_loss *a, size_t row, size_t thread,
				    size_t threads)
{
	const size_t sample = row / a->parts, from = row % a->parts * CUDA_LOSS_PART;
	const size_t end = a->each - from < CUDA_LOSS_PART ? a->each : from + CUDA_LOSS_PART;
	double loss = 0;

	for (size_t i = from + thread; i < end; i += threads) {
		const size_t at = sample * a->each + i;
		const double x = (double)a->x[at];

		if (sample < a->count)
			loss += element_loss_of(a->form, (double)a->delta, x,
						(double)a->labels[at]);
		a->y[at] = a->form == MU_ELEMENT_LOGISTIC ? (float)(1 / (1 + exp(-x))) : a->x[at];
	}
	loss = sum_of(loss);
	if (thread == 0)
		a->losses[row] = loss;
}

CUDA_FUNCTION void element_loss_backward_at(const struct cuda_element_loss_backward *a, size_t i)
{
	a->dx[i] = i < a->counted
			   ? (float)(a->scale * element_slope_of(a->form, (double)a->delta,
								 (double)a->y[i],
								 (double)a->labels[i]))
			   : 0;
}

/* ---- by region ---- */

/* Element of class 0 at position i of all samples. */
CUDA_FUNCTION size_t region_begin(const struct cuda_targets *t, size_t i)
{
	return i / t->area * t->classes * t->area + i % t->area;
}

CUDA_FUNCTION void region_softmax_at(const struct cuda_region_softmax *a, size_t i)
{
	const struct cuda_targets *t = &a->t;
	const size_t at = region_begin(t, i);
	const int counted = is_counted(t, i);
	const size_t label = counted ? (size_t)t->labels[i] : 0;
	const double score = (double)a->x[at + label * t->area];
	double largest = (double)a->x[at], sum = 0;
	uint32_t place = 0;
	float own;

	for (size_t k = 1; k < t->classes; k++)
		largest = fmax(largest, (double)a->x[at + k * t->area]);
	for (size_t k = 0; k < t->classes; k++)
		sum += exp((double)a->x[at + k * t->area] - largest);
	own = (float)(exp(score - largest) / sum);
	for (size_t k = 0; k < t->classes; k++) {
		const float p = (float)(exp((double)a->x[at + k * t->area] - largest) / sum);

		a->p[at + k * t->area] = p;
		place += is_before(k, p, label, own);
	}
	a->predictions[i].loss = 0; /* the host sets those of samples */
	a->predictions[i].cross_entropy = counted ? (float)(largest + log(sum) - score) : 0;
	a->predictions[i].place = counted ? place : 0;
}

CUDA_FUNCTION void region_sums_row(const struct cuda_region_sums *a, size_t row, size_t thread,
				   size_t threads)
{
	const struct cuda_targets *t = &a->t;
	const size_t plane = row / a->parts, from = row % a->parts * CUDA_LOSS_PART;
	const size_t first = plane / t->classes * t->area, k = plane % t->classes;
	const size_t end = t->area - from < CUDA_LOSS_PART ? t->area : from + CUDA_LOSS_PART;
	double both = 0, found = 0, targets = 0;

	for (size_t i = from + thread; i < end; i += threads) {
		const double p = (double)a->p[plane * t->area + i];

		if (!is_counted(t, first + i))
			continue;
		found += p;
		if ((size_t)t->labels[first + i] != k)
			continue;
		both += p;
		targets += 1;
	}
	both = sum_of(both);
	found = sum_of(found);
	targets = sum_of(targets);
	if (thread == 0) {
		a->of[row].both = both;
		a->of[row].found = found;
		a->of[row].targets = targets;
	}
}

CUDA_FUNCTION void region_totals_at(const struct cuda_region_totals *a, size_t i)
{
	struct cuda_region sum = {0, 0, 0};

	for (size_t k = i * a->parts; k < (i + 1) * a->parts; k++) {
		sum.both += a->of[k].both;
		sum.found += a->of[k].found;
		sum.targets += a->of[k].targets;
	}
	a->totals[i] = sum;
}

/* The gradient of p of class k, without the factor 1 / classes. */
CUDA_FUNCTION double region_slope(const struct cuda_region_backward *a, size_t sample, size_t k,
				  size_t label)
{
	const struct cuda_region *c = &a->totals[sample * a->t.classes + k];
	const double below = c->found + c->targets + a->smooth, above = 2 * c->both + a->smooth;

	return -((k == label ? 2 * below : 0) - above) / (below * below);
}

CUDA_FUNCTION void region_backward_at(const struct cuda_region_backward *a, size_t i)
{
	const struct cuda_targets *t = &a->t;
	const size_t at = region_begin(t, i), sample = i / t->area;
	const int counted = is_counted(t, i);
	const size_t label = counted ? (size_t)t->labels[i] : 0;
	const double scale = a->scale / (double)t->classes;
	double mean = 0;

	for (size_t k = 0; counted && k < t->classes; k++)
		mean += region_slope(a, sample, k, label) * (double)a->p[at + k * t->area];
	for (size_t k = 0; k < t->classes; k++) {
		const size_t c = at + k * t->area;

		a->dx[c] = counted ? (float)(scale * (double)a->p[c] *
					     (region_slope(a, sample, k, label) - mean))
				   : 0;
	}
}

#endif
