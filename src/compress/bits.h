/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: values as one or two bits each, packed. MXNet 1.9.1's format (2bit) and that
 * of its master branch (1bit), for one element with gradient g, residual r and threshold t:
 *
 *	2bit, t > 0:
 *		r <- r + g;  r >= t: code 11, value t, r <- r - t;  r <= -t: code 10, value -t,
 *		r <- r + t;  else code 00, value 0
 *	1bit:
 *		r <- r + g;  r > t: code 1, value 1, r <- r - 1;  else code 0, value -1, r <- r + 1
 *
 * Codes fill bytes from the most significant bit, bytes fill words of 4; the rest of the last word
 * is zero. So 16 elements of 2bit, or 32 of 1bit, are a word.
 */
#ifndef MUSTER_KVSTORE_BITS_H
#define MUSTER_KVSTORE_BITS_H

#include <muster/base.h>

/* Bytes of n elements. */
size_t mu_bits_bytes(int bits, size_t n);
/* n elements of gradient into codes; the residual is brought up to date. */
void mu_bits_encode(int bits, float threshold, size_t n, const float *gradient, float *residual,
		    unsigned char *codes);
/* Elements [from, from + n) of codes; from is a multiple of 8. */
void mu_bits_decode(int bits, float threshold, size_t from, size_t n, const unsigned char *codes,
		    float *out);

/* sums[i] += values[i] */
void mu_bits_add(size_t n, float *restrict sums, const float *restrict values);
/*
 * Two bits for each of n values of size at least limit, with their sign; what is sent for those,
 * +-value, is taken away from them. 2bit has limit = value = t.
 */
void mu_bits_encode_two(size_t n, float limit, float value, float *restrict values,
			unsigned char *restrict codes);
/* out[i] = value times 1, -1 or 0: a value that is not finite shows everywhere. */
void mu_bits_decode_two(size_t n, float value, const unsigned char *restrict codes,
			float *restrict out);
/*
 * One bit for each value: is it more than limit? Then high is sent for it, else low; that is taken
 * away.
 */
void mu_bits_encode_one(size_t n, float limit, const float *restrict low_high,
			float *restrict values, unsigned char *restrict codes);
void mu_bits_decode_one(size_t n, const float *restrict low_high,
			const unsigned char *restrict codes, float *restrict out);

#endif
