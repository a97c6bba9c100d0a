/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update: the update of one element by each rule, in plain C for the compilers of the host and of
 * GPUs: one source for both. Formulas and their sources are in the file of each rule (src/optim).
 * This header includes nothing else, because GPU compilers read it.
 *
 * g is the element's gradient, w its weight, the others its states. All are floats. Zero (padding)
 * stays zero.
 */
#ifndef MUSTER_UPDATE_H
#define MUSTER_UPDATE_H

#include <math.h>
#include <stddef.h>

#ifdef __CUDACC__
#define MU_ELEMENT static __device__ inline
#else
#define MU_ELEMENT static inline __attribute__((always_inline))
#endif

/* Length of a run: consecutive elements with one struct mu_element. */
#define MU_ELEMENT_RUN 16
/* Largest number of different ones. */
#define MU_ELEMENT_CLASSES 64

enum mu_element_kind {
	MU_ELEMENT_KEEP, /* no update */
	MU_ELEMENT_SGD,
	MU_ELEMENT_MOMENTUM,
	MU_ELEMENT_NAG,
	MU_ELEMENT_ADAM,
	MU_ELEMENT_ADAGRAD,
	MU_ELEMENT_ADADELTA,
	MU_ELEMENT_RMSPROP,
	MU_ELEMENT_CENTERED, /* rmsprop with the variance */
	MU_ELEMENT_FTRL,
	MU_ELEMENT_SIGN,
	MU_ELEMENT_SIGNUM, /* with momentum */
	MU_ELEMENT_AVERAGE,
	MU_ELEMENT_ADD,
	MU_ELEMENT_COPY
};

/* Constants of one update of some elements. Members that a kind does not use are 0. */
struct mu_element {
	int kind;
	float rescale, limit; /* g' = rescale g; clipped to +-limit */
	float lr, wd, mom;
	float keep; /* adam: factor of the weight */
	float a, b; /* decay rates of states, and other settings of a rule */
	float eps;
};

/* MXNet clips the rescaled gradient to +-clip_gradient; without clipping the limit is infinite. */
MU_ELEMENT float mu_clip(float g, float limit)
{
	return g > limit ? limit : g < -limit ? -limit : g;
}

/* -1, 0 or 1. */
MU_ELEMENT float mu_sign(float x)
{
	return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f;
}

MU_ELEMENT void mu_element_sgd(const struct mu_element *u, float g, float *w)
{
	const float keep = 1.0f - u->lr * u->wd;

	*w = keep * *w - u->lr * mu_clip(u->rescale * g, u->limit);
}

MU_ELEMENT void mu_element_momentum(const struct mu_element *u, float g, float *w, float *m)
{
	const float decay = u->lr * u->wd;

	*m = u->mom * *m - decay * *w - u->lr * mu_clip(u->rescale * g, u->limit);
	*w += *m;
}

MU_ELEMENT void mu_element_nag(const struct mu_element *u, float g, float *w, float *m)
{
	const float c = mu_clip(u->rescale * g, u->limit);
	const float d = u->lr * (c + u->wd * *w);

	*w += u->mom * (u->mom * *m - d) - d;
	*m = u->mom * *m - u->lr * (c + u->wd * *w);
}

/* lr: lr_t; a, b: beta1, beta2; wd is added to the gradient, keep multiplies the weight. */
MU_ELEMENT void mu_element_adam(const struct mu_element *u, float g, float *w, float *m, float *v)
{
	const float rest1 = 1.0f - u->a, rest2 = 1.0f - u->b;
	const float c = mu_clip(u->rescale * g + u->wd * *w, u->limit);

	*m = u->a * *m + rest1 * c;
	*v = u->b * *v + rest2 * c * c;
	*w = u->keep * *w - u->lr * *m / (sqrtf(*v) + u->eps);
}

MU_ELEMENT void mu_element_adagrad(const struct mu_element *u, float g, float *w, float *h)
{
	const float c = mu_clip(u->rescale * g, u->limit);

	*h += c * c;
	*w -= u->lr * (c / sqrtf(*h + u->eps) + u->wd * *w);
}

/* a: rho; *s, *d: squares of gradients and of steps */
MU_ELEMENT void mu_element_adadelta(const struct mu_element *u, float g, float *w, float *s,
				    float *d)
{
	const float rest = 1.0f - u->a, c = mu_clip(u->rescale * g, u->limit);
	float step;

	*s = u->a * *s + rest * c * c;
	step = sqrtf(*d + u->eps) / sqrtf(*s + u->eps) * c;
	*d = u->a * *d + rest * step * step;
	*w -= step + u->wd * *w;
}

/* a: gamma1 */
MU_ELEMENT void mu_element_rmsprop(const struct mu_element *u, float g, float *w, float *s)
{
	const float rest = 1.0f - u->a;
	const float c = mu_clip(u->rescale * g + u->wd * *w, u->limit);

	*s = u->a * *s + rest * c * c;
	*w -= u->lr * c / sqrtf(*s + u->eps);
}

/* a, b: gamma1, gamma2 */
MU_ELEMENT void mu_element_centered(const struct mu_element *u, float g, float *w, float *s,
				    float *m, float *d)
{
	const float rest = 1.0f - u->a;
	const float c = mu_clip(u->rescale * g + u->wd * *w, u->limit);
	float variance;

	*s = u->a * *s + rest * c * c;
	*m = u->a * *m + rest * c;
	variance = *s - *m * *m;
	*d = u->b * *d - u->lr * c / sqrtf((variance > 0 ? variance : 0) + u->eps);
	*w += *d;
}

/* a, b: lamda1, beta; lr is not 0 */
MU_ELEMENT void mu_element_ftrl(const struct mu_element *u, float g, float *w, float *z, float *n)
{
	const float per_rate = 1.0f / u->lr, c = mu_clip(u->rescale * g, u->limit);
	const float more = *n + c * c;
	float next;

	*z += c - (sqrtf(more) - sqrtf(*n)) * *w * per_rate;
	*n = more;
	next = (mu_sign(*z) * u->a - *z) / ((u->b + sqrtf(more)) * per_rate + u->wd);
	*w = fabsf(*z) > u->a ? next : 0.0f;
}

/* a: wd_lh */
MU_ELEMENT void mu_element_sign(const struct mu_element *u, float g, float *w)
{
	const float keep = 1.0f - u->lr * (u->wd + u->a);

	*w = keep * *w - u->lr * mu_sign(g);
}

MU_ELEMENT void mu_element_signum(const struct mu_element *u, float g, float *w, float *m)
{
	const float keep = 1.0f - u->lr * u->a, rest = 1.0f - u->mom;

	*m = u->mom * *m - rest * (u->wd * *w + mu_clip(u->rescale * g, u->limit));
	*w = keep * *w + u->lr * mu_sign(*m);
}

MU_ELEMENT void mu_element_average(const struct mu_element *u, float g, float *w)
{
	const float fresh = (1.0f - u->mom) * u->rescale;

	*w = u->mom * *w + fresh * g;
}

MU_ELEMENT void mu_element_add(const struct mu_element *u, float g, float *w)
{
	*w += u->rescale * g;
}

/* Update by any kind. States that the kind does not have are not read, and may be NULL. */
MU_ELEMENT void mu_element_update(const struct mu_element *u, float g, float *w,
				  float *const *states, size_t i)
{
	switch (u->kind) {
	case MU_ELEMENT_SGD: mu_element_sgd(u, g, w); break;
	case MU_ELEMENT_MOMENTUM: mu_element_momentum(u, g, w, &states[0][i]); break;
	case MU_ELEMENT_NAG: mu_element_nag(u, g, w, &states[0][i]); break;
	case MU_ELEMENT_ADAM: mu_element_adam(u, g, w, &states[0][i], &states[1][i]); break;
	case MU_ELEMENT_ADAGRAD: mu_element_adagrad(u, g, w, &states[0][i]); break;
	case MU_ELEMENT_ADADELTA: mu_element_adadelta(u, g, w, &states[0][i], &states[1][i]); break;
	case MU_ELEMENT_RMSPROP: mu_element_rmsprop(u, g, w, &states[0][i]); break;
	case MU_ELEMENT_CENTERED:
		mu_element_centered(u, g, w, &states[0][i], &states[1][i], &states[2][i]);
		break;
	case MU_ELEMENT_FTRL: mu_element_ftrl(u, g, w, &states[0][i], &states[1][i]); break;
	case MU_ELEMENT_SIGN: mu_element_sign(u, g, w); break;
	case MU_ELEMENT_SIGNUM: mu_element_signum(u, g, w, &states[0][i]); break;
	case MU_ELEMENT_AVERAGE: mu_element_average(u, g, w); break;
	case MU_ELEMENT_ADD: mu_element_add(u, g, w); break;
	case MU_ELEMENT_COPY: *w = g; break;
	default: break;
	}
}

#endif
