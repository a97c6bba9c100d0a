/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the rows of losses, for those of users, too: sums, tallies and metrics of classes and
 * values. */
#include "net/layers/layer.h"

#include <math.h>

#include "device/joint.h"

enum { LOSS, CORRECT, CROSS_ENTROPY, SQUARED = CORRECT, ABSOLUTE };

size_t mu_loss_targets(const struct mu_loss *loss, const struct mu_shape *output)
{
	return loss->joint ? mu_joint_part(loss->joint, loss->joint->n).target
			   : loss->targets(output);
}

size_t mu_loss_counted(const struct mu_loss *loss, const struct mu_loss_results *r)
{
	const struct mu_batch *b = r->batch;
	const size_t all = b->count * r->targets;
	size_t ignored = 0;

	if (loss->mean == MU_MEAN_OF_TARGETS || !b->use_ignore)
		return all;
	for (size_t i = 0; i < all; i++)
		ignored += b->labels[i] == b->ignore_label;
	return all - ignored;
}

double mu_loss_mean(const struct mu_metrics *m, int sum)
{
	if (m->counted > 0)
		return m->sums[sum] / m->counted;
	return m->samples > 0 ? (double)NAN : 0;
}

double mu_metric_loss(const struct mu_metrics *m)
{
	return m->samples > 0 ? m->sums[LOSS] / m->samples : 0;
}

/* ---- classes ---- */

void mu_loss_measure_classes(struct mu_metrics *m, const struct mu_loss_results *r)
{
	const struct mu_batch *b = r->batch;

	for (size_t i = 0; i < b->count * r->targets; i++) {
		m->sums[LOSS] += b->predictions[i].loss; /* of a sample: at its first position */
		if (b->use_ignore && b->labels[i] == b->ignore_label)
			continue;
		m->sums[CORRECT] += b->predictions[i].place == 0;
		m->sums[CROSS_ENTROPY] += (double)b->predictions[i].cross_entropy;
	}
}

void mu_loss_size_classes(struct mu_tally *t, const struct mu_shape *output)
{
	t->n_sums = mu_shape_channels(output) * mu_shape_channels(output);
	t->keeps_pairs = mu_shape_channels(output) == 2;
}

/* The first of the largest outputs, as the places of labels have it. */
void mu_loss_tally_classes(struct mu_tally *t, const struct mu_loss_results *r)
{
	const struct mu_batch *b = r->batch;
	const size_t area = mu_shape_positions(r->shape), classes = t->outputs;

	for (size_t i = 0; i < b->count * area; i++) {
		const float *p = r->output + i / area * classes * area + i % area;
		size_t best = 0;

		if (b->use_ignore && b->labels[i] == b->ignore_label)
			continue;
		for (size_t k = 1; k < classes; k++)
			if (p[k * area] > p[best * area])
				best = k;
		t->sums[(size_t)b->labels[i] * classes + best]++;
		if (t->keeps_pairs)
			mu_tally_pair(t, p[area], b->labels[i]);
	}
}

double mu_metric_accuracy(const struct mu_metrics *m)
{
	return mu_loss_mean(m, CORRECT);
}

double mu_metric_cross_entropy(const struct mu_metrics *m)
{
	return mu_loss_mean(m, CROSS_ENTROPY);
}

/* ---- values ---- */

void mu_loss_measure_values(struct mu_metrics *m, const struct mu_loss_results *r)
{
	const struct mu_batch *b = r->batch;

	for (size_t s = 0; s < b->count; s++)
		m->sums[LOSS] += b->predictions[s].loss;
	for (size_t i = 0; i < b->count * r->targets; i++) {
		const double d = fabs((double)r->output[i] - (double)b->labels[i]);

		m->sums[SQUARED] += d * d;
		m->sums[ABSOLUTE] += d;
	}
}

void mu_loss_size_values(struct mu_tally *t, const struct mu_shape *output)
{
	t->n_moments = mu_shape_channels(output);
}

void mu_loss_tally_values(struct mu_tally *t, const struct mu_loss_results *r)
{
	const size_t area = mu_shape_positions(r->shape);

	for (size_t i = 0; i < r->batch->count * r->targets; i++)
		mu_tally_target(&t->moments[i % r->targets / area], (double)r->batch->labels[i],
				(double)r->output[i]);
}

double mu_metric_squared(const struct mu_metrics *m)
{
	return mu_loss_mean(m, SQUARED);
}

double mu_metric_root(const struct mu_metrics *m)
{
	return sqrt(mu_metric_squared(m));
}

double mu_metric_absolute(const struct mu_metrics *m)
{
	return mu_loss_mean(m, ABSOLUTE);
}

/* ---- of users ---- */

static bool has_mean(const struct mu_metric *m)
{
	while (m->name && !(m->use & MU_METRIC_IS_LOSS))
		m++;
	return m->name;
}

const char *mu_loss_lacks(const struct mu_loss *loss)
{
	if (!loss || !loss->name || !*loss->name)
		return "a name";
	if (!loss->help)
		return "a help text";
	if (!loss->targets || !loss->measure || !loss->sums[0])
		return "sums, targets and measure, as in MU_LOSS_OF_CLASSES or MU_LOSS_OF_VALUES";
	if (loss->tally && !loss->tally_size)
		return "tally_size besides tally";
	if (loss->measure == mu_loss_measure_classes && !loss->of_classes)
		return "of_classes besides mu_loss_measure_classes";
	for (const struct mu_metric *m = loss->metrics; m && m->name; m++)
		if (!m->printed || !m->value)
			return "printed and value in each row of metrics";
	if (!loss->metrics || !has_mean(loss->metrics))
		return "a metric that is its mean, as MU_METRIC_OF_LOSS";
	return NULL;
}
