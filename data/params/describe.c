/* SPDX-License-Identifier: Apache-2.0 */
/* What transformers reads beside model.safetensors: config.json and tokenizer.json. */
#include "names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <muster/shape.h>
#include <muster/tokens.h>

enum { PATH_BYTES = 4096, TEXT_BYTES = 64 };

struct model {
	struct model_sizes sizes;
	const struct name_family *family;
	const struct family_facts *facts;
	const char *path; /* of its file */
	long heads;
	double dropout, eps;
	double kv_heads, head_dim, theta; /* of a Llama */
	bool ours;            /* the network that was trained is one of the family */
	struct mu_picture picture; /* an image; 0: not known */
	char *class_names;    /* a line each; NULL: not known */
	struct mu_tokenizer *tokenizer;
};

static enum mu_status read_number(struct mu_array_file *in, const char *attribute, double *value)
{
	enum mu_status st = MU_OK;
	char text[TEXT_BYTES];

	MU_TRY(mu_array_file_find_text(in, attribute, text, sizeof text));
	*value = strtod(text, NULL);
out:
	return st;
}

static enum mu_status read_model(struct mu_array_file *in, struct model *m)
{
	enum mu_status st = MU_OK;
	char shape[TEXT_BYTES], network[TEXT_BYTES], *tokens = NULL;
	const char *word = name_family_word(m->family);
	const size_t n = strlen(word);
	struct mu_shape sample;
	double heads, positions;

	MU_TRY(read_number(in, "num-heads", &heads));
	MU_TRY(read_number(in, "dropout", &m->dropout));
	MU_TRY(read_number(in, m->facts->eps_name, &m->eps));
	if (!(m->eps > 0))
		m->eps = m->facts->own_eps;
	MU_TRY(read_number(in, "num-kv-heads", &m->kv_heads));
	MU_TRY(read_number(in, "rope-theta", &m->theta));
	MU_TRY(read_number(in, "num-positions", &positions));
	if (m->facts->grouped)
		m->sizes.positions = positions > 0 ? (size_t)positions : 2048;
	MU_TRY(mu_array_file_find_text(in, "network", network, sizeof network));
	m->ours = strncmp(network, word, n) == 0 && (!network[n] || network[n] == '-');
	MU_TRY(mu_array_file_find_text(in, "image-shape", shape, sizeof shape));
	MU_TRY(mu_array_file_read_text(in, "tokenizer", &tokens));
	MU_TRY(mu_array_file_read_text(in, "class-names", &m->class_names));
	m->heads = heads >= 1 && heads <= (double)(m->sizes.hidden + m->sizes.query) ? (long)heads
										      : 0;
	m->head_dim = m->heads > 0 ? (double)m->sizes.query / (double)m->heads : 0;
	if (!(m->kv_heads > 0))
		m->kv_heads = (double)m->heads;
	if (!(m->theta > 0))
		m->theta = 10000;
	if (mu_sample_parse(&sample, shape))
		m->picture = mu_sample_picture(&sample);
	if (tokens)
		MU_TRY(mu_tokenizer_from_text(&m->tokenizer, m->path, tokens));
out:
	mu_free(tokens);
	return st;
}

static void put(struct mu_json *j, const char *name, size_t value)
{
	mu_json_number(j, name, (double)value);
}

static void put_dropout(struct mu_json *j, const struct model *m, const char *const names[])
{
	for (; *names; names++)
		mu_json_number(j, *names, m->dropout > 0 ? m->dropout : 0);
}

/* Numbers of the tokens that begin and end a text. */
static void put_ends(struct mu_json *j, const struct model *m)
{
	uint32_t end;
	const bool ends =
		m->tokenizer && mu_tokenizer_added(m->tokenizer, MU_TOKEN_END_OF_TEXT, &end);

	for (int i = 0; i < 2; i++) {
		const char *name = i == 0 ? "bos_token_id" : "eos_token_id";

		if (ends)
			put(j, name, end);
		else
			mu_json_text(j, name, NULL);
	}
}

/* GPT2Config of transformers. */
static void put_gpt2(struct mu_json *j, const struct model *m)
{
	static const char *const dropout[] = {"attn_pdrop", "embd_pdrop", "resid_pdrop", NULL};
	const struct model_sizes *s = &m->sizes;

	put(j, "vocab_size", s->vocabulary);
	put(j, "n_positions", s->positions);
	put(j, "n_embd", s->hidden);
	put(j, "n_layer", s->layers);
	put(j, "n_head", (size_t)m->heads);
	mu_json_text(j, "activation_function", "gelu_new");
	mu_json_number(j, "layer_norm_epsilon", m->eps);
	put_dropout(j, m, dropout);
	put_ends(j, m);
	mu_json_bool(j, "tie_word_embeddings", !s->head);
}

/* LlamaConfig of transformers. */
static void put_llama(struct mu_json *j, const struct model *m)
{
	const struct model_sizes *s = &m->sizes;

	put(j, "vocab_size", s->vocabulary);
	put(j, "max_position_embeddings", s->positions);
	put(j, "hidden_size", s->hidden);
	put(j, "intermediate_size", s->inner);
	put(j, "num_hidden_layers", s->layers);
	put(j, "num_attention_heads", (size_t)m->heads);
	put(j, "num_key_value_heads", (size_t)m->kv_heads);
	put(j, "head_dim", (size_t)m->head_dim);
	mu_json_text(j, "hidden_act", "silu");
	mu_json_number(j, "rms_norm_eps", m->eps);
	mu_json_number(j, "rope_theta", m->theta);
	mu_json_bool(j, "attention_bias", false);
	mu_json_bool(j, "mlp_bias", false);
	put_ends(j, m);
	mu_json_bool(j, "tie_word_embeddings", !s->head);
}

/* Is there a name of each class? */
static bool has_names(const struct model *m)
{
	size_t n = 0;

	for (const char *p = m->class_names; p && *p; p++)
		n += *p == '\n';
	return n > 0 && n == m->sizes.classes;
}

/* ViTConfig of transformers. */
static void put_vit(struct mu_json *j, const struct model *m)
{
	static const char *const dropout[] = {"attention_probs_dropout_prob", "hidden_dropout_prob",
					      NULL};
	const struct model_sizes *s = &m->sizes;

	put(j, "hidden_size", s->hidden);
	put(j, "num_hidden_layers", s->layers);
	put(j, "num_attention_heads", (size_t)m->heads);
	put(j, "intermediate_size", 4 * s->hidden);
	mu_json_text(j, "hidden_act", "gelu");
	mu_json_number(j, "layer_norm_eps", m->eps);
	put_dropout(j, m, dropout);
	mu_json_open(j, "image_size", '[');
	put(j, NULL, m->picture.h);
	put(j, NULL, m->picture.w);
	mu_json_close(j, ']');
	put(j, "patch_size", s->patch);
	put(j, "num_channels", s->channels);
	put(j, "num_labels", s->classes);
	if (has_names(m))
		model_classes_write(j, m->class_names);
}

static enum mu_status write_config(const struct model *m, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_replace file = {0};
	struct mu_json j = {.flat = 2};

	MU_TRY(mu_replace_open(&file, path));
	j.file = file.stream;
	mu_json_open(&j, NULL, '{');
	mu_json_open(&j, "architectures", '[');
	mu_json_text(&j, NULL, m->facts->model);
	mu_json_close(&j, ']');
	mu_json_text(&j, "model_type", name_family_word(m->family));
	(m->facts->grouped ? put_llama : m->facts->text ? put_gpt2 : put_vit)(&j, m);
	mu_json_close(&j, '}');
	MU_TRY(mu_replace_commit(&file));
out:
	mu_replace_release(&file);
	return st;
}

/* path: the name in the folder of the file `to`. */
static bool is_missing(const char *to, const char *name, char path[PATH_BYTES])
{
	const char *slash = strrchr(to, '/');

	snprintf(path, PATH_BYTES, "%.*s%s", slash ? (int)(slash - to + 1) : 0, to, name);
	return access(path, F_OK) != 0 && errno == ENOENT;
}

/* Is all of the model in the file, and does it say how many heads there are? */
static bool is_whole(const struct model *m)
{
	const struct model_sizes *s = &m->sizes;

	return m->ours && s->layers > 0 && s->hidden > 0 && m->heads > 0 &&
	       (m->facts->text
			? s->vocabulary > 0 && s->positions > 0
			: s->patch > 0 && s->classes > 0 && m->picture.h > 0);
}

/* A config.json that is there already must be of the model. */
static enum mu_status check_config(const struct model *m, const char *to, const char *path)
{
	enum mu_status st = MU_OK;
	struct model_config c = {.tied = -1};
	struct model_sizes sizes = m->sizes;

	if (!m->facts->grouped)
		sizes.inner = 4 * sizes.hidden;
	st = model_config_read(&c, to, m->family, &sizes);
	if (st != MU_OK)
		goto out;
	if (c.heads != (double)m->heads)
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has %g heads of attention, and the model %ld", c.heads,
			m->heads);
	if (m->facts->grouped && c.theta != m->theta)
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has %g for the base of rotary positions, and the model "
			"%g",
			c.theta, m->theta);
	if ((float)c.eps != (float)m->eps)
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has %g for the epsilon of layer norms, and the model %g",
			c.eps, m->eps);
	if (!m->facts->text && (c.height != m->picture.h || c.width != m->picture.w))
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has images of %zu x %zu, and the model %zu x %zu",
			c.height, c.width, m->picture.h, m->picture.w);
	if (has_names(m) && c.class_names && strcmp(c.class_names, m->class_names) != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has other names of classes (\"id2label\") than the model");
	if (has_names(m) && !c.class_names)
		printf("muconvert: %s names no classes, and the model does: without the file, "
		       "muconvert writes one with their names\n",
		       mu_shown(path));
out:
	model_config_release(&c);
	if (st != MU_OK)
		mu_trace_prefix("%s is there already, of another model; remove it, and muconvert "
				"writes the right one: ",
				path);
	return st;
}

static enum mu_status check_tokenizer(const struct model *m, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_tokenizer *found = NULL;
	bool same = false;

	if (mu_tokenizer_read(&found, path) == MU_OK)
		MU_TRY(mu_tokenizer_same(found, m->tokenizer, &same));
	else
		mu_trace_clear();
	if (!same)
		MU_FAIL(MU_ERR_FORMAT,
			"%s is there already, of another tokenizer; remove it, and muconvert "
			"writes "
			"the right one",
			path);
out:
	mu_tokenizer_free(found);
	return st;
}

enum mu_status convert_describe(struct mu_array_file *in, const struct name_family *family,
				const struct model_sizes *sizes, const char *to, bool write)
{
	enum mu_status st = MU_OK;
	struct model m = {.sizes = *sizes,
			  .family = family,
			  .facts = name_family_facts(family),
			  .path = to};
	char config[PATH_BYTES], tokenizer[PATH_BYTES];
	bool lacks_config, lacks_tokenizer;

	MU_TRY(read_model(in, &m));
	lacks_config = is_missing(to, "config.json", config);
	lacks_tokenizer = is_missing(to, "tokenizer.json", tokenizer);
	if (!write && is_whole(&m) && !lacks_config)
		MU_TRY(check_config(&m, to, config));
	if (!write && is_whole(&m) && !m.facts->text)
		MU_TRY(model_images_check(in, to, m.picture.h, m.picture.w));
	if (!write && m.tokenizer && !lacks_tokenizer)
		MU_TRY(check_tokenizer(&m, tokenizer));
	if (!write)
		goto out;
	if (is_whole(&m) && lacks_config) {
		MU_TRY(write_config(&m, config));
		printf("muconvert: what transformers reads of the model in %s\n", mu_shown(config));
	}
	if (is_whole(&m) && !m.facts->text)
		MU_TRY(model_images_write(in, to, m.picture.h, m.picture.w));
	if (m.tokenizer && lacks_tokenizer) {
		MU_TRY(mu_tokenizer_write(m.tokenizer, tokenizer));
		printf("muconvert: its tokenizer in %s\n", mu_shown(tokenizer));
	}
out:
	mu_tokenizer_free(m.tokenizer);
	mu_free(m.class_names);
	return st;
}
