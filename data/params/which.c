/* SPDX-License-Identifier: Apache-2.0 */
/* Which model the arrays of a file are, and whether it is whole. */
#include "names.h"

#include <string.h>

/* The arrays have no mark of a family. config.json says of which they should be: of a family of
 * transformers, whose type of model is its word. */
static const struct name_family *family_of_type(const char *type)
{
	char word[64] = "";

	sscanf(type, "\"%63[^\"]", word);
	return strcmp(word, "resnet") != 0 ? name_family_find(word) : NULL;
}

static enum mu_status check_wrapper(const struct name_family *family, const char *name)
{
	enum mu_status st = MU_OK;
	const size_t n = name_wrapper(family, name);

	if (n > 0)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"array \"%s\" has \"%.*s\" before its name: save the model without what "
			"wraps it; --names plain keeps names",
			name, (int)n, name);
out:
	return st;
}

enum mu_status model_family_find(const char *place, const struct mu_safetensors *in,
				 const struct name_family **family)
{
	enum mu_status st = MU_OK;
	const struct name_family *told;
	struct model_config config;
	const struct model_sizes none = {0};
	const size_t n = mu_safetensors_n(in);
	char ours[NAME_BYTES];
	enum name_how how;
	size_t part;

	*family = NULL;
	for (size_t i = 0; i < n && !*family; i++)
		*family = name_family_of_theirs(mu_safetensors_array(in, i)->name);
	if (*family && !name_family_facts(*family)->shares_names)
		goto out;
	MU_TRY(model_config_read(&config, place, NULL, &none));
	told = family_of_type(config.type);
	if (*family) {
		if (*config.type && told != *family)
			*family = NULL;
		goto out;
	}
	for (size_t i = 0; i < n && !*family; i++) {
		const char *name = mu_safetensors_array(in, i)->name;

		if (told && name_to_ours(told, name, ours, &how, &part))
			*family = told;
		else
			MU_TRY(check_wrapper(told, name));
	}
	if (told && !*family)
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has model type %s, and none of its arrays has a name of "
			"such a model (the first is \"%s\"); --names plain keeps names",
			config.type, mu_safetensors_array(in, 0)->name);
out:
	return st;
}

/* ---- is it whole? ---- */

/* A model may have no head. */
static bool is_needed(const struct name_pair *pair, const struct model_sizes *s)
{
	if (pair->how == NAME_SKIP || pair->how == NAME_HEAD)
		return false;
	return strncmp(pair->ours, "arg/head_", 9) != 0 || s->head || s->classes > 0;
}

static enum mu_status find_missing(const struct name_family *family, const struct model_sizes *s,
				   struct mu_array_file *out, struct name_pair *pair, bool *has)
{
	enum mu_status st = MU_OK;

	*has = true;
	for (size_t i = 0; *has && name_of_row(family, i, 0, pair); i++)
		for (size_t layer = 0; *has && layer < (pair->per_layer ? s->layers : 1); layer++) {
			name_of_row(family, i, layer, pair);
			if (is_needed(pair, s))
				MU_TRY(mu_array_file_has(out, pair->ours, has));
		}
out:
	return st;
}

enum mu_status model_complete_check(struct model_config *c, const struct name_family *family,
				    const struct model_sizes *s, struct mu_array_file *out)
{
	enum mu_status st = MU_OK;
	const char *word = name_family_word(family);
	struct name_pair pair;
	bool has;

	if (strcmp(word, "resnet") == 0)
		goto out;
	MU_TRY(find_missing(family, s, out, &pair, &has));
	if (!has && c->there)
		MU_FAIL(MU_ERR_FORMAT, "array \"%s\" is missing, which models of type \"%s\" have",
			pair.theirs, word);
	if (!has)
		model_note(c, "a part of a model: array \"%s\" is missing, and maybe others",
			   pair.theirs);
out:
	return st;
}
