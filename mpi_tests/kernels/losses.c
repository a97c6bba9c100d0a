/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of kernels of losses by element and by region: see rig.h. */
#include "rig.h"

/* ---- by element ---- */

static double loss_of(int form, double delta, double x, double t)
{
	const double d = fabs(x - t);

	switch ((enum mu_element_form)form) {
	case MU_ELEMENT_SQUARED: return d * d;
	case MU_ELEMENT_ABSOLUTE: return d;
	case MU_ELEMENT_HUBER: return d < delta ? d * d / 2 : delta * d - delta * delta / 2;
	case MU_ELEMENT_LOGISTIC: return log(1 + exp(x)) - x * t;
	case MU_ELEMENT_N: break;
	}
	return (double)NAN;
}

static double output_of(int form, double x)
{
	return form == MU_ELEMENT_LOGISTIC ? 1 / (1 + exp(-x)) : x;
}

/* Samples of one part, or of several. */
void test_element_loss(const struct variant *v)
{
	const size_t each = v->channels * v->area * (v->odd ? 2 : 1);
	const size_t parts = (each + CUDA_LOSS_PART - 1) / CUDA_LOSS_PART;
	const size_t count = v->samples / 2 + 1, n = v->samples * each;
	const float *x = rig_floats(n, 80), *t = rig_floats(count * each, 81);
	float *y = rig_floats(n, 82);
	double *losses = rig_bytes(v->samples * parts * sizeof *losses, 0xee);

	for (int form = v->type; form < MU_ELEMENT_N; form += 3) {
		const struct cuda_element_loss a = {x,    t,     y,     losses, form,
						    0.5f, each, parts, count,  v->samples * parts};

		RUN_ROWS(element_loss, v, &a);
		for (size_t s = 0; s < v->samples; s++) {
			double is = 0, want = 0;

			for (size_t i = s * each; i < (s + 1) * each; i++) {
				rig_expect(y, CUDA_FLOAT32, i, output_of(form, (double)x[i]));
				want += s < count ? loss_of(form, 0.5, (double)x[i], (double)t[i])
						  : 0;
			}
			for (size_t k = 0; k < parts; k++)
				is += losses[s * parts + k];
			CHECK(fabs(is - want) <= 1e-9 * (1 + fabs(want)));
		}
	}
}

void test_element_loss_backward(const struct variant *v)
{
	const size_t counted = v->odd ? v->n / 2 : v->n;
	const float *x = rig_floats(v->n, 83), *t = rig_floats(v->n, 84);
	float *y = rig_floats(v->n, 85), *dx = rig_floats(v->n, 86);
	const double step = 1e-5;

	for (int form = 0; form < MU_ELEMENT_N; form++) {
		const struct cuda_element_loss_backward a = {y,    t,   dx,      form,
							     0.5f, 0.3, counted, v->n};

		for (size_t i = 0; i < v->n; i++)
			y[i] = (float)output_of(form, (double)x[i]);
		RUN(element_loss_backward, v, &a);
		for (size_t i = 0; i < v->n; i++) {
			const double at = (double)x[i], of = (double)t[i], d = fabs(at - of);
			const double slope = (loss_of(form, 0.5, at + step, of) -
					      loss_of(form, 0.5, at - step, of)) /
					     (2 * step);

			if (d > step && fabs(d - 0.5) > step) /* no kink */
				rig_near(dx, CUDA_FLOAT32, i, i < counted ? 0.3 * slope : 0, 20);
		}
	}
}

/* ---- by region: every third label is ignored with odd, and the last sample does not count ---- */

static struct cuda_targets targets_of(const struct variant *v)
{
	const size_t n = v->samples * v->area;
	float *labels = rig_floats(n, 87);

	for (size_t i = 0; i < n; i++)
		labels[i] = v->odd && i % 3 == 0 ? 255 : (float)(i * 7 / 3 % v->channels);
	return (struct cuda_targets){.labels = labels,
				     .classes = v->channels,
				     .area = v->area,
				     .count = v->samples > 1 ? v->samples - 1 : 1,
				     .use_ignore = v->odd,
				     .ignored = 255};
}

static int counts(const struct cuda_targets *t, size_t i)
{
	return i / t->area < t->count && t->labels[i] != 255;
}

static size_t place(const struct variant *v, size_t i, size_t k)
{
	return (i / v->area * v->channels + k) * v->area + i % v->area;
}

void test_region_softmax(const struct variant *v)
{
	const float *x = rig_floats(v->n, 88);
	float *p = rig_floats(v->n, 89);
	const size_t n = v->samples * v->area;
	const struct cuda_targets t = targets_of(v);
	struct mu_prediction *of = rig_bytes(n * sizeof *of, 0xee);
	const struct cuda_region_softmax a = {t, x, p, of, n};

	if (v->type != CUDA_FLOAT32)
		return;
	RUN(region_softmax, v, &a);
	for (size_t i = 0; i < n; i++) {
		const size_t label = counts(&t, i) ? (size_t)t.labels[i] : 0;
		double sum = 0;
		uint32_t before = 0;

		for (size_t k = 0; k < v->channels; k++)
			sum += exp((double)x[place(v, i, k)]);
		for (size_t k = 0; k < v->channels; k++) {
			const size_t at = place(v, i, k);

			rig_expect(p, CUDA_FLOAT32, at, exp((double)x[at]) / sum);
			before += p[at] > p[place(v, i, label)] ||
				  (k < label && p[at] == p[place(v, i, label)]);
		}
		CHECK(of[i].loss == 0);
		CHECK(of[i].place == (counts(&t, i) ? before : 0));
		CHECK(fabs((double)of[i].cross_entropy -
			   (counts(&t, i) ? log(sum) - (double)x[place(v, i, label)] : 0)) < 1e-5);
	}
}

/* Sums of class k of a sample over positions from .. end - 1. */
static struct cuda_region region_of(const struct variant *v, const struct cuda_targets *t,
				    const float *p, size_t plane, size_t from)
{
	const size_t sample = plane / v->channels;
	struct cuda_region r = {0, 0, 0};

	for (size_t i = from; i < v->area && i < from + CUDA_LOSS_PART; i++) {
		const size_t at = sample * v->area + i;
		const double one = (double)p[plane * v->area + i];
		const double own = counts(t, at) && (size_t)t->labels[at] == plane % v->channels;

		r.both += own * one;
		r.found += counts(t, at) ? one : 0;
		r.targets += own;
	}
	return r;
}

static int is_near(const struct cuda_region *a, const struct cuda_region *b)
{
	return fabs(a->both - b->both) < 1e-9 * (1 + fabs(b->both)) &&
	       fabs(a->found - b->found) < 1e-9 * (1 + fabs(b->found)) && a->targets == b->targets;
}

void test_region_sums(const struct variant *v)
{
	struct variant w = *v;
	const float *p;
	struct cuda_targets t;
	struct cuda_region_sums a;

	if (rig_is_long(v) || v->type != CUDA_FLOAT32)
		return;
	w.area = v->area > 3000 ? 2 * v->area : v->area; /* two parts */
	p = rig_floats(w.samples * w.channels * w.area, 90);
	t = targets_of(&w);
	a = (struct cuda_region_sums){.t = t,
				      .p = p,
				      .parts = (w.area + CUDA_LOSS_PART - 1) / CUDA_LOSS_PART};
	a.n = w.samples * w.channels * a.parts;
	a.of = rig_bytes(a.n * sizeof *a.of, 0xee);
	RUN_ROWS(region_sums, v, &a);
	for (size_t i = 0; i < a.n; i++) {
		const struct cuda_region want =
			region_of(&w, &t, p, i / a.parts, i % a.parts * CUDA_LOSS_PART);

		CHECK(is_near(&a.of[i], &want));
	}
}

void test_region_totals(const struct variant *v)
{
	const size_t parts = v->odd ? 1 : 5, n = v->samples * v->channels;
	struct cuda_region *of = rig_bytes(n * parts * sizeof *of, 0);
	struct cuda_region *totals = rig_bytes(n * sizeof *of, 0xee);
	const struct cuda_region_totals a = {of, totals, parts, n};

	for (size_t i = 0; i < n * parts; i++)
		of[i] = (struct cuda_region){(double)i, 0.5 * (double)i, (double)(i % 7)};
	RUN(region_totals, v, &a);
	for (size_t i = 0; i < n; i++) {
		struct cuda_region want = {0, 0, 0};

		for (size_t k = 0; k < parts; k++) {
			want.both += of[i * parts + k].both;
			want.found += of[i * parts + k].found;
			want.targets += of[i * parts + k].targets;
		}
		CHECK(is_near(&totals[i], &want));
	}
}

/* dx = scale p (g - sum of g p), g of each class from its totals. */
void test_region_backward(const struct variant *v)
{
	const float *p = rig_floats(v->n, 91);
	float *dx = rig_floats(v->n, 92);
	const struct cuda_targets t = targets_of(v);
	struct cuda_region *totals = rig_bytes(v->samples * v->channels * sizeof *totals, 0);
	const struct cuda_region_backward a = {t,   p,   dx, totals,
					       0.5, 3.0, v->samples * v->area};

	if (v->type != CUDA_FLOAT32)
		return;
	for (size_t i = 0; i < v->samples * v->channels; i++)
		totals[i] = (struct cuda_region){0.25 * (double)(i % 5), 1 + (double)(i % 3),
						 2 + (double)(i % 4)};
	RUN(region_backward, v, &a);
	for (size_t i = 0; i < a.n; i++) {
		double mean = 0;

		for (int round = 0; round < 2; round++)
			for (size_t k = 0; k < v->channels; k++) {
				const struct cuda_region *c =
					&totals[i / v->area * v->channels + k];
				const double own = counts(&t, i) && (size_t)t.labels[i] == k;
				const double below = c->found + c->targets + 0.5;
				const double g = ((2 * c->both + 0.5) / below - 2 * own) / below /
						 (double)v->channels;
				const size_t at = place(v, i, k);

				mean += round ? 0 : g * (double)p[at];
				if (round)
					rig_expect(dx, CUDA_FLOAT32, at,
						   counts(&t, i) ? 3 * (double)p[at] * (g - mean)
								 : 0);
			}
	}
}
