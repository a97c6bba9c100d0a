/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compression of what a worker pushes. Every part of a key has words of its own; parts begin at
 * multiples of 64 elements, so codes and residuals are those of the uncut key.
 */
#include <math.h>
#include <string.h>

#include "compress/bits.h"
#include "keys.h"

static enum mu_status parse(const char *type, double threshold, enum mu_coding *coding)
{
	enum mu_status st = MU_OK;

	if (type && strcmp(type, "none") == 0)
		*coding = MU_CODING_DENSE;
	else if (type && strcmp(type, "2bit") == 0)
		*coding = MU_CODING_2BIT;
	else if (type && strcmp(type, "1bit") == 0)
		*coding = MU_CODING_1BIT;
	else
		MU_FAIL(MU_ERR_ARGUMENT, "compression '%s' is not known: none, 2bit, 1bit are",
			type ? type : "");
	if (*coding == MU_CODING_2BIT && (!(threshold > 0) || !isfinite(threshold)))
		MU_FAIL(MU_ERR_ARGUMENT,
			"threshold %g of 2bit compression: it must be finite and above 0",
			threshold);
	if (*coding == MU_CODING_1BIT && (!(threshold >= 0) || !isfinite(threshold)))
		MU_FAIL(MU_ERR_ARGUMENT,
			"threshold %g of 1bit compression: it must be finite and not below 0",
			threshold);
out:
	return st;
}

enum mu_status mu_keys_set_compression(struct mu_keys *keys, const char *type, double threshold)
{
	enum mu_status st = MU_OK;
	enum mu_coding coding = MU_CODING_DENSE;

	MU_TRY(mu_keys_check_worker(keys, "mu_keys_set_compression"));
	MU_TRY(parse(type, threshold, &coding));
	keys->compression = coding;
	keys->threshold = (float)threshold;
out:
	return st;
}

bool mu_keys_compresses(const struct mu_keys *keys, const struct mu_key *key)
{
	return keys->compression != MU_CODING_DENSE && key->dtype == MU_FLOAT32;
}

enum mu_status mu_keys_compress(struct mu_keys *keys, struct mu_transfer *x)
{
	enum mu_status st = MU_OK;
	const struct mu_key_part *part = &keys->table.parts[x->part];
	struct mu_key *key = &keys->table.keys[part->key];
	const int bits = keys->compression == MU_CODING_2BIT ? 2 : 1;
	void *codes;

	if (!key->residual)
		MU_TRY(MU_ALLOC(key->residual, key->n, "rest of compression"));
	x->nbytes = mu_bits_bytes(bits, part->n);
	MU_TRY(mu_keys_scratch(keys, &codes, x->nbytes));
	mu_bits_encode(bits, keys->threshold, part->n, x->data, key->residual + part->from, codes);
	x->coding = keys->compression;
	x->threshold = keys->threshold;
	x->data = codes;
out:
	return st;
}
