/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model in safetensors is, as attributes by which trainer --load knows it: sizes by its
 * arrays, the number of heads by the config.json of transformers beside them.
 */
#include "names.h"

#include <string.h>

#include <muster/shape.h>

enum { TEXT_BYTES = 64 };

/* By our name. */
static void look_at(struct model_sizes *s, const char *name, enum name_how how, size_t part,
		    const struct mu_params_array *a)
{
	size_t layer;

	if (sscanf(name, "arg/h%zu_", &layer) == 1 && layer >= s->layers)
		s->layers = layer + 1;
	else if ((strcmp(name, "arg/wte_weight") == 0 || strcmp(name, "arg/tokens_weight") == 0) &&
		 a->ndims == 2)
		s->vocabulary = a->dims[0], s->hidden = a->dims[1];
	else if (strcmp(name, "arg/wpe_weight") == 0 && a->ndims == 2)
		s->positions = a->dims[0];
	else if (strcmp(name, "arg/position_weight") == 0 && a->ndims == 3)
		s->patches = a->dims[1];
	else if (strstr(name, "_fc_weight") && a->ndims == 2)
		s->inner = a->dims[how == NAME_TRANSPOSE];
	else if (strstr(name, "_gate_weight") && a->ndims == 2)
		s->inner = a->dims[0];
	else if (strstr(name, "_qkv_weight") && part < 2)
		*(part == 0 ? &s->query : &s->key) = a->dims[0];
	else if (strcmp(name, "arg/position_token") == 0 && a->ndims == 3)
		s->hidden = a->dims[2];
	else if (strcmp(name, "arg/patch_weight") == 0 && a->ndims == 4)
		s->channels = a->dims[1], s->patch = a->dims[2];
	else if (strcmp(name, "arg/head_weight") == 0)
		s->head = true;
	else if ((strcmp(name, "arg/head_bias") == 0 || strcmp(name, "arg/fc1_bias") == 0) &&
		 a->ndims == 1)
		s->classes = a->dims[0];
}

void model_sizes_add(struct model_sizes *s, const struct name_family *family,
		     const struct mu_params_array *array)
{
	char name[NAME_BYTES];
	enum name_how how;
	size_t part;

	if (name_to_ours(family, array->name, name, &how, &part) && how != NAME_SKIP)
		look_at(s, name, how, part, array);
}

static enum mu_status set_number(struct mu_array_file *out, const char *name, size_t n)
{
	char text[TEXT_BYTES];

	snprintf(text, sizeof text, "%zu", n);
	return n > 0 ? mu_array_file_set_text(out, name, text) : MU_OK;
}

static enum mu_status set_three(struct mu_array_file *out, const char *name, const double v[3])
{
	char text[TEXT_BYTES];

	snprintf(text, sizeof text, "%.9g,%.9g,%.9g", v[0], v[1], v[2]);
	return mu_array_file_set_text(out, name, text);
}

/* Which images the model reads. */
static enum mu_status set_images(const struct model_config *c, const struct model_sizes *s,
				 struct mu_array_file *out)
{
	enum mu_status st = MU_OK;
	char text[MU_SAMPLE_TEXT];

	MU_TRY(mu_array_file_set_text(out, "input", "images"));
	if (c->height > 0 && s->channels > 0) {
		const struct mu_shape shape = MU_SAMPLE(s->channels, c->height, c->width);

		MU_TRY(mu_array_file_set_text(out, "image-shape",
					      mu_sample_text(&shape, ",", text, sizeof text)));
	}
	if (!c->pixels)
		goto out;
	MU_TRY(set_three(out, "rgb-mean", c->mean));
	MU_TRY(set_three(out, "rgb-std", c->std));
	MU_TRY(set_number(out, "resize", (size_t)c->resize));
out:
	return st;
}

static enum mu_status set_real(struct model_config *c, const char *name, double value,
			       struct mu_array_file *out)
{
	enum mu_status st = MU_OK;
	char text[TEXT_BYTES];

	snprintf(text, sizeof text, "%.9g", value);
	MU_TRY(mu_array_file_set_text(out, name, text));
	model_note(c, "config.json: %s %s, which trainer --load takes", name, text);
out:
	return st;
}

/* Of a Llama: sizes that other networks do not choose. */
static enum mu_status set_llama(struct model_config *c, const struct model_sizes *s,
				struct mu_array_file *out)
{
	enum mu_status st = MU_OK;

	MU_TRY(set_number(out, "num-positions", (size_t)c->positions));
	MU_TRY(set_number(out, "num-kv-heads", (size_t)c->kv_heads));
	MU_TRY(set_number(out, "head-dim", (size_t)c->head_dim));
	MU_TRY(set_number(out, "intermediate-size", s->inner));
	if (c->theta > 0 && c->theta != 10000)
		MU_TRY(set_real(c, "rope-theta", c->theta, out));
out:
	return st;
}

static enum mu_status set_transformer(struct model_config *c, const struct model_sizes *s,
				      const struct family_facts *facts, struct mu_array_file *out)
{
	enum mu_status st = MU_OK;
	bool untied;

	MU_TRY(mu_array_file_set_text(out, "network", facts->network));
	if (facts->text)
		MU_TRY(mu_array_file_set_text(out, "input", "tokens"));
	MU_TRY(set_number(out, "num-layers", s->layers));
	MU_TRY(set_number(out, "num-hidden", s->hidden));
	MU_TRY(set_number(out, "num-positions", s->positions));
	if (facts->text || s->classes > 1)
		MU_TRY(set_number(out, "num-classes", facts->text ? s->vocabulary : s->classes));
	MU_TRY(mu_array_file_has(out, "arg/head_weight", &untied));
	if (facts->text && untied == facts->tied)
		MU_TRY(mu_array_file_set_text(out, "tie-weights", untied ? "0" : "1"));
	MU_TRY(set_number(out, "num-heads", (size_t)c->heads));
	if (facts->grouped)
		MU_TRY(set_llama(c, s, out));
	if (c->eps > 0 && (float)c->eps != (float)facts->own_eps) /* else the network's own */
		MU_TRY(set_real(c, facts->eps_name, c->eps, out));
out:
	return st;
}

enum mu_status convert_settings(struct model_config *c, const struct name_family *family,
				const struct model_sizes *s, struct mu_array_file *out)
{
	enum mu_status st = MU_OK;
	const struct family_facts *facts = name_family_facts(family);

	if (facts->model && s->layers > 0 && s->hidden > 0) { /* else a part of a model */
		MU_TRY(set_transformer(c, s, facts, out));
		if (c->heads == 0)
			model_note(c,
				   "no config.json beside it tells how many heads of attention "
				   "there are: give trainer --num-heads%s",
				   facts->grouped ? " and --num-kv-heads" : "");
	}
	if (facts->text)
		goto out;
	if (c->class_names)
		MU_TRY(mu_array_file_set_text(out, "class-names", c->class_names));
	MU_TRY(set_images(c, s, out));
	if (c->pixels)
		model_note(c,
			   "its images: rgb-mean %.9g,%.9g,%.9g and rgb-std %.9g,%.9g,%.9g, which "
			   "trainer --load takes",
			   c->mean[0], c->mean[1], c->mean[2], c->std[0], c->std[1], c->std[2]);
	else
		model_note(c, "no preprocessor_config.json beside it tells the mean and the "
			      "deviation of its images: give trainer --rgb-mean and --rgb-std");
out:
	return st;
}
