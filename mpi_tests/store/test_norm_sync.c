/* SPDX-License-Identifier: Apache-2.0 */
/* @np 3 @np-full 2 3 4 */
/*
 * Batch-norm between workers: moving statistics travel as keys of dist_sync. After every step they
 * are the running average over all workers' batches, and equal to the bit on every worker.
 */
#include <stdlib.h>

#include <muster/base.h>
#include <muster/comm.h>
#include <muster/device.h>
#include <muster/kvstore.h>
#include <muster/plan.h>

#include "../lib/check.h"

enum { BATCH = 4, STEPS = 3 };

struct worker {
	const struct mu_members *members;
	size_t batch; /* the last worker of several has a smaller one than the others */
	struct mu_device device;
	struct mu_net *net;
	struct mu_plan *plan;
	struct mu_kv *kv;
	float *before;          /* weights before the step */
	float *gradients, *all; /* of this worker; weights or gradients of all workers */
	float labels[BATCH];
};

static enum mu_status plan(struct worker *w)
{
	enum mu_status st = MU_OK;
	const struct mu_net_config config = {
		.network = "resnet", .shape = MU_SAMPLE(3, 28, 28), .classes = 10, .num_layers = 8};
	size_t n, workers = (size_t)w->members->num_workers;
	bool last = workers > 1 && w->members->index == w->members->num_workers - 1;

	w->batch = last ? BATCH / 2 : BATCH;
	MU_TRY(mu_device_open(&w->device, NULL, 1));
	MU_TRY(mu_net_new(&w->net, &config));
	MU_TRY(mu_plan_new(&w->plan, w->net, &w->device, w->batch, MU_PHASE_TRAIN, NULL));
	n = mu_plan_n(w->plan);
	MU_TRY(MU_ALLOC(w->before, n, "weights"));
	MU_TRY(MU_ALLOC(w->gradients, n, "gradients"));
	MU_TRY(MU_ALLOC(w->all, n * workers, "arrays of all workers"));
out:
	return st;
}

/* Every worker has samples of its own. */
static enum mu_status step(struct worker *w, size_t number)
{
	enum mu_status st = MU_OK;
	struct mu_random random = {
		.seed = number, .purpose = MU_RANDOM_TEST, .sample = (uint64_t)w->members->index};
	struct mu_batch *b = mu_plan_batch(w->plan);
	size_t n = mu_plan_n(w->plan), n_keys, layers = mu_plan_layers(w->plan);

	mu_plan_slices(w->plan, &n_keys);
	for (size_t i = 0; i < w->batch * 3 * 28 * 28; i++)
		mu_plan_input(w->plan)[i] = mu_random_uniform(&random, i);
	for (size_t i = 0; i < BATCH; i++)
		w->labels[i] = (float)((i + number) % 10);
	b->labels = w->labels;
	b->count = w->batch;
	memcpy(w->before, mu_kv_weights(w->kv), n * sizeof(float));
	MU_TRY(mu_kv_step_begin(w->kv, w->batch));
	for (size_t l = 0; l < layers; l++)
		MU_TRY(mu_plan_forward(w->plan, l));
	for (size_t l = layers; l-- > 0;)
		MU_TRY(mu_plan_backward(w->plan, l));
	memcpy(w->gradients, mu_kv_gradients(w->kv), n * sizeof(float));
	for (size_t k = n_keys; k-- > 0;)
		MU_TRY(mu_kv_push_ready(w->kv, k));
	MU_TRY(mu_kv_step_end(w->kv));
out:
	return st;
}

/* mov <- momentum mov + (1 - momentum) * sum over workers of n * statistic / sum of n */
static enum mu_status check_averages(struct worker *w, size_t samples)
{
	enum mu_status st = MU_OK;
	size_t n = mu_plan_n(w->plan), n_keys, wrong = 0, changed = 0, averages = 0;
	size_t workers = (size_t)w->members->num_workers;
	const struct mu_slice *slices = mu_plan_slices(w->plan, &n_keys);
	const float *after = mu_kv_weights(w->kv);

	MU_TRY(mu_allgather(w->gradients, w->all, n * sizeof(float), w->members->peers));
	for (size_t k = 0; k < n_keys; k++)
		for (size_t i = slices[k].at; i < slices[k].at + slices[k].n; i++) {
			double sum = 0, momentum = (double)slices[k].momentum, expected;

			if (slices[k].rule != MU_SLICE_AVERAGE)
				continue;
			for (size_t p = 0; p < workers; p++)
				sum += (double)w->all[p * n + i];
			expected = momentum * (double)w->before[i] +
				   (1 - momentum) * sum / (double)samples;
			wrong += fabs((double)after[i] - expected) < 1e-5 * (1 + fabs(expected))
					 ? 0
					 : 1;
			changed += after[i] != w->before[i];
			averages++;
		}
	CHECK(averages == 486);
	CHECK(wrong == 0);
	CHECK(changed > averages * 9 / 10);
out:
	return st;
}

enum { CHANNELS = 3, AREA = 28 * 28 };

/* Mean, then biased variance of each channel of this worker's input, times its samples. */
static void measure_input(struct worker *w, double statistics[2 * CHANNELS])
{
	const float *input = mu_plan_input(w->plan);
	double n = (double)(w->batch * AREA);

	for (size_t c = 0; c < CHANNELS; c++) {
		double sum = 0, squares = 0;

		for (size_t i = 0; i < w->batch * AREA; i++) {
			double v = (double)input[(i / AREA * CHANNELS + c) * AREA + i % AREA];

			sum += v;
			squares += v * v;
		}
		statistics[c] = (double)w->batch * sum / n;
		statistics[CHANNELS + c] = (double)w->batch * (squares / n - sum / n * (sum / n));
	}
}

/* The same of the first batch-norm, which reads the input, from the input itself. */
static enum mu_status check_first(struct worker *w, size_t samples)
{
	enum mu_status st = MU_OK;
	double mine[2 * CHANNELS], all[8][2 * CHANNELS];
	size_t n_keys, found = 0;
	const struct mu_slice *slices = mu_plan_slices(w->plan, &n_keys);
	const float *after = mu_kv_weights(w->kv);

	measure_input(w, mine);
	MU_TRY(mu_allgather(mine, all, sizeof mine, w->members->peers));
	for (size_t k = 0; k < n_keys; k++) {
		bool mean = strcmp(slices[k].name, "bn_data_moving_mean") == 0;

		if (!mean && strcmp(slices[k].name, "bn_data_moving_var") != 0)
			continue;
		for (size_t c = 0; c < CHANNELS; c++) {
			double sum = 0, before = (double)w->before[slices[k].at + c];

			for (int p = 0; p < w->members->num_workers; p++)
				sum += all[p][mean ? c : CHANNELS + c];
			CHECK_NEAR(after[slices[k].at + c],
				   0.9 * before + 0.1 * sum / (double)samples, 1e-5);
			found++;
		}
	}
	CHECK(found == 2 * CHANNELS);
out:
	return st;
}

static enum mu_status check_equal(struct worker *w)
{
	enum mu_status st = MU_OK;
	size_t n = mu_plan_n(w->plan);
	const float *weights = mu_kv_weights(w->kv);

	MU_TRY(mu_allgather(weights, w->all, n * sizeof(float), w->members->peers));
	for (int p = 0; p < w->members->num_workers; p++)
		CHECK(memcmp(w->all + (size_t)p * n, weights, n * sizeof(float)) == 0);
out:
	return st;
}

static enum mu_status train(struct worker *w)
{
	enum mu_status st = MU_OK;
	float *weights = mu_kv_weights(w->kv);
	size_t workers = (size_t)w->members->num_workers;
	size_t samples = workers > 1 ? workers * BATCH - BATCH / 2 : BATCH;

	MU_TRY(mu_plan_bind(w->plan, weights, mu_kv_gradients(w->kv)));
	MU_TRY(mu_plan_init_weights(w->plan, "default", (uint64_t)w->members->index, weights));
	MU_TRY(mu_kv_weights_init(w->kv));
	for (size_t i = 0; i < STEPS; i++) {
		MU_TRY(step(w, i));
		MU_TRY(check_averages(w, samples));
		MU_TRY(check_first(w, samples));
		MU_TRY(check_equal(w));
	}
	MU_TRY(mu_kv_finish(w->kv));
out:
	return st;
}

static enum mu_status run(const struct mu_members *m)
{
	enum mu_status st = MU_OK;
	struct worker w = {.members = m};
	struct mu_kv_config config = {.type = "dist_sync",
				      .members = m,
				      .optim = {.name = "sgd", .mom = 0.9},
				      .schedule = {.lr = 0.05, .factor = 1}};

	if (m->role == MU_ROLE_WORKER) {
		MU_TRY(plan(&w));
		config.slices = mu_plan_slices(w.plan, &config.n_slices);
	}
	MU_TRY(mu_kv_new(&w.kv, &config));
	MU_TRY(m->role == MU_ROLE_SERVER ? mu_kv_serve(w.kv) : train(&w));
out:
	mu_kv_free(w.kv);
	mu_plan_free(w.plan);
	mu_net_free(w.net);
	mu_device_close(&w.device);
	mu_free(w.before);
	mu_free(w.gradients);
	mu_free(w.all);
	return st;
}

int main(int argc, char **argv)
{
	struct mu_members m;
	MPI_Comm world;
	long failures;

	if (mu_world_open(&argc, &argv, &world) != MU_OK)
		return 1;
	if (mu_members_init(&m, world, 1, MU_PLACEMENT_SPREAD) != MU_OK || run(&m) != MU_OK) {
		mu_trace_print(stderr, "test_norm_sync");
		mu_world_abort(1);
	}
	failures = check_failures();
	if (mu_allreduce_long(&failures, 1, MPI_SUM, world) != MU_OK)
		failures = 1;
	mu_members_release(&m);
	return mu_world_close(&world, failures ? 1 : 0);
}
