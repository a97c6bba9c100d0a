/* SPDX-License-Identifier: Apache-2.0 */
/* Options about text and networks that read it; the vocabulary of a run. */
#include "conf.h"
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>

#include <muster/base.h>

#include "storage/rows/rows.h"

bool mu_conf_reads_text(const struct conf *v)
{
	const char *data = v->data_train ? v->data_train : v->data_val; /* to evaluate */

	return data && (v->text.unit || mu_stem(data, ".txt"));
}

bool mu_conf_reads_tokens(const struct conf *v)
{
	const char *data = v->data_train ? v->data_train : v->data_val;

	return data && mu_stem(data, ".bin");
}

bool mu_conf_reads_arrays(const struct conf *v)
{
	const char *data = v->data_train ? v->data_train : v->data_val;

	return data && !mu_conf_reads_text(v) && !mu_conf_reads_tokens(v) && mu_rows_known(data);
}

bool mu_conf_text_characters(const struct conf *v)
{
	return v->text.unit == CONF_UNIT_CHARACTERS;
}

/* "8,16,24": rising numbers. */
static enum mu_status read_lengths(struct conf_text *t)
{
	enum mu_status st = MU_OK;
	const char *p = t->buckets;

	t->n_lengths = 0;
	if (t->seq_len > 0) {
		t->lengths[t->n_lengths++] = (size_t)t->seq_len;
		return MU_OK;
	}
	while (*p) {
		char *end;
		const unsigned long length = strtoul(p, &end, 10);
		const size_t last = t->n_lengths ? t->lengths[t->n_lengths - 1] : 0;

		if (*p < '0' || *p > '9' || length <= last || length > TRAIN_LONGEST ||
		    (*end != '\0' && (*end != ',' || end[1] == '\0')))
			MU_FAIL(MU_ERR_USAGE,
				"--buckets %s: cannot read '%s': rising lengths from 1 to %d are "
				"needed, such as 8,16,24",
				t->buckets, p, TRAIN_LONGEST);
		if (t->n_lengths == TRAIN_MAX_LENGTHS)
			MU_FAIL(MU_ERR_USAGE, "--buckets %s: more than %d lengths", t->buckets,
				TRAIN_MAX_LENGTHS);
		t->lengths[t->n_lengths++] = length;
		p = *end ? end + 1 : end;
	}
	if (t->n_lengths == 0)
		MU_FAIL(MU_ERR_USAGE, "--buckets: a list of lengths is needed, such as 8,16,24");
out:
	return st;
}

enum mu_status mu_conf_text_settle(const struct mu_options *o, struct conf *v)
{
	enum mu_status st = MU_OK;
	v->text.lengths_given = v->text.seq_len > 0 || mu_options_given(o, "buckets");
	MU_TRY(read_lengths(&v->text));
out:
	return st;
}

size_t mu_conf_window(const struct conf *v, const struct mu_network *network)
{
	const struct conf_text *t = &v->text;
	const long positions = mu_conf_setting(v, "num-positions");

	if (t->lengths_given)
		return t->lengths[t->n_lengths - 1];
	return positions > 0 ? (size_t)positions : mu_shape_space(&network->shape, 0);
}

void mu_conf_vocabulary_text(const struct mu_vocabulary *v, char *text, size_t nbytes)
{
	snprintf(text, nbytes, "%zu %s, %016" PRIx64, mu_vocabulary_n(v) - 1,
		 mu_vocabulary_characters(v) ? "characters" : "words", mu_vocabulary_hash(v));
}

void mu_conf_vocabulary_path(const struct conf *v, char *text, size_t nbytes)
{
	if (v->text.vocabulary)
		snprintf(text, nbytes, "%s", v->text.vocabulary);
	else
		snprintf(text, nbytes, "%s-vocab.txt", v->model_prefix);
}
