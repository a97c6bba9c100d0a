/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the kernels of attention.h. See args.h. */
#ifndef DEVICE_CUDA_KERNELS_ATTENTION_ARGS_H
#define DEVICE_CUDA_KERNELS_ATTENTION_ARGS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Between a tensor of struct mu_attention and its heads: the queries (samples, heads, steps, d),
 * then keys and values (samples, kv, steps, d) each; kv 0: only the former. angles (steps, d / 2):
 * cosine and sine of the rotation of queries and keys, which join_heads undoes; NULL: none.
 */
struct cuda_heads {
	const void *from;
	void *to;
	int from_type, to_type, last; /* last: the tensor is (samples, steps, channels) */
	const float *angles;
	size_t samples, steps, heads, kv, d;
	size_t n;
};
#define cuda_split_heads cuda_heads
#define cuda_join_heads cuda_heads

/*
 * Rows of scores become weights. The rows are `rows` queries of each sample and head of keys,
 * counted over the heads that share those keys: from number `first`, first / steps being the head
 * and first % steps the step. Each has `keys` scores; those that the query does not see become 0.
 * backward: `grads` are gradients of the weights; `slopes` become those of the scores. Outputs may
 * be the inputs.
 */
struct cuda_attend {
	const float *scores, *grads;
	void *weights, *slopes;
	int type, causal;
	size_t keys, rows, first, sample, steps, heads, kv;
	/* dropout, as of struct cuda_dropout */
	const uint32_t *ids, *epochs;
	uint64_t seed, element;
	uint32_t epoch, purpose;
	float p;
	size_t n;
};
#define cuda_attend_backward cuda_attend

#endif
