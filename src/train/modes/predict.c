/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --evaluate and --predict: validation with the parameters of a file, and nothing else. The
 * workers' probabilities are gathered on worker 0 after each step, in the order of the records,
 * so that the file can be written sequentially. Of sequences they are log-probabilities of the
 * labels. With --benchmark 1, on random data, it logs the speed as in training instead.
 */
#include "modes.h"
#include "prediction_table.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "conf/conf.h"
#include "engine/metrics.h"
#include "report/observers.h"
#include "storage/rows/rows.h"
#include "train/evaluate.h"

/*
 * What a worker sends after a step: this, then ids, labels and values of a whole batch. A sample's
 * values are its probabilities; of a sequence the log-probabilities of its labels, then their
 * places (struct mu_prediction). A label that does not count is NaN, and so is its probability.
 */
struct message {
	uint64_t count;
};

struct prediction {
	const struct train_predict *run;
	const struct conf *conf;
	const struct mu_members *members;
	struct engine_metrics shown;
	/* The end of the last line of speed. */
	size_t step;
	double samples, start, data_seconds;
	/* The output. */
	enum mu_loss_output output;
	bool sequences;
	size_t batch, classes, n; /* n: records */
	size_t steps;             /* labels of a sample, at most */
	size_t values;            /* of a sample, at most */
	struct mu_prediction *found; /* sequences: of the labels of a step */
	size_t nbytes;            /* of a message */
	char *mine, *all;         /* messages; all: worker 0's, of all workers */
	/* Worker 0: the file. */
	bool csv, npy; /* else HDF5 */
	struct mu_replace replace;
	FILE *stream;
	struct prediction_table table; /* CSV */
	size_t next;     /* record */
	float *labels;   /* HDF5: (n, steps), written at the end */
	float *left_out; /* arrays: a row for a record without an answer; end of a short one */
	uint64_t at_probabilities, at_labels, at_checksums;
	uint32_t checksum; /* of the probabilities so far */
};

/* Columns of the array of probabilities. */
static size_t count_columns(const struct prediction *p)
{
	return p->sequences ? p->steps : p->classes;
}

/* ---- the file ---- */

static enum mu_status check_stream(const struct prediction *p, bool good)
{
	enum mu_status st = MU_OK;

	if (!good)
		MU_FAIL(MU_ERR_IO, "--predict %s: cannot be written: %s", p->conf->predict,
			strerror(errno));
out:
	return st;
}

/* Define the arrays, and attributes that describe them. */
static enum mu_status make_arrays(struct prediction *p)
{
	enum mu_status st = MU_OK;
	const struct conf *v = p->conf;
	const size_t columns = count_columns(p);
	const size_t dims[2] = {p->n, columns}, label_dims[2] = {p->n, p->steps};
	struct mu_array_file *file = NULL;
	char text[32];

	MU_TRY(mu_array_file_create(&file, v->predict));
	snprintf(text, sizeof text, "%ld", v->num_layers);
	MU_TRY(mu_array_file_set_text(file, "network", v->network_name));
	MU_TRY(mu_array_file_set_text(file, "num_layers", text));
	MU_TRY(mu_array_file_set_text(file, "parameters",
				      p->run->parameters));
	MU_TRY(mu_array_file_set_text(file, "data", v->data_val ? v->data_val : v->data_dir));
	MU_TRY(mu_array_file_define(file,
				    p->output == MU_OUTPUT_VALUES ? "values"
				    : p->sequences		  ? "log_probabilities"
								  : "probabilities",
				    2, dims, &p->at_probabilities));
	MU_TRY(mu_array_file_define(file, "labels", p->steps > 1 || p->sequences ? 2 : 1,
				    label_dims, &p->at_labels));
	st = mu_array_file_detach(file, &p->replace, &p->at_checksums);
	file = NULL; /* whatever the answer */
	MU_TRY(st);
	MU_TRY(MU_ALLOC(p->labels, p->n * p->steps, "labels of predictions"));
	p->stream = fopen(p->replace.written, "r+be");
	MU_TRY(check_stream(
		p, p->stream && fseeko(p->stream, (off_t)p->at_probabilities, SEEK_SET) == 0));
out:
	mu_array_file_close(file, false);
	return st;
}

/* A .npy file, (n, columns), float32. */
static enum mu_status make_npy(struct prediction *p)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_replace_begin(&p->replace, p->conf->predict));
	p->stream = fopen(p->replace.written, "we");
	MU_TRY(check_stream(p, p->stream != NULL));
	MU_TRY(check_stream(p, mu_rows_begin_npy(p->stream, p->n, count_columns(p))));
out:
	return st;
}

/* What a record without an answer has. */
static enum mu_status make_left_out(struct prediction *p)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(p->left_out, count_columns(p), "a prediction"));
	for (size_t c = 0; c < count_columns(p); c++)
		p->left_out[c] = NAN;
out:
	return st;
}

static enum mu_status make_table(struct prediction *p)
{
	enum mu_status st = MU_OK;
	const size_t top_k = p->conf->top_k > 0 ? (size_t)p->conf->top_k : 1;

	MU_TRY(mu_replace_begin(&p->replace, p->conf->predict));
	p->stream = fopen(p->replace.written, "we");
	MU_TRY(check_stream(p, p->stream != NULL));
	p->table = (struct prediction_table){.stream = p->stream,
					     .data = p->run->data,
					     .output = p->output,
					     .sequences = p->sequences,
					     .targets = p->steps,
					     .classes = p->classes,
					     .top_k = top_k < p->classes ? top_k : p->classes};
	if (p->run->parameters && mu_array_file_supported())
		MU_TRY(mu_checkpoint_classes_read(&p->table.saved, p->run->parameters));
	mu_prediction_table_begin(&p->table);
	MU_TRY(check_stream(p, !ferror(p->stream)));
out:
	return st;
}

static enum mu_status write_values(struct prediction *p, const float *values, size_t n)
{
	p->checksum = mu_checksum(p->checksum, values, n * sizeof *values);
	return check_stream(p, fwrite(values, sizeof *values, n, p->stream) == n);
}

/* A sample of n labels; a sequence may have fewer than others. */
static enum mu_status write_row(struct prediction *p, size_t n, const float *labels,
				const float *row)
{
	enum mu_status st = MU_OK;
	const size_t columns = p->sequences ? n : p->classes;

	for (size_t i = 0; p->labels && i < p->steps; i++)
		p->labels[p->next * p->steps + i] =
			i < n && !p->run->data->unlabelled ? labels[i] : NAN;
	MU_TRY(write_values(p, row, columns));
	MU_TRY(write_values(p, p->left_out, count_columns(p) - columns));
out:
	return st;
}

static enum mu_status write_line(struct prediction *p, size_t n, const float *labels,
				 const float *row)
{
	enum mu_status st = MU_OK;

	if (p->sequences)
		mu_prediction_table_sequence(&p->table, p->next, n, labels, row);
	else
		mu_prediction_table_line(&p->table, p->next, labels, row);
	MU_TRY(check_stream(p, !ferror(p->stream)));
out:
	return st;
}

/* Records up to, not including, this one, which --skip-bad-records has left out. */
static enum mu_status pass_over(struct prediction *p, size_t id)
{
	enum mu_status st = MU_OK;

	for (; p->next < id; p->next++)
		if (!p->csv)
			MU_TRY(write_row(p, 0, NULL, p->left_out));
out:
	return st;
}

/* Labels of a sample of a step. */
static size_t count_labels(const struct prediction *p, size_t step)
{
	return mu_input_labels(p->run->data, mu_input_group(p->run->data, step));
}

static enum mu_status write_step(struct prediction *p, size_t step)
{
	enum mu_status st = MU_OK;
	const size_t n = count_labels(p, step), values = p->sequences ? 2 * n : p->values;

	for (int w = 0; w < p->members->num_workers; w++) {
		const char *from = p->all + (size_t)w * p->nbytes;
		const struct message *m = (const void *)from;
		const uint32_t *ids = (const void *)(m + 1);
		const float *labels = (const void *)(ids + p->batch),
			    *rows = labels + p->batch * p->steps;

		for (size_t i = 0; i < m->count; i++) {
			MU_TRY(pass_over(p, ids[i]));
			MU_TRY((p->csv ? write_line : write_row)(p, n, labels + i * n,
								 rows + i * values));
			p->next++;
		}
	}
out:
	return st;
}

static enum mu_status write_at(struct prediction *p, uint64_t at, const void *data,
			       size_t nbytes)
{
	return check_stream(p, fseeko(p->stream, (off_t)at, SEEK_SET) == 0 &&
				       fwrite(data, 1, nbytes, p->stream) == nbytes);
}

static enum mu_status finish_file(struct prediction *p)
{
	enum mu_status st = MU_OK;
	FILE *stream;

	MU_TRY(pass_over(p, p->n));
	if (p->labels) {
		const size_t nbytes = p->n * p->steps * sizeof *p->labels;
		const uint32_t checksums[2] = {p->checksum, mu_checksum(0, p->labels, nbytes)};

		MU_TRY(write_at(p, p->at_labels, p->labels, nbytes));
		MU_TRY(write_at(p, p->at_checksums, checksums, sizeof checksums));
	}
	stream = p->stream;
	p->stream = NULL;
	MU_TRY(check_stream(p, fclose(stream) == 0));
	MU_TRY(mu_replace_commit(&p->replace));
	mu_log_info("predictions of %zu record%s are in %s", p->n, MU_S(p->n),
		    p->conf->predict);
out:
	return st;
}

/* ---- a run ---- */

/* A file that the run reads is not replaced, and no .h5 file but one of predictions. */
static enum mu_status check_target(const struct conf *v)
{
	enum mu_status st = MU_OK;
	const char *const lists[] = {v->load, v->data_val, v->data_train, v->label_val};
	struct mu_array_file *file = NULL;
	static const char *const outputs[] = {"probabilities", "log_probabilities", "values"};
	bool holds = true;

	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (lists[i] && mu_replace_is_among(v->predict, lists[i]))
			MU_FAIL(MU_ERR_USAGE,
				"--predict %s: the run reads this file; predictions need another "
				"name",
				v->predict);
	if (mu_stem(v->predict, ".h5") > 0 && access(v->predict, F_OK) == 0 &&
	    mu_array_file_open_checked(&file, v->predict) == MU_OK) {
		holds = false;
		for (size_t i = 0; i < sizeof outputs / sizeof *outputs && !holds; i++)
			MU_TRY(mu_array_file_has(file, outputs[i], &holds));
	}
	mu_trace_clear();
	if (!holds)
		MU_FAIL(MU_ERR_USAGE,
			"--predict %s: the file is there already, and holds no predictions; "
			"remove it, or give another name",
			v->predict);
out:
	mu_array_file_close(file, false);
	return st;
}

static enum mu_status open_prediction(struct prediction *p)
{
	enum mu_status st = MU_OK;
	const struct mu_input *data = p->run->data;
	const char *const option = "--predict ";
	size_t positions;

	if (!p->conf->predict)
		goto out;
	positions = mu_shape_positions(
		mu_plan_probabilities_shape(p->run->batches->engine->plan));
	p->batch = data->config.batch;
	p->classes = mu_engine_classes(p->run->batches->engine);
	p->output = mu_net_loss(p->run->batches->engine->net)->output;
	p->sequences = (p->run->batches->engine->network->traits & MU_NETWORK_SEQUENCES) &&
		       p->output == MU_OUTPUT_PROBABILITIES;
	p->steps = mu_input_width(data);
	if (!p->sequences && positions > 1)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s%s: the network has outputs for %zu positions of a sample, and those of "
			"one are written: --evaluate measures them",
			option, p->conf->predict, positions);
	p->values = p->sequences ? 2 * p->steps : p->classes;
	p->n = data->n;
	p->csv = mu_stem(p->conf->predict, ".csv") > 0;
	p->npy = mu_stem(p->conf->predict, ".npy") > 0;
	p->nbytes = sizeof(struct message) + p->batch * sizeof(uint32_t) +
		    p->batch * (p->steps + p->values) * sizeof(float);
	p->nbytes = (p->nbytes + 7) / 8 * 8;
	MU_TRY(MU_ALLOC(p->mine, p->nbytes, "predictions of a step"));
	if (p->sequences)
		MU_TRY(MU_ALLOC(p->found, p->batch * p->steps, "predictions of a step"));
	if (p->members->index != 0)
		goto out;
	MU_TRY(MU_ALLOC(p->all, p->nbytes * (size_t)p->members->num_workers,
			"all workers' predictions of a step"));
	MU_TRY(check_target(p->conf));
	MU_TRY(make_left_out(p));
	st = p->csv ? make_table(p) : p->npy ? make_npy(p) : make_arrays(p);
	if (st != MU_OK && strncmp(mu_trace_message(), option, strlen(option)) != 0)
		mu_trace_prefix("%s", option);
	MU_TRY(st);
out:
	return st;
}

static void close_prediction(struct prediction *p)
{
	if (p->stream)
		fclose(p->stream);
	mu_replace_release(&p->replace);
	mu_checkpoint_classes_release(&p->table.saved);
	mu_free(p->found);
	mu_free(p->labels);
	mu_free(p->left_out);
	mu_free(p->mine);
	mu_free(p->all);
}

/* Samples of the whole job between steps; metrics of all so far. */
static enum mu_status show_speed(struct prediction *p, size_t step, const struct mu_metrics *m)
{
	enum mu_status st = MU_OK;
	struct report_window w = {.first = p->step, .last = step, .metrics = *m};

	w.metrics.tally = NULL; /* of all samples, at the end */
	MU_TRY(mu_engine_metrics_reduce(&w.metrics, p->members));
	w.samples = w.metrics.samples - p->samples;
	w.seconds = mu_now() - p->start;
	w.data_seconds = mu_clock_seconds(MU_CLOCK_DATA) - p->data_seconds;
	mu_report_window(p->run->observers, &w);
	p->step = step;
	p->samples = w.metrics.samples;
	p->start = mu_now();
	p->data_seconds += w.data_seconds;
out:
	return st;
}

/* What is known of the labels of `count` sequences, n labels each. */
static void find_log_probabilities(struct prediction *p, size_t count, size_t n, float *labels,
				   float *values)
{
	const struct mu_engine *e = p->run->batches->engine;
	const struct mu_batch *batch = mu_plan_batch(e->plan);

	e->ops->predictions(e, p->found);
	for (size_t i = 0; i < count * n; i++) {
		float *at = values + i / n * 2 * n + i % n;

		if (batch->use_ignore && labels[i] == batch->ignore_label)
			labels[i] = NAN;
		at[0] = isnan(labels[i]) ? NAN : 0 - p->found[i].cross_entropy;
		at[n] = (float)p->found[i].place;
	}
}

static enum mu_status gather_step(struct prediction *p, size_t step, size_t count)
{
	enum mu_status st = MU_OK;
	const struct train_batches *b = p->run->batches;
	struct message *m = (void *)p->mine;
	uint32_t *ids = (void *)(m + 1);
	float *labels = (void *)(ids + p->batch), *values = labels + p->batch * p->steps;
	const size_t n = count_labels(p, step);

	m->count = count;
	if (count > 0) {
		memcpy(ids, b->ids, count * sizeof *ids);
		memcpy(labels, b->labels, count * n * sizeof *labels);
		if (p->sequences)
			find_log_probabilities(p, count, n, labels, values);
		else
			MU_TRY(b->engine->ops->probabilities(b->engine, values));
	}
	MU_TRY(mu_gather(p->mine, p->all, p->nbytes, 0, p->members->peers));
	if (p->members->index == 0)
		MU_TRY(write_step(p, step));
out:
	return st;
}

/* After a step of the evaluation. */
static enum mu_status end_step(void *context, size_t step, size_t count,
			       const struct mu_metrics *m)
{
	enum mu_status st = MU_OK;
	struct prediction *p = context;

	mu_report_validating(p->run->observers, step + 1, p->run->data->steps);
	if (p->conf->predict)
		MU_TRY(gather_step(p, step, count));
	else if (p->conf->benchmark && step > 0 && step % (size_t)p->conf->disp_batches == 0)
		MU_TRY(show_speed(p, step, m));
out:
	return st;
}

/* The result, in one line: which parameters, the metrics, how many samples, how fast. */
static enum mu_status show_result(const struct prediction *p, const struct mu_metrics *m,
				  double seconds)
{
	enum mu_status st = MU_OK;
	const struct engine_metrics *shown = &p->shown;
	char text[512] = "";

	if (p->run->data->unlabelled) {
		mu_log_info("%s: predicted %.0f %s in %.3f s: %.2f samples/sec",
			    p->run->parameters ? p->run->parameters : "initial parameters",
			    m->samples, p->run->data->ops->colour_images ? "images" : "samples",
			    seconds, m->samples / seconds);
		goto out;
	}
	for (size_t i = 0; i < shown->n; i++) {
		const size_t n = strlen(text);

		snprintf(text + n, sizeof text - n, "%s%s %f", i ? ", " : "", shown->printed[i],
			 shown->of[i]->value(m));
	}
	mu_log_info("%s: %s; validated %.0f samples in %.3f s: %.2f samples/sec",
		    p->run->parameters ? p->run->parameters : "initial parameters", text,
		    m->samples, seconds, m->samples / seconds);
out:
	return st;
}

enum mu_status mu_train_predict(const struct train_predict *run)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = run->batches->engine;
	struct prediction p = {.run = run, .conf = e->conf, .members = e->members};
	struct mu_metrics m;
	double started, seconds;

	MU_TRY(mu_peers_agree(p.members, open_prediction(&p)));
	if (p.conf->benchmark && p.conf->num_batches > 0 &&
	    (size_t)p.conf->num_batches < run->data->steps)
		run->data->steps = (size_t)p.conf->num_batches;
	mu_report_epoch_begin(run->observers, 0);
	p.start = started = mu_now();
	MU_TRY(mu_train_evaluate(run->batches, run->data, end_step, &p, &m));
	seconds = mu_now() - started;
	mu_report_epoch_end(run->observers);
	if (!run->data->unlabelled)
		mu_report_validation(run->observers, run->epoch, 0, &m);
	MU_TRY(mu_engine_metrics_choose(&p.shown, mu_net_loss(e->net), p.conf));
	if (p.members->index == 0)
		mu_engine_tally_classes(&p.shown, &m);
	if (p.members->index == 0)
		MU_TRY(show_result(&p, &m, seconds));
	if (p.conf->predict && p.members->index == 0)
		MU_TRY(finish_file(&p));
out:
	close_prediction(&p);
	return st;
}
