/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 4 5 7 */
/*
 * Pushes and pulls of the store of keys that do not wait: exact sums with many under way, the order
 * of the calls of a key, workers that need each other's later calls, errors.
 */
#include "keys_job.h"

enum { LARGE = 20000, SMALL = 5, KEYS = 6, ROUNDS = 3 };
static float pushed[ROUNDS][KEYS][LARGE], pulled[ROUNDS][KEYS][LARGE];

static size_t size_of(int k)
{
	return k % 2 ? SMALL : LARGE;
}

static void run(const char *type, const struct mu_members *m, void (*worker)(struct mu_keys *),
		const struct mu_kv_updater *updater)
{
	const struct mu_keys_config config = {
		.type = type, .members = m, .updaters = updater, .n_updaters = updater != NULL};
	struct mu_keys *keys = NULL;

	must(mu_keys_new(&keys, &config));
	if (m->role == MU_ROLE_SERVER) {
		must(mu_keys_serve(keys));
	} else {
		worker(keys);
		must(mu_keys_finish(keys));
	}
	mu_keys_free(keys);
}

static struct mu_keys_request *begin(struct mu_keys *keys, int k, float *data, bool push)
{
	struct mu_array array = floats(data, size_of(k));
	struct mu_kv_item item = item_of(k, &array); /* need not outlive the call */
	struct mu_keys_request *r = NULL;

	must((push ? mu_keys_push_begin : mu_keys_pull_begin)(keys, 1, &item, 0, &r));
	memset(&array, 0, sizeof array);
	memset(&item, 0, sizeof item);
	return r;
}

static void push(struct mu_keys *keys, int k, float *data)
{
	struct mu_array array = floats(data, size_of(k));
	const struct mu_kv_item item = item_of(k, &array);

	must(mu_keys_push(keys, 1, &item, 0));
}

static void pull(struct mu_keys *keys, int k, float *data)
{
	struct mu_array array = floats(data, size_of(k));
	const struct mu_kv_item item = item_of(k, &array);

	must(mu_keys_pull(keys, 1, &item, 0));
}

static void fill(int me)
{
	for (int r = 0; r < ROUNDS; r++)
		for (int k = 0; k < KEYS; k++)
			for (int i = 0; i < LARGE; i++)
				pushed[r][k][i] = (float)((r + 1) * (i % 7 + k + me));
}

/* The sum of round r over n workers. */
static size_t count_wrong(int r, int k, int n)
{
	size_t wrong = 0;

	for (size_t i = 0; i < size_of(k); i++)
		wrong += pulled[r][k][i] !=
			 (float)((r + 1) * (n * ((int)i % 7 + k) + n * (n - 1) / 2));
	return wrong;
}

static void make(struct mu_keys *keys)
{
	static float zeros[LARGE];

	fill(mu_keys_rank(keys));
	memset(pulled, 0, sizeof pulled);
	for (int k = 0; k < KEYS; k++) {
		struct mu_array array = floats(zeros, size_of(k));
		const struct mu_kv_item item = item_of(k, &array);

		must(mu_keys_init(keys, 1, &item));
	}
}

/*
 * All pushes and pulls of all rounds begin before one of them ends, on every worker with another
 * first key; a later round's push must not overtake the pull before it.
 */
static void all_at_once(struct mu_keys *keys)
{
	const int n = mu_keys_num_workers(keys), me = mu_keys_rank(keys);
	struct mu_keys_request *pushes[ROUNDS][KEYS], *pulls[ROUNDS][KEYS];

	make(keys);
	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < KEYS; i++) {
			const int k = (i + me) % KEYS;

			pushes[r][k] = begin(keys, k, pushed[r][k], true);
			pulls[r][k] = begin(keys, k, pulled[r][k], false);
		}
	}
	for (int i = 0; i < KEYS; i++) {
		const int k = (i + 2 * me) % KEYS;

		for (int r = ROUNDS; r-- > 0;) { /* ends have no order */
			must(mu_keys_request_end(pulls[r][k]));
			must(mu_keys_request_end(pushes[r][k]));
		}
	}
	for (int r = 0; r < ROUNDS; r++)
		for (int k = 0; k < KEYS; k++)
			CHECK(count_wrong(r, k, n) == 0);
}

/*
 * Worker 0 waits for key 1, which others push only after a round of key 0 that needs a push of
 * worker 0's, and that push waits for its pull of key 0.
 */
static void crossed(struct mu_keys *keys)
{
	const int n = mu_keys_num_workers(keys);
	struct mu_keys_request *r[5];

	make(keys);
	if (mu_keys_rank(keys) == 0) {
		r[0] = begin(keys, 0, pushed[0][0], true);
		r[1] = begin(keys, 0, pulled[0][0], false);
		r[2] = begin(keys, 0, pushed[1][0], true);
		r[3] = begin(keys, 1, pushed[0][1], true);
		r[4] = begin(keys, 1, pulled[0][1], false);
		must(mu_keys_request_end(r[4]));
		for (int i = 0; i < 4; i++)
			must(mu_keys_request_end(r[i]));
		pull(keys, 0, pulled[1][0]);
	} else {
		push(keys, 0, pushed[0][0]);
		pull(keys, 0, pulled[0][0]);
		push(keys, 0, pushed[1][0]);
		pull(keys, 0, pulled[1][0]);
		push(keys, 1, pushed[0][1]);
		pull(keys, 1, pulled[0][1]);
	}
	CHECK(count_wrong(0, 0, n) == 0 && count_wrong(1, 0, n) == 0 && count_wrong(0, 1, n) == 0);
}

/*
 * Each worker pushes one of two keys, pulls both in one request, and pushes the other: half of the
 * pull waits for a push of others that waits for the other half of theirs.
 */
static void listed(struct mu_keys *keys)
{
	const int n = mu_keys_num_workers(keys), first = mu_keys_rank(keys) % 2;

	for (int late = 0; late < 2; late++) { /* which request ends first */
		struct mu_array both[2] = {floats(pulled[0][1], SMALL),
					   floats(pulled[0][3], SMALL)};
		const struct mu_kv_item items[2] = {item_of(6 + 2 * late, &both[0]),
						    item_of(7 + 2 * late, &both[1])};
		struct mu_array one = floats(pushed[0][first ? 3 : 1], SMALL);
		struct mu_kv_item item = item_of(items[first].key, &one);
		struct mu_keys_request *r[3];

		fill(mu_keys_rank(keys));
		memset(pulled, 0, sizeof pulled);
		must(mu_keys_init(keys, 2, items));
		must(mu_keys_push_begin(keys, 1, &item, 0, &r[0]));
		must(mu_keys_pull_begin(keys, 2, items, 0, &r[1]));
		one.data = pushed[0][first ? 1 : 3];
		item.key = items[!first].key;
		must(mu_keys_push_begin(keys, 1, &item, 0, &r[2]));
		for (int i = 0; i < 3; i++)
			must(mu_keys_request_end(r[(late + 1 + i) % 3]));
		CHECK(count_wrong(0, first ? 3 : 1, n) == 0);
		CHECK(pulled[0][first ? 1 : 3][1] == 0);
	}
}

/* A pull is not done before all have pushed; blocking calls and a finish come behind requests. */
static void tested(struct mu_keys *keys)
{
	const int n = mu_keys_num_workers(keys);
	struct mu_keys_request *a, *b, *unended;
	bool done = false;
	char token = 0;

	make(keys);
	if (mu_keys_num_servers(keys) > 0 && n > 1 && mu_keys_rank(keys) == 1)
		MPI_Recv(&token, 1, MPI_CHAR, MPI_ANY_SOURCE, 3, world, MPI_STATUS_IGNORE);
	a = begin(keys, 0, pushed[0][0], true);
	b = begin(keys, 0, pulled[0][0], false);
	if (mu_keys_num_servers(keys) > 0 && n > 1 && mu_keys_rank(keys) == 0) {
		for (int i = 0; i < 20; i++) {
			must(mu_keys_request_test(b, &done));
			CHECK(!done);
		}
		CHECK(count_wrong(0, 0, n) > 0);
		MPI_Send(&token, 1, MPI_CHAR, members.worker_ranks[1], 3, world);
	}
	while (!done)
		must(mu_keys_request_test(b, &done));
	CHECK(count_wrong(0, 0, n) == 0);
	must(mu_keys_request_end(b));
	must(mu_keys_request_end(a));
	a = begin(keys, 1, pushed[0][1], true);
	b = begin(keys, 1, pulled[0][1], false);
	push(keys, 1, pushed[1][1]);
	pull(keys, 1, pulled[1][1]);
	CHECK(count_wrong(0, 1, n) == 0 && count_wrong(1, 1, n) == 0);
	must(mu_keys_request_end(a));
	must(mu_keys_request_end(b));
	unended = begin(keys, 2, pushed[0][2], true);
	must(mu_keys_finish(keys)); /* completes it */
	must(mu_keys_request_test(unended, &done));
	CHECK(done);
	must(mu_keys_request_end(unended));
}

/* Requests that outlive their store, which says how many they are. */
static void orphaned(void)
{
	const struct mu_keys_config config = {.type = "local", .members = &alone};
	struct mu_keys_request *done_one, *open_one;
	struct mu_keys *keys = NULL;
	char text[512] = "";
	FILE *stream = tmpfile();

	must(mu_keys_new(&keys, &config));
	make(keys);
	done_one = begin(keys, 0, pushed[0][0], true);
	open_one = begin(keys, 1, pulled[0][1], false);
	mu_log_configure(&(struct mu_log_config){.level = MU_LOG_INFO, .stream = stream});
	mu_keys_free(keys);
	mu_log_configure(&(struct mu_log_config){.level = MU_LOG_INFO});
	rewind(stream);
	CHECK(fread(text, 1, sizeof text - 1, stream) > 0);
	fclose(stream);
	CHECK_HAS(text, "calls mu_keys_free, and 2 requests have had no mu_keys_request_end");
	must(mu_keys_request_end(done_one));
	fails(mu_keys_request_end(open_one), MU_ERR_ARGUMENT, "mu_keys_free of its store");
}

/* Several arrays, rows, push and pull in one, many keys in one request. */
static void forms(struct mu_keys *keys)
{
	const int n = mu_keys_num_workers(keys);
	struct mu_array two[2] = {floats(pushed[0][0], LARGE), floats(pushed[1][0], LARGE)};
	struct mu_array both = floats(pulled[0][2], LARGE), few = floats(pulled[1][3], 2);
	const uint64_t numbers[2] = {3, 1};
	struct mu_kv_item item = {.key = 0, .n_arrays = 2, .arrays = two};
	struct mu_kv_item rows = {.key = 3,
				  .n_arrays = 1,
				  .arrays = &few,
				  .row_length = 1,
				  .n_rows = 2,
				  .rows = numbers};
	struct mu_keys_request *r[4];
	size_t wrong = 0;

	make(keys);
	must(mu_keys_push_begin(keys, 1, &item, 0, &r[0]));
	/* The sum of another key's two arrays goes into a buffer of its own. */
	two[0] = floats(pushed[2][4], LARGE);
	two[1] = two[0];
	item.key = 4;
	must(mu_keys_push_begin(keys, 1, &item, 0, &r[3]));
	r[1] = begin(keys, 0, pulled[0][0], false);
	memcpy(pulled[0][2], pushed[0][2], sizeof pushed[0][2]);
	item = item_of(2, &both);
	must(mu_keys_pushpull_begin(keys, 1, &item, 0, &r[2]));
	must(mu_keys_request_end(r[2]));
	CHECK(count_wrong(0, 2, n) == 0);
	must(mu_keys_request_end(r[3]));
	for (int i = 0; i < 2; i++)
		must(mu_keys_request_end(r[i]));
	for (int i = 0; i < LARGE; i++)
		wrong += pulled[0][0][i] != (float)(3 * (n * (i % 7) + n * (n - 1) / 2));
	CHECK(wrong == 0);
	pulled[1][3][0] = 10;
	pulled[1][3][1] = 20;
	must(mu_keys_push_begin(keys, 1, &rows, 0, &r[0]));
	must(mu_keys_request_end(r[0]));
	must(mu_keys_pull_rows_begin(keys, 1, &rows, 0, &r[1]));
	must(mu_keys_request_end(r[1]));
	CHECK(pulled[1][3][0] == (float)(10 * n) && pulled[1][3][1] == (float)(20 * n));
}

static enum mu_status refuse(void *context, int key, size_t from, size_t n, const float *gradient,
			     float *weights)
{
	enum mu_status st = MU_OK;

	(void)context;
	(void)from;
	(void)n;
	(void)gradient;
	(void)weights;
	if (key == 1)
		MU_FAIL(MU_ERR_NUMERIC, "no update today");
out:
	return st;
}

static const struct mu_kv_updater refusing = {"refusing", refuse, NULL};

/* NULL where there must be something: an error of the call, not of the program. */
static void refused_null(struct mu_keys *keys)
{
	struct mu_array array = floats(pulled[0][0], 3);
	struct mu_kv_item item = item_of(1, &array);
	bool done;

	fails(mu_keys_push(NULL, 1, &item, 0), MU_ERR_ARGUMENT, "mu_keys_push: the store is NULL");
	fails(mu_keys_barrier(NULL), MU_ERR_ARGUMENT, "mu_keys_barrier: the store is NULL");
	fails(mu_keys_finish(NULL), MU_ERR_ARGUMENT, "mu_keys_finish: the store is NULL");
	fails(mu_keys_serve(NULL), MU_ERR_ARGUMENT, "mu_keys_serve: the store is NULL");
	fails(mu_keys_load(NULL, "a", 1), MU_ERR_ARGUMENT, "mu_keys_load: the store is NULL");
	fails(mu_keys_push(keys, 2, NULL, 0), MU_ERR_ARGUMENT, "list of 2 items is NULL");
	fails(mu_keys_pull_begin(keys, 1, &item, 0, NULL), MU_ERR_ARGUMENT,
	      "mu_keys_pull_begin: there is no place");
	fails(mu_keys_request_test(NULL, &done), MU_ERR_ARGUMENT, "the request is NULL");
	fails(mu_keys_init(keys, 1, NULL), MU_ERR_ARGUMENT, "list of 1 items of worker 0 (rank");
	fails(mu_keys_set_optimizer(keys, NULL), MU_ERR_ARGUMENT, "the optimizer is NULL");
	fails(mu_keys_set_multipliers(keys, 1, NULL),
	      mu_keys_rank(keys) == 0 ? MU_ERR_ARGUMENT : MU_ERR_PEER, "multipliers is NULL");
}

/* Wrong items at the begin; what the owner says at the end, of all requests, and then no hang. */
static void failing(const char *type, const struct mu_members *m)
{
	const struct mu_keys_config config = {
		.type = type, .members = m, .updaters = &refusing, .n_updaters = 1};
	struct mu_array array = floats(pulled[0][0], 3);
	struct mu_kv_item item = item_of(9, &array);
	struct mu_keys_request *r[3] = {NULL};
	struct mu_keys *keys = NULL;

	must(mu_keys_new(&keys, &config));
	if (m->role == MU_ROLE_SERVER) {
		fails(mu_keys_serve(keys), MU_ERR_NUMERIC, "update of key 1");
		mu_keys_free(keys);
		return;
	}
	make(keys);
	fails(mu_keys_push_begin(keys, 1, &item, 0, &r[0]), MU_ERR_ARGUMENT,
	      "mu_keys_push_begin of key 9");
	item.key = 0;
	fails(mu_keys_pull_begin(keys, 1, &item, 0, &r[0]), MU_ERR_ARGUMENT, "are needed");
	CHECK(!r[0]);
	refused_null(keys);
	must(mu_keys_request_end(NULL));
	must(mu_keys_set_updater(keys, "refusing"));
	r[0] = begin(keys, 1, pushed[0][1], true);
	r[1] = begin(keys, 1, pulled[0][1], false);
	r[2] = begin(keys, 1, pushed[1][1], true);
	fails(mu_keys_request_end(r[1]), MU_ERR_NUMERIC, "update of key 1");
	mu_keys_request_end(r[0]); /* it may have left before the update failed */
	mu_trace_clear();
	fails(mu_keys_request_end(r[2]), MU_ERR_NUMERIC, "update of key 1");
	fails(mu_keys_finish(keys), MU_ERR_NUMERIC, "update of key 1");
	mu_keys_free(keys);
}

/* Worker 1 finishes without a push that the others ask for. */
static void deserted(const struct mu_members *m)
{
	const struct mu_keys_config config = {.type = "dist_sync", .members = m};
	struct mu_keys_request *r = NULL;
	struct mu_keys *keys = NULL;
	bool done = false;

	must(mu_keys_new(&keys, &config));
	if (m->role == MU_ROLE_WORKER) {
		make(keys);
		if (m->index != 1) {
			must(mu_keys_request_end(begin(keys, 0, pushed[0][0], true)));
			r = begin(keys, 0, pulled[0][0], false);
			while (!done)
				must(mu_keys_request_test(r, &done));
			fails(mu_keys_request_end(r), MU_ERR_ARGUMENT, "has finished after 0");
		}
		fails(mu_keys_finish(keys), MU_ERR_ARGUMENT, "has finished after 0 pushes");
	} else {
		fails(mu_keys_serve(keys), MU_ERR_ARGUMENT, "has finished after 0 pushes");
	}
	mu_keys_free(keys);
}

/* Every push is an update at once. */
static void asynchronous(struct mu_keys *keys)
{
	const struct mu_kv_optimizer sgd = {
		.optim = {.name = "sgd"}, .schedule = {.lr = 1}, .rescale = 1};
	const int n = mu_keys_num_workers(keys);
	size_t wrong = 0;

	make(keys);
	must(mu_keys_set_optimizer(keys, &sgd));
	for (int r = 0; r < ROUNDS; r++)
		for (int k = 0; k < KEYS; k++)
			must(mu_keys_request_end(begin(keys, k, pushed[r][k], true)));
	must(mu_keys_barrier(keys));
	for (int k = 0; k < KEYS; k++)
		must(mu_keys_request_end(begin(keys, k, pulled[0][k], false)));
	for (int k = 0; k < KEYS; k++)
		for (size_t i = 0; i < size_of(k); i++)
			wrong += pulled[0][k][i] !=
				 (float)(-6 * (n * ((int)i % 7 + k) + n * (n - 1) / 2));
	CHECK(wrong == 0);
}

static void in_all_ways(const char *type, const struct mu_members *m)
{
	run(type, m, all_at_once, NULL);
	run(type, m, crossed, NULL);
	run(type, m, listed, NULL);
	run(type, m, tested, NULL);
	run(type, m, forms, NULL);
	failing(type, m);
}

static void once(void)
{
	struct mu_members flat;

	must(mu_members_init(&flat, world, 0, MU_PLACEMENT_SPREAD));
	in_all_ways("dist_sharded", &flat);
	in_all_ways("dist_allreduce", &flat);
	mu_members_release(&flat);
	if (rank == 0)
		in_all_ways("local", &alone);
	orphaned();
}

static void each(void)
{
	in_all_ways("dist_sync", &members);
	run("dist_async", &members, asynchronous, NULL);
	if (members.num_workers > 1)
		deserted(&members);
}

int main(int argc, char **argv)
{
	unsetenv("MXNET_KVSTORE_BIGARRAY_BOUND");
	return run_tests(argc, argv, once, each);
}
