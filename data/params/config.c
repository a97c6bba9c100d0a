/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The config.json of a model. A table says of each member what it is: told to the network here,
 * known from the arrays, of one value, or without effect on what the model computes. Any other
 * member is refused, for it may have an effect.
 */
#include "names.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum how {
	HARMLESS, /* nothing follows from it */
	TOLD,     /* of the images, and not taken over: one note tells all of them */
	ONE_OF,   /* one of `words` */
	ROUNDING, /* another value than `words` changes the rounding alone */
	SIZE,     /* the arrays' */
	INNER,    /* units within a block: four times the width, or null */
	HEADS,
	EPS,
	IMAGE, /* one side, or two */
	PATCH,
	TIED,
	MEAN, /* of pixels from 0 to 1 */
	STD,
};

struct member {
	const char *names;
	enum how how;
	const char *words;
	size_t offset; /* of SIZE */
};

#define SIZE_OF(member) .offset = offsetof(struct model_sizes, member)
#define GELU_TANH "|\"gelu_new\"|\"gelu_pytorch_tanh\"|\"gelu_fast\"|"

static const struct member gpt2[] = {
	{"|model_type|", ONE_OF, "|\"gpt2\"|", 0},
	{"|architectures|", ONE_OF, "|[\"GPT2LMHeadModel\"]|[\"GPT2Model\"]|null|", 0},
	{"|n_embd|hidden_size|", SIZE, SIZE_OF(hidden)},
	{"|n_layer|num_hidden_layers|", SIZE, SIZE_OF(layers)},
	{"|n_positions|max_position_embeddings|", SIZE, SIZE_OF(positions)},
	{"|vocab_size|", SIZE, SIZE_OF(vocabulary)},
	{"|n_inner|", INNER, NULL, 0},
	{"|n_head|num_attention_heads|", HEADS, NULL, 0},
	{"|activation_function|", ONE_OF, GELU_TANH, 0},
	{"|layer_norm_epsilon|", EPS, NULL, 0},
	{"|scale_attn_weights|", ONE_OF, "|true|", 0},
	{"|scale_attn_by_inverse_layer_idx|", ONE_OF, "|false|", 0},
	{"|reorder_and_upcast_attn|", ROUNDING, "|false|", 0},
	{"|tie_word_embeddings|", TIED, NULL, 0},
	{"|n_ctx|attn_pdrop|embd_pdrop|resid_pdrop|summary_activation|summary_first_dropout|"
	 "summary_proj_to_labels|summary_type|summary_use_proj|id2label.*|label2id.*|_num_labels|"
	 "num_labels|is_decoder|id2label|label2id|n_special|predict_special_tokens|output_past|",
	 HARMLESS, NULL, 0},
	{NULL, HARMLESS, NULL, 0},
};

static const struct member vit[] = {
	{"|model_type|", ONE_OF, "|\"vit\"|", 0},
	{"|architectures|", ONE_OF, "|[\"ViTForImageClassification\"]|[\"ViTModel\"]|null|", 0},
	{"|hidden_size|", SIZE, SIZE_OF(hidden)},
	{"|num_hidden_layers|", SIZE, SIZE_OF(layers)},
	{"|num_channels|", SIZE, SIZE_OF(channels)},
	{"|num_labels|_num_labels|", SIZE, SIZE_OF(classes)},
	{"|id2label|label2id|", ONE_OF, "|{}|null|", 0},
	{"|intermediate_size|", INNER, NULL, 0},
	{"|num_attention_heads|", HEADS, NULL, 0},
	{"|hidden_act|", ONE_OF, "|\"gelu\"|", 0},
	{"|layer_norm_eps|", EPS, NULL, 0},
	{"|qkv_bias|", ONE_OF, "|true|", 0},
	{"|image_size|", IMAGE, NULL, 0},
	{"|patch_size|", PATCH, NULL, 0},
	{"|is_decoder|", ONE_OF, "|false|", 0},
	{"|attention_probs_dropout_prob|hidden_dropout_prob|encoder_stride|id2label.*|label2id.*|"
	 "tie_word_embeddings|pooler_act|pooler_output_size|",
	 HARMLESS, NULL, 0},
	{NULL, HARMLESS, NULL, 0},
};

/* Of timm, whose resnet50 has torchvision's names, as have others that blur. */
static const struct member resnet[] = {
	{"|architecture|", ONE_OF,
	 "|\"resnet50\"|\"resnet101\"|\"resnet152\"|\"tv_resnet50\"|\"tv_resnet101\"|"
	 "\"tv_resnet152\"|",
	 0},
	{"|global_pool|", ONE_OF, "|\"avg\"|", 0},
	{"|pretrained_cfg.mean|", MEAN, NULL, 0},
	{"|pretrained_cfg.std|", STD, NULL, 0},
	{"|pretrained_cfg.interpolation|pretrained_cfg.crop_pct|pretrained_cfg.crop_mode|"
	 "pretrained_cfg.input_size|",
	 TOLD, NULL, 0},
	{"|num_classes|", SIZE, SIZE_OF(classes)},
	{"|model_args|", ONE_OF, "|{}|null|", 0},
	{"|num_features|pretrained_cfg.*|label_names|label_descriptions|label_descriptions.*|",
	 HARMLESS, NULL, 0},
	{NULL, HARMLESS, NULL, 0},
};

/* Members of every configuration of transformers. */
static const struct member common[] = {
	{"|is_encoder_decoder|torchscript|add_cross_attention|", ONE_OF, "|false|", 0},
	{"|pruned_heads|", ONE_OF, "|{}|null|", 0},
	{"|_name_or_path|name_or_path|_commit_hash|transformers_version|torch_dtype|dtype|license|"
	 "task_specific_params|task_specific_params.*|return_dict|return_dict_in_generate|"
	 "output_hidden_states|output_attentions|output_scores|use_cache|use_bfloat16|"
	 "tf_legacy_loss|use_return_dict|finetuning_task|problem_type|tokenizer_class|prefix|"
	 "initializer_range|initializer_factor|gradient_checkpointing|chunk_size_feed_forward|"
	 "cross_attention_hidden_size|tie_encoder_decoder|attn_implementation|"
	 "_attn_implementation|_attn_implementation_internal|_attn_implementation_autoset|",
	 HARMLESS, NULL, 0},
	{"|bos_token_id|eos_token_id|pad_token_id|sep_token_id|cls_token_id|unk_token_id|"
	 "decoder_start_token_id|forced_bos_token_id|forced_eos_token_id|suppress_tokens|"
	 "begin_suppress_tokens|bad_words_ids|max_length|min_length|max_new_tokens|do_sample|"
	 "early_stopping|num_beams|num_beam_groups|diversity_penalty|temperature|top_k|top_p|"
	 "typical_p|repetition_penalty|length_penalty|no_repeat_ngram_size|"
	 "encoder_no_repeat_ngram_size|num_return_sequences|remove_invalid_values|"
	 "exponential_decay_length_penalty|",
	 HARMLESS, NULL, 0},
	{NULL, HARMLESS, NULL, 0},
};

/* ---- helpers ---- */

void model_path(const char *place, const char *name, char path[MODEL_PATH])
{
	const char *slash = strrchr(place, '/');
	struct stat status;

	if (stat(place, &status) == 0 && S_ISDIR(status.st_mode))
		snprintf(path, MODEL_PATH, "%s/%s", place, name);
	else
		snprintf(path, MODEL_PATH, "%.*s%s", slash ? (int)(slash - place + 1) : 0, place,
			 name);
}

void model_note(struct model_config *c, const char *format, ...)
{
	char text[MODEL_NOTE];
	const size_t used = strlen(c->notes);
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (sizeof c->notes - used < 3)
		return;
	mu_text_show(c->notes + used, sizeof c->notes - used - 1, text);
	strcat(c->notes, "\n");
}

bool model_is_one_of(const char *words, const char *text)
{
	const size_t n = strlen(text), object = strcspn(text, ".");

	for (const char *p = words + 1; *p; p += strcspn(p, "|") + 1) {
		const size_t length = strcspn(p, "|");

		if (length == n && memcmp(p, text, n) == 0)
			return true;
		if (length == object + 2 && object < n && memcmp(p, text, object) == 0 &&
		    memcmp(p + object, ".*", 2) == 0)
			return true;
	}
	return false;
}

/* ---- the members ---- */

struct reading {
	struct model_config *c;
	const struct model_sizes *sizes;
	const struct member *rows;
	const char *network;
	size_t patch[2];
	char told[200];
};

static const struct member *find_member(const struct member *rows, const char *name)
{
	for (; rows->names; rows++)
		if (model_is_one_of(rows->names, name))
			return rows;
	return NULL;
}

/* "224", or "[224,224]". */
static bool two_sizes(const char *value, size_t *height, size_t *width)
{
	char rest;

	if (sscanf(value, "[%9zu,%9zu%c%c", height, width, &rest, &rest) == 3 && rest == ']')
		return true;
	*width = *height = 0;
	if (sscanf(value, "%9zu%c", height, &rest) == 1)
		*width = *height;
	return *width > 0;
}

static bool three_numbers(const char *value, double out[3])
{
	char rest = 0, more;

	return sscanf(value, "[%lf,%lf,%lf%c%c", &out[0], &out[1], &out[2], &rest, &more) == 4 &&
	       rest == ']';
}

/* A size that the arrays tell. */
static enum mu_status check_size(const char *name, const char *value, size_t has)
{
	enum mu_status st = MU_OK;
	char *end;

	if (has > 0 && (strtod(value, &end) != (double)has || *end))
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has \"%s\": %s, and its arrays have %zu: they are not of "
			"one model",
			name, value, has);
out:
	return st;
}

static enum mu_status check_inner(const struct reading *r, const char *name, const char *value)
{
	enum mu_status st = MU_OK;
	const size_t has = 4 * r->sizes->hidden;
	char *end;

	if (strcmp(value, "null") != 0 && has > 0 && (strtod(value, &end) != (double)has || *end))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"its config.json has \"%s\": %s, and network %s here computes with four "
			"times the width, %zu, alone",
			name, value, r->network, has);
out:
	return st;
}

/* A number that two names may tell. null tells nothing. */
static enum mu_status set_number(double *out, const char *name, const char *value)
{
	enum mu_status st = MU_OK;
	char *end;
	const double number = strtod(value, &end);

	if (strcmp(value, "null") == 0)
		goto out;
	if (!*value || *end || !(number > 0 && number < 1e6))
		MU_FAIL(MU_ERR_FORMAT, "its config.json has \"%s\": %s, which is no such number",
			name, value);
	if (*out > 0 && *out != number)
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has \"%s\": %s, and another value by its other name", name,
			value);
	*out = number;
out:
	return st;
}

static enum mu_status check_word(const struct reading *r, const struct member *m, const char *name,
				 const char *value)
{
	enum mu_status st = MU_OK;
	char words[200];
	size_t n;

	if (model_is_one_of(m->words, value))
		goto out;
	n = (size_t)snprintf(words, sizeof words, "%.190s", m->words + 1);
	words[n > 0 ? n - 1 : 0] = '\0';
	for (char *p = words; (p = strchr(p, '|'));)
		*p = ',';
	MU_FAIL(MU_ERR_UNSUPPORTED,
		"its config.json has \"%s\": %s, and network %s here computes with %s alone", name,
		value, r->network, words);
out:
	return st;
}

/* Its name without the object's. */
static void add_told(struct reading *r, const char *name, const char *value)
{
	const size_t n = strlen(r->told);
	const char *dot = strchr(name, '.');

	snprintf(r->told + n, sizeof r->told - n, "%s%s %.40s", n > 0 ? ", " : "",
		 dot ? dot + 1 : name, value);
}

static enum mu_status read_value(struct reading *r, const struct member *m, const char *name,
				 const char *value)
{
	enum mu_status st = MU_OK;
	struct model_config *c = r->c;
	bool is = true;

	switch (m->how) {
	case HARMLESS: break;
	case TOLD: add_told(r, name, value); break;
	case ONE_OF: MU_TRY(check_word(r, m, name, value)); break;
	case ROUNDING:
		if (!model_is_one_of(m->words, value))
			model_note(c,
				   "config.json has \"%s\": %.200s, which changes the rounding "
				   "alone: it is left out",
				   name, value);
		break;
	case SIZE:
		MU_TRY(check_size(name, value,
				  *(const size_t *)((const char *)r->sizes + m->offset)));
		break;
	case INNER: MU_TRY(check_inner(r, name, value)); break;
	case HEADS: MU_TRY(set_number(&c->heads, name, value)); break;
	case EPS: MU_TRY(set_number(&c->eps, name, value)); break;
	case IMAGE: is = two_sizes(value, &c->height, &c->width); break;
	case PATCH: is = two_sizes(value, &r->patch[0], &r->patch[1]); break;
	case TIED:
		c->tied = strcmp(value, "true") == 0;
		is = c->tied || strcmp(value, "false") == 0;
		break;
	case MEAN: is = c->pixels = three_numbers(value, c->mean); break;
	case STD: is = three_numbers(value, c->std); break;
	}
	if (!is)
		MU_FAIL(MU_ERR_FORMAT, "its config.json has \"%s\": %s, which cannot be read", name,
			value);
out:
	return st;
}

static enum mu_status read_member(void *context, const char *name, const char *value)
{
	enum mu_status st = MU_OK;
	struct reading *r = context;
	const struct member *m;

	if (strcmp(name, "model_type") == 0 || strcmp(name, "architecture") == 0)
		snprintf(r->c->type, sizeof r->c->type, "%.*s", (int)sizeof r->c->type - 1, value);
	if (!r->rows)
		goto out;
	m = find_member(r->rows, name);
	if (!m)
		m = find_member(common, name);
	if (!m)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"its config.json has \"%s\": %.60s, which is not known: it may change what "
			"the model computes; take it out of the file if it does not",
			name, value);
	MU_TRY(read_value(r, m, name, value));
out:
	return st;
}

/* ---- what follows from several ---- */

static enum mu_status check_vit(const struct reading *r)
{
	enum mu_status st = MU_OK;
	struct model_config *c = r->c;
	const struct model_sizes *s = r->sizes;
	const size_t patch = s->patch;
	size_t has;

	if (patch > 0 && r->patch[0] > 0 && (r->patch[0] != patch || r->patch[1] != patch))
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has \"patch_size\": %zu, and its arrays have %zu: they "
			"are not of one model",
			r->patch[0], patch);
	if (c->there && c->height == 0)
		c->height = c->width = 224; /* transformers' default */
	has = s->patches > 0 ? s->patches - 1 : 0;
	if (c->height == 0 && patch > 0 && has > 0) { /* a square */
		const size_t side = (size_t)(sqrt((double)has) + 0.5);

		c->height = c->width = side * side == has ? side * patch : 0;
	}
	if (c->height > 0 && patch > 0 && has > 0 &&
	    (c->height / patch) * (c->width / patch) != has)
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has \"image_size\": %zu x %zu, and its arrays have "
			"positions for %zu patches of %zu x %zu: they are not of one model",
			c->height, c->width, has, patch, patch);
	if (c->height > 0 && patch > 0 && patch != (c->height <= 32 ? 4 : 16))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"its patches are %zu x %zu (\"patch_size\"); the networks here cut images "
			"up to 32 pixels high into patches of 4 x 4, and larger ones into 16 x 16",
			patch, patch);
out:
	return st;
}

static enum mu_status check_whole(const struct reading *r)
{
	enum mu_status st = MU_OK;
	const struct model_config *c = r->c;
	const struct model_sizes *s = r->sizes;

	if (s->inner > 0 && s->hidden > 0 && s->inner != 4 * s->hidden)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"its blocks have %zu units inside, and network %s here has four times the "
			"width, %zu",
			s->inner, r->network, 4 * s->hidden);
	if (c->heads > 0 && s->hidden > 0 && fmod((double)s->hidden, c->heads) != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has %g heads, which do not divide a width of %zu",
			c->heads, s->hidden);
	if (s->head && !s->head_tied && c->there && c->tied != 0 && r->rows == gpt2)
		MU_FAIL(MU_ERR_FORMAT,
			"its output has weights of its own, \"lm_head.weight\", and its "
			"config.json "
			"does not say \"tie_word_embeddings\": false: other programs leave them "
			"out");
	if (!s->head && c->tied == 0 && r->rows == gpt2 && s->vocabulary > 0)
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has \"tie_word_embeddings\": false, and it holds no "
			"\"lm_head.weight\"");
out:
	return st;
}

void model_config_release(struct model_config *c)
{
	mu_free(c->class_names);
	c->class_names = NULL;
}

enum mu_status model_config_read(struct model_config *c, const char *place,
				 const struct name_family *family, const struct model_sizes *sizes)
{
	enum mu_status st = MU_OK;
	const char *word = family ? name_family_word(family) : "";
	const bool is_gpt2 = strcmp(word, "gpt2") == 0, is_vit = strcmp(word, "vit") == 0;
	struct reading r = {.c = c, .sizes = sizes};
	char path[MODEL_PATH];

	*c = (struct model_config){.tied = -1};
	r.rows = is_gpt2 ? gpt2 : is_vit ? vit : strcmp(word, "resnet") == 0 ? resnet : NULL;
	r.network = is_gpt2 ? "gpt2" : is_vit ? "vit-base" : "resnet-v1";
	model_path(place, "config.json", path);
	MU_TRY(mu_settings_each(path, read_member, &r, &c->there));
	if (c->there && c->eps == 0)
		c->eps = is_gpt2 ? 1e-5 : is_vit ? 1e-12 : 0; /* transformers' defaults */
	if (*r.told)
		model_note(c,
			   "config.json has %s, which is not taken over: images are resized by "
			   "bilinear interpolation here; give trainer --image-shape and --resize",
			   r.told);
	MU_TRY(check_whole(&r));
	if (r.rows && !is_gpt2)
		MU_TRY(model_classes_read(c, place, sizes->classes));
	if (is_vit)
		MU_TRY(check_vit(&r));
	for (int i = 0; c->pixels && i < 3; i++) {
		c->mean[i] *= 255;
		c->std[i] = c->std[i] > 0 ? 255 * c->std[i] : 255;
	}
	if (c->pixels && c->std[0] < 1 && c->std[1] < 1 && c->std[2] < 1)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"its config.json has \"pretrained_cfg.std\" %g, of pixels from 0 to 1: "
			"it is too small",
			c->std[0] / 255);
out:
	return st;
}
