/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validation on a part of the training records: mu_input_config.held_out. Which ones depends on
 * their number alone, not on the seed, so that runs with several seeds validate on the same.
 */
#include "reader.h"

/* Writes the numbers of the records that are, or are not, held out, ascending. */
static void choose(struct mu_input *in, const uint32_t *shuffled, size_t held, uint32_t *marks)
{
	const bool wanted = in->config.part == MU_INPUT_VALIDATE;
	size_t n = 0;

	for (size_t i = 0; i < in->n; i++)
		marks[shuffled[i]] = i < held;
	for (size_t i = 0; i < in->n; i++)
		if ((marks[i] != 0) == wanted)
			in->records[n++] = (uint32_t)i;
	in->n = n;
}

enum mu_status mu_input_hold_out(struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const struct mu_random key = {.purpose = MU_RANDOM_HELD_OUT};
	const size_t held = (size_t)(in->config.held_out * (double)in->n + 0.5);
	uint32_t *shuffled = NULL, *marks = NULL;

	if (in->groups)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s input: records of several lengths are not divided",
			in->ops->name);
	if (held == 0 || held >= in->n)
		MU_FAIL(MU_ERR_USAGE,
			"a share of %g held out for validation is %zu of %zu record%s; both parts "
			"need some",
			in->config.held_out, held, in->n, MU_S(in->n));
	MU_TRY(MU_ALLOC(shuffled, in->n, "records"));
	MU_TRY(MU_ALLOC(marks, in->n, "records"));
	MU_TRY(MU_ALLOC(in->records, in->n, "records"));
	mu_random_permutation(&key, shuffled, in->n);
	choose(in, shuffled, held, marks);
out:
	mu_free(shuffled);
	mu_free(marks);
	return st;
}
