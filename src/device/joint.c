/* SPDX-License-Identifier: Apache-2.0 */
/* Which numbers of a sample belong to which of several losses. See joint.h. */
#include "device/joint.h"

struct mu_joint_part mu_joint_part(const struct mu_joint *joint, size_t i)
{
	struct mu_joint_part p = {0};

	for (size_t k = 0; k <= i; k++) {
		p.output += p.outputs;
		p.target += p.targets;
		p.prediction += p.predictions;
		if (k < joint->n) {
			const struct mu_joint_head *h = &joint->heads[k];
			const size_t positions = mu_shape_positions(&h->shape);

			p.outputs = mu_shape_sample(&h->shape);
			p.targets = h->of_classes ? positions : p.outputs;
			p.predictions = h->of_classes ? positions : 1;
		} else {
			p.outputs = p.targets = p.predictions = 0;
		}
	}
	return p;
}

void mu_joint_batch(struct mu_batch *out, const struct mu_batch *batch,
		    const struct mu_joint_head *head)
{
	*out = *batch;
	out->use_ignore = head->use_ignore;
	out->ignore_label = head->ignore_label;
	out->class_weights = head->class_weights;
	if (!head->smooths)
		out->label_smoothing = 0;
	out->device_labels = NULL;
}
