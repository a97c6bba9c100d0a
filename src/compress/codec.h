/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kvstore: one way of coding, a table per file. See muster/compress.h. */
#ifndef MUSTER_KVSTORE_CODEC_H
#define MUSTER_KVSTORE_CODEC_H

#include <muster/compress.h>

/* n: at most MU_COMPRESS_BLOCK. */
struct mu_codec {
	const char *name;
	const struct mu_codec *back; /* the way back; NULL: the same */
	bool blocks;                 /* an element's code depends on others of its block */
	bool no_zero;                /* there is no code for 0 */
	enum mu_status (*check)(const struct mu_compression *c);
	size_t (*bytes)(const struct mu_coder *coder, size_t n);
	/* values become what the codes leave of them. */
	void (*encode)(const struct mu_coder *coder, size_t n, float *restrict values,
		       unsigned char *restrict codes);
	void (*decode)(const struct mu_coder *coder, size_t n, const unsigned char *restrict codes,
		       float *restrict out);
};

extern const struct mu_codec mu_codec_2bit;
extern const struct mu_codec mu_codec_1bit;
extern const struct mu_codec mu_codec_ternary;
extern const struct mu_codec mu_codec_fp16;
extern const struct mu_codec mu_codec_bf16;
extern const struct mu_codec mu_codec_topk;

#endif
