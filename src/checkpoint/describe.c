/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checkpoint describes its model and the model's input: options that were not given get the
 * file's values, before options are settled. The values are those of the identity; the file of a
 * user's network, the kind of input and the words of a vocabulary are attributes of their own.
 */
#include "contents.h"

#include <stdlib.h>
#include <string.h>

#include <muster/input.h>
#include <muster/tokens.h>

#include "conf/text.h"

#define NETWORK_FILE "network-file"
#define INPUT "input"

/* ---- writing ---- */

static const char *kind_of_input(const struct mu_input *in, const struct conf *v)
{
	if (in->about.vocabulary)
		return "text";
	if (v->benchmark)
		return "random";
	if (strcmp(in->ops->name, "tokens") == 0)
		return "tokens";
	return in->ops->colour_images ? "images" : "values";
}

enum mu_status mu_checkpoint_description_write(const struct mu_engine *e,
					       struct mu_array_file *file)
{
	enum mu_status st = MU_OK;
	const struct conf *v = e->conf;
	char *place = NULL, *words = NULL, *tokenizer = NULL;

	MU_TRY(mu_array_file_set_text(file, INPUT, kind_of_input(e->train, v)));
	if (strcmp(v->network, v->network_name) != 0)
		place = realpath(v->network, NULL);
	if (place)
		MU_TRY(mu_array_file_set_text(file, NETWORK_FILE, place));
	if (e->train->about.vocabulary) {
		MU_TRY(mu_vocabulary_to_text(e->train->about.vocabulary, &words));
		MU_TRY(mu_array_file_set_text(file, CHECKPOINT_WORDS, words));
	}
	if (e->train->about.tokenizer) {
		MU_TRY(mu_tokenizer_to_text(e->train->about.tokenizer, &tokenizer));
		MU_TRY(mu_array_file_set_text(file, CHECKPOINT_TOKENIZER, tokenizer));
	}
	MU_TRY(mu_checkpoint_classes_write(e, file));
	MU_TRY(mu_checkpoint_columns_write(e, file));
out:
	free(place);
	free(tokenizer);
	free(words);
	return st;
}

/* ---- reading ---- */

/* Options, by enum checkpoint_described. */
static const char *const names[CHECKPOINT_N_DESCRIBED] = {
	[CHECKPOINT_NETWORK] = "network",	  [CHECKPOINT_OBJECTIVE] = "objective",
	[CHECKPOINT_NUM_LAYERS] = "num-layers",	  [CHECKPOINT_NUM_CLASSES] = "num-classes",
	[CHECKPOINT_IMAGE_SHAPE] = "image-shape", [CHECKPOINT_TEXT] = "text",
	[CHECKPOINT_VOCAB] = "vocab",		  [CHECKPOINT_BUCKETS] = "buckets",
	[CHECKPOINT_SEQ_LEN] = "seq-len",
};

/* Settings of the run's reader, and of its network and objective, or else of the file's. */
static enum mu_status read_settings(struct mu_array_file *file, struct checkpoint_description *d,
				    const struct conf *v)
{
	enum mu_status st = MU_OK;
	const struct mu_network *network = v->owner.network;
	const struct mu_reader *reader = v->owner.reader;
	const struct mu_loss *loss;

	if (!network && *d->network && mu_network_find(&network, d->network) != MU_OK)
		mu_trace_clear(); /* as is said when its options are needed */
	if (mu_checkpoint_objective(d, v, network, &loss) != MU_OK)
		mu_trace_clear();
	for (size_t i = 0; i < mu_conf_owned(network, loss, reader); i++)
		MU_TRY(mu_array_file_find_text(
			file, mu_conf_owned_row(network, loss, reader, i)->name,
			d->of[CHECKPOINT_N_DESCRIBED + i], sizeof *d->of));
out:
	return st;
}

static enum mu_status read_file(struct mu_array_file *file, struct checkpoint_description *d,
				const struct mu_options *given)
{
	enum mu_status st = MU_OK;
	char place[CHECKPOINT_PATH];
	bool words, tokenizer, whole;

	MU_TRY(mu_array_file_has_text(file, "format", &whole));
	d->parameters = !whole;
	for (size_t i = 0; i < CHECKPOINT_N_DESCRIBED; i++)
		MU_TRY(mu_array_file_find_text(file, names[i], d->of[i], sizeof d->of[i]));
	if (!*d->of[CHECKPOINT_NUM_LAYERS]) /* files of parameters alone */
		MU_TRY(mu_array_file_find_text(file, "num_layers",
					       d->of[CHECKPOINT_NUM_LAYERS], sizeof *d->of));
	MU_TRY(mu_array_file_find_text(file, "network", d->network, sizeof d->network));
	MU_TRY(mu_array_file_find_text(file, NETWORK_FILE, place, sizeof place));
	/* A checkpoint may come from anywhere: it names no program to run. */
	if (!mu_options_given(given, "network") && (*place || strchr(d->network, '/')))
		MU_FAIL(MU_ERR_USAGE,
			"%s: its network is one of your own, %s: name its file, --network %s",
			d->path, d->network, *place ? place : "FILE.so");
	MU_TRY(read_settings(file, d, given->values));
	MU_TRY(mu_array_file_find_text(file, INPUT, d->input, sizeof d->input));
	MU_TRY(mu_array_file_find_text(file, "vocabulary", place, sizeof place));
	if (*place && !*d->input)
		snprintf(d->input, sizeof d->input, "text");
	MU_TRY(mu_array_file_has_text(file, CHECKPOINT_WORDS, &words));
	MU_TRY(mu_array_file_has_text(file, CHECKPOINT_TOKENIZER, &tokenizer));
	if (words || tokenizer)
		snprintf(d->of[CHECKPOINT_VOCAB], sizeof *d->of, "%s", d->path);
	else if (strcmp(d->input, "tokens") == 0)
		snprintf(d->of[CHECKPOINT_VOCAB], sizeof *d->of, CONF_NUMBERS);
out:
	return st;
}

/* Is it a vocabulary of bytes, as earlier versions made of the characters of a text? */
static enum mu_status find_bytes(struct mu_array_file *file, struct checkpoint_description *d)
{
	enum mu_status st = MU_OK;
	struct mu_vocabulary *v = NULL;
	char *words = NULL;

	MU_TRY(mu_array_file_read_text(file, CHECKPOINT_WORDS, &words));
	if (!words)
		goto out;
	MU_TRY(mu_vocabulary_from_text(&v, d->path, words));
	d->bytes = mu_vocabulary_bytes(v);
out:
	mu_vocabulary_free(v);
	mu_free(words);
	return st;
}

/* ---- which file ---- */

static enum mu_status read_path(const char *path, struct checkpoint_description *d,
				const struct mu_options *o)
{
	enum mu_status st = MU_OK;
	struct mu_array_file *file = NULL;

	*d = (struct checkpoint_description){.path = ""};
	snprintf(d->path, sizeof d->path, "%s", path);
	MU_TRY(mu_array_file_open_checked(&file, path));
	MU_TRY(read_file(file, d, o));
	MU_TRY(find_bytes(file, d));
out:
	mu_array_file_close(file, false);
	return st;
}

/* The newest file that can be read. Damaged ones are reported when the run resumes. */
static enum mu_status read_newest(const char *prefix, struct checkpoint_description *d,
				  const struct mu_options *o)
{
	enum mu_status st = MU_OK;
	struct checkpoint_files files = {.n = 0};

	MU_TRY(mu_checkpoint_files_find(prefix, &files));
	for (size_t i = 0; i < files.n; i++) {
		st = read_path(files.of[i].path, d, o);
		if (st == MU_OK || st == MU_ERR_USAGE)
			goto out;
		mu_trace_clear();
		st = MU_OK;
	}
	*d = (struct checkpoint_description){.path = ""};
out:
	mu_checkpoint_files_release(&files);
	return st;
}

/* Worker 0 is not known yet: rank 0 reads. A file that cannot be read is reported here if the
 * network is not known without it. */
static enum mu_status read_description(const struct mu_options *o, const struct conf *v,
				       struct checkpoint_description *d)
{
	enum mu_status st = MU_OK;
	const bool resumes_auto = strcmp(v->resume, "auto") == 0;
	char path[CHECKPOINT_PATH] = "";

	if (v->load)
		snprintf(path, sizeof path, "%s", v->load);
	else if (v->load_epoch > 0 && v->model_prefix)
		mu_checkpoint_path(v->model_prefix, (size_t)v->load_epoch, 0, path, sizeof path);
	else if (!resumes_auto && strcmp(v->resume, "none") != 0)
		snprintf(path, sizeof path, "%s", v->resume);
	if (*path)
		st = read_path(path, d, o);
	else if (v->model_prefix && (resumes_auto || v->text.sample > 0))
		st = read_newest(v->model_prefix, d, o);
	if (st != MU_OK && v->network) {
		mu_trace_clear();
		st = MU_OK;
		*d = (struct checkpoint_description){.path = ""};
	}
	return st;
}

/* ---- options ---- */

/* Is the recorded value what a run has without the option? */
static bool is_default(const struct mu_option *option, const char *text)
{
	const char *initial = option->initial ? option->initial : "none";

	return !*text || (!option->whole && strcmp(text, "none") == 0) ||
	       strcmp(text, initial) == 0;
}

/* How many there are; reader NULL: before those of the reader. */
static size_t count(const struct conf *v, const struct mu_reader *reader)
{
	return CHECKPOINT_N_DESCRIBED +
	       mu_conf_owned(v->owner.network, v->owner.objective, reader);
}

/* The row of one of them. The reader's are the last ones. */
static const struct mu_option *row_of(const struct conf *v, size_t which)
{
	if (which < CHECKPOINT_N_DESCRIBED)
		return mu_conf_option(v, names[which]);
	if (which < count(v, NULL))
		return &v->owner.table[mu_conf_n_options + which - CHECKPOINT_N_DESCRIBED];
	return &v->owner.table[v->owner.n + which - count(v, v->owner.reader)];
}
/* Does the file say how many positions the model has? */
static bool has_positions(const struct checkpoint_description *d, const struct conf *v)
{
	for (size_t which = CHECKPOINT_N_DESCRIBED; which < count(v, NULL); which++)
		if (strcmp(row_of(v, which)->name, "num-positions") == 0)
			return !is_default(row_of(v, which), d->of[which]);
	return false;
}

/* Is the setting about this run? Some are refused where they have no meaning. */
static bool applies(const struct checkpoint_description *d, const struct conf *v, size_t which)
{
	const bool text = strcmp(d->input, "text") == 0, tokens = strcmp(d->input, "tokens") == 0,
		   images = strcmp(d->input, "images") == 0;
	const bool trains = !v->evaluate && !v->predict && v->text.sample == 0;
	const bool reads = !v->benchmark && !v->summary && !v->onnx.file; /* data */

	if (which >= count(v, NULL))
		return images && (reads || v->onnx.file);
	switch (which) {
	case CHECKPOINT_NUM_CLASSES: return !reads || !text;
	case CHECKPOINT_IMAGE_SHAPE: return images || (!reads && !v->data_dir);
	case CHECKPOINT_TEXT:
	case CHECKPOINT_BUCKETS: return text && reads;
	/* A text is written with all positions that the model has, whatever it read in training. */
	case CHECKPOINT_SEQ_LEN:
		return (text || tokens) && reads &&
		       !(tokens && v->text.sample > 0 && has_positions(d, v));
	/* A run that resumes makes it of its text, and compares; never of bytes. */
	case CHECKPOINT_VOCAB:
		return tokens ? v->text.sample > 0
			      : text && reads && (!trains || v->load || d->bytes);
	default: return true;
	}
}

/* Appends "name value" to a list. */
static void add(char *list, size_t nbytes, const char *name, const char *value)
{
	const size_t n = strlen(list);

	snprintf(list + n, nbytes - n, "%s%s %s", n ? ", " : "", name, value);
	mu_text_shorten(list + n);
}

/* --load FILE with --evaluate, --predict, --export or --sample. */
static bool is_strict(const struct conf *v)
{
	return v->load && (v->evaluate || v->predict || v->onnx.file || v->text.sample > 0) &&
	       !v->skip_mismatch;
}

/* Must the option then be as in the file? */
static bool is_fixed(const struct mu_option *option, size_t which)
{
	if (which < CHECKPOINT_N_DESCRIBED)
		return which <= CHECKPOINT_NUM_CLASSES;
	return option->record != MU_RECORD_TOLD;
}

static enum mu_status check_given(struct checkpoint_description *d, const struct conf *v,
				  const struct mu_options *o, const struct mu_option *option,
				  size_t which)
{
	enum mu_status st = MU_OK;
	char number[64];
	const char *recorded = d->of[which],
		   *is = mu_option_text(o, option, 17, number, sizeof number);

	if (which == CHECKPOINT_NETWORK) {
		recorded = d->network;
		is = v->owner.network->name;
	}
	if (which == CHECKPOINT_OBJECTIVE) {
		is = v->owner.objective->name;
		if (!*recorded && !d->parameters) /* saved before there were others */
			recorded = v->owner.network->objective;
	}
	if (strcmp(recorded, is) == 0 || !*recorded ||
	    (option->type == MU_OPTION_REAL && strtod(recorded, NULL) == strtod(is, NULL)))
		goto out;
	if (!is_fixed(option, which)) {
		if (which != CHECKPOINT_VOCAB && applies(d, v, which))
			add(d->differs, sizeof d->differs, option->name, recorded);
		goto out;
	}
	if (is_default(option, recorded) || strcmp(is, "0") == 0)
		goto out;
	if (v->skip_mismatch) {
		add(d->differs, sizeof d->differs, option->name, recorded);
		goto out;
	}
	MU_FAIL(MU_ERR_USAGE,
		"--%s %s: %s was saved with %s %s; leave the option out, or load another file",
		option->name, is, d->path, option->name, recorded);
out:
	return st;
}

static enum mu_status apply_one(struct checkpoint_description *d, struct mu_options *o,
				const struct mu_option *option, size_t which)
{
	enum mu_status st = MU_OK;
	enum { NAME_BYTES = sizeof *d->argument - sizeof *d->of };
	char *text = d->argument[which];

	snprintf(text, NAME_BYTES, "--%s=", option->name);
	strcpy(text + strlen(text), d->of[which]);
	st = mu_options_parse(o, 2, (char *[]){NULL, text});
	if (st != MU_OK)
		mu_trace_prefix("%s: ", d->path);
	MU_TRY(st);
	add(d->taken, sizeof d->taken, option->name, d->of[which]);
out:
	return st;
}

/* Is a network given that is not the file's? Then resuming is refused later, with the reason. */
static bool is_foreign(const struct checkpoint_description *d, const struct conf *v)
{
	return v->network && strcmp(v->owner.network->name, d->network) != 0;
}

/* Of files by other programs: is a setting missing that no array shows? */
static enum mu_status check_needed(const struct checkpoint_description *d, const struct conf *v,
				   const struct mu_options *o)
{
	enum mu_status st = MU_OK;

	for (size_t which = CHECKPOINT_N_DESCRIBED; which < count(v, NULL); which++) {
		const struct mu_option *option = row_of(v, which);

		if (option->record == MU_RECORD_NEEDED && is_default(option, d->of[which]) &&
		    !mu_options_given(o, option->name))
			MU_FAIL(MU_ERR_USAGE,
				"%s does not say %s of its model, and no array does: --%s %.*s is "
				"needed",
				d->path, option->name, option->name,
				(int)strcspn(option->help, " "), option->help);
	}
out:
	return st;
}

/* The objective of a model goes on, unless another is named; of other networks it is not taken. */
static enum mu_status take_objective(struct checkpoint_description *d, struct mu_options *o,
				     const struct conf *v, bool strict)
{
	enum mu_status st = MU_OK;
	const struct mu_option *option = row_of(v, CHECKPOINT_OBJECTIVE);
	const char *usual = v->owner.network ? v->owner.network->objective : NULL,
		   *recorded = d->of[CHECKPOINT_OBJECTIVE];

	if (!usual || strcmp(v->owner.network->name, d->network) != 0)
		goto out;
	if (!*recorded) /* saved before there were others */
		recorded = usual;
	if (v->objective && strict)
		MU_TRY(check_given(d, v, o, option, CHECKPOINT_OBJECTIVE));
	if (v->objective && !v->load && strcmp(recorded, v->owner.objective->name) != 0 &&
	    !mu_checkpoint_identity_overrides(v->override, option->name))
		MU_FAIL(MU_ERR_USAGE,
			"%s was saved with objective %s, and this run has %s; --override objective "
			"resumes anyway",
			d->path, recorded, v->owner.objective->name);
	if (!v->objective && strcmp(recorded, usual) != 0)
		MU_TRY(apply_one(d, o, option, CHECKPOINT_OBJECTIVE));
out:
	return st;
}

/* Which settings are taken; found before the first is, which may be the network. */
struct choice {
	bool strict, fine_tunes, foreign;
};

/* Of an objective that is the file's, not the usual one. */
static bool goes_with_objective(const struct checkpoint_description *d, const struct conf *v,
				size_t which)
{
	const struct mu_network *network = v->owner.network;

	return network && network->objective && which < count(v, NULL) &&
	       which >= CHECKPOINT_N_DESCRIBED + mu_conf_owned(network, NULL, NULL) &&
	       strcmp(v->owner.objective->name, network->objective) != 0 &&
	       strcmp(v->owner.objective->name, d->of[CHECKPOINT_OBJECTIVE]) == 0;
}

/* hidden: no array's shape tells the setting, and the arrays mean nothing without it. */
static enum mu_status take(struct checkpoint_description *d, struct mu_options *o,
			   const struct conf *v, const struct choice *c, size_t which)
{
	enum mu_status st = MU_OK;
	const struct mu_option *option = row_of(v, which);
	const bool hidden =
		v->load && which >= CHECKPOINT_N_DESCRIBED &&
		(option->record == MU_RECORD_UNSEEN || option->record == MU_RECORD_NEEDED);

	if (which == CHECKPOINT_OBJECTIVE)
		return take_objective(d, o, v, c->strict);
	if (c->foreign && !hidden)
		goto out;
	if (mu_options_given(o, option->name)) {
		if (c->strict || hidden)
			MU_TRY(check_given(d, v, o, option, which));
		goto out;
	}
	if (is_default(option, d->of[which]) || !applies(d, v, which))
		goto out;
	if (which == CHECKPOINT_SEQ_LEN && mu_options_given(o, "buckets")) /* another word for it */
		goto out;
	if (!c->fine_tunes || hidden || goes_with_objective(d, v, which))
		MU_TRY(apply_one(d, o, option, which));
	else if (which >= count(v, NULL))
		add(d->differs, sizeof d->differs, option->name, d->of[which]);
out:
	return st;
}

enum mu_status mu_checkpoint_description_apply(struct checkpoint_description *d,
					       struct mu_options *o, const struct conf *v)
{
	enum mu_status st = MU_OK;
	struct choice c = {.strict = is_strict(v)};

	if (!*d->path)
		goto out;
	c.fine_tunes = v->load && v->network && !c.strict;
	c.foreign = !c.strict && is_foreign(d, v);
	for (size_t which = 0; which <= CHECKPOINT_NUM_LAYERS; which++)
		MU_TRY(take(d, o, v, &c, which));
	for (size_t which = CHECKPOINT_N_DESCRIBED; which < count(v, NULL); which++)
		MU_TRY(take(d, o, v, &c, which));
	for (size_t which = CHECKPOINT_NUM_LAYERS + 1; which < count(v, v->owner.reader); which++)
		if (which < CHECKPOINT_N_DESCRIBED || which >= count(v, NULL))
			MU_TRY(take(d, o, v, &c, which));
	/* The arrays of another network are refused as such. */
	if (d->parameters && !(*d->network && is_foreign(d, v)))
		MU_TRY(check_needed(d, v, o));
out:
	return st;
}

enum mu_status mu_checkpoint_description_read(struct checkpoint_description *d,
					      const struct mu_options *o, const struct conf *v,
					      MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	int rank, size;

	*d = (struct checkpoint_description){.path = ""};
	if (!mu_array_file_supported())
		goto out;
	MU_TRY(mu_comm_rank(comm, &rank, &size));
	MU_TRY(mu_agree(rank == 0 ? read_description(o, v, d) : MU_OK, comm));
	MU_TRY(mu_bcast(d, sizeof *d, 0, comm));
out:
	return st;
}
