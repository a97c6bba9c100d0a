/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: compression in a store of a model (see kvstore.h and compress.h). A part of a
 * bucket is coded key by key, in blocks of the flat array, so that codes do not depend on how it is
 * cut: parts begin at multiples of a block where codes have blocks. Small keys, running statistics
 * and, if the code has no zero, keys with padding travel as they are, in their place between the
 * codes.
 *
 * Far messages are codes; between ranks that share memory what the codes say takes the place of the
 * gradients or the weights themselves.
 */
#ifndef MUSTER_KVSTORE_CODED_H
#define MUSTER_KVSTORE_CODED_H

#include "kvstore/kv.h"

struct mu_kv_server;

/* The messages of a direction, one part after the other; several copies of all. */
struct mu_kv_codes {
	unsigned char *data;
	size_t *at; /* by part its first byte; then the bytes of all */
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

/* What a worker has for it. By part of the plan. */
struct mu_kv_coded_worker {
	float *rest; /* of gradients: flat */
	struct mu_kv_codes pushes, pulls;
};

enum mu_status mu_kv_coded_worker_open(struct mu_kv *kv);
void mu_kv_coded_worker_close(struct mu_kv_coded_worker *c);
/* The gradients of a bucket are about to be pushed. */
void mu_kv_coded_push(struct mu_kv *kv, size_t bucket);
/* What comes back for a bucket is here. */
void mu_kv_coded_pulled(struct mu_kv *kv, size_t bucket);

/* What a server end has for it. By part of the server. */
struct mu_kv_coded_server {
	/*
	 * A copy per far source; pulls: one of synchronous stores, and of dist_async one more that
	 * is for near workers, which are not sent any.
	 */
	struct mu_kv_codes pushes, pulls;
	float *given; /* synchronous stores: the weights that workers have */
	float *rest;  /* of sums, where those go back: flat, for checkpoints */
};

enum mu_status mu_kv_coded_server_open(struct mu_kv_server *s);
void mu_kv_coded_server_close(struct mu_kv_coded_server *c);
/* Far worker w's codes of part p are here: into the inbox. */
void mu_kv_coded_arrived(struct mu_kv_server *s, size_t p, size_t w);
/*
 * Part p is updated, or summed: codes of it for worker w, for all if that is n_workers; near ones
 * have what the codes say afterwards.
 */
void mu_kv_coded_answer(struct mu_kv_server *s, size_t p, size_t w);

#endif
