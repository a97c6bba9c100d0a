/* SPDX-License-Identifier: Apache-2.0 */
/* Random attributes, of which kernels get some wrong. */
#include "random_draw.h"

void draw_init(struct draw *d, uint64_t seed, uint64_t number)
{
	*d = (struct draw){
		.key = {.seed = seed, .purpose = MU_RANDOM_TEST, .sample = number & 0xffffffff}};
}

int draw_int(struct draw *d, int low, int high)
{
	return low + (int)mu_random_below(&d->key, d->next++, (uint64_t)(high - low + 1));
}

bool draw_chance(struct draw *d, int percent)
{
	return draw_int(d, 0, 99) < percent;
}

int draw_channels(struct draw *d, int most)
{
	static const int channels[] = {1,  2,  3,  4,  5,  7,  8,  15, 16, 16, 17,
				       20, 24, 31, 32, 32, 33, 40, 48, 64, 65, 80};
	int n = sizeof channels / sizeof *channels;

	while (channels[n - 1] > most)
		n--;
	return channels[draw_int(d, 0, n - 1)];
}

enum mu_activation_kind draw_activation(struct draw *d)
{
	return (enum mu_activation_kind)draw_int(d, MU_ACTIVATION_RELU, MU_ACTIVATION_SIGMOID);
}

struct mu_activation draw_smooth(struct draw *d)
{
	struct mu_activation a = {
		.kind = (enum mu_activation_kind)draw_int(d, MU_ACTIVATION_GELU,
							  MU_ACTIVATION_N - 1)};

	if (a.kind >= MU_ACTIVATION_LEAKY_RELU)
		a.parameter = 0.25f * (float)draw_int(d, 1, 8);
	return a;
}

/* ---- windows ---- */

static int axes_of(const struct mu_shape *in)
{
	return in->ndims - 2;
}

void draw_each(struct draw *d, int low, int high, const struct mu_shape *in, int *v)
{
	for (int i = 0; i < axes_of(in); i++)
		v[i] = i == 0 ? draw_int(d, low, high) : v[0];
	if (draw_chance(d, 40))
		for (int i = 1; i < axes_of(in); i++)
			v[i] = draw_int(d, low, high);
}

void draw_kernel(struct draw *d, int most, const struct mu_shape *in, int *kernel)
{
	const bool square = draw_chance(d, 50);

	for (int i = 0; i < axes_of(in); i++)
		if (square)
			kernel[i] = i == 0 ? 1 + 2 * draw_int(d, 0, most / 2) : kernel[0];
		else
			kernel[i] = draw_int(d, 1, most);
}

static int pooled(const struct mu_pooling *a, int i, int size)
{
	int stride = a->stride[i] ? a->stride[i] : 1, rest = size + 2 * a->pad[i] - a->kernel[i];

	if (a->global)
		return 1;
	return rest < 0 ? 0 : (rest + (a->ceil ? stride - 1 : 0)) / stride + 1;
}

struct mu_shape draw_pooled(const struct mu_pooling *a, const struct mu_shape *in)
{
	struct mu_shape out = *in;

	for (int i = 0; i < axes_of(in); i++)
		out.dims[2 + i] = (size_t)pooled(a, i, (int)in->dims[2 + i]);
	return out;
}

static bool fits(const struct mu_pooling *a, const struct mu_shape *in)
{
	for (int i = 0; i < axes_of(in) && !a->global; i++) {
		const int size = (int)in->dims[2 + i], out = pooled(a, i, size);
		const int stride = a->stride[i] ? a->stride[i] : 1;

		if (out <= 0 || a->pad[i] >= a->kernel[i] ||
		    (out - 1) * stride - a->pad[i] >= size)
			return false;
	}
	return true;
}

struct mu_pooling draw_pooling(struct draw *d, const struct mu_shape *in)
{
	struct mu_pooling a;

	do {
		a = (struct mu_pooling){.average = draw_chance(d, 50),
					.global = draw_chance(d, 10),
					.ceil = draw_chance(d, 40)};
		draw_kernel(d, axes_of(in) > 2 ? 4 : 5, in, a.kernel);
		draw_each(d, 0, 4, in, a.stride);
		if (draw_chance(d, 60))
			draw_each(d, 0, 4, in, a.pad);
	} while (!fits(&a, in));
	return a;
}

/* ---- sizes ---- */

struct mu_upsampling draw_upsampling(struct draw *d, const struct mu_shape *in)
{
	struct mu_upsampling a = {.linear = draw_chance(d, 60)};

	a.align_corners = a.linear && draw_chance(d, 40);
	draw_each(d, 0, 3, in, a.scale);
	for (int i = 0; i < axes_of(in); i++)
		a.size[i] = a.scale[i] == 0 ? draw_int(d, 0, 9) : 0;
	return a;
}

struct mu_shape draw_upsampled(const struct mu_upsampling *a, const struct mu_shape *in)
{
	struct mu_shape out = *in;

	for (int i = 0; i < axes_of(in); i++) {
		if (a->scale[i])
			out.dims[2 + i] *= (size_t)a->scale[i];
		if (a->size[i])
			out.dims[2 + i] = (size_t)a->size[i];
	}
	return out;
}

/* Something is left of the input. */
struct mu_pad draw_pad(struct draw *d, const struct mu_shape *in)
{
	struct mu_pad a = {.value = 0.5f * (float)draw_int(d, -1, 1)};

	for (int i = 0; i < axes_of(in); i++) {
		a.before[i] = draw_int(d, in->dims[2 + i] > 1 ? -1 : 0, 3);
		a.after[i] = draw_int(d, in->dims[2 + i] > 2 ? -1 : 0, 3);
	}
	return a;
}

struct mu_shape draw_padded(const struct mu_pad *a, const struct mu_shape *in)
{
	struct mu_shape out = *in;

	for (int i = 0; i < axes_of(in); i++)
		out.dims[2 + i] = (size_t)((int)in->dims[2 + i] + a->before[i] + a->after[i]);
	return out;
}

struct mu_shape draw_reshaped(struct draw *d, const struct mu_shape *in)
{
	size_t left = mu_shape_sample(in);
	struct mu_shape out = {draw_int(d, 4, MU_MAX_DIMS), {in->dims[0]}};

	for (int i = 1; i + 1 < out.ndims; i++) {
		out.dims[i] = 1;
		for (size_t prime = 2; prime <= 7; prime += 1 + prime % 2)
			while (left % prime == 0 && draw_chance(d, 40)) {
				left /= prime;
				out.dims[i] *= prime;
			}
	}
	out.dims[out.ndims - 1] = left;
	return out;
}

/* ---- norms and losses ---- */

/* Groups that divide the channels: one of them, all, or as many as there are twos. */
struct mu_group_norm draw_group_norm(struct draw *d, int channels)
{
	const int halves = channels % 2 == 0 ? channels / 2 : 1;
	const int groups[] = {0, 1, halves};

	return (struct mu_group_norm){.eps = 1e-2f, .groups = groups[draw_int(d, 0, 2)]};
}

struct mu_lrn draw_lrn(struct draw *d)
{
	return (struct mu_lrn){.size = 1 + 2 * draw_int(d, 0, 5),
			       .alpha = 0.125f * (float)draw_int(d, 1, 8),
			       .beta = 0.25f * (float)draw_int(d, 2, 4),
			       .k = (float)draw_int(d, 1, 2)};
}

struct mu_element_loss draw_element_loss(struct draw *d)
{
	struct mu_element_loss a = {
		.form = (enum mu_element_form)draw_int(d, 0, MU_ELEMENT_N - 1)};

	if (a.form == MU_ELEMENT_HUBER)
		a.delta = 0.25f * (float)draw_int(d, 1, 4);
	return a;
}
