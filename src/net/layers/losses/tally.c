/* SPDX-License-Identifier: Apache-2.0 */
/* What metrics need of a whole validation: confusion of classes, moments of targets, pairs of score
 * and target for the area under the ROC curve. */
#include "net/layers/layer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CLASSES = 1024, MOST_PAIRS = 1 << 26, FIRST_PAIRS = 4096 };

enum mu_status mu_tally_open(struct mu_tally *t, const struct mu_loss *loss,
			     const struct mu_shape *output)
{
	enum mu_status st = MU_OK;

	*t = (struct mu_tally){.outputs = mu_shape_channels(output), .columns = 1};
	loss->tally_size(t, output);
	if (t->n_sums > (size_t)MOST_CLASSES * MOST_CLASSES)
		MU_FAIL(MU_ERR_USAGE,
			"recall, IoU and Dice need the confusion of all classes: %zu are more than "
			"%d",
			t->outputs, MOST_CLASSES);
	MU_TRY(MU_ALLOC(t->sums, t->n_sums + 1, "confusion of classes"));
	MU_TRY(MU_ALLOC(t->moments, t->n_moments + 1, "moments of targets"));
	mu_tally_clear(t);
out:
	if (st != MU_OK)
		mu_tally_close(t);
	return st;
}

enum mu_status mu_tally_heads(struct mu_tally *t, size_t n)
{
	enum mu_status st = MU_OK;

	*t = (struct mu_tally){.outputs = 0};
	MU_TRY(MU_ALLOC(t->heads, n, "tallies of heads"));
	for (size_t i = 0; i < n; i++)
		t->heads[i] = (struct mu_tally){.outputs = 0};
	t->n_heads = n;
out:
	return st;
}

struct mu_tally *mu_tally_part(struct mu_tally *t, size_t i)
{
	struct mu_tally *part = !t || t->n_heads == 0 ? t : i < t->n_heads ? &t->heads[i] : NULL;

	return part && part->outputs > 0 ? part : NULL;
}

void mu_tally_close(struct mu_tally *t)
{
	for (size_t i = 0; i < t->n_heads; i++)
		mu_tally_close(&t->heads[i]);
	mu_free(t->heads);
	mu_free(t->sums);
	mu_free(t->moments);
	free(t->pairs);
	*t = (struct mu_tally){.outputs = 0};
}

void mu_tally_clear(struct mu_tally *t)
{
	for (size_t i = 0; i < t->n_heads; i++)
		mu_tally_clear(&t->heads[i]);
	if (t->n_sums > 0)
		memset(t->sums, 0, t->n_sums * sizeof *t->sums);
	if (t->n_moments > 0)
		memset(t->moments, 0, t->n_moments * sizeof *t->moments);
	t->n_pairs = 0;
	t->too_many = t->no_memory = false;
	t->auc = NAN;
}

/* ---- values ---- */

/* Welford, Note on a method for calculating corrected sums of squares and products, 1962. */
void mu_tally_target(struct mu_moments *m, double target, double predicted)
{
	const double before = target - m->mean;

	m->n++;
	m->mean += before / m->n;
	m->squares += before * (target - m->mean);
	m->errors += (target - predicted) * (target - predicted);
}

/* Mean over the outputs; those whose targets are all equal have none. */
double mu_tally_r2(const struct mu_metrics *m)
{
	const struct mu_tally *t = m->tally;
	double sum = 0, n = 0;

	for (size_t i = 0; t && i < t->n_moments; i++)
		if (t->moments[i].squares > 0) {
			sum += 1 - t->moments[i].errors / t->moments[i].squares;
			n++;
		}
	return n > 0 ? sum / n : (double)NAN;
}

/* ---- classes ---- */

struct mu_class_counts mu_tally_class(const struct mu_tally *t, size_t k)
{
	struct mu_class_counts c = {.both = t->sums[k * t->outputs + k]};

	for (size_t i = 0; i < t->outputs; i++) {
		c.targets += t->sums[k * t->outputs + i];
		c.predicted += t->sums[i * t->outputs + k];
	}
	return c;
}

size_t mu_tally_only(const struct mu_tally *t)
{
	size_t occur = 0, found = t->outputs, n = 0;

	for (size_t k = 0; t->n_sums > 0 && k < t->outputs; k++) {
		const struct mu_class_counts c = mu_tally_class(t, k);

		occur += c.targets > 0;
		n += c.predicted > 0;
		if (c.predicted > 0)
			found = k;
	}
	return occur > 1 && n == 1 ? found : t->outputs;
}

static double recall_of(const struct mu_class_counts *c)
{
	return c->targets > 0 ? c->both / c->targets : (double)NAN;
}

static double iou_of(const struct mu_class_counts *c)
{
	const double either = c->targets + c->predicted - c->both;

	return either > 0 ? c->both / either : (double)NAN;
}

static double dice_of(const struct mu_class_counts *c)
{
	return c->targets + c->predicted > 0 ? 2 * c->both / (c->targets + c->predicted)
					     : (double)NAN;
}

static double mean_of(const struct mu_metrics *m,
		      double (*value)(const struct mu_class_counts *c))
{
	const struct mu_tally *t = m->tally;
	double sum = 0, n = 0;

	for (size_t k = 0; t && t->n_sums > 0 && k < t->outputs; k++) {
		const struct mu_class_counts c = mu_tally_class(t, k);

		if (isfinite(value(&c))) {
			sum += value(&c);
			n++;
		}
	}
	return n > 0 ? sum / n : (double)NAN;
}

double mu_tally_recall(const struct mu_metrics *m)
{
	return mean_of(m, recall_of);
}

double mu_tally_iou(const struct mu_metrics *m)
{
	return mean_of(m, iou_of);
}

double mu_tally_dice(const struct mu_metrics *m)
{
	return mean_of(m, dice_of);
}

/* ---- pairs ---- */

double mu_tally_area(const struct mu_metrics *m)
{
	return m->tally ? m->tally->auc : (double)NAN;
}

void mu_tally_pair(struct mu_tally *t, float score, float target)
{
	const size_t room = t->room ? 2 * t->room : FIRST_PAIRS;
	void *grown;

	if (t->too_many || t->no_memory)
		return;
	if (t->n_pairs == t->room) {
		t->too_many = room > MOST_PAIRS;
		grown = t->too_many ? NULL : realloc(t->pairs, room * sizeof *t->pairs);
		t->no_memory = !t->too_many && !grown;
		if (!grown)
			return;
		t->pairs = grown;
		t->room = room;
	}
	t->pairs[t->n_pairs][0] = score;
	t->pairs[t->n_pairs++][1] = target;
}

static int by_score(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* Of n sorted pairs: the share of pairs of a positive and a negative target in which the positive
 * one has the larger score; equal scores count one half. */
static double area_of(float (*pairs)[2], size_t n)
{
	double below = 0, positives = 0, area = 0;

	for (size_t i = 0, end; i < n; i = end) {
		double yes = 0, no = 0;

		for (end = i; end < n && pairs[end][0] == pairs[i][0]; end++)
			*(pairs[end][1] >= 0.5f ? &yes : &no) += 1;
		if (end == i) /* a NaN */
			return (double)NAN;
		area += yes * (below + no / 2);
		below += no;
		positives += yes;
	}
	return below > 0 && positives > 0 ? area / (below * positives) : (double)NAN;
}

enum mu_status mu_tally_auc(struct mu_tally *t, float (*pairs)[2], size_t n)
{
	enum mu_status st = MU_OK;
	const size_t each = n / t->columns;
	float (*column)[2] = NULL;

	t->auc = 0;
	MU_TRY(MU_ALLOC(column, each + 1, "pairs of score and target"));
	for (size_t k = 0; k < t->columns; k++) {
		for (size_t i = 0; i < each; i++)
			memcpy(column[i], pairs[i * t->columns + k], sizeof *column);
		qsort(column, each, sizeof *column, by_score);
		t->auc += area_of(column, each) / (double)t->columns;
	}
out:
	mu_free(column);
	return st;
}
