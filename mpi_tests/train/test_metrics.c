/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 4 */
/*
 * Metrics: rows of losses, and of one of the test's own; sums and values by hand; those that whole
 * runs print against a plain loop over all samples, with one worker and with several, and numbers
 * of samples that do not divide. Label smoothing: a whole run against a plain step, and metrics
 * that do not see it.
 */
#include <muster/base.h>
#include <muster/comm.h>
#include <muster/device.h>
#include <muster/metrics.h>
#include <muster/plan.h>

#include "../lib/check.h"
#include "../lib/fit_data.h"
#include "engine/metrics.h"
#include "train/best.h"

enum { CLASSES = 10, TOP_K = 3 };

static double value(const struct mu_metrics *m, const char *name)
{
	const struct mu_metric *metric = mu_metric_named(mu_loss_at(0), name, strlen(name));

	return metric ? metric->value(m) : (double)NAN;
}

/* The rows of every loss hold together; a printed name leads back to its row, or to one of another
 * loss that is read alike. */
static void test_rows(void)
{
	const struct mu_metric *found;
	const struct mu_loss *loss;
	char printed[64];

	for (size_t i = 0; (loss = mu_loss_at(i)); i++) {
		const struct mu_metric *mean = mu_metric_used(loss, MU_METRIC_IS_LOSS);

		CHECK(mean && mean->better < 0 && loss->targets && loss->measure && *loss->sums);
		for (const struct mu_metric *m = loss->metrics; m->name; m++) {
			CHECK(strlen(m->name) < 16 && strlen(m->column ? m->column : "") <= 6);
			CHECK(m->value && (m->better == 1 || m->better == -1));
			CHECK(mu_metric_named(loss, m->name, strlen(m->name)) == m);
			snprintf(printed, sizeof printed, "%s%s", m->printed,
				 m->takes_k ? "5" : "");
			found = mu_metric_printed(printed);
			CHECK(found && found->better == m->better && found->unit == m->unit &&
			      strcmp(found->name, m->name) == 0);
		}
	}
	CHECK(!mu_metric_printed("top_k_accuracy_x") && !mu_metric_printed("rmse "));
	CHECK(!mu_metric_named(mu_loss_at(0), "accurac", 7));
}

/* Checkpoints of the first versions have these words and their order. */
static void test_text(void)
{
	static const char text[] = "samples 4 predictions 3 correct 2 top_k 2.5 cross_entropy "
				   "0.10000000000000001 log_loss 0.10000000000000001";
	struct mu_metrics m;
	char printed[256];

	CHECK(mu_metrics_scan(&m, mu_loss_at(0), text));
	CHECK(m.samples == 4 && m.counted == 3 && m.sums[2] == 0.1);
	mu_metrics_print(&m, mu_loss_at(0), printed, sizeof printed);
	CHECK(strcmp(printed, text) == 0);
	CHECK(!mu_metrics_scan(&m, mu_loss_at(0), "samples 4 predictions 3 squared 2"));
	CHECK(!mu_metrics_scan(&m, mu_loss_at(0), "samples 4"));
}

/* ---- a loss of the test's own: whoever uses metrics finds its rows by what they say ---- */

static double hits(const struct mu_metrics *m)
{
	return m->sums[0];
}

static double misses(const struct mu_metrics *m)
{
	return m->sums[1];
}

static const struct mu_metric own_metrics[] = {
	{.name = "hits", .printed = "hits", .better = 1, .use = MU_METRIC_BEST | MU_METRIC_CHOSEN,
	 .value = hits},
	{.name = "misses", .other = "errors", .printed = "misses", .better = -1,
	 .use = MU_METRIC_IS_LOSS | MU_METRIC_ALWAYS, .value = misses},
	{.name = NULL},
};
static const struct mu_loss own_loss = {
	.name = "own",
	.help = "a loss of the test",
	.sums = {"hit", "miss"},
	.metrics = own_metrics,
};

/* The epoch of the best validation, and the one after which training ends, with patience 2. */
static void check_best(const char *best_metric, size_t best, size_t end)
{
	static const double sums[][2] = {{4, 4}, {6, 5}, {5, 3}, {5, 2}, {5, 6}, {5, 6}, {5, 6}};
	const struct conf conf = {.best_metric = best_metric, .early_stopping = 2};
	const struct mu_members members = {.role = MU_ROLE_SERVER};
	const struct mu_engine engine = {.conf = &conf, .members = &members};
	const struct checkpoint_best from = {.epoch = 0};
	struct engine_metrics metrics;
	struct train_best b;
	size_t epoch = 0;

	CHECK(mu_engine_metrics_choose(&metrics, &own_loss, &conf, false) == MU_OK);
	CHECK(metrics.mean == &own_metrics[1] && metrics.plateau == metrics.mean);
	CHECK(metrics.n == 1 && strcmp(metrics.printed[0], "misses") == 0);
	mu_train_best_open(&b, &engine, &metrics, &from);
	while (epoch < sizeof sums / sizeof *sums && !mu_train_best_stops(&b)) {
		const struct mu_metrics m = {.sums = {sums[epoch][0], sums[epoch][1]}};

		mu_train_best_update(&b, ++epoch, &m);
	}
	CHECK(b.state.epoch == best && epoch == end);
}

static void test_own_loss(void)
{
	struct conf conf = {.loss = "hits"};
	struct engine_metrics metrics;

	check_best(NULL, 2, 4);     /* hits: more is better */
	check_best("hits", 2, 4);
	check_best("errors", 4, 6); /* misses, by the other name */
	check_best("loss", 4, 6);
	CHECK(mu_engine_metrics_choose(&metrics, &own_loss, &conf, false) == MU_OK);
	CHECK(metrics.n == 2 && metrics.of[1] == &own_metrics[0]);
	conf.loss = "perplexity";
	CHECK(mu_engine_metrics_choose(&metrics, &own_loss, &conf, false) == MU_ERR_USAGE);
	CHECK(strstr(mu_trace_message(), "a loss of the test, whose metrics are: hits"));
	mu_trace_clear();
	conf = (struct conf){.best_metric = "accuracy"};
	CHECK(mu_engine_metrics_choose(&metrics, &own_loss, &conf, false) == MU_ERR_USAGE);
	mu_trace_clear();
	conf = (struct conf){.target_accuracy = 0.5};
	CHECK(mu_engine_metrics_choose(&metrics, &own_loss, &conf, false) == MU_ERR_USAGE);
	CHECK(strstr(mu_trace_message(), "has no accuracy"));
	mu_trace_clear();
}

/* Three samples of two positions; the last position of the second sample is ignored, and the third
 * sample does not count. */
static void test_by_hand(void)
{
	static const float labels[] = {0, 1, 0, 9, 77, 77};
	static const struct mu_prediction found[] = {{7, 1, 0}, {7, 3, 2},   {7, 90, 1},
						     {7, 9, 0}, {7, NAN, 0}, {7, NAN, 0}};
	const struct mu_batch batch = {.labels = labels,
				       .predictions = found,
				       .count = 2,
				       .use_ignore = true,
				       .ignore_label = 9};
	struct mu_loss_results r = {.batch = &batch, .targets = 2, .k = 2};
	struct mu_metrics m = {0}, all = {0};

	CHECK(value(&m, "accuracy") == 0 && value(&m, "ce") == 0 && value(&m, "perplexity") == 1);
	mu_metrics_measure(&m, mu_loss_at(0), &r);
	CHECK(m.samples == 2 && m.counted == 3);
	CHECK_NEAR(value(&m, "accuracy"), 1 / 3.0, 1e-12);
	CHECK_NEAR(value(&m, "top-k"), 2 / 3.0, 1e-12);
	CHECK_NEAR(value(&m, "ce"), 94 / 3.0, 1e-12);
	CHECK_NEAR(value(&m, "nll"), 94 / 3.0, 1e-12);
	CHECK_NEAR(value(&m, "perplexity") / exp(94 / 3.0), 1, 1e-12);
	CHECK_NEAR(value(&m, "sentence-nll"), 94 / 2.0, 1e-12);
	mu_metrics_add(&all, &m);
	mu_metrics_add(&all, &m);
	CHECK(all.samples == 4 && all.counted == 6);
	CHECK_NEAR(value(&all, "top-k"), 2 / 3.0, 1e-12);
	CHECK_NEAR(value(&all, "ce"), value(&m, "ce"), 1e-12);
	all = mu_metrics_since(&all, &m);
	CHECK(all.samples == 2 && all.counted == 3 && value(&all, "ce") == value(&m, "ce"));
	r.k = 0;
	mu_metrics_measure(&m, mu_loss_at(0), &r);
	CHECK(m.counted == 6);
	CHECK_NEAR(value(&m, "top-k"), 1 / 3.0, 1e-12);
}

/* ---- a plain loop ---- */

struct model {
	struct mu_device device;
	struct mu_net *net;
	struct mu_plan *plan;
	float *weights, *gradients;
	float labels[FIT_TRAIN];
};

/* mlp with the weights that a run with seed 0 begins with. */
static enum mu_status model_init(struct model *m, size_t batch, const char *options)
{
	enum mu_status st = MU_OK;
	const struct mu_net_config config = {.network = "mlp",
					     .shape = MU_SAMPLE(1, FIT_SIDE, FIT_SIDE),
					     .classes = CLASSES,
					     .options = options};

	MU_TRY(mu_device_open(&m->device, "ref", 1));
	MU_TRY(mu_net_new(&m->net, &config));
	MU_TRY(mu_plan_new(&m->plan, m->net, &m->device, batch, MU_PHASE_TRAIN, NULL));
	MU_TRY(MU_ALLOC(m->weights, mu_plan_n(m->plan), "weights"));
	MU_TRY(MU_ALLOC(m->gradients, mu_plan_n(m->plan), "gradients"));
	MU_TRY(mu_plan_init_weights(m->plan, "default", 0, m->weights));
	MU_TRY(mu_plan_bind(m->plan, m->weights, m->gradients));
	mu_plan_batch(m->plan)->labels = m->labels;
	mu_plan_batch(m->plan)->count = batch;
out:
	return st;
}

static void model_release(struct model *m)
{
	mu_plan_free(m->plan);
	mu_net_free(m->net);
	mu_device_close(&m->device);
	mu_free(m->weights);
	mu_free(m->gradients);
}

static void put_sample(struct model *m, size_t place, size_t i)
{
	uint8_t image[FIT_SIDE * FIT_SIDE];
	float *input = mu_plan_input(m->plan) + place * sizeof image;

	fit_draw(image, i, fit_label(i));
	for (size_t k = 0; k < sizeof image; k++)
		input[k] = (float)image[k] / 255;
	m->labels[place] = (float)fit_label(i);
}

static enum mu_status model_forward(struct model *m)
{
	enum mu_status st = MU_OK;

	for (size_t l = 0; l < mu_plan_layers(m->plan); l++)
		MU_TRY(mu_plan_forward(m->plan, l));
out:
	return st;
}

struct expected {
	double accuracy, top_k, cross_entropy, perplexity;
};

/* Of the first n samples, in formulas that share nothing with the library's. */
static enum mu_status compute(struct expected *e, size_t n)
{
	enum mu_status st = MU_OK;
	struct model m = {.net = NULL};
	double logs = 0;

	*e = (struct expected){0};
	MU_TRY(model_init(&m, 1, NULL));
	for (size_t i = 0; i < n; i++) {
		const float *p;
		double own, larger = 0;

		put_sample(&m, 0, i);
		MU_TRY(model_forward(&m));
		p = mu_plan_probabilities(m.plan);
		own = (double)p[fit_label(i)];
		for (size_t c = 0; c < CLASSES; c++)
			larger += (double)p[c] > own;
		e->accuracy += (larger < 1) / (double)n;
		e->top_k += (larger < TOP_K) / (double)n;
		logs += log(own);
	}
	e->cross_entropy = -logs / (double)n;
	e->perplexity = exp(e->cross_entropy);
out:
	model_release(&m);
	return st;
}

/* ---- whole runs ---- */

/* Tolerance: six decimals are printed, and the device is another one. */
static void check_logged(const char *path, const char *part, const struct expected *e)
{
	const struct {
		const char *name;
		double value, tolerance;
	} lines[] = {
		{"accuracy", e->accuracy, 1e-6},           {"top_k_accuracy_3", e->top_k, 1e-6},
		{"cross-entropy", e->cross_entropy, 5e-6}, {"nll-loss", e->cross_entropy, 5e-6},
		{"perplexity", e->perplexity, 5e-5},
	};
	char name[64];

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		snprintf(name, sizeof name, "Epoch[0] %s-%s", part, lines[i].name);
		if (!CHECK_NEAR(fit_logged(path, name), lines[i].value, lines[i].tolerance))
			fprintf(stderr, "    %s\n", name);
	}
}

struct job {
	MPI_Comm comm;
	const char *folder, *store;
	int rank;
};

/* The weights stay what they are: every sample is seen with those of the beginning. */
static void test_runs(const struct job *job, const char *more)
{
	char line[4 * SCRATCH_BYTES], path[2 * SCRATCH_BYTES];
	struct expected e;

	snprintf(path, sizeof path, "%s/log-%d", job->folder, job->rank);
	snprintf(line, sizeof line,
		 "trainer --network mlp --data-dir %s --num-epochs 1 --lr 0 --batch-size 12 "
		 "--top-k %d --loss perplexity,nll,ce --disp-batches 2 --kv-store %s %s",
		 job->folder, TOP_K, job->store, more);
	CHECK(fit_run_logged(job->comm, line, path) == MU_OK);
	if (job->rank != 0)
		return;
	CHECK(fit_log_has(path, "trained 211 samples"));
	CHECK(compute(&e, FIT_TRAIN) == MU_OK);
	check_logged(path, "Train", &e);
	CHECK(compute(&e, FIT_VALIDATE) == MU_OK);
	check_logged(path, "Validation", &e);
}

static void check_bias(const char *path, const char *name, const float *expected, size_t n)
{
	struct fit_array array = {name, 1, {n}};
	float found[128];

	if (!fit_read_array(path, &array, found))
		return;
	for (size_t i = 0; i < n; i++)
		CHECK_NEAR(found[i], expected[i], 2e-6);
}

/* One update over all samples, with smoothed targets, by plain gradient descent. */
static void test_smoothing(const struct job *job)
{
	char line[4 * SCRATCH_BYTES], path[2 * SCRATCH_BYTES];
	static struct model m;
	size_t n_slices;
	const struct mu_slice *slices;

	snprintf(line, sizeof line,
		 "trainer --network mlp --data-dir %s --num-epochs 1 --lr 0.5 --mom 0 --wd 0 "
		 "--batch-size 50 --update-period 5 --label-smoothing 0.25 --kv-store %s "
		 "--model-prefix %s/smooth",
		 job->folder, job->store, job->folder);
	CHECK(fit_run(job->comm, line) == MU_OK);
	if (job->rank != 0 || !CHECK(model_init(&m, FIT_TRAIN, NULL) == MU_OK))
		return;
	mu_plan_batch(m.plan)->label_smoothing = 0.25f;
	for (size_t i = 0; i < FIT_TRAIN; i++)
		put_sample(&m, i, i);
	CHECK(model_forward(&m) == MU_OK);
	for (size_t l = mu_plan_layers(m.plan); l-- > 0;)
		CHECK(mu_plan_backward(m.plan, l) == MU_OK);
	for (size_t k = 0; k < mu_plan_n(m.plan); k++)
		m.weights[k] -= 0.5f * m.gradients[k] / FIT_TRAIN;
	slices = mu_plan_slices(m.plan, &n_slices);
	snprintf(path, sizeof path, "%s/smooth-0001.h5", job->folder);
	check_bias(path, "arg/fc1_bias", m.weights + slices[1].at, 128);
	check_bias(path, "arg/fc3_bias", m.weights + slices[5].at, CLASSES);
	model_release(&m);
}

/* What training minimises: losses by weight, divided by the samples. */
static double by_sample(struct model *m)
{
	CHECK(model_forward(m) == MU_OK);
	return mu_plan_batch(m->plan)->loss / FIT_TRAIN;
}

/* Of the last biases: what an update at rate 0.5 makes of them, by differences of the loss. */
static void descend(struct model *m, float *bias, float *expected)
{
	const float step = 0.01f;

	for (size_t k = 0; k < CLASSES; k++) {
		const float own = bias[k];
		double up, down;

		bias[k] = own + step;
		up = by_sample(m);
		bias[k] = own - step;
		down = by_sample(m);
		bias[k] = own;
		expected[k] = (float)((double)own - 0.5 * (up - down) / (2 * (double)step));
	}
}

/*
 * With weights of classes and one that is left out: the loss in the log is the one whose gradient
 * the update is, however samples, and with them weights, are dealt to workers; and the other is the
 * mean by weight.
 */
static void test_weights(const struct job *job, const char *store)
{
	static const double weights[CLASSES] = {0.5, 3, 1, 7, 0.25, 4, 1, 2, 6, 1};
	static const char list[] = "0.5,3,1,7,0.25,4,1,2,6,1";
	const struct fit_array array = {"arg/fc3_bias", 1, {CLASSES}};
	char line[4 * SCRATCH_BYTES], path[2 * SCRATCH_BYTES];
	static struct model m;
	float expected[CLASSES], found[CLASSES];
	double loss, all = 0;
	size_t n_slices;

	snprintf(path, sizeof path, "%s/log-%d", job->folder, job->rank);
	snprintf(line, sizeof line,
		 "trainer --network mlp --data-dir %s --num-epochs 1 --lr 0.5 --mom 0 --wd 0 "
		 "--batch-size 50 --update-period 5 --class-weights %s --ignore-class 3 "
		 "--kv-store %s --model-prefix %s/weights --overwrite 1",
		 job->folder, list, store, job->folder);
	CHECK(fit_run_logged(job->comm, line, path) == MU_OK);
	snprintf(line, sizeof line, "class-weights=%s ignore-class=3", list);
	if (job->rank != 0 || !CHECK(model_init(&m, FIT_TRAIN, line) == MU_OK))
		return;
	for (size_t i = 0; i < FIT_TRAIN; i++) {
		put_sample(&m, i, i);
		all += fit_label(i) == 3 ? 0 : weights[fit_label(i)];
	}
	loss = by_sample(&m);
	CHECK(all > 1.5 * FIT_TRAIN);
	CHECK_NEAR(fit_logged(path, "Epoch[0] Train-loss-by-sample"), loss, 5e-6);
	CHECK_NEAR(fit_logged(path, "Epoch[0] Train-cross-entropy"), loss * FIT_TRAIN / all, 5e-6);
	descend(&m, m.weights + mu_plan_slices(m.plan, &n_slices)[5].at, expected);
	snprintf(path, sizeof path, "%s/weights-0001.h5", job->folder);
	if (fit_read_array(path, &array, found))
		for (size_t k = 0; k < CLASSES; k++)
			CHECK_NEAR(found[k], expected[k], 1e-4);
	model_release(&m);
}

int main(int argc, char **argv)
{
	char folder[SCRATCH_BYTES] = "";
	struct job job = {.folder = folder};
	MPI_Comm world;
	long failures;
	int size;

	setenv("OMP_NUM_THREADS", "1", 1); /* small nets gain nothing from more */
	if (mu_world_open(&argc, &argv, &world) != MU_OK)
		return 1;
	MPI_Comm_rank(world, &job.rank);
	MPI_Comm_size(world, &size);
	job.comm = world;
	job.store = size > 1 ? "dist_sync --num-servers 1" : "local";
	if (job.rank == 0 && CHECK(scratch_make(folder)))
		fit_write_data(folder);
	CHECK(mu_bcast(folder, sizeof folder, 0, world) == MU_OK);
	test_rows();
	test_text();
	test_own_loss();
	test_by_hand();
	test_runs(&job, "");
	test_runs(&job, "--update-period 3 --label-smoothing 0.25");
	if (size > 1)
		test_runs(&job, "--kv-store dist_async");
	if (mu_array_file_supported())
		test_smoothing(&job);
	if (mu_array_file_supported())
		test_weights(&job, job.store);
	if (mu_array_file_supported() && size > 1)
		test_weights(&job, "dist_allreduce");
	failures = check_failures();
	CHECK(mu_allreduce_long(&failures, 1, MPI_SUM, world) == MU_OK);
	if (job.rank == 0)
		scratch_remove(folder);
	return mu_world_close(&world, failures ? 1 : 0);
}
