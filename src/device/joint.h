/* SPDX-License-Identifier: Apache-2.0 */
/*
 * joint: several losses as one operation, the last of a net. Input i is that of head i, a loss of
 * its own with a factor. The output is (n, outputs of all heads), head after head, and so are a
 * sample's targets, and its predictions.
 */
#ifndef DEVICE_JOINT_H
#define DEVICE_JOINT_H

#include "device/op.h"

struct mu_joint_head {
	const char *name;     /* "class" */
	enum mu_op_kind kind; /* SOFTMAX, ELEMENT_LOSS, REGION_LOSS */
	const void *attr;     /* of that kind */
	bool of_classes;      /* a target at each position; else one for each output */
	bool smooths;         /* struct mu_batch.label_smoothing is of its targets, too */
	double weight;        /* of its loss and gradient */
	bool use_ignore;
	float ignore_label;
	const float *class_weights;
	struct mu_shape shape;      /* of its input and output */
	const struct mu_loss *loss; /* its row; NULL in tests of operations */
};

/* The attributes. */
struct mu_joint {
	size_t n;
	struct mu_joint_head heads[MU_MAX_HEADS];
	const struct mu_loss *loss; /* the row of all together */
};

/* Where the numbers of a head begin among those of a sample, and how many there are. */
struct mu_joint_part {
	size_t output, outputs, target, targets, prediction, predictions;
};

/* Part i of n; i = n: an empty part after the last, which begins at the sums of all. */
struct mu_joint_part mu_joint_part(const struct mu_joint *joint, size_t i);
/* The batch as head i has it, but for labels, count and predictions. */
void mu_joint_batch(struct mu_batch *out, const struct mu_batch *batch,
		    const struct mu_joint_head *head);

#endif
