/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of numbers in files (storage/rows): a sample's input and its targets are rows of any shape
 * and become float32, otherwise unchanged. Targets are classes if they are integers from 0 on, else
 * values.
 */
#include <string.h>

#include <muster/arrays.h>

#include "reader.h"
#include "storage/rows/rows.h"

#define TEXT(name_, member) \
	.name = name_, .type = MU_OPTION_STRING, \
	.offset = offsetof(struct mu_array_settings, member)

static const struct mu_option settings[] = {
	{TEXT("label-train", label_train),
	 .similar = "label-csv|target-train|train-labels|train-label|labels|targets",
	 .group = "data", .advanced = true,
	 .help = "FILE  targets of training arrays, as y.npy or a.npz:y (array y of an .npz file; "
		 "the "
		 "last column of a .csv file)"},
	{TEXT("label-val", label_val), .similar = "val-labels|val-label|target-val",
	 .group = "data", .advanced = true, .help = "FILE  the same of validation"},
	{TEXT("label-columns", label_columns),
	 .similar = "label-name|label-names|target|target-columns|target-column|label-column",
	 .group = "data", .advanced = true,
	 .help = "A,B  columns of a .csv file that are targets: names, or numbers from 1 on; none: "
		 "no column is; or arrays of an .npz file, side by side"},
	{.name = NULL},
};

static const struct mu_option_rule rules[] = {
	{.option = "label-train", .relation = MU_OPTION_NEEDS, .other = "data-train"},
	{.option = "label-val", .relation = MU_OPTION_NEEDS, .other = "data-val"},
	{.option = "image-shape|dump-batch|data-cache", .relation = MU_OPTION_EXCLUDES,
	 .other = "data-train|data-val",
	 .why = "it is for images, and these are arrays of numbers, taken as they are"},
	{.option = NULL},
};

enum { LARGEST_CLASS = 1 << 24 };

struct arrays {
	struct mu_rows_pair pair;
	char why[160]; /* targets are no classes */
};

/* One more target; *largest and in->about.used: of those so far. seen: the classes among them. */
static void count_class(struct mu_input *in, uint8_t *seen, size_t class, size_t *largest)
{
	in->about.used += !(seen[class / 8] >> class % 8 & 1);
	seen[class / 8] |= (uint8_t)(1 << class % 8);
	if (class > *largest)
		*largest = class;
}

/* Look at all targets: largest of those that are classes; else why they are none. */
static enum mu_status find_classes(struct mu_input *in, struct arrays *a, size_t *largest)
{
	enum mu_status st = MU_OK;
	const struct mu_rows *target = &a->pair.target;
	const struct mu_array_settings *s = in->settings;
	const size_t n = mu_shape_sample(&target->shape);
	float *row = NULL;
	uint8_t *seen = NULL;

	*largest = 0;
	if (!target->integers) {
		snprintf(a->why, sizeof a->why, "they are %s", mu_cell_name(target->cell));
		return MU_OK;
	}
	MU_TRY(MU_ALLOC(row, n, "targets"));
	MU_TRY(MU_ALLOC(seen, LARGEST_CLASS / 8, "classes"));
	for (size_t i = 0; i < target->n && !*a->why; i++) {
		const enum mu_status read = mu_rows_read(target, i, &in->thread->record, row);

		if (read == MU_ERR_FORMAT && in->config.skip_bad_records) {
			mu_trace_clear(); /* told when it is read */
			continue;
		}
		MU_TRY(read);
		for (size_t k = 0; k < n && !*a->why; k++) {
			if (s->ignores && row[k] == (float)s->ignored)
				in->about.ignored = true;
			else if (row[k] < 0 || row[k] >= LARGEST_CLASS)
				snprintf(a->why, sizeof a->why, "sample %zu has %.9g", i,
					 (double)row[k]);
			else
				count_class(in, seen, (size_t)row[k], largest);
		}
	}
out:
	mu_free(row);
	mu_free(seen);
	return st;
}

static enum mu_status refuse_label(const struct mu_input *in, const struct arrays *a,
				   size_t largest)
{
	enum mu_status st = MU_OK;

	MU_FAIL(MU_ERR_FORMAT,
		"%s: has label %zu; labels must be from 0 to %zu, for a network of %zu classes "
		"(number of classes)",
		a->pair.target.name, largest, in->config.classes - 1, in->config.classes);
out:
	return st;
}

/* in->classes is the number of classes, or of values. */
static enum mu_status declare_targets(struct mu_input *in, struct arrays *a)
{
	enum mu_status st = MU_OK;
	const struct mu_input_config *c = &in->config;
	const struct mu_shape *shape = &a->pair.target.shape;
	size_t largest = 0;

	in->unlabelled = a->pair.target.n == 0;
	if (in->unlabelled) {
		in->classes = c->classes ? c->classes : 1;
		mu_input_declare_labels(in, c->values ? MU_NUMBER_FLOAT32 : MU_NUMBER_INT32,
					c->label_width > 1 ? c->label_width
					: c->values        ? in->classes
							   : 1);
		goto out;
	}
	if (!c->values)
		MU_TRY(find_classes(in, a, &largest));
	if (c->values || *a->why) {
		in->classes = mu_shape_channels(shape);
		in->about.not_classes = a->why;
	} else {
		in->classes = c->classes ? c->classes : largest < 2 ? 2 : largest + 1;
		if (largest >= in->classes)
			MU_TRY(refuse_label(in, a, largest));
	}
	mu_input_declare(in, "label", MU_FIELD_TARGET,
			 in->about.not_classes ? MU_NUMBER_FLOAT32 : MU_NUMBER_INT32, shape);
out:
	return st;
}

/* Layers read one axis of space, (c, w), as (c, w, 1). */
static struct mu_shape shape_for_layers(const struct mu_rows *data)
{
	struct mu_shape shape = data->shape;

	if (shape.ndims == 3)
		shape.dims[shape.ndims++] = 1;
	return shape;
}

/* Pictures and volumes whose channels come last, as TensorFlow's do? */
static void tell_channels(const struct mu_rows *data)
{
	const struct mu_shape *shape = &data->shape;
	const size_t last = shape->dims[shape->ndims - 1];
	char text[MU_SAMPLE_TEXT];

	if (shape->ndims < 4 || shape->dims[1] <= 4 ||
	    (last != 3 && last != 4 && (last != 1 || shape->dims[1] != shape->dims[2])))
		return;
	mu_log_warn("%s: samples of (%s) have %zu channels; if the last axis is that of channels, "
		    "numpy.moveaxis(x, -1, 1) makes it the first",
		    data->name, mu_sample_text(shape, ", ", text, sizeof text), shape->dims[1]);
}

static enum mu_status open_arrays(struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const struct mu_input_config *c = &in->config;
	const struct mu_array_settings *s = in->settings;
	const bool validate = mu_input_validates(in);
	const struct mu_rows_config config = {
		.data = c->paths,
		.labels = validate ? s->label_val : s->label_train,
		.columns = s->label_columns,
		.validate = validate,
		.unlabelled = c->unlabelled,
		.skip = c->skip_bad_records,
	};
	struct mu_shape shape;
	struct arrays *a;

	if (!c->paths || !*c->paths)
		MU_FAIL(MU_ERR_USAGE, "no data files given");
	MU_TRY(MU_ALLOC(a, 1, "arrays"));
	in->impl = a;
	MU_TRY(mu_rows_open(&a->pair, &config));
	in->n = a->pair.data.n;
	in->about.targets = a->pair.target.n > 0 ? a->pair.target.name : NULL;
	in->about.columns = a->pair.data.columns;
	in->about.target_columns = a->pair.target.columns;
	in->about.in_memory = a->pair.data.memory && (!a->pair.target.n || a->pair.target.memory);
	shape = shape_for_layers(&a->pair.data);
	mu_input_declare_data(in, MU_NUMBER_FLOAT32, &shape);
	MU_TRY(declare_targets(in, a));
	if (c->worker == 0 && !validate)
		tell_channels(&a->pair.data);
	if (*a->pair.note && c->worker == 0)
		mu_log_info("%s", a->pair.note);
out:
	return st;
}

static enum mu_status count_arrays(const char *path, size_t *n)
{
	enum mu_status st = MU_OK;
	const struct mu_rows_config config = {
		.data = path, .unlabelled = true, .columns = "none", .count = true};
	struct mu_rows_pair pair;

	MU_TRY(mu_rows_open(&pair, &config));
	*n = pair.data.n;
out:
	mu_rows_close(&pair);
	return st;
}

static void close_arrays(struct mu_input *in)
{
	struct arrays *a = in->impl;

	if (!a)
		return;
	mu_rows_close(&a->pair);
	mu_free(a);
	in->impl = NULL;
}

static enum mu_status check_arrays(const struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const struct arrays *a = in->impl;

	if (!a->pair.data.memory)
		MU_TRY(mu_file_unchanged(&a->pair.data.file));
	if (a->pair.target.n > 0 && !a->pair.target.memory)
		MU_TRY(mu_file_unchanged(&a->pair.target.file));
out:
	return st;
}

static enum mu_status read_arrays(const struct mu_input *in, struct mu_input_thread *thread,
				  size_t i, float *data, float *labels)
{
	enum mu_status st = MU_OK;
	const struct arrays *a = in->impl;

	MU_TRY(mu_rows_read(&a->pair.data, i, &thread->record, data));
	if (in->unlabelled)
		memset(labels, 0, mu_input_width(in) * sizeof *labels);
	else
		MU_TRY(mu_rows_read(&a->pair.target, i, &thread->record, labels));
out:
	return st;
}

static void describe_arrays(const struct mu_input *in, char *text, size_t nbytes)
{
	const struct arrays *a = in->impl;
	const struct mu_rows *data = &a->pair.data, *target = &a->pair.target;
	const size_t width = mu_input_width(in);
	char with[512] = "no targets";

	if (target->n > 0)
		snprintf(with, sizeof with, "%zu target%s of %.200s (%s), %s", width, MU_S(width),
			 target->name, mu_cell_name(target->cell),
			 mu_input_field(in, MU_FIELD_TARGET)->number == MU_NUMBER_INT32 ? "classes"
											: "values");
	snprintf(text, nbytes, "%s (%s), numbers as they are; %s", data->name,
		 mu_cell_name(data->cell), with);
}

static void name_record(const struct mu_input *in, size_t i, char *text, size_t nbytes)
{
	const struct arrays *a = in->impl;

	mu_rows_where(&a->pair.data, i, text, nbytes);
}

static enum mu_status hash_arrays(const struct mu_input *in, struct mu_input_thread *thread,
				  size_t i, uint64_t *h)
{
	enum mu_status st = MU_OK;
	const struct arrays *a = in->impl;
	const struct mu_rows *const rows[] = {&a->pair.data, &a->pair.target};

	for (int k = 0; k < 2 && rows[k]->n > 0; k++) {
		const uint8_t *bytes;

		MU_TRY(mu_rows_bytes(rows[k], i, &thread->record, &bytes));
		*h = mu_hash_block(*h, bytes, mu_rows_row_bytes(rows[k]));
	}
out:
	return st;
}

static size_t bound(const struct mu_input *in, size_t record)
{
	const struct arrays *a = in->impl;

	(void)record;
	return mu_rows_row_bytes(&a->pair.data) +
	       (a->pair.target.n > 0 ? mu_rows_row_bytes(&a->pair.target) : 0);
}

const struct mu_reader mu_reader_arrays = {
	.name = "arrays",
	.help = "arrays of numbers in .npy, .npz and .csv files",
	.settings = settings,
	.rules = rules,
	.settings_nbytes = sizeof(struct mu_array_settings),
	.knows_classes = true,
	.threads = true,
	.bad_records = true,
	.count = count_arrays,
	.open = open_arrays,
	.close = close_arrays,
	.check = check_arrays,
	.describe = describe_arrays,
	.name_record = name_record,
	.read = read_arrays,
	.hash = hash_arrays,
	.bound = bound,
};
