/* SPDX-License-Identifier: Apache-2.0 */
/* Options that do not go together, and those whose values are texts: before anything is read. */
#include "report/scalars.h"
#include "text.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

static int count_given(const struct mu_options *o, const char *const *names)
{
	int n = 0;

	for (size_t i = 0; names[i]; i++)
		n += mu_options_given(o, names[i]);
	return n;
}

/* Names that are in tables elsewhere, asked for before anything is read. */
static enum mu_status check_names(const struct conf *v)
{
	enum mu_status st = MU_OK;
	const struct mu_network *network;
	struct engine_metrics metrics;

	if (!v->network)
		MU_FAIL(MU_ERR_USAGE,
			"--network NAME is missing; trainer --help lists the options");
	MU_TRY(mu_network_find(&network, v->network));
	MU_TRY(mu_engine_metrics_choose(&metrics, v));
out:
	return st;
}

/* "123.68,116.779,103.939"; sets nothing else than three finite numbers. */
static enum mu_status parse_rgb(const char *option, const char *text, float *out)
{
	enum mu_status st = MU_OK;
	char rest;
	float v[3];

	if (sscanf(text, "%f,%f,%f%c", &v[0], &v[1], &v[2], &rest) != 3 || !isfinite(v[0]) ||
	    !isfinite(v[1]) || !isfinite(v[2]))
		MU_FAIL(MU_ERR_USAGE, "--%s %s: three numbers are needed, such as %s", option, text,
			TRAIN_RGB_MEAN);
	memcpy(out, v, sizeof v);
out:
	return st;
}

enum mu_status mu_conf_rgb(const struct conf *v, float mean[3], float std[3])
{
	enum mu_status st = MU_OK;

	MU_TRY(parse_rgb("rgb-mean", v->rgb_mean ? v->rgb_mean : TRAIN_RGB_MEAN, mean));
	MU_TRY(parse_rgb("rgb-std", v->rgb_std ? v->rgb_std : TRAIN_RGB_STD, std));
	for (int i = 0; i < 3; i++)
		if (std[i] <= 0)
			MU_FAIL(MU_ERR_USAGE, "--rgb-std %s: the numbers must be above 0",
				v->rgb_std);
out:
	return st;
}

/* What is done instead of a training; NULL: one is. */
static const char *find_instead(const struct conf *v)
{
	if (v->test_io)
		return "--test-io 1";
	if (v->dump_batch)
		return "--dump-batch";
	if (mu_engine_tunes(v))
		return "--conv-algo tune";
	return v->evaluate ? "--evaluate and --predict" : NULL;
}

/* An option about the training, where none is; NULL: there is none. */
static const char *find_of_training(const struct conf *v)
{
	return v->metrics_file              ? "metrics-file"
	       : v->tensorboard             ? "tensorboard"
	       : v->timeline                ? "timeline"
	       : v->halt_before             ? "halt-before"
	       : v->profile && !v->evaluate ? "profile" /* an evaluation has one, too */
	       : v->num_batches && v->evaluate && !v->benchmark ? "num-batches"
								: NULL;
}

static enum mu_status check_files(const struct mu_options *o, const struct conf *v)
{
	enum mu_status st = MU_OK;
	const char *instead = find_instead(v);
	const char *of_training = instead ? find_of_training(v) : NULL;

	if (of_training)
		MU_FAIL(MU_ERR_USAGE, "--%s is about a training, and with %s nothing is trained",
			of_training, instead);
	if (mu_options_given(o, "timeline-steps") && !v->timeline)
		MU_FAIL(MU_ERR_USAGE,
			"--timeline-steps %ld needs --timeline FILE.json: steps of "
			"what?",
			v->timeline_steps);
	MU_TRY(mu_report_metrics_file_check(v));
	MU_TRY(mu_report_events_check(v));
out:
	return st;
}

static enum mu_status check_data(const struct mu_options *o, const struct conf *v)
{
	enum mu_status st = MU_OK;
	/* --evaluate takes the one for the other where it alone is given. */
	const char *files = mu_options_given(o, "data-train") ? "data-train" : "data-val";
	float mean[3], std[3];

	if (v->benchmark && (v->data_dir || v->data_train))
		MU_FAIL(MU_ERR_USAGE,
			"--benchmark 1 and --%s %s contradict each other: random data or files?",
			v->data_dir ? "data-dir" : files,
			v->data_dir ? v->data_dir : v->data_train);
	if (v->data_dir && v->data_train)
		MU_FAIL(MU_ERR_USAGE,
			"--data-dir %s and --%s %s contradict each other: give one of them",
			v->data_dir, files, v->data_train);
	if (!v->data_train && (v->data_val || v->data_train_idx))
		MU_FAIL(MU_ERR_USAGE, "--%s needs --data-train FILE",
			v->data_val ? "data-val" : "data-train-idx");
	if (!v->data_val && v->data_val_idx)
		MU_FAIL(MU_ERR_USAGE, "--data-val-idx %s needs --data-val FILE", v->data_val_idx);
	if (!v->benchmark && !v->data_dir && !v->data_train && !v->summary && !v->text.sample)
		MU_FAIL(MU_ERR_USAGE, "no data: give --data-dir DIR with files of MNIST or CIFAR, "
				      "--data-train FILE with images or a text, or --benchmark 1");
	if (mu_train_has_plateau(v) && (v->benchmark || (v->data_train && !v->data_val)))
		MU_FAIL(MU_ERR_USAGE, "--lr-schedule plateau needs validation data, whose "
				      "perplexity it looks at: give --data-val");
	if (v->data_train && !v->data_val && v->target_accuracy > 0)
		MU_FAIL(MU_ERR_USAGE, "--target-accuracy needs validation data: give --data-val");
	if (mu_options_given(o, "shuffle-chunk") && v->shuffle != CONF_SHUFFLE_CHUNK)
		MU_FAIL(MU_ERR_USAGE, "--shuffle-chunk %ld needs --shuffle chunk, not %s",
			v->shuffle_chunk, mu_conf_shuffle_words[v->shuffle]);
	MU_TRY(mu_conf_rgb(v, mean, std));
	if (v->benchmark && (v->rgb_mean || v->rgb_std))
		MU_FAIL(MU_ERR_USAGE, "--rgb-mean and --rgb-std are for colour images from files, "
				      "not for --benchmark 1");
	if (v->benchmark && v->target_accuracy > 0)
		MU_FAIL(MU_ERR_USAGE,
			"--target-accuracy needs validation data; --benchmark 1 has none");
	if (mu_options_given(o, "load-epoch") && !v->model_prefix)
		MU_FAIL(MU_ERR_USAGE, "--load-epoch %ld needs --model-prefix P: which files?",
			v->load_epoch);
	MU_TRY(mu_checkpoint_save_check(o, v));
	MU_TRY(mu_checkpoint_load_check(o, v));
	MU_TRY(mu_train_on_nan_check(v));
out:
	return st;
}

bool mu_conf_ends_in(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);

	return n > m && strcmp(path + n - m, end) == 0;
}

static enum mu_status check_convolutions(const struct conf *v)
{
	enum mu_status st = MU_OK;

	if (mu_engine_tunes(v) && !v->conv_table)
		MU_FAIL(MU_ERR_USAGE, "--conv-algo tune needs --conv-table FILE, to write to");
	if (v->conv_table && !mu_engine_tunes(v) && v->conv_algo != CONF_CONV_AUTO)
		MU_FAIL(MU_ERR_USAGE,
			"--conv-table %s and --conv-algo %s contradict each other: the table names "
			"an algorithm for each convolution",
			v->conv_table, mu_conf_conv_words[v->conv_algo]);
out:
	return st;
}

enum mu_status mu_conf_check(const struct mu_options *o, struct conf *v)
{
	enum mu_status st = MU_OK;
	static const char *const batches[] = {"batch-size", "global-batch-size", "batch-per-device",
					      NULL};
	struct engine_device_list devices;

	MU_TRY(check_names(v));
	MU_TRY(mu_conf_text_settle(o, v));
	MU_TRY(mu_conf_optimizer_settle(o, v));
	MU_TRY(mu_train_multipliers_check(v));
	MU_TRY(mu_conf_store_settle(o, v));
	v->traffic = MU_VERBOSE_ENVIRONMENT;
	if (mu_options_given(o, "verbose"))
		v->traffic = (enum mu_verbose)(MU_VERBOSE_NO + v->verbose);
	if (count_given(o, batches) > 1)
		MU_FAIL(MU_ERR_USAGE, "--batch-size, --global-batch-size and --batch-per-device: "
				      "give one of them");
	if (v->num_classes == 1)
		MU_FAIL(MU_ERR_USAGE, "--num-classes 1: at least 2 are needed, or 0 for the "
				      "network's own number");
	if (v->label_smoothing >= 1)
		MU_FAIL(MU_ERR_USAGE, "--label-smoothing %g: it must be below 1",
			v->label_smoothing);
	if (v->top_k == 1)
		MU_FAIL(MU_ERR_USAGE, "--top-k 1 is the accuracy, which is always reported: give a "
				      "K from 2 on");
	MU_TRY(check_convolutions(v));
	if (v->dtype_fallback && v->dtype == MU_FLOAT32)
		MU_FAIL(MU_ERR_USAGE, "--dtype-fallback 1 needs --dtype bfloat16 or float16");
	MU_TRY(mu_engine_device_list_read(&devices, v));
	if (v->dtype == MU_FLOAT16 && !devices.kind->memory)
		MU_FAIL(MU_ERR_USAGE,
			"--dtype float16: device %s has float32 and bfloat16; float16 is for GPUs "
			"(--gpus)",
			devices.kind->name);
	MU_TRY(mu_train_loss_scale_check(o, v));
	MU_TRY(mu_train_predict_settle(v));
	MU_TRY(check_files(o, v));
	if (v->load_epoch > v->num_epochs && !v->evaluate && !v->text.sample)
		MU_FAIL(MU_ERR_USAGE, "--load-epoch %ld is past --num-epochs %ld", v->load_epoch,
			v->num_epochs);
	MU_TRY(check_data(o, v));
	MU_TRY(mu_conf_images_settle(o, v));
out:
	return st;
}
