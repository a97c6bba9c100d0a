/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: gradients in one or two bits an element, with what is left kept by the
 * sender. MXNet 1.9.1's format (2bit) and that of its master branch (1bit), for one element with
 * gradient g, residual r and threshold t:
 *
 *	2bit, t > 0:  r <- r + g;  r >= t: code 11, value t, r <- r - t;  r <= -t: code 10, value
 *-t, r <- r + t;  else code 00, value 0 1bit:         r <- r + g;  r > t: code 1, value 1, r <- r -
 *1;  else code 0, value -1, r <- r + 1
 *
 * Codes fill bytes from the most significant bit, bytes fill words of 4; the rest of the last word
 * is zero. So 16 elements of 2bit, or 32 of 1bit, are a word.
 */
#ifndef MUSTER_KVSTORE_COMPRESS_H
#define MUSTER_KVSTORE_COMPRESS_H

#include <muster/base.h>

/* Bytes of n elements. */
size_t mu_compress_bytes(int bits, size_t n);
/* n elements of gradient into codes; the residual is brought up to date. */
void mu_compress(int bits, float threshold, size_t n, const float *gradient, float *residual,
		 unsigned char *codes);
/* Elements [from, from + n) of codes; from is a multiple of 8. */
void mu_decompress(int bits, float threshold, size_t from, size_t n, const unsigned char *codes,
		   float *out);

#endif
