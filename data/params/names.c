/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of names. In both names of a row '#' stands for a number, and '@' for one that is larger
 * by 1 in ours; they come in the same order.
 */
#include "names.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 4 };

struct row {
	const char *ours, *theirs; /* ours NULL: NAME_SKIP */
	enum name_how how;
};

struct name_family {
	const char *word;
	const char *our_mark, *their_mark; /* names that no other family has; theirs: a pattern */
	const char *prefix;                /* that theirs may have or lack, or NULL */
	const struct row *rows;            /* the last one is empty */
	struct family_facts facts;
};

/* transformers' GPT2Model and GPT2LMHeadModel; their Conv1D keeps (in, out). The output's weight is
 * that of the embedding. */
static const struct row gpt2[] = {
	{"arg/wte_weight", "wte.weight", NAME_KEEP},
	{"arg/wpe_weight", "wpe.weight", NAME_KEEP},
	{"arg/h#_ln1_gamma", "h.#.ln_1.weight", NAME_KEEP},
	{"arg/h#_ln1_beta", "h.#.ln_1.bias", NAME_KEEP},
	{"arg/h#_qkv_weight", "h.#.attn.c_attn.weight", NAME_TRANSPOSE},
	{"arg/h#_qkv_bias", "h.#.attn.c_attn.bias", NAME_KEEP},
	{"arg/h#_proj_weight", "h.#.attn.c_proj.weight", NAME_TRANSPOSE},
	{"arg/h#_proj_bias", "h.#.attn.c_proj.bias", NAME_KEEP},
	{"arg/h#_ln2_gamma", "h.#.ln_2.weight", NAME_KEEP},
	{"arg/h#_ln2_beta", "h.#.ln_2.bias", NAME_KEEP},
	{"arg/h#_fc_weight", "h.#.mlp.c_fc.weight", NAME_TRANSPOSE},
	{"arg/h#_fc_bias", "h.#.mlp.c_fc.bias", NAME_KEEP},
	{"arg/h#_out_weight", "h.#.mlp.c_proj.weight", NAME_TRANSPOSE},
	{"arg/h#_out_bias", "h.#.mlp.c_proj.bias", NAME_KEEP},
	{"arg/lnf_gamma", "ln_f.weight", NAME_KEEP},
	{"arg/lnf_beta", "ln_f.bias", NAME_KEEP},
	{NULL, "h.#.attn.bias", NAME_SKIP},
	{NULL, "h.#.attn.masked_bias", NAME_SKIP},
	{"arg/head_weight", "lm_head.weight", NAME_HEAD},
	{NULL, NULL, NAME_KEEP},
};

/* transformers' LlamaModel and LlamaForCausalLM. */
#define BLOCK "model.layers.#."
static const struct row llama[] = {
	{"arg/tokens_weight", "model.embed_tokens.weight", NAME_KEEP},
	{"arg/h#_norm1_gamma", BLOCK "input_layernorm.weight", NAME_KEEP},
	{"arg/h#_qkv_weight", BLOCK "self_attn.q_proj.weight", NAME_PART},
	{"arg/h#_qkv_weight", BLOCK "self_attn.k_proj.weight", NAME_PART},
	{"arg/h#_qkv_weight", BLOCK "self_attn.v_proj.weight", NAME_PART},
	{"arg/h#_proj_weight", BLOCK "self_attn.o_proj.weight", NAME_PRODUCT},
	{"arg/h#_norm2_gamma", BLOCK "post_attention_layernorm.weight", NAME_KEEP},
	{"arg/h#_gate_weight", BLOCK "mlp.gate_proj.weight", NAME_PRODUCT},
	{"arg/h#_up_weight", BLOCK "mlp.up_proj.weight", NAME_PRODUCT},
	{"arg/h#_down_weight", BLOCK "mlp.down_proj.weight", NAME_PRODUCT},
	{"arg/norm_gamma", "model.norm.weight", NAME_KEEP},
	{NULL, BLOCK "self_attn.rotary_emb.inv_freq", NAME_SKIP},
	{"arg/head_weight", "lm_head.weight", NAME_HEAD},
	{NULL, NULL, NAME_KEEP},
};

/* transformers' ViTModel and ViTForImageClassification. */
#define HEADS "vit.encoder.layer.#.attention.attention."
#define PARTS(kind) \
	{"arg/h#_qkv_" kind, HEADS "query." kind, NAME_PART}, \
		{"arg/h#_qkv_" kind, HEADS "key." kind, NAME_PART}, \
	{ \
		"arg/h#_qkv_" kind, HEADS "value." kind, NAME_PART \
	}
#define DENSE(ours, theirs) \
	{"arg/h#_" ours "_weight", "vit.encoder.layer.#." theirs ".dense.weight", NAME_PRODUCT}, \
	{ \
		"arg/h#_" ours "_bias", "vit.encoder.layer.#." theirs ".dense.bias", NAME_KEEP \
	}
static const struct row vit[] = {
	{"arg/patch_weight", "vit.embeddings.patch_embeddings.projection.weight", NAME_KEEP},
	{"arg/patch_bias", "vit.embeddings.patch_embeddings.projection.bias", NAME_KEEP},
	{"arg/position_token", "vit.embeddings.cls_token", NAME_BATCH},
	{"arg/position_weight", "vit.embeddings.position_embeddings", NAME_BATCH},
	{"arg/h#_ln1_gamma", "vit.encoder.layer.#.layernorm_before.weight", NAME_KEEP},
	{"arg/h#_ln1_beta", "vit.encoder.layer.#.layernorm_before.bias", NAME_KEEP},
	PARTS("weight"),
	PARTS("bias"),
	DENSE("proj", "attention.output"),
	{"arg/h#_ln2_gamma", "vit.encoder.layer.#.layernorm_after.weight", NAME_KEEP},
	{"arg/h#_ln2_beta", "vit.encoder.layer.#.layernorm_after.bias", NAME_KEEP},
	DENSE("fc", "intermediate"),
	DENSE("out", "output"),
	{"arg/lnf_gamma", "vit.layernorm.weight", NAME_KEEP},
	{"arg/lnf_beta", "vit.layernorm.bias", NAME_KEEP},
	{"arg/head_weight", "classifier.weight", NAME_KEEP},
	{"arg/head_bias", "classifier.bias", NAME_KEEP},
	{NULL, "vit.pooler.dense.weight", NAME_SKIP},
	{NULL, "vit.pooler.dense.bias", NAME_SKIP},
	{NULL, NULL, NAME_KEEP},
};

#define NORM(ours, theirs) \
	{"arg/" ours "_gamma", theirs ".weight", NAME_KEEP}, \
		{"arg/" ours "_beta", theirs ".bias", NAME_KEEP}, \
		{"aux/" ours "_moving_mean", theirs ".running_mean", NAME_KEEP}, \
		{"aux/" ours "_moving_var", theirs ".running_var", NAME_KEEP}, \
	{ \
		NULL, theirs ".num_batches_tracked", NAME_SKIP \
	}

/* torchvision's resnet50, 101, 152; resnet-v1 here. */
static const struct row resnet[] = {
	{"arg/conv0_weight", "conv1.weight", NAME_KEEP},
	NORM("bn0", "bn1"),
	{"arg/stage#_unit@_conv#_weight", "layer#.@.conv#.weight", NAME_KEEP},
	NORM("stage#_unit@_bn#", "layer#.@.bn#"),
	{"arg/stage#_unit@_conv1sc_weight", "layer#.@.downsample.0.weight", NAME_KEEP},
	NORM("stage#_unit@_sc", "layer#.@.downsample.1"),
	{"arg/fc1_weight", "fc.weight", NAME_KEEP},
	{"arg/fc1_bias", "fc.bias", NAME_KEEP},
	{NULL, NULL, NAME_KEEP},
};

static const struct name_family families[] = {
	{"gpt2", "arg/wte_weight", "h.#.attn.c_attn.weight", "transformer.", gpt2,
	 {"gpt2", "GPT2LMHeadModel", "layer-norm-eps", 1e-5, 1e-5, .text = true, .tied = true}},
	{"llama", "arg/tokens_weight", BLOCK "self_attn.q_proj.weight", "model.", llama,
	 {"llama", "LlamaForCausalLM", "rms-norm-eps", 1e-6, 1e-5, .text = true, .grouped = true,
	  .shares_names = true}},
	{"vit", "arg/position_token", "vit.embeddings.cls_token", "vit.", vit,
	 {"vit-base", "ViTForImageClassification", "layer-norm-eps", 1e-12, 1e-6, .text = false}},
	{"resnet", "arg/stage1_unit1_conv1sc_weight", "layer1.0.conv1.weight", NULL, resnet,
	 {.network = "resnet-v1"}},
};

enum { N_FAMILIES = sizeof families / sizeof *families };

static const char *without_prefix(const struct name_family *f, const char *theirs)
{
	const size_t n = f->prefix ? strlen(f->prefix) : 0;

	return n > 0 && strncmp(theirs, f->prefix, n) == 0 ? theirs + n : theirs;
}

void name_add_prefix(const struct name_family *f, char theirs[NAME_BYTES])
{
	const size_t n = f->prefix ? strlen(f->prefix) : 0, m = strlen(theirs);

	if (without_prefix(f, theirs) != theirs || n + m >= NAME_BYTES)
		return;
	memmove(theirs + n, theirs, m + 1);
	memcpy(theirs, f->prefix, n);
}

const struct name_family *name_family_find(const char *word)
{
	for (int i = 0; i < N_FAMILIES; i++)
		if (strcmp(families[i].word, word) == 0)
			return &families[i];
	return NULL;
}

const struct name_family *name_family_of_ours(const char *name)
{
	for (int i = 0; i < N_FAMILIES; i++)
		if (strcmp(families[i].our_mark, name) == 0)
			return &families[i];
	return NULL;
}

const char *name_family_word(const struct name_family *family)
{
	return family ? family->word : "plain";
}

const struct family_facts *name_family_facts(const struct name_family *family)
{
	return &family->facts;
}

bool name_part_rows(const struct part_rows *p, size_t n, size_t part, size_t *first, size_t *rows)
{
	const size_t all = p->heads + 2 * p->kv_heads, one = all > 0 ? n / all : 0;

	*first = part == 0 ? 0 : (p->heads + (part - 1) * p->kv_heads) * one;
	*rows = (part == 0 ? p->heads : p->kv_heads) * one;
	return one > 0 && one * all == n;
}

const char *name_of_embedding(const struct name_family *family)
{
	return family->our_mark;
}

/* ---- patterns ---- */

/* At most 6 digits, as they are written: no zeros in front. */
static bool read_number(const char **text, long *number)
{
	const char *p = *text;

	while (*p >= '0' && *p <= '9')
		p++;
	if (p == *text || p - *text > 6 || (**text == '0' && p - *text > 1))
		return false;
	*number = strtol(*text, NULL, 10);
	*text = p;
	return true;
}

static bool match(const char *pattern, const char *text, long numbers[NUMBERS])
{
	int n = 0;

	for (; *pattern; pattern++) {
		if (*pattern != '#' && *pattern != '@') {
			if (*pattern != *text++)
				return false;
		} else if (n == NUMBERS || !read_number(&text, &numbers[n++])) {
			return false;
		}
	}
	return *text == '\0';
}

/* step: is added to '@'. false: a number becomes negative, or the name is too long. */
static bool format(const char *pattern, const long numbers[NUMBERS], int step,
		   char name[NAME_BYTES])
{
	size_t at = 0;
	int n = 0;

	for (; *pattern && at < NAME_BYTES - 8; pattern++) {
		if (*pattern == '#' || *pattern == '@') {
			const long number = numbers[n++] + (*pattern == '@' ? step : 0);

			if (number < 0)
				return false;
			at += (size_t)snprintf(name + at, NAME_BYTES - at, "%ld", number);
		} else {
			name[at++] = *pattern;
		}
	}
	name[at] = '\0';
	return *pattern == '\0';
}

static bool is_mark(const struct name_family *f, const char *theirs)
{
	long numbers[NUMBERS];

	return match(without_prefix(f, f->their_mark), without_prefix(f, theirs), numbers);
}

const struct name_family *name_family_of_theirs(const char *name)
{
	for (int i = 0; i < N_FAMILIES; i++)
		if (is_mark(&families[i], name))
			return &families[i];
	return NULL;
}

bool name_to_ours(const struct name_family *family, const char *theirs, char ours[NAME_BYTES],
		  enum name_how *how, size_t *part)
{
	long numbers[NUMBERS];

	theirs = without_prefix(family, theirs);
	for (const struct row *r = family->rows; r->theirs; r++) {
		if (!match(without_prefix(family, r->theirs), theirs, numbers))
			continue;
		*how = r->how;
		*part = 0;
		while (r - *part > family->rows && r->how == NAME_PART &&
		       strcmp(r[-(long)*part - 1].ours, r->ours) == 0)
			++*part;
		return !r->ours || format(r->ours, numbers, 1, ours);
	}
	return false;
}

/* What programs write before the names of a model that they have wrapped. */
static bool is_wrapper(const char *theirs, size_t n)
{
	static const char *const words[] = {"module.", "_orig_mod."};

	for (int i = 0; i < 2; i++)
		if (strlen(words[i]) == n && memcmp(words[i], theirs, n) == 0)
			return true;
	return false;
}

size_t name_wrapper(const struct name_family *family, const char *theirs)
{
	char ours[NAME_BYTES];
	enum name_how how;
	size_t part;

	for (const char *p = theirs; (p = strchr(p, '.'));) {
		const size_t n = (size_t)(++p - theirs);

		if (family && name_to_ours(family, p, ours, &how, &part))
			return n;
		if (!family && is_wrapper(theirs, n) && name_family_of_theirs(p))
			return n;
	}
	return 0;
}

bool name_of_row(const struct name_family *family, size_t i, size_t layer, struct name_pair *pair)
{
	const struct row *r = &family->rows[i];
	const long numbers[NUMBERS] = {(long)layer};

	if (!r->theirs)
		return false;
	pair->how = r->how;
	pair->per_layer = r->ours && strchr(r->ours, '#');
	if (r->ours)
		format(r->ours, numbers, 0, pair->ours);
	format(r->theirs, numbers, 0, pair->theirs);
	return true;
}

bool name_to_theirs(const struct name_family *family, const char *ours, size_t part,
		    char theirs[NAME_BYTES], enum name_how *how)
{
	long numbers[NUMBERS];

	for (const struct row *r = family->rows; r->theirs; r++) {
		if (!r->ours || !match(r->ours, ours, numbers) || part-- > 0)
			continue;
		*how = r->how;
		return format(r->theirs, numbers, -1, theirs);
	}
	return false;
}
