/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --sample: generate text with a trained network. It reads the text so far, at most as much as it
 * has positions for (or as the longest sequence of its training), and the next word is drawn from
 * its prediction, until there are enough or the text ends. A transformer reads word by word and
 * remembers the earlier ones (mu_plan_remember), and reads TOGETHER at once of what is given; when
 * it has as many as it can read, it begins again with the latter half. Other networks read all of
 * it for each word.
 */
#include "conf/text.h"
#include "modes.h"
#include "words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <muster/checkpoint.h>

#include "checkpoint/checkpoint.h"

enum { TOGETHER = 32 };

/* A word that may be next. */
struct choice {
	double p;
	size_t number;
};

struct writer {
	const struct conf *v;
	const char *device_kind;
	struct train_words words;
	size_t n_words; /* numbers below this may be drawn */
	struct mu_device device;
	const struct mu_network *network;
	struct mu_net_config config;
	struct mu_net *net, *wide_net;
	struct mu_plan *plan; /* of one sequence of `steps` */
	struct mu_plan *wide; /* of TOGETHER steps, with the memory of `plan`; NULL before */
	float *weights, *labels;
	uint64_t *versions;        /* all 0: the weights do not change */
	size_t steps;              /* the longest sequence */
	bool told;                 /* that the text is longer */
	size_t width;              /* steps that the plan reads at once */
	struct mu_token_list text; /* so far */
	size_t first, read; /* with memory: the first word that is remembered; how many were read */
	struct choice *choices; /* of all words */
};

/* ---- the network ---- */

/* The file of --load; else the checkpoint of --load-epoch, or the newest one. */
static enum mu_status find_file(const struct conf *v, char *path, size_t nbytes)
{
	enum mu_status st = MU_OK;
	struct checkpoint_files files = {.n = 0};

	if (v->load) {
		snprintf(path, nbytes, "%s", v->load);
		goto out;
	}
	if (v->load_epoch > 0) {
		snprintf(path, nbytes, "%s-%04ld.h5", v->model_prefix, v->load_epoch);
		goto out;
	}
	MU_TRY(mu_checkpoint_files_find(v->model_prefix, &files));
	if (files.n == 0)
		MU_FAIL(MU_ERR_IO, "--sample: there is no checkpoint %s-*.h5", v->model_prefix);
	snprintf(path, nbytes, "%s", files.of[0].path);
out:
	mu_checkpoint_files_release(&files);
	return st;
}

/* Files of other programs do not say with which vocabulary they were made. */
static enum mu_status check_vocabulary(const struct writer *w, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_array_file *file = NULL;
	char was[192], is[64];
	bool there, same = true;

	if (w->words.tokenizer)
		MU_TRY(mu_checkpoint_tokenizer_compare(path, w->words.tokenizer, &same));
	if (!same)
		MU_FAIL(MU_ERR_USAGE,
			"--vocab: %s was trained with another tokenizer, which it holds: leave "
			"--vocab out",
			path);
	MU_TRY(mu_array_file_open_checked(&file, path));
	MU_TRY(mu_array_file_has_text(file, "vocabulary", &there));
	if (!there || !w->words.vocabulary)
		goto out;
	MU_TRY(mu_array_file_get_text(file, "vocabulary", was, sizeof was));
	mu_conf_vocabulary_text(w->words.vocabulary, is, sizeof is);
	if (strcmp(was, is) != 0)
		MU_FAIL(MU_ERR_FORMAT, "%s was saved with a vocabulary of %s, and this one has %s",
			path, was, is);
out:
	mu_array_file_close(file, false);
	return st;
}

/* A vocabulary may be smaller than the network's: filled up to a round number. */
static size_t count_classes(const struct writer *w, const struct mu_network *network)
{
	if (w->words.vocabulary)
		return w->words.n;
	if (w->v->num_classes > 0)
		return (size_t)w->v->num_classes;
	return w->words.n ? w->words.n : network->classes;
}

static enum mu_status check_words(struct writer *w, size_t classes)
{
	enum mu_status st = MU_OK;

	w->n_words = w->words.n ? w->words.n : classes;
	if (w->n_words > classes)
		MU_FAIL(MU_ERR_USAGE,
			"--vocab: the tokenizer has %zu tokens; the network was trained with %zu",
			w->n_words, classes);
	for (size_t i = 0; i < w->text.n; i++)
		if (w->text.ids[i] >= w->n_words)
			MU_FAIL(MU_ERR_USAGE, "--prime: token %lu is not below %zu",
				(unsigned long)w->text.ids[i], w->n_words);
out:
	return st;
}

static enum mu_status open_network(struct writer *w)
{
	enum mu_status st = MU_OK;
	const struct conf *v = w->v;
	const struct mu_network *network;
	struct mu_shape shape;
	const size_t positions = (size_t)mu_conf_setting(v, "num-positions");
	char path[CHECKPOINT_PATH];
	size_t n_keys;

	MU_TRY(mu_device_open(&w->device, w->device_kind, 1));
	MU_TRY(mu_network_find(&w->network, v->network));
	network = w->network;
	if (!(network->traits & MU_NETWORK_SEQUENCES))
		MU_FAIL(MU_ERR_USAGE, "--sample with network %s, which reads no texts",
			network->name);
	w->steps = w->words.vocabulary ? v->text.lengths[v->text.n_lengths - 1]
				       : mu_conf_window(v, network);
	shape = mu_sample_sequence(w->width);
	w->config = mu_train_describe_model(v, &shape, count_classes(w, network));
	w->config.longest = w->steps; /* whatever is read at once */
	if (v->text.lengths_given && positions > 0 && w->steps > positions)
		MU_FAIL(MU_ERR_USAGE,
			"network %s: sequences of %zu tokens (sequence length), and %zu positions "
			"(setting num-positions)",
			network->name, w->steps, positions);
	MU_TRY(check_words(w, w->config.classes));
	if (!mu_network_setting(network, "num-heads") || !w->device.ops->remembers)
		w->config.shape = mu_sample_sequence(w->width = w->steps);
	MU_TRY(find_file(v, path, sizeof path));
	MU_TRY(check_vocabulary(w, path));
	MU_TRY(mu_engine_device_set(&w->device, v));
	MU_TRY(mu_net_new_from(&w->net, network, &w->config));
	MU_TRY(mu_plan_new(&w->plan, w->net, &w->device, 1, MU_PHASE_INFER, NULL));
	MU_TRY(MU_ALLOC(w->weights, mu_plan_n(w->plan), "weights"));
	MU_TRY(mu_load_weights(w->plan, path, false, w->weights));
	MU_TRY(mu_plan_bind(w->plan, w->weights, NULL));
	if (w->width < w->steps)
		MU_TRY(mu_plan_remember(w->plan, w->steps));
	MU_TRY(MU_ALLOC(w->choices, w->config.classes, "choices"));
	mu_plan_slices(w->plan, &n_keys);
	MU_TRY(MU_ALLOC(w->versions, n_keys, "versions of weights"));
	mu_plan_set_versions(w->plan, w->versions);
	MU_TRY(MU_ALLOC(w->labels, w->width + TOGETHER, "labels"));
	mu_plan_batch(w->plan)->labels = w->labels; /* all 0: there are no labels */
	mu_plan_batch(w->plan)->count = 1;
out:
	return st;
}

/* ---- the text ---- */

static int by_probability(const void *a, const void *b)
{
	const struct choice *x = a, *y = b;

	if (x->p != y->p)
		return x->p < y->p ? 1 : -1;
	return x->number < y->number ? -1 : 1;
}

/* The likeliest n choices are to be drawn from, in this order: see --sample-top-k and -p. */
static size_t keep_likeliest(const struct writer *w, size_t n)
{
	const struct conf_text *t = &w->v->text;
	double all = 0, sum = 0;
	size_t kept = 0;

	if (t->top_k == 0 && t->top_p >= 1 && t->temperature > 0)
		return n;
	qsort(w->choices, n, sizeof *w->choices, by_probability);
	if (t->temperature <= 0)
		return 1;
	if (t->top_k > 0 && (size_t)t->top_k < n)
		n = (size_t)t->top_k;
	for (size_t k = 0; k < n; k++)
		all += w->choices[k].p;
	while (kept < n && (kept == 0 || sum < t->top_p * all))
		sum += w->choices[kept++].p;
	return kept;
}

/* From the predictions of step t. */
static enum mu_status draw(const struct writer *w, size_t t, size_t i, size_t *number)
{
	enum mu_status st = MU_OK;
	const struct mu_random key = {.seed = (uint64_t)w->v->seed, .purpose = MU_RANDOM_SYNTHETIC};
	const double temperature = w->v->text.temperature;
	const float *p = mu_plan_probabilities(w->plan);
	const bool warm = temperature > 0 && temperature != 1;
	double sum = 0, limit, most = 0;
	size_t n = 0, k = 0;

	MU_TRY(p ? MU_OK : MU_ERR_MEMORY);
	for (size_t word = w->words.first; word < w->n_words; word++)
		most = fmax(most, (double)p[word * w->width + t]);
	for (size_t word = w->words.first; word < w->n_words; word++) {
		const double of = (double)p[word * w->width + t];

		/* Of the likeliest 1: a power of small numbers would be 0 for all words. */
		w->choices[n++] = (struct choice){
			warm && most > 0 ? pow(of / most, 1 / temperature) : of, word};
	}
	n = keep_likeliest(w, n);
	for (size_t c = 0; c < n; c++)
		sum += w->choices[c].p;
	if (!(sum > 0 && isfinite(sum)))
		MU_FAIL(MU_ERR_NUMERIC,
			"--sample: the network predicts no numbers: its weights are not finite");
	limit = sum * (double)mu_random_uniform(&key, i);
	for (sum = w->choices[0].p; sum <= limit && k + 1 < n;)
		sum += w->choices[++k].p;
	*number = w->choices[k].number;
out:
	return st;
}

static enum mu_status forward(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;

	for (size_t l = 0; l < mu_plan_layers(plan); l++)
		MU_TRY(mu_plan_forward(plan, l));
out:
	return st;
}

static enum mu_status open_wide(struct writer *w)
{
	enum mu_status st = MU_OK;
	struct mu_net_config config = w->config;

	config.shape = mu_sample_sequence(TOGETHER);
	MU_TRY(mu_net_new_from(&w->wide_net, w->network, &config));
	MU_TRY(mu_plan_new(&w->wide, w->wide_net, &w->device, 1, MU_PHASE_INFER, w->plan));
	MU_TRY(mu_plan_bind(w->wide, w->weights, NULL));
	MU_TRY(mu_plan_share_past(w->wide, w->plan));
	mu_plan_set_versions(w->wide, w->versions);
	mu_plan_batch(w->wide)->labels = w->labels;
	mu_plan_batch(w->wide)->count = 1;
out:
	return st;
}

static enum mu_status read_some(struct writer *w, struct mu_plan *plan, size_t n)
{
	enum mu_status st = MU_OK;

	mu_plan_set_past(plan, w->read - w->first);
	for (size_t i = 0; i < n; i++)
		mu_plan_input(plan)[i] = (float)w->text.ids[w->read + i];
	MU_TRY(forward(plan));
	w->read += n;
out:
	return st;
}

/* Once: from here on the network does not see the whole text. */
static void tell_limit(struct writer *w)
{
	if (w->told || w->text.n <= w->steps)
		return;
	w->told = true;
	mu_log_warn(
		"--sample: the text is longer than the %zu %s that the network reads at once; what "
		"is before them is forgotten (--seq-len N, up to what it has positions for)",
		w->steps, w->words.vocabulary ? "words" : "tokens");
}

/* Read the words that were not read yet. The last one is read alone: it predicts the next. */
static enum mu_status read_on(struct writer *w)
{
	enum mu_status st = MU_OK;

	tell_limit(w);
	if (w->text.n - w->first > w->steps) {
		w->first = w->text.n - (w->steps + 1) / 2;
		w->read = w->first;
	}
	if (!w->wide && w->text.n - w->read > TOGETHER)
		MU_TRY(open_wide(w));
	while (w->text.n - w->read > TOGETHER)
		MU_TRY(read_some(w, w->wide, TOGETHER));
	while (w->read < w->text.n)
		MU_TRY(read_some(w, w->plan, 1));
out:
	return st;
}

/* Read the whole text, or its end. */
static enum mu_status read_all(struct writer *w)
{
	const size_t n = w->text.n < w->steps ? w->text.n : w->steps;

	for (size_t t = 0; t < w->steps; t++)
		mu_plan_input(w->plan)[t] = t < n ? (float)w->text.ids[w->text.n - n + t] : 0;
	tell_limit(w);
	return forward(w->plan);
}

static enum mu_status write_next(struct writer *w, size_t i, bool *ended)
{
	enum mu_status st = MU_OK;
	const size_t n = w->text.n < w->steps ? w->text.n : w->steps;
	const bool remembers = w->width < w->steps;
	size_t number = 0;

	MU_TRY(remembers ? read_on(w) : read_all(w));
	MU_TRY(draw(w, remembers ? 0 : n - 1, i, &number));
	*ended = number == w->words.end;
	if (*ended)
		goto out;
	MU_TRY(mu_token_list_add(&w->text, (uint32_t)number));
	mu_train_words_print(&w->words, number);
out:
	return st;
}

static enum mu_status write_text(struct writer *w, size_t hidden)
{
	enum mu_status st = MU_OK;
	bool ended = false;

	for (size_t i = hidden; i < w->text.n; i++)
		mu_train_words_print(&w->words, w->text.ids[i]);
	for (long i = 0; i < w->v->text.sample && !ended; i++)
		MU_TRY(write_next(w, (size_t)i, &ended));
	mu_train_words_end(&w->words);
	fputc('\n', stdout);
	if (fflush(stdout) != 0 || ferror(stdout))
		MU_FAIL(MU_ERR_IO, "--sample: the text could not be written");
out:
	return st;
}

enum mu_status mu_train_sample(const struct conf *v, const struct engine_device_list *devices)
{
	enum mu_status st = MU_OK;
	struct writer w = {.v = v,
			   .device_kind = devices->kind->name,
			   .width = 1};
	char path[CHECKPOINT_PATH];
	size_t hidden = 0;

	mu_conf_vocabulary_path(v, path, sizeof path);
	MU_TRY(mu_train_words_open(&w.words, path));
	MU_TRY(mu_train_words_read(&w.words, v->text.prime ? v->text.prime : "", &w.text,
				   &hidden));
	MU_TRY(open_network(&w));
	MU_TRY(write_text(&w, hidden));
out:
	mu_plan_free(w.wide);
	mu_plan_free(w.plan);
	mu_net_free(w.wide_net);
	mu_net_free(w.net);
	mu_device_close(&w.device);
	mu_free(w.weights);
	mu_free(w.versions);
	mu_free(w.labels);
	mu_token_list_release(&w.text);
	mu_free(w.choices);
	mu_train_words_close(&w.words);
	return st;
}
