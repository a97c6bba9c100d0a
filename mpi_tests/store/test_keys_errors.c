/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 4 5 */
/*
 * The store of keys: what a caller does wrong is an error that names key, rank and values, on every
 * worker that it concerns, and nobody hangs. Updaters, and what they do when they fail.
 */
#include <math.h>

#include "keys_job.h"

static float w[200000], g[200000];
static struct mu_array values = {w, 100, MU_FLOAT32}, gradients = {g, 100, MU_FLOAT32};

static struct mu_kv_item with(int key, struct mu_array *a, size_t n)
{
	a->n = n;
	return item_of(key, a);
}

/* ---- calls that a worker refuses by itself ---- */

static void refused_schedules(struct mu_keys *store)
{
	static const struct {
		struct mu_schedule schedule;
		const char *part;
	} cases[] = {
		{{.kind = (enum mu_schedule_kind)17, .lr = 1}, "kind of the schedule"},
		{{.lr = 1, .final_lr = -1}, "learning rate"},
		{{.lr = 1, .warmup = 3, .warmup_begin_lr = INFINITY}, "learning rate"},
		{{.lr = 1, .factor = -1}, "factor, warmup and power"},
		{{.lr = 1, .warmup = INFINITY}, "factor, warmup and power"},
		{{.lr = 1, .factor = 0.1, .n_steps = 2, .steps = {5, 3}}, "ascending"},
		{{.lr = 1, .factor = 0.1, .n_steps = 1000}, "too many steps"},
		{{.kind = MU_SCHEDULE_FACTOR, .lr = 1, .factor = 0.1}, "step of the schedule"},
		{{.kind = MU_SCHEDULE_COSINE, .lr = 1, .length = 5, .warmup = 5}, "length of"},
		{{.kind = MU_SCHEDULE_POLY, .lr = 1, .length = INFINITY}, "length of"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct mu_kv_optimizer o = {
			.optim = {.name = "sgd"}, .schedule = cases[i].schedule, .rescale = 1};

		fails(mu_keys_set_optimizer(store, &o), MU_ERR_ARGUMENT, cases[i].part);
	}
}

static void refused_rows(struct mu_keys *store)
{
	struct mu_kv_item one = with(7, &values, 100);
	uint64_t rows[2] = {3, 10};

	one.row_length = 10;
	one.n_rows = 2;
	one.rows = rows;
	values.n = 20;
	fails(mu_keys_pull_rows(store, 1, &one, 0), MU_ERR_ARGUMENT, "row 10, and it has 10 rows");
	values.n = 19; /* the array is checked before numbers are read */
	fails(mu_keys_pull_rows(store, 1, &one, 0), MU_ERR_ARGUMENT,
	      "19 elements, and at least 20");
	rows[1] = 4;
	fails(mu_keys_pull_rows(store, 1, &one, 0), MU_ERR_ARGUMENT,
	      "19 elements, and at least 20");
	one.row_length = 4;
	one.n_rows = (size_t)1 << 62;
	fails(mu_keys_push(store, 1, &one, 0), MU_ERR_ARGUMENT, "rows of 4 elements are more");
	one.n_rows = 2;
	one.row_length = 33;
	fails(mu_keys_pull_rows(store, 1, &one, 0), MU_ERR_ARGUMENT, "are not rows of 33");
	fails(mu_keys_pull(store, 1, &one, 0), MU_ERR_ARGUMENT, "use mu_keys_push and");
}

static void refused(struct mu_keys *store, void *context)
{
	struct mu_kv_item one = with(7, &values, 100), two[2];
	struct mu_array half = {w, 100, MU_FLOAT16};
	const struct mu_array uneven[2] = {{w, 4, MU_FLOAT32}, {w, 3, MU_FLOAT32}};
	const struct mu_kv_optimizer bad = {.optim = {.name = "magic"}, .rescale = 1};
	const struct mu_kv_optimizer lars = {.optim = {.name = "lars"}, .rescale = 1};
	const struct mu_kv_optimizer zero = {.optim = {.name = "sgd"}};
	const struct mu_kv_optimizer infinite = {.optim = {.name = "sgd"}, .rescale = INFINITY};
	const double rates[] = {-1, INFINITY, -INFINITY, (double)NAN};

	(void)context;
	fails(mu_keys_push(store, 1, &one, 0), MU_ERR_ARGUMENT, "push of key 7");
	fails(mu_keys_pull(store, 1, &one, 0), MU_ERR_ARGUMENT, "has not made this key");
	must(mu_keys_init(store, 1, &one));
	fails(mu_keys_init(store, 1, &one), MU_ERR_ARGUMENT, "makes key 7 twice");
	one.key = -4;
	fails(mu_keys_init(store, 1, &one), MU_ERR_ARGUMENT, "key -4");
	two[0] = two[1] = with(9, &values, 100);
	fails(mu_keys_init(store, 2, two), MU_ERR_ARGUMENT, "makes key 9 twice");
	two[1] = with(11, &values, 100);
	two[1].row_length = 10;
	fails(mu_keys_init(store, 1, &two[1]), MU_ERR_ARGUMENT, "key 11 on worker 0");
	two[1] = (struct mu_kv_item){.key = 11, .n_arrays = 2, .arrays = uneven};
	fails(mu_keys_init(store, 1, &two[1]), MU_ERR_ARGUMENT, "the arrays of key 11 on worker 0");
	one = with(10, &values, 0);
	fails(mu_keys_init(store, 1, &one), MU_ERR_ARGUMENT, "without elements");
	one = with(10, &values, (size_t)1 << 50); /* more than the machine has */
	fails(mu_keys_init(store, 1, &one), MU_ERR_ARGUMENT, "is 4194304.0 GiB, and the machine");
	one = with(10, &values, (size_t)1 << 62); /* its bytes do not fit a number */
	fails(mu_keys_init(store, 1, &one), MU_ERR_ARGUMENT, "key 10 of 4611686018427387904 float");
	one = with(7, &values, 99);
	fails(mu_keys_push(store, 1, &one, 0), MU_ERR_ARGUMENT,
	      "has 99 elements, and 100 are needed");
	fails(mu_keys_pull(store, 1, &one, 0), MU_ERR_ARGUMENT, "99 elements, and at least 100");
	fails(mu_keys_pushpull(store, 1, &one, 0), MU_ERR_ARGUMENT,
	      "mu_keys_pushpull of key 7 on rank");
	one = item_of(7, &half);
	fails(mu_keys_push(store, 1, &one, 0), MU_ERR_ARGUMENT,
	      "the array is float16, the key float32");
	fails(mu_keys_pull(store, 1, &one, 0), MU_ERR_ARGUMENT,
	      "the array is float16, the key float32");
	two[0] = two[1] = with(7, &values, 100);
	fails(mu_keys_push(store, 2, two, 0), MU_ERR_ARGUMENT, "names key 7 twice");
	two[0].n_arrays = 0;
	fails(mu_keys_pull(store, 1, two, 0), MU_ERR_ARGUMENT, "no array");
	refused_rows(store);
	fails(mu_keys_set_optimizer(store, &bad), MU_ERR_ARGUMENT, "no optimizer 'magic'");
	fails(mu_keys_set_optimizer(store, &zero), MU_ERR_ARGUMENT, "rescale");
	fails(mu_keys_set_optimizer(store, &lars), MU_ERR_ARGUMENT, "norms over whole keys");
	for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
		const struct mu_kv_optimizer o = {
			.optim = {.name = "sgd"}, .schedule.lr = rates[i], .rescale = 1};

		fails(mu_keys_set_optimizer(store, &o), MU_ERR_ARGUMENT, "learning rate");
	}
	refused_schedules(store);
	fails(mu_keys_set_optimizer(store, &infinite), MU_ERR_ARGUMENT, "rescale");
	fails(mu_keys_set_compression(store, "2bit", INFINITY), MU_ERR_ARGUMENT, "threshold inf");
	fails(mu_keys_set_compression(store, "1bit", INFINITY), MU_ERR_ARGUMENT, "threshold inf");
	fails(mu_keys_set_compression(store, "2bit", (double)NAN), MU_ERR_ARGUMENT,
	      "threshold nan");
	fails(mu_keys_set_updater(store, "mine"), MU_ERR_ARGUMENT, "no updater 'mine'");
	fails(mu_keys_states_save(store, NULL, NULL), MU_ERR_ARGUMENT,
	      "without mu_keys_set_optimizer");
	/* After all that the store works. */
	one = with(7, &values, 100);
	must(mu_keys_pull(store, 1, &one, 0));
}

/* ---- workers that do not do the same ---- */

static void differing(struct mu_keys *store, void *context)
{
	const int last = mu_keys_num_workers(store) - 1;
	const bool odd = mu_keys_rank(store) == last && last > 0;
	struct mu_kv_item items[2] = {with(1, &values, 50), item_of(2, &values)};
	char text[128];
	const struct mu_kv_optimizer one = {.optim = {.name = odd ? "test" : "none"}, .rescale = 1};

	(void)context;
	if (last == 0)
		return;
	values.n = odd ? 51 : 50;
	fails(mu_keys_init(store, 2, items), MU_ERR_ARGUMENT,
	      "makes key 1 of 51 float32, and worker 0");
	values.n = 50;
	fails(mu_keys_init(store, odd ? 1 : 2, items), MU_ERR_ARGUMENT, "makes 1 keys, worker 0 2");
	items[1].key = odd ? 3 : 2;
	fails(mu_keys_init(store, 2, items), MU_ERR_ARGUMENT, "makes key 3 of 50 float32");
	items[1].key = odd ? -1 : 2;
	fails(mu_keys_init(store, 2, items), MU_ERR_ARGUMENT, "key -1");
	snprintf(text, sizeof text, "worker %d (rank %d) sets the optimizer 'test'", last,
		 members.worker_ranks[last]);
	fails(mu_keys_set_optimizer(store, &one), MU_ERR_ARGUMENT, text);
	snprintf(text, sizeof text,
		 "worker %d (rank %d) calls mu_keys_barrier, and worker 0 "
		 "mu_keys_set_updater",
		 last, members.worker_ranks[last]);
	fails(odd ? mu_keys_barrier(store) : mu_keys_set_updater(store, NULL), MU_ERR_ARGUMENT,
	      text);
	/* Nothing of this was kept. */
	items[1].key = 2;
	must(mu_keys_init(store, 2, items));
}

/* ---- updaters ---- */

static enum mu_status halve(void *context, int key, size_t from, size_t n, const float *gradient,
			    float *weights)
{
	int *calls = context;

	(void)key;
	(void)from;
	++*calls;
	for (size_t i = 0; i < n; i++)
		weights[i] = weights[i] / 2 + gradient[i];
	return MU_OK;
}

/* Fails in the run that has element 5 of key 4, when the gradient is 13 there. */
static enum mu_status moody(void *context, int key, size_t from, size_t n, const float *gradient,
			    float *weights)
{
	enum mu_status st = MU_OK;

	(void)context;
	memcpy(weights, gradient, n * sizeof *weights);
	for (size_t i = 0; i < n; i++) {
		if (key == 4 && from + i == 5 && gradient[i] >= 13)
			MU_FAIL(MU_ERR_NUMERIC, "I do not like %.0f", (double)gradient[i]);
	}
out:
	return st;
}

static int calls;
static const struct mu_kv_updater updaters[] = {{"halve", halve, &calls}, {"moody", moody, NULL}};
static const struct mu_keys_config updated = {.updaters = updaters, .n_updaters = 2};

static void halving(struct mu_keys *store, void *context)
{
	struct mu_kv_item value = with(3, &values, 10000), push = with(3, &gradients, 10000);
	const struct mu_kv_item nothing = {.key = 3, .row_length = 10};
	float expected = 8;
	size_t wrong = 0;

	(void)context;
	for (size_t i = 0; i < 10000; i++) {
		w[i] = 8;
		g[i] = (float)(mu_keys_rank(store) + 1);
	}
	must(mu_keys_init(store, 1, &value));
	must(mu_keys_set_updater(store, "halve"));
	for (int round = 0; round < 3; round++) {
		float sum = 0;

		for (int i = 1; i <= mu_keys_num_workers(store); i++)
			sum += (float)i;
		expected = expected / 2 + sum;
		must(mu_keys_push(store, 1, &push, 0));
	}
	must(mu_keys_pull(store, 1, &value, 0));
	for (size_t i = 0; i < 10000; i++)
		wrong += w[i] != expected;
	CHECK(wrong == 0);
	/* Rows of no number need no array, and are a push all the same. */
	must(mu_keys_push(store, 1, &nothing, 0));
	must(mu_keys_pull(store, 1, &value, 0));
	CHECK(w[0] == expected / 2);
	/* Back to sums: none of the rounds before is touched. */
	must(mu_keys_set_updater(store, NULL));
	must(mu_keys_push(store, 1, &push, 0));
	must(mu_keys_pull(store, 1, &value, 0));
	CHECK(w[0] == (float)(mu_keys_num_workers(store) * (mu_keys_num_workers(store) + 1) / 2));
}

/* The store fails: every worker is told, whatever it does, on whatever server it waits. */
static void failing(struct mu_keys *store, void *context)
{
	enum { N = 180000 };
	struct mu_kv_item keys[3] = {with(4, &values, N), item_of(5, &gradients),
				     item_of(6, &gradients)};
	const bool waits = mu_keys_rank(store) % 2 == 0;
	const char *message = context;

	gradients.n = N;
	for (size_t i = 0; i < N; i++)
		w[i] = g[i] = 13;
	must(mu_keys_init(store, 3, keys));
	must(mu_keys_set_updater(store, "moody"));
	if (waits) {
		fails(mu_keys_pushpull(store, 3, keys, 0), MU_ERR_NUMERIC, message);
	} else {
		/* A push does not wait; who pulls another key is told. Key 6 misses this worker. */
		must(mu_keys_push(store, 2, keys, 0));
		for (int i = 0; i < 1000; i++) {
			if (mu_keys_pull(store, 1, &keys[1], 0) != MU_OK)
				break;
		}
		CHECK_HAS(mu_trace_message(), message);
		mu_trace_clear();
	}
	fails(mu_keys_pull(store, 1, keys, 0), MU_ERR_NUMERIC, message);
	fails(mu_keys_push(store, 1, keys, 0), MU_ERR_NUMERIC, message);
	fails(mu_keys_barrier(store), MU_ERR_NUMERIC, message);
	keys[0].key = 7;
	fails(mu_keys_init(store, 1, keys), mu_keys_rank(store) == 0 ? MU_ERR_NUMERIC : MU_ERR_PEER,
	      message);
}

/* A worker that has finished leaves others waiting. */
static void deserted(struct mu_keys *store, void *context)
{
	struct mu_kv_item key = with(4, &values, 200000);

	(void)context;
	must(mu_keys_init(store, 1, &key));
	if (mu_keys_rank(store) == 0)
		return;
	must(mu_keys_push(store, 1, &key, 0));
	fails(mu_keys_pull(store, 1, &key, 0), MU_ERR_ARGUMENT,
	      "worker 0 (rank 0) has finished after 0 pushes of it");
}

/* The last worker compresses, or by another threshold. Rows are not compressed, and fit all. */
static void mixed(struct mu_keys *store, void *context)
{
	const bool odd = mu_keys_rank(store) == mu_keys_num_workers(store) - 1;
	const uint64_t numbers[2] = {0, 3};
	const struct mu_kv_item whole = with(1, &values, 100);
	struct mu_array some = floats(g, 20);
	struct mu_kv_item rows = item_of(1, &some);

	rows.row_length = 10;
	rows.n_rows = 2;
	rows.rows = numbers;
	must(mu_keys_init(store, 1, &whole));
	must(mu_keys_set_compression(store, "2bit", 0.5));
	must(odd ? mu_keys_push(store, 1, &rows, 0) : mu_keys_push(store, 1, &whole, 0));
	must(mu_keys_pull(store, 1, &whole, 0));
	if (strstr(context, "none"))
		must(mu_keys_set_compression(store, odd ? "2bit" : "none", 0.5));
	else
		must(mu_keys_set_compression(store, "2bit", odd ? 0.25 : 0.5));
	fails(mu_keys_pushpull(store, 1, &whole, 0), MU_ERR_ARGUMENT, context);
}

/* A store that fails: finish tells so on workers, and serve on servers. */
static void run_failing(const char *type, const struct mu_members *m,
			void (*worker)(struct mu_keys *, void *), enum mu_status expected,
			const char *message)
{
	char context[64];
	struct mu_keys_config config = updated;
	struct mu_keys *store = NULL;
	enum mu_status st;

	snprintf(context, sizeof context, "%s", message);
	config.type = type;
	config.members = m;
	must(mu_keys_new(&store, &config));
	if (m->role == MU_ROLE_SERVER) {
		st = mu_keys_serve(store);
	} else {
		worker(store, context);
		st = mu_keys_finish(store);
	}
	CHECK(st == expected);
	CHECK_HAS(mu_trace_message(), message);
	mu_trace_clear();
	mu_keys_free(store);
}

/* ---- the two kinds of store ---- */

/* The last rank makes the store of a model: all are told. */
static void other_kind(void)
{
	static const struct mu_slice slice = {.name = "a_weight", .n = 16, .n_padded = 16};
	const struct mu_kv_config model = {.type = "dist_sync",
					   .members = &members,
					   .slices = &slice,
					   .n_slices = 1,
					   .optim = {.name = "sgd"}};
	const struct mu_keys_config config = {.type = "dist_sync", .members = &members};
	struct mu_keys *store = NULL;
	struct mu_kv *kv = NULL;
	char part[128];

	snprintf(part, sizeof part, "mu_keys_new on rank 0, and mu_kv_new on rank %d", size - 1);
	fails(rank == size - 1 ? mu_kv_new(&kv, &model) : mu_keys_new(&store, &config),
	      MU_ERR_ARGUMENT, part);
	CHECK(!kv && !store);
}

/* A store, a place for it or a setting that is NULL. */
static void null_handles(void)
{
	const struct mu_keys_config config = {.type = "local", .members = &alone};
	const struct mu_keys_config no_members = {.type = "local"};
	struct mu_keys *store = NULL;
	struct mu_keys_layout layout;

	fails(mu_keys_open(NULL, MPI_COMM_SELF, "local", 0), MU_ERR_ARGUMENT, "out is NULL");
	fails(mu_keys_open(&store, MPI_COMM_NULL, "local", 0), MU_ERR_ARGUMENT, "MPI_COMM_NULL");
	fails(mu_keys_open(&store, MPI_COMM_SELF, NULL, 0), MU_ERR_USAGE, "kv-store ''");
	fails(mu_keys_new(NULL, &config), MU_ERR_ARGUMENT, "out is NULL");
	fails(mu_keys_new(&store, NULL), MU_ERR_ARGUMENT, "config is NULL");
	fails(mu_keys_new(&store, &no_members), MU_ERR_ARGUMENT, "members of the config are NULL");
	fails(mu_keys_type_check("local", NULL), MU_ERR_ARGUMENT, "answer is NULL");
	fails(mu_keys_barrier(NULL), MU_ERR_ARGUMENT, "the store is NULL");
	fails(mu_keys_finish(NULL), MU_ERR_ARGUMENT, "the store is NULL");
	fails(mu_keys_set_compression(NULL, "2bit", 1), MU_ERR_ARGUMENT, "the store is NULL");
	fails(mu_keys_set_optimizer(NULL, NULL), MU_ERR_ARGUMENT, "the store is NULL");
	fails(mu_keys_save(NULL, "x.h5", 1), MU_ERR_ARGUMENT, "the store is NULL");
	CHECK(!mu_keys_is_server(NULL) && mu_keys_rank(NULL) == -1);
	CHECK(mu_keys_num_workers(NULL) == 0 && mu_keys_num_servers(NULL) == 0);
	CHECK(!mu_keys_type(NULL) && mu_keys_number(NULL, "a") == -1 && !mu_keys_name(NULL, 0));
	mu_keys_layout(NULL, &layout);
	CHECK(layout.n_keys == 0 && layout.bytes == 0);
	mu_keys_free(NULL);
}

/* Names of the store of a model that keys do not have. */
static void other_types(void)
{
	struct mu_keys_type is;

	fails(mu_keys_type_check("nccl", &is), MU_ERR_USAGE,
	      "'nccl' sums on GPUs, and the arrays of keys are the host's: local, device, "
	      "dist_sync");
	fails(mu_keys_type_check("dist", &is), MU_ERR_USAGE, "'dist' is not known: local, device");
	must(mu_keys_type_check("dist_async", &is));
	CHECK(is.has_servers && is.distributed && !is.synchronous);
}

static const struct mu_keys_config plain;

/* Every worker owns keys, and is told of other owners' failures. */
static void without_servers(void)
{
	struct mu_members flat;

	must(mu_members_init(&flat, world, 0, MU_PLACEMENT_SPREAD));
	keys_run("dist_sharded", &flat, &plain, refused, NULL);
	keys_run("dist_sharded", &flat, &updated, halving, NULL);
	run_failing("dist_sharded", &flat, failing, MU_ERR_NUMERIC, "update of key 4");
	if (size > 1)
		run_failing("dist_allreduce", &flat, deserted, MU_ERR_ARGUMENT,
			    "has finished after 0 pushes");
	mu_members_release(&flat);
}

static void once(void)
{
	without_servers();
	if (rank > 0)
		return;
	other_types();
	null_handles();
	keys_run("local", &alone, &plain, refused, NULL);
	keys_run("local", &alone, &updated, halving, NULL);
	CHECK(calls > 0);
	run_failing("local", &alone, failing, MU_ERR_NUMERIC, "update of key 4");
	run_failing("device", &alone, failing, MU_ERR_NUMERIC, "update of key 4");
}

static void each(void)
{
	other_kind();
	keys_run("dist_sync", &members, &plain, refused, NULL);
	keys_run("dist_sync", &members, &plain, differing, NULL);
	keys_run("dist_sync", &members, &updated, halving, NULL);
	run_failing("dist_sync", &members, failing, MU_ERR_NUMERIC, "update of key 4");
	if (members.num_workers > 1) {
		run_failing("dist_sync", &members, deserted, MU_ERR_ARGUMENT,
			    "has finished after 0 pushes");
		run_failing("dist_sync", &members, mixed, MU_ERR_ARGUMENT,
			    ", and none on worker 0");
		run_failing("dist_sync", &members, mixed, MU_ERR_ARGUMENT,
			    ", and 2bit with threshold 0.5 on worker 0");
	}
}

int main(int argc, char **argv)
{
	setenv("MXNET_KVSTORE_BIGARRAY_BOUND", "100000", 1);
	return run_tests(argc, argv, once, each);
}
