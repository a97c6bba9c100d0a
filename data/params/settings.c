/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model in safetensors is, as attributes by which trainer --load knows it: sizes by its
 * arrays, the number of heads by the config.json of transformers beside them.
 */
#include "names.h"

#include <string.h>

enum { TEXT_BYTES = 64 };

/* By our name. */
static void look_at(struct model_sizes *s, const char *name, const struct mu_params_array *a)
{
	size_t layer;

	if (sscanf(name, "arg/h%zu_", &layer) == 1 && layer >= s->layers)
		s->layers = layer + 1;
	else if (strcmp(name, "arg/wte_weight") == 0 && a->ndims == 2)
		s->vocabulary = a->dims[0], s->hidden = a->dims[1];
	else if (strcmp(name, "arg/wpe_weight") == 0 && a->ndims == 2)
		s->positions = a->dims[0];
	else if (strcmp(name, "arg/position_token") == 0 && a->ndims == 3)
		s->hidden = a->dims[2];
	else if (strcmp(name, "arg/patch_weight") == 0 && a->ndims == 4)
		s->channels = a->dims[1], s->patch = a->dims[2];
	else if (strcmp(name, "arg/head_weight") == 0)
		s->head = true;
	else if (strcmp(name, "arg/head_bias") == 0 && a->ndims == 1)
		s->classes = a->dims[0];
}

void model_sizes_add(struct model_sizes *s, const struct name_family *family,
		     const struct mu_params_array *array)
{
	char name[NAME_BYTES];
	enum name_how how;
	size_t part;

	if (name_to_ours(family, array->name, name, &how, &part) && how != NAME_SKIP)
		look_at(s, name, array);
}

static enum mu_status set_number(struct mu_array_file *out, const char *name, size_t n)
{
	char text[TEXT_BYTES];

	snprintf(text, sizeof text, "%zu", n);
	return n > 0 ? mu_array_file_set_text(out, name, text) : MU_OK;
}

/* What the networks here compute and no array tells. */
static enum mu_status check_activation(const struct mu_safetensors *in, const char *setting,
				       const char *words, const char *network)
{
	enum mu_status st = MU_OK;
	char text[TEXT_BYTES], word[TEXT_BYTES + 2];

	MU_TRY(mu_safetensors_setting(in, setting, text, sizeof text));
	snprintf(word, sizeof word, "|%s|", text);
	if (*text && !strstr(words, word))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"its config.json has \"%s\": \"%s\", and network %s here another", setting,
			text, network);
out:
	return st;
}

enum mu_status convert_settings(const struct mu_safetensors *in, const struct name_family *family,
				struct mu_array_file *out, bool *heads_known)
{
	enum mu_status st = MU_OK;
	const bool gpt2 = strcmp(name_family_word(family), "gpt2") == 0;
	const char *network = gpt2 ? "gpt2" : "vit-base";
	char heads[TEXT_BYTES];
	struct model_sizes s = {0};
	bool untied;

	*heads_known = true;
	if (!gpt2 && strcmp(name_family_word(family), "vit") != 0)
		goto out;
	for (size_t i = 0; i < mu_safetensors_n(in); i++)
		model_sizes_add(&s, family, mu_safetensors_array(in, i));
	if (s.layers == 0 || s.hidden == 0) /* a part of a model */
		goto out;
	if (gpt2)
		MU_TRY(check_activation(in, "activation_function",
					"|gelu_new|gelu_pytorch_tanh|gelu_fast|", network));
	else
		MU_TRY(check_activation(in, "hidden_act", "|gelu|", network));
	MU_TRY(mu_safetensors_setting(in, gpt2 ? "n_head" : "num_attention_heads", heads,
				      sizeof heads));
	MU_TRY(mu_array_file_set_text(out, "network", network));
	MU_TRY(set_number(out, "num-layers", s.layers));
	MU_TRY(set_number(out, "num-hidden", s.hidden));
	MU_TRY(set_number(out, "num-positions", s.positions));
	if (gpt2 || s.classes > 1)
		MU_TRY(set_number(out, "num-classes", gpt2 ? s.vocabulary : s.classes));
	MU_TRY(mu_array_file_has(out, "arg/head_weight", &untied));
	if (gpt2 && untied)
		MU_TRY(mu_array_file_set_text(out, "tie-weights", "0"));
	*heads_known = *heads != '\0';
	if (*heads_known)
		MU_TRY(mu_array_file_set_text(out, "num-heads", heads));
out:
	return st;
}
