/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits: writes the embedded data set, images of digits as if written by hand, under the file
 * names and in the format of MNIST. Nothing is read or copied: every image is drawn from strokes
 * (digits.h says how). Runs without MPI.
 */
#include "digits.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include <muster/storage.h>

#include "../lib/arguments.h"
#include "../lib/folder.h"

#define IMAGES_MAX 10e6 /* a set is held in memory: 8 GB */

struct values {
	const char *output, *preview;
	long seed, train, test;
	bool help;
};

#define AT(member) .offset = offsetof(struct values, member)

static const struct mu_option table[] = {
	{.name = "output",
	 .type = MU_OPTION_STRING,
	 AT(output),
	 .group = "Data set",
	 .help = "DIR  folder for the four files, made if it is not there; --out for short"},
	{.name = "train",
	 .type = MU_OPTION_INT,
	 AT(train),
	 .initial = "60000",
	 .min = 1,
	 .max = IMAGES_MAX,
	 .group = "Data set",
	 .help = "N  images for training"},
	{.name = "test",
	 .type = MU_OPTION_INT,
	 AT(test),
	 .initial = "10000",
	 .min = 1,
	 .max = IMAGES_MAX,
	 .group = "Data set",
	 .help = "N  images for testing"},
	{.name = "seed",
	 .type = MU_OPTION_INT,
	 AT(seed),
	 .initial = "0",
	 .min = 0,
	 .max = INFINITY,
	 .group = "Data set",
	 .help = "N  same seed: same images; another seed: others"},
	{.name = "preview",
	 .type = MU_OPTION_STRING,
	 AT(preview),
	 .group = "Other",
	 .help = "FILE.pgm  write a sheet of the first training images, one row per digit; the "
		 "data "
		 "set itself only if --output is given, too"},
	{.name = "help", .type = MU_OPTION_FLAG, AT(help), .group = "Other", .help = "this text"},
};

static enum mu_status check_values(const struct values *v)
{
	enum mu_status st = MU_OK;

	if (v->output && !*v->output)
		MU_FAIL(MU_ERR_USAGE, "--output: the name of the folder is empty");
	if (v->preview && !mu_stem(v->preview, ".pgm"))
		MU_FAIL(MU_ERR_USAGE,
			"--preview: \"%s\" does not end in .pgm, the format that is "
			"written",
			v->preview);
	if (!v->output && !v->preview)
		MU_FAIL(MU_ERR_USAGE, "nothing to do: give --output DIR, the folder to write to "
				      "(see --help)");
out:
	return st;
}

static enum mu_status write_set(struct digits_set *set, const char *folder)
{
	enum mu_status st = MU_OK;

	MU_TRY(digits_set_draw(set, isatty(STDERR_FILENO) ? stderr : NULL));
	MU_TRY(digits_set_write(set, folder));
out:
	return st;
}

static enum mu_status make_data(const struct values *v)
{
	enum mu_status st = MU_OK;
	uint64_t seed = (uint64_t)v->seed;
	struct digits_set train = {.name = "train", .number = 0, .seed = seed};
	struct digits_set test = {.name = "t10k", .number = 1, .seed = seed};
	double start = mu_now();

	train.n = (size_t)v->train;
	test.n = (size_t)v->test;
	if (v->output) {
		MU_TRY(mu_folder_make(v->output));
		MU_TRY(data_folder_claim(v->output));
	}
	MU_TRY(digits_set_init(&train));
	if (v->preview)
		MU_TRY(digits_set_preview(&train, v->preview));
	if (!v->output)
		goto out;
	MU_TRY(write_set(&train, v->output));
	digits_set_release(&train);
	MU_TRY(digits_set_init(&test));
	MU_TRY(write_set(&test, v->output));
	printf("digits: %ld image%s for training and %ld for testing in %s, seed %ld, %.1f s\n",
	       v->train, MU_S(v->train), v->test, mu_shown(v->output), v->seed, mu_now() - start);
out:
	digits_set_release(&train);
	digits_set_release(&test);
	return st;
}

int main(int argc, char **argv)
{
	enum mu_status st = MU_OK;
	struct values values;
	struct data_command command = {
		.tool = "digits",
		.table = table,
		.n_options = sizeof table / sizeof *table,
		.values = &values,
		.usage = "--output DIR\n\n"
			 "Draw images of digits as if written by hand, 28 x 28 pixels, and write "
			 "them to DIR:\n"
			 "  train-images-idx3-ubyte.gz  train-labels-idx1-ubyte.gz\n"
			 "  t10k-images-idx3-ubyte.gz   t10k-labels-idx1-ubyte.gz\n",
	};
	bool done;

	MU_TRY(data_command_parse(&command, argc, argv, &done));
	if (done)
		goto out;
	MU_TRY(check_values(&values));
	MU_TRY(make_data(&values));
out:
	return data_command_end(&command, st);
}
