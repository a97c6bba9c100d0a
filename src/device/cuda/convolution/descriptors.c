/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/convolution/descriptors.h"

#include <muster/base.h>

static cudnnTensorFormat_t format_of(const struct cuda_layout *layout)
{
	return layout ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

/* Sizes are (n, c, space...) in either format. */
static enum mu_status describe_tensor(struct cuda_device *d, cudnnTensorDescriptor_t *out,
				      const struct mu_tensor *t)
{
	enum mu_status st = MU_OK;
	int sizes[MU_MAX_DIMS];

	for (int i = 0; i < t->shape.ndims; i++)
		sizes[i] = (int)t->shape.dims[i];
	sizes[1] = (int)mu_cuda_row(t);
	DNN(d, cudnnCreateTensorDescriptor, out);
	DNN(d, cudnnSetTensorNdDescriptorEx, *out, format_of(t->layout),
	    mu_cuda_dnn_type(t->layout), t->shape.ndims, sizes);
out:
	return st;
}

enum mu_status mu_cuda_describe(struct cuda_device *d, const struct cuda_described *of,
				struct cuda_descriptors *out)
{
	enum mu_status st = MU_OK;
	const struct mu_window *w = of->window;
	const int ndims = of->weight->ndims, axes = MU_MAX_SPACE - w->first;
	int sizes[MU_MAX_DIMS], pad[MU_MAX_SPACE], stride[MU_MAX_SPACE], dilate[MU_MAX_SPACE];

	for (int i = 0; i < ndims; i++)
		sizes[i] = (int)of->weight->dims[i];
	sizes[0] = (int)mu_cuda_row(of->out);
	for (int i = 0; i < axes; i++) {
		pad[i] = (int)w->pad[w->first + i];
		stride[i] = (int)w->stride[w->first + i];
		dilate[i] = (int)w->dilate[w->first + i];
	}
	out->layout = of->layout;
	MU_TRY(describe_tensor(d, &out->in, of->in));
	MU_TRY(describe_tensor(d, &out->out, of->out));
	DNN(d, cudnnCreateFilterDescriptor, &out->weight);
	DNN(d, cudnnSetFilterNdDescriptor, out->weight, mu_cuda_dnn_type(of->layout),
	    format_of(of->layout), ndims, sizes);
	DNN(d, cudnnCreateConvolutionDescriptor, &out->shape);
	DNN(d, cudnnSetConvolutionNdDescriptor, out->shape, axes, pad, stride, dilate,
	    CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
	DNN(d, cudnnSetConvolutionGroupCount, out->shape, of->groups);
out:
	return st;
}

void mu_cuda_free_descriptors(struct cuda_device *d, const struct cuda_descriptors *of)
{
	if (of->shape)
		d->api.cudnnDestroyConvolutionDescriptor(of->shape);
	if (of->weight)
		d->api.cudnnDestroyFilterDescriptor(of->weight);
	if (of->out)
		d->api.cudnnDestroyTensorDescriptor(of->out);
	if (of->in)
		d->api.cudnnDestroyTensorDescriptor(of->in);
}
