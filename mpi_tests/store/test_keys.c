/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 4 5 7 */
/*
 * The store of keys: every worker runs a program of its own of calls, drawn at random but such that
 * it cannot wait for itself, and every pull is compared with what a serial store would hold.
 * Gradients are small integers, so that a lost, doubled or misplaced message shows.
 */
#include "keys_job.h"

#define N_KEYS 40
#define ROW 7
#define N_MAX ((size_t)100000)

static const char *rules[] = {NULL, "test"}; /* replace, add */

/* ---- the serial store ---- */

static int number_of(size_t k)
{
	return (int)(k * 13 % N_KEYS + 3);
}

static size_t size_of(size_t k)
{
	/* Of every type, and of rows, one that is large on each of two servers. */
	size_t n = k == 7 || k == 10 || k == 12 || k == 14 ? N_MAX - 7
		   : k == 11                               ? 20011
							   : 1 + k * k * 37 % 4099;

	return k % 5 == 4 ? (n / ROW + 1) * ROW : n;
}

static bool by_rows(size_t k)
{
	return k % 5 == 4;
}

static enum mu_dtype dtype_of(size_t k)
{
	return k % 7 == 3 ? MU_FLOAT16 : k % 7 == 5 ? MU_BFLOAT16 : MU_FLOAT32;
}

static float first_value(size_t k, size_t i)
{
	return (float)((k + i) % 5);
}

static bool has_row(int worker, size_t k, size_t round, size_t row)
{
	return !by_rows(k) || ((size_t)worker + k + round + row) % 3 == 0;
}

/* What a worker pushes to element i of key k in this round: 1, 2, ... */
static float gradient(int worker, size_t k, size_t round, size_t i)
{
	if (!has_row(worker, k, round, i / ROW))
		return 0;
	return (float)(((size_t)worker + 2 * k + 3 * round + i) % 4);
}

static float expected(const char *rule, int n_workers, size_t k, size_t round, size_t i)
{
	float value = first_value(k, i);

	for (size_t r = rule ? 1 : round; r <= round && r > 0; r++) {
		value = rule ? value : 0;
		for (int w = 0; w < n_workers; w++)
			value += gradient(w, k, r, i);
	}
	return value;
}

/* ---- a worker's program ---- */

struct program {
	struct mu_keys *store;
	const char *rule;
	struct mu_random draws;
	uint64_t n_draws;
	size_t pushes[N_KEYS]; /* so far */
	size_t before[N_KEYS]; /* pushes before this phase */
	struct mu_array arrays[N_KEYS][2];
	struct mu_kv_item items[N_KEYS];
	uint64_t rows[N_KEYS][N_MAX / ROW + 2];
	float *values; /* of one key */
	size_t wrong;
};

static size_t pick(struct program *p, size_t n)
{
	return (size_t)mu_random_below(&p->draws, p->n_draws++, n);
}

static void set(const struct mu_array *a, const float *values)
{
	mu_dtype_from_float(a->dtype, a->data, values, a->n);
}

/* The item pushes this worker's gradient; the second device has one part of it, the first the rest.
 */
static void fill_push(struct program *p, size_t k)
{
	struct mu_kv_item *item = &p->items[k];
	const size_t n = size_of(k);
	const size_t round = ++p->pushes[k];
	const int me = mu_keys_rank(p->store);

	p->arrays[k][0].n = p->arrays[k][1].n = n;
	*item = (struct mu_kv_item){
		.key = number_of(k), .n_arrays = 1 + pick(p, 2), .arrays = p->arrays[k]};
	for (size_t i = 0; i < n; i++)
		p->values[i] = gradient(me, k, round, i);
	if (by_rows(k)) {
		item->n_arrays = 1;
		item->row_length = ROW;
		item->rows = p->rows[k];
		for (size_t r = n / ROW; r-- > 0;) { /* downwards: any order is allowed */
			if (!has_row(me, k, round, r))
				continue;
			p->rows[k][item->n_rows++] = r;
		}
		p->arrays[k][0].n = item->n_rows * ROW;
		for (size_t i = 0; i < item->n_rows * ROW; i++)
			p->values[i] = gradient(me, k, round, p->rows[k][i / ROW] * ROW + i % ROW);
	}
	set(&p->arrays[k][0], p->values);
	if (item->n_arrays == 2) {
		for (size_t i = 0; i < n; i++)
			p->values[i] = (float)(i % 3);
		set(&p->arrays[k][1], p->values);
		for (size_t i = 0; i < n; i++)
			p->values[i] = gradient(me, k, round, i) - (float)(i % 3);
		set(&p->arrays[k][0], p->values);
	}
}

static void fill_pull(struct program *p, size_t k)
{
	p->arrays[k][0].n = p->arrays[k][1].n = size_of(k);
	p->items[k] = (struct mu_kv_item){
		.key = number_of(k), .n_arrays = 1 + pick(p, 2), .arrays = p->arrays[k]};
	memset(p->arrays[k][0].data, 0xee, size_of(k) * mu_dtype_bytes(dtype_of(k)));
}

static void compare(struct program *p, size_t k)
{
	for (size_t d = 0; d < p->items[k].n_arrays; d++) {
		const struct mu_array *a = &p->arrays[k][d];
		size_t wrong = 0;

		mu_dtype_to_float(a->dtype, p->values, a->data, size_of(k));
		for (size_t i = 0; i < size_of(k); i++)
			wrong += p->values[i] != expected(p->rule, mu_keys_num_workers(p->store), k,
							  p->pushes[k], i);
		if (wrong && p->wrong == 0)
			fprintf(stderr, "worker %d: key %d, device %zu, round %zu: %zu of %zu\n",
				mu_keys_rank(p->store), number_of(k), d, p->pushes[k], wrong,
				size_of(k));
		p->wrong += wrong;
	}
}

enum what { PUSH, PULL, PUSHPULL };

/* One call for these keys. */
static void call(struct program *p, enum what what, const size_t *keys, size_t n)
{
	struct mu_kv_item items[N_KEYS];

	for (size_t i = 0; i < n; i++) {
		if (what == PULL)
			fill_pull(p, keys[i]);
		else
			fill_push(p, keys[i]);
		items[i] = p->items[keys[i]];
	}
	if (what == PUSH)
		must(mu_keys_push(p->store, n, items, (int)pick(p, 5)));
	else if (what == PULL)
		must(mu_keys_pull(p->store, n, items, 0));
	else
		must(mu_keys_pushpull(p->store, n, items, 0));
	for (size_t i = 0; i < n && what != PUSH; i++)
		compare(p, keys[i]);
}

/* Some rows of one key, in any order, one of them twice. */
static void pull_rows(struct program *p, size_t k)
{
	const size_t n_rows = size_of(k) / ROW;
	struct mu_kv_item item = {.key = number_of(k),
				  .n_arrays = 1,
				  .arrays = p->arrays[k],
				  .row_length = ROW,
				  .rows = p->rows[k]};

	for (size_t i = 0; i < 1 + n_rows / 2; i++)
		p->rows[k][item.n_rows++] = pick(p, n_rows);
	p->rows[k][item.n_rows - 1] = p->rows[k][0];
	p->arrays[k][0].n = item.n_rows * ROW;
	must(mu_keys_pull_rows(p->store, 1, &item, 0));
	mu_dtype_to_float(dtype_of(k), p->values, p->arrays[k][0].data, item.n_rows * ROW);
	for (size_t i = 0; i < item.n_rows * ROW; i++)
		p->wrong +=
			p->values[i] != expected(p->rule, mu_keys_num_workers(p->store), k,
						 p->pushes[k], p->rows[k][i / ROW] * ROW + i % ROW);
}

/*
 * A phase: every worker pushes every key `lead` times, in calls of its own making; in between it
 * pulls keys that it has not yet pushed in this phase; the last call may be a pushpull, and then it
 * pulls whatever it likes. Nobody waits for a push that its owner does only after a wait of its
 * own.
 */
static void phase(struct program *p, size_t lead)
{
	size_t list[N_KEYS];
	size_t todo = N_KEYS * lead;

	memcpy(p->before, p->pushes, sizeof p->pushes);
	while (todo > 0) {
		size_t n = 0, max = 1 + pick(p, N_KEYS), start = pick(p, N_KEYS);
		bool last, sparse = false;

		for (size_t i = 0; i < N_KEYS && n < max; i++) {
			size_t k = (start + i * 3) % N_KEYS;

			if (p->pushes[k] < p->before[k] + lead)
				list[n++] = k;
		}
		for (size_t i = 0; i < n; i++)
			sparse |= by_rows(list[i]);
		todo -= n;
		last = todo == 0;
		call(p, last && !sparse ? PUSHPULL : PUSH, list, n);
		start = pick(p, N_KEYS);
		if (p->pushes[start] == p->before[start])
			call(p, PULL, &start, 1);
	}
	for (size_t i = 0; i < 6; i++) {
		size_t k = pick(p, N_KEYS / 5) * 5 + 4;

		pull_rows(p, k);
	}
	for (size_t i = 0, n = 0; i < 4; i++, n = 0) {
		for (size_t k = 0; k < N_KEYS; k++) {
			if (pick(p, 3) == 0)
				list[n++] = k;
		}
		call(p, PULL, list, n);
	}
}

static void program_init(struct program *p, struct mu_keys *store)
{
	struct mu_kv_item items[N_KEYS];
	struct mu_keys_layout layout;

	p->store = store;
	must(mu_alloc((void **)&p->values, N_MAX * sizeof(float), "values of a test"));
	for (size_t k = 0; k < N_KEYS; k++) {
		for (size_t d = 0; d < 2; d++) {
			p->arrays[k][d] = (struct mu_array){NULL, size_of(k), dtype_of(k)};
			must(mu_alloc(&p->arrays[k][d].data,
				      size_of(k) * 2 * mu_dtype_bytes(dtype_of(k)), "array"));
		}
		for (size_t i = 0; i < size_of(k); i++)
			p->values[i] = mu_keys_rank(store) == 0 ? first_value(k, i) : -1;
		set(&p->arrays[k][0], p->values);
		items[k] = item_of(number_of(k), p->arrays[k]);
	}
	/* In two calls: keys may come later. */
	must(mu_keys_init(store, 10, items));
	must(mu_keys_init(store, N_KEYS - 10, items + 10));
	mu_keys_layout(store, &layout);
	CHECK(layout.n_keys == N_KEYS && layout.bytes_per_owner_min > 0);
	/* Balanced to within the largest key that is not cut. */
	CHECK(layout.bytes_per_owner_max - layout.bytes_per_owner_min <= 3000 * sizeof(float));
}

static void program_release(struct program *p)
{
	for (size_t k = 0; k < N_KEYS; k++) {
		mu_free(p->arrays[k][0].data);
		mu_free(p->arrays[k][1].data);
	}
	mu_free(p->values);
	mu_free(p);
}

static void run_program(struct mu_keys *store, void *context)
{
	struct program *p = NULL;
	const char *rule = *(const char *const *)context;
	const struct mu_kv_optimizer optimizer = {
		.optim = {.name = rule}, .schedule = {.lr = 1, .factor = 1}, .rescale = 1};
	size_t list[N_KEYS];

	must(mu_alloc((void **)&p, sizeof *p, "program of a test"));
	p->rule = rule;
	p->draws = (struct mu_random){.seed = (uint64_t)mu_keys_rank(store) + 1,
				      .purpose = MU_RANDOM_TEST};
	if (rule)
		must(mu_keys_set_optimizer(store, &optimizer));
	program_init(p, store);
	for (size_t k = 0; k < N_KEYS; k++)
		list[k] = k;
	call(p, PULL, list, N_KEYS); /* nobody has pushed */
	phase(p, 1);
	phase(p, 3);
	must(mu_keys_barrier(store));
	phase(p, 2);
	CHECK(p->wrong == 0);
	program_release(p);
}

/* ---- dist_async: the totals are exact once all have met ---- */

static void async_worker(struct mu_keys *store, void *context)
{
	float w[500], g[500];
	struct mu_array values = floats(w, 500), gradients = floats(g, 500);
	struct mu_kv_item pull = item_of(5, &values), push = item_of(5, &gradients);
	const struct mu_kv_optimizer add = {
		.optim = {.name = "test"}, .schedule = {.lr = 1, .factor = 1}, .rescale = 1};
	float total = 2;
	size_t wrong = 0;

	(void)context;
	for (size_t i = 0; i < 500; i++) {
		w[i] = 2;
		g[i] = (float)(mu_keys_rank(store) + 1);
	}
	must(mu_keys_init(store, 1, &pull));
	fails(mu_keys_push(store, 1, &push, 0), MU_ERR_ARGUMENT, "neither optimizer nor updater");
	must(mu_keys_set_optimizer(store, &add));
	for (int step = 1; step <= 5 + mu_keys_rank(store); step++) {
		must(mu_keys_push(store, 1, &push, 0));
		if (step % 2)
			continue;
		must(mu_keys_pull(store, 1, &pull, 0));
		for (size_t i = 0; i < 500; i++)
			wrong += w[i] < 2 + (float)step * g[0]; /* my own pushes are in it */
	}
	must(mu_keys_pull(store, 1, &pull, 0));
	must(mu_keys_barrier(store));
	must(mu_keys_pull(store, 1, &pull, 0));
	for (int i = 0; i < mu_keys_num_workers(store); i++)
		total += (float)((5 + i) * (i + 1));
	for (size_t i = 0; i < 500; i++)
		wrong += w[i] != total;
	CHECK(wrong == 0);
}

/* ---- one key of 100 MiB, and keys that make more than one message of their table ---- */

static void large(struct mu_keys *store, void *context)
{
	enum { N = 26214400 + 3 };
	const float sum =
		(float)(mu_keys_num_workers(store) * (mu_keys_num_workers(store) + 1) / 2);
	struct mu_array a = {NULL, N, MU_FLOAT32};
	const struct mu_kv_item item = item_of(1, &a);
	size_t wrong = 0;
	float *w;

	(void)context;
	must(mu_alloc(&a.data, N * sizeof(float), "large key"));
	w = a.data;
	must(mu_keys_init(store, 1, &item));
	for (size_t i = 0; i < N; i++)
		w[i] = (float)(i % 1001) * (float)(mu_keys_rank(store) + 1);
	must(mu_keys_pushpull(store, 1, &item, 0));
	for (size_t i = 0; i < N; i++)
		wrong += w[i] != (float)(i % 1001) * sum;
	CHECK(wrong == 0);
	mu_free(a.data);
}

/* Workers name the keys in different orders, and all of them in one pushpull. */
static void many(struct mu_keys *store, void *context)
{
	enum { KEYS = 3000, EACH = 9 };
	static struct mu_array arrays[KEYS];
	static struct mu_kv_item items[KEYS];
	static float data[KEYS][EACH];
	const size_t first = (size_t)mu_keys_rank(store) * 997;
	const float n = (float)mu_keys_num_workers(store);
	size_t wrong = 0;

	(void)context;
	for (size_t k = 0; k < KEYS; k++) {
		arrays[k] = floats(data[k], EACH);
		items[k] = item_of((int)k, &arrays[k]);
	}
	must(mu_keys_init(store, KEYS, items));
	for (size_t round = 1; round < 4; round++) {
		for (size_t k = 0; k < KEYS; k++) {
			const size_t key = (k * 7 + first) % KEYS;

			items[k] = item_of((int)key, &arrays[key]);
			for (size_t i = 0; i < EACH; i++)
				data[key][i] = (float)(key + round + i);
		}
		must(mu_keys_pushpull(store, KEYS, items, 0));
		for (size_t k = 0; k < KEYS; k++) {
			for (size_t i = 0; i < EACH; i++)
				wrong += data[k][i] != n * (float)(k + round + i);
		}
	}
	CHECK(wrong == 0);
}

static const struct mu_keys_config plain;

/* Stores without servers: every worker owns keys. */
static void without_servers(const char *type)
{
	struct mu_members flat;

	must(mu_members_init(&flat, world, 0, MU_PLACEMENT_SPREAD));
	for (size_t i = 0; i < 2; i++)
		keys_run(type, &flat, &plain, run_program, &rules[i]);
	keys_run(type, &flat, &plain, many, NULL);
	if (size == 3)
		keys_run(type, &flat, &plain, large, NULL);
	mu_members_release(&flat);
}

static void once(void)
{
	without_servers("dist_allreduce");
	without_servers("dist_sharded");
	for (size_t i = 0; rank == 0 && i < 2; i++) {
		keys_run("local", &alone, &plain, run_program, &rules[i]);
		keys_run("device", &alone, &plain, run_program, &rules[i]);
	}
}

static void each(void)
{
	keys_run("dist_sync", &members, &plain, run_program, &rules[0]);
	keys_run("dist_device_sync", &members, &plain, run_program, &rules[1]);
	keys_run("dist_sync", &members, &plain, many, NULL);
	keys_run("dist_async", &members, &plain, async_worker, NULL);
	if (size == 3)
		keys_run("dist_sync", &members, &plain, large, NULL);
}

int main(int argc, char **argv)
{
	setenv("MXNET_KVSTORE_BIGARRAY_BOUND", "3000", 1);
	return run_tests(argc, argv, once, each);
}
