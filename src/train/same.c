/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons at the start of a job: see same.h. */
#include "same.h"

#include <string.h>
#include <unistd.h>

#include <muster/text.h>
#include <muster/tokens.h>

#include "checkpoint/checkpoint.h"
#include "storage/file.h"

/* ---- the program ---- */

struct program {
	uint64_t bytes, arguments; /* arguments: 0: none, and rank 0's are used */
	char host[64];
};

static enum mu_status describe_program(struct program *p, int argc, char *const argv[])
{
	enum mu_status st = MU_OK;

	*p = (struct program){.arguments = argc > 1 ? MU_HASH_START : 0};
	gethostname(p->host, sizeof p->host - 1);
	for (int i = 1; i < argc; i++)
		p->arguments = mu_hash(p->arguments, argv[i], strlen(argv[i]) + 1);
	MU_TRY(mu_file_hash("/proc/self/exe", &p->bytes));
out:
	return st;
}

static enum mu_status compare_programs(const struct program *all, int size)
{
	enum mu_status st = MU_OK;

	for (int i = 1; i < size; i++) {
		if (all[i].bytes != all[0].bytes)
			MU_FAIL(MU_ERR_USAGE,
				"rank %d (%.63s) runs another build of this program than rank 0 "
				"(%.63s): the same file is needed on every node",
				i, all[i].host, all[0].host);
		if (all[i].arguments && all[i].arguments != all[0].arguments)
			MU_FAIL(MU_ERR_USAGE,
				"rank %d (%.63s) was started with other options than rank 0 "
				"(%.63s): start all ranks with the same ones",
				i, all[i].host, all[0].host);
	}
out:
	return st;
}

enum mu_status mu_train_same_program(MPI_Comm comm, int argc, char *const argv[])
{
	enum mu_status st = MU_OK;
	struct program mine, *all = NULL;
	int rank, size;

	MU_TRY(mu_comm_rank(comm, &rank, &size));
	if (size == 1)
		goto out;
	st = describe_program(&mine, argc, argv);
	if (st == MU_OK)
		st = MU_ALLOC(all, (size_t)size, "programs of the ranks");
	MU_TRY(mu_agree(st, comm));
	MU_TRY(mu_allgather(&mine, all, sizeof mine, comm));
	MU_TRY(compare_programs(all, size));
out:
	mu_free(all);
	return st;
}

/* ---- the data ---- */

/* Where the data of a part are, for messages. */
static const char *place_of(const struct mu_engine *e, bool validation)
{
	const struct conf *v = e->conf;

	if (validation && v->data_val)
		return v->data_val;
	return v->data_train ? v->data_train : v->data_dir ? v->data_dir : "data";
}

enum mu_status mu_train_same_sizes(const struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	long n = (long)e->train->n, m = e->validate ? (long)e->validate->n : 0;
	long least[4] = {n, -n, m, -m};

	MU_TRY(mu_peers_reduce(e->members, least, 4, MPI_MIN));
	if (least[0] != -least[1] || least[2] != -least[3])
		MU_FAIL(MU_ERR_FORMAT,
			"%s: workers find %ld to %ld records for training, %ld to %ld for "
			"validation; there must be the same files on every node",
			place_of(e, false), least[0], -least[1], least[2], -least[3]);
out:
	return st;
}

/* What one worker sees. */
struct view {
	uint64_t network, vocabulary, tokenizer;
	struct part {
		uint64_t names, records, listing;
	} part[2]; /* by enum mu_input_part */
	char computed_by[96];
};

/* In the order in which they are compared: what explains the most comes first. */
static const struct {
	size_t at;
	const char *what;
	int part; /* -1: of no part of the data */
} items[] = {
	{offsetof(struct view, network), "another file of the network", -1},
	{offsetof(struct view, tokenizer), "another tokenizer.json", MU_INPUT_TRAIN},
	{offsetof(struct view, vocabulary), "another vocabulary", MU_INPUT_TRAIN},
	{offsetof(struct view, part[0].names), "other names of classes", MU_INPUT_TRAIN},
	{offsetof(struct view, part[0].records), "other records for training", MU_INPUT_TRAIN},
	{offsetof(struct view, part[0].listing),
	 "other labels, or names or sizes of files, for training", MU_INPUT_TRAIN},
	{offsetof(struct view, part[1].names), "other names of classes", MU_INPUT_VALIDATE},
	{offsetof(struct view, part[1].records), "other records for validation",
	 MU_INPUT_VALIDATE},
	{offsetof(struct view, part[1].listing),
	 "other labels, or names or sizes of files, for validation", MU_INPUT_VALIDATE},
};

static struct part describe_part(const struct mu_input *in)
{
	struct part p = {.names = MU_HASH_START,
			 .records = in->contents.records,
			 .listing = in->contents.listing};

	for (size_t i = 0; i < in->about.n_class_names; i++)
		p.names = mu_hash(p.names, in->about.class_names[i],
				  strlen(in->about.class_names[i]) + 1);
	return p;
}

static enum mu_status describe(const struct mu_engine *e, struct view *v)
{
	enum mu_status st = MU_OK;

	memset(v, 0, sizeof *v);
	v->network = e->network_bytes;
	if (e->train->about.vocabulary)
		v->vocabulary = mu_vocabulary_hash(e->train->about.vocabulary);
	if (e->train->about.tokenizer)
		MU_TRY(mu_tokenizer_hash(e->train->about.tokenizer, &v->tokenizer));
	v->part[MU_INPUT_TRAIN] = describe_part(e->train);
	if (e->validate)
		v->part[MU_INPUT_VALIDATE] = describe_part(e->validate);
	if (e->plan && !e->list->kind->memory) /* GPUs have numbers */
		mu_checkpoint_computed_by(e, v->computed_by, sizeof v->computed_by);
out:
	return st;
}

static bool same(const struct view *a, const struct view *b, size_t at)
{
	return memcmp((const char *)a + at, (const char *)b + at, sizeof(uint64_t)) == 0;
}

/* The lowest worker that differs from worker 0 in an item; 0: none does. */
static int find_other(const struct view *all, int n, size_t at)
{
	for (int w = 1; w < n; w++)
		if (!same(&all[w], &all[0], at))
			return w;
	return 0;
}

static enum mu_status compare(const struct mu_engine *e, const struct view *all, int n)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = e->members;
	char first[128], other[128];
	int w;

	mu_worker_name(m, 0, first, sizeof first);
	for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
		w = find_other(all, n, items[i].at);
		if (w == 0)
			continue;
		mu_worker_name(m, w, other, sizeof other);
		MU_FAIL(MU_ERR_FORMAT,
			"%s%s%s: %s has %s than %s; there must be the same files on every node",
			items[i].part < 0 ? e->conf->network
					  : place_of(e, items[i].part == MU_INPUT_VALIDATE),
			items[i].part < 0 ? "" : ", ", items[i].part < 0 ? "" : e->train->ops->name,
			other, items[i].what, first);
	}
	for (w = 1; w < n && m->index == 0; w++)
		if (strcmp(all[w].computed_by, all[0].computed_by) != 0) {
			mu_log_warn("%s computes by \"%s\" and %s by \"%s\": they round "
				    "otherwise",
				    mu_worker_name(m, w, other, sizeof other), all[w].computed_by,
				    first, all[0].computed_by);
			break;
		}
out:
	return st;
}

enum mu_status mu_train_same_data(const struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	struct view mine, *all = NULL;
	int n;

	if (mu_members_alone(e->members))
		goto out;
	MU_TRY(mu_peers_agree(e->members, describe(e, &mine)));
	MU_TRY(mu_peers_gather(e->members, &mine, sizeof mine, (void **)&all, &n));
	MU_TRY(compare(e, all, n));
out:
	mu_free(all);
	return st;
}

/* ---- layouts ---- */

enum mu_status mu_train_same_layouts(const struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = e->members;
	uint64_t mine = mu_engine_hash(e), *all = NULL;
	int n;

	MU_TRY(mu_peers_gather(m, &mine, sizeof mine, (void **)&all, &n));
	for (int w = 0; w < n; w++)
		if (all[w] != all[0])
			MU_FAIL(MU_ERR_UNSUPPORTED,
				"worker %d (rank %d) has another layout of parameters than "
				"worker 0: run on CPUs of one kind, or with --devices ref",
				w, mu_worker_rank(m, w));
out:
	mu_free(all);
	return st;
}
