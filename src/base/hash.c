/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a, and a hash of four words at a time: each word takes part in one of four chains of
 * invertible steps, so that one changed word always changes the result. */
#include <muster/base.h>

#include <string.h>

uint64_t mu_hash(uint64_t h, const void *data, size_t nbytes)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < nbytes; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h;
}

enum { CHAINS = 4, WORD = 8, STEP = CHAINS * WORD };

/* Invertible for a given word. The factor is 2^64 divided by the golden ratio (Knuth, volume 3,
 * section 6.4). */
static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 32;
}

uint64_t mu_hash_block(uint64_t h, const void *data, size_t nbytes)
{
	const unsigned char *p = data;
	uint64_t chain[CHAINS] = {h, h + 1, h + 2, h + 3}, word[CHAINS];
	size_t i = 0;

	for (; i + STEP <= nbytes; i += STEP) {
		memcpy(word, p + i, STEP);
		for (int c = 0; c < CHAINS; c++)
			chain[c] = mix(chain[c], word[c]);
	}
	if (i < nbytes) {
		memset(word, 0, sizeof word);
		memcpy(word, p + i, nbytes - i);
		for (int c = 0; c < CHAINS; c++)
			chain[c] = mix(chain[c], word[c]);
	}
	h = mix(h, nbytes);
	for (int c = 0; c < CHAINS; c++)
		h = mix(h, chain[c]);
	return h;
}
