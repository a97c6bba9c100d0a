/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of convolution algorithms: --conv-algo tune writes one (tune.c), --conv-table reads one,
 * and a checkpoint holds the table of its run. Worker 0 reads it, and all workers use it. A text:
 *
 *	muster convolutions 1
 *	network resnet 3,224,224 0123456789abcdef     name, shape of a sample, hash of parameters
 *	device cpu: oneDNN 2.6.3, avx512              library and instructions
 *	measured batch 16, float32, 2 threads         other values: a warning
 *	conv0 direct winograd direct                  forward, gradients of data, of weights
 */
#include "engine/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const title = "muster convolutions 1\n";

/* ---- what a table must match ---- */

/* Name, a sample, and names and shapes of all parameters. */
static void describe_network(const struct mu_plan *plan, const char *network,
			     const struct mu_shape *shape, char text[TRAIN_CONV_TEXT])
{
	char sample[MU_SAMPLE_TEXT];

	snprintf(text, TRAIN_CONV_TEXT, "%s %s %016" PRIx64, network,
		 mu_sample_text(shape, ",", sample, sizeof sample), mu_plan_structure_hash(plan));
}

/* The device without its threads: "cpu: oneDNN 2.6.3, avx512". */
static void describe_device(const struct mu_device *device, char text[TRAIN_CONV_TEXT])
{
	char *threads;

	device->ops->describe(device, text, TRAIN_CONV_TEXT);
	threads = strrchr(text, ',');
	if (threads && strstr(threads, " thread"))
		*threads = '\0';
}

static void describe_run(const struct mu_plan *plan, const struct mu_device *device,
			 char text[TRAIN_CONV_TEXT])
{
	snprintf(text, TRAIN_CONV_TEXT, "batch %zu, %s%s, %d thread%s", mu_plan_batch_size(plan),
		 mu_dtype_name(device->dtype), device->allow_tf32 ? " with TF32" : "",
		 device->n_threads, MU_S(device->n_threads));
}

/* ---- writing ---- */

enum mu_status mu_engine_conv_write(const struct mu_plan *plan, const struct mu_device *device,
				    const struct engine_conv_net *net,
				    const struct mu_convolution_choice *choices, size_t n)
{
	enum mu_status st = MU_OK;
	struct mu_replace replace = {0};
	char network[TRAIN_CONV_TEXT], machine[TRAIN_CONV_TEXT], run[TRAIN_CONV_TEXT];
	FILE *f = NULL;
	bool failed;

	describe_network(plan, net->name, net->shape, network);
	describe_device(device, machine);
	describe_run(plan, device, run);
	MU_TRY(mu_replace_begin(&replace, net->path));
	f = fopen(replace.written, "we");
	if (!f)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", net->path, strerror(errno));
	fprintf(f, "%snetwork %s\ndevice %s\nmeasured %s\n", title, network, machine, run);
	for (size_t i = 0; i < n; i++) {
		const struct mu_convolution_choice *c = &choices[i];

		fprintf(f, "%s %s %s %s\n", c->layer,
			mu_convolution_algorithm_name(c->algorithms[MU_CONVOLUTION_FORWARD]),
			mu_convolution_algorithm_name(c->algorithms[MU_CONVOLUTION_DATA]),
			mu_convolution_algorithm_name(c->algorithms[MU_CONVOLUTION_WEIGHTS]));
	}
	failed = ferror(f) != 0;
	failed |= fclose(f) != 0;
	if (failed)
		st = mu_trace_start(MU_ERR_IO, __FILE__, __LINE__, "%s: cannot be written: %s",
				    net->path, strerror(errno));
	f = NULL;
	MU_TRY(st);
	MU_TRY(mu_replace_commit(&replace));
out:
	if (f)
		fclose(f);
	mu_replace_release(&replace);
	return st;
}

/* ---- reading ---- */

enum mu_status mu_engine_conv_read(struct engine_conv *c, const char *path)
{
	enum mu_status st = MU_OK;
	char *text = c->text;
	FILE *f;
	size_t n;

	snprintf(c->path, sizeof c->path, "%s", path);
	st = mu_stream_open(&f, path);
	if (st != MU_OK)
		mu_trace_prefix("--conv-table ");
	MU_TRY(st);
	n = fread(text, 1, TRAIN_CONV_BYTES - 1, f);
	text[n] = '\0';
	if (ferror(f))
		MU_FAIL(MU_ERR_IO, "--conv-table %s: cannot be read", path);
	if (strlen(text) != n || strncmp(text, title, strlen(title)) != 0 || getc(f) != EOF)
		MU_FAIL(MU_ERR_FORMAT,
			"--conv-table %s: not a table of convolutions, as --conv-algo tune writes "
			"them",
			path);
out:
	if (f)
		fclose(f);
	return st;
}

/* The rest of a line that begins with the word and a blank; NULL: another line. */
static const char *after(const char *line, const char *word)
{
	size_t n = strlen(word);

	return strncmp(line, word, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

static enum mu_status parse_choice(const struct engine_conv *c, const char *line,
				   struct mu_convolution_choice *choice)
{
	enum mu_status st = MU_OK;
	char words[MU_CONVOLUTION_PHASES][16], rest, why[TRAIN_CONV_TEXT];

	if (sscanf(line, "%63s %15s %15s %15s %c", choice->layer, words[0], words[1], words[2],
		   &rest) != 4)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: \"%s\" is not a line of a table of convolutions: a layer's name and "
			"three algorithms are expected",
			c->path, line);
	for (int phase = 0; phase < MU_CONVOLUTION_PHASES && st == MU_OK; phase++)
		st = mu_convolution_algorithm_find(&choice->algorithms[phase], words[phase]);
	if (st != MU_OK) {
		snprintf(why, sizeof why, "%s", mu_trace_message());
		mu_trace_clear();
		MU_FAIL(MU_ERR_FORMAT, "%s: layer %s: %s", c->path, choice->layer, why);
	}
out:
	return st;
}

static enum mu_status parse(struct engine_conv *c)
{
	enum mu_status st = MU_OK;
	size_t lines = 1;
	char *line, *place = NULL, *copy = NULL;

	for (const char *p = c->text; *p; p++)
		lines += *p == '\n';
	MU_TRY(MU_ALLOC(c->choices, lines, "table of convolutions"));
	MU_TRY(MU_ALLOC(copy, strlen(c->text) + 1, "table of convolutions"));
	strcpy(copy, c->text + strlen(title));
	for (line = strtok_r(copy, "\n", &place); line; line = strtok_r(NULL, "\n", &place)) {
		const char *network = after(line, "network"), *device = after(line, "device");
		const char *measured = after(line, "measured");

		if (network)
			snprintf(c->network, sizeof c->network, "%s", network);
		else if (device)
			snprintf(c->device, sizeof c->device, "%s", device);
		else if (measured)
			snprintf(c->measured, sizeof c->measured, "%s", measured);
		else
			MU_TRY(parse_choice(c, line, &c->choices[c->n++]));
	}
out:
	mu_free(copy);
	return st;
}

bool mu_engine_conv_is_text(const char *text)
{
	return strncmp(text, title, strlen(title)) == 0;
}

enum mu_status mu_engine_conv_share(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = e->members;
	struct engine_conv *c = e->conv;

	MU_TRY(mu_members_follow(m, c, sizeof *c));
	c->hash = mu_hash(MU_HASH_START, c->text, strlen(c->text));
	if (*c->text)
		MU_TRY(mu_agree(parse(c), m->comm));
out:
	return st;
}

/* ---- use ---- */

void mu_engine_conv_set(struct mu_engine *e, struct mu_device *device)
{
	struct engine_conv *c = e->conv;
	char machine[TRAIN_CONV_TEXT];

	describe_device(device, machine);
	if (*c->text && c->saved && strcmp(c->device, machine) != 0) {
		if (e->members->index == 0)
			mu_log_warn("%s: its table of convolutions was measured on %s, and this is "
				    "%s: the fixed rule chooses algorithms; --conv-algo tune makes "
				    "a table for it",
				    c->path, c->device, machine);
		*c->text = '\0';
		c->n = 0;
	}
	device->choices = c->choices;
	device->n_choices = c->n;
}

static bool has_layer(const struct mu_plan *plan, const char *name)
{
	for (size_t l = 0; l < mu_plan_layers(plan); l++)
		if (strcmp(mu_plan_layer_name(plan, l), name) == 0)
			return true;
	return false;
}

enum mu_status mu_engine_conv_check(const struct mu_engine *e, const struct mu_shape *shape)
{
	enum mu_status st = MU_OK;
	const struct engine_conv *c = e->conv;
	const struct mu_device *device = &e->devices.of[0].device;
	char network[TRAIN_CONV_TEXT], machine[TRAIN_CONV_TEXT], measured[TRAIN_CONV_TEXT];

	if (!*c->text)
		goto out;
	describe_network(e->plan, e->conf->network_name, shape, network);
	describe_device(device, machine);
	describe_run(e->plan, device, measured);
	if (strcmp(c->network, network) != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: its table of convolutions is for network %s, and this run has %s; "
			"--conv-algo tune makes one for it",
			c->path, c->network, network);
	if (strcmp(c->device, machine) != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: its table of convolutions was measured on %s, and this is %s; "
			"--conv-algo tune makes one for it",
			c->path, c->device, machine);
	for (size_t i = 0; i < c->n; i++)
		if (!has_layer(e->plan, c->choices[i].layer))
			MU_FAIL(MU_ERR_FORMAT,
				"%s: its table of convolutions has a layer %s, and network %s has "
				"none of this name",
				c->path, c->choices[i].layer, e->conf->network_name);
	if (strcmp(c->measured, measured) != 0 && e->members->index == 0)
		mu_log_warn("%s: its table of convolutions was measured with %s, and this run has "
			    "%s: others may be faster",
			    c->path, c->measured, measured);
out:
	return st;
}

void mu_engine_conv_close(struct mu_engine *e)
{
	if (e->conv)
		mu_free(e->conv->choices);
	mu_free(e->conv);
}
