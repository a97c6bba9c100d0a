/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recinfo: reads every record of a set of labelled images, says what is wrong with it and what it
 * holds. Runs without MPI.
 */
#include <muster/records.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "checkpoint_info.h"
#include "../lib/arguments.h"
#include "../lib/image.h"
#include "../lib/progress.h"

enum { WHERE_BYTES = 600, LABELS_MAX = 100000, BAR = 40, NAME_BYTES = 40 };

struct values {
	const char *index;
	long classes, label_width, show;
	bool no_decode, help;
};

#define AT(member) .offset = offsetof(struct values, member)

static const struct mu_option table[] = {
	{.name = "num-classes",
	 .type = MU_OPTION_INT,
	 AT(classes),
	 .initial = "0",
	 .min = 0,
	 .max = LABELS_MAX,
	 .group = "What must be",
	 .help = "N  labels must be whole numbers below N; 0: anything"},
	{.name = "label-width",
	 .type = MU_OPTION_INT,
	 AT(label_width),
	 .initial = "0",
	 .min = 0,
	 .max = 1e9,
	 .group = "What must be",
	 .help = "N  labels of every record; 0: any number"},
	{.name = "index",
	 .type = MU_OPTION_STRING,
	 AT(index),
	 .group = "What must be",
	 .help = "PATHS  .idx files of .rec files, parted by ';'; none: X.idx beside X.rec if it "
		 "is there"},
	{.name = "no-decode",
	 .type = MU_OPTION_FLAG,
	 AT(no_decode),
	 .group = "Work",
	 .help = "do not decode the images; RecordIO files may then hold anything"},
	{.name = "show",
	 .type = MU_OPTION_INT,
	 AT(show),
	 .initial = "10",
	 .min = 0,
	 .max = 1e9,
	 .group = "Work",
	 .help = "N  errors that are printed; all are counted"},
	{.name = "help", .type = MU_OPTION_FLAG, AT(help), .group = "Other", .help = "this text"},
};

struct range {
	double min, max, sum;
	size_t n;
};

struct job {
	const struct values *values;
	const struct mu_records *records;
	struct mu_records_info info;
	struct data_codec codec;
	struct data_progress progress;
	size_t errors;
	struct range sizes, widths, heights;
	size_t jpeg, png;
	uint32_t crc;
	uint64_t *ids;             /* info.n; owned */
	size_t labels[LABELS_MAX]; /* records of each class */
	size_t other_labels;       /* of records that are in none of these */
	size_t no_class;           /* records whose only label is no whole number from 0 on */
	char first[WHERE_BYTES];   /* of these */
};

static void add(struct range *r, double value)
{
	r->min = r->n && r->min < value ? r->min : value;
	r->max = r->n && r->max > value ? r->max : value;
	r->sum += value;
	r->n++;
}

static void print_range(const char *what, const struct range *r)
{
	if (r->n)
		printf("%s%.0f to %.0f, mean %.1f\n", what, r->min, r->max, r->sum / (double)r->n);
}

/* Count the error of the trace and print it. */
static void report_error(struct job *job)
{
	data_progress_end(&job->progress);
	if (job->errors++ < (size_t)job->values->show)
		fprintf(stderr, "recinfo: %s\n", mu_trace_message());
	mu_trace_clear();
}

static enum mu_status check_image(struct job *job, size_t i, const struct mu_record *record)
{
	enum mu_status st = MU_OK;
	char where[WHERE_BYTES];
	struct data_pixels pixels;
	enum mu_record_encoding encoding = mu_record_encoding(record->data, record->n);

	if (job->info.kind == MU_RECORD_RAW)
		goto out;
	job->jpeg += encoding == MU_RECORD_JPEG;
	job->png += encoding == MU_RECORD_PNG;
	if (job->values->no_decode)
		goto out;
	MU_TRY(data_decode(&job->codec, mu_records_where(job->records, i, where, sizeof where),
			   record->data, record->n, &pixels));
	add(&job->widths, (double)job->codec.w);
	add(&job->heights, (double)job->codec.h);
out:
	return st;
}

/* No network learns from a label that is no finite number. */
static enum mu_status check_labels(const struct mu_record *record, const char *where)
{
	enum mu_status st = MU_OK;

	for (size_t j = 0; j < record->n_labels; j++)
		if (!isfinite(record->labels[j]))
			MU_FAIL(MU_ERR_FORMAT, "%s: has label %g, which is no number", where,
				(double)record->labels[j]);
out:
	return st;
}

static void count_label(struct job *job, const struct mu_record *record, const char *where)
{
	const float label = record->labels[0];
	const bool is_class = label >= 0 && label == floorf(label);

	if (is_class && label < LABELS_MAX)
		job->labels[(size_t)label]++;
	else
		job->other_labels++;
	/* Several labels of a record may be anything. */
	if (!is_class && record->n_labels == 1 && job->no_class++ == 0)
		snprintf(job->first, sizeof job->first, "%g of %.500s", (double)label, where);
}

static void print_end(const struct job *job)
{
	const size_t n = job->no_class;

	if (n == 0)
		printf("no errors\n");
	else
		printf("nothing is damaged; %zu label%s no number of a class, the first is %s: "
		       "training refuses such\n",
		       n, n == 1 ? " is" : "s are", mu_shown(job->first));
}

/* What the machine lacks is no error of a record. */
static enum mu_status count_error(struct job *job, enum mu_status st)
{
	if (st == MU_ERR_MEMORY) {
		data_progress_end(&job->progress);
		return st;
	}
	if (st != MU_OK)
		report_error(job);
	return MU_OK;
}

static enum mu_status check_record(struct job *job, size_t i, struct mu_record_buffer *buffer)
{
	enum mu_status st = MU_OK;
	struct mu_record record;
	char where[WHERE_BYTES];

	job->ids[i] = UINT64_MAX;
	buffer->ahead = job->info.n - i - 1;
	st = mu_records_read(job->records, i, buffer, &record);
	if (st != MU_OK)
		return count_error(job, st);
	job->ids[i] = record.id;
	job->crc = (uint32_t)crc32_z(job->crc, record.data, record.n);
	add(&job->sizes, (double)record.n);
	mu_records_where(job->records, i, where, sizeof where);
	count_label(job, &record, where);
	MU_TRY(count_error(job, check_labels(&record, where)));
	MU_TRY(count_error(job, check_image(job, i, &record)));
out:
	return st;
}

static int compare_ids(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void check_ids(struct job *job)
{
	size_t n = job->info.n, twice = 0;
	uint64_t *ids = job->ids, first = 0;

	qsort(ids, n, sizeof *ids, compare_ids);
	for (size_t i = 1; i < n; i++)
		if (ids[i] == ids[i - 1] && ids[i] != UINT64_MAX && twice++ == 0)
			first = ids[i];
	if (twice == 0)
		return;
	mu_trace_start(MU_ERR_FORMAT, __FILE__, __LINE__,
		       "%zu records have the id of another one; the smallest such id is %llu "
		       "(h5rec --renumber gives new ones)",
		       twice, (unsigned long long)first);
	report_error(job);
}

static void print_labels(const struct job *job)
{
	size_t most = 0;

	for (size_t i = 0; i < LABELS_MAX; i++)
		most = job->labels[i] > most ? job->labels[i] : most;
	printf("%7s %9s\n", "label", "records");
	for (size_t i = 0; i < LABELS_MAX; i++) {
		bool named = job->info.class_names && i < job->info.classes;
		int bar = most ? (int)(job->labels[i] * BAR / most) : 0;

		if (!job->labels[i] && !named)
			continue;
		printf("%7zu %9zu %.*s%s%.*s\n", i, job->labels[i], bar,
		       "****************************************", named ? " " : "", NAME_BYTES,
		       named ? mu_shown(job->info.class_names[i]) : "");
	}
	if (job->other_labels)
		printf("%7s %9zu\n", "others", job->other_labels);
}

static void print_traits(const struct data_traits *traits)
{
	static const char *const names[DATA_TRAITS] = {"grey", "CMYK", "of 16 bits",
						       "with transparency"};
	bool any = false;

	for (int t = 0; t < DATA_TRAITS; t++) {
		if (traits->n[t] == 0)
			continue;
		printf("%s%zu %s", any ? ", " : "of these   ", traits->n[t], names[t]);
		any = true;
	}
	if (any)
		printf("\n");
}

static void print_info(const struct job *job, const char *path)
{
	const struct mu_records_info *info = &job->info;
	const struct mu_picture p = mu_sample_picture(&info->shape);
	char text[MU_LEFT_OUT_BYTES];

	printf("%s: %s, %zu record%s, %zu label%s each\n", mu_shown(path), info->format, info->n,
	       MU_S(info->n), info->label_width, MU_S(info->label_width));
	if (info->kind == MU_RECORD_RAW)
		printf("images     raw, %zu x %zu pixels of %zu channels\n", p.w, p.h, p.c);
	else
		printf("images     %zu JPEG, %zu PNG, %zu others\n", job->jpeg, job->png,
		       info->n - job->jpeg - job->png);
	print_traits(&job->codec.traits);
	print_range("bytes      ", &job->sizes);
	print_range("width      ", &job->widths);
	print_range("height     ", &job->heights);
	printf("checksum   %08x%s\n", job->crc,
	       !info->has_checksum          ? " (CRC-32 of all images; the file has none)"
	       : job->crc == info->checksum ? ", right"
					    : ", wrong");
	print_labels(job);
	if (*mu_left_out_text(&info->left_out, text, sizeof text))
		printf("left out   %s\n", text);
}

/* ---- RecordIO files whose records have no headers of images ---- */

/* The first path of a list is copied to path; the rest of the list, NULL after the last. */
static const char *next_path(const char *list, char *path)
{
	const size_t n = strcspn(list, ";");

	snprintf(path, WHERE_BYTES, "%.*s", (int)n, list);
	return list[n] ? list + n + 1 : NULL;
}

/* Is it a RecordIO file, and is none of its records an image? Errors are for whoever reads it. */
static bool is_plain(const char *path, const char *index)
{
	struct mu_recordio *file = NULL;
	struct mu_record_buffer buffer = {0};
	struct mu_record record;
	const uint8_t *payload;
	size_t n;
	bool plain = mu_recordio_open(&file, path, index) == MU_OK && mu_recordio_count(file) > 0;

	for (size_t i = 0; plain && i < mu_recordio_count(file); i++)
		plain = mu_recordio_read(file, i, &buffer, &payload, &n) != MU_OK ||
			mu_record_unpack(payload, n, &buffer, &record, path) != MU_OK;
	mu_trace_clear();
	mu_record_buffer_release(&buffer);
	mu_recordio_close(file);
	return plain;
}

static enum mu_status look_plain(struct job *job, const char *path, const char *index)
{
	enum mu_status st = MU_OK;
	struct mu_recordio *file = NULL;
	struct mu_record_buffer buffer = {0};
	const uint8_t *payload;
	size_t n;

	MU_TRY(mu_recordio_open(&file, path, index));
	for (size_t i = 0; i < mu_recordio_count(file); i++) {
		st = mu_recordio_read(file, i, &buffer, &payload, &n);
		if (st != MU_OK) {
			MU_TRY(count_error(job, st));
			continue;
		}
		job->crc = (uint32_t)crc32_z(job->crc, payload, n);
		add(&job->sizes, (double)n);
	}
	job->info.n += mu_recordio_count(file);
	MU_TRY(mu_recordio_unchanged(file));
out:
	mu_record_buffer_release(&buffer);
	mu_recordio_close(file);
	return st;
}

/* *plain: all files of the list hold records that are no images; they are checked and described. */
static enum mu_status look_plain_list(const struct values *v, const char *paths, bool *plain)
{
	enum mu_status st = MU_OK;
	char path[WHERE_BYTES], index[WHERE_BYTES];
	struct job *job = NULL;

	MU_TRY(MU_ALLOC(job, 1, "counts"));
	job->values = v;
	*plain = v->no_decode && !v->classes && !v->label_width;
	for (int pass = 0; *plain && pass < 2; pass++) {
		const char *indexes = v->index;

		for (const char *rest = paths; *plain && rest;) {
			rest = next_path(rest, path);
			if (indexes)
				indexes = next_path(indexes, index);
			if (pass == 0)
				*plain = is_plain(path, v->index ? index : NULL);
			else
				MU_TRY(look_plain(job, path, v->index ? index : NULL));
		}
	}
	if (!*plain)
		goto out;
	printf("%s: RecordIO, %zu record%s without headers of images\n", mu_shown(paths),
	       job->info.n, MU_S(job->info.n));
	print_range("bytes      ", &job->sizes);
	printf("checksum   %08x (CRC-32 of all records; the file has none)\n", job->crc);
	if (job->errors)
		MU_FAIL(MU_ERR_FORMAT, "%s: %zu error%s in %zu record%s", paths, job->errors,
			MU_S(job->errors), job->info.n, MU_S(job->info.n));
	printf("no errors\n");
out:
	mu_free(job);
	return st;
}

static enum mu_status look(const struct values *v, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_records *records = NULL;
	struct mu_records_config config = {.classes = (size_t)v->classes,
					   .label_width = (size_t)v->label_width,
					   .indexes = v->index};
	struct mu_record_buffer buffer = {0};
	struct job *job = NULL;

	MU_TRY(MU_ALLOC(job, 1, "counts"));
	MU_TRY(mu_records_open(&records, path, &config));
	job->values = v;
	job->records = records;
	job->codec.edge = 1;
	mu_records_info(records, &job->info);
	MU_TRY(MU_ALLOC(job->ids, job->info.n, "ids"));
	data_progress_begin(&job->progress, "recinfo");
	for (size_t i = 0; i < job->info.n; i++) {
		MU_TRY(check_record(job, i, &buffer));
		data_progress_tell(&job->progress, i + 1, (double)(i + 1) / (double)job->info.n);
	}
	data_progress_end(&job->progress);
	check_ids(job);
	if (mu_records_check_sum(records, job->crc) != MU_OK)
		report_error(job);
	print_info(job, path);
	MU_TRY(mu_records_unchanged(records));
	if (job->errors)
		MU_FAIL(MU_ERR_FORMAT, "%s: %zu error%s in %zu record%s", path, job->errors,
			MU_S(job->errors), job->info.n, MU_S(job->info.n));
	print_end(job);
out:
	if (job) {
		data_codec_release(&job->codec);
		mu_free(job->ids);
	}
	mu_free(job);
	mu_record_buffer_release(&buffer);
	mu_records_close(records);
	return st;
}

int main(int argc, char **argv)
{
	enum mu_status st = MU_OK;
	struct values values;
	struct data_command command = {
		.tool = "recinfo",
		.table = table,
		.n_options = sizeof table / sizeof *table,
		.values = &values,
		.usage = "PATH\n\n"
			 "Read every record of PATH (a.rec;b.rec, x.tar of WebDataset, x.h5, "
			 "CIFAR's or IDX files,\na folder of images per class) and decode its "
			 "image; print what is wrong, then counts, sizes and\nlabels. "
			 "Of a checkpoint of the trainer: network, sizes, epoch, metrics and "
			 "settings.\nExit status: 0 nothing is wrong, "
			 "1 errors, 2 wrong use.\n",
		.n_words = 1,
	};
	bool done, checkpoint = false, plain = false;

	MU_TRY(data_command_parse(&command, argc, argv, &done));
	if (!done)
		MU_TRY(data_checkpoint_info(command.words[0], &checkpoint));
	done = done || checkpoint;
	if (!done)
		MU_TRY(look_plain_list(&values, command.words[0], &plain));
	if (!done && !plain)
		MU_TRY(look(&values, command.words[0]));
out:
	return data_command_end(&command, st);
}
