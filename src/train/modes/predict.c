/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --evaluate and --predict: validation with the parameters of a file, and nothing else. The
 * workers' probabilities are gathered on worker 0 after each step, in the order of the records,
 * so that the file can be written sequentially. With --benchmark 1, on random
 * data, it logs the speed as in training instead.
 */
#include "modes.h"
#include "prediction_table.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "conf/conf.h"
#include "engine/metrics.h"
#include "report/observers.h"
#include "train/evaluate.h"

/* What a worker sends after a step: this, then ids, labels and probabilities of a whole batch. */
struct message {
	uint64_t count;
};

struct prediction {
	const struct train_predict *run;
	const struct conf *conf;
	const struct mu_topology *topology;
	/* The end of the last line of speed. */
	size_t step;
	double samples, start, data_seconds;
	/* The output. */
	size_t batch, classes, n; /* n: records */
	size_t nbytes;            /* of a message */
	char *mine, *all;         /* messages; all: worker 0's, of all workers */
	/* Worker 0: the file. */
	bool csv;
	struct mu_replace replace;
	FILE *stream;
	struct prediction_table table; /* CSV */
	size_t next;     /* record */
	float *labels;   /* HDF5: n, written at the end */
	float *left_out; /* HDF5: a row for a record without an answer */
	uint64_t at_probabilities, at_labels, at_checksums;
	uint32_t checksum; /* of the probabilities so far */
};

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
	const size_t dims[2] = {p->n, p->classes};
	struct mu_array_file *file = NULL;
	char text[32];

	MU_TRY(mu_array_file_create(&file, v->predict));
	snprintf(text, sizeof text, "%ld", v->num_layers);
	MU_TRY(mu_array_file_set_text(file, "network", v->network_name));
	MU_TRY(mu_array_file_set_text(file, "num_layers", text));
	MU_TRY(mu_array_file_set_text(file, "parameters",
				      p->run->parameters));
	MU_TRY(mu_array_file_set_text(file, "data", v->data_val ? v->data_val : v->data_dir));
	MU_TRY(mu_array_file_define(file, "probabilities", 2, dims, &p->at_probabilities));
	MU_TRY(mu_array_file_define(file, "labels", 1, dims, &p->at_labels));
	st = mu_array_file_detach(file, &p->replace, &p->at_checksums);
	file = NULL; /* whatever the answer */
	MU_TRY(st);
	MU_TRY(MU_ALLOC(p->labels, p->n, "labels of predictions"));
	MU_TRY(MU_ALLOC(p->left_out, p->classes, "a prediction"));
	for (size_t c = 0; c < p->classes; c++)
		p->left_out[c] = NAN;
	p->stream = fopen(p->replace.written, "r+be");
	MU_TRY(check_stream(
		p, p->stream && fseeko(p->stream, (off_t)p->at_probabilities, SEEK_SET) == 0));
out:
	mu_array_file_close(file, false);
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
					     .classes = p->classes,
					     .top_k = top_k < p->classes ? top_k : p->classes};
	if (p->run->parameters && mu_array_file_supported())
		MU_TRY(mu_checkpoint_classes_read(&p->table.saved, p->run->parameters));
	mu_prediction_table_begin(&p->table);
	MU_TRY(check_stream(p, !ferror(p->stream)));
out:
	return st;
}

static enum mu_status write_row(struct prediction *p, float label, const float *row)
{
	enum mu_status st = MU_OK;
	const size_t nbytes = p->classes * sizeof *row;

	p->labels[p->next] = p->run->data->unlabelled ? NAN : label;
	p->checksum = mu_checksum(p->checksum, row, nbytes);
	MU_TRY(check_stream(p, fwrite(row, 1, nbytes, p->stream) == nbytes));
out:
	return st;
}

static enum mu_status write_line(struct prediction *p, float label, const float *row)
{
	enum mu_status st = MU_OK;

	mu_prediction_table_line(&p->table, p->next, label, row);
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
			MU_TRY(write_row(p, NAN, p->left_out));
out:
	return st;
}

static enum mu_status write_step(struct prediction *p)
{
	enum mu_status st = MU_OK;

	for (int w = 0; w < p->topology->num_workers; w++) {
		const char *from = p->all + (size_t)w * p->nbytes;
		const struct message *m = (const void *)from;
		const uint32_t *ids = (const void *)(m + 1);
		const float *labels = (const void *)(ids + p->batch), *rows = labels + p->batch;

		for (size_t i = 0; i < m->count; i++) {
			MU_TRY(pass_over(p, ids[i]));
			MU_TRY((p->csv ? write_line : write_row)(p, labels[i],
								 rows + i * p->classes));
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
	if (!p->csv) {
		const size_t nbytes = p->n * sizeof *p->labels;
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

static enum mu_status open_prediction(struct prediction *p)
{
	enum mu_status st = MU_OK;
	const struct mu_input *data = p->run->data;

	if (!p->conf->predict)
		goto out;
	p->batch = data->config.batch;
	p->classes = mu_engine_classes(p->run->batches->engine);
	p->n = data->n;
	p->csv = mu_stem(p->conf->predict, ".csv") > 0;
	p->nbytes = sizeof(struct message) + p->batch * (sizeof(uint32_t) + sizeof(float)) +
		    p->batch * p->classes * sizeof(float);
	p->nbytes = (p->nbytes + 7) / 8 * 8;
	MU_TRY(MU_ALLOC(p->mine, p->nbytes, "predictions of a step"));
	if (p->topology->index != 0)
		goto out;
	MU_TRY(MU_ALLOC(p->all, p->nbytes * (size_t)p->topology->num_workers,
			"all workers' predictions of a step"));
	st = p->csv ? make_table(p) : make_arrays(p);
	if (st != MU_OK && !strstr(mu_trace_message(), "--predict"))
		mu_trace_prefix("--predict ");
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

	MU_TRY(mu_engine_metrics_reduce(&w.metrics, p->topology->peers));
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

static enum mu_status gather_step(struct prediction *p, size_t count)
{
	enum mu_status st = MU_OK;
	const struct train_batches *b = p->run->batches;
	struct message *m = (void *)p->mine;
	uint32_t *ids = (void *)(m + 1);
	float *labels = (void *)(ids + p->batch);

	m->count = count;
	if (count > 0) {
		memcpy(ids, b->ids, count * sizeof *ids);
		memcpy(labels, b->labels, count * sizeof *labels);
		MU_TRY(b->engine->ops->probabilities(b->engine, labels + p->batch));
	}
	MU_TRY(mu_gather(p->mine, p->all, p->nbytes, 0, p->topology->peers));
	if (p->topology->index == 0)
		MU_TRY(write_step(p));
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
		MU_TRY(gather_step(p, count));
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
	struct engine_metrics shown;
	char text[512] = "";

	if (p->run->data->unlabelled) {
		mu_log_info("%s: predicted %.0f images in %.3f s: %.2f samples/sec",
			    p->run->parameters ? p->run->parameters : "initial parameters",
			    m->samples, seconds, m->samples / seconds);
		goto out;
	}
	MU_TRY(mu_engine_metrics_choose(&shown, p->conf));
	for (size_t i = 0; i < shown.n; i++) {
		const size_t n = strlen(text);

		snprintf(text + n, sizeof text - n, "%s%s %f", i ? ", " : "", shown.printed[i],
			 shown.of[i]->value(m));
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
	struct prediction p = {.run = run, .conf = e->conf, .topology = e->topology};
	struct mu_metrics m;
	double started, seconds;

	MU_TRY(mu_agree(open_prediction(&p), p.topology->peers));
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
	if (p.topology->index == 0)
		MU_TRY(show_result(&p, &m, seconds));
	if (p.conf->predict && p.topology->index == 0)
		MU_TRY(finish_file(&p));
out:
	close_prediction(&p);
	return st;
}
