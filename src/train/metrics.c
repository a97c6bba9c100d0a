/* SPDX-License-Identifier: Apache-2.0 */
/* Accuracy, top-k accuracy and cross-entropy as sums over samples. Padded samples are never
 * counted. */
#include "train.h"

#include <muster/base.h>

void mu_train_metrics_add(struct train_metrics *m, const struct train_metrics *more)
{
	m->samples += more->samples;
	m->correct += more->correct;
	m->top_k += more->top_k;
	m->loss += more->loss;
}

/* How many classes come before the label: those with a higher probability, and equal ones with a
 * lower number. */
static size_t place_of(const float *p, size_t classes, size_t label)
{
	size_t before = 0;

	for (size_t c = 0; c < classes; c++)
		before += p[c] > p[label] || (c < label && !(p[c] < p[label]));
	return before;
}

void mu_train_metrics_measure(struct train_metrics *m, const float *probabilities, size_t classes,
			      const struct mu_batch *batch, size_t k)
{
	for (size_t i = 0; i < batch->count; i++) {
		size_t place =
			place_of(probabilities + i * classes, classes, (size_t)batch->labels[i]);

		m->correct += place == 0;
		m->top_k += place < k;
	}
	m->samples += (double)batch->count;
	m->loss += batch->loss;
}

enum mu_status mu_train_metrics_reduce(struct train_metrics *m, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	double sums[4] = {m->samples, m->correct, m->top_k, m->loss};

	MU_TRY(mu_allreduce_double(sums, 4, MPI_SUM, comm));
	*m = (struct train_metrics){sums[0], sums[1], sums[2], sums[3]};
out:
	return st;
}
