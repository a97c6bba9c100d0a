/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 4 7 */
/*
 * The store of keys in a file: a store that loads goes on with the bits of the one that saved,
 * whatever kinds they are; wrong and damaged files are one error on every worker and change
 * nothing.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* unshare */
#endif
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <muster/storage.h>

#include "keys_job.h"

enum { LARGE = 20000, SMALL = 3, KEYS = 3, ALL = MU_KEYS_WEIGHTS | MU_KEYS_STATES };
static const char *const names[KEYS] = {"fc1_weight", "block/norm.a", ".half%"};
static const size_t sizes[KEYS] = {LARGE, SMALL, 70};
static float data[2][LARGE]; /* of the float32 keys */
static uint16_t half[70];
static float expected[2][LARGE];
static uint16_t expected_half[70];
static struct mu_array arrays[KEYS];
static struct mu_kv_item items[KEYS];

static const struct mu_kv_optimizer adam = {
	.optim = {.name = "adam", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .wd = 0.01},
	.schedule = {.lr = 0.1, .factor = 0.5, .n_steps = 2, .steps = {2, 4.5}},
	.rescale = 1,
	.multi_precision = true};

/* Worker 0's elements; the others' are zeros. */
static void fill(const struct mu_keys *keys, int seed)
{
	const float one = mu_keys_rank(keys) == 0 ? 1 : 0;

	for (size_t k = 0; k < KEYS; k++) {
		const struct mu_array all[KEYS] = {
			floats(data[0], LARGE), floats(data[1], SMALL), {half, 70, MU_FLOAT16}};

		arrays[k] = all[k];
		items[k] =
			(struct mu_kv_item){.name = names[k], .n_arrays = 1, .arrays = &arrays[k]};
		for (size_t i = 0; i < sizes[k]; i++) {
			const int x = (int)((i * 7 + (size_t)seed * 11 + k) % 29) - 14;

			if (k < 2)
				data[k][i] = one * (float)x / 8;
			else
				half[i] = (uint16_t)(one * (float)(0x3c00 + x)); /* near 1 */
		}
	}
}

static void train(struct mu_keys *keys, int from, int to)
{
	for (int step = from; step < to; step++) {
		fill(keys, step);
		must(mu_keys_push(keys, KEYS, items, 0));
	}
	must(mu_keys_pull(keys, KEYS, items, 0));
}

static void make(struct mu_keys *keys, int seed)
{
	fill(keys, seed);
	must(mu_keys_init(keys, KEYS, items));
}

static bool same_files(const char *a, const char *b)
{
	FILE *x = fopen(a, "rb"), *y = fopen(b, "rb");
	bool same = x && y;

	for (int c = 0; same && c != EOF;) {
		c = getc(x);
		same = c == getc(y);
	}
	if (x)
		fclose(x);
	if (y)
		fclose(y);
	return same;
}

static void run(const char *type, const struct mu_members *m, void (*worker)(struct mu_keys *))
{
	const struct mu_keys_config config = {.type = type, .members = m};
	struct mu_keys *keys = NULL;

	must(mu_keys_new(&keys, &config));
	if (m->role == MU_ROLE_SERVER) {
		must(mu_keys_serve(keys));
	} else {
		worker(keys);
		must(mu_keys_finish(keys));
	}
	mu_keys_free(keys);
	must(mu_barrier(world)); /* one file after the other */
}

/* ---- exact resumption ---- */

/* Push, save, push: on rank 0 alone, what the others have to meet. */
static void reference(struct mu_keys *keys)
{
	make(keys, 99);
	must(mu_keys_set_optimizer(keys, &adam));
	train(keys, 0, 3);
	must(mu_keys_save(keys, "keys-a.h5", ALL | MU_KEYS_OPTIMIZER));
	must(mu_keys_save(keys, "keys-w.h5", MU_KEYS_WEIGHTS));
	train(keys, 3, 6);
	memcpy(expected, data, sizeof data);
	memcpy(expected_half, half, sizeof half);
}

/* What was loaded, saved again, is the same file; and further steps have the same bits. */
static void check_resumed(struct mu_keys *keys, bool steps)
{
	must(mu_keys_save(keys, "keys-b.h5", ALL | MU_KEYS_OPTIMIZER));
	if (mu_keys_rank(keys) == 0)
		CHECK(same_files("keys-a.h5", "keys-b.h5"));
	if (!steps)
		return;
	train(keys, 3, 6);
	CHECK(memcmp(data[0], expected[0], LARGE * sizeof(float)) == 0);
	CHECK(memcmp(data[1], expected[1], SMALL * sizeof(float)) == 0);
	CHECK(memcmp(half, expected_half, sizeof half) == 0);
}

static void resume(struct mu_keys *keys)
{
	make(keys, 5);
	must(mu_keys_load(keys, "keys-a.h5", ALL | MU_KEYS_OPTIMIZER));
	check_resumed(keys, strstr(mu_keys_type(keys), "async") == NULL);
}

/* With an optimiser of the caller's, after steps of another run. */
static void resume_over(struct mu_keys *keys)
{
	make(keys, 6);
	must(mu_keys_set_optimizer(keys, &adam));
	train(keys, 20, 22);
	must(mu_keys_load(keys, "keys-a.h5", ALL));
	check_resumed(keys, true);
}

/* ---- wrong files ---- */

/* A copy of the first bytes of a file, one of them turned. */
static void copy(const char *from, const char *to, long nbytes, long turned)
{
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");

	for (long i = 0; in && out && i < nbytes; i++) {
		const int c = getc(in);

		if (c != EOF)
			putc(i == turned ? c ^ 0x40 : c, out);
	}
	if (in)
		fclose(in);
	if (out)
		fclose(out);
}

static void make_wrong_files(void)
{
	struct stat status;
	FILE *text = fopen("keys-text.h5", "w");

	CHECK(text && fputs("this is a text and no file of keys\n", text) >= 0);
	if (text)
		fclose(text);
	CHECK(stat("keys-a.h5", &status) == 0);
	copy("keys-a.h5", "keys-short.h5", (long)status.st_size / 2, -1);
	copy("keys-a.h5", "keys-bad.h5", (long)status.st_size, (long)status.st_size / 2);
}

static const struct {
	const char *path, *part;
	unsigned contents;
	enum mu_status status;
} wrong[] = {
	{"keys-none.h5", "keys-none.h5: cannot be opened", ALL, MU_ERR_IO},
	{"keys-text.h5", "keys-text.h5: is not an HDF5 file", ALL, MU_ERR_FORMAT},
	{"keys-short.h5", "keys-short.h5: damaged HDF5 file", ALL, MU_ERR_FORMAT},
	{"keys-bad.h5", "is damaged: its checksum is", ALL, MU_ERR_FORMAT},
	{"keys-w.h5", "keys-w.h5: holds no states", ALL, MU_ERR_FORMAT},
	{"keys-w.h5", "keys-w.h5: holds no optimizer", MU_KEYS_OPTIMIZER, MU_ERR_FORMAT},
	{"keys-a.h5", "no sum of MU_KEYS_WEIGHTS", 0, MU_ERR_ARGUMENT},
	{"keys-a.h5", "no sum of MU_KEYS_WEIGHTS", 8, MU_ERR_ARGUMENT},
	{"", "no name of a file", ALL, MU_ERR_ARGUMENT},
};

static void check_wrong(struct mu_keys *keys, const char *path, unsigned contents,
			enum mu_status status, const char *part)
{
	const bool all_know = contents == 0 || contents == 8;
	const bool first = mu_keys_rank(keys) == 0;

	fails(mu_keys_load(keys, path, contents), first || all_know ? status : MU_ERR_PEER, part);
}

/* A disk of worker 0's own that has room for one file. */
static bool open_small_disk(void)
{
	mkdir("keys-disk", 0777);
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", "keys-disk", "tmpfs", 0, "size=400k") == 0;
}

static void fill_disk(void)
{
	FILE *f = fopen("keys-disk/full", "w");

	while (f && putc(0, f) != EOF)
		;
	if (f)
		fclose(f);
}

/* HDF5's own part of a file of many keys is larger than what is free on the disk. */
static void save_many(void)
{
	enum { N = 500, FREE = 40 << 10 };
	const struct mu_keys_config config = {.type = "local", .members = &alone};
	struct mu_array array = floats(data[0], 1);
	struct mu_kv_item item = item_of(0, &array);
	struct mu_keys *keys = NULL;
	struct stat full;

	CHECK(stat("keys-disk/full", &full) == 0 &&
	      truncate("keys-disk/full", full.st_size - FREE) == 0);
	must(mu_keys_new(&keys, &config));
	for (item.key = 0; item.key < N; item.key++)
		must(mu_keys_init(keys, 1, &item));
	fails(mu_keys_save(keys, "keys-disk/many.h5", MU_KEYS_WEIGHTS), MU_ERR_IO, "No space left");
	must(mu_keys_finish(keys));
	mu_keys_free(keys);
}

static void full_disk(struct mu_keys *keys)
{
	const bool first = mu_keys_rank(keys) == 0;
	static const char path[] = "keys-disk/keys-b.h5";
	struct stat folder;
	int here = first && open_small_disk();

	must(mu_bcast(&here, sizeof here, 0, world));
	if (!here) {
		if (first)
			printf("not tested on a full disk: no right to mount one\n");
		return;
	}
	must(mu_keys_save(keys, path, ALL));
	train(keys, 31, 32);
	fails(mu_keys_save(keys, path, ALL), first ? MU_ERR_IO : MU_ERR_PEER, path);
	if (first)
		fill_disk();
	/* HDF5 itself cannot write: it must not crash in MPI_Finalize. */
	fails(mu_keys_save(keys, path, ALL), first ? MU_ERR_IO : MU_ERR_PEER,
	      first ? "b.h5: cannot be written: No space left" : path);
	if (first)
		save_many();
	must(mu_keys_load(keys, path, ALL));
	must(mu_keys_save(keys, "keys-c.h5", ALL));
	if (!first)
		return;
	CHECK(same_files(path, "keys-c.h5"));
	CHECK(unlink(path) == 0 && unlink("keys-disk/full") == 0 &&
	      stat("keys-disk", &folder) == 0);
	CHECK(rmdir("keys-disk") != 0 && umount("keys-disk") == 0 && rmdir("keys-disk") == 0);
}

static bool disk_is_due;

static void refused(struct mu_keys *keys)
{
	struct mu_kv_optimizer sgd = adam;
	struct mu_kv_item more;

	make(keys, 7);
	fails(mu_keys_save(keys, "keys-b.h5", ALL),
	      mu_keys_rank(keys) == 0 ? MU_ERR_ARGUMENT : MU_ERR_PEER, "no optimizer to save");
	check_wrong(keys, "keys-a.h5", ALL, MU_ERR_ARGUMENT, "after mu_keys_set_optimizer");
	sgd.optim.name = "sgd";
	must(mu_keys_set_optimizer(keys, &sgd));
	check_wrong(keys, "keys-a.h5", ALL, MU_ERR_ARGUMENT, "its rule is 'adam', and 'sgd'");
	must(mu_keys_set_optimizer(keys, &adam));
	train(keys, 30, 31);
	must(mu_keys_save(keys, "keys-b.h5", ALL));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		check_wrong(keys, wrong[i].path, wrong[i].contents, wrong[i].status, wrong[i].part);
	fails(mu_keys_save(keys, "no/such/folder/x.h5", ALL),
	      mu_keys_rank(keys) == 0 ? MU_ERR_IO : MU_ERR_PEER, "no/such/folder/x.h5");
	must(mu_keys_save(keys, "keys-c.h5", ALL));
	if (mu_keys_rank(keys) == 0) /* nothing has changed */
		CHECK(same_files("keys-b.h5", "keys-c.h5"));
	if (disk_is_due) {
		disk_is_due = false;
		full_disk(keys);
	}
	more = items[0];
	more.name = "fc2_weight";
	must(mu_keys_init(keys, 1, &more));
	check_wrong(keys, "keys-a.h5", ALL, MU_ERR_FORMAT, "holds no array \"weights/fc2_weight\"");
}

/* Other keys than the file's. */
static void others(struct mu_keys *keys)
{
	struct mu_array array = floats(data[0], SMALL);
	struct mu_kv_item item = {.name = names[0], .n_arrays = 1, .arrays = &array};

	must(mu_keys_init(keys, 1, &item));
	check_wrong(keys, "keys-a.h5", MU_KEYS_WEIGHTS, MU_ERR_FORMAT,
		    "array \"weights/fc1_weight\" has dimensions (20000); expected (3)");
}

static void numbers(struct mu_keys *keys)
{
	struct mu_array array = floats(data[0], SMALL);
	struct mu_kv_item item = item_of(12, &array);

	memset(data, 0, sizeof data);
	data[0][1] = mu_keys_rank(keys) == 0 ? 5 : 6;
	must(mu_keys_init(keys, 1, &item));
	check_wrong(keys, "keys-a.h5", MU_KEYS_WEIGHTS, MU_ERR_FORMAT,
		    "its sort of keys is 'names'");
	must(mu_keys_save(keys, "keys-n.h5", MU_KEYS_WEIGHTS));
	data[0][1] = 8;
	must(mu_keys_pushpull(keys, 1, &item, 0));
	must(mu_keys_load(keys, "keys-n.h5", MU_KEYS_WEIGHTS));
	must(mu_keys_pull(keys, 1, &item, 0));
	CHECK(data[0][0] == 0 && data[0][1] == 5);
}

/* A limit of file sizes below the first blocks: an error, and the old file stays. */
static void limited(void)
{
	static const rlim_t limits[] = {0, 4 << 10};
	const struct mu_keys_config config = {.type = "local", .members = &alone};
	struct mu_array array = floats(data[0], LARGE);
	struct mu_kv_item item = item_of(0, &array);
	struct mu_keys *keys = NULL;
	struct rlimit before, now;

	must(mu_keys_new(&keys, &config));
	must(mu_keys_init(keys, 1, &item));
	must(mu_keys_save(keys, "keys-l.h5", MU_KEYS_WEIGHTS));
	CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		now = before;
		now.rlim_cur = limits[i];
		CHECK(setrlimit(RLIMIT_FSIZE, &now) == 0);
		fails(mu_keys_save(keys, "keys-l.h5", MU_KEYS_WEIGHTS), MU_ERR_IO,
		      "keys-l.h5: cannot be written: File too large");
		CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
	}
	must(mu_keys_load(keys, "keys-l.h5", MU_KEYS_WEIGHTS));
	must(mu_keys_finish(keys));
	mu_keys_free(keys);
}

/* ---- pushes under way ---- */

enum { PUSHES = 20 };

/* Slow, so that the pushes of a worker wait in a row at the server. */
static enum mu_status add_slowly(void *context, int key, size_t from, size_t n,
				 const float *gradient, float *weights)
{
	(void)context;
	(void)key;
	(void)from;
	usleep(5000);
	for (size_t i = 0; i < n; i++)
		weights[i] += gradient[i];
	return MU_OK;
}

static const struct mu_kv_updater slow = {"slow", add_slowly, NULL};

/* A file has all pushes that began before it, other workers' too. */
static void flushed_worker(struct mu_keys *keys)
{
	struct mu_array array = floats(data[0], SMALL);
	struct mu_kv_item item = item_of(0, &array);
	const int workers = mu_keys_num_workers(keys);

	memset(data, 0, sizeof data);
	must(mu_keys_init(keys, 1, &item));
	must(mu_keys_set_updater(keys, "slow"));
	data[0][0] = 1;
	for (int i = 0; i < PUSHES && mu_keys_rank(keys) == workers - 1; i++)
		must(mu_keys_push(keys, 1, &item, 0));
	must(mu_keys_save(keys, "keys-f.h5", MU_KEYS_WEIGHTS));
	must(mu_keys_barrier(keys)); /* now all are in, whatever the file has */
	must(mu_keys_load(keys, "keys-f.h5", MU_KEYS_WEIGHTS));
	must(mu_keys_pull(keys, 1, &item, 0));
	CHECK(data[0][0] == PUSHES);
}

static void flushed(void)
{
	const struct mu_keys_config config = {
		.type = "dist_async", .members = &members, .updaters = &slow, .n_updaters = 1};
	struct mu_keys *keys = NULL;

	must(mu_keys_new(&keys, &config));
	if (members.role == MU_ROLE_SERVER) {
		must(mu_keys_serve(keys));
	} else {
		flushed_worker(keys);
		must(mu_keys_finish(keys));
	}
	mu_keys_free(keys);
	must(mu_barrier(world));
}

static void in_all_ways(const char *type, const struct mu_members *m)
{
	run(type, m, resume);
	if (strstr(type, "async"))
		return;
	run(type, m, resume_over);
	run(type, m, refused);
	run(type, m, others);
	run(type, m, numbers);
}

static void once(void)
{
	struct mu_members flat;

	if (rank == 0) {
		const struct mu_keys_config config = {.type = "local", .members = &alone};
		struct mu_keys *keys = NULL;

		must(mu_keys_new(&keys, &config));
		reference(keys);
		must(mu_keys_finish(keys));
		mu_keys_free(keys);
		make_wrong_files();
		limited();
	}
	must(mu_bcast(expected, sizeof expected, 0, world));
	must(mu_bcast(expected_half, sizeof expected_half, 0, world));
	if (size == 1)
		in_all_ways("local", &alone);
	must(mu_members_init(&flat, world, 0, MU_PLACEMENT_SPREAD));
	disk_is_due = true;
	in_all_ways("dist_sharded", &flat);
	mu_members_release(&flat);
}

static void each(void)
{
	in_all_ways("dist_sync", &members);
	in_all_ways("dist_async", &members);
	if (members.num_workers > 1)
		flushed();
}

int main(int argc, char **argv)
{
	unsetenv("MXNET_KVSTORE_BIGARRAY_BOUND");
	if (!mu_array_file_supported()) {
		printf("skipped: this build has no HDF5\n");
		return 77;
	}
	return run_tests(argc, argv, once, each);
}
