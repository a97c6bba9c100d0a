/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the data are: mu_input_look. Data in memory, and files of up to WHOLE_BYTES, are hashed
 * whole. Of larger files SOME_RECORDS records are, or fewer large ones, at equal distances: enough
 * to tell other data, not enough to find one changed record. How many depends on the data alone, so
 * that all ranks and later runs choose the same ones.
 */
#include <math.h>

#include "reader.h"

#define WHOLE_BYTES ((double)(1 << 28))
#define SOME_BYTES ((double)(1 << 26))
enum {
	WHOLE_RECORDS = 1 << 18, /* a read each */
	WHOLE_FILES = 1 << 14,   /* records that are files of their own */
	SOME_RECORDS = 1 << 12,
	MEASURED = 64, /* records, for their mean size */
};

static size_t number(const struct mu_input *in, size_t i)
{
	return in->records ? in->records[i] : i;
}

/* Record i of m, at equal distances. */
static size_t place(const struct mu_input *in, size_t i, size_t m)
{
	return number(in, (size_t)((double)i * ((double)in->n / (double)m)));
}

static double mean_bytes(const struct mu_input *in)
{
	const size_t m = in->n < MEASURED ? in->n : MEASURED;
	double sum = 0;

	for (size_t i = 0; i < m; i++)
		sum += (double)in->ops->bound(in, place(in, i, m));
	return sum / (double)m;
}

/* A power of 2, so that a slightly other mean size changes nothing. */
static size_t choose(const struct mu_input *in)
{
	const size_t most = in->about.separate ? WHOLE_FILES : WHOLE_RECORDS;
	double mean, some;

	if (!in->ops->bound || in->about.in_memory)
		return in->n;
	mean = mean_bytes(in);
	if (in->n <= most && mean * (double)in->n <= WHOLE_BYTES)
		return in->n;
	some = mean > 0 ? exp2(floor(log2(SOME_BYTES / mean))) : SOME_RECORDS;
	some = some < 1 ? 1 : some > SOME_RECORDS ? SOME_RECORDS : some;
	return (double)in->n < some ? in->n : (size_t)some;
}

enum mu_status mu_input_look(struct mu_input *in)
{
	enum mu_status st = MU_OK;
	struct mu_input_contents c = {
		.records = MU_HASH_START, .listing = MU_HASH_START, .times = MU_HASH_START};

	if (!in->ops->hash)
		goto out;
	c.n = in->n;
	c.hashed = choose(in);
	for (size_t i = 0; i < c.hashed; i++) {
		struct mu_trace *before = mu_trace_detach();

		/* A bad record changes nothing: training reports it, or skips it. */
		if (in->ops->hash(in, in->thread, place(in, i, c.hashed), &c.records) != MU_OK)
			mu_trace_clear();
		mu_trace_attach(before);
	}
	if (in->ops->hash_files)
		in->ops->hash_files(in, &c.listing, &c.times);
	in->contents = c;
out:
	return st;
}
