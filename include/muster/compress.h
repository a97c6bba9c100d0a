/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compress: lossy compression of gradients, and on request of what workers pull, with error
 * feedback: the residual of a message is added to the values of the next one.
 *
 * r is a value to be sent plus the residual of earlier messages. The encoder keeps r minus the
 * decoded value as the new residual. t is the threshold.
 *
 * 2bit: r >= t is sent as t, r <= -t as -t, all else as 0. After Strom, Scalable distributed DNN
 * training using commodity GPU cloud computing, Interspeech 2015; MXNet 1.9's code, byte for byte:
 * 11, 10 and 00 in words of 4 bytes, the first element in the highest two bits of a byte. What is
 * sent is always +-t, so t should be near the typical magnitude of gradients. NaN is
 * never sent.
 *
 * 1bit: one bit per element, r > t, the first element in the highest bit. A bit decodes to the
 * mean of the block's values with this bit (Seide et al., 1-bit stochastic gradient descent and its
 * application to data-parallel distributed training of speech DNNs, Interspeech 2014; there t = 0,
 * and a block is a column). The two means precede the bits of a block, the mean for 0 first.
 * MXNet's master branch sends 1 and -1 instead of the means, as mu_keys_set_compression does.
 *
 * fp16: IEEE 754 binary16, rounded to nearest, ties to even. Values beyond +-65504 are clamped; the
 * excess stays in the residual. bf16: bfloat16, likewise.
 *
 * topk: the k largest |r| of a block, k = ratio times its elements, rounded up; of equal ones the
 * first (Stich, Cordonnier and Jaggi, Sparsified SGD with memory, NeurIPS 2018; Alistarh et al.,
 * The convergence of sparsified gradient methods, NeurIPS 2018). A message has the k indices in the
 * block, 2 bytes each, then the k values, so its size is fixed.
 *
 * ternary: |r| >= 0.7 m is sent as +-a, else 0; m is the mean of |r| over the block, a the mean of
 * |r| over the elements sent (Li, Zhang and Liu, Ternary weight networks, 2016, equations 5 and 6).
 * a precedes the codes, which are those of 2bit. Used for pulls with 2bit: the magnitude of changes
 * of weights is not known beforehand and decreases during training, so no fixed threshold fits.
 *
 * A block has MU_COMPRESS_BLOCK elements; the last one of a message may be shorter. Codes of 2bit,
 * fp16 and bf16 depend on each element alone. All codes are multiples of 4 bytes.
 *
 * In a store of a model between ranks (kvstore.h) every worker encodes its
 * own gradients plus its residual, wherever its servers are. Gradients are sums over its samples,
 * and thresholds refer to these sums. Servers sum, or update by, the decoded values. With pull the
 * server end encodes the difference between its weights, which stay exact, and the workers'
 * weights, and all workers add the decoded difference; the rounding error is part of the next
 * difference (Tang et al., DoubleSqueeze: parallel stochastic gradient descent with double-pass
 * error-compensated compression, ICML 2019). dist_allreduce encodes the sums plus their residual
 * likewise, and dist_async encodes for each worker separately. So the workers' weights differ from
 * the servers' by the residual, also at the end of training.
 *
 * Not compressed: keys of fewer than MU_COMPRESS_BLOCK elements, running statistics, keys with
 * padding (n_padded > n) for 1bit, and initial weights. Blocks start at multiples of
 * MU_COMPRESS_BLOCK in the flat array and end with their key. So the bits do not depend on bucket
 * sizes, on the number and placement of servers, or on node_reduce. Parts of a bucket are cut on
 * these multiples (not for fp16, bf16, and 2bit without pull). Each worker has one more array of
 * the model's size for the residual; with pull also its own weights, and each synchronous server
 * a second copy of its weights. With local SGD the values are the change of a worker's weights
 * since the last average, times its samples. A push of no samples to dist_async leaves the
 * residual unchanged.
 *
 * mu_kv_own returns a worker's residual for checkpoints, "residual", and "residual_of_sums" of
 * dist_allreduce. The exact weights of synchronous servers are a state of the store, MU_KV_EXACT.
 */
#ifndef MUSTER_COMPRESS_H
#define MUSTER_COMPRESS_H

#include <muster/base.h>

MU_BEGIN_C

#define MU_COMPRESS_BLOCK ((size_t)1024)

/* The settings of a user. */
struct mu_compression {
	const char *type; /* "2bit", "1bit", "fp16", "bf16", "topk"; NULL or "none": none */
	double threshold; /* of 2bit, more than 0; of 1bit, at least 0 */
	double ratio;     /* of topk, more than 0, at most 1 */
	bool pull;        /* compress pulls, too */
};

/* A codec with its settings. */
struct mu_coder {
	const struct mu_codec *codec; /* NULL: none */
	float threshold;
	double ratio;
};

/* Is a type other than "none" set? */
bool mu_compress_is_on(const struct mu_compression *c);
/*
 * Coders of both directions. MU_ERR_USAGE: an unknown type (the message lists the known ones), or
 * settings out of range.
 */
enum mu_status mu_compress_open(const struct mu_compression *c, struct mu_coder *push,
				struct mu_coder *pull);
/* Is a value of 0 decoded as 0? */
bool mu_compress_keeps_zero(const struct mu_coder *coder);
/* Do codes depend on where messages are cut into blocks? */
bool mu_compress_has_blocks(const struct mu_coder *coder);

/* A message of n elements: its bytes; encode values, which become the residual; decode codes.
 */
size_t mu_compress_bytes(const struct mu_coder *coder, size_t n);
void mu_compress(const struct mu_coder *coder, size_t n, float *values, void *codes);
void mu_decompress(const struct mu_coder *coder, size_t n, const void *codes, float *out);

MU_END_C

#endif
