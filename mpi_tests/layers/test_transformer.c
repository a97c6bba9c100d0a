/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 @gpu */
/*
 * A transformer that reads one step after another predicts what it predicts from the whole
 * sequence; weights that two layers share are one key; initial weights; with a large vocabulary,
 * whose predictions and their gradient are in one place, gradients are those of ref, whatever is
 * computed again, in bfloat16 too.
 */
#include <math.h>
#include <string.h>

#include <muster/base.h>

#include "../lib/check.h"
#include "net/plan.h"

enum { STEPS = 9, CLASSES = 11, MANY = 4100, HIDDEN = 12, SAMPLES = 2 };

/* Of llama the heads share keys, and have not the width together. */
static const struct text {
	const char *network, *settings, *training;
} gpt2 = {"gpt2", "num-hidden=12 num-heads=3", "num-hidden=12 num-heads=3 dropout=0.2"},
  llama = {"llama", "num-hidden=12 num-heads=6 num-kv-heads=2 head-dim=4 intermediate-size=20",
	   "num-hidden=12 num-heads=6 num-kv-heads=2 head-dim=4 tie-weights=1"};

struct model {
	struct mu_net *net;
	struct mu_plan *plan;
	float *weights, labels[SAMPLES * STEPS];
};

static enum mu_status open_model(struct model *m, const struct text *text,
				 struct mu_device *device, size_t steps)
{
	enum mu_status st = MU_OK;
	const struct mu_net_config config = {.network = text->network,
					     .shape = MU_SAMPLE(1, steps, 1),
					     .classes = CLASSES,
					     .num_layers = 2,
					     .options = text->settings};

	*m = (struct model){.net = NULL};
	MU_TRY(mu_net_new(&m->net, &config));
	MU_TRY(mu_plan_new(&m->plan, m->net, device, SAMPLES, MU_PHASE_INFER, NULL));
	MU_TRY(MU_ALLOC(m->weights, mu_plan_n(m->plan), "weights"));
	MU_TRY(mu_plan_init_weights(m->plan, "xavier", 3, m->weights));
	MU_TRY(mu_plan_bind(m->plan, m->weights, NULL));
	mu_plan_batch(m->plan)->labels = m->labels;
	mu_plan_batch(m->plan)->count = SAMPLES;
out:
	return st;
}

static void close_model(struct model *m)
{
	mu_plan_free(m->plan);
	mu_net_free(m->net);
	mu_free(m->weights);
}

/* The probabilities, or NULL. */
static const float *run(struct model *m)
{
	for (size_t l = 0; l < mu_plan_layers(m->plan); l++)
		if (!CHECK(mu_plan_forward(m->plan, l) == MU_OK))
			return NULL;
	return mu_plan_probabilities(m->plan);
}

static float token(size_t sample, size_t step)
{
	return (float)((5 * sample + 3 * step + step * step) % CLASSES);
}

static void compare(struct model *whole, struct model *one, const char *device)
{
	const float *all, *p;
	double worst = 0;

	for (size_t i = 0; i < SAMPLES * STEPS; i++)
		mu_plan_input(whole->plan)[i] = token(i / STEPS, i % STEPS);
	all = run(whole);
	for (size_t t = 0; t < STEPS && all; t++) {
		mu_plan_set_past(one->plan, t);
		for (size_t n = 0; n < SAMPLES; n++)
			mu_plan_input(one->plan)[n] = token(n, t);
		p = run(one);
		for (size_t i = 0; p && i < SAMPLES * CLASSES; i++)
			worst = fmax(worst, fabs((double)p[i] - (double)all[i * STEPS + t]));
	}
	printf("%s: largest difference of a probability %.1e\n", device, worst);
	CHECK(all && worst < 1e-6);
}

/* SOME steps, then the same number again, then one: with the memory of the plan for one step. */
static void compare_some(struct model *whole, struct model *one, const struct text *text,
			 struct mu_device *device)
{
	enum { SOME = (STEPS - 1) / 2 };
	const float *all = run(whole), *p;
	struct model some;
	double worst = 0;

	if (!CHECK(open_model(&some, text, device, SOME) == MU_OK) ||
	    !CHECK(mu_plan_share_past(some.plan, one->plan) == MU_OK))
		goto out;
	for (size_t i = 0; i < 2; i++) {
		mu_plan_set_past(some.plan, i * SOME);
		for (size_t n = 0; n < SAMPLES * SOME; n++)
			mu_plan_input(some.plan)[n] = token(n / SOME, i * SOME + n % SOME);
		p = run(&some);
		for (size_t n = 0; p && n < SAMPLES * CLASSES * SOME; n++)
			worst = fmax(worst,
				     fabs((double)p[n] -
					  (double)all[n / SOME * STEPS + i * SOME + n % SOME]));
	}
	mu_plan_set_past(one->plan, 2 * SOME);
	for (size_t n = 0; n < SAMPLES; n++)
		mu_plan_input(one->plan)[n] = token(n, 2 * SOME);
	p = run(one);
	for (size_t i = 0; p && i < SAMPLES * CLASSES; i++)
		worst = fmax(worst, fabs((double)p[i] - (double)all[i * STEPS + 2 * SOME]));
	CHECK(worst < 1e-6);
out:
	close_model(&some);
}

/* A convolution over steps would see padding in place of the steps before. */
static enum mu_status build_wide(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_embedding tokens = {.inputs = CLASSES, .units = HIDDEN};
	const struct mu_convolution scores = {
		.filters = (int)config->classes, .kernel = {3, 1}, .pad = {1, 0}};
	const int x = mu_net_embedding(net, mu_net_input(net), &tokens, NULL);

	mu_net_softmax(net, mu_net_convolution(net, x, &scores, NULL), "softmax");
	return MU_OK;
}

static void refuse_wide(struct mu_device *device)
{
	static const struct mu_network network = {.name = "wide",
						  .shape = MU_SAMPLE(1, 1, 1),
						  .classes = CLASSES,
						  .build = build_wide};
	const struct mu_net_config config = {
		.network = "wide", .shape = MU_SAMPLE(1, 1, 1), .classes = CLASSES};
	struct model m = {.net = NULL};

	if (CHECK(mu_net_new_from(&m.net, &network, &config) == MU_OK) &&
	    CHECK(mu_plan_new(&m.plan, m.net, device, SAMPLES, MU_PHASE_INFER, NULL) == MU_OK)) {
		CHECK(mu_plan_remember(m.plan, STEPS) == MU_ERR_UNSUPPORTED);
		CHECK_HAS(mu_trace_message(), "convolution0 (convolution) on device");
		mu_trace_clear();
	}
	close_model(&m);
}

static void test_device(const char *name, const struct text *text)
{
	struct mu_device device;
	struct model whole, one;

	if (!CHECK(mu_device_open(&device, name, 2) == MU_OK))
		return;
	if (CHECK(open_model(&whole, text, &device, STEPS) == MU_OK) &&
	    CHECK(open_model(&one, text, &device, 1) == MU_OK)) {
		if (CHECK(mu_plan_remember(one.plan, STEPS) == MU_OK)) {
			compare(&whole, &one, name);
			compare_some(&whole, &one, text, &device);
		}
		close_model(&one);
	}
	close_model(&whole);
	refuse_wide(&device);
	mu_device_close(&device);
}

/* The head has no key of its own, and forgets nothing of the embedding's. */
static void test_tie(void)
{
	struct mu_device device;
	struct model m;
	struct mu_net_counts counts;
	const size_t *keys, *first;
	size_t n = 0, head;

	if (!CHECK(mu_device_open(&device, "ref", 1) == MU_OK) ||
	    !CHECK(open_model(&m, &gpt2, &device, STEPS) == MU_OK))
		return;
	mu_net_counts(m.net, &counts);
	mu_plan_slices(m.plan, &n);
	CHECK(counts.arrays == n && n == 2 + 2 * 12 + 2);
	head = mu_plan_layers(m.plan) - 2;
	CHECK(mu_plan_layer_keys(m.plan, head, &keys) == 0);
	CHECK(mu_plan_layer_keys(m.plan, 0, &first) == 1 && first[0] == 0);
	close_model(&m);
	mu_device_close(&device);
}

/* Of a key's weights; 0: there is none of this name. */
static double deviation(const struct model *m, const char *name)
{
	size_t n;
	const struct mu_slice *slices = mu_plan_slices(m->plan, &n);
	double sum = 0;

	for (size_t k = 0; k < n; k++)
		if (strcmp(slices[k].name, name) == 0) {
			for (size_t i = 0; i < slices[k].n; i++)
				sum += pow((double)m->weights[slices[k].at + i], 2);
			return sqrt(sum / (double)slices[k].n);
		}
	return 0;
}

/* The last product of a branch begins smaller, by the square root of the number of branches. */
static void test_initial(void)
{
	struct mu_device device;
	struct model m;

	if (!CHECK(mu_device_open(&device, "ref", 1) == MU_OK) ||
	    !CHECK(open_model(&m, &gpt2, &device, STEPS) == MU_OK))
		return;
	CHECK(mu_plan_init_weights(m.plan, "normal-0.02", 3, m.weights) == MU_OK);
	CHECK_NEAR(deviation(&m, "h1_fc_weight"), 0.02, 0.002);
	CHECK_NEAR(deviation(&m, "h1_out_weight"), 0.01, 0.001);
	close_model(&m);
	mu_device_close(&device);
}

/* ---- gradients of a step ---- */

struct step {
	double loss;
	float *gradients; /* plain, key behind key */
	size_t n, arena_bytes;
};

static enum mu_status take_gradients(struct model *m, const float *laid, struct step *s)
{
	enum mu_status st = MU_OK;
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(m->plan, &n_slices);

	s->n = 0;
	for (size_t k = 0; k < n_slices; k++)
		s->n += slices[k].n;
	MU_TRY(MU_ALLOC(s->gradients, s->n, "gradients"));
	s->n = 0;
	for (size_t k = 0; k < n_slices; k++) {
		MU_TRY(mu_plan_key_to_plain(m->plan, k, laid + slices[k].at, s->gradients + s->n));
		s->n += slices[k].n;
	}
out:
	return st;
}

/* What differs between the steps that are compared. */
struct how {
	enum mu_dtype dtype;
	enum mu_recompute recompute;
	float loss_scale, smoothing;
	bool ignores; /* every third label; and the last sample does not count */
	const struct mu_network *network; /* NULL: that of `text` */
	const struct text *text;          /* NULL: gpt2 */
};

static enum mu_status set_batch(struct model *m, const struct how *how)
{
	enum mu_status st = MU_OK;
	struct mu_batch *batch = mu_plan_batch(m->plan);

	MU_TRY(mu_plan_bind(m->plan, m->weights, NULL));
	for (size_t i = 0; i < SAMPLES * STEPS; i++) {
		mu_plan_input(m->plan)[i] = token(i / STEPS, i % STEPS);
		m->labels[i] = how->ignores && i % 3 == 1 ? -1 : (float)(700 * i % MANY);
	}
	batch->labels = m->labels;
	batch->count = how->ignores ? SAMPLES - 1 : SAMPLES;
	batch->use_ignore = how->ignores;
	batch->ignore_label = -1;
	batch->label_smoothing = how->smoothing;
	batch->loss_scale = how->loss_scale;
out:
	return st;
}

static enum mu_status open_training(struct model *m, struct mu_device *device,
				    const struct how *how)
{
	enum mu_status st = MU_OK;
	const struct text *text = how->text ? how->text : &gpt2;
	const struct mu_net_config config = {.network = text->network,
					     .shape = MU_SAMPLE(1, STEPS, 1),
					     .classes = MANY,
					     .num_layers = 2,
					     .options = text->training,
					     .recompute = how->recompute};
	const struct mu_net_config own = {.shape = MU_SAMPLE(1, STEPS, 1), .classes = MANY};

	MU_TRY(mu_device_set_dtype(device, how->dtype));
	if (how->network)
		MU_TRY(mu_net_new_from(&m->net, how->network, &own));
	else
		MU_TRY(mu_net_new(&m->net, &config));
	MU_TRY(mu_plan_new(&m->plan, m->net, device, SAMPLES, MU_PHASE_TRAIN, NULL));
	MU_TRY(MU_ALLOC(m->weights, mu_plan_n(m->plan), "weights"));
	MU_TRY(mu_plan_init_weights(m->plan, "xavier", 3, m->weights));
	MU_TRY(set_batch(m, how));
out:
	return st;
}

static enum mu_status train(const char *name, const struct how *how, struct step *s)
{
	enum mu_status st = MU_OK;
	struct mu_device device;
	struct model m = {.net = NULL};
	float *gradients = NULL;

	*s = (struct step){.loss = 0};
	MU_TRY(mu_device_open(&device, name, 2));
	MU_TRY(open_training(&m, &device, how));
	s->arena_bytes = mu_plan_arena_bytes(m.plan);
	MU_TRY(MU_ALLOC(gradients, mu_plan_n(m.plan), "gradients"));
	MU_TRY(mu_plan_bind(m.plan, m.weights, gradients));
	for (size_t l = 0; l < mu_plan_layers(m.plan); l++)
		MU_TRY(mu_plan_forward(m.plan, l));
	/* A GPU has their gradient in their place. */
	if (how->dtype != MU_FLOAT32 && strcmp(name, "gpu") == 0 && !how->network)
		CHECK(!mu_plan_probabilities(m.plan) && mu_plan_batch(m.plan)->predictions);
	for (size_t l = mu_plan_layers(m.plan); l-- > 0;)
		MU_TRY(mu_plan_backward(m.plan, l));
	s->loss = mu_plan_batch(m.plan)->loss;
	MU_TRY(take_gradients(&m, gradients, s));
out:
	mu_free(gradients);
	close_model(&m);
	mu_device_close(&device);
	return st;
}

static double distance(const struct step *a, const struct step *b)
{
	double worst = fabs(a->loss - b->loss) / b->loss;

	for (size_t i = 0; i < a->n && CHECK(a->n == b->n); i++)
		worst = fmax(worst, fabs((double)a->gradients[i] - (double)b->gradients[i]) /
					    (1 + fabs((double)b->gradients[i])));
	return worst;
}

static void test_gradients(const char *device, const struct text *text)
{
	struct how how = {.dtype = MU_FLOAT32, .text = text};
	struct step ref, none, again;

	if (!CHECK(train("ref", &how, &ref) == MU_OK) ||
	    !CHECK(train(device, &how, &none) == MU_OK))
		return;
	printf("%s, %s: largest difference of a gradient %.1e\n", device, text->network,
	       distance(&none, &ref));
	CHECK(distance(&none, &ref) < 1e-5);
	for (int level = MU_RECOMPUTE_ATTENTION; level <= MU_RECOMPUTE_ALL; level++) {
		how.recompute = (enum mu_recompute)level;
		if (!CHECK(train(device, &how, &again) == MU_OK))
			break;
		CHECK(again.n == none.n && again.loss == none.loss &&
		      memcmp(again.gradients, none.gradients, none.n * sizeof(float)) == 0);
		/* ref's scratch of the embedding is the largest of all */
		CHECK(again.arena_bytes < none.arena_bytes || strcmp(device, "ref") == 0);
		mu_free(again.gradients);
	}
	mu_free(none.gradients);
	mu_free(ref.gradients);
}

/* Scores that are a sum: the gradient of the sum is its addends', too. */
static enum mu_status build_sum(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_embedding tokens = {.inputs = CLASSES, .units = HIDDEN};
	const struct mu_convolution scores = {
		.filters = (int)config->classes, .kernel = {1, 1}, .no_bias = true};
	int x = mu_net_embedding(net, mu_net_input(net), &tokens, NULL);
	int addends[2] = {mu_net_convolution(net, x, &scores, NULL),
			  mu_net_convolution(net, x, &scores, NULL)};

	addends[0] = mu_net_activation(net, addends[0], MU_ACTIVATION_TANH, NULL);
	mu_net_softmax(net, mu_net_sum(net, 2, addends, NULL), "softmax");
	return MU_OK;
}

static void test_sum(const char *device)
{
	static const struct mu_network network = {.name = "sum",
						  .shape = MU_SAMPLE(1, STEPS, 1),
						  .classes = MANY,
						  .build = build_sum};
	const struct how how = {.dtype = MU_FLOAT32, .network = &network};
	struct step ref, s = {.loss = 0};

	if (CHECK(train("ref", &how, &ref) == MU_OK) && CHECK(train(device, &how, &s) == MU_OK))
		CHECK(distance(&s, &ref) < 1e-5);
	mu_free(s.gradients);
	mu_free(ref.gradients);
}

/* Does the device have the type here? Says why not. */
static bool has(const char *name, enum mu_dtype dtype)
{
	struct mu_device device;
	bool yes = false;

	if (!CHECK(mu_device_open(&device, name, 1) == MU_OK))
		return false;
	yes = mu_device_set_dtype(&device, dtype) == MU_OK;
	if (!yes)
		printf("%s, %s: skipped: %s\n", name, mu_dtype_name(dtype), mu_trace_message());
	mu_trace_clear();
	mu_device_close(&device);
	return yes;
}

/* |a - b| / |b| of n gradients. */
static double relative(const float *a, const float *b, size_t n)
{
	double difference = 0, size = 0;

	for (size_t i = 0; i < n; i++) {
		difference += pow((double)a[i] - (double)b[i], 2);
		size += pow((double)b[i], 2);
	}
	return sqrt(difference / size);
}

/*
 * The first key is the embedding's, whose gradient is also the head's. A number of 8 bits is 0.0017
 * away at the root of the mean square, and a gradient has come through some twenty products:
 * 0.008 if they are independent. Measured: 0.0113; in float16, which has three bits more, 0.0014.
 * Twice as much of llama: a gate multiplies two of them, and its branches do not begin smaller.
 */
static void test_half(const char *device, const struct how *how)
{
	const double allowed = (how->dtype == MU_BFLOAT16 ? 0.02 : 0.0025) * (how->text ? 2 : 1);
	const struct how plain = {
		.smoothing = how->smoothing, .ignores = how->ignores, .text = how->text};
	struct step ref, half;
	double all, table;

	if (!has(device, how->dtype))
		return;
	if (!CHECK(train("ref", &plain, &ref) == MU_OK) ||
	    !CHECK(train(device, how, &half) == MU_OK))
		return;
	all = relative(half.gradients, ref.gradients, ref.n);
	table = relative(half.gradients, ref.gradients, (size_t)MANY * HIDDEN);
	printf("%s, %s: loss %.6f (%.6f); gradients are %.4f of their size away, the table's "
	       "%.4f\n",
	       device, mu_dtype_name(how->dtype), half.loss, ref.loss, all, table);
	CHECK(fabs(half.loss / ref.loss - 1) < 0.001 && all < allowed && table < allowed);
	mu_free(half.gradients);
	mu_free(ref.gradients);
}

static void test_halves(const char *device)
{
	test_half(device, &(struct how){.dtype = MU_BFLOAT16});
	test_half(device, &(struct how){.dtype = MU_BFLOAT16, .smoothing = 0.1f, .ignores = true});
	test_half(device, &(struct how){.dtype = MU_FLOAT16, .loss_scale = 64, .ignores = true});
	test_half(device, &(struct how){.dtype = MU_BFLOAT16, .text = &llama});
	test_half(device, &(struct how){.dtype = MU_FLOAT16, .loss_scale = 64, .text = &llama});
}

int main(void)
{
	const struct mu_device_ops *ops;

	test_tie();
	test_initial();
	for (size_t i = 0; (ops = mu_device_table[i]); i++) {
		if (!CHECK_IS_HERE(ops))
			continue;
		if (ops->remembers) {
			test_device(ops->name, &gpt2);
			test_device(ops->name, &llama);
		}
		test_gradients(ops->name, &gpt2);
		test_gradients(ops->name, &llama);
		test_sum(ops->name);
		if (strcmp(ops->name, "ref") != 0)
			test_halves(ops->name);
	}
	return check_failures() ? 1 : 0;
}
