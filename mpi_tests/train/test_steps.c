/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 4 @gpu */
/*
 * Networks that predict at every position, "steps": labels, probabilities, ignored labels, and
 * whole runs. The networks are defined here, in a table that takes the place of the library's.
 */
#include <muster/base.h>
#include <muster/comm.h>
#include <muster/input.h>

#include "../lib/check.h"
#include "../lib/fit_data.h"
#include "net/plan.h"

enum { CLASSES = 4, HEIGHT = 3, WIDTH = 5, AREA = HEIGHT * WIDTH, BATCH = 6 };

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	int x = mu_net_input(net);
	const struct mu_convolution hidden = {.filters = 16, .kernel = {3, 3}, .pad = {1, 1}};
	const struct mu_convolution last = {.filters = (int)config->classes, .kernel = {1, 1}};

	x = mu_net_convolution(net, x, &hidden, NULL);
	x = mu_net_activation(net, x, MU_ACTIVATION_TANH, NULL);
	x = mu_net_convolution(net, x, &last, NULL);
	mu_net_softmax(net, x, "softmax");
	return MU_OK;
}

/* Label 1 marks what is not there. */
static enum mu_status build_padded(struct mu_net *net, const struct mu_net_config *config)
{
	mu_net_ignore_label(net, 1);
	return build(net, config);
}

static enum mu_status build_wrong(struct mu_net *net, const struct mu_net_config *config)
{
	(void)config;
	mu_net_softmax(net, mu_net_input(net), "softmax");
	return MU_OK;
}

static const struct mu_network steps = {.name = "steps",
					.help = "a prediction at every position",
					.shape = MU_SAMPLE(2, HEIGHT, WIDTH),
					.classes = CLASSES,
					.build = build};
static const struct mu_network padded = {.name = "padded",
					 .help = "the same, with an ignored label",
					 .shape = MU_SAMPLE(2, HEIGHT, WIDTH),
					 .classes = CLASSES,
					 .build = build_padded};
static const struct mu_network wrong = {.name = "wrong",
					.help = "as many channels as the input has",
					.shape = MU_SAMPLE(2, HEIGHT, WIDTH),
					.classes = CLASSES,
					.build = build_wrong};

const struct mu_network *const mu_network_table[] = {&steps, &padded, &wrong, NULL};

/* ---- plans ---- */

struct model {
	struct mu_device device;
	struct mu_net *net;
	struct mu_plan *plan;
	float *weights, *gradients;
	float labels[BATCH * AREA];
};

static enum mu_status model_init(struct model *m, const char *network, const char *device)
{
	enum mu_status st = MU_OK;
	const struct mu_net_config config = {
		.network = network, .shape = MU_SAMPLE(2, HEIGHT, WIDTH), .classes = CLASSES};
	const struct mu_random random = {.seed = 3, .purpose = MU_RANDOM_TEST};

	MU_TRY(mu_device_open(&m->device, device, 1));
	MU_TRY(mu_net_new(&m->net, &config));
	MU_TRY(mu_plan_new(&m->plan, m->net, &m->device, BATCH, MU_PHASE_TRAIN, NULL));
	MU_TRY(MU_ALLOC(m->weights, mu_plan_n(m->plan), "weights"));
	MU_TRY(MU_ALLOC(m->gradients, mu_plan_n(m->plan), "gradients"));
	MU_TRY(mu_plan_init_weights(m->plan, "default", 0, m->weights));
	MU_TRY(mu_plan_bind(m->plan, m->weights, m->gradients));
	for (size_t i = 0; i < BATCH * 2 * AREA; i++)
		mu_plan_input(m->plan)[i] = mu_random_uniform(&random, i);
	for (size_t i = 0; i < BATCH * AREA; i++)
		m->labels[i] = (float)mu_random_below(&random, i, CLASSES);
	mu_plan_batch(m->plan)->labels = m->labels;
	mu_plan_batch(m->plan)->count = BATCH - 1;
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

static enum mu_status forward(struct model *m)
{
	enum mu_status st = MU_OK;

	for (size_t l = 0; l < mu_plan_layers(m->plan); l++)
		MU_TRY(mu_plan_forward(m->plan, l));
out:
	return st;
}

static enum mu_status backward(struct model *m)
{
	enum mu_status st = MU_OK;

	for (size_t l = mu_plan_layers(m->plan); l-- > 0;)
		MU_TRY(mu_plan_backward(m->plan, l));
out:
	return st;
}

/* Loss and predictions from the probabilities, position by position. */
static void check_loss(struct model *m, bool ignore)
{
	const struct mu_shape *shape = mu_plan_probabilities_shape(m->plan);
	const struct mu_shape expected = {4, {BATCH, CLASSES, HEIGHT, WIDTH}};
	const float *p = mu_plan_probabilities(m->plan);
	struct mu_metrics metrics = {0};
	double loss = 0, counted = 0;

	CHECK(mu_shape_equal(shape, &expected));
	for (size_t s = 0; s < BATCH - 1; s++)
		for (size_t at = 0; at < AREA; at++) {
			size_t label = (size_t)m->labels[s * AREA + at];
			double sum = 0;

			for (size_t c = 0; c < CLASSES; c++)
				sum += (double)p[(s * CLASSES + c) * AREA + at];
			CHECK_NEAR(sum, 1, 1e-5);
			if (ignore && label == 1)
				continue;
			loss -= log((double)p[(s * CLASSES + label) * AREA + at]);
			counted++;
		}
	CHECK_NEAR(mu_plan_batch(m->plan)->loss, loss, 1e-6 * loss);
	mu_plan_metrics(m->plan, 0, &metrics);
	CHECK(metrics.counted == counted && metrics.samples == BATCH - 1);
	CHECK_NEAR(mu_metric_used(mu_net_loss(m->net), MU_METRIC_IS_LOSS)->value(&metrics),
		   loss / counted, 1e-6 * loss / counted);
}

/* The gradient of the last bias is the sum over counted predictions of p - onehot. */
static void check_gradient(struct model *m, bool ignore)
{
	const float *p = mu_plan_probabilities(m->plan);
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(m->plan, &n_slices);
	float found[CLASSES];

	CHECK(mu_plan_slice_to_plain(m->plan, 3, m->gradients, found) == MU_OK);
	CHECK_TEXT(slices[3].name, "convolution1_bias");
	for (size_t c = 0; c < CLASSES; c++) {
		double sum = 0;

		for (size_t i = 0; i < (BATCH - 1) * AREA; i++) {
			size_t label = (size_t)m->labels[i];

			if (!ignore || label != 1)
				sum += (double)p[(i / AREA * CLASSES + c) * AREA + i % AREA] -
				       (label == c);
		}
		CHECK_NEAR(found[c], sum, 1e-4);
	}
}

static void test_plan(const char *network, const char *device)
{
	bool ignore = strcmp(network, "padded") == 0;
	struct model m = {.net = NULL};

	if (CHECK(model_init(&m, network, device) == MU_OK)) {
		CHECK(mu_net_labels(m.net) == AREA);
		CHECK(forward(&m) == MU_OK);
		check_loss(&m, ignore); /* its predictions are valid until backward */
		CHECK(backward(&m) == MU_OK);
		check_gradient(&m, ignore);
	}
	model_release(&m);
}

/* ref names the label that cannot be, and the smoothing. */
static void test_refusals(void)
{
	const struct mu_net_config config = {
		.network = "wrong", .shape = MU_SAMPLE(2, HEIGHT, WIDTH), .classes = CLASSES};
	struct model m = {.net = NULL};
	struct mu_net *net;

	if (CHECK(model_init(&m, "steps", "ref") == MU_OK)) {
		m.labels[2 * AREA + 7] = CLASSES;
		CHECK(forward(&m) == MU_ERR_ARGUMENT);
		CHECK_HAS(mu_trace_message(), "the label of sample 2, position 7 is 4");
		mu_trace_clear();
		m.labels[2 * AREA + 7] = 0;
		mu_plan_batch(m.plan)->label_smoothing = 1;
		CHECK(forward(&m) == MU_ERR_ARGUMENT);
		CHECK_HAS(mu_trace_message(), "label smoothing 1 is not in [0, 1)");
		mu_trace_clear();
	}
	model_release(&m);
	CHECK(mu_net_new(&net, &config) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), "softmax needs an input (n, 4) or (n, 4, h, w), not ");
	mu_trace_clear();
}

/* ---- whole runs ---- */

struct job {
	MPI_Comm comm;
	const char *folder, *store;
	int rank;
};

enum { RUN_BATCH = 5, RUN_EXAMPLES = 67 };

/* Perplexity of a run, in its last epoch. */
static double train(const struct job *job, const char *network, int epochs, double lr)
{
	char line[2 * SCRATCH_BYTES], path[2 * SCRATCH_BYTES];

	snprintf(path, sizeof path, "%s/log-%d", job->folder, job->rank);
	snprintf(line, sizeof line,
		 "trainer --network %s --benchmark 1 --num-examples %d --num-epochs %d --lr %g "
		 "--batch-size %d --loss perplexity --kv-store %s",
		 network, RUN_EXAMPLES, epochs, lr, RUN_BATCH, job->store);
	CHECK(fit_run_logged(job->comm, line, path) == MU_OK);
	snprintf(line, sizeof line, "trained %d samples", epochs * RUN_EXAMPLES);
	if (job->rank == 0)
		CHECK(fit_log_has(path, line));
	snprintf(line, sizeof line, "Epoch[%d] Train-perplexity", epochs - 1);
	return fit_logged(path, line);
}

/* Fill the plan with record i of the data that the runs have. */
static bool put_record(struct model *m, struct mu_input *data, size_t i)
{
	const size_t sample = (size_t)2 * AREA;

	CHECK(data->ops->read(data, NULL, i, mu_plan_input(m->plan), m->labels) == MU_OK);
	mu_plan_batch(m->plan)->count = 1;
	memset(mu_plan_input(m->plan) + sample, 0, (BATCH - 1) * sample * sizeof(float));
	return CHECK(forward(m) == MU_OK && backward(m) == MU_OK);
}

/* Perplexity over all records with the weights that a run begins with, in a plain loop. */
static double begin(const char *network)
{
	const struct mu_input_config config = {.reader = "synthetic",
					       .num_examples = RUN_EXAMPLES,
					       .shape = MU_SAMPLE(2, HEIGHT, WIDTH),
					       .classes = CLASSES,
					       .label_width = AREA,
					       .batch = RUN_BATCH,
					       .num_workers = 1};
	bool ignore = strcmp(network, "padded") == 0;
	struct mu_input data;
	struct model m = {.net = NULL};
	double logs = 0, counted = 0;

	if (!CHECK(mu_input_open(&data, &config) == MU_OK))
		return NAN;
	if (CHECK(model_init(&m, network, "ref") == MU_OK))
		for (size_t i = 0; i < RUN_EXAMPLES && put_record(&m, &data, i); i++)
			for (size_t at = 0; at < AREA; at++) {
				size_t label = (size_t)m.labels[at];

				if (ignore && label == 1)
					continue;
				logs += log(
					(double)mu_plan_probabilities(m.plan)[label * AREA + at]);
				counted++;
			}
	model_release(&m);
	mu_input_close(&data);
	return exp(-logs / counted);
}

static void test_runs(const struct job *job, const char *network)
{
	double still = train(job, network, 1, 0), end = train(job, network, 6, 0.02);

	if (job->rank != 0)
		return;
	CHECK_NEAR(still, begin(network), 2e-5);
	CHECK(end < still - 0.1);
}

/* Files have one label a sample. */
static void test_files(const struct job *job)
{
	char line[4 * SCRATCH_BYTES];

	snprintf(line, sizeof line,
		 "trainer --network steps --num-classes 10 --data-dir %s --batch-size 5 "
		 "--kv-store %s",
		 job->folder, job->store);
	CHECK(fit_run(job->comm, line) == MU_ERR_USAGE);
	if (*mu_trace_message())
		CHECK_HAS(mu_trace_message(), "network steps needs 784 labels a sample");
	mu_trace_clear();
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
	for (size_t d = 0; size == 1 && mu_device_table[d]; d++) {
		if (!CHECK_IS_HERE(mu_device_table[d]))
			continue;
		test_plan("steps", mu_device_table[d]->name);
		test_plan("padded", mu_device_table[d]->name);
	}
	test_refusals();
	test_runs(&job, "steps");
	test_runs(&job, "padded");
	test_files(&job);
	failures = check_failures();
	CHECK(mu_allreduce_long(&failures, 1, MPI_SUM, world) == MU_OK);
	if (job.rank == 0)
		scratch_remove(folder);
	return mu_world_close(&world, failures ? 1 : 0);
}
