/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compression of what a worker pushes: of the sum of its arrays, or in stores of one worker of each
 * array, with a residual of its own. Every part of a key has words of its own; parts begin at
 * multiples of 64 elements, so codes and residuals are those of the uncut key.
 */
#include <math.h>
#include <string.h>

#include "compress/bits.h"
#include "store.h"

enum mu_status mu_keys_parse_compression(const char *type, double threshold, enum mu_coding *coding)
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

bool mu_keys_compresses(const struct mu_keys *keys, const struct mu_key *key)
{
	return keys->compression != MU_CODING_DENSE && key->dtype == MU_FLOAT32;
}

/* Room for the residuals of n arrays of a key; existing ones are kept. */
static enum mu_status need_residuals(struct mu_key *key, size_t n)
{
	enum mu_status st = MU_OK;
	float *residual = NULL;

	if (n <= key->n_residuals)
		goto out;
	MU_TRY(MU_ALLOC(residual, n * key->n, "residuals of compression"));
	if (key->n_residuals > 0)
		memcpy(residual, key->residual, key->n_residuals * key->n * sizeof *residual);
	mu_free(key->residual);
	key->residual = residual;
	key->n_residuals = n;
out:
	return st;
}

/* Elements [from, from + n) of array i of a key as codes, in a buffer of the call. */
static enum mu_status encode(struct mu_keys *keys, struct mu_key *key, size_t i, size_t from,
			     size_t n, const float *data, void **codes, size_t *nbytes)
{
	enum mu_status st = MU_OK;
	const int bits = keys->compression == MU_CODING_2BIT ? 2 : 1;

	MU_TRY(need_residuals(key, i + 1));
	*nbytes = mu_bits_bytes(bits, n);
	MU_TRY(mu_keys_scratch(keys, codes, *nbytes));
	mu_bits_encode(bits, keys->threshold, n, data, key->residual + i * key->n + from, *codes);
out:
	return st;
}

enum mu_status mu_keys_compress(struct mu_keys *keys, struct mu_transfer *x)
{
	enum mu_status st = MU_OK;
	const struct mu_key_part *part = &keys->table.parts[x->part];
	void *codes = NULL;

	MU_TRY(encode(keys, &keys->table.keys[part->key], 0, part->from, part->n, x->data, &codes,
		      &x->nbytes));
	x->coding = keys->compression;
	x->threshold = keys->threshold;
	x->data = codes;
out:
	return st;
}

enum mu_status mu_keys_compress_array(struct mu_keys *keys, struct mu_key *key, size_t i,
				      struct mu_source *source)
{
	enum mu_status st = MU_OK;
	void *codes = NULL;
	size_t nbytes;

	MU_TRY(encode(keys, key, i, 0, key->n, source->data, &codes, &nbytes));
	*source = (struct mu_source){codes, keys->compression, key->dtype, keys->threshold};
out:
	return st;
}
