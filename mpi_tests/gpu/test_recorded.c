/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 @gpu */
/*
 * Steps that are recorded and given again (mu_plan_set_recorded) are those that are given operation
 * by operation: with samples, labels and weights that change, and with what a recording holds:
 * counted samples, smoothing, the loss scale; and after mu_plan_bind. With networks whose
 * convolutions, norms, LSTMs and dropout are captured, too, in all types.
 */
#include <string.h>

#include <muster/base.h>

#include "../lib/check.h"
#include "net/plan.h"

enum { BATCH = 5, CLASSES = 10, STEPS = 18, FEW_FROM = 9, FEW_TO = 15, WORDS = 6 };

#define LSTM \
	{ \
		.network = "lstm", .shape = MU_SAMPLE(1, WORDS, 1), .classes = CLASSES, \
		.num_layers = 2, .options = "num-hidden=8 num-embed=8 dropout=0.25" \
	}

/* few: the steps FEW_FROM to FEW_TO alone, where smoothing and the loss scale change. words: the
 * input is numbers of words, and each has a label. */
static const struct one {
	struct mu_net_config config;
	enum mu_dtype dtype;
	bool few, words;
} nets[] = {
	{{.network = "mlp", .shape = MU_SAMPLE(1, 6, 6), .classes = CLASSES},
	 MU_FLOAT32,
	 false,
	 false},
	{{.network = "resnet-v1", .shape = MU_SAMPLE(3, 8, 8), .classes = CLASSES, .num_layers = 8},
	 MU_FLOAT32,
	 true,
	 false},
	{{.network = "resnet-v1", .shape = MU_SAMPLE(3, 8, 8), .classes = CLASSES, .num_layers = 8},
	 MU_FLOAT16,
	 true,
	 false},
	{{.network = "resnet-v1", .shape = MU_SAMPLE(3, 8, 8), .classes = CLASSES, .num_layers = 8},
	 MU_BFLOAT16,
	 true,
	 false},
	{{.network = "vit-tiny",
	  .shape = MU_SAMPLE(3, 16, 16),
	  .classes = CLASSES,
	  .num_layers = 1,
	  .options = "num-hidden=16 num-heads=2 dropout=0.25"},
	 MU_FLOAT32,
	 true,
	 false},
	{LSTM, MU_FLOAT32, true, true},
	{LSTM, MU_FLOAT16, true, true},
};

struct model {
	struct mu_plan *plan;
	float *weights, *gradients, *others; /* gradients after another bind */
};

struct pair {
	struct mu_device device;
	struct mu_net *net;
	struct model models[2]; /* the first as it is, the second recorded */
	size_t n, sample;       /* elements of all weights, of an image */
};

static bool start(struct pair *p, const struct one *one)
{
	const struct mu_net_config *config = &one->config;
	size_t recorded, alone;

	if (mu_device_open(&p->device, "gpu:0", 1) != MU_OK ||
	    mu_device_set_dtype(&p->device, one->dtype) != MU_OK ||
	    mu_net_new(&p->net, config) != MU_OK)
		return false;
	p->sample = mu_shape_sample(&config->shape);
	for (int i = 0; i < 2; i++) {
		struct model *m = &p->models[i];

		if (mu_plan_new(&m->plan, p->net, &p->device, BATCH, MU_PHASE_TRAIN,
				i ? p->models[0].plan : NULL) != MU_OK)
			return false;
		p->n = mu_plan_n(m->plan);
		if (MU_ALLOC(m->weights, p->n, "weights") != MU_OK ||
		    MU_ALLOC(m->gradients, p->n, "gradients") != MU_OK ||
		    MU_ALLOC(m->others, p->n, "gradients") != MU_OK ||
		    mu_plan_init_weights(m->plan, "default", 7, m->weights) != MU_OK ||
		    mu_plan_bind(m->plan, m->weights, m->gradients) != MU_OK)
			return false;
	}
	if (mu_plan_set_recorded(p->models[1].plan, 1) != MU_OK)
		return false;
	mu_plan_count_pieces(p->models[1].plan, &recorded, &alone);
	/* the forward of the softmax, and of an embedding */
	return CHECK(recorded > 2 && alone == (one->words ? 2 : 1));
}

static void stop(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		mu_plan_free(p->models[i].plan);
		mu_free(p->models[i].weights);
		mu_free(p->models[i].gradients);
		mu_free(p->models[i].others);
	}
	mu_net_free(p->net);
	mu_device_close(&p->device);
}

static void step(struct model *m, const struct mu_batch *batch, size_t number, size_t sample,
		 bool words)
{
	struct mu_plan *plan = m->plan;
	size_t layer = mu_plan_layers(plan), left = layer;

	for (size_t i = 0; i < BATCH * sample; i++)
		mu_plan_input(plan)[i] = words ? (float)((i * 7 + number * 3) % CLASSES)
					       : (float)((i * 7 + number * 3) % 11) / 11;
	*mu_plan_batch(plan) = *batch;
	for (size_t l = 0; l < mu_plan_layers(plan); l++)
		CHECK(mu_plan_forward(plan, l) == MU_OK);
	while (left > 0) {
		if (layer > 0)
			CHECK(mu_plan_backward_begin(plan, --layer) == MU_OK);
		if (!CHECK(mu_plan_backward_left(plan, layer == 0, &left) == MU_OK))
			break;
	}
}

static void rebind(struct model *m)
{
	float *gradients = m->gradients;

	m->gradients = m->others;
	m->others = gradients;
	CHECK(mu_plan_bind(m->plan, m->weights, m->gradients) == MU_OK);
}

/* What changes stays so for some steps, of which the later ones are recorded. */
static void test_steps(struct pair *p, const struct one *one)
{
	float labels[BATCH * WORDS];
	uint32_t ids[BATCH];
	size_t recorded, alone;

	for (size_t s = one->few ? FEW_FROM : 0; s < (one->few ? FEW_TO : STEPS); s++) {
		const struct mu_batch batch = {
			.labels = labels,
			.count = s < 3 || s > 5 ? BATCH : BATCH - 2,
			.label_smoothing = s < 9 ? 0 : 0.125f,
			.loss_scale = s < 12 ? 0 : 48,
			.seed = 11,
			.epoch = (uint32_t)s,
			.ids = ids,
		};

		for (size_t i = 0; i < BATCH * WORDS; i++)
			labels[i] = (float)((i + s) % CLASSES);
		for (size_t i = 0; i < BATCH; i++)
			ids[i] = (uint32_t)(100 * s + i);
		for (int i = 0; i < 2; i++) {
			struct model *m = &p->models[i];

			for (size_t k = 0; k < p->n && s > 0; k++)
				m->weights[k] -= (one->few ? 1e-4f : 0.125f) * m->gradients[k];
			if (s == 15)
				rebind(m);
			step(m, &batch, s, p->sample, one->words);
		}
		if (!CHECK(mu_plan_batch(p->models[0].plan)->loss ==
			   mu_plan_batch(p->models[1].plan)->loss) ||
		    !CHECK(memcmp(p->models[0].gradients, p->models[1].gradients,
				  p->n * sizeof(float)) == 0)) {
			printf("%s, type %d: step %zu\n", one->config.network, one->dtype, s);
			break;
		}
	}
	mu_plan_count_pieces(p->models[1].plan, &recorded, &alone);
	/* what cannot be captured is run directly from then on */
	CHECK(alone == (one->words ? 2 : 1));
}

int main(void)
{
	char why[256];

	for (size_t d = 0;; d++) {
		if (!mu_device_table[d]) {
			printf("skipped: this build has no device gpu\n");
			return CHECK_SKIPPED;
		}
		if (strcmp(mu_device_table[d]->name, "gpu") != 0)
			continue;
		if (mu_device_is_here(mu_device_table[d], why, sizeof why))
			break;
		printf("skipped: %s\n", why);
		return CHECK_SKIPPED;
	}
	mu_log_configure(&(struct mu_log_config){.level = MU_LOG_WARN});
	for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
		struct pair p = {.n = 0};

		if (CHECK(start(&p, &nets[i])))
			test_steps(&p, &nets[i]);
		else
			mu_trace_print(stderr, "gpu");
		stop(&p);
	}
	return check_failures() ? 1 : 0;
}
