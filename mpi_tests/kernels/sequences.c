/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of dropout, softmax, embedding and LSTM: see rig.h. */
#include "rig.h"

void test_dropout(const struct variant *v)
{
	const void *x = rig_numbers_at(v->type, v->n, 80, 1);
	const size_t features = v->channels * v->area;
	uint32_t *ids = rig_bytes(v->samples * sizeof *ids, 0), *epochs = rig_bytes(4, 0);
	void *y = v->odd ? rig_copy(x, v->type, v->n) : rig_numbers_at(v->type, v->n, 81, 3);
	struct cuda_dropout a = {.x = v->odd ? y : x,
				 .y = y,
				 .mask = rig_floats(v->n, 82),
				 .type = v->type,
				 .last = v->odd,
				 .channels = v->channels,
				 .area = v->area,
				 .ids = v->odd ? ids : NULL,
				 .epochs = v->odd ? epochs : NULL,
				 .seed = 0x123456789abcu,
				 .first = 6,
				 .epoch = 3,
				 .purpose = MU_RANDOM_TEST,
				 .p = 0.25f,
				 .n = v->n};

	for (size_t s = 0; s < v->samples; s++)
		ids[s] = (uint32_t)(1000 - s);
	epochs[0] = 7;
	RUN(dropout, v, &a);
	for (size_t i = 0; i < v->n; i++) {
		const size_t at = v->odd ? rig_plain(v, i) : i, s = at / features;
		const struct mu_random key = {.seed = a.seed,
					      .purpose = a.purpose,
					      .epoch = v->odd ? 7 : 3,
					      .sample = v->odd ? 1000 - s : s};
		const float drawn = mu_random_uniform(&key, a.first + at % features);
		const double mask = drawn < a.p ? 0 : 1 / 0.75;

		rig_expect(a.mask, CUDA_FLOAT32, i, mask);
		rig_expect(y, v->type, i, rig_at(x, v->type, i) * mask);
	}
}

/* ---- softmax: rows are blocks ---- */

enum { MAX_ROWS = 7 };

static void weigh(struct cuda_targets *t)
{
	float *weights = rig_floats(t->classes, 88);
	double sum = 0;

	for (size_t k = 0; k < t->classes; k++) {
		weights[k] = 1 + (float)(k % 3) / 2;
		sum += (double)weights[k];
	}
	t->weights = weights;
	t->mean_weight = (float)(sum / (double)t->classes);
}

static struct cuda_targets targets_of(const struct variant *v, size_t samples)
{
	const size_t n = samples * v->area;
	float *labels = rig_floats(n, 83);
	struct cuda_targets t = {.labels = labels,
				 .classes = v->channels,
				 .area = v->area,
				 .count = samples - samples / 3,
				 .use_ignore = v->odd,
				 .ignored = 0,
				 .smoothing = v->odd ? 0.125f : 0};

	for (size_t i = 0; i < n; i++)
		labels[i] = (float)(i * 7 % v->channels);
	if (v->odd && samples > 1)
		weigh(&t);
	return t;
}

/* The probability that prediction i should give class c, by the weight of that, or -1 if it does
 * not count. */
static double wanted(const struct cuda_targets *t, size_t i, size_t c)
{
	if (i / t->area >= t->count || (t->use_ignore && t->labels[i] == t->ignored))
		return -1;
	return ((c == (size_t)t->labels[i] ? 1 - (double)t->smoothing : 0) +
		(double)t->smoothing / (double)t->classes) *
	       (t->weights ? (double)t->weights[c] : 1);
}

static double all_wanted(const struct cuda_targets *t, size_t i)
{
	double sum = 0;

	for (size_t c = 0; c < t->classes; c++)
		sum += wanted(t, i, c);
	return sum;
}

static double score(const struct variant *v, const struct cuda_softmax *a, const void *x, size_t i,
		    size_t c, size_t *at)
{
	*at = v->type == CUDA_FLOAT32 ? (i / v->area * v->channels + c) * v->area + i % v->area
				      : i * a->row + c;
	return rig_at(x, v->type, *at);
}

/* Prediction i of the scores x. */
static void check_prediction(const struct variant *v, const struct cuda_softmax *a, const void *x,
			     size_t i)
{
	const int counted = wanted(&a->t, i, 0) >= 0;
	const size_t label = counted ? (size_t)a->t.labels[i] : 0;
	double largest = -INFINITY, sum = 0, loss = 0, own, p, q;
	const double all = all_wanted(&a->t, i);
	float *result = rig_floats(1, 0);
	size_t place = 0, at;

	for (size_t c = 0; c < v->channels; c++)
		largest = fmax(largest, score(v, a, x, i, c, &at));
	for (size_t c = 0; c < v->channels; c++)
		sum += exp(score(v, a, x, i, c, &at) - largest);
	own = score(v, a, x, i, label, &at);
	for (size_t c = 0; c < v->channels; c++) {
		const double s = score(v, a, x, i, c, &at);

		p = exp(s - largest) / sum;
		q = wanted(&a->t, i, c);
		if (q > 0)
			loss += q * (log(sum) + largest - s);
		place += s > own || (s == own && c < label);
		rig_expect(a->y, v->type, at, a->scale == 0 ? p : q < 0 ? 0 : 3 * (p * all - q));
	}
	*result = (float)a->predictions[i].loss;
	rig_expect(result, CUDA_FLOAT32, 0, loss);
	*result = a->predictions[i].cross_entropy;
	rig_expect(result, CUDA_FLOAT32, 0, counted ? log(sum) + largest - own : 0);
	CHECK(a->predictions[i].place == (counted ? place : 0));
	for (size_t c = v->channels; v->type != CUDA_FLOAT32 && c < a->row; c++)
		CHECK(rig_at(a->y, v->type, i * a->row + c) == 0);
}

static void softmax_case(const struct variant *of, enum kernel_id kernel)
{
	struct variant v = *of;
	struct cuda_softmax a;
	size_t at;
	void *x;

	if (rig_is_long(of))
		return;
	if (v.samples == 1 &&
	    v.area > 1) { /* more classes than a block does at once, eight a thread */
		v.channels = 4101;
		v.area = 1;
	}
	if (v.area > MAX_ROWS)
		v.area = MAX_ROWS;
	if (v.samples * v.area > MAX_ROWS)
		v.samples = v.area < MAX_ROWS ? MAX_ROWS / v.area : 1;
	a = (struct cuda_softmax){.t = targets_of(&v, v.samples),
				  .type = v.type,
				  .row = (v.channels + 7) / 8 * 8,
				  .scale = v.odd && v.type != CUDA_FLOAT32 ? 3 : 0,
				  .n = v.samples * v.area};
	x = rig_numbers(v.type, a.n * a.row, 84);
	for (size_t i = 0; i < a.n; i++) { /* class 0, some labels', has no probability */
		score(&v, &a, x, i, 0, &at);
		rig_set(x, v.type, at, -300);
	}
	a.y = a.scale > 0 ? rig_copy(x, v.type, a.n * a.row) : rig_numbers(v.type, a.n * a.row, 85);
	a.x = a.scale > 0 ? a.y : x;
	a.predictions = rig_bytes(a.n * sizeof *a.predictions, 0);
	rig_run_rows(kernel, &v, a.n, &a);
	for (size_t i = 0; i < a.n; i++)
		check_prediction(&v, &a, x, i);
}

void test_softmax(const struct variant *v)
{
	if (v->type == CUDA_FLOAT32)
		softmax_case(v, KERNEL_softmax);
}

void test_softmax_halves(const struct variant *v)
{
	if (v->type != CUDA_FLOAT32)
		softmax_case(v, KERNEL_softmax_halves);
}

void test_softmax_backward(const struct variant *v)
{
	struct cuda_softmax_backward a = {.t = targets_of(v, v->samples), .scale = 3, .n = v->n};

	a.p = rig_floats(v->n, 86);
	a.dx = rig_floats(v->n, 87);
	RUN(softmax_backward, v, &a);
	for (size_t i = 0; i < v->n; i++) {
		const size_t c = i / v->area % v->channels;
		const size_t at = i / v->area / v->channels * v->area + i % v->area;
		const double q = wanted(&a.t, at, c);

		rig_expect(a.dx, CUDA_FLOAT32, i,
			   q < 0 ? 0 : 3 * ((double)a.p[i] * all_wanted(&a.t, at) - q));
	}
}

/* ---- embedding: channels are units ---- */

enum { INPUTS = 9 };

/* Numbers of words; with `bad`, the last is none. Those of the last sample do not count. */
static float *words_of(const struct variant *v, int bad)
{
	const size_t n = v->samples * v->area;
	float *x = rig_floats(n, 88);

	for (size_t i = 0; i < n; i++)
		x[i] = i / v->area + 1 < v->samples ? (float)(i * 5 % INPUTS) : -1;
	if (bad && v->samples > 1)
		x[0] = INPUTS, x[v->area - 1] = 1.5f;
	return x;
}

void test_embed(const struct variant *v)
{
	uint32_t *bad = rig_bytes(sizeof *bad, 0);
	const struct cuda_embed a = {.x = words_of(v, v->odd),
				     .weight = rig_floats(INPUTS * v->channels, 89),
				     .y = rig_floats(v->n, 90),
				     .bad = bad,
				     .units = v->channels,
				     .area = v->area,
				     .count = v->samples - 1,
				     .inputs = INPUTS,
				     .n = v->n};

	RUN(embed, v, &a);
	CHECK(*bad == (uint32_t)(v->odd && v->samples > 1));
	for (size_t i = 0; i < v->n; i++) {
		const size_t s = i / v->area / v->channels, u = i / v->area % v->channels;
		const float x = s < a.count ? a.x[s * v->area + i % v->area] : 0;

		rig_expect(a.y, CUDA_FLOAT32, i,
			   x == 1.5f || x >= INPUTS
				   ? 0
				   : (double)a.weight[(size_t)x * v->channels + u]);
	}
}

void test_embed_backward(const struct variant *of)
{
	struct variant one = *of, *v = &one;
	struct cuda_embed_backward a;
	double *want;

	if (v->samples == 3 && v->area == 1 && v->type == CUDA_FLOAT32) {
		v->area = 90; /* more positions than threads of a block */
	} else if (v->samples * v->area > 12) {
		v->samples = v->samples > 4 ? 4 : v->samples;
		v->area = v->area > 3 ? 3 : v->area;
	}
	v->n = v->samples * v->channels * v->area;
	a = (struct cuda_embed_backward){.x = words_of(v, v->odd),
					 .dy = rig_floats(v->n, 91),
					 .dw = rig_bytes(INPUTS * v->channels * 4, 0),
					 .units = v->channels,
					 .area = v->area,
					 .count = v->samples - 1,
					 .inputs = INPUTS,
					 .n = v->samples * v->area};
	want = rig_bytes(INPUTS * v->channels * sizeof *want, 0);

	for (size_t i = 0; i < v->n; i++) {
		const size_t s = i / v->area / v->channels, u = i / v->area % v->channels;
		const float x = s < a.count ? a.x[s * v->area + i % v->area] : 0;

		if (x != 1.5f && x < INPUTS)
			want[(size_t)x * v->channels + u] += (double)a.dy[i];
	}
	RUN_ROWS(embed_backward, v, &a);
	for (size_t i = 0; i < INPUTS * v->channels; i++)
		rig_near(a.dw, CUDA_FLOAT32, i, want[i], 100);
}

/* ---- LSTM: area is steps ---- */

/* Place in the steps of element i of the tensor. */
static size_t in_steps(const struct variant *v, size_t i)
{
	const size_t s = i / v->channels / v->area;
	const size_t c = v->odd ? i % v->channels : i / v->area % v->channels;
	const size_t t = v->odd ? i / v->channels % v->area : i % v->area;

	return (t * v->samples + s) * v->channels + c;
}

void test_to_steps(const struct variant *v)
{
	const void *from = rig_numbers_at(v->type, v->n, 92, 1);
	void *to = rig_numbers_at(v->type, v->n, 93, 3);
	const struct cuda_steps a = {from,       to,          v->type, v->odd,
				     v->samples, v->channels, v->area, v->n};

	RUN(to_steps, v, &a);
	for (size_t i = 0; i < v->n; i++)
		rig_expect(to, v->type, in_steps(v, i), rig_at(from, v->type, i));
}

void test_from_steps(const struct variant *v)
{
	const void *from = rig_numbers_at(v->type, v->n, 94, 3);
	void *to = rig_numbers_at(v->type, v->n, 95, 1);
	const struct cuda_steps a = {from,       to,          v->type, v->odd,
				     v->samples, v->channels, v->area, v->n};

	RUN(from_steps, v, &a);
	for (size_t i = 0; i < v->n; i++)
		rig_expect(to, v->type, i, rig_at(from, v->type, in_steps(v, i)));
}

/* Gates lie in the space in another order, with gaps. */
static struct cuda_lstm_space space_of(const struct variant *v, size_t *n_space)
{
	struct cuda_lstm_space a = {.type = v->type, .adds = v->odd, .units = v->channels};
	size_t at = 1;

	for (unsigned p = 0; p < CUDA_LSTM_PARAMS; p++) {
		a.width[p] = p < 2 ? 1 + v->area % 50 + p : 1;
		a.params[p] = rig_floats(CUDA_LSTM_GATES * a.units * a.width[p], 96 + p);
		a.n += CUDA_LSTM_GATES * a.units * a.width[p];
		for (int gate = CUDA_LSTM_GATES; gate-- > 0;) {
			a.at[p][gate] = at;
			at += a.units * a.width[p] + 3;
		}
	}
	*n_space = at;
	a.space = rig_numbers(v->type, at, 95);
	return a;
}

void test_lstm_weights(const struct variant *v)
{
	size_t n_space, touched = 0;
	const struct cuda_lstm_space a = space_of(v, &n_space);
	const void *was = rig_copy(a.space, v->type, n_space);

	RUN(lstm_weights, v, &a);
	for (int p = 0; p < CUDA_LSTM_PARAMS; p++)
		for (int gate = 0; gate < CUDA_LSTM_GATES; gate++) {
			const size_t n = a.units * a.width[p];

			for (size_t i = 0; i < n; i++)
				rig_expect(a.space, v->type, a.at[p][gate] + i,
					   (double)a.params[p][(size_t)gate * n + i]);
			for (size_t i = n; i < n + 3; i++) /* the gap */
				touched += rig_at(a.space, v->type, a.at[p][gate] + i) !=
					   rig_at(was, v->type, a.at[p][gate] + i);
		}
	CHECK(touched == 0);
}

void test_lstm_gradients(const struct variant *v)
{
	size_t n_space;
	const struct cuda_lstm_space a = space_of(v, &n_space);
	const float *was[CUDA_LSTM_PARAMS];

	for (int p = 0; p < CUDA_LSTM_PARAMS; p++)
		was[p] =
			rig_copy(a.params[p], CUDA_FLOAT32, CUDA_LSTM_GATES * a.units * a.width[p]);
	RUN(lstm_gradients, v, &a);
	for (int p = 0; p < CUDA_LSTM_PARAMS; p++)
		for (size_t i = 0; i < CUDA_LSTM_GATES * a.units * a.width[p]; i++) {
			const size_t n = a.units * a.width[p];

			rig_expect(a.params[p], CUDA_FLOAT32, i,
				   rig_at(a.space, v->type, a.at[p][i / n] + i % n) +
					   (v->odd ? (double)was[p][i] : 0));
		}
}
