/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cifar_pack: makes CIFAR-10's binary files from JPEG images in a folder or a tar file.
 * cifar_pack.h says how. Runs without MPI.
 */
#include "cifar_pack.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <muster/storage.h>

#include "../lib/arguments.h"
#include "../lib/folder.h"

struct values {
	const char *input, *output;
	long size, per_file, shuffle;
	bool resize, help;
};

#define AT(member) .offset = offsetof(struct values, member)

static const struct mu_option table[] = {
	{.name = "input",
	 .type = MU_OPTION_STRING,
	 AT(input),
	 .group = "Data set",
	 .help = "PATH  folder with train/CLASS/*.jpg and test/CLASS/*.jpg, or a tar file of such "
		 "a folder, also packed (.tar.gz, .tar.xz, ...)"},
	{.name = "output",
	 .type = MU_OPTION_STRING,
	 AT(output),
	 .group = "Data set",
	 .help = "DIR  folder for the files, made if it is not there; a set that is there is "
		 "replaced"},
	{.name = "size",
	 .type = MU_OPTION_INT,
	 AT(size),
	 .initial = "32",
	 .min = 1,
	 .max = 256,
	 .group = "Data set",
	 .help = "N  height and width of the images; trainer reads 32"},
	{.name = "resize",
	 .type = MU_OPTION_FLAG,
	 AT(resize),
	 .group = "Data set",
	 .help = "cut the middle square out of images of another size and scale it; without, they "
		 "are an error"},
	{.name = "per-file",
	 .type = MU_OPTION_INT,
	 AT(per_file),
	 .initial = "10000",
	 .min = 1,
	 .max = 100e6,
	 .group = "Data set",
	 .help = "N  images in each data_batch_*.bin"},
	{.name = "shuffle",
	 .type = MU_OPTION_INT,
	 AT(shuffle),
	 .initial = "0",
	 .min = -1,
	 .max = 2147483647,
	 .group = "Data set",
	 .help = "SEED  of the order of the images; -1: in order of class and file name"},
	{.name = "help", .type = MU_OPTION_FLAG, AT(help), .group = "Other", .help = "this text"},
};

static enum mu_status check_values(const struct values *v)
{
	enum mu_status st = MU_OK;

	if (!v->input || !*v->input)
		MU_FAIL(MU_ERR_USAGE, "--input PATH is missing: a folder or a tar file of images "
				      "(see --help)");
	if (!v->output || !*v->output)
		MU_FAIL(MU_ERR_USAGE,
			"--output DIR is missing: the folder to write to (see --help)");
out:
	return st;
}

/* ---- the job ---- */

bool pack_is_image(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

static void planes(uint8_t *out, const struct data_pixels *in)
{
	size_t n = in->w * in->h;

	for (size_t i = 0; i < n; i++) {
		for (size_t c = 0; c < 3; c++)
			out[c * n + i] = in->rgb[3 * i + c];
	}
}

enum mu_status pack_job_add(struct pack_job *job, const char *path, const uint8_t *bytes,
			    size_t nbytes, double done)
{
	enum mu_status st = MU_OK;
	struct data_pixels pixels;
	uint8_t *out;

	MU_TRY(data_jpeg_decode(job->jpeg, path, bytes, nbytes, &pixels));
	MU_TRY(pack_set_add(&job->set, path, &out));
	if (pixels.w == job->size && pixels.h == job->size)
		planes(out, &pixels);
	else if (job->resize)
		MU_TRY(pack_scale(out, job->size, &pixels));
	else
		MU_FAIL(MU_ERR_FORMAT,
			"%s: the image has %zu x %zu pixels, not %zu x %zu; --resize scales images",
			path, pixels.w, pixels.h, job->size, job->size);
	data_progress_tell(&job->progress, job->set.n, done);
out:
	return st;
}

static void print_counts(const struct pack_set *set)
{
	printf("%5s  %-24s %9s %9s\n", "label", "class", "train", "test");
	for (size_t i = 0; i < set->n_classes; i++)
		printf("%5zu  %-24s %9zu %9zu\n", i, mu_shown(set->classes[i]),
		       set->class_counts[i][PACK_TRAIN], set->class_counts[i][PACK_TEST]);
	printf("%5s  %-24s %9zu %9zu\n", "", "all", set->counts[PACK_TRAIN],
	       set->counts[PACK_TEST]);
}

static enum mu_status read_input(struct pack_job *job, const char *input)
{
	enum mu_status st = MU_OK;
	struct stat status;

	if (stat(input, &status) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", input, strerror(errno));
	data_progress_begin(&job->progress, "cifar_pack");
	if (S_ISDIR(status.st_mode))
		MU_TRY(pack_read_folder(job, input));
	else
		MU_TRY(pack_read_tar(job, input));
	MU_TRY(pack_set_sort(&job->set));
out:
	data_progress_end(&job->progress);
	return st;
}

static enum mu_status pack(const struct values *v)
{
	enum mu_status st = MU_OK;
	struct pack_job job = {.size = (size_t)v->size, .resize = v->resize};
	const struct pack_set *set = &job.set;
	size_t n_files;
	char text[MU_LEFT_OUT_BYTES];
	double start = mu_now();

	job.set.sample = 3 * job.size * job.size;
	MU_TRY(data_jpeg_new(&job.jpeg));
	MU_TRY(mu_folder_make(v->output));
	MU_TRY(data_folder_claim(v->output));
	MU_TRY(read_input(&job, v->input));
	MU_TRY(pack_set_write(set, v->output, (size_t)v->per_file, v->shuffle, &n_files));
	print_counts(set);
	if (*mu_left_out_text(&job.left_out, text, sizeof text))
		printf("cifar_pack: left out: %s; images are files whose names end in .jpg or "
		       ".jpeg\n",
		       text);
	if (set->n_classes > 10)
		printf("cifar_pack: more than 10 classes: train with --num-classes %zu\n",
		       set->n_classes);
	printf("cifar_pack: %zu image%s for training in %zu file%s and %zu for testing in %s, %.1f "
	       "s\n",
	       set->counts[PACK_TRAIN], MU_S(set->counts[PACK_TRAIN]),
	       n_files, MU_S(n_files), set->counts[PACK_TEST],
	       mu_shown(v->output), mu_now() - start);
out:
	pack_set_release(&job.set);
	data_jpeg_free(job.jpeg);
	return st;
}

int main(int argc, char **argv)
{
	enum mu_status st = MU_OK;
	struct values values;
	struct data_command command = {
		.tool = "cifar_pack",
		.table = table,
		.n_options = sizeof table / sizeof *table,
		.values = &values,
		.usage = "--input PATH --output DIR\n\n"
			 "Write JPEG images as CIFAR-10's binary files to DIR:\n"
			 "  data_batch_1.bin, data_batch_2.bin, ...  of the images under train/\n"
			 "  test_batch.bin                           of the images under test/\n"
			 "  batches.meta.txt                         the classes, one a line: "
			 "label 0 first\n"
			 "A record is a byte with the label, then the image, (3, N, N). Up to 256 "
			 "classes, in alphabetical\norder. The same images give the same files.\n",
	};
	bool done;

	MU_TRY(data_command_parse(&command, argc, argv, &done));
	if (done)
		goto out;
	MU_TRY(check_values(&values));
	MU_TRY(pack(&values));
out:
	return data_command_end(&command, st);
}
