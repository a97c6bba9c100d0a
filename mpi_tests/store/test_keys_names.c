/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 4 7 */
/*
 * The store of keys with names in place of numbers: sums by name in every kind of store, the
 * numbers that updaters and states see, and names that are refused.
 */
#include "keys_job.h"

enum { LARGE = 20000, SMALL = 3, KEYS = 4 };
static const char *const names[KEYS] = {"conv1_weight", "conv1_bias", "encoder/layer.0/w", "key 7"};
static const size_t sizes[KEYS] = {LARGE, SMALL, LARGE, SMALL};
static float data[KEYS][LARGE];
static struct mu_array arrays[KEYS];
static struct mu_kv_item items[KEYS];

/* All keys with this name's value in every element. */
static void fill(float first)
{
	for (size_t k = 0; k < KEYS; k++) {
		for (size_t i = 0; i < sizes[k]; i++)
			data[k][i] = first + (float)k;
		arrays[k] = floats(data[k], sizes[k]);
		items[k] = (struct mu_kv_item){
			.name = names[k], .key = -1, .n_arrays = 1, .arrays = &arrays[k]};
	}
}

static size_t count_wrong(size_t k, float expected)
{
	size_t n = 0;

	for (size_t i = 0; i < sizes[k]; i++)
		n += data[k][i] != expected;
	return n;
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

static const struct mu_kv_optimizer sgd = {
	.optim = {.name = "sgd"}, .schedule = {.lr = 1}, .rescale = 1};

/* w <- w - sum of pushes, with worker 0's first values; the last key alone, and all in a list. */
static void sums(struct mu_keys *keys)
{
	const int n = mu_keys_num_workers(keys), me = mu_keys_rank(keys);
	const float sum = (float)(n * (n - 1) / 2 + n);
	const struct mu_kv_multiplier still = {.name = names[3], .lr = 0, .wd = 1};

	fill((float)(10 + me));
	must(mu_keys_init(keys, 2, items));
	must(mu_keys_init(keys, 2, items + 2));
	must(mu_keys_set_optimizer(keys, &sgd));
	must(mu_keys_set_multipliers(keys, 1, &still));
	for (size_t k = 0; k < KEYS; k++) {
		CHECK(mu_keys_number(keys, names[k]) == (int)k);
		CHECK_TEXT(mu_keys_name(keys, (int)k), names[k]);
	}
	CHECK(mu_keys_number(keys, "conv1") == -1 && !mu_keys_name(keys, KEYS));
	fill((float)(me + 1));
	must(mu_keys_push(keys, KEYS, items, 0));
	must(mu_keys_barrier(keys));
	for (size_t k = KEYS; k-- > 0;)
		must(mu_keys_pull(keys, 1, &items[k], 0));
	for (size_t k = 0; k < KEYS; k++) {
		const float d = sum + (float)(n * (int)k);

		CHECK(count_wrong(k, (float)(10 + k) - (k == 3 ? 0 : d)) == 0);
	}
}

/* ---- what sees numbers ---- */

static int seen[KEYS];

static enum mu_status note(void *context, int key, size_t from, size_t n, const float *gradient,
			   float *weights)
{
	(void)context;
	(void)from;
	seen[key]++;
	for (size_t i = 0; i < n; i++)
		weights[i] += gradient[i];
	return MU_OK;
}

static const struct mu_kv_updater noting = {"noting", note, NULL};

static enum mu_status note_state(void *context, struct mu_kv_state *state)
{
	int *n = context;

	CHECK_TEXT(state->key_name, names[*n]);
	CHECK(state->key == *n);
	++*n;
	return MU_OK;
}

static void numbers(struct mu_keys *keys)
{
	int n = 0;

	fill(0);
	must(mu_keys_init(keys, KEYS, items));
	must(mu_keys_set_updater(keys, "noting"));
	must(mu_keys_pushpull(keys, KEYS, items, 0));
	must(mu_keys_set_optimizer(keys, &sgd));
	must(mu_keys_states_save(keys, note_state, &n));
	CHECK(n == (mu_keys_rank(keys) == 0 ? KEYS : 0));
}

/* More names than the table has room for at first, of one beginning: each is found. */
static void many(struct mu_keys *keys)
{
	enum { N = 500 };
	struct mu_array array;
	struct mu_kv_item item = {.n_arrays = 1, .arrays = &array};
	char name[32];
	size_t n_wrong = 0;
	float value;

	item.name = name;
	array = floats(&value, 1);
	for (int k = 0; k < N; k++) {
		snprintf(name, sizeof name, "layer%d_weight", k);
		value = (float)k;
		must(mu_keys_init(keys, 1, &item));
	}
	for (int k = N; k-- > 0;) {
		snprintf(name, sizeof name, "layer%d_weight", k);
		must(mu_keys_pull(keys, 1, &item, 0));
		n_wrong += value != (float)k;
	}
	CHECK(n_wrong == 0);
}

/* ---- refused ---- */

static void refused(struct mu_keys *keys)
{
	char longer[MU_KEY_NAME_MAX + 2];
	struct mu_kv_item bad;

	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	fill(0);
	bad = items[0];
	bad.name = "";
	fails(mu_keys_init(keys, 1, &bad), MU_ERR_ARGUMENT, "is empty or longer than 127 bytes");
	bad.name = longer;
	fails(mu_keys_init(keys, 1, &bad), MU_ERR_ARGUMENT, "xxx...' on worker 0");
	bad = item_of(5, &arrays[1]);
	items[1] = bad;
	fails(mu_keys_init(keys, 2, items), MU_ERR_ARGUMENT, "use names or numbers, not both");
	items[1] = items[0];
	fails(mu_keys_init(keys, 2, items), MU_ERR_ARGUMENT, "makes key 'conv1_weight' twice");
	fill(0);
	must(mu_keys_init(keys, KEYS, items));
	fails(mu_keys_init(keys, 1, items), MU_ERR_ARGUMENT, "makes key 'conv1_weight' twice");
	fails(mu_keys_init(keys, 1, &bad), MU_ERR_ARGUMENT,
	      "makes key 5, and other keys of the store are names");
	fails(mu_keys_pull(keys, 1, &bad, 0), MU_ERR_ARGUMENT, "keys of this store are names");
	bad.key = 1; /* which is conv1_bias's number */
	fails(mu_keys_pull(keys, 1, &bad, 0), MU_ERR_ARGUMENT, "keys of this store are names");
	bad = items[0];
	bad.name = "conv1_wieght";
	fails(mu_keys_pull(keys, 1, &bad, 0), MU_ERR_ARGUMENT, "key 'conv1_wieght' on rank");
	fails(mu_keys_pull(keys, 1, &bad, 0), MU_ERR_ARGUMENT,
	      "it made 4: 'conv1_weight', 'conv1_bias'");
	items[1] = items[0];
	fails(mu_keys_pull(keys, 2, items, 0), MU_ERR_ARGUMENT, "names key 'conv1_weight' twice");
	bad = items[0];
	bad.arrays = &arrays[1];
	fails(mu_keys_pull(keys, 1, &bad, 0), MU_ERR_ARGUMENT, "key 'conv1_weight' on rank");
}

/* Workers that disagree; the store is as before. */
static void differing(struct mu_keys *keys)
{
	const bool other = mu_keys_rank(keys) == 1;

	if (mu_keys_num_workers(keys) == 1)
		return;
	fill(0);
	if (other)
		items[1].name = "fc1_bias";
	fails(mu_keys_init(keys, KEYS, items), MU_ERR_ARGUMENT,
	      "makes key 'fc1_bias' of 3 float32, and worker 0 in its place key 'conv1_bias'");
	fill(0);
	if (other)
		items[0] = item_of(4, &arrays[0]);
	fails(mu_keys_init(keys, 1, items), MU_ERR_ARGUMENT,
	      "makes key 4 of 20000 float32, and worker 0 in its place key 'conv1_weight'");
	fill(0);
	must(mu_keys_init(keys, KEYS, items));
}

static void in_all_ways(const char *type, const struct mu_members *m, bool synchronous)
{
	run(type, m, sums, NULL);
	run(type, m, numbers, &noting);
	if (synchronous) {
		run(type, m, refused, NULL);
		run(type, m, differing, NULL);
	}
}

static void once(void)
{
	struct mu_members flat;

	must(mu_members_init(&flat, world, 0, MU_PLACEMENT_SPREAD));
	in_all_ways("dist_sharded", &flat, true);
	in_all_ways("dist_allreduce", &flat, false);
	mu_members_release(&flat);
	if (rank > 0)
		return;
	in_all_ways("local", &alone, true);
	run("local", &alone, many, NULL);
	in_all_ways("device", &alone, false);
	for (int k = 0; k < KEYS; k++)
		CHECK(seen[k] > 0);
}

static void each(void)
{
	in_all_ways("dist_sync", &members, true);
	in_all_ways("dist_device_sync", &members, false);
	in_all_ways("dist_async", &members, false);
	in_all_ways("dist_device_async", &members, false);
}

int main(int argc, char **argv)
{
	unsetenv("MXNET_KVSTORE_BIGARRAY_BOUND");
	return run_tests(argc, argv, once, each);
}
