/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure: how fast a store moves the gradients of a network, without computing any. Every step
 * pushes all keys, last key first, and pulls them; the sums are checked against what they must be,
 * to the bit.
 *
 *	mpirun -np 3 measure --network resnet --num-layers 50 --kv-store dist_sync --num-servers 1
 *
 * Bandwidth is bytes of the model / seconds of one push and pull, per worker (1e9 bytes/s). Beside
 * it stands what the links between the ranks allow (mu_comm_link, mu_kv_bound).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <muster/kvstore.h>
#include <muster/plan.h>

#include "program.h"

struct values {
	const char *network, *image_shape, *kv_store, *gc_type;
	long num_layers, num_classes, num_servers, num_batches, disp_batches, test_results;
	const char *node_reduce;
	long bucket_bytes;
	bool json, help;
};

#define AT(member) .offset = offsetof(struct values, member)
#define MANY 2147483647.0

static const struct mu_option table[] = {
	{.name = "network",
	 .type = MU_OPTION_STRING,
	 AT(network),
	 .initial = "resnet",
	 .group = "model",
	 .help = "NAME  network whose arrays are moved"},
	{.name = "num-layers",
	 .type = MU_OPTION_INT,
	 AT(num_layers),
	 .initial = "0",
	 .max = 10000,
	 .group = "model",
	 .help = "N  its depth (0: the network's own)"},
	{.name = "image-shape",
	 .type = MU_OPTION_STRING,
	 AT(image_shape),
	 .group = "model",
	 .help = "C,H,W  its input (default: the network's own)"},
	{.name = "num-classes",
	 .type = MU_OPTION_INT,
	 AT(num_classes),
	 .initial = "0",
	 .max = 1e7,
	 .group = "model",
	 .help = "N  classes (0: the network's own)"},
	{.name = "kv-store",
	 .type = MU_OPTION_STRING,
	 AT(kv_store),
	 .group = "store",
	 .help = "NAME  store (default: device for one rank, dist_sync for several)"},
	{.name = "num-servers",
	 .type = MU_OPTION_INT,
	 AT(num_servers),
	 .initial = "-1",
	 .min = -1,
	 .max = 1e6,
	 .group = "store",
	 .help = "S  ranks that serve parameters (-1: one per node)"},
	{.name = "bucket-bytes",
	 .type = MU_OPTION_INT,
	 AT(bucket_bytes),
	 .initial = "0",
	 .max = 1e12,
	 .group = "store",
	 .help = "N  size of the pieces that gradients travel in (0: the store's choice)"},
	{.name = "node-reduce",
	 .type = MU_OPTION_STRING,
	 AT(node_reduce),
	 .initial = "auto",
	 .choices = "auto|shm|mpi|none",
	 .group = "store",
	 .help = "NAME  inside a node shared memory where there is room (auto), always (shm), or "
		 "messages, to other nodes as one (mpi) or each its own (none)"},
	{.name = "gc-type",
	 .type = MU_OPTION_STRING,
	 AT(gc_type),
	 .initial = "none",
	 .choices = "none",
	 .group = "store",
	 .help = "none  gradient compression"},
	{.name = "num-batches",
	 .type = MU_OPTION_INT,
	 AT(num_batches),
	 .initial = "5",
	 .min = 1,
	 .max = MANY,
	 .group = "measurement",
	 .help = "N  steps that count; one more goes before them"},
	{.name = "disp-batches",
	 .type = MU_OPTION_INT,
	 AT(disp_batches),
	 .initial = "1",
	 .min = 1,
	 .max = MANY,
	 .group = "measurement",
	 .help = "N  a line every N steps"},
	{.name = "test-results",
	 .type = MU_OPTION_INT,
	 AT(test_results),
	 .initial = "1",
	 .max = 1,
	 .toggle = true,
	 .group = "measurement",
	 .help = "check the sums of every step (outside the time measured)"},
	{.name = "json",
	 .type = MU_OPTION_FLAG,
	 AT(json),
	 .group = "measurement",
	 .help = "one JSON line at the end instead of text"},
	{.name = "help", .type = MU_OPTION_FLAG, AT(help), .group = "other", .help = "this text"},
};

struct job {
	struct values v;
	struct mu_members members;
	struct mu_kv_type store;
	struct mu_device device;
	struct mu_net *net;
	struct mu_plan *plan;
	struct mu_kv *kv;
	double bandwidth; /* of a link, bytes/s */
	double *seconds;  /* of every step */
};

/* ---- set-up ---- */

static enum mu_status find_model(const struct values *v, struct mu_net_config *model)
{
	enum mu_status st = MU_OK;
	const struct mu_network *network;

	MU_TRY(mu_network_find(&network, v->network));
	*model = (struct mu_net_config){
		.network = v->network,
		.classes = v->num_classes ? (size_t)v->num_classes : network->classes,
		.num_layers = v->num_layers,
	};
	model->shape = network->shape;
	if (v->image_shape && (!mu_sample_parse(&model->shape, v->image_shape) ||
			       model->shape.ndims != network->shape.ndims))
		MU_FAIL(MU_ERR_USAGE, "--image-shape %s: three numbers are needed, such as 3,28,28",
			v->image_shape);
out:
	return st;
}

/* The arrays of the network; nothing is computed, so a batch of one in plain layout will do. */
static enum mu_status make_model(struct job *j)
{
	enum mu_status st = MU_OK;
	struct mu_net_config model;

	if (j->members.role != MU_ROLE_WORKER)
		goto out;
	MU_TRY(find_model(&j->v, &model));
	MU_TRY(mu_device_open(&j->device, "ref", 1));
	MU_TRY(mu_net_new(&j->net, &model));
	MU_TRY(mu_plan_new_dry(&j->plan, j->net, &j->device, 1, MU_PHASE_TRAIN, NULL));
	MU_TRY(MU_ALLOC(j->seconds, (size_t)j->v.num_batches, "times"));
out:
	return st;
}

static enum mu_status make_store(struct job *j)
{
	enum mu_status st = MU_OK;
	struct mu_kv_config config = {
		.type = j->v.kv_store,
		.members = &j->members,
		.bucket_bytes = (size_t)j->v.bucket_bytes,
		.optim = {.name = "none"},
		.schedule = {.lr = 1, .factor = 1},
	};

	MU_TRY(mu_kv_node_find(&config.node_reduce, j->v.node_reduce));
	if (j->members.role == MU_ROLE_WORKER)
		config.slices = mu_plan_slices(j->plan, &config.n_slices);
	MU_TRY(mu_kv_new(&j->kv, &config));
out:
	return st;
}

static enum mu_status setup(struct job *j, MPI_Comm world)
{
	enum mu_status st = MU_OK;
	int rank, size, threads;
	long servers = j->v.num_servers;

	MU_TRY(mu_comm_rank(world, &rank, &size));
	if (!j->v.kv_store)
		j->v.kv_store = size > 1 ? "dist_sync" : "device";
	MU_TRY(mu_kv_type_check(j->v.kv_store, &j->store));
	if (!j->store.has_servers && servers > 0)
		MU_FAIL(MU_ERR_USAGE, "--num-servers %ld: --kv-store %s has no servers", servers,
			j->v.kv_store);
	MU_TRY(mu_members_init(&j->members, world, j->store.has_servers ? (int)servers : 0,
			       MU_PLACEMENT_SPREAD));
	MU_TRY(mu_members_place(&j->members, 0, &threads));
	MU_TRY(mu_agree(make_model(j), world));
	MU_TRY(make_store(j));
out:
	return st;
}

/* ---- the steps ---- */

/* Small integers: their sums are exact in any order. */
static float value(size_t i, int worker)
{
	return (float)(i % 251) - 125 + (float)worker;
}

/* Sum of |got - expected| over sum of |expected|; padding between keys is not looked at. */
static double error_of(const struct job *j)
{
	const float *got = mu_kv_weights(j->kv);
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(j->plan, &n_slices);
	int n = j->store.synchronous ? j->members.num_workers : 0;
	double wrong = 0, all = 0;

	for (size_t k = 0; k < n_slices; k++) {
		if (slices[k].rule == MU_SLICE_AVERAGE)
			continue; /* these are averaged, whatever the rule */
		for (size_t i = slices[k].at; i < slices[k].at + slices[k].n; i++) {
			double expected = 0;

			for (int w = 0; w < n; w++)
				expected += (double)value(i, w);
			wrong += fabs((double)got[i] - expected);
			all += fabs(expected);
		}
	}
	return n ? wrong / all : 0; /* an asynchronous store has no sum over workers */
}

static enum mu_status push_pull(struct job *j, size_t n_keys)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_kv_step_begin(j->kv, 1));
	for (size_t k = n_keys; k-- > 0;)
		MU_TRY(mu_kv_push_ready(j->kv, k));
	for (size_t k = 0; k < n_keys; k++)
		MU_TRY(mu_kv_pull_end(j->kv, k));
	MU_TRY(mu_kv_step_end(j->kv));
out:
	return st;
}

/* One step; *seconds is that of the slowest worker. */
static enum mu_status step(struct job *j, size_t n_keys, double *seconds)
{
	enum mu_status st = MU_OK;
	double start;

	MU_TRY(mu_barrier(j->members.peers));
	start = mu_now();
	MU_TRY(push_pull(j, n_keys));
	*seconds = mu_now() - start;
	MU_TRY(mu_allreduce_double(seconds, 1, MPI_MAX, j->members.peers));
out:
	return st;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(struct job *j, double nbytes, double worst)
{
	size_t n = (size_t)j->v.num_batches;
	double seconds, limit = mu_kv_bound(j->kv, j->bandwidth);

	qsort(j->seconds, n, sizeof *j->seconds, compare);
	seconds = j->seconds[n / 2];
	if (j->v.json)
		printf("{\"network\":\"%s\",\"store\":\"%s\",\"workers\":%d,\"servers\":%d,"
		       "\"bytes\":%.0f,\"batches\":%zu,\"seconds\":%.6g,\"seconds_min\":%.6g,"
		       "\"seconds_max\":%.6g,\"GBps\":%.6g,\"link_GBps\":%.6g,\"bound_seconds\":"
		       "%.6g,\"of_bound\":%.4f,\"error\":%g}\n",
		       j->v.network, j->v.kv_store, j->members.num_workers, j->members.num_servers,
		       nbytes, n, seconds, j->seconds[0], j->seconds[n - 1], nbytes / seconds / 1e9,
		       j->bandwidth / 1e9, limit, limit / seconds, worst);
	else
		printf("median of %zu: %f sec, %f GB/sec per worker\n", n, seconds,
		       nbytes / seconds / 1e9);
	if (!j->v.json && limit > 0)
		printf("a link of %f GB/sec bounds a step to %f sec: reached %.2f of that\n",
		       j->bandwidth / 1e9, limit, limit / seconds);
}

static enum mu_status run_worker(struct job *j)
{
	enum mu_status st = MU_OK;
	bool speaker = j->members.index == 0, text = speaker && !j->v.json;
	size_t n_keys;
	const struct mu_slice *slices = mu_plan_slices(j->plan, &n_keys);
	float *gradients = mu_kv_gradients(j->kv);
	double nbytes = 0, worst = 0, seconds;

	for (size_t k = 0; k < n_keys; k++) {
		nbytes += (double)slices[k].n * sizeof(float);
		for (size_t i = slices[k].at; i < slices[k].at + slices[k].n; i++)
			gradients[i] = value(i, j->members.index);
	}
	if (text)
		printf("num of arrays = %zu, total size = %f MB\n", n_keys, nbytes / 1e6);
	MU_TRY(mu_kv_weights_init(j->kv));
	MU_TRY(step(j, n_keys, &seconds));
	for (long i = 0; i < j->v.num_batches; i++) {
		double error = 0;

		MU_TRY(step(j, n_keys, &j->seconds[i]));
		if (j->v.test_results)
			error = error_of(j);
		MU_TRY(mu_allreduce_double(&error, 1, MPI_MAX, j->members.peers));
		worst = fmax(worst, error);
		if (text && i % j->v.disp_batches == 0)
			printf("iter %ld, %f sec, %f GB/sec per worker, error %f\n", i + 1,
			       j->seconds[i], nbytes / j->seconds[i] / 1e9, error);
	}
	MU_TRY(mu_kv_finish(j->kv));
	if (speaker)
		report(j, nbytes, worst);
	if (worst > 0)
		MU_FAIL(MU_ERR_NUMERIC, "the sums are wrong: relative error %g", worst);
out:
	return st;
}

static enum mu_status run(void *context, MPI_Comm world)
{
	enum mu_status st = MU_OK;
	struct job *j = context;

	MU_TRY(setup(j, world));
	MU_TRY(mu_comm_link(j->members.comm, &j->bandwidth));
	if (j->members.role == MU_ROLE_SERVER)
		MU_TRY(mu_kv_serve(j->kv));
	else
		MU_TRY(run_worker(j));
out:
	mu_kv_free(j->kv);
	mu_plan_free(j->plan);
	mu_net_free(j->net);
	if (j->device.ops)
		mu_device_close(&j->device);
	mu_free(j->seconds);
	if (j->members.size > 0)
		mu_members_release(&j->members);
	return st;
}

int main(int argc, char **argv)
{
	struct job j = {.v = {.help = false}};
	const struct bench_program program = {
		.name = "measure",
		.about = "Time pushes and pulls of a network's arrays through a store.\n",
		.table = table,
		.n_options = sizeof table / sizeof *table,
		.values = &j.v,
		.help = &j.v.help,
		.roles = &j.members,
		.run = run,
		.context = &j,
	};

	return bench_main(&program, argc, argv);
}
