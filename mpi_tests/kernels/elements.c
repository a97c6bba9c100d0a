/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of kernels that compute one element from a few: see rig.h. */
#include "rig.h"

static double value(int kind, double x)
{
	return kind == CUDA_RELU      ? rig_relu(x)
	       : kind == CUDA_TANH    ? tanh(x)
	       : kind == CUDA_SIGMOID ? 1 / (1 + exp(-x))
				      : x;
}

static double slope(int kind, double y)
{
	return kind == CUDA_RELU      ? (y > 0 ? 1 : 0)
	       : kind == CUDA_TANH    ? 1 - y * y
	       : kind == CUDA_SIGMOID ? y * (1 - y)
				      : 1;
}

void test_scale(const struct variant *v)
{
	uint32_t *found = rig_bytes(4, 0);
	float *x = rig_numbers(CUDA_FLOAT32, v->n, 1), *was = rig_copy(x, CUDA_FLOAT32, v->n);
	const struct cuda_scale a = {.x = x, .factor = 1.5f, .found = found, .n = v->n};

	if (v->odd)
		x[v->n / 2] = x[v->n - 1] = v->type ? INFINITY : NAN;
	RUN_EIGHTS(scale, v, &a);
	CHECK(*found == (uint32_t)v->odd);
	for (size_t i = 0; i < v->n; i++)
		if (!v->odd || (i != v->n / 2 && i != v->n - 1))
			rig_expect(x, CUDA_FLOAT32, i, 1.5 * (double)was[i]);
}

void test_convert(const struct variant *v)
{
	for (int to_type = 0; to_type < 3; to_type++)
		for (int last = 0; last < 4; last++) {
			const int from_last = last & 1, to_last = last >> 1;
			const size_t row = v->channels + (from_last && !to_last && v->odd ? 3 : 0);
			const void *from = rig_numbers_at(v->type, v->n / v->channels * row, 2, 1);
			void *to = rig_numbers_at(to_type, v->n, 3, 3);
			const void *was = rig_copy(to, to_type, v->n);
			const struct cuda_convert a = {from,        to,      v->type, to_type,
						       from_last,   to_last, v->odd,  row,
						       v->channels, v->area, v->n};

			RUN(convert, v, &a);
			for (size_t i = 0; i < v->n; i++) { /* plain order; where it lies */
				size_t c = i / v->area % v->channels, p = i % v->area;
				size_t s = i / v->area / v->channels;
				size_t position = s * v->area + p;
				size_t at = to_last ? position * v->channels + c : i;
				double x =
					rig_at(from, v->type, from_last ? position * row + c : i);

				rig_expect(to, to_type, at,
					   x + (v->odd ? rig_at(was, to_type, at) : 0));
			}
		}
}

/* Three arrays, the second one longer than a row. */
void test_lay_weights(const struct variant *v)
{
	const uint32_t filters[] = {3, 1 + 2 * CUDA_WEIGHTS_ROW / (uint32_t)(v->n / v->samples), 1};
	struct cuda_lay_weights a = {.n_of = 3, .type = v->type};
	const uint32_t c = (uint32_t)v->channels, area = (uint32_t)v->area;
	float *was[3];

	if (v->type == CUDA_FLOAT32)
		return;
	for (int k = 0; k < 3; k++) {
		const uint32_t n = filters[k] * c * area;

		a.of[k] = (struct cuda_weights){rig_floats(n, 50),
						rig_numbers(v->type, n, 51),
						n,
						c,
						area,
						(uint32_t)a.n,
						v->odd};
		was[k] = rig_copy(a.of[k].plain, CUDA_FLOAT32, n);
		a.n += (n + CUDA_WEIGHTS_ROW - 1) / CUDA_WEIGHTS_ROW;
	}
	for (a.back = 0; a.back < 2; a.back++) {
		RUN_ROWS(lay_weights, v, &a);
		for (int k = 0; k < 3; k++)
			for (uint32_t i = 0; i < a.of[k].n; i++) { /* plain order; where it lies */
				const uint32_t f = i / area / c, p = i % area;
				const uint32_t at = (f * area + p) * c + i / area % c;
				const double x = (double)was[k][i];

				if (a.back)
					rig_expect(a.of[k].plain, CUDA_FLOAT32, i,
						   rig_at(a.of[k].laid, v->type, at) +
							   (v->odd ? x : 0));
				else
					rig_expect(a.of[k].laid, v->type, at, x);
			}
	}
}

void test_unpack(const struct variant *v)
{
	unsigned char *from;
	struct cuda_unpack a = {.to_type = v->type,
				.to_last = v->odd,
				.channels = v->channels,
				.area = v->area,
				.mean = {100, 110.5f, 120},
				.std = {50, 60, 70.25f},
				.n = v->odd ? v->samples * v->area : v->n};

	if (v->channels > 3)
		return;
	a.from = from = (unsigned char *)rig_bytes(v->n + 1, 0) + 1;
	for (size_t i = 0; i < v->n; i++)
		from[i] = (unsigned char)(i * 37 + i / 256);
	a.to = rig_numbers(v->type, v->n, 4);
	RUN(unpack, v, &a);
	for (size_t i = 0; i < v->n; i++) {
		const size_t at = v->odd ? rig_plain(v, i) : i, c = at / v->area % v->channels;

		rig_expect(a.to, v->type, i, (from[at] - (double)a.mean[c]) / (double)a.std[c]);
	}
}

void test_copy_rows(const struct variant *v)
{
	const size_t rows = v->samples, row = v->channels * v->area;
	const size_t from_step = row + 3, to_step = row + (v->odd ? 5 : 0);
	const size_t n_to = (rows - 1) * to_step + row;
	const void *from = rig_numbers_at(v->type, (rows - 1) * from_step + row, 5, 1);
	void *to = rig_numbers_at(v->type, n_to, 6, (size_t)v->odd);
	const void *was = rig_copy(to, v->type, n_to);
	const struct cuda_copy_rows a = {from, to, v->type, row, from_step, to_step, v->n};

	RUN(copy_rows, v, &a);
	for (size_t i = 0; i < n_to; i++)
		rig_expect(to, v->type, i,
			   i % to_step < row
				   ? rig_at(from, v->type, i / to_step * from_step + i % to_step)
				   : rig_at(was, v->type, i));
}

void test_update(const struct variant *v)
{
	static const int kinds[] = {MU_ELEMENT_ADAM, MU_ELEMENT_MOMENTUM, MU_ELEMENT_KEEP,
				    MU_ELEMENT_SGD, MU_ELEMENT_CENTERED};
	const size_t runs = (v->n + MU_ELEMENT_RUN - 1) / MU_ELEMENT_RUN;
	unsigned char *classes = rig_bytes(runs, 0);
	struct cuda_update a = {.n = v->n, .classes = classes};
	float *was[4];

	for (size_t r = 0; r < runs; r++)
		classes[r] = (unsigned char)(r % 5);
	for (int k = 0; k < 5; k++)
		a.of[k] = (struct mu_element){kinds[k], 0.5f, 1,    0.1f, 0.01f,
					      0.9f,     1,    0.8f, 0.9f, 1e-3f};
	a.weights = rig_floats(v->n, 7);
	a.gradients = rig_floats(v->n, 8);
	for (unsigned s = 0; s < 3; s++) {
		a.states[s] = rig_floats(v->n, 9 + s);
		for (size_t i = 0; i < v->n; i++)
			a.states[s][i] = s == 1 ? a.states[s][i] / 8 : 4 + a.states[s][i];
	}
	for (int k = 0; k < 4; k++)
		was[k] = rig_copy(k < 3 ? a.states[k] : a.weights, CUDA_FLOAT32, v->n);
	for (size_t i = 0; i < v->n; i++)
		if (was[1][i] < 0)
			was[1][i] = a.states[1][i] = -was[1][i];
	RUN(update, v, &a);
	for (size_t i = 0; i < v->n; i++) {
		float *const states[] = {was[0], was[1], was[2]};

		mu_element_update(&a.of[classes[i / MU_ELEMENT_RUN]], a.gradients[i], &was[3][i],
				  states, i);
		rig_expect(a.weights, CUDA_FLOAT32, i, (double)was[3][i]);
		for (int s = 0; s < 3; s++)
			rig_expect(a.states[s], CUDA_FLOAT32, i, (double)was[s][i]);
	}
}

/* ---- eight elements at a time: arrays are aligned ---- */

void test_activate(const struct variant *v)
{
	for (int kind = CUDA_LINEAR; kind <= CUDA_SIGMOID; kind++) {
		const void *x = rig_numbers(v->type, v->n, 12);
		void *y = v->odd ? rig_copy(x, v->type, v->n) : rig_numbers(v->type, v->n, 13);
		const struct cuda_activate a = {v->odd ? y : x, y, v->type, kind, v->n};

		RUN_EIGHTS(activate, v, &a);
		for (size_t i = 0; i < v->n; i++)
			rig_expect(y, v->type, i, value(kind, rig_at(x, v->type, i)));
	}
}

void test_activate_backward(const struct variant *v)
{
	for (int kind = CUDA_LINEAR; kind <= CUDA_SIGMOID; kind++) {
		const void *y = rig_numbers(v->type, v->n, 14),
			   *dy = rig_numbers(v->type, v->n, 15);
		void *dx = v->odd ? rig_copy(dy, v->type, v->n) : rig_numbers(v->type, v->n, 16);
		const struct cuda_activate_backward a = {y,   v->odd ? dx : dy, dx, v->type, kind,
							 v->n};

		RUN_EIGHTS(activate_backward, v, &a);
		for (size_t i = 0; i < v->n; i++)
			rig_expect(dx, v->type, i,
				   rig_at(dy, v->type, i) * slope(kind, rig_at(y, v->type, i)));
	}
}

void test_add_bias(const struct variant *v)
{
	const size_t channels = v->channels, area = v->area;
	void *y = rig_numbers(v->type, v->n, 17);
	const void *was = rig_copy(y, v->type, v->n);
	const float *bias = rig_floats(channels, 18);
	const struct cuda_add_bias a = {y,       v->odd ? NULL : bias,           area, channels,
					v->type, v->odd ? CUDA_TANH : CUDA_RELU, v->n};

	RUN_EIGHTS(add_bias, v, &a);
	for (size_t i = 0; i < v->n; i++)
		rig_expect(y, v->type, i,
			   value(a.kind, rig_at(was, v->type, i) +
						 (a.bias ? (double)bias[i / area % channels] : 0)));
}

void test_add(const struct variant *v)
{
	struct cuda_add a = {.n_x = v->odd ? 1 : 5, .type = v->type, .kind = CUDA_RELU, .n = v->n};
	double sum;

	for (int x = 0; x < a.n_x; x++)
		a.x[x] = rig_numbers(v->type, v->n, 20 + (unsigned)x);
	for (int of = 0; of < 2; of++) {
		a.of = of ? rig_numbers(v->type, v->n, 19) : NULL;
		a.y = rig_numbers(v->type, v->n, 25);
		RUN_EIGHTS(add, v, &a);
		for (size_t i = 0; i < v->n; i++) {
			sum = 0;
			for (int x = 0; x < a.n_x; x++)
				sum += rig_at(a.x[x], v->type, i);
			rig_near(a.y, v->type, i,
				 of ? sum * slope(CUDA_RELU, rig_at(a.of, v->type, i))
				    : value(CUDA_RELU, sum),
				 8);
		}
	}
}

void test_multiply(const struct variant *v)
{
	const void *x = rig_numbers(v->type, v->n, 26);
	const float *factor = rig_floats(v->n, 27);
	void *y = v->odd ? rig_copy(x, v->type, v->n) : rig_numbers(v->type, v->n, 28);
	const struct cuda_multiply a = {v->odd ? y : x, factor, y, v->type, v->n};

	RUN_EIGHTS(multiply, v, &a);
	for (size_t i = 0; i < v->n; i++)
		rig_expect(y, v->type, i, rig_at(x, v->type, i) * (double)factor[i]);
}

/* in the second way over its first factor */
void test_product_of(const struct variant *v)
{
	const void *a = rig_numbers(v->type, v->n, 60), *b = rig_numbers(v->type, v->n, 61);
	void *y = v->odd ? rig_copy(a, v->type, v->n) : rig_numbers(v->type, v->n, 62);
	const struct cuda_product_of args = {
		.a = v->odd ? y : a, .b = b, .y = y, .type = v->type, .n = v->n};

	RUN_EIGHTS(product_of, v, &args);
	for (size_t i = 0; i < v->n; i++)
		rig_expect(y, v->type, i, rig_at(a, v->type, i) * rig_at(b, v->type, i));
}

/* in the second way one gradient alone, over dy */
void test_product_of_backward(const struct variant *v)
{
	const void *a = rig_numbers(v->type, v->n, 63), *b = rig_numbers(v->type, v->n, 64);
	const void *dy = rig_numbers(v->type, v->n, 65);
	void *da = rig_numbers(v->type, v->n, 66), *db = rig_numbers(v->type, v->n, 67);
	void *over = rig_copy(dy, v->type, v->n);
	const struct cuda_product_of_backward args = {.a = a,
						      .b = b,
						      .dy = v->odd ? over : dy,
						      .da = v->odd ? NULL : da,
						      .db = v->odd ? over : db,
						      .type = v->type,
						      .n = v->n};

	RUN_EIGHTS(product_of_backward, v, &args);
	for (size_t i = 0; i < v->n; i++) {
		const double g = rig_at(dy, v->type, i);

		rig_expect(args.db, v->type, i, g * rig_at(a, v->type, i));
		if (!v->odd)
			rig_expect(da, v->type, i, g * rig_at(b, v->type, i));
	}
}

/* ---- smooth activations ---- */

static const double root_2_pi = 0.79788456080286535588; /* sqrt(2 / pi) */

enum { LAST = CUDA_SCALED_TANH };
static const float parameter = 0.75f;

static double smooth(int kind, double x)
{
	const double p = (double)parameter;

	switch (kind) {
	case CUDA_GELU: return x / 2 * (1 + erf(x / sqrt(2)));
	case CUDA_GELU_TANH:
		return x / 2 * (1 + tanh(root_2_pi * (x + 0.044715 * x * x * x)));
	case CUDA_LEAKY_RELU: return x > 0 ? x : p * x;
	case CUDA_ELU: return x > 0 ? x : p * (exp(x) - 1);
	case CUDA_SOFTPLUS: return log(1 + exp(p * x)) / p;
	case CUDA_SCALED_TANH: return p * tanh(x);
	default: return x / (1 + exp(-x));
	}
}

void test_smooth(const struct variant *v)
{
	for (int kind = CUDA_GELU; kind <= LAST; kind++) {
		const void *x = rig_numbers(v->type, v->n, 100);
		void *y = v->odd ? rig_copy(x, v->type, v->n) : rig_numbers(v->type, v->n, 101);
		const struct cuda_smooth a = {
			.x = v->odd ? y : x, .y = y, .type = v->type, .kind = kind,
			.parameter = parameter, .n = v->n};

		RUN_EIGHTS(smooth, v, &a);
		for (size_t i = 0; i < v->n; i++)
			rig_expect(y, v->type, i, smooth(kind, rig_at(x, v->type, i)));
	}
}

/* Slopes by differences. */
void test_smooth_backward(const struct variant *v)
{
	const double step = 1e-5;

	for (int kind = CUDA_GELU; kind <= LAST; kind++) {
		const void *x = rig_numbers(v->type, v->n, 102);
		const void *dy = rig_numbers(v->type, v->n, 103);
		void *dx = v->odd ? rig_copy(dy, v->type, v->n) : rig_numbers(v->type, v->n, 104);
		const struct cuda_smooth_backward a = {.x = x,
						       .dy = v->odd ? dx : dy,
						       .y = dx,
						       .type = v->type,
						       .kind = kind,
						       .parameter = parameter,
						       .n = v->n};

		RUN_EIGHTS(smooth_backward, v, &a);
		for (size_t i = 0; i < v->n; i++) {
			const double at = rig_at(x, v->type, i);
			const double slope =
				(smooth(kind, at + step) - smooth(kind, at - step)) / (2 * step);

			if (fabs(at) > step) /* no kink */
				rig_expect(dx, v->type, i, rig_at(dy, v->type, i) * slope);
		}
	}
}
