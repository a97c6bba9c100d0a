/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes to an owner and what it answers, by coding.
 */
#include <string.h>

#include "owner.h"

bool mu_coding_is_push(enum mu_coding coding)
{
	return coding == MU_CODING_DENSE || coding == MU_CODING_2BIT || coding == MU_CODING_1BIT ||
	       coding == MU_CODING_ROWS;
}

static void read_all(const struct mu_owned *p, void *out)
{
	mu_dtype_from_float(p->dtype, out, p->weights, p->n);
}

size_t mu_row_in_run(uint64_t row, size_t row_length, size_t from, size_t n, size_t *offset)
{
	size_t a = (size_t)row * row_length;
	size_t b = a + row_length;

	*offset = a > from ? a - from : 0;
	if (a < from)
		a = from;
	if (b > from + n)
		b = from + n;
	return a < b ? b - a : 0;
}

static size_t rows_bytes(const struct mu_owned *p, const uint64_t *rows, size_t n_rows,
			 size_t row_length)
{
	size_t n = 0, at;

	for (size_t i = 0; i < n_rows; i++)
		n += mu_row_in_run(rows[i], row_length, p->from, p->n, &at);
	return n * mu_dtype_bytes(p->dtype);
}

void mu_coding_expand(const struct mu_owned *p, const void *data, size_t n_rows, size_t row_length,
		      float *out)
{
	const uint64_t *rows = data;
	const char *values = (const char *)(rows + n_rows);
	float block[MU_KEYS_BLOCK];

	memset(out, 0, p->n * sizeof *out);
	for (size_t i = 0; i < n_rows; i++) {
		size_t at;
		size_t n = mu_row_in_run(rows[i], row_length, p->from, p->n, &at);

		for (size_t m; n > 0; n -= m, at += m) {
			m = n < MU_KEYS_BLOCK ? n : MU_KEYS_BLOCK;
			mu_dtype_to_float(p->dtype, block, values, m);
			values += m * mu_dtype_bytes(p->dtype);
			for (size_t e = 0; e < m; e++)
				out[at + e] += block[e];
		}
	}
}

static void read_rows(const struct mu_owned *p, const uint64_t *rows, size_t n_rows,
		      size_t row_length, void *out)
{
	char *to = out;

	for (size_t i = 0; i < n_rows; i++) {
		size_t at;
		size_t n = mu_row_in_run(rows[i], row_length, p->from, p->n, &at);

		mu_dtype_from_float(p->dtype, to, p->weights + at, n);
		to += n * mu_dtype_bytes(p->dtype);
	}
}

static enum mu_status find_state(const struct mu_owned *p, size_t i, float **state)
{
	enum mu_status st = MU_OK;
	const char *name;
	size_t n;

	*state = p->optim ? mu_optim_state(p->optim, (int)i, &name, &n) : NULL;
	if (!*state)
		MU_FAIL(MU_ERR_ARGUMENT, "key %s has no state number %zu",
			mu_key_text(p->key, p->name).text, i);
out:
	return st;
}

enum mu_status mu_coding_put(struct mu_owner *o, struct mu_owned *p, const struct mu_transfer *x)
{
	enum mu_status st = MU_OK;
	uint64_t updates;
	float *state;

	if (x->coding == MU_CODING_VALUE_PUT) {
		mu_dtype_to_float(p->dtype, p->weights, x->data, p->n);
	} else if (x->coding == MU_CODING_STATE_PUT) {
		MU_TRY(find_state(p, x->n_rows, &state));
		memcpy(state, x->data, p->n * sizeof *state);
	} else if (x->coding == MU_CODING_UPDATES_PUT) {
		memcpy(&updates, x->data, sizeof updates);
		mu_owner_set_updates(p, updates);
	} else if (x->coding == MU_CODING_WEIGHTS_PUT) {
		mu_owner_set_weights(o, p, x->data);
	} else if (x->coding == MU_CODING_MULTIPLIERS_PUT) {
		p->has_multipliers = true;
		memcpy(p->multipliers, x->data, sizeof p->multipliers);
		MU_TRY(mu_owner_renew(o, p));
	}
out:
	return st;
}

size_t mu_coding_answer_bytes(const struct mu_owned *p, const struct mu_transfer *x)
{
	switch (x->coding) {
	case MU_CODING_ROW_IDS: return rows_bytes(p, x->data, x->n_rows, x->row_length);
	case MU_CODING_STATE_GET:
	case MU_CODING_WEIGHTS_GET: return p->n * sizeof(float);
	case MU_CODING_UPDATES_GET: return sizeof p->updates;
	case MU_CODING_ROUNDS_GET: return sizeof p->rounds;
	default: return p->n * mu_dtype_bytes(p->dtype);
	}
}

enum mu_status mu_coding_answer(const struct mu_owned *p, const struct mu_transfer *x, void *out)
{
	enum mu_status st = MU_OK;
	float *state;

	switch (x->coding) {
	case MU_CODING_ROW_IDS: read_rows(p, x->data, x->n_rows, x->row_length, out); break;
	case MU_CODING_STATE_GET:
		MU_TRY(find_state(p, x->n_rows, &state));
		memcpy(out, state, p->n * sizeof *state);
		break;
	case MU_CODING_WEIGHTS_GET: memcpy(out, p->weights, p->n * sizeof *p->weights); break;
	case MU_CODING_ROUNDS_GET: memcpy(out, &p->rounds, sizeof p->rounds); break;
	case MU_CODING_UPDATES_GET: memcpy(out, &p->updates, sizeof p->updates); break;
	default: read_all(p, out); break;
	}
out:
	return st;
}
