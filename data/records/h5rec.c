/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h5rec: converts labelled images between RecordIO, HDF5, CIFAR's and IDX files, folders and tar
 * files. Encoded images stay as they are where the output takes them. Runs without MPI.
 */
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "../lib/arguments.h"
#include "../lib/progress.h"
#include "sink.h"
#include "../lib/tar.h"
#include "../lib/tar_source.h"

enum { WHERE_BYTES = 600 };

struct values {
	const char *encoding, *index;
	long quality, first, count;
	bool raw, renumber, help;
	bool has_encoding; /* --encoding was given */
};

#define ENCODING ".png"
#define AT(member) .offset = offsetof(struct values, member)

static const struct mu_option table[] = {
	{.name = "raw",
	 .type = MU_OPTION_FLAG,
	 AT(raw),
	 .group = "Output",
	 .help = "HDF5: decode images, which must all be of one size, and store their pixels"},
	{.name = "encoding",
	 .type = MU_OPTION_STRING,
	 AT(encoding),
	 .initial = ENCODING,
	 .choices = ".jpg|.png",
	 .group = "Output",
	 .help = "KIND  .jpg or .png, for pixels that go to .rec, .h5, folders and tar files; .png "
		 "loses nothing"},
	{.name = "quality",
	 .type = MU_OPTION_INT,
	 AT(quality),
	 .initial = "95",
	 .min = 1,
	 .max = 100,
	 .group = "Output",
	 .help = "N  of .jpg"},
	{.name = "renumber",
	 .type = MU_OPTION_FLAG,
	 AT(renumber),
	 .group = "Output",
	 .help = "ids are 0, 1, 2, ..., whatever they were: of a file whose records all have one "
		 "id"},
	{.name = "index",
	 .type = MU_OPTION_STRING,
	 AT(index),
	 .group = "Input",
	 .help = "PATHS  .idx files of .rec files, parted by ';'; none: X.idx beside X.rec if it "
		 "is there"},
	{.name = "first",
	 .type = MU_OPTION_INT,
	 AT(first),
	 .initial = "0",
	 .min = 0,
	 .max = 1e15,
	 .group = "Input",
	 .help = "N  leave the first N records out"},
	{.name = "count",
	 .type = MU_OPTION_INT,
	 AT(count),
	 .initial = "0",
	 .min = 0,
	 .max = 1e15,
	 .group = "Input",
	 .help = "N  convert N records only; 0: all"},
	{.name = "help", .type = MU_OPTION_FLAG, AT(help), .group = "Other", .help = "this text"},
};

static const struct mu_option_rule void_rows[] = {
	{.option = "encoding|quality",
	 .relation = MU_OPTION_EXCLUDES,
	 .other = "raw",
	 .why = "pixels are stored"},
	{.option = "quality",
	 .relation = MU_OPTION_EXCLUDES,
	 .other = "encoding",
	 .other_values = ".png",
	 .why = "it is of .jpg"},
};

static const struct mu_option_rules voids = {.of = void_rows,
					     .n = sizeof void_rows / sizeof *void_rows};

static const char usage[] =
	"INPUT OUTPUT\n\n"
	"Convert a set of labelled images. INPUT is one of\n"
	"  a.rec or a.rec;b.rec          RecordIO; several files are one\n"
	"  x.h5                          an HDF5 data file\n"
	"  data_batch_1.bin;...          CIFAR-10's or CIFAR-100's binary files\n"
	"  t10k-images-idx3-ubyte        IDX, plain or .gz, with t10k-labels-idx1-ubyte beside it\n"
	"  x.tar or x-{00..15}.tar       WebDataset: members 1.jpg, .jpeg or .png, and 1.cls\n"
	"  x.tar, x.tar.gz, ...          CLASS/FILE.jpg, .jpeg, .png in a tar file\n"
	"  a folder                      CLASS/FILE.jpg, .jpeg, .png in it\n"
	"and OUTPUT, by its name, x.rec (and x.idx), x.h5, x.bin, ...images-idx3-ubyte[.gz], "
	"x.tar[.gz] "
	"or a\nfolder, x/. Order and ids stay; folders and tar files name images by their "
	"ids,\nwhich must differ within a class.\n";

struct job {
	const struct values *values;
	struct data_progress progress;
	struct data_sink *sink;
	const char *output;
	size_t seen, n; /* records read and converted */
};

static bool is_wanted(const struct job *job, size_t i)
{
	size_t first = (size_t)job->values->first, count = (size_t)job->values->count;

	return i >= first && (!count || i - first < count);
}

static enum mu_status open_sink(struct job *job, const struct mu_records_info *info, bool tar)
{
	const struct values *v = job->values;
	char text[MU_LEFT_OUT_BYTES];
	struct data_sink_config config = {
		.creator = "h5rec",
		.source = *info,
		.raw = v->raw,
		.encoding = {.png = strcmp(v->encoding, ".png") == 0, .quality = (int)v->quality},
	};

	if (*mu_left_out_text(&info->left_out, text, sizeof text))
		fprintf(stderr, "h5rec: left out: %s; images are .jpg, .jpeg and .png files %s\n",
			text, tar ? "with their .cls files" : "in folders of classes");
	if (info->kind == MU_RECORD_ENCODED && !v->raw && v->has_encoding)
		fprintf(stderr,
			"h5rec: warning: --encoding %s has no effect: the images are encoded "
			"already, and stay as they are\n",
			v->encoding);
	return data_sink_open(&job->sink, job->output, &config);
}

static enum mu_status take(void *context, const struct mu_record *record, const char *where,
			   double done)
{
	enum mu_status st = MU_OK;
	struct job *job = context;
	struct mu_record copy;

	if (!is_wanted(job, job->seen++))
		goto out;
	copy = *record;
	if (job->values->renumber)
		copy.id = job->n;
	MU_TRY(data_sink_add(job->sink, &copy, where));
	job->n++;
	data_progress_tell(&job->progress, job->n, done);
out:
	return st;
}

static enum mu_status convert_records(struct job *job, const char *input)
{
	enum mu_status st = MU_OK;
	struct mu_records *records = NULL;
	struct mu_records_config config = {.indexes = job->values->index};
	struct mu_records_info info;
	struct mu_record_buffer buffer = {0};
	struct mu_record record;
	char where[WHERE_BYTES];
	uint32_t crc = 0;

	MU_TRY(mu_records_open(&records, input, &config));
	mu_records_info(records, &info);
	MU_TRY(open_sink(job, &info, !info.separate));
	for (size_t i = 0; i < info.n; i++) {
		if (!is_wanted(job, i)) {
			job->seen++;
			continue;
		}
		buffer.ahead = info.n - i - 1;
		MU_TRY(mu_records_read(records, i, &buffer, &record));
		crc = (uint32_t)crc32_z(crc, record.data, record.n);
		MU_TRY(take(job, &record, mu_records_where(records, i, where, sizeof where),
			    (double)(i + 1) / (double)info.n));
	}
	MU_TRY(mu_records_unchanged(records));
	if (job->n == info.n) { /* the sum is that of all images */
		st = mu_records_check_sum(records, crc);
		if (st != MU_OK)
			mu_trace_prefix("%s: ", input);
		MU_TRY(st);
	}
	st = data_sink_finish(job->sink, true); /* class names belong to records */
	job->sink = NULL;
out:
	data_sink_finish(job->sink, false);
	job->sink = NULL;
	mu_record_buffer_release(&buffer);
	mu_records_close(records);
	return st;
}

static enum mu_status convert_tar(struct job *job, const char *input)
{
	enum mu_status st = MU_OK;
	struct data_tar_source *tar = NULL;
	struct mu_records_info info;

	MU_TRY(data_tar_source_open(&tar, input));
	data_tar_source_info(tar, &info);
	MU_TRY(open_sink(job, &info, false));
	MU_TRY(data_tar_source_read(tar, take, job));
	st = data_sink_finish(job->sink, true);
	job->sink = NULL;
out:
	data_sink_finish(job->sink, false);
	job->sink = NULL;
	data_tar_source_close(tar);
	return st;
}

/* By the name: packed tar files have many first bytes. x.train.tar.gz is one, x.target.rec is not.
 */
static bool is_tar(const char *path)
{
	const char *slash = strrchr(path, '/');

	for (const char *t = strstr(slash ? slash : path, ".t"); t; t = strstr(t + 1, ".t"))
		if (strcmp(t, ".tar") == 0 || strncmp(t, ".tar.", 5) == 0 ||
		    strcmp(t, ".tgz") == 0 || strcmp(t, ".txz") == 0 || strcmp(t, ".tbz2") == 0)
			return true;
	return false;
}

static bool note_class(void *context, const char *name, bool folder)
{
	bool *found = context;

	*found |= !folder && mu_stem(name, ".cls") > 0;
	return false;
}

/* Has the tar file classes as members (.cls), not as folders? Several as one have. */
static bool is_webdataset(const char *path)
{
	bool found = false;
	const struct data_tar_visitor visitor = {.context = &found, .wants = note_class};
	struct mu_records *records = NULL;
	struct stat status;

	if (stat(path, &status) != 0)
		return strpbrk(path, ";{") != NULL;
	/* A build without libarchive reads these alone. */
	if (data_tar_read(path, &visitor) == MU_ERR_UNSUPPORTED)
		found = mu_records_open(&records, path, NULL) == MU_OK;
	mu_records_close(records);
	mu_trace_clear();
	return found;
}

static enum mu_status convert(const struct values *v, const char *input, const char *output)
{
	enum mu_status st = MU_OK;
	struct job job = {.values = v, .output = output};
	struct stat status;
	bool folder = stat(input, &status) == 0 && S_ISDIR(status.st_mode);
	double start = mu_now();

	data_progress_begin(&job.progress, "h5rec");
	if (!folder && is_tar(input) && !is_webdataset(input))
		MU_TRY(convert_tar(&job, input));
	else
		MU_TRY(convert_records(&job, input));
out:
	data_progress_end(&job.progress);
	if (st == MU_OK)
		printf("h5rec: %zu image%s of %s in %s, %.1f s\n", job.n, MU_S(job.n),
		       mu_shown(input), mu_shown(output), mu_now() - start);
	return st;
}

int main(int argc, char **argv)
{
	enum mu_status st = MU_OK;
	struct values values;
	struct data_command command = {
		.tool = "h5rec",
		.table = table,
		.n_options = sizeof table / sizeof *table,
		.voids = &voids,
		.values = &values,
		.usage = usage,
		.n_words = 2,
		.noted = "encoding",
	};
	bool done;

	MU_TRY(data_command_parse(&command, argc, argv, &done));
	if (done)
		goto out;
	MU_TRY(data_command_watch(&command, command.words[1]));
	values.has_encoding = command.is_noted;
	MU_TRY(convert(&values, command.words[0], command.words[1]));
out:
	return data_command_end(&command, st);
}
