/* SPDX-License-Identifier: Apache-2.0 */
/* The table of codecs, and messages as runs of blocks. See muster/compress.h. */
#include <stdio.h>
#include <string.h>

#include "codec.h"

static const struct mu_codec *const table[] = {
	&mu_codec_2bit, &mu_codec_1bit, &mu_codec_fp16, &mu_codec_bf16, &mu_codec_topk, NULL,
};

bool mu_compress_is_on(const struct mu_compression *c)
{
	return c->type && strcmp(c->type, "none") != 0;
}

static enum mu_status find(const struct mu_codec **codec, const char *name)
{
	enum mu_status st = MU_OK;
	char known[96] = "none";
	size_t n = strlen(known), i = 0;

	while (table[i] && strcmp(name, table[i]->name) != 0)
		i++;
	*codec = table[i];
	if (*codec)
		goto out;
	for (i = 0; table[i]; i++)
		n += (size_t)snprintf(known + n, sizeof known - n, ", %s", table[i]->name);
	MU_FAIL(MU_ERR_USAGE, "compression '%s' is not known: %s are", name, known);
out:
	return st;
}

enum mu_status mu_compress_open(const struct mu_compression *c, struct mu_coder *push,
				struct mu_coder *pull)
{
	enum mu_status st = MU_OK;
	const struct mu_codec *codec = NULL;

	*push = *pull = (struct mu_coder){.codec = NULL};
	if (mu_compress_is_on(c)) {
		MU_TRY(find(&codec, c->type));
		if (codec->check)
			MU_TRY(codec->check(c));
		*push = (struct mu_coder){codec, (float)c->threshold, c->ratio};
		if (c->pull)
			*pull = *push;
		if (c->pull && codec->back)
			pull->codec = codec->back;
	} else if (c->pull) {
		MU_FAIL(MU_ERR_USAGE, "compression of what comes back, and none of what is pushed: "
				      "name a type");
	}
out:
	return st;
}

bool mu_compress_keeps_zero(const struct mu_coder *coder)
{
	return !coder->codec || !coder->codec->no_zero;
}

bool mu_compress_has_blocks(const struct mu_coder *coder)
{
	return coder->codec && coder->codec->blocks;
}

static size_t block_of(size_t n)
{
	return n < MU_COMPRESS_BLOCK ? n : MU_COMPRESS_BLOCK;
}

size_t mu_compress_bytes(const struct mu_coder *coder, size_t n)
{
	const size_t whole = n / MU_COMPRESS_BLOCK, last = n % MU_COMPRESS_BLOCK;

	return whole * coder->codec->bytes(coder, MU_COMPRESS_BLOCK) +
	       (last ? coder->codec->bytes(coder, last) : 0);
}

void mu_compress(const struct mu_coder *coder, size_t n, float *values, void *codes)
{
	unsigned char *to = codes;

	for (size_t m; n > 0; n -= m, values += m) {
		m = block_of(n);
		coder->codec->encode(coder, m, values, to);
		to += coder->codec->bytes(coder, m);
	}
}

void mu_decompress(const struct mu_coder *coder, size_t n, const void *codes, float *out)
{
	const unsigned char *from = codes;

	for (size_t m; n > 0; n -= m, out += m) {
		m = block_of(n);
		coder->codec->decode(coder, m, from, out);
		from += coder->codec->bytes(coder, m);
	}
}
