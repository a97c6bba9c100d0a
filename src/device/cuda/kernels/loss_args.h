/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the kernels of losses: see args.h. */
#ifndef DEVICE_CUDA_KERNELS_LOSS_ARGS_H
#define DEVICE_CUDA_KERNELS_LOSS_ARGS_H

#include <stddef.h>
#include <stdint.h>

#include <muster/device.h>

/* ---- softmax cross-entropy: (samples, classes, area) ---- */

struct cuda_targets {
	const float *labels; /* of n predictions */
	size_t classes, area, count;
	int use_ignore;
	float ignored, smoothing;
	const float *weights; /* of the classes; NULL: 1 */
	float mean_weight;    /* of all classes */
};

/* y: the probabilities p. 16-bit numbers are rows, (n, row), row a multiple of eight, and y may be
 * x: what follows the classes becomes 0, and with a scale y is the gradient of x, (p - target)
 * scale. */
struct cuda_softmax {
	struct cuda_targets t;
	const void *x;
	void *y;
	struct mu_prediction *predictions; /* n */
	int type;
	size_t row;
	float scale; /* of the loss, or 0 */
	size_t n;    /* predictions */
};
#define cuda_softmax_halves cuda_softmax

struct cuda_softmax_backward {
	struct cuda_targets t;
	const float *p;
	float *dx;
	float scale; /* of the loss */
	size_t n;    /* of dx */
};

/* ---- by element: plain float32, sums are double ---- */

/* y, and the sum of the losses of each part, CUDA_LOSS_PART elements, of a sample of `each`. */
enum { CUDA_LOSS_PART = 4096 };
struct cuda_element_loss {
	const float *x, *labels;
	float *y;
	double *losses; /* (samples, parts) */
	int form;       /* enum mu_element_form */
	float delta;
	size_t each, parts, count; /* count: samples that do */
	size_t n;                  /* samples times parts */
};

struct cuda_element_loss_backward {
	const float *y, *labels;
	float *dx;
	int form;
	float delta;
	double scale;   /* of the loss, over `each` */
	size_t counted; /* elements that count */
	size_t n;       /* of dx */
};

/* ---- by region: (samples, classes, area), likewise ---- */

/* p: the probabilities. */
struct cuda_region_softmax {
	struct cuda_targets t;
	const float *x;
	float *p;
	struct mu_prediction *predictions; /* n */
	size_t n;                          /* positions of all samples */
};

/* Of a class of a sample, or of a part of its positions: sums of p t, p and t. */
struct cuda_region {
	double both, found, targets;
};

/* Parts are CUDA_LOSS_PART neighbouring positions. */
struct cuda_region_sums {
	struct cuda_targets t;
	const float *p;
	struct cuda_region *of; /* (samples, classes, parts) */
	size_t parts;
	size_t n; /* of `of` */
};

struct cuda_region_totals {
	const struct cuda_region *of; /* (n, parts) */
	struct cuda_region *totals;   /* n */
	size_t parts;
	size_t n; /* samples times classes */
};

struct cuda_region_backward {
	struct cuda_targets t;
	const float *p;
	float *dx;
	const struct cuda_region *totals; /* (samples, classes) */
	double smooth, scale;             /* scale: of the loss */
	size_t n;                         /* positions of all samples */
};

#endif
