/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 */
/*
 * Tallies of a validation, spread over the workers: the area under the ROC curve of a million
 * predictions with ties is scikit-learn's; R2 of targets far from 0, and with outputs that do not
 * vary; recall, IoU and Dice of a confusion matrix by hand. And the loss by weights of classes.
 */
#include <math.h>
#include <string.h>

#include <muster/base.h>
#include <muster/comm.h>
#include <muster/metrics.h>

#include "../lib/check.h"
#include "engine/metrics.h"

static struct mu_members members;

static struct mu_tally open_tally(const char *name, const struct mu_shape *output,
				  const struct mu_loss **loss)
{
	struct mu_tally t = {.outputs = 0};

	CHECK(mu_loss_find(loss, name) == MU_OK);
	CHECK(mu_tally_open(&t, *loss, output) == MU_OK);
	return t;
}

static double reduced(const struct mu_loss *loss, struct mu_tally *t, const char *name)
{
	struct mu_metrics m = {.tally = t};
	const struct mu_metric *metric = mu_metric_named(loss, name, strlen(name));

	CHECK(mu_engine_metrics_reduce(&m, &members) == MU_OK);
	CHECK(metric && metric->use & MU_METRIC_OF_TALLY && mu_metric_is_known(metric, &m));
	return metric ? metric->value(&m) : (double)NAN;
}

/* ---- area under the ROC curve ---- */

/* SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014). */
static uint64_t draw(uint64_t i)
{
	uint64_t q = 11400714819322854998u + i * 0x9E3779B97F4A7C15u;

	q = (q ^ q >> 30) * 0xBF58476D1CE4E5B9u;
	q = (q ^ q >> 27) * 0x94D049BB133111EBu;
	return q ^ q >> 31;
}

static void test_million(void)
{
	const struct mu_shape output = {2, {1, 1}};
	const struct mu_loss *loss;
	struct mu_tally t = open_tally("bce", &output, &loss);

	for (uint64_t i = 1; i <= 1000000; i++) {
		const uint64_t q = draw(i);
		const float label = (q >> 60) < 5, score = (float)(q & 1023) + 300 * label;

		if ((int)((i - 1) % (uint64_t)members.num_workers) == members.index)
			mu_tally_pair(&t, score, label);
	}
	/* scikit-learn 1.9, roc_auc_score */
	CHECK_NEAR(reduced(loss, &t, "auc"), 0.7498965808314662, 1e-12);
	mu_tally_close(&t);
}

/* Pairs of rank 0 alone, by hand: 3 of 4, a tie counts one half; two columns; one class. */
static void test_few(void)
{
	static const float some[][2] = {{0.5f, 1}, {0.5f, 0}, {0.25f, 0}, {0.75f, 1},
					{0.125f, 1}, {0.25f, 0}};
	const struct mu_shape one = {2, {1, 1}}, two = {2, {1, 2}};
	const struct mu_loss *loss;
	struct mu_tally t = open_tally("bce", &one, &loss);
	const bool first = members.index == 0;

	for (size_t i = 0; first && i < 6; i++)
		mu_tally_pair(&t, some[i][0], some[i][1]);
	CHECK_NEAR(reduced(loss, &t, "auc"), (0.5 + 2 + 3) / 9, 1e-12);
	mu_tally_clear(&t);
	for (size_t i = 0; first && i < 3; i++)
		mu_tally_pair(&t, some[i][0], 1);
	CHECK(isnan(reduced(loss, &t, "auc")));
	mu_tally_close(&t);
	t = open_tally("bce", &two, &loss);
	for (size_t i = 0; first && i < 6; i++)
		mu_tally_pair(&t, some[i][0], some[i][1]);
	/* columns (0.5 1, 0.25 0, 0.125 1) and (0.5 0, 0.75 1, 0.25 0) */
	CHECK_NEAR(reduced(loss, &t, "auc"), (0.5 + 1) / 2, 1e-12);
	mu_tally_close(&t);
}

/* ---- R2 ---- */

static void test_r2(void)
{
	enum { N = 100 };
	const struct mu_shape output = {2, {1, 3}};
	const struct mu_loss *loss;
	struct mu_tally t = open_tally("mse", &output, &loss);
	double mean = 0, squares = 0, errors = 0;

	for (size_t i = 0; i < N; i++)
		mean += (1e6 + (double)(i * i % 17)) / N;
	for (size_t i = 0; i < N; i++) {
		const float target = 1e6f + (float)(i * i % 17), found = target + (float)(i % 3),
			    y[3] = {found, found, 1}, labels[3] = {target, target / 2, 7};
		const struct mu_batch batch = {.labels = labels, .count = 1};
		const struct mu_loss_results r = {
			.batch = &batch, .targets = 3, .output = y, .shape = &output};

		squares += ((double)target - mean) * ((double)target - mean);
		errors += (double)(i % 3) * (double)(i % 3);
		if ((int)i % members.num_workers == members.index)
			loss->tally(&t, &r);
	}
	reduced(loss, &t, "r2");
	CHECK_NEAR(t.moments[0].mean, mean, 1e-6);
	CHECK_NEAR(t.moments[0].squares, squares, 1e-6 * squares);
	CHECK_NEAR(t.moments[0].errors, errors, 1e-9 * errors);
	CHECK(t.moments[2].squares == 0); /* it has no R2, and the mean is of two */
	CHECK_NEAR(mu_tally_r2(&(struct mu_metrics){.tally = &t}),
		   (1 - errors / squares + 1 - t.moments[1].errors / t.moments[1].squares) / 2,
		   1e-9);
	mu_tally_clear(&t);
	CHECK(isnan(reduced(loss, &t, "r2")));
	mu_tally_close(&t);
}

/* ---- classes ---- */

static void test_confusion(void)
{
	/* Three positions of two samples: output (class, position). The label 9 is ignored. */
	static const float y[2][9] = {{3, 1, 1, 1, 3, 1, 0, 0, 2}, {1, 1, 0, 1, 0, 2, 0, 2, 0}};
	static const float labels[2][3] = {{0, 0, 9}, {0, 2, 0}};
	const struct mu_shape output = {4, {1, 3, 3, 1}};
	const struct mu_loss *loss;
	struct mu_tally t = open_tally("softmax", &output, &loss);
	struct mu_metrics m = {.tally = &t};

	for (size_t s = 0; s < 2; s++) {
		const struct mu_batch b = {.labels = labels[s], .count = 1, .use_ignore = true,
					   .ignore_label = 9};
		const struct mu_loss_results r = {.batch = &b, .targets = 3, .output = y[s],
						  .shape = &output};

		if ((int)s % members.num_workers == members.index)
			loss->tally(&t, &r);
	}
	/* found: 0 1 -, and 0 (the first of two) 2 1; of label 0: 0 1 0 1 */
	CHECK_NEAR(reduced(loss, &t, "recall"), (0.5 + 1) / 2, 1e-12);
	CHECK_NEAR(mu_tally_iou(&m), (0.5 + 0 + 1) / 3, 1e-12);
	CHECK_NEAR(mu_tally_dice(&m), (2 * 2 / 6.0 + 0 + 1) / 3, 1e-12);
	CHECK(mu_tally_only(&t) == 3);
	mu_tally_clear(&t);
	t.sums[1] = t.sums[2 * 3 + 1] = members.index == 0; /* all are found to be class 1 */
	CHECK(reduced(loss, &t, "recall") == 0 && mu_tally_only(&t) == 1);
	mu_tally_close(&t);
}

/* The mean by weights; its sum is in the text of a checkpoint, where there are weights. */
static void test_weights(void)
{
	static const float labels[] = {0, 1}, weights[] = {1, 3};
	static const struct mu_prediction found[] = {{0, 2, 0}, {0, 4, 1}};
	const struct mu_batch batch = {
		.labels = labels, .predictions = found, .count = 2, .class_weights = weights};
	const struct mu_loss_results r = {.batch = &batch, .targets = 1};
	const struct mu_loss *loss;
	const struct mu_metric *mean;
	struct mu_metrics m = {0}, again;
	char text[256];

	CHECK(mu_loss_find(&loss, "softmax") == MU_OK);
	mean = mu_metric_used(loss, MU_METRIC_IS_LOSS);
	mu_metrics_measure(&m, loss, &r);
	CHECK_NEAR(mean->value(&m), (2 + 3 * 4) / 4.0, 1e-12);
	CHECK_NEAR(mu_metric_named(loss, "accuracy", 8)->value(&m), 0.5, 1e-12);
	mu_metrics_print(&m, loss, text, sizeof text);
	CHECK(mu_metrics_scan(&again, loss, text) && mean->value(&again) == mean->value(&m));
}

int main(int argc, char **argv)
{
	MPI_Comm world;
	long failures;

	if (mu_world_open(&argc, &argv, &world) != MU_OK ||
	    mu_members_init(&members, world, 0, MU_PLACEMENT_SPREAD) != MU_OK)
		return 1;
	test_million();
	test_few();
	test_r2();
	test_confusion();
	test_weights();
	mu_members_release(&members);
	failures = check_failures();
	CHECK(mu_allreduce_long(&failures, 1, MPI_SUM, world) == MU_OK);
	return mu_world_close(&world, failures ? 1 : 0);
}
