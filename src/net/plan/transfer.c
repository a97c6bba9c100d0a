/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of a device with its own memory (struct mu_device_memory). The host's flat arrays, which
 * the store updates, are authoritative; the device has a mirror of each. Forward of a layer first
 * copies its weights to the device, if they may have changed since this plan's last copy. After
 * backward of a layer its gradients are copied back, while the device continues. Plans of one
 * device with the same flat arrays share the mirrors.
 *
 * Uploads of weights need no wait: a key is updated after its gradient has arrived, and that copy
 * came after all earlier work of the device, the upload of the weights included.
 */
#include "plan.h"

#include <stdlib.h>

#include <muster/base.h>

void mu_plan_set_resident(struct mu_plan *plan)
{
	plan->flat.resident = true;
}

void mu_plan_set_upload(struct mu_plan *plan, bool brings)
{
	plan->flat.has_weights = !brings;
}

void mu_plan_set_versions(struct mu_plan *plan, const uint64_t *versions)
{
	plan->flat.versions = versions;
}

enum mu_status mu_plan_alloc(struct mu_plan *plan, void **out, size_t nbytes, const char *what)
{
	return memory_of(plan) ? memory_of(plan)->alloc(plan->device, out, nbytes, what)
			       : mu_alloc(out, nbytes, what);
}

void mu_plan_release(struct mu_plan *plan, void *memory)
{
	if (memory_of(plan))
		memory_of(plan)->free(plan->device, memory);
	else
		mu_free(memory);
}

enum mu_status mu_plan_alloc_words(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;
	void *overflow = NULL;

	if (!memory_of(plan) || plan->scale.word)
		goto out;
	MU_TRY(memory_of(plan)->alloc(plan->device, &overflow, sizeof *plan->scale.word,
				      "a word for overflows"));
	plan->scale.word = overflow;
	MU_TRY(MU_ALLOC(plan->backward.marks, plan->n_ops, "marks of layers"));
out:
	return st;
}

void mu_plan_free_memory(struct mu_plan *plan)
{
	const struct mu_device_memory *memory = memory_of(plan);

	for (size_t i = 0; memory && i < PLAN_MIRRORS; i++)
		memory->unmirror(plan->device, plan->flat.mirrors[i].device);
	mu_plan_feed_close(plan);
	mu_plan_release(plan, plan->scale.word);
	if (!plan->memory.borrowed)
		mu_plan_release(plan, plan->memory.arena);
	mu_free(plan->backward.marks);
	mu_free(plan->flat.brought);
}

static bool is_one_of(const float *host, const struct plan_arrays *a)
{
	return host && (host == a->weights || host == a->gradients || host == a->sum);
}

/* Mirrors bound before are kept as long as there is space: parts that add to a sum are bound anew
 * in each step. */
static enum mu_status find_mirror(struct mu_plan *plan, float *host, float **out)
{
	enum mu_status st = MU_OK;
	const struct mu_device_memory *memory = memory_of(plan);
	struct plan_mirror *m = plan->flat.mirrors;
	size_t i = 0;

	*out = NULL;
	if (!host)
		goto out;
	while (i < PLAN_MIRRORS && m[i].host != host)
		i++;
	if (i == PLAN_MIRRORS) {
		for (i = 0; is_one_of(m[i].host, &plan->flat.host);)
			i++;
		memory->unmirror(plan->device, m[i].device);
		m[i] = (struct plan_mirror){.host = NULL};
		MU_TRY(memory->mirror(plan->device, &m[i].device, host, plan->layout.n));
		m[i].host = host;
	}
	*out = m[i].device;
out:
	return st;
}

enum mu_status mu_plan_mirror(struct mu_plan *plan, struct plan_arrays *arrays)
{
	enum mu_status st = MU_OK;
	struct plan_flat *flat = &plan->flat;

	flat->host = *arrays;
	if (!memory_of(plan))
		goto out;
	if (!flat->brought)
		MU_TRY(MU_ALLOC(flat->brought, plan->layout.n_slices, "versions of weights"));
	for (size_t k = 0; k < plan->layout.n_slices; k++)
		flat->brought[k] = 0;
	MU_TRY(find_mirror(plan, flat->host.weights, &flat->mirror.weights));
	MU_TRY(find_mirror(plan, flat->host.gradients, &flat->mirror.gradients));
	MU_TRY(find_mirror(plan, flat->host.sum, &flat->mirror.sum));
	*arrays = flat->mirror;
out:
	return st;
}

/* Training does not read running statistics. */
static size_t n_read(const struct mu_plan *plan, const struct mu_op *op)
{
	return (size_t)(op->n_params + (plan->phase == MU_PHASE_TRAIN ? 0 : op->n_aux));
}

static enum mu_status upload_key(struct mu_plan *plan, size_t k)
{
	enum mu_status st = MU_OK;
	const struct mu_slice *s = &plan->layout.slices[k];
	struct plan_flat *flat = &plan->flat;

	if (flat->versions && flat->brought[k] == flat->versions[k] + 1)
		goto out;
	MU_TRY(memory_of(plan)->upload(plan->device, flat->mirror.weights + s->at,
				       flat->host.weights + s->at, s->n_padded * sizeof(float)));
	flat->brought[k] = flat->versions ? flat->versions[k] + 1 : 0;
out:
	return st;
}

enum mu_status mu_plan_upload(struct mu_plan *plan, size_t l)
{
	enum mu_status st = MU_OK;
	const struct mu_device_memory *memory = memory_of(plan);
	const struct mu_op *op = &plan->ops[l];

	if (!memory)
		goto out;
	if (l == 0)
		MU_TRY(mu_plan_feed_begin(plan));
	if (plan->flat.resident || plan->flat.has_weights)
		goto out;
	for (size_t p = 0; p < n_read(plan, op); p++)
		MU_TRY(upload_key(plan, plan->layout.op_keys[l][p]));
out:
	return st;
}

/* Do the layer's gradients stay on the device, where later plans add to them? */
static bool stays(const struct mu_plan *plan, size_t l)
{
	return memory_of(plan) && mu_plan_adds(plan, l) && plan->flat.sum_stays;
}

enum mu_status mu_plan_download(struct mu_plan *plan, size_t l)
{
	enum mu_status st = MU_OK;
	const struct mu_device_memory *memory = memory_of(plan);
	const struct mu_op *op = &plan->ops[l];
	const bool sums = mu_plan_adds(plan, l);
	float *to = sums ? plan->flat.host.sum : plan->flat.host.gradients;
	const float *from = sums ? plan->flat.mirror.sum : plan->flat.mirror.gradients;

	if (!memory || plan->flat.resident)
		goto out;
	for (int p = mu_plan_first_own(plan, l); p < op->n_params + op->n_aux && !stays(plan, l);
	     p++) {
		const struct mu_slice *s = &plan->layout.slices[plan->layout.op_keys[l][p]];

		MU_TRY(memory->download(plan->device, to + s->at, from + s->at,
					s->n_padded * sizeof(float)));
	}
	MU_TRY(memory->mark(plan->device, &plan->backward.marks[l]));
out:
	return st;
}

enum mu_status mu_plan_finish(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;
	const struct mu_device_memory *memory = memory_of(plan);
	uint64_t mark;
	bool reached;

	if (!memory)
		goto out;
	MU_TRY(memory->mark(plan->device, &mark));
	MU_TRY(memory->reach(plan->device, mark, true, &reached));
out:
	return st;
}

enum mu_status mu_plan_backward_left(struct mu_plan *plan, bool wait, size_t *left)
{
	enum mu_status st = MU_OK;
	const struct mu_device_memory *memory = memory_of(plan);
	struct plan_backward *b = &plan->backward;
	bool reached = true;

	if (!memory || plan->flat.resident)
		b->left = b->begun;
	while (b->left > b->begun && reached) {
		MU_TRY(memory->reach(plan->device, b->marks[b->left - 1], wait, &reached));
		b->left -= reached;
		wait = false;
	}
	*left = b->left;
out:
	return st;
}

enum mu_status mu_plan_backward_wait(struct mu_plan *plan, size_t l)
{
	enum mu_status st = MU_OK;
	size_t left = plan->n_ops;

	while (left > l && !stays(plan, l))
		MU_TRY(mu_plan_backward_left(plan, true, &left));
out:
	return st;
}

/* ---- results of forward ---- */

const float *mu_plan_rows(const struct mu_plan *plan)
{
	const struct mu_tensor *out = plan->ops[plan->n_ops - 1].outputs[0];
	const struct mu_device_ops *ops = plan->device->ops;

	return !ops->memory && ops->is_rows && ops->is_rows(&out->shape, out->layout) ? out->data
										      : NULL;
}

enum mu_status mu_plan_alloc_probabilities(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;
	const struct mu_device_memory *memory = memory_of(plan);
	const size_t n = mu_shape_n(mu_plan_probabilities_shape(plan));
	void *p = NULL;

	if (memory)
		MU_TRY(memory->alloc_host(plan->device, &p, n * sizeof(float), "probabilities"));
	else
		MU_TRY(mu_alloc(&p, n * sizeof(float), "probabilities"));
	plan->result.probabilities = p;
	plan->result.owned = true;
out:
	return st;
}

void mu_plan_free_probabilities(struct mu_plan *plan)
{
	if (!plan->result.owned)
		return;
	if (memory_of(plan))
		memory_of(plan)->free_host(plan->device, plan->result.probabilities);
	else
		mu_free(plan->result.probabilities);
}

void mu_plan_set_results_later(struct mu_plan *plan)
{
	struct mu_op *last = &plan->ops[plan->n_ops - 1];

	last->loss_later = plan->phase == MU_PHASE_TRAIN && memory_of(plan) &&
			   plan->device->ops->set_loss;
}

enum mu_status mu_plan_results_begin(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;

	MU_TRY(memory_of(plan)->mark(plan->device, &plan->result.mark));
	plan->result.due = true;
out:
	return st;
}

enum mu_status mu_plan_results_end(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;
	bool reached;

	if (!plan->result.due)
		goto out;
	MU_TRY(memory_of(plan)->reach(plan->device, plan->result.mark, true, &reached));
	plan->device->ops->set_loss(plan->device, &plan->ops[plan->n_ops - 1]);
	plan->result.due = false;
out:
	return st;
}
