/* SPDX-License-Identifier: Apache-2.0 */
/* The file of --predict: a table, a .npy array, or arrays in HDF5. */
#include "prediction_file.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include <muster/arrays.h>

#include "storage/rows/rows.h"

size_t mu_prediction_file_columns(const struct prediction_file *f)
{
	return mu_shape_sample(&f->shape);
}

/* Labels of all records: one a record, or several; or one for each position, or output. */
static struct mu_shape shape_of_labels(const struct prediction_file *f)
{
	struct mu_shape s = f->shape;

	if (s.ndims == 2)
		return (struct mu_shape){f->steps > 1 || f->sequences ? 2 : 1, {f->n, f->steps}};
	if (f->output == MU_OUTPUT_PROBABILITIES && f->steps == mu_shape_positions(&s))
		memmove(&s.dims[1], &s.dims[2], (size_t)(--s.ndims - 1) * sizeof *s.dims);
	return s;
}

/* ---- the beginning ---- */

static enum mu_status check_stream(const struct prediction_file *f, bool good)
{
	enum mu_status st = MU_OK;

	if (!good)
		MU_FAIL(MU_ERR_IO, "--predict %s: cannot be written: %s", f->conf->predict,
			strerror(errno));
out:
	return st;
}

/* Define the arrays, and attributes that describe them. */
static enum mu_status make_arrays(struct prediction_file *f)
{
	enum mu_status st = MU_OK;
	const struct conf *v = f->conf;
	const struct mu_shape labels = shape_of_labels(f);
	struct mu_array_file *file = NULL;
	char text[32];

	MU_TRY(mu_array_file_create(&file, v->predict));
	snprintf(text, sizeof text, "%ld", v->num_layers);
	MU_TRY(mu_array_file_set_text(file, "network", v->network_name));
	MU_TRY(mu_array_file_set_text(file, "num_layers", text));
	MU_TRY(mu_array_file_set_text(file, "parameters", f->parameters));
	MU_TRY(mu_array_file_set_text(file, "data", v->data_val ? v->data_val : v->data_dir));
	MU_TRY(mu_array_file_define(file,
				    f->output == MU_OUTPUT_VALUES ? "values"
				    : f->sequences                ? "log_probabilities"
								  : "probabilities",
				    f->shape.ndims, f->shape.dims, &f->at_probabilities));
	MU_TRY(mu_array_file_define(file, "labels", labels.ndims, labels.dims, &f->at_labels));
	st = mu_array_file_detach(file, &f->replace, &f->at_checksums);
	file = NULL; /* whatever the answer */
	MU_TRY(st);
	MU_TRY(MU_ALLOC(f->labels, f->n * f->steps, "labels of predictions"));
	f->stream = fopen(f->replace.written, "r+be");
	MU_TRY(check_stream(
		f, f->stream && fseeko(f->stream, (off_t)f->at_probabilities, SEEK_SET) == 0));
out:
	mu_array_file_close(file, false);
	return st;
}

/* A .npy file, float32. */
static enum mu_status make_npy(struct prediction_file *f)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_replace_begin(&f->replace, f->conf->predict));
	f->stream = fopen(f->replace.written, "we");
	MU_TRY(check_stream(f, f->stream != NULL));
	MU_TRY(check_stream(f, mu_rows_begin_npy(f->stream, &f->shape)));
out:
	return st;
}

/* What a record without an answer has. */
static enum mu_status make_left_out(struct prediction_file *f)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(f->left_out, mu_prediction_file_columns(f), "a prediction"));
	for (size_t c = 0; c < mu_prediction_file_columns(f); c++)
		f->left_out[c] = NAN;
out:
	return st;
}

static enum mu_status make_table(struct prediction_file *f)
{
	enum mu_status st = MU_OK;
	const size_t top_k = f->conf->top_k > 0 ? (size_t)f->conf->top_k : 1;

	MU_TRY(mu_replace_begin(&f->replace, f->conf->predict));
	f->stream = fopen(f->replace.written, "we");
	MU_TRY(check_stream(f, f->stream != NULL));
	f->table = (struct prediction_table){.stream = f->stream,
					     .data = f->data,
					     .output = f->output,
					     .sequences = f->sequences,
					     .targets = f->steps,
					     .classes = f->classes,
					     .top_k = top_k < f->classes ? top_k : f->classes};
	if (f->parameters && mu_array_file_supported())
		MU_TRY(mu_checkpoint_classes_read(&f->table.saved, f->parameters));
	mu_prediction_table_begin(&f->table);
	MU_TRY(check_stream(f, !ferror(f->stream)));
out:
	return st;
}

static enum mu_status write_values(struct prediction_file *f, const float *values, size_t n)
{
	f->checksum = mu_checksum(f->checksum, values, n * sizeof *values);
	return check_stream(f, fwrite(values, sizeof *values, n, f->stream) == n);
}

/* A sample of n labels; a sequence may have fewer than others. */
static enum mu_status write_row(struct prediction_file *f, size_t n, const float *labels,
				const float *row)
{
	enum mu_status st = MU_OK;
	const size_t columns = f->sequences ? n : mu_prediction_file_columns(f);

	for (size_t i = 0; f->labels && i < f->steps; i++)
		f->labels[f->next * f->steps + i] = i < n && !f->data->unlabelled ? labels[i] : NAN;
	MU_TRY(write_values(f, row, columns));
	MU_TRY(write_values(f, f->left_out, mu_prediction_file_columns(f) - columns));
out:
	return st;
}

static enum mu_status write_line(struct prediction_file *f, size_t n, const float *labels,
				 const float *row)
{
	enum mu_status st = MU_OK;

	if (f->sequences)
		mu_prediction_table_sequence(&f->table, f->next, n, labels, row);
	else
		mu_prediction_table_line(&f->table, f->next, labels, row);
	MU_TRY(check_stream(f, !ferror(f->stream)));
out:
	return st;
}

/* Records up to, not including, this one, which --skip-bad-records has left out. */
static enum mu_status pass_over(struct prediction_file *f, size_t id)
{
	enum mu_status st = MU_OK;

	for (; f->next < id; f->next++)
		if (!f->csv)
			MU_TRY(write_row(f, 0, NULL, f->left_out));
out:
	return st;
}

static enum mu_status write_at(struct prediction_file *f, uint64_t at, const void *data,
			       size_t nbytes)
{
	return check_stream(f, fseeko(f->stream, (off_t)at, SEEK_SET) == 0 &&
				       fwrite(data, 1, nbytes, f->stream) == nbytes);
}

enum mu_status mu_prediction_file_add(struct prediction_file *f, size_t id, size_t n,
				      const float *labels, const float *row)
{
	enum mu_status st = MU_OK;

	MU_TRY(pass_over(f, id));
	MU_TRY((f->csv ? write_line : write_row)(f, n, labels, row));
	f->next++;
out:
	return st;
}

enum mu_status mu_prediction_file_finish(struct prediction_file *f)
{
	enum mu_status st = MU_OK;
	FILE *stream;

	MU_TRY(pass_over(f, f->n));
	if (f->labels) {
		const size_t nbytes = f->n * f->steps * sizeof *f->labels;
		const uint32_t checksums[2] = {f->checksum, mu_checksum(0, f->labels, nbytes)};

		MU_TRY(write_at(f, f->at_labels, f->labels, nbytes));
		MU_TRY(write_at(f, f->at_checksums, checksums, sizeof checksums));
	}
	stream = f->stream;
	f->stream = NULL;
	MU_TRY(check_stream(f, fclose(stream) == 0));
	MU_TRY(mu_replace_commit(&f->replace));
	mu_log_info("predictions of %zu record%s are in %s", f->n, MU_S(f->n), f->conf->predict);
out:
	return st;
}

void mu_prediction_file_close(struct prediction_file *f)
{
	if (f->stream)
		fclose(f->stream);
	mu_replace_release(&f->replace);
	mu_checkpoint_classes_release(&f->table.saved);
	mu_free(f->labels);
	mu_free(f->left_out);
}

/* ---- opening ---- */

/* Does a file that is there hold predictions? *holds is true also of a damaged .h5 file. */
static enum mu_status find_predictions(const char *path, bool *holds)
{
	enum mu_status st = MU_OK;
	static const char *const outputs[] = {"probabilities", "log_probabilities", "values"};
	struct mu_array_file *file = NULL;

	*holds = true;
	if (mu_stem(path, ".npy") > 0) {
		*holds = mu_rows_is_written_npy(path);
	} else if (mu_stem(path, ".csv") > 0) {
		*holds = mu_prediction_table_is(path);
	} else if (mu_stem(path, ".h5") > 0 &&
		   mu_array_file_open_checked(&file, path) == MU_OK) {
		*holds = false;
		for (size_t i = 0; i < sizeof outputs / sizeof *outputs && !*holds; i++)
			MU_TRY(mu_array_file_has(file, outputs[i], holds));
	}
	mu_trace_clear();
out:
	mu_array_file_close(file, false);
	return st;
}

/* A file that the run reads is not replaced, nor one that holds no predictions. */
static enum mu_status check_target(const struct conf *v)
{
	enum mu_status st = MU_OK;
	const struct mu_array_settings *arrays = mu_conf_reader_settings(v, "arrays");
	const char *const lists[] = {v->load, v->data_val, v->data_train,
				     arrays ? arrays->label_val : NULL};
	bool holds = true;

	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (lists[i] && mu_replace_is_among(v->predict, lists[i]))
			MU_FAIL(MU_ERR_USAGE,
				"--predict %s: the run reads this file; predictions need another "
				"name",
				v->predict);
	if (access(v->predict, F_OK) == 0)
		MU_TRY(find_predictions(v->predict, &holds));
	if (!holds)
		MU_FAIL(MU_ERR_USAGE,
			"--predict %s: the file is there already, and holds no predictions; "
			"remove it, or give another name",
			v->predict);
out:
	return st;
}

/* Outputs of a network for pictures have their own shape, where they have positions. */
static void set_shape(struct prediction_file *f, const struct mu_shape *output)
{
	f->shape = mu_shape_positions(output) > 1 && !f->sequences
			   ? *output
			   : (struct mu_shape){2, {0, f->sequences ? f->steps : f->classes}};
	f->shape.dims[0] = f->n;
}

enum mu_status mu_prediction_file_init(struct prediction_file *f, const struct mu_shape *output)
{
	enum mu_status st = MU_OK;
	const size_t positions = mu_shape_positions(output);

	f->csv = mu_stem(f->conf->predict, ".csv") > 0;
	f->npy = mu_stem(f->conf->predict, ".npy") > 0;
	set_shape(f, output);
	if (f->csv && f->shape.ndims > 2)
		MU_FAIL(MU_ERR_USAGE,
			"--predict %s: the network has outputs for %zu positions of a sample, "
			"which are no columns of a table; an array, such as --predict x.npy, has "
			"them all",
			f->conf->predict, positions);
out:
	return st;
}

enum mu_status mu_prediction_file_open(struct prediction_file *f)
{
	enum mu_status st = MU_OK;
	const char *const option = "--predict ";

	MU_TRY(check_target(f->conf));
	MU_TRY(make_left_out(f));
	st = f->csv ? make_table(f) : f->npy ? make_npy(f) : make_arrays(f);
	if (st != MU_OK && strncmp(mu_trace_message(), option, strlen(option)) != 0)
		mu_trace_prefix("%s", option);
	MU_TRY(st);
out:
	return st;
}
