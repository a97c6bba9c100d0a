/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by engines of cuDNN's graph API, in half precision and TF32: see graph.h. */
#include "device/cuda/convolution/graph.h"

#include <muster/base.h>

static struct dnn_convolution describe(const struct mu_op *op)
{
	const struct mu_convolution *a = op->attr;
	const struct mu_shape *in = &op->inputs[0]->shape;
	const struct mu_window w = mu_window_of_convolution(a, in);

	return mu_dnn_describe(&w, in,
			       &(struct dnn_convolution){
				       .type = mu_cuda_dnn_type(op->inputs[0]->layout),
				       .plain = !op->inputs[0]->layout,
				       .filters = (int64_t)mu_cuda_row(op->outputs[0]),
				       .groups = mu_dnn_one_or(a->groups)});
}

/* In training, for a batch-norm. */
static bool wants_sums(const struct mu_op *op, const struct dnn_convolution *c)
{
	const struct mu_convolution *a = op->attr;

	return op->fusion.feeds_norm && op->phase == MU_PHASE_TRAIN && a->no_bias &&
	       !op->fusion.activation && mu_dnn_fuses(c);
}

static void make_room_for_sums(struct mu_tensor *out)
{
	out->sums_at = mu_cuda_round(out->nbytes);
	out->nbytes = out->sums_at + 2 * out->shape.dims[1] * sizeof(float);
}

void mu_cuda_plan_engine(struct cuda_device *d, struct mu_op *op, enum mu_convolution_phase phase,
			 int64_t most_bytes, struct dnn_plan *plan)
{
	static const enum dnn_pattern patterns[MU_CONVOLUTION_PHASES] = {
		[MU_CONVOLUTION_FORWARD] = DNN_FORWARD,
		[MU_CONVOLUTION_DATA] = DNN_DATA,
		[MU_CONVOLUTION_WEIGHTS] = DNN_WEIGHTS,
	};
	const struct dnn_target target = {.handle = d->dnn};
	const struct dnn_convolution c = describe(op);
	struct dnn_request request = {.pattern = patterns[phase],
				      .engine = DNN_FIRST,
				      .most_bytes = most_bytes,
				      .allow_tf32 = d->device->allow_tf32};
	enum mu_convolution_algorithm all[MU_CONVOLUTION_PHASES], asked;

	mu_convolution_requested(d->device, op->name, all);
	asked = all[phase];
	if (asked >= MU_CONVOLUTION_ENGINE && (op->inputs[0]->layout || request.allow_tf32))
		request.engine = (int)asked - MU_CONVOLUTION_ENGINE;
	else if (asked == MU_CONVOLUTION_AUTO && phase == MU_CONVOLUTION_FORWARD &&
		 wants_sums(op, &c))
		request.pattern = DNN_FORWARD_STATISTICS;
	else
		return;
	mu_cuda_keep_nvrtc(&d->api);
	if (mu_dnn_plan(&d->api, &target, &c, &request, plan) != MU_OK) {
		mu_log_detail("%s: no engine for %s: %s", op->name,
			      mu_dnn_pattern_name(request.pattern), mu_trace_message());
		mu_trace_clear();
	}
	if (!plan->plan)
		return;
	if (request.pattern == DNN_FORWARD_STATISTICS)
		make_room_for_sums(op->outputs[0]);
	op->algorithms[phase] =
		request.pattern == DNN_FORWARD_STATISTICS ? MU_CONVOLUTION_DIRECT : asked;
}

enum mu_status mu_cuda_run_engine(struct cuda_device *d, const struct mu_op *op,
				  enum mu_convolution_phase phase, struct dnn_plan *plan,
				  const void *weights, void *scratch)
{
	const struct mu_tensor *in = op->inputs[0], *out = op->outputs[0];
	struct dnn_arrays arrays = {
		.of = {[DNN_W] = weights,
		       [DNN_Y] = phase == MU_CONVOLUTION_FORWARD ? out->data : out->grad,
		       [DNN_X] = phase == MU_CONVOLUTION_DATA ? in->grad : in->data},
		.scratch = scratch};

	if (phase == MU_CONVOLUTION_FORWARD && out->sums_at) {
		const float *sums =
			(const float *)(const void *)((const char *)out->data + out->sums_at);

		arrays.of[DNN_SUM] = sums;
		arrays.of[DNN_SQUARES] = sums + out->shape.dims[1];
	}
	return mu_dnn_run(d, plan, &arrays);
}
