/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over channels: of values, for biases and batch-norms, and of gradients. */
#include "device/cuda/cuda.h"

#include <muster/base.h>

enum {
	EIGHT = 8,
	THREAD_ROWS = 4
}; /* the fewest rows of a thread for which keeping channels pays */

/* Groups of channels of a block that sums: 64 contiguous bytes at least; and the most that one
 * block reads to add the lanes of its channels, if it need not have fewer groups for that. */
enum { LEAST_WIDTH = 4, LANES_BYTES = 64 << 10 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t most(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t ceiling(size_t a, size_t b)
{
	return (a + b - 1) / b;
}

/* Groups of a block: with half as many, twice as many blocks share the lanes, of which there are
 * half as many, so that the last block of each chunk has a quarter to add. */
static size_t width_of(const struct cuda_device *d, const struct mu_tensor *t)
{
	const size_t groups = t->shape.dims[1] / EIGHT;
	const size_t blocks = (size_t)d->processors * CUDA_SUM_BLOCKS_BACKWARD;
	const size_t nbytes = 2 * EIGHT * sizeof(float); /* of a group in a lane */
	size_t width = CUDA_MOST_WIDTH;

	while (width > LEAST_WIDTH && blocks * width * width * nbytes > LANES_BYTES * groups)
		width /= 2;
	return ceiling(groups, ceiling(groups, width));
}

/* Blocks of threads that add one lane. */
static size_t blocks_of_lane(const struct cuda_device *d, const struct mu_tensor *t)
{
	const size_t channels = t->shape.dims[1];

	return mu_cuda_in_groups(t) ? ceiling(channels / EIGHT, width_of(d, t)) : channels;
}

/* Enough lanes to occupy the GPU, each with several samples where there are that many; of groups
 * not more than all blocks that run at a time. */
static size_t lanes_of(const struct cuda_device *d, const struct mu_tensor *t, size_t blocks)
{
	const struct cuda_extent e = mu_cuda_extent(t);
	const size_t in_all = (size_t)d->processors * blocks;
	const size_t values = (size_t)CUDA_THREADS * THREAD_ROWS; /* of a block */

	if (mu_cuda_in_groups(t))
		return least(most(in_all / blocks_of_lane(d, t), 1),
			     ceiling(e.samples, values / width_of(d, t)));
	return least(ceiling(in_all, blocks_of_lane(d, t)),
		     ceiling(e.samples, ceiling(values, e.area)));
}

/* A counter for each chunk: with several lanes there are fewer chunks than blocks. */
size_t mu_cuda_ended_bytes(const struct cuda_device *d)
{
	return (size_t)d->processors * CUDA_SUM_BLOCKS_BACKWARD * sizeof(uint32_t);
}

size_t mu_cuda_sums_bytes(const struct cuda_device *d, const struct mu_tensor *t)
{
	return lanes_of(d, t, CUDA_SUM_BLOCKS) * t->shape.dims[1] * 2 * sizeof(float);
}

enum mu_status mu_cuda_partial_sums(struct cuda_device *d, const struct mu_tensor *t,
				    struct cuda_partial_sums *args, void *room,
				    struct cuda_lanes *lanes)
{
	const struct cuda_extent e = mu_cuda_extent(t);
	const bool gradients = args->of == CUDA_OF_GRADIENTS;
	enum cuda_kernel kernel = CUDA_plane_sums;

	if (mu_cuda_in_groups(t))
		kernel = mu_cuda_of_type(t, args->sum   ? CUDA_joined_sums_float16
					    : gradients ? CUDA_gradient_sums_float16
							: CUDA_value_sums_float16);
	args->type = mu_cuda_type(t);
	args->samples = e.samples;
	args->channels = e.channels;
	args->area = e.area;
	args->lanes = lanes_of(d, t, gradients ? CUDA_SUM_BLOCKS_BACKWARD : CUDA_SUM_BLOCKS);
	args->first = room;
	args->second = args->first + args->lanes * e.channels;
	args->width = mu_cuda_in_groups(t) ? width_of(d, t) : 0;
	args->n = args->lanes * blocks_of_lane(d, t);
	*lanes = (struct cuda_lanes){args->first, args->second, args->lanes, e.channels};
	return mu_cuda_rows(d, kernel, args->n, args);
}
