/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --export: the network and the parameters of a file as a model of ONNX. Where it has 2 GB or more,
 * which no program reads in one piece, its arrays are in a second file beside it.
 */
#include "conf/conf.h"
#include "conf/text.h"
#include "modes.h"

#include <string.h>

#include <muster/checkpoint.h>
#include <muster/pictures.h>
#include <muster/plan.h>
#include <muster/storage.h>

#include "checkpoint/checkpoint.h"
#include "train/data.h"

enum { NOTES = 8, TEXT_BYTES = 512 };

struct model {
	const struct conf *v;
	struct mu_device device; /* ref, whose arrays are plain */
	struct mu_net *net;
	struct mu_plan *plan;
	float *weights;
	struct mu_shape shape;
	const struct mu_picture_settings *pictures; /* NULL: the data that are named are others */
	bool images;                                /* whose pixels were normalised */
	struct checkpoint_classes classes;
	char *class_names, about_input[TEXT_BYTES], mean_text[64], std_text[64];
	struct mu_onnx_note notes[NOTES];
	size_t n_notes;
	struct mu_onnx *onnx;
};

/* ---- the network ---- */

static enum mu_status open_network(struct model *m)
{
	enum mu_status st = MU_OK;
	const struct conf *v = m->v;
	const struct mu_network *network;
	struct mu_net_config config;
	size_t classes;

	MU_TRY(mu_network_find(&network, v->network));
	MU_TRY(mu_train_find_shape(v, network, &m->shape));
	if ((network->traits & MU_NETWORK_SEQUENCES) && v->text.lengths_given)
		m->shape = mu_sample_sequence(mu_conf_window(v, network));
	classes = v->facts.of_values ? mu_train_outputs(v, NULL)
		  : v->num_classes   ? (size_t)v->num_classes
				     : network->classes;
	config = mu_train_describe_model(v, &m->shape, classes);
	MU_TRY(mu_device_open(&m->device, "ref", 1));
	MU_TRY(mu_net_new_from(&m->net, network, &config));
	MU_TRY(mu_plan_new_dry(&m->plan, m->net, &m->device, 1, MU_PHASE_INFER, NULL));
	MU_TRY(MU_ALLOC(m->weights, mu_plan_n(m->plan), "weights"));
	MU_TRY(mu_load_weights(m->plan, v->load, false, m->weights));
out:
	return st;
}

/* ---- what the model says of itself ---- */

static void note(struct model *m, const char *name, const char *text)
{
	m->notes[m->n_notes++] = (struct mu_onnx_note){name, text};
}

static void write_rgb(const float of[3], char *text, size_t nbytes)
{
	snprintf(text, nbytes, "%.9g,%.9g,%.9g", (double)of[0], (double)of[1], (double)of[2]);
}

/* A name a line, as a checkpoint has them. */
static enum mu_status note_classes(struct model *m)
{
	enum mu_status st = MU_OK;
	size_t n = 1;

	MU_TRY(mu_checkpoint_classes_read(&m->classes, m->v->load));
	if (m->classes.n == 0)
		goto out;
	for (size_t i = 0; i < m->classes.n; i++)
		n += strlen(m->classes.name[i]) + 1;
	MU_TRY(MU_ALLOC(m->class_names, n, "names of classes"));
	for (size_t i = 0, at = 0; i < m->classes.n; i++)
		at += (size_t)sprintf(m->class_names + at, "%s%s", i ? "\n" : "",
				      m->classes.name[i]);
	note(m, "classes", m->class_names);
out:
	return st;
}

static enum mu_status describe(struct model *m, const char *input)
{
	enum mu_status st = MU_OK;
	const struct conf *v = m->v;
	const struct mu_picture_settings *pictures = m->pictures;
	const char *form = "the values of a sample, as in training";

	m->images = pictures && strcmp(input, "images") == 0;
	if (m->images) {
		write_rgb(pictures->mean, m->mean_text, sizeof m->mean_text);
		write_rgb(pictures->std, m->std_text, sizeof m->std_text);
	}
	if (v->onnx.pixels && (!m->images || mu_shape_channels(&m->shape) > 3))
		MU_FAIL(MU_ERR_USAGE,
			"--export-pixels: %s was not trained with images of pixels, but with %s",
			v->load, *input ? input : "data of which it says nothing");
	note(m, "network", v->network_name);
	note(m, "parameters", v->load);
	if (v->facts.reads_sequences)
		form = "numbers of words or tokens";
	if (m->images && v->onnx.pixels)
		form = "pixels from 0 to 255, channels red, green, blue";
	else if (m->images)
		form = "(pixel - rgb-mean) / rgb-std of pixels from 0 to 255, channels red, green, "
		       "blue";
	snprintf(m->about_input, sizeof m->about_input, "%s", form);
	note(m, "input", m->about_input);
	if (m->images) {
		note(m, "rgb-mean", m->mean_text);
		note(m, "rgb-std", m->std_text);
	}
	MU_TRY(note_classes(m));
out:
	return st;
}

/* ---- the files ---- */

/* Is there another program's file of this name? Ours begin with the version of their form, and the
 * name of who wrote them. */
static enum mu_status check_place(const char *path)
{
	enum mu_status st = MU_OK;
	static const char begin[] = "\x12\x06Muster";
	char head[10];
	const size_t n = mu_stream_head(path, head, sizeof head);

	if (n > 0 && (n < sizeof head || head[0] != 8 || memcmp(head + 2, begin, 8) != 0))
		MU_FAIL(MU_ERR_USAGE,
			"--export %s: there is such a file, which Muster did not write: name "
			"another, or remove it",
			path);
out:
	return st;
}

static enum mu_status write_files(const struct model *m, const char *path)
{
	enum mu_status st = MU_OK;
	const char *slash = strrchr(path, '/');
	const bool large = mu_onnx_nbytes(m->onnx) >= MU_ONNX_MOST;
	struct mu_replace file = {.path = NULL}, data = {.path = NULL};
	char beside[CHECKPOINT_PATH + 8];

	snprintf(beside, sizeof beside, "%s.data", path);
	if (large)
		MU_TRY(mu_replace_open(&data, beside));
	MU_TRY(mu_replace_open(&file, path));
	st = mu_onnx_write(m->onnx, file.stream, data.stream, slash ? beside + (slash + 1 - path)
								     : beside);
	if (st != MU_OK)
		mu_trace_prefix("%s: ", path);
	MU_TRY(st);
	if (large)
		MU_TRY(mu_replace_commit(&data));
	MU_TRY(mu_replace_commit(&file));
	printf("%s: opset %ld, %.1f MB%s%s\n", path, m->v->onnx.opset,
	       mu_onnx_nbytes(m->onnx) / 1e6, large ? ", arrays in " : "", large ? beside : "");
out:
	mu_replace_release(&data);
	mu_replace_release(&file);
	return st;
}

enum mu_status mu_train_export(const struct conf *v, const char *input)
{
	enum mu_status st = MU_OK;
	struct model m = {.v = v, .pictures = mu_conf_reader_settings(v, "records")};
	struct mu_onnx_config config;

	if (strlen(v->onnx.file) >= CHECKPOINT_PATH)
		MU_FAIL(MU_ERR_USAGE, "--export: a path of at most %d bytes is needed",
			CHECKPOINT_PATH - 1);
	MU_TRY(check_place(v->onnx.file));
	MU_TRY(open_network(&m));
	MU_TRY(describe(&m, input));
	config = (struct mu_onnx_config){
		.opset = (int)v->onnx.opset,
		.fold = v->onnx.fold,
		.mean = v->onnx.pixels ? m.pictures->mean : NULL,
		.std = v->onnx.pixels ? m.pictures->std : NULL,
		.about_input = m.about_input,
		.notes = m.notes,
		.n_notes = m.n_notes,
	};
	MU_TRY(mu_onnx_new(&m.onnx, m.plan, m.weights, &config));
	MU_TRY(write_files(&m, v->onnx.file));
out:
	mu_onnx_free(m.onnx);
	mu_checkpoint_classes_release(&m.classes);
	mu_free(m.class_names);
	mu_plan_free(m.plan);
	mu_net_free(m.net);
	mu_device_close(&m.device);
	mu_free(m.weights);
	return st;
}
