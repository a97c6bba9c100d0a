/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint of the trainer holds: network, sizes, position, metrics, settings. */
#include "checkpoint_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <muster/base.h>
#include <muster/metrics.h>
#include <muster/storage.h>

enum { TEXT_BYTES = 4096 };

/* Attributes, in the order in which they are printed; others are settings of single runs. */
static const char *const names[] = {
	"network", "num-layers", "num-hidden", "num-embed", "vocabulary", "text", "image-shape",
	"num-classes", "dtype", "input", "data", "kv-store", "workers", "servers", "nodes",
	"threads", "devices", "batch-size", "optimizer", "mom", "wd", "optimizer-settings", "lr",
	"lr-schedule", "update-period", "sync-period", "gc-type", "loss", "label-smoothing",
	"loss-scale", "dropout", "seed", "rgb-mean", "rgb-std", "augmentation"};

static enum mu_status get(struct mu_array_file *file, const char *name, char text[TEXT_BYTES])
{
	enum mu_status st = mu_array_file_find_text(file, name, text, TEXT_BYTES);

	mu_text_shorten(text);
	return st;
}

/* Settings that were not given, or have no value, are left out. */
static void put(const char *name, const char *text)
{
	const bool automatic = (strncmp(name, "num-", 4) == 0 && strcmp(text, "0") == 0) ||
			       (strcmp(name, "dropout") == 0 && *text == '-');

	if (*text && strcmp(text, "none") != 0 && !automatic)
		printf("%-19s %s\n", name, mu_shown(text));
}

struct counts {
	size_t parameters, arrays;
};

static enum mu_status count(void *context, const char *name, int ndims, const size_t *dims)
{
	struct counts *c = context;
	size_t n = 1;

	for (int i = 0; i < ndims; i++)
		n *= dims[i];
	c->arrays++;
	if (strncmp(name, "arg/", 4) == 0)
		c->parameters += n;
	return MU_OK;
}

/* "window 0, 2 workers, 64 samples a step, 400 samples, 7 updates, last lr 0.05" */
static void put_counts(const char *position)
{
	size_t workers, batch;
	unsigned long long updates;
	double samples;
	char rate[32] = "";

	if (sscanf(position,
		   "window %*u, %zu workers, %zu samples a step, %lf samples, %llu updates, "
		   "last lr %31s",
		   &workers, &batch, &samples, &updates, rate) == 5)
		printf("%-19s %.0f sample%s in %llu update%s, %zu a step of %zu worker%s; last lr "
		       "%s\n",
		       "trained", samples, MU_S(samples), updates,
		       MU_S(updates), batch, workers, MU_S(workers),
		       mu_shown(rate));
}

/* "epoch 3", or "epoch 3, step 20 of the next one". */
static enum mu_status put_position(struct mu_array_file *file)
{
	enum mu_status st = MU_OK;
	char epoch[TEXT_BYTES], step[TEXT_BYTES], text[2 * TEXT_BYTES + 64];

	MU_TRY(get(file, "epoch", epoch));
	MU_TRY(get(file, "step", step));
	snprintf(text, sizeof text, "after epoch %s", epoch);
	if (strcmp(step, "0") != 0)
		snprintf(text, sizeof text, "after step %s in epoch %ld", step,
			 strtol(epoch, NULL, 10) + 1);
	put("saved", text);
	MU_TRY(get(file, "position", text));
	put_counts(text);
out:
	return st;
}

/* Of the loss whose sums they are. */
static void put_sums(const char *text)
{
	const struct mu_loss *loss;
	struct mu_metrics m;

	for (size_t i = 0; (loss = mu_loss_at(i)); i++)
		if (mu_metrics_scan(&m, loss, text) && m.counted > 0) {
			const struct mu_metric *mean = mu_metric_used(loss, MU_METRIC_IS_LOSS),
					       *best = mu_metric_used(loss, MU_METRIC_BEST);

			printf("%-19s loss %.4f", "epoch so far", mu_metric_value(mean, &m));
			if (best)
				printf(", %s %.4f", best->name, mu_metric_value(best, &m));
			putchar('\n');
		}
}

static enum mu_status put_metrics(struct mu_array_file *file)
{
	enum mu_status st = MU_OK;
	char text[TEXT_BYTES], metric[32];
	double value;
	size_t epoch;

	MU_TRY(get(file, "metrics_epoch", text));
	put_sums(text);
	MU_TRY(get(file, "best", text));
	if (sscanf(text, "%31s %lf, epoch %zu", metric, &value, &epoch) == 3 && epoch > 0)
		printf("%-19s %s %.4f after epoch %zu\n", "best validation",
		       mu_shown(metric), value, epoch);
out:
	return st;
}

static enum mu_status print(struct mu_array_file *file, const char *path)
{
	enum mu_status st = MU_OK;
	char text[TEXT_BYTES];
	struct counts counts = {.arrays = 0};
	struct stat status = {.st_size = 0};

	stat(path, &status);
	MU_TRY(mu_array_file_each(file, count, &counts));
	printf("%s: checkpoint of a training, %lld bytes\n", mu_shown(path),
	       (long long)status.st_size);
	MU_TRY(put_position(file));
	MU_TRY(put_metrics(file));
	printf("%-19s %zu, in a file of %zu array%s\n", "parameters", counts.parameters,
	       counts.arrays, MU_S(counts.arrays));
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		MU_TRY(get(file, names[i], text));
		put(names[i], text);
	}
	MU_TRY(mu_array_file_verify(file));
	printf("no errors\n");
out:
	return st;
}

enum mu_status data_checkpoint_info(const char *path, bool *is_one)
{
	enum mu_status st = MU_OK;
	struct mu_array_file *file = NULL;
	char head[8] = "", format[TEXT_BYTES] = "";

	*is_one = mu_array_file_supported() &&
		  mu_stream_head(path, head, sizeof head) == sizeof head &&
		  memcmp(head, "\x89HDF\r\n\x1a\n", sizeof head) == 0;
	if (!*is_one)
		goto out;
	/* An .h5 file of images says nothing. */
	if (mu_array_file_open(&file, path) != MU_OK || get(file, "format", format) != MU_OK)
		mu_trace_clear();
	*is_one = strcmp(format, "muster checkpoint") == 0;
	if (*is_one)
		MU_TRY(print(file, path));
out:
	mu_array_file_close(file, false);
	return st;
}
