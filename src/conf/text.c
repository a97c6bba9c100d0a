/* SPDX-License-Identifier: Apache-2.0 */
/* Options about texts and the networks that read them; the vocabulary of a run. */
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint.h"

static bool ends_in(const char *name, const char *end)
{
	const size_t n = strlen(name), m = strlen(end);

	return n >= m && strcmp(name + n - m, end) == 0;
}

bool mu_conf_reads_text(const struct conf *v)
{
	return v->data_train && (v->text.unit || ends_in(v->data_train, ".txt"));
}

bool mu_conf_text_characters(const struct conf *v)
{
	return v->text.unit == CONF_UNIT_CHARACTERS;
}

/* "8,16,24": rising numbers. */
static enum mu_status read_lengths(struct conf_text *t)
{
	enum mu_status st = MU_OK;
	const char *p = t->buckets;

	for (t->n_lengths = 0; *p;) {
		char *end;
		const unsigned long length = strtoul(p, &end, 10);
		const size_t last = t->n_lengths ? t->lengths[t->n_lengths - 1] : 0;

		if (*p < '0' || *p > '9' || length <= last || length > TRAIN_LONGEST ||
		    (*end != '\0' && (*end != ',' || end[1] == '\0')))
			MU_FAIL(MU_ERR_USAGE,
				"--buckets %s: cannot read '%s': rising lengths from 1 to %d are "
				"needed, such as 8,16,24",
				t->buckets, p, TRAIN_LONGEST);
		if (t->n_lengths == TRAIN_MAX_LENGTHS)
			MU_FAIL(MU_ERR_USAGE, "--buckets %s: more than %d lengths", t->buckets,
				TRAIN_MAX_LENGTHS);
		t->lengths[t->n_lengths++] = length;
		p = *end ? end + 1 : end;
	}
	if (t->n_lengths == 0)
		MU_FAIL(MU_ERR_USAGE, "--buckets: a list of lengths is needed, such as 8,16,24");
out:
	return st;
}

static enum mu_status check_sample(const struct mu_options *o, const struct conf *v)
{
	enum mu_status st = MU_OK;

	if (mu_options_given(o, "prime") && !v->text.sample)
		MU_FAIL(MU_ERR_USAGE, "--prime needs --sample N: how much text?");
	if (v->text.sample && !v->load && !v->model_prefix)
		MU_FAIL(MU_ERR_USAGE, "--sample %ld needs --load FILE or --model-prefix P: which "
				      "parameters?",
			v->text.sample);
	if (v->text.sample && !v->text.vocabulary && !v->model_prefix)
		MU_FAIL(MU_ERR_USAGE, "--sample %ld with --load needs --vocab FILE: which words?",
			v->text.sample);
out:
	return st;
}

enum mu_status mu_conf_text_settle(const struct mu_options *o, struct conf *v)
{
	enum mu_status st = MU_OK;
	static const char *const of_texts[] = {"text", "vocab", "buckets"};
	static const char *const of_images[] = {
		"image-shape", "rgb-mean",   "rgb-std",          "num-classes", "data-train-idx",
		"data-val-idx", "dump-batch", "skip-bad-records", "data-cache",  "predict"};
	const bool text = mu_conf_reads_text(v);

	v->text.dropout_given = mu_options_given(o, "dropout");
	MU_TRY(read_lengths(&v->text));
	MU_TRY(check_sample(o, v));
	for (size_t i = 0; !text && !v->text.sample && i < sizeof of_texts / sizeof *of_texts; i++)
		if (mu_options_given(o, of_texts[i]))
			MU_FAIL(MU_ERR_USAGE, "--%s is for texts: give --data-train FILE.txt",
				of_texts[i]);
	for (size_t i = 0; text && i < sizeof of_images / sizeof *of_images; i++)
		if (mu_options_given(o, of_images[i]))
			MU_FAIL(MU_ERR_USAGE, "--%s is for images; %s is read as text",
				of_images[i], v->data_train);
	if (text && v->shuffle == CONF_SHUFFLE_CHUNK)
		MU_FAIL(MU_ERR_USAGE, "--shuffle chunk is for images; %s is read as text",
			v->data_train);
out:
	return st;
}

/* A text needs a network that reads sequences, and the other way. */
static enum mu_status check_network(const struct train_run *run, bool text)
{
	enum mu_status st = MU_OK;
	const struct conf *v = &run->options;

	if (text && !run->engine.network->reads_sequences)
		MU_FAIL(MU_ERR_USAGE,
			"network %s is for images, and %s is read as text: --network lstm reads "
			"texts",
			v->network, v->data_train);
	if (!text && run->engine.network->reads_sequences && !v->benchmark)
		MU_FAIL(MU_ERR_USAGE,
			"network %s reads sequences of words: give --data-train FILE.txt, or "
			"--benchmark 1",
			v->network);
out:
	return st;
}

enum mu_status mu_conf_text_open(struct train_run *run, struct mu_input_config *config)
{
	enum mu_status st = MU_OK;
	const struct conf *v = &run->options;
	const bool text = mu_conf_reads_text(v);

	MU_TRY(check_network(run, text));
	if (!text)
		goto out;
	config->reader = "text";
	config->characters = mu_conf_text_characters(v);
	config->lengths = v->text.lengths;
	config->n_lengths = v->text.n_lengths;
	config->classes = 0;
	if (v->text.vocabulary)
		MU_TRY(mu_vocabulary_read(&run->vocabulary, v->text.vocabulary));
	config->vocabulary = run->vocabulary;
out:
	return st;
}

void mu_conf_vocabulary_text(const struct mu_vocabulary *v, char *text, size_t nbytes)
{
	snprintf(text, nbytes, "%zu %s, %016" PRIx64, mu_vocabulary_n(v) - 1,
		 mu_vocabulary_characters(v) ? "characters" : "words", mu_vocabulary_hash(v));
}

void mu_conf_vocabulary_path(const struct conf *v, char *text, size_t nbytes)
{
	if (v->text.vocabulary)
		snprintf(text, nbytes, "%s", v->text.vocabulary);
	else
		snprintf(text, nbytes, "%s-vocab.txt", v->model_prefix);
}

enum mu_status mu_conf_vocabulary_save(const struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct conf *v = &run->options;
	char path[CHECKPOINT_PATH];

	if (!run->train.vocabulary || !v->model_prefix || v->text.vocabulary || v->evaluate ||
	    v->check || run->topology.index != 0)
		goto out;
	mu_conf_vocabulary_path(v, path, sizeof path);
	MU_TRY(mu_vocabulary_write(run->train.vocabulary, path));
	mu_log_info("vocabulary of %zu in %s", mu_vocabulary_n(run->train.vocabulary), path);
out:
	return st;
}
