/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See cache.h. The memory of a worker holds its share of the records, [n r / L, n (r + 1) / L) for
 * the r-th of L workers of the node: a table, the labels, the bytes. Its size must be known before
 * anything is read: mu_records_bound gives an upper bound.
 */
#include <string.h>

#include "cache.h"

struct entry {
	size_t at, n; /* place of its bytes within the share */
	uint64_t id, id2;
	size_t first_label, n_labels;
	bool here;
};

/* Records [first, end) of one worker. */
struct share {
	size_t first, end;
	struct entry *entries;
	float *labels;
	uint8_t *bytes;
};

struct mu_cache {
	struct mu_window *window;
	size_t n_shares;
	struct share *shares; /* in worker order */
};

static size_t share_begin(size_t n, size_t share, size_t n_shares)
{
	return n / n_shares * share + n % n_shares * share / n_shares;
}

static size_t label_width(const struct mu_records *records)
{
	struct mu_records_info info;

	mu_records_info(records, &info);
	return info.label_width;
}

static size_t segment_bytes(const struct mu_records *records, size_t first, size_t end)
{
	size_t n = (end - first) * (sizeof(struct entry) + label_width(records) * sizeof(float));

	for (size_t i = first; i < end; i++)
		n += mu_records_bound(records, i);
	return n;
}

/* Set the addresses of the shares of the node's workers. */
static enum mu_status find_shares(struct mu_cache *c, size_t n, size_t width,
				  const struct mu_topology *t)
{
	enum mu_status st = MU_OK;

	c->n_shares = (size_t)t->node_num_workers;
	MU_TRY(MU_ALLOC(c->shares, c->n_shares, "shares of a cache"));
	for (size_t k = 0; k < c->n_shares; k++) {
		struct share *s = &c->shares[k];
		char *at = mu_window_of(c->window, t->worker_slots[k]);

		s->first = share_begin(n, k, c->n_shares);
		s->end = share_begin(n, k + 1, c->n_shares);
		s->entries = (void *)at;
		at += (s->end - s->first) * sizeof *s->entries;
		s->labels = (void *)at;
		at += (s->end - s->first) * width * sizeof *s->labels;
		s->bytes = (void *)at;
	}
out:
	return st;
}

/* Records that cannot be read, or that have grown, are left to the files. nbytes: size of the
 * segment. */
static void fill(struct share *s, const struct mu_records *records, size_t width, size_t nbytes)
{
	struct mu_record_buffer buffer = {0};
	size_t at = 0, all = nbytes - (size_t)((char *)s->bytes - (char *)s->entries);

	for (size_t i = s->first; i < s->end; i++) {
		struct entry *e = &s->entries[i - s->first];
		const size_t room = mu_records_bound(records, i);
		struct mu_record r;

		if (room > all - at) /* an image file in a folder has grown */
			continue;
		e->at = at;
		at += room;
		buffer.ahead = s->end - i - 1;
		if (mu_records_read(records, i, &buffer, &r) != MU_OK) {
			mu_trace_clear();
			continue;
		}
		if (r.n > room || r.n_labels > width)
			continue;
		e->n = r.n;
		e->id = r.id;
		e->id2 = r.id2;
		e->n_labels = r.n_labels;
		e->first_label = (i - s->first) * width;
		memcpy(s->bytes + e->at, r.data, r.n);
		memcpy(s->labels + e->first_label, r.labels, r.n_labels * sizeof *r.labels);
		e->here = true;
	}
	mu_record_buffer_release(&buffer);
}

/* window: this worker's part of it has nbytes. */
struct room {
	struct mu_window *window;
	size_t nbytes;
};

static enum mu_status make(struct mu_cache **out, const struct mu_records *records, size_t n,
			   const struct mu_topology *t, const struct room *room)
{
	enum mu_status st = MU_OK;
	struct mu_cache *c = NULL;

	MU_TRY(MU_ALLOC(c, 1, "cache of records"));
	c->window = room->window;
	MU_TRY(find_shares(c, n, label_width(records), t));
	fill(&c->shares[t->node_worker], records, label_width(records), room->nbytes);
	*out = c;
	c = NULL;
out:
	if (c)
		mu_free(c->shares);
	mu_free(c);
	return st;
}

enum mu_status mu_cache_open(struct mu_cache **out, const struct mu_records *records, size_t n,
			     const struct mu_topology *t, size_t *bytes)
{
	enum mu_status st = MU_OK, made = MU_OK;
	struct mu_window *window = NULL;
	const size_t share = (size_t)t->node_worker, shares = (size_t)t->node_num_workers;
	size_t mine = 0;
	double all;

	*out = NULL;
	*bytes = 0;
	if (records)
		mine = segment_bytes(records, share_begin(n, share, shares),
				     share_begin(n, share + 1, shares));
	MU_TRY(mu_window_open(&window, t, mine));
	if (!window)
		goto out;
	if (records)
		made = make(out, records, n, t, &(struct room){window, mine});
	/* Workers may finish reading at very different times. */
	MU_TRY(mu_meet(t->node));
	MU_TRY(mu_agree(made, t->node));
	all = (double)mine;
	MU_TRY(mu_allreduce_double(&all, 1, MPI_SUM, t->node));
	*bytes = (size_t)all;
	if (*out)
		window = NULL;
out:
	if (st != MU_OK && *out) {
		(*out)->window = NULL;
		mu_cache_close(*out);
		*out = NULL;
	}
	mu_window_close(window);
	return st;
}

void mu_cache_close(struct mu_cache *c)
{
	if (!c)
		return;
	mu_window_close(c->window);
	mu_free(c->shares);
	mu_free(c);
}

bool mu_cache_read(const struct mu_cache *c, size_t i, struct mu_record *out)
{
	const struct share *s = c->shares;
	const struct entry *e;

	while (i >= s->end)
		s++;
	e = &s->entries[i - s->first];
	if (!e->here)
		return false;
	*out = (struct mu_record){
		.data = s->bytes + e->at,
		.n = e->n,
		.id = e->id,
		.id2 = e->id2,
		.n_labels = e->n_labels,
		.labels = s->labels + e->first_label,
	};
	return true;
}
