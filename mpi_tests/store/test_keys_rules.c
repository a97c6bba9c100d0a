/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 4 5 */
/*
 * The store of keys: optimisers against the same rule without a store, their states saved and
 * loaded, 16-bit keys, compression against MXNet's figures.
 */
#include <muster/optim.h>

#include "../lib/gc_oracle.h"
#include <unistd.h>

#include "keys_job.h"

enum { N = 5003, N_PAD = 5008, KEY = 4 }; /* larger than the bound: cut */

static float w[N_PAD], g[N_PAD], total[N_PAD], expected[N_PAD];

static float draw(int worker, size_t round, size_t i)
{
	const struct mu_random key = {
		.seed = 3, .purpose = MU_RANDOM_TEST, .epoch = (uint32_t)worker, .sample = round};

	return mu_random_normal(&key, i);
}

/* ---- optimisers ---- */

static const struct mu_kv_optimizer sgd = {
	.optim = {.name = "sgd", .mom = 0.9, .wd = 0.01},
	.schedule = {.lr = 0.1, .factor = 0.5, .n_steps = 1, .steps = {3}},
	.rescale = 0.25,
};
static const struct mu_kv_optimizer adam = {
	.optim = {.name = "adam", .wd = 0.01, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
	.schedule = {.lr = 0.01, .factor = 0.5, .n_steps = 1, .steps = {4}},
	.rescale = 0.5,
};

/* The same without a store. */
struct serial {
	struct mu_optim *optim;
	const struct mu_kv_optimizer *how;
	size_t rounds;
};

static void serial_begin(struct serial *s, const struct mu_kv_optimizer *how)
{
	const struct mu_slice slice = {.name = "a_weight", .n = N, .n_padded = N_PAD};
	const struct mu_piece piece = {.n = N_PAD};

	s->how = how;
	s->rounds = 0;
	must(mu_optim_new(&s->optim, &how->optim, &slice, 1, &piece, 1));
	for (size_t i = 0; i < N; i++)
		expected[i] = (float)(i % 10) / 10;
}

static void serial_round(struct serial *s, int n_workers)
{
	for (size_t i = 0; i < N; i++) {
		total[i] = draw(0, s->rounds, i);
		for (int worker = 1; worker < n_workers; worker++)
			total[i] += draw(worker, s->rounds, i);
	}
	mu_optim_begin(s->optim, 0, mu_schedule_lr(&s->how->schedule, (double)s->rounds, 1),
		       1 / s->how->rescale);
	mu_optim_block(s->optim, 0, 0, N_PAD, expected, total);
	s->rounds++;
}

static struct mu_array values = {w, N, MU_FLOAT32}, gradients = {g, N, MU_FLOAT32};

static void push_round(struct mu_keys *store, size_t round)
{
	const struct mu_kv_item push = item_of(KEY, &gradients);

	for (size_t i = 0; i < N; i++)
		g[i] = draw(mu_keys_rank(store), round, i);
	must(mu_keys_push(store, 1, &push, 0));
}

static size_t count_wrong(struct mu_keys *store)
{
	const struct mu_kv_item pull = item_of(KEY, &values);
	size_t wrong = 0;

	must(mu_keys_pull(store, 1, &pull, 0));
	for (size_t i = 0; i < N; i++)
		wrong += memcmp(&w[i], &expected[i], sizeof w[i]) != 0;
	return wrong;
}

static void init_key(struct mu_keys *store)
{
	const struct mu_kv_item item = item_of(KEY, &values);

	for (size_t i = 0; i < N; i++)
		w[i] = (float)(i % 10) / 10;
	must(mu_keys_init(store, 1, &item));
}

static void optimise(struct mu_keys *store, void *context)
{
	const struct mu_kv_optimizer *how = context;
	struct serial s;

	serial_begin(&s, how);
	/* Before the key is there, and again later: states are kept. */
	must(mu_keys_set_optimizer(store, how));
	init_key(store);
	for (size_t round = 0; round < 5; round++) {
		push_round(store, round);
		serial_round(&s, mu_keys_num_workers(store));
		if (round == 2)
			must(mu_keys_set_optimizer(store, how));
	}
	CHECK(count_wrong(store) == 0);
	mu_optim_free(s.optim);
}

/* ---- states ---- */

struct saved {
	size_t n;
	struct {
		char name[32];
		uint64_t updates;
		float data[N];
	} states[4];
	float weights[N];
};

static struct saved saved;

static enum mu_status save(void *context, struct mu_kv_state *state)
{
	struct saved *s = context;

	CHECK(state->key == KEY && state->n == N && s->n < 4);
	snprintf(s->states[s->n].name, sizeof s->states[0].name, "%s", state->name);
	s->states[s->n].updates = state->updates;
	memcpy(s->states[s->n++].data, state->data, N * sizeof(float));
	return MU_OK;
}

static enum mu_status load(void *context, struct mu_kv_state *state)
{
	struct saved *s = context;

	for (size_t i = 0; i < s->n; i++) {
		if (strcmp(s->states[i].name, state->name) != 0)
			continue;
		state->updates = s->states[i].updates;
		memcpy(state->data, s->states[i].data, N * sizeof(float));
	}
	return MU_OK;
}

static enum mu_status refuse(void *context, struct mu_kv_state *state)
{
	enum mu_status st = MU_OK;

	(void)context;
	MU_FAIL(MU_ERR_IO, "no room for %s", state->name);
out:
	return st;
}

static void first_half(struct mu_keys *store, void *context)
{
	must(mu_keys_set_optimizer(store, context));
	init_key(store);
	for (size_t round = 0; round < 3; round++)
		push_round(store, round);
	memset(&saved, 0, sizeof saved);
	must(mu_keys_states_save(store, save, &saved));
	CHECK(saved.n == (mu_keys_rank(store) == 0 ? 2 : 0));
	CHECK(mu_keys_rank(store) > 0 || saved.states[0].updates == 3);
	must(mu_keys_pull(store, 1, &(struct mu_kv_item){KEY, 1, &values, 0, 0, NULL, NULL}, 0));
	memcpy(saved.weights, w, sizeof saved.weights);
	fails(mu_keys_states_save(store, refuse, NULL),
	      mu_keys_rank(store) == 0 ? MU_ERR_IO : MU_ERR_PEER, "no room for mean");
}

static void second_half(struct mu_keys *store, void *context)
{
	const struct mu_kv_item item = item_of(KEY, &values);
	struct serial s;

	must(mu_keys_set_optimizer(store, context));
	memcpy(w, saved.weights, sizeof saved.weights);
	must(mu_keys_init(store, 1, &item));
	must(mu_keys_states_load(store, load, &saved));
	serial_begin(&s, context);
	for (size_t round = 0; round < 5; round++) {
		if (round >= 3)
			push_round(store, round);
		serial_round(&s, mu_keys_num_workers(store));
	}
	CHECK(count_wrong(store) == 0);
	mu_optim_free(s.optim);
}

/* ---- 16-bit keys ---- */

static void sixteen(struct mu_keys *store, void *context)
{
	const enum mu_dtype dtype = *(const enum mu_dtype *)context;
	uint16_t data[100], back[100];
	struct mu_array array = {data, 100, dtype};
	const struct mu_kv_item item = item_of(1, &array);
	struct mu_kv_optimizer how = {
		.optim = {.name = "sgd"}, .schedule = {.lr = 1, .factor = 1}, .rescale = 1};
	/* 1 + lr 2^-k rounds back to 1 in the type, but not in float32. */
	const float small = dtype == MU_FLOAT16 ? 0x1p-13f : 0x1p-10f;
	const int n_workers = mu_keys_num_workers(store);
	float value = 1, one[100];

	for (size_t i = 0; i < 100; i++)
		one[i] = 1;
	mu_dtype_from_float(dtype, data, one, 100);
	must(mu_keys_init(store, 1, &item));
	for (int master = 0; master < 2; master++) {
		how.multi_precision = master;
		must(mu_keys_set_optimizer(store, &how));
		for (int round = 0; round < 8; round++) {
			for (size_t i = 0; i < 100; i++)
				one[i] = -small;
			mu_dtype_from_float(dtype, data, one, 100);
			must(mu_keys_pushpull(store, 1, &item, 0));
			value += small * (float)n_workers;
			mu_dtype_from_float(dtype, back, &value, 1);
			if (!master)
				mu_dtype_to_float(dtype, &value, back, 1);
		}
		CHECK(data[0] == back[0] && data[99] == back[0]);
	}
	CHECK(value > 1);
}

/* ---- compression ---- */

/* What arrives of gc_oracle. */
static const float arrives[GC_ORACLE_STEPS][GC_ORACLE] = {
	{0.0f, 0.0f, 0.0f,  0.0f,  0.0f, 0.5f, -0.5f, 0.0f, 0.0f, 0.0f, 0.0f,
	 0.0f, 0.0f, -0.5f, -0.5f, 0.0f, 0.0f, 0.0f,  0.5f, 0.0f, -0.5f},
	{0.0f, 0.0f, -0.5f, 0.5f,  0.5f, 0.5f, 0.0f, 0.5f, -0.5f, 0.0f, 0.0f,
	 0.0f, 0.0f, -0.5f, -0.5f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f,  0.0f},
	{0.0f, 0.0f, 0.0f, 0.5f,  0.5f, 0.5f,  0.0f,  0.5f, -0.5f, 0.0f, 0.0f,
	 0.0f, 0.0f, 0.0f, -0.5f, 0.0f, -0.5f, -0.5f, 0.5f, 0.0f,  0.0f},
};

static void two_bits(struct mu_keys *store, void *context)
{
	float in[GC_ORACLE], out[GC_ORACLE];
	struct mu_array a = floats(in, GC_ORACLE), b = floats(out, GC_ORACLE);
	const struct mu_kv_item push = item_of(2, &a), pull = item_of(2, &b);

	(void)context;
	fails(mu_keys_set_compression(store, "3bit", 1), MU_ERR_ARGUMENT, "none, 2bit, 1bit");
	fails(mu_keys_set_compression(store, "2bit", 0), MU_ERR_ARGUMENT, "above 0");
	must(mu_keys_set_compression(store, "2bit", 0.5));
	memset(in, 0, sizeof in);
	in[3] = 0.125f;
	must(mu_keys_init(store, 1, &push));
	must(mu_keys_pull(store, 1, &pull, 0));
	CHECK(memcmp(in, out, sizeof in) == 0); /* first values are not compressed */
	for (size_t step = 0; step < GC_ORACLE_STEPS; step++) {
		size_t wrong = 0;

		memcpy(in, gc_oracle[step], sizeof in);
		must(mu_keys_push(store, 1, &push, 0));
		must(mu_keys_pull(store, 1, &pull, 0));
		for (size_t i = 0; i < GC_ORACLE; i++)
			wrong += out[i] != arrives[step][i] * (float)mu_keys_num_workers(store);
		CHECK(wrong == 0);
	}
}

/* Four devices push 0.4, 0.2, 0.2, 0.2 and twice the gradient is added, as in MXNet's test. With
 * one worker each array is compressed, else their sum, which is always above the threshold. */
static void four_devices(struct mu_keys *store, void *context)
{
	enum { DEVICES = 4, EACH = 70 };
	const bool alone_here = strncmp(mu_keys_type(store), "dist", 4) != 0;
	const float pushed[] = {0.4f, 0.2f, 0.2f, 0.2f}, wanted[] = {0, 4, 4, 8};
	const struct mu_kv_optimizer add = {
		.optim = {.name = "test"}, .schedule = {.lr = 1, .factor = 1}, .rescale = 2};
	float data[DEVICES][EACH] = {{0}};
	struct mu_array arrays[DEVICES];
	struct mu_kv_item item = {.key = 3, .n_arrays = DEVICES, .arrays = arrays};
	size_t wrong = 0;

	(void)context;
	for (size_t d = 0; d < DEVICES; d++)
		arrays[d] = floats(data[d], EACH);
	must(mu_keys_set_compression(store, "2bit", 0.5));
	must(mu_keys_set_optimizer(store, &add));
	must(mu_keys_init(store, 1, &item));
	for (size_t step = 0; step < 4; step++) {
		const float sums = (float)(step + 1) * (float)mu_keys_num_workers(store);

		for (size_t i = 0; i < DEVICES * EACH; i++)
			data[i / EACH][i % EACH] = pushed[step];
		must(mu_keys_push(store, 1, &item, 0));
		must(mu_keys_pull(store, 1, &item, 0));
		for (size_t i = 0; i < DEVICES * EACH; i++)
			wrong += data[i / EACH][i % EACH] != (alone_here ? wanted[step] : sums);
	}
	CHECK(wrong == 0);
}

/* A cut key: the rest of every element is kept where it belongs. */
static void one_bit(struct mu_keys *store, void *context)
{
	const struct mu_kv_item push = item_of(KEY, &gradients), pull = item_of(KEY, &values);
	static float rest[N];
	size_t wrong = 0;

	(void)context;
	memset(rest, 0, sizeof rest);
	init_key(store);
	must(mu_keys_set_compression(store, "1bit", 0.25));
	for (size_t round = 0; round < 4; round++) {
		for (size_t i = 0; i < N; i++)
			g[i] = draw(0, round, i); /* the same on all workers */
		must(mu_keys_push(store, 1, &push, 0));
		must(mu_keys_pull(store, 1, &pull, 0));
		for (size_t i = 0; i < N; i++) {
			float sent = rest[i] + g[i] > 0.25f ? 1.0f : -1.0f;

			rest[i] = rest[i] + g[i] - sent;
			wrong += w[i] != sent * (float)mu_keys_num_workers(store);
		}
	}
	must(mu_keys_set_compression(store, "none", 0));
	must(mu_keys_push(store, 1, &push, 0));
	must(mu_keys_pull(store, 1, &pull, 0));
	CHECK_NEAR(w[7], (double)g[7] * mu_keys_num_workers(store), 1e-5);
	CHECK(wrong == 0);
}

/* ---- numbers of 16 bits ---- */

static uint32_t bits(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof u);
	return u;
}

/* Every 16-bit number comes back, and numbers between two go to the nearer, or to the even one. */
static void test_dtype(enum mu_dtype dtype, uint16_t infinity)
{
	size_t wrong = 0;

	for (uint32_t u = 0; u < 0x10000; u++) {
		uint16_t h = (uint16_t)u, next = (uint16_t)(u + 1), back[3];
		float x, y, between[3];

		mu_dtype_to_float(dtype, &x, &h, 1);
		mu_dtype_from_float(dtype, back, &x, 1);
		if ((h & 0x7fff) > infinity) {
			wrong += !isnan(x) || (back[0] & 0x7fff) <= infinity;
			continue;
		}
		wrong += back[0] != h || !signbit(x) != !(h >> 15);
		if ((h & 0x7fff) >= infinity - 1)
			continue;
		mu_dtype_to_float(dtype, &y, &next, 1);
		between[1] = x + (y - x) / 2;
		between[0] = nextafterf(between[1], x);
		between[2] = nextafterf(between[1], y);
		mu_dtype_from_float(dtype, back, between, 3);
		wrong += back[0] != h || back[1] != (h % 2 ? next : h) || back[2] != next;
	}
	CHECK(wrong == 0);
}

static void test_dtypes(void)
{
	const float large[3] = {65519, 65520, 1e30f};
	uint16_t h[3];
	float one;

	test_dtype(MU_FLOAT16, 0x7c00);
	test_dtype(MU_BFLOAT16, 0x7f80);
	mu_dtype_from_float(MU_FLOAT16, h, large, 3);
	CHECK(h[0] == 0x7bff && h[1] == 0x7c00 && h[2] == 0x7c00);
	h[0] = 0x3c00;
	mu_dtype_to_float(MU_FLOAT16, &one, h, 1);
	CHECK(bits(one) == bits(1.0f));
	CHECK_TEXT(mu_dtype_name(MU_BFLOAT16), "bfloat16");
}

static struct mu_kv_optimizer sgd_copy, adam_copy;
static enum mu_dtype dtypes[] = {MU_FLOAT16, MU_BFLOAT16};
static const struct mu_keys_config plain;

static void all(const char *type, const struct mu_members *m)
{
	keys_run(type, m, &plain, optimise, &sgd_copy);
	keys_run(type, m, &plain, optimise, &adam_copy);
	keys_run(type, m, &plain, first_half, &adam_copy);
	keys_run(type, m, &plain, second_half, &adam_copy);
	keys_run(type, m, &plain, sixteen, &dtypes[0]);
	keys_run(type, m, &plain, sixteen, &dtypes[1]);
	keys_run(type, m, &plain, two_bits, NULL);
	keys_run(type, m, &plain, one_bit, NULL);
	keys_run(type, m, &plain, four_devices, NULL);
}

static void once(void)
{
	sgd_copy = sgd;
	adam_copy = adam;
	if (rank > 0)
		return;
	test_dtypes();
	all("local", &alone);
	keys_run("device", &alone, &plain, four_devices, NULL);
}

/* ---- dist_async: a barrier ---- */

/* Updates take so long that pushes wait on the server. */
static enum mu_status add_slowly(void *context, int key, size_t from, size_t n,
				 const float *gradient, float *weights)
{
	(void)context;
	(void)key;
	(void)from;
	usleep(2000);
	for (size_t i = 0; i < n; i++)
		weights[i] += gradient[i];
	return MU_OK;
}

static const struct mu_kv_updater slow = {.name = "slow", .fn = add_slowly};

/* What worker 0 pushes before a barrier all workers see after it. */
static void flush(struct mu_keys *keys)
{
	enum { EACH = 100, PUSHES = 20 };
	float data[EACH] = {0}, ones[EACH];
	struct mu_array v = floats(data, EACH), d = floats(ones, EACH);
	struct mu_kv_item pulled = item_of(1, &v), pushed = item_of(1, &d);
	size_t wrong = 0;

	for (size_t i = 0; i < EACH; i++)
		ones[i] = 1;
	must(mu_keys_set_updater(keys, "slow"));
	must(mu_keys_init(keys, 1, &pulled));
	for (size_t i = 0; mu_keys_rank(keys) == 0 && i < PUSHES; i++)
		must(mu_keys_push(keys, 1, &pushed, 0));
	must(mu_keys_barrier(keys));
	must(mu_keys_pull(keys, 1, &pulled, 0));
	for (size_t i = 0; i < EACH; i++)
		wrong += data[i] != PUSHES;
	CHECK(wrong == 0);
}

static void test_flush(void)
{
	const struct mu_keys_config config = {
		.type = "dist_async", .members = &members, .updaters = &slow, .n_updaters = 1};
	struct mu_keys *keys = NULL;
	struct mu_keys_layout layout;

	must(mu_keys_new(&keys, &config));
	CHECK_TEXT(mu_keys_type(keys), "dist_async");
	CHECK(mu_keys_num_workers(keys) == members.num_workers);
	CHECK(mu_keys_num_servers(keys) == members.num_servers);
	if (members.role == MU_ROLE_SERVER) {
		fails(mu_keys_barrier(keys), MU_ERR_ARGUMENT, "a server calls mu_keys_serve");
		must(mu_keys_serve(keys));
	} else {
		fails(mu_keys_serve(keys), MU_ERR_ARGUMENT, "is for servers");
		flush(keys);
		mu_keys_layout(keys, &layout);
		CHECK(layout.n_keys == 1 && layout.bytes == 100 * sizeof(float));
		must(mu_keys_finish(keys));
	}
	mu_keys_free(keys);
}

static void each(void)
{
	test_flush();
	all("dist_sync", &members);
}

int main(int argc, char **argv)
{
	setenv("MXNET_KVSTORE_BIGARRAY_BOUND", "4000", 1);
	return run_tests(argc, argv, once, each);
}
