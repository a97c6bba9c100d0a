/* SPDX-License-Identifier: Apache-2.0 */
/* Two steps and an inference of a random network: on one device, whole or in parts. */
#ifndef MUSTER_RANDOM_TRAIN_H
#define MUSTER_RANDOM_TRAIN_H

#include "random_net.h"

struct random_job {
	struct mu_net_config net;
	size_t batch, count;
	float smoothing; /* of labels, if the loss smooths them */
	uint64_t seed;   /* of weights and data */
};

enum { RANDOM_PARTS = 3 };

/* A network on one device: what its last step found, in plain order. */
struct trained {
	struct mu_net *net;
	struct mu_plan *plan, *infer;
	struct mu_plan *parts[RANDOM_PARTS]; /* of `plan`; n_parts 0: whole */
	size_t n_parts;
	float *weights, *gradients, *plain;
	size_t n_plain, n_outputs, n_targets;
	float *outputs[2], *labels; /* outputs: training, inference */
	uint32_t *ids;
	double loss[2];
};

/* seed_of_cuts: cut into parts at layers that it chooses; 0: whole. *t must be freed also after an
 * error. */
enum mu_status trained_run(struct trained *t, const struct random_job *job,
			   struct mu_device *device, uint64_t seed_of_cuts);
void trained_free(struct trained *t);

/* Largest difference by the largest size of `should`, or by `least` where that is larger. */
double random_distance(const float *is, const float *should, size_t n, double least);
/* Of losses, outputs and gradients. */
double trained_distance(const struct trained *t, const struct trained *ref);
/* Compares every bit of them, in training: what differs, of gradients the last; NULL: nothing. */
const char *trained_differs(const struct trained *a, const struct trained *b);

#endif
