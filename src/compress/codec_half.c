/* SPDX-License-Identifier: Apache-2.0 */
/* fp16 and bf16. The rest, of a rounding, is exact in float32. */
#include "codec.h"

#include <string.h>

#define HALF_MAX 65504.0f

MU_LOOP
static void clamp_to_half(size_t n, float *x)
{
	for (size_t i = 0; i < n; i++)
		x[i] = x[i] > HALF_MAX ? HALF_MAX : x[i] < -HALF_MAX ? -HALF_MAX : x[i];
}

MU_LOOP
static void take_away(size_t n, float *restrict values, const float *restrict sent)
{
	for (size_t i = 0; i < n; i++)
		values[i] -= sent[i];
}

static size_t bytes(const struct mu_coder *coder, size_t n)
{
	(void)coder;
	return (n + 1) / 2 * 2 * sizeof(uint16_t);
}

/* The last two bytes of an odd number are zero: messages have no byte that is not defined. */
static void put_last(size_t n, unsigned char *codes)
{
	if (n % 2)
		codes[2 * n] = codes[2 * n + 1] = 0;
}

static void encode_fp16(const struct mu_coder *coder, size_t n, float *restrict values,
			unsigned char *restrict codes)
{
	float sent[MU_COMPRESS_BLOCK];

	(void)coder;
	memcpy(sent, values, n * sizeof *sent);
	clamp_to_half(n, sent);
	mu_dtype_from_float(MU_FLOAT16, codes, sent, n);
	mu_dtype_to_float(MU_FLOAT16, sent, codes, n);
	take_away(n, values, sent);
	put_last(n, codes);
}

static void encode_bf16(const struct mu_coder *coder, size_t n, float *restrict values,
			unsigned char *restrict codes)
{
	float sent[MU_COMPRESS_BLOCK];

	(void)coder;
	mu_dtype_from_float(MU_BFLOAT16, codes, values, n);
	mu_dtype_to_float(MU_BFLOAT16, sent, codes, n);
	take_away(n, values, sent);
	put_last(n, codes);
}

static void decode_fp16(const struct mu_coder *coder, size_t n, const unsigned char *restrict codes,
			float *restrict out)
{
	(void)coder;
	mu_dtype_to_float(MU_FLOAT16, out, codes, n);
}

static void decode_bf16(const struct mu_coder *coder, size_t n, const unsigned char *restrict codes,
			float *restrict out)
{
	(void)coder;
	mu_dtype_to_float(MU_BFLOAT16, out, codes, n);
}

const struct mu_codec mu_codec_fp16 = {
	.name = "fp16",
	.bytes = bytes,
	.encode = encode_fp16,
	.decode = decode_fp16,
};

const struct mu_codec mu_codec_bf16 = {
	.name = "bf16",
	.bytes = bytes,
	.encode = encode_bf16,
	.decode = decode_bf16,
};
