/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --evaluate and --predict: validation with the parameters of a file, and nothing else. The
 * workers' probabilities are gathered on worker 0 after each step, in the order of the records,
 * so that the file can be written sequentially. Of sequences they are log-probabilities of the
 * labels. With --benchmark 1, on random data, it logs the speed as in training instead.
 */
#include "modes.h"
#include "prediction_file.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "conf/conf.h"
#include "engine/metrics.h"
#include "report/observers.h"
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
	struct prediction_file file;
	size_t batch;
	size_t values;               /* of a sample, at most */
	struct mu_prediction *found; /* sequences: of the labels of a step */
	size_t nbytes;               /* of a message */
	char *mine, *all;            /* messages; all: worker 0's, of all workers */
};

/* Labels of a sample of a step. */
static size_t count_labels(const struct prediction *p, size_t step)
{
	return mu_input_labels(p->run->data, mu_input_group(p->run->data, step));
}

static enum mu_status write_step(struct prediction *p, size_t step)
{
	enum mu_status st = MU_OK;
	const size_t n = count_labels(p, step), values = p->file.sequences ? 2 * n : p->values;

	for (int w = 0; w < p->members->num_workers; w++) {
		const char *from = p->all + (size_t)w * p->nbytes;
		const struct message *m = (const void *)from;
		const uint32_t *ids = (const void *)(m + 1);
		const float *labels = (const void *)(ids + p->batch),
			    *rows = labels + p->batch * p->file.steps;

		for (size_t i = 0; i < m->count; i++)
			MU_TRY(mu_prediction_file_add(&p->file, ids[i], n, labels + i * n,
						      rows + i * values));
	}
out:
	return st;
}

/* ---- a run ---- */

static enum mu_status allocate(struct prediction *p)
{
	enum mu_status st = MU_OK;
	const struct prediction_file *f = &p->file;

	p->values = f->sequences ? 2 * f->steps : mu_prediction_file_columns(f);
	p->nbytes = sizeof(struct message) + p->batch * sizeof(uint32_t) +
		    p->batch * (f->steps + p->values) * sizeof(float);
	p->nbytes = (p->nbytes + 7) / 8 * 8;
	if (p->nbytes > INT_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"--predict %s: the outputs of a batch have %.1f GiB, and 2 are possible; "
			"a --batch-size below %zu needs less",
			p->conf->predict, (double)p->nbytes / (1 << 30), p->batch);
	MU_TRY(MU_ALLOC(p->mine, p->nbytes, "predictions of a step"));
	if (f->sequences)
		MU_TRY(MU_ALLOC(p->found, p->batch * f->steps, "predictions of a step"));
	if (p->members->index == 0)
		MU_TRY(MU_ALLOC(p->all, p->nbytes * (size_t)p->members->num_workers,
				"all workers' predictions of a step"));
out:
	return st;
}

static enum mu_status open_prediction(struct prediction *p)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = p->run->batches->engine;
	const struct mu_input *data = p->run->data;
	const struct mu_shape *output = mu_plan_probabilities_shape(e->plan);
	const bool steps = e->network->traits & MU_NETWORK_SEQUENCES;

	if (!p->conf->predict)
		goto out;
	p->batch = data->config.batch;
	p->file = (struct prediction_file){.conf = p->conf,
					   .data = data,
					   .parameters = p->run->parameters,
					   .output = mu_net_loss(e->net)->output,
					   .classes = mu_engine_classes(e),
					   .n = data->n,
					   .steps = mu_input_width(data)};
	p->file.sequences = steps && p->file.output == MU_OUTPUT_PROBABILITIES;
	if (steps && !p->file.sequences && mu_shape_positions(output) > 1)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"--predict %s: the network has values for each step of a sequence, which "
			"are not written; --evaluate measures them",
			p->conf->predict);
	MU_TRY(mu_prediction_file_init(&p->file, output));
	MU_TRY(allocate(p));
	if (p->members->index == 0)
		MU_TRY(mu_prediction_file_open(&p->file));
out:
	return st;
}

static void close_prediction(struct prediction *p)
{
	mu_prediction_file_close(&p->file);
	mu_free(p->found);
	mu_free(p->mine);
	mu_free(p->all);
}

/* Samples of the whole job between steps; metrics of all so far. */
static enum mu_status show_speed(struct prediction *p, size_t step, const struct mu_metrics *m)
{
	enum mu_status st = MU_OK;
	struct report_window w = {
		.first = p->step, .last = step, .joules = NAN, .metrics = *m};

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
	float *labels = (void *)(ids + p->batch), *values = labels + p->batch * p->file.steps;
	const size_t n = count_labels(p, step);

	m->count = count;
	if (count > 0) {
		memcpy(ids, b->ids, count * sizeof *ids);
		memcpy(labels, b->labels, count * n * sizeof *labels);
		if (p->file.sequences)
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
static enum mu_status end_step(void *context, size_t step, size_t count, const struct mu_metrics *m)
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
	char text[2048] = "";

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
			 mu_metric_value(shown->of[i], m));
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
	MU_TRY(mu_engine_metrics_choose(&p.shown, mu_net_loss(e->net), p.conf,
					mu_net_weighs(e->net)));
	if (p.members->index == 0)
		mu_report_classes(&p.shown, &m);
	if (p.members->index == 0)
		MU_TRY(show_result(&p, &m, seconds));
	if (p.conf->predict && p.members->index == 0)
		MU_TRY(mu_prediction_file_finish(&p.file));
out:
	close_prediction(&p);
	return st;
}
