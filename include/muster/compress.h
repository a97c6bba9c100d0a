/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compress: gradients, and what comes back for them, in fewer bytes than float32; with error
 * feedback, by which what a message leaves out is added to what the next one sends.
 *
 * Values r to be sent (the gradient plus the rest of earlier messages) become codes; what the codes
 * say is taken away from r, which then is the rest. t is the threshold.
 *
 * 2bit: r >= t is sent as t, r <= -t as -t, else 0. After Strom, Scalable distributed DNN training
 * using commodity GPU cloud computing, Interspeech 2015; MXNet 1.9's code, byte for byte: 11, 10
 * and 00, the first element in the highest two bits of a byte, in words of 4 bytes. An element is
 * sent as +-t whatever its size, so t should be about that of gradients. One that is not a number
 * is never sent.
 *
 * 1bit: is r > t? One bit of an element, the first in the highest; each of the two stands for the
 * mean of the block's values that have it (Seide et al., 1-bit stochastic gradient descent and its
 * application to data-parallel distributed training of speech DNNs, Interspeech 2014; there t = 0,
 * and a block is a column). The two means come before a block's bits, that of the lower ones first.
 * MXNet's master branch sends 1 and -1 in their place, as mu_keys_set_compression does.
 *
 * fp16: IEEE 754 binary16, to the nearest, ties to even. What is beyond +-65504 is sent as that,
 * and the rest later. bf16: bfloat16, likewise.
 *
 * topk: the k largest |r| of a block, k = ratio times its elements, rounded up, of equal ones the
 * first (Stich, Cordonnier and Jaggi, Sparsified SGD with memory, NeurIPS 2018; Alistarh et al.,
 * The convergence of sparsified gradient methods, NeurIPS 2018). Their places in the block, of 2
 * bytes each, then the values themselves: sizes are fixed.
 *
 * ternary: |r| >= 0.7 m is sent as +-a, else 0; m is the mean of |r| over the block, a that over
 * those which are sent (Li, Zhang and Liu, Ternary weight networks, 2016, equations 5 and 6). a
 * comes before the codes, which are those of 2bit. It is what comes back for 2bit: the size of
 * changes of weights is not known beforehand, and becomes less in training, so no threshold fits.
 *
 * A block is MU_COMPRESS_BLOCK elements, the last one of a message what is left. Codes of 2bit,
 * fp16 and bf16 depend on each element alone. All codes are multiples of 4 bytes.
 *
 * In a store of a model, one of those between ranks (kvstore.h): every worker,
 * wherever its servers are, codes its own gradients (sums over its samples, to which thresholds
 * refer) plus what earlier codes left of them (error feedback); what is summed, or updates, is what
 * the codes say. With pull the server end codes the way from the weights that workers have to its
 * own, which stay exact, and all workers take what the codes say; what they leave is part of the
 * next way (Tang et al., DoubleSqueeze: parallel stochastic gradient descent with double-pass
 * error-compensated compression, ICML 2019). dist_allreduce codes the sums so, plus what was left
 * of them. dist_async does it for each worker. Workers then have weights that differ from the
 * servers' by what is left, at the end of training too.
 *
 * Not coded: keys of fewer than MU_COMPRESS_BLOCK elements, running statistics, with 1bit keys that
 * have padding (n_padded > n), and first weights. Blocks lie on multiples of MU_COMPRESS_BLOCK in
 * the flat array, and end with their key. So all bits are independent of the size of buckets, of
 * the number and place of servers and of node_reduce. Parts of a bucket are then cut on these
 * multiples (not for fp16, bf16, and 2bit without pull). Each worker has one more array as large as
 * the model, for the rest; with pull also weights of its own, and each synchronous server a second
 * copy of what it holds. With local SGD the codes are of what is averaged: the way that a worker's
 * weights have gone, times its samples. A push of no samples to dist_async sends nothing of the
 * rest.
 *
 * mu_kv_own has a worker's rest for checkpoints, "residual". What is left of the way back is not in
 * them: with pull, a resumed run goes on from the weights that workers have.
 */
#ifndef MUSTER_COMPRESS_H
#define MUSTER_COMPRESS_H

#include <muster/base.h>

MU_BEGIN_C

#define MU_COMPRESS_BLOCK ((size_t)1024)

/* What a user asks for. */
struct mu_compression {
	const char *type; /* "2bit", "1bit", "fp16", "bf16", "topk"; NULL or "none": none */
	double threshold; /* of 2bit, more than 0; of 1bit, at least 0 */
	double ratio;     /* of topk, more than 0, at most 1 */
	bool pull;        /* what comes back, too */
};

/* A way of coding, with its settings. */
struct mu_coder {
	const struct mu_codec *codec; /* NULL: none */
	float threshold;
	double ratio;
};

/* Is there any? */
bool mu_compress_is_on(const struct mu_compression *c);
/*
 * Coders of both ways. MU_ERR_USAGE for an unknown type, with the list, and for settings that it
 * cannot work with.
 */
enum mu_status mu_compress_open(const struct mu_compression *c, struct mu_coder *push,
				struct mu_coder *pull);
const char *mu_compress_name(const struct mu_coder *coder); /* "none", "ternary" */
/* Does a value of 0 come back as 0? */
bool mu_compress_keeps_zero(const struct mu_coder *coder);
/* Do codes depend on where messages are cut into blocks? */
bool mu_compress_has_blocks(const struct mu_coder *coder);

/* A message of n elements: its bytes; values into codes, values become the rest; codes into values.
 */
size_t mu_compress_bytes(const struct mu_coder *coder, size_t n);
void mu_compress(const struct mu_coder *coder, size_t n, float *values, void *codes);
void mu_decompress(const struct mu_coder *coder, size_t n, const void *codes, float *out);

MU_END_C

#endif
