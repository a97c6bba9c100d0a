/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 @gpu */
/*
 * Nets on blocks of steps: which ones can; the masks of dropout; gradients that are added; and
 * parts that are joined, on every device, beside one plan of all steps: the same loss and gradients
 * up to the order of sums.
 */
#include <math.h>
#include <string.h>

#include "../lib/check.h"
#include "op_memory.h"
#include "op_rig.h"
#include "net/plan.h"

/* ---- nets ---- */

static void refuse(const struct mu_net_config *config, const char *words)
{
	struct mu_net *net = NULL;

	CHECK(mu_net_new(&net, config) == MU_OK);
	CHECK(mu_net_check_blocks(net) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), words);
	mu_trace_clear();
	mu_net_free(net);
}

static void check_nets(void)
{
	refuse(&(struct mu_net_config){.network = "lenet",
				       .shape = MU_SAMPLE(1, 28, 28),
				       .classes = 10},
	       "network lenet cannot work on blocks of steps: layer convolution0 (convolution)");
	refuse(&(struct mu_net_config){.network = "mlp",
				       .shape = MU_SAMPLE(1, 28, 28),
				       .classes = 10},
	       "needs all of them");
}

/* ---- dropout ---- */

/* Of blocks 0 and 1, of 500 elements each, the masks of one of 1000. */
static void check_masks(struct mu_device *device)
{
	static const struct mu_dropout attr = {.p = 0.5f};
	const struct op_case whole = {"whole", .kind = MU_OP_DROPOUT, .in = {{2, {2, 1000}}},
				      .attr = &attr, .index = 3};
	struct op_case part = whole;
	struct op_rig_config config = {.c = &whole, .device = device, .phase = MU_PHASE_TRAIN};
	struct op_rig rig, block;
	struct op_values values, ones;

	part.in[0].dims[1] = 500;
	CHECK(op_values_init(&values, &whole) == MU_OK);
	CHECK(op_values_init(&ones, &part) == MU_OK);
	for (size_t k = 0; k < 2000; k++)
		values.in[0][k] = 1;
	for (size_t k = 0; k < 1000; k++)
		ones.in[0][k] = 1;
	CHECK(op_rig_init(&rig, &config) == MU_OK);
	CHECK(op_rig_forward(&rig, &values) == MU_OK);
	config.c = &part;
	CHECK(op_rig_init(&block, &config) == MU_OK);
	for (size_t b = 0; b < 2; b++) {
		block.op.block = b;
		CHECK(op_rig_forward(&block, &ones) == MU_OK);
		for (size_t s = 0; s < 2; s++)
			CHECK(memcmp(block.blocks[0].v + s * 500,
				     rig.blocks[0].v + s * 1000 + b * 500,
				     500 * sizeof(float)) == 0);
	}
	op_rig_release(&block);
	op_rig_release(&rig);
	op_values_release(&ones);
	op_values_release(&values);
}

/* Of weights beyond 2^24, too: with equal scores and values of 1 a query's output is the part of
 * its weights that are kept, times 1 / (1 - p). */
static void check_many_weights(struct mu_device *device)
{
	enum { STEPS = 2900, INDEX = 5 };
	static const size_t rows[] = {0, 2885, 2899}; /* the second one has weight 2^24 */
	const struct op_case c = {
		"many weights", .kind = MU_OP_ATTENTION, .in = {{4, {1, 4, STEPS, 1}}},
		.index = INDEX,
		.attr = &(const struct mu_attention){.heads = 2, .kv_heads = 1, .dropout = 0.5f}};
	const struct op_rig_config config = {.c = &c, .device = device, .phase = MU_PHASE_TRAIN};
	struct op_rig rig;
	struct op_values values;

	CHECK(op_values_init(&values, &c) == MU_OK);
	for (size_t k = 0; k < (size_t)4 * STEPS; k++)
		values.in[0][k] = k / STEPS == 3;
	CHECK(op_rig_init(&rig, &config) == MU_OK);
	CHECK(op_rig_forward(&rig, &values) == MU_OK);
	for (size_t i = 0; i < 3; i++) {
		const size_t t = rows[i];
		double kept = 0;

		for (size_t s = 0; s < STEPS; s++) {
			const uint64_t e = ((uint64_t)STEPS + t) * STEPS + s;
			const struct mu_random key = {rig.batch.seed, MU_RANDOM_DROPOUT,
						      rig.batch.epoch,
						      values.ids[0] | (e >> 24) << 40};

			kept += mu_random_uniform(&key, (uint64_t)INDEX << 24 | (e & 0xFFFFFF)) >=
				0.5f;
		}
		CHECK(fabs((double)rig.blocks[0].v[STEPS + t] - 2 * kept / STEPS) < 1e-4);
	}
	op_rig_release(&rig);
	op_values_release(&values);
}

/* ---- gradients that are added ---- */

/* The gradient of a parameter; a new array. */
static float *gradient_of(const struct op_rig *rig, int p)
{
	const struct mu_param *param = &rig->op.params[p];
	float *v = NULL;

	CHECK(MU_ALLOC(v, param->n_padded, "test memory") == MU_OK);
	CHECK(op_memory_fetch(rig->device, v, param->grad, param->n_padded * sizeof *v) == MU_OK);
	return v;
}

/* Twice the gradient, if backward adds it to itself. */
static void check_adds(struct mu_device *device, const struct op_case *c)
{
	struct op_rig_config config = {.c = c, .device = device, .phase = MU_PHASE_TRAIN};
	struct op_rig rig;
	struct op_values values;
	float *once[MU_MAX_PARAMS] = {NULL};

	CHECK(op_values_init(&values, c) == MU_OK);
	CHECK(op_rig_init(&rig, &config) == MU_OK);
	CHECK(op_rig_forward(&rig, &values) == MU_OK);
	CHECK(op_rig_backward(&rig, &values) == MU_OK);
	for (int p = 0; p < rig.op.n_params; p++)
		once[p] = gradient_of(&rig, p);
	CHECK(op_rig_forward(&rig, &values) == MU_OK);
	rig.op.adds = true;
	CHECK(rig.op.can_add == (strcmp(device->ops->name, "ref") != 0));
	CHECK(device->ops->backward(device, &rig.op) == MU_OK);
	for (int p = 0; p < rig.op.n_params; p++) {
		float *both = gradient_of(&rig, p);

		for (size_t k = 0; rig.op.can_add && k < rig.op.params[p].n_padded; k++) {
			const double twice = 2 * (double)once[p][k];

			CHECK_NEAR((double)both[k], twice, 1e-5 * (1 + fabs(twice)));
		}
		mu_free(both);
		mu_free(once[p]);
	}
	op_rig_release(&rig);
	op_values_release(&values);
}

static void check_sums(struct mu_device *device)
{
	static const struct mu_lstm lstm = {.units = 6};
	static const struct mu_convolution convolution = {.filters = 7, .kernel = {1, 1}};
	static const struct mu_embedding embedding = {.inputs = 5, .units = 3};

	check_adds(device, &(struct op_case){"lstm", .kind = MU_OP_LSTM, .attr = &lstm,
					     .in = {{4, {2, 4, 5, 1}}}});
	check_adds(device, &(struct op_case){"convolution", .kind = MU_OP_CONVOLUTION,
					     .attr = &convolution, .in = {{4, {2, 4, 5, 1}}}});
	check_adds(device,
		   &(struct op_case){"embedding", .kind = MU_OP_EMBEDDING, .attr = &embedding,
				     .in = {{4, {2, 1, 5, 1}}}, .frozen = 1});
}

/* ---- parts that are joined ---- */

enum { SAMPLES = 3, STEPS = 4, BLOCKS = 3, WORDS = 11 };

struct model {
	struct mu_device device;
	struct mu_net *net, *block_net;
	struct mu_plan *whole, *block, *parts[BLOCKS];
	float *weights, *gradients, *part_gradients, *sum;
	float labels[SAMPLES * STEPS];
	double loss;
};

struct sums_settings {
	long hidden;
};

/* Sums between its LSTMs and in front of convolutions, and what works in place. */
static enum mu_status build_sums(struct mu_net *net, const struct mu_net_config *config)
{
	const struct sums_settings *own = config->settings;
	const struct mu_embedding embed = {.inputs = (int)config->classes,
					   .units = (int)own->hidden};
	const struct mu_convolution same = {.filters = (int)own->hidden, .kernel = {1, 1}};
	const struct mu_convolution decode = {.filters = (int)config->classes, .kernel = {1, 1}};
	int x = mu_net_embedding(net, mu_net_input(net), &embed, "embed");

	for (long i = 0; i < config->num_layers; i++) {
		const struct mu_lstm lstm = {.units = (int)own->hidden};
		char name[32];
		int y;

		snprintf(name, sizeof name, "lstm%ld", i);
		y = mu_net_lstm(net, x, &lstm, name);
		x = mu_net_sum(net, 2, (int[]){x, y}, NULL);
		y = mu_net_convolution(net, x, &same, NULL);
		y = mu_net_activation(net, y, i % 2 ? MU_ACTIVATION_TANH : MU_ACTIVATION_RELU,
				      NULL);
		x = mu_net_sum(net, 2, (int[]){x, y}, NULL);
		x = mu_net_activation(net, x, MU_ACTIVATION_RELU, NULL);
	}
	mu_net_softmax(net, mu_net_convolution(net, x, &decode, "decode"), "softmax");
	return MU_OK;
}

static const struct mu_option sums_settings[] = {
	{MU_SETTING("num-hidden", INT, struct sums_settings, hidden), .initial = "16",
	 .help = "N  units"},
	{.name = NULL},
};
static const struct mu_network sums = {.name = "sums",
				       .traits = MU_NETWORK_DEPTHS | MU_NETWORK_SEQUENCES,
				       .settings = sums_settings,
				       .settings_nbytes = sizeof(struct sums_settings),
				       .build = build_sums};

static struct mu_net *new_net(const struct mu_network *network, size_t steps)
{
	const struct mu_net_config config = {.network = network->name,
					     .shape = MU_SAMPLE(1, steps, 1),
					     .classes = WORDS,
					     .num_layers = 3,
					     .options = network == &sums
								? "num-hidden=16"
								: "num-hidden=16 num-embed=5 "
								  "dropout=0"};
	struct mu_net *net = NULL;

	CHECK(mu_net_new_from(&net, network, &config) == MU_OK);
	CHECK(mu_net_check_blocks(net) == MU_OK);
	return net;
}

/* The word and the label at a step of a sample; some labels are ignored. */
static float word_at(size_t s, size_t t)
{
	return (float)((3 * s + 7 * t + 1) % WORDS);
}

static float label_at(size_t s, size_t t)
{
	return (float)((5 * s + 2 * t) % WORDS);
}

static void set_samples(struct mu_plan *plan, float *labels, size_t first, size_t steps)
{
	struct mu_batch *batch = mu_plan_batch(plan);

	batch->count = SAMPLES;
	batch->labels = labels;
	for (size_t s = 0; s < SAMPLES; s++)
		for (size_t t = 0; t < steps; t++) {
			mu_plan_input(plan)[s * steps + t] = word_at(s, first + t);
			labels[s * steps + t] = label_at(s, first + t);
		}
}

static void run_forward(struct mu_plan *plan)
{
	for (size_t l = 0; l < mu_plan_layers(plan); l++)
		CHECK(mu_plan_forward(plan, l) == MU_OK);
}

static void run_backward(struct mu_plan *plan)
{
	for (size_t l = mu_plan_layers(plan); l-- > 0;)
		CHECK(mu_plan_backward(plan, l) == MU_OK);
}

static void open_model(struct model *m, const struct mu_device_ops *ops,
		       const struct mu_network *network)
{
	size_t n;

	CHECK(mu_device_open(&m->device, ops->name, 1) == MU_OK);
	m->net = new_net(network, STEPS * BLOCKS);
	m->block_net = new_net(network, STEPS);
	CHECK(mu_plan_new_dry(&m->block, m->block_net, &m->device, SAMPLES, MU_PHASE_TRAIN, NULL) ==
	      MU_OK);
	CHECK(mu_plan_new(&m->whole, m->net, &m->device, SAMPLES, MU_PHASE_TRAIN, m->block) ==
	      MU_OK);
	n = mu_plan_n(m->block);
	CHECK(MU_ALLOC(m->weights, n, "test memory") == MU_OK);
	CHECK(MU_ALLOC(m->gradients, n, "test memory") == MU_OK);
	CHECK(MU_ALLOC(m->part_gradients, n, "test memory") == MU_OK);
	CHECK(MU_ALLOC(m->sum, n, "test memory") == MU_OK);
	CHECK(mu_plan_init_weights(m->block, "uniform", 3, m->weights) == MU_OK);
	for (size_t i = 0; i < n; i++) /* so large that states matter */
		m->weights[i] *= 10;
	CHECK(mu_plan_bind(m->whole, m->weights, m->gradients) == MU_OK);
	for (size_t k = 0; k < BLOCKS; k++) {
		const struct mu_plan_part part = {.net = m->block_net,
						  .device = &m->device,
						  .batch = SAMPLES,
						  .phase = MU_PHASE_TRAIN,
						  .whole = m->block,
						  .n = mu_plan_layers(m->block),
						  .of_block = true,
						  .first_block = k > 0 ? m->parts[0] : NULL};

		CHECK(mu_plan_new_part(&m->parts[k], &part) == MU_OK);
		CHECK(mu_plan_allocate(m->parts[k]) == MU_OK);
	}
}

static void close_model(struct model *m)
{
	for (size_t k = 0; k < BLOCKS; k++)
		mu_plan_free(m->parts[k]);
	mu_plan_free(m->whole);
	mu_plan_free(m->block);
	mu_net_free(m->net);
	mu_net_free(m->block_net);
	mu_free(m->weights);
	mu_free(m->gradients);
	mu_free(m->part_gradients);
	mu_free(m->sum);
	mu_device_close(&m->device);
}

static void add_layer(struct model *m, size_t l)
{
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(m->block, &n_slices);
	const size_t *keys;

	for (size_t i = mu_plan_layer_keys(m->block, l, &keys); i-- > 0;)
		for (size_t k = 0; k < slices[keys[i]].n_padded; k++)
			m->sum[slices[keys[i]].at + k] += m->part_gradients[slices[keys[i]].at + k];
}

/* Half of backward of block k: of its layers, or of what those have left. */
static void run_half(struct model *m, size_t k, bool later)
{
	struct mu_plan *part = m->parts[k];

	for (size_t l = mu_plan_layers(part); l-- > 0;) {
		CHECK((later ? mu_plan_backward_weights(part, l) : mu_plan_backward(part, l)) ==
		      MU_OK);
		if (k + 1 < BLOCKS && !mu_plan_adds(part, l) &&
		    later == mu_plan_weights_later(part, l))
			add_layer(m, l);
	}
}

static void run_blocks(struct model *m)
{
	size_t n_later = 0;

	m->loss = 0;
	for (size_t k = 0; k < BLOCKS; k++) {
		mu_plan_join(m->parts[k], k, k > 0 ? m->parts[k - 1] : NULL,
			     k + 1 < BLOCKS ? m->parts[k + 1] : NULL);
		set_samples(m->parts[k], m->labels, k * STEPS, STEPS);
		if (k + 1 == BLOCKS) /* whose backward is the first */
			CHECK(mu_plan_bind(m->parts[k], m->weights, m->sum) == MU_OK);
		else
			CHECK(mu_plan_bind_sum(m->parts[k], m->weights, m->sum,
					       m->part_gradients, k == 0) == MU_OK);
		run_forward(m->parts[k]);
		m->loss += mu_plan_batch(m->parts[k])->loss;
	}
	for (size_t k = BLOCKS; k-- > 0;) {
		set_samples(m->parts[k], m->labels, k * STEPS, STEPS);
		run_half(m, k, false);
	}
	for (size_t k = BLOCKS; k-- > 0;)
		run_half(m, k, true);
	for (size_t l = 0; l < mu_plan_layers(m->block); l++)
		n_later += mu_plan_weights_later(m->parts[0], l);
	CHECK((n_later > 0) == (strcmp(m->device.ops->name, "cpu") == 0));
}

static void check_parts(const struct mu_device_ops *ops, const struct mu_network *network)
{
	struct model m = {.net = NULL};
	float labels[SAMPLES * STEPS * BLOCKS];
	double worst = 0, largest = 0;

	open_model(&m, ops, network);
	set_samples(m.whole, labels, 0, STEPS * BLOCKS);
	run_forward(m.whole);
	run_backward(m.whole);
	for (int again = 0; again < 2; again++) { /* nothing is left of the run before */
		run_blocks(&m);
		CHECK_NEAR(m.loss, mu_plan_batch(m.whole)->loss, 1e-5 * m.loss);
		for (size_t i = 0; i < mu_plan_n(m.block); i++) {
			worst = fmax(worst, fabs((double)m.sum[i] - (double)m.gradients[i]));
			largest = fmax(largest, fabs((double)m.gradients[i]));
		}
	}
	printf("%s, %s: gradients up to %g, apart by %g at most\n", ops->name, network->name,
	       largest, worst);
	CHECK(largest > 0.1);
	CHECK(worst < 1e-5 * (1 + largest));
	close_model(&m);
}

int main(void)
{
	const struct mu_network *lstm = NULL;

	CHECK(mu_network_find(&lstm, "lstm") == MU_OK);
	check_nets();
	for (size_t d = 0; mu_device_table[d]; d++) {
		struct mu_device device;

		if (!CHECK_IS_HERE(mu_device_table[d]))
			continue;
		CHECK(mu_device_open(&device, mu_device_table[d]->name, 1) == MU_OK);
		check_masks(&device);
		check_many_weights(&device);
		check_sums(&device);
		if (device.ops->memory) {
			CHECK(mu_device_set_dtype(&device, MU_FLOAT16) == MU_OK);
			check_sums(&device);
		}
		mu_device_close(&device);
		check_parts(mu_device_table[d], lstm);
		check_parts(mu_device_table[d], &sums);
	}
	return check_failures() ? 1 : 0;
}
