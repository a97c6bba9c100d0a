/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of the layers of transformers: see rig.h. */
#include "rig.h"

/* ---- layer norm: rms norm in the second way, without statistics kept ---- */

enum { MAX_ROWS = 100 };

/* A warp's fibres take long. */
static struct variant shortened(const struct variant *of)
{
	struct variant v = *of;

	if (v.area > MAX_ROWS)
		v.area = MAX_ROWS;
	if (v.samples * v.area > MAX_ROWS)
		v.samples = MAX_ROWS / v.area;
	if (v.samples == 3) /* more than a warp's threads hold at a time */
		v.channels = v.odd ? 272 : 261;
	v.n = v.samples * v.channels * v.area;
	return v;
}

/* Element k of row i. */
static size_t place(const struct variant *v, size_t i, size_t k)
{
	return (i / v->area * v->channels + k) * v->area + i % v->area;
}

static struct cuda_row_statistics *statistics_of(const struct variant *v, const void *x)
{
	struct cuda_row_statistics *s = rig_bytes(v->samples * v->area * sizeof *s, 0);

	for (size_t i = 0; i < v->samples * v->area; i++) {
		double mean = 0, square = 0;

		for (size_t k = 0; k < v->channels && !v->odd; k++)
			mean += rig_at(x, v->type, place(v, i, k)) / (double)v->channels;
		for (size_t k = 0; k < v->channels; k++)
			square += pow(rig_at(x, v->type, place(v, i, k)) - mean, 2) /
				  (double)v->channels;
		s[i] = (struct cuda_row_statistics){(float)mean, (float)(1 / sqrt(square + 0.01))};
	}
	return s;
}

void test_layer_norm(const struct variant *of)
{
	const struct variant v = shortened(of);
	const void *x = rig_numbers(v.type, v.n, 105);
	const struct cuda_row_statistics *s = statistics_of(&v, x);
	struct cuda_layer_norm a = {.x = x,
				    .y = rig_numbers(v.type, v.n, 106),
				    .gamma = rig_floats(v.channels, 107),
				    .beta = v.odd ? NULL : rig_floats(v.channels, 108),
				    .type = v.type,
				    .rms = v.odd,
				    .eps = 0.01f,
				    .channels = v.channels,
				    .area = v.area,
				    .n = v.samples * v.area};

	if (!v.odd)
		a.statistics = rig_bytes(a.n * sizeof *a.statistics, 0xee);
	RUN_WARPS(layer_norm, &v, &a);
	for (size_t i = 0; i < a.n; i++) {
		if (!v.odd) {
			rig_near(&a.statistics[i].mean, CUDA_FLOAT32, 0, (double)s[i].mean, 4);
			rig_near(&a.statistics[i].factor, CUDA_FLOAT32, 0, (double)s[i].factor, 4);
		}
		for (size_t k = 0; k < v.channels; k++)
			rig_near(a.y, v.type, place(&v, i, k),
				 (rig_at(x, v.type, place(&v, i, k)) - (double)s[i].mean) *
						 (double)s[i].factor * (double)a.gamma[k] +
					 (a.beta ? (double)a.beta[k] : 0),
				 20);
	}
}

void test_layer_norm_backward(const struct variant *of)
{
	const struct variant v = shortened(of);
	const void *x = rig_numbers(v.type, v.n, 109), *dy = rig_numbers(v.type, v.n, 110);
	const struct cuda_layer_norm_backward a = {.x = x,
						   .dy = dy,
						   .dx = rig_numbers(v.type, v.n, 111),
						   .gamma = rig_floats(v.channels, 112),
						   .statistics = statistics_of(&v, x),
						   .type = v.type,
						   .rms = v.odd,
						   .channels = v.channels,
						   .area = v.area,
						   .n = v.samples * v.area};

	RUN_WARPS(layer_norm_backward, &v, &a);
	for (size_t i = 0; i < a.n; i++) {
		const double factor = (double)a.statistics[i].factor;
		double mean = 0, mixed = 0;

		for (size_t k = 0; k < v.channels; k++) {
			const double g = rig_at(dy, v.type, place(&v, i, k)) * (double)a.gamma[k];

			mean += v.odd ? 0 : g / (double)v.channels;
			mixed +=
				g * factor / (double)v.channels *
				(rig_at(x, v.type, place(&v, i, k)) - (double)a.statistics[i].mean);
		}
		for (size_t k = 0; k < v.channels; k++) {
			const size_t at = place(&v, i, k);
			const double xhat =
				(rig_at(x, v.type, at) - (double)a.statistics[i].mean) * factor;

			rig_near(a.dx, v.type, at,
				 factor * (rig_at(dy, v.type, at) * (double)a.gamma[k] - mean -
					   xhat * mixed),
				 20);
		}
	}
}

void test_layer_norm_sums(const struct variant *of)
{
	const struct variant v = shortened(of);
	const void *x = rig_numbers(v.type, v.n, 113), *dy = rig_numbers(v.type, v.n, 114);
	const size_t rows = v.samples * v.area, lanes = rows < 4 ? rows : 3;
	const struct cuda_layer_norm_sums a = {.x = x,
					       .dy = dy,
					       .statistics = statistics_of(&v, x),
					       .first = rig_floats(lanes * v.channels, 115),
					       .second = rig_floats(lanes * v.channels, 116),
					       .type = v.type,
					       .channels = v.channels,
					       .area = v.area,
					       .rows = rows,
					       .lanes = lanes,
					       .n = lanes * ((v.channels + 7) / 8)};

	RUN(layer_norm_sums, &v, &a);
	for (size_t i = 0; i < lanes * v.channels; i++) {
		const size_t k = i % v.channels, lane = i / v.channels;
		double first = 0, second = 0;

		for (size_t row = lane * rows / lanes; row < (lane + 1) * rows / lanes; row++) {
			const struct cuda_row_statistics *s = &a.statistics[row];
			const double g = rig_at(dy, v.type, place(&v, row, k));

			first += g * (rig_at(x, v.type, place(&v, row, k)) - (double)s->mean) *
				 (double)s->factor;
			second += g;
		}
		rig_near(a.first, CUDA_FLOAT32, i, first, 100);
		rig_near(a.second, CUDA_FLOAT32, i, second, 100);
	}
}

/* ---- positions: area is steps, channels last in the second way ---- */

static size_t step_place(const struct variant *v, size_t s, size_t k, size_t t, size_t steps)
{
	return v->odd ? (s * steps + t) * v->channels + k : (s * v->channels + k) * steps + t;
}

void test_positions(const struct variant *v)
{
	for (size_t first = 0; first < 2 && first < v->area; first++) {
		const size_t before = v->area - first;
		const void *x = rig_numbers_at(v->type, v->n, 117, 1);
		const float *token = rig_floats(v->channels, 119);
		const struct cuda_positions a = {.x = x,
						 .weight = rig_floats(v->channels * v->area, 118),
						 .token = first ? token : NULL,
						 .y = rig_numbers_at(v->type, v->n, 120, 3),
						 .type = v->type,
						 .last = v->odd,
						 .c = v->channels,
						 .steps = v->area,
						 .first = first,
						 .n = v->n};

		RUN(positions, v, &a);
		for (size_t i = 0; i < v->n; i++) {
			const size_t t = i % v->area, k = i / v->area % v->channels;
			const size_t s = i / v->area / v->channels;

			rig_expect(a.y, v->type, step_place(v, s, k, t, v->area),
				   (double)a.weight[t * v->channels + k] +
					   (t < first ? (double)a.token[k]
						      : rig_at(x, v->type,
							       step_place(v, s, k, t - first,
									  before))));
		}
	}
}

/* Two positions more than steps. */
void test_positions_backward(const struct variant *v)
{
	for (int adds = 0; adds < 2; adds++) {
		const size_t most = v->area + 2, n = (most + 1) * v->channels;
		const void *dy = rig_numbers_at(v->type, v->n, 121, 1);
		float *grads = rig_floats(n, 122);
		const float *was = rig_copy(grads, CUDA_FLOAT32, n);
		const struct cuda_positions_backward a = {.dy = dy,
							  .weight = grads,
							  .token = grads + most * v->channels,
							  .type = v->type,
							  .last = v->odd,
							  .adds = adds,
							  .samples = v->samples,
							  .c = v->channels,
							  .steps = v->area,
							  .most = most,
							  .n = n};

		RUN(positions_backward, v, &a);
		for (size_t i = 0; i < n; i++) {
			const size_t t = i / v->channels % most;
			double sum = adds ? (double)was[i] : 0;

			for (size_t s = 0; s < v->samples && t < v->area; s++)
				sum += rig_at(dy, v->type,
					      step_place(v, s, i % v->channels, t, v->area));
			rig_near(grads, CUDA_FLOAT32, i, sum, 200);
		}
	}
}

void test_pick_step(const struct variant *v)
{
	const void *x = rig_numbers_at(v->type, v->n, 123, 1);
	const struct cuda_pick_step a = {.x = x,
					 .y = rig_floats(v->samples * v->channels, 124),
					 .type = v->type,
					 .last = v->odd,
					 .c = v->channels,
					 .steps = v->area,
					 .step = v->area / 2,
					 .n = v->samples * v->channels};

	RUN(pick_step, v, &a);
	for (size_t i = 0; i < a.n; i++)
		rig_expect(
			a.y, CUDA_FLOAT32, i,
			rig_at(x, v->type,
			       step_place(v, i / v->channels, i % v->channels, a.step, v->area)));
}

void test_pick_step_backward(const struct variant *v)
{
	const float *dy = rig_floats(v->samples * v->channels, 125);
	const struct cuda_pick_step_backward a = {.dy = dy,
						  .dx = rig_numbers_at(v->type, v->n, 126, 1),
						  .type = v->type,
						  .last = v->odd,
						  .c = v->channels,
						  .steps = v->area,
						  .step = v->area / 2,
						  .n = v->n};

	RUN(pick_step_backward, v, &a);
	for (size_t i = 0; i < v->n; i++) {
		const size_t t = i % v->area, row = i / v->area;
		const size_t at = step_place(v, row / v->channels, row % v->channels, t, v->area);

		rig_expect(a.dx, v->type, at, t == a.step ? (double)dy[row] : 0);
	}
}

/* ---- attention ---- */

/* Grouped keys, rotated and in place of channels last in the second way. */
static struct cuda_heads heads_of(const struct variant *v)
{
	struct cuda_heads a = {.from_type = v->type,
			       .last = v->odd,
			       .samples = v->samples > 3 ? 3 : v->samples,
			       .steps = v->area > 9 ? 9 : v->area,
			       .heads = v->odd ? 4 : 3,
			       .kv = v->odd ? 2 : 0,
			       .d = v->channels == 8   ? 8
				    : v->channels == 24 ? 16
							: 2 * (1 + v->channels % 5)};
	float *angles = rig_floats(a.steps * a.d, 127);

	a.n = a.samples * (a.heads + 2 * a.kv) * a.steps * a.d;
	for (size_t i = 0; i < a.steps * a.d / 2; i++) {
		angles[2 * i] = cosf((float)(i % 100) / 3);
		angles[2 * i + 1] = sinf((float)(i % 100) / 3);
	}
	a.angles = v->odd && v->area != 1 ? angles : NULL;
	return a;
}

/* Head h, of queries, keys, values in turn, step t, element k of sample s: where it lies in the
 * tensor, and in its heads. */
static size_t of_tensor(const struct cuda_heads *a, size_t s, size_t h, size_t t, size_t k)
{
	const size_t channels = (a->heads + 2 * a->kv) * a->d, c = h * a->d + k;

	return a->last ? (s * a->steps + t) * channels + c : (s * channels + c) * a->steps + t;
}

static size_t of_heads(const struct cuda_heads *a, size_t s, size_t h, size_t t, size_t k)
{
	const size_t n = h < a->heads ? a->heads : a->kv;
	size_t before = 0;

	if (h >= a->heads) {
		before = a->samples * a->heads;
		h -= a->heads;
	}
	if (n == a->kv && h >= a->kv) {
		before += a->samples * a->kv;
		h -= a->kv;
	}
	return ((before + s * n + h) * a->steps + t) * a->d + k;
}

static void test_heads(const struct variant *v, bool joins)
{
	struct cuda_heads a = heads_of(v);
	const double sign = joins ? -1 : 1;
	size_t (*const in)(const struct cuda_heads *, size_t, size_t, size_t, size_t) =
		joins ? of_heads : of_tensor;
	size_t (*const out)(const struct cuda_heads *, size_t, size_t, size_t, size_t) =
		joins ? of_tensor : of_heads;

	a.to_type = joins ? CUDA_FLOAT32 : v->type;
	a.from = rig_numbers_at(a.from_type, a.n, 128, a.d % 8 == 0 ? 0 : 1);
	a.to = rig_numbers_at(a.to_type, a.n, 129, a.d % 8 == 0 ? 0 : 3);
	if (joins)
		RUN_EIGHTS(join_heads, v, &a);
	else
		RUN_EIGHTS(split_heads, v, &a);
	for (size_t i = 0; i < a.n; i++) {
		const size_t k = i % a.d, t = i / a.d % a.steps, half = a.d / 2;
		const size_t h = i / a.d / a.steps % (a.heads + 2 * a.kv);
		const size_t s = i / a.d / a.steps / (a.heads + 2 * a.kv);
		const size_t other = k < half ? k + half : k - half;
		double x = rig_at(a.from, a.from_type, in(&a, s, h, t, k));

		if (a.angles && h < a.heads + a.kv) {
			const float *angle = a.angles + 2 * (t * half + k % half);

			x = x * (double)angle[0] +
			    (k < half ? -sign : sign) * (double)angle[1] *
				    rig_at(a.from, a.from_type, in(&a, s, h, t, other));
		}
		rig_expect(a.to, a.to_type, out(&a, s, h, t, k), x);
	}
}

void test_split_heads(const struct variant *v)
{
	test_heads(v, false);
}

void test_join_heads(const struct variant *v)
{
	test_heads(v, true);
}

/* Two heads of keys for four of queries, a block from the second head's last step on; the second
 * way: causal, all of a query's heads in one, dropout, results in place where types allow. */
static struct cuda_attend scores_of(const struct variant *v)
{
	/* 300: a second group for some lanes of a warp, 520: a third */
	const size_t steps = v->area == 183 ? 520 : v->area > 70 ? 300 : v->area;
	struct cuda_attend a = {.type = v->type,
				.causal = v->odd,
				.keys = steps,
				.rows = steps < 4 ? steps + 1 : 4,
				.first = steps - 1,
				.sample = 1,
				.steps = steps,
				.heads = 4,
				.kv = 2,
				.seed = 0x123456789abcu,
				.element = 5 << 24,
				.epoch = 3,
				.purpose = MU_RANDOM_TEST,
				.p = v->odd ? 0.25f : 0};

	a.n = 2 * a.kv * a.rows; /* of two samples */
	a.scores = rig_floats(a.n * a.keys, 130);
	a.grads = rig_floats(a.n * a.keys, 131);
	a.weights = v->odd && !v->type ? (void *)(uintptr_t)a.scores
				       : rig_numbers(v->type, a.n * a.keys, 132);
	a.slopes = v->odd && !v->type ? (void *)(uintptr_t)a.grads
				      : rig_numbers(v->type, a.n * a.keys, 133);
	return a;
}

static double keep_of(const struct cuda_attend *a, size_t row, size_t j)
{
	const size_t r = a->first + row % a->rows, batch = row / a->rows;
	const size_t head = batch % a->kv * 2 + r / a->steps;
	const struct mu_random key = {.seed = a->seed,
				      .purpose = a->purpose,
				      .epoch = a->epoch,
				      .sample = a->sample + batch / a->kv};
	const float drawn = mu_random_uniform(
		&key, a->element + (head * a->steps + r % a->steps) * a->steps + j);

	return a->p == 0 ? 1 : drawn < a->p ? 0 : 1 / 0.75;
}

static void test_scores(const struct variant *v, bool backward)
{
	const struct cuda_attend a = scores_of(v);
	const float *scores = rig_copy(a.scores, CUDA_FLOAT32, a.n * a.keys);
	const float *grads = rig_copy(a.grads, CUDA_FLOAT32, a.n * a.keys);

	if (backward)
		RUN_WARPS(attend_backward, v, &a);
	else
		RUN_WARPS(attend, v, &a);
	for (size_t row = 0; row < a.n; row++) {
		const size_t t = (a.first + row % a.rows) % a.steps;
		const size_t sees = a.causal ? t + 1 : a.steps, at = row * a.keys;
		double sum = 0, mean = 0;

		for (size_t j = 0; j < sees; j++)
			sum += exp((double)scores[at + j]);
		for (size_t j = 0; j < sees; j++)
			mean += exp((double)scores[at + j]) / sum * keep_of(&a, row, j) *
				(double)grads[at + j];
		for (size_t j = 0; j < a.keys; j++) {
			const double w = j < sees ? exp((double)scores[at + j]) / sum : 0;
			const double keep = keep_of(&a, row, j);

			rig_expect(a.weights, v->type, at + j, w * keep);
			if (backward)
				rig_expect(a.slopes, v->type, at + j,
					   w * (keep * (double)grads[at + j] - mean));
		}
	}
}

void test_attend(const struct variant *v)
{
	test_scores(v, false);
}

void test_attend_backward(const struct variant *v)
{
	test_scores(v, true);
}
