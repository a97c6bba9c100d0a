/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of a plan whose device has its own memory, with labels and the random keys of
 * dropout: one block of host memory that is copied to the device concurrently with its work, so
 * that a batch can arrive while the device computes the one before. Only forward reads the block,
 * and the caller knows when forward has ended: so the block may be written while the device runs
 * backward.
 */
#include "plan.h"

#include <string.h>

#include <muster/base.h>

static const struct mu_tensor *input_of(const struct mu_plan *plan)
{
	return &plan->tensors[0];
}

size_t mu_plan_targets(const struct mu_plan *plan)
{
	const struct mu_op *last = &plan->ops[plan->n_ops - 1];

	return mu_plan_has_end(plan)
		       ? mu_loss_targets(mu_op_loss(last), &last->outputs[0]->shape)
		       : 0;
}

/* Both kinds of samples lie next to draws and labels, so that one copy is enough. */
enum mu_status mu_plan_feed_open(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;
	struct plan_feed *f = &plan->feed;
	const size_t n = mu_shape_n(&input_of(plan)->shape);

	if (!memory_of(plan) || f->memory.host)
		goto out;
	if (mu_plan_reads(plan, input_of(plan)))
		f->draws_at = mu_pad(n / sizeof(float) + 1) * sizeof(float);
	f->labels_at = f->draws_at + mu_pad(1 + plan->batch_size) * sizeof(uint32_t);
	f->samples_at = f->labels_at +
			mu_pad(plan->batch_size * mu_plan_targets(plan)) * sizeof(float);
	f->nbytes = f->samples_at;
	if (mu_plan_reads(plan, input_of(plan)))
		f->nbytes += n * sizeof(float);
	MU_TRY(memory_of(plan)->feed_open(plan->device, &f->memory, f->nbytes, "samples"));
out:
	return st;
}

void mu_plan_feed_close(struct mu_plan *plan)
{
	if (memory_of(plan))
		memory_of(plan)->feed_close(plan->device, &plan->feed.memory);
}

static void *in_host(const struct plan_feed *f, size_t at)
{
	return (char *)f->memory.host + at;
}

float *mu_plan_input(struct mu_plan *plan)
{
	const struct plan_feed *f = &plan->feed;

	if (!f->memory.host)
		return input_of(plan)->data;
	return f->nbytes > f->samples_at ? in_host(f, f->samples_at) : NULL;
}

uint8_t *mu_plan_input_bytes(struct mu_plan *plan)
{
	const struct plan_feed *f = &plan->feed;
	const struct mu_shape *shape = &input_of(plan)->shape;
	const bool few = shape->ndims == 4 && mu_shape_channels(shape) <= 3;

	return f->memory.host && f->draws_at > 0 && few ? f->memory.host : NULL;
}

enum mu_status mu_plan_send(struct mu_plan *plan, const struct mu_batch *batch,
			    const struct mu_pixels *pixels)
{
	enum mu_status st = MU_OK;
	struct plan_feed *f = &plan->feed;
	const size_t labels = batch->count * mu_plan_targets(plan);
	uint32_t *draws;

	if (!f->memory.host)
		goto out;
	draws = in_host(f, f->draws_at);
	draws[0] = batch->epoch;
	for (size_t i = 0; i < batch->count; i++)
		draws[1 + i] = batch->ids ? batch->ids[i] : (uint32_t)i;
	if (labels > 0)
		memcpy(in_host(f, f->labels_at), batch->labels, labels * sizeof(float));
	f->as_bytes = pixels != NULL;
	if (pixels)
		f->pixels = *pixels;
	MU_TRY(memory_of(plan)->feed_send(plan->device, &f->memory, pixels ? 0 : f->draws_at,
					  pixels ? f->samples_at : f->nbytes));
	f->sent = true;
out:
	return st;
}

bool mu_plan_is_sent(const struct mu_plan *plan)
{
	return plan->feed.sent;
}

enum mu_status mu_plan_feed_begin(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;
	struct plan_feed *f = &plan->feed;
	const char *data = f->memory.data;

	if (!memory_of(plan))
		goto out;
	if (!f->sent)
		MU_TRY(mu_plan_send(plan, &plan->batch, f->as_bytes ? &f->pixels : NULL));
	f->sent = false;
	MU_TRY(memory_of(plan)->feed_take(plan->device, &f->memory));
	plan->batch.device_draws = (const uint32_t *)(data + f->draws_at);
	plan->batch.device_labels = (const float *)(data + f->labels_at);
	if (f->nbytes > f->samples_at)
		MU_TRY(memory_of(plan)->lay(plan->device, input_of(plan),
					    data + (f->as_bytes ? 0 : f->samples_at),
					    f->as_bytes ? &f->pixels : NULL));
out:
	return st;
}
