/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: compression in a store of a model (see kvstore.h and compress.h). A part of a
 * bucket is encoded key by key, in blocks of the flat array. Codes do not depend on how a bucket is
 * cut: parts begin at multiples of a block, for codecs with blocks. Small keys, running statistics
 * and, for codecs without a code of zero, keys with padding are sent as floats between the codes.
 *
 * Messages to remote ranks are codes. Between ranks that share memory the decoded values replace
 * the gradients or weights in place.
 */
#ifndef MUSTER_KVSTORE_CODED_H
#define MUSTER_KVSTORE_CODED_H

#include "kvstore/kv.h"

struct mu_kv_server;

/* The messages of one direction, part by part; several copies of all. */
struct mu_kv_codes {
	unsigned char *data;
	size_t *at; /* by part: its first byte; then the number of bytes */
	size_t n_parts;
};

enum mu_status mu_kv_codes_init(struct mu_kv_codes *codes, const struct mu_kv *kv,
				const struct mu_coder *coder, const struct mu_kv_part *parts,
				size_t n_parts, size_t copies);
void mu_kv_codes_release(struct mu_kv_codes *codes);
unsigned char *mu_kv_codes_part(const struct mu_kv_codes *codes, size_t part, size_t copy);
int mu_kv_codes_count(const struct mu_kv_codes *codes, size_t part); /* bytes, for MPI */

/* Bytes of all messages of a direction in a step of a worker. */
size_t mu_kv_message_bytes(const struct mu_kv *kv, const struct mu_coder *coder);
/* Bytes of a message of n elements from at on; without a codec: floats. */
size_t mu_kv_coded_bytes(const struct mu_kv *kv, const struct mu_coder *coder, size_t at, size_t n);

/* Of a worker, by part of the plan. */
struct mu_kv_coded_worker {
	float *residual; /* of gradients: flat */
	struct mu_kv_codes pushes, pulls;
};

enum mu_status mu_kv_coded_worker_open(struct mu_kv *kv);
void mu_kv_coded_worker_close(struct mu_kv_coded_worker *c);
/* Before the push of a bucket: encodes its gradients. */
void mu_kv_coded_push(struct mu_kv *kv, size_t bucket);
/* After the pull of a bucket: decodes it. */
void mu_kv_coded_pulled(struct mu_kv *kv, size_t bucket);

/* Of a server end, by part of the server. */
struct mu_kv_coded_server {
	/*
	 * pushes: a copy per remote source. pulls: one copy for synchronous stores; for dist_async
	 * a copy per remote source, and one for the workers of this node, which is not sent.
	 */
	struct mu_kv_codes pushes, pulls;
	float *sent;     /* synchronous stores: the weights that workers have */
	float *residual; /* of sums, if those are sent: flat, for checkpoints */
};

enum mu_status mu_kv_coded_server_open(struct mu_kv_server *s);
void mu_kv_coded_server_close(struct mu_kv_coded_server *c);
/* Decodes remote worker w's part p into the inbox. */
void mu_kv_coded_arrived(struct mu_kv_server *s, size_t p, size_t w);
/*
 * Part p is updated, or summed: encodes it for worker w, or for all if w is n_workers. Workers of
 * this node get the decoded values.
 */
void mu_kv_coded_answer(struct mu_kv_server *s, size_t p, size_t w);

#endif
