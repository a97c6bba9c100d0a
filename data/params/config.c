/* SPDX-License-Identifier: Apache-2.0 */
/* The config.json of a model, by the tables of its members: members.h. */
#include "members.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
	const struct name_family *family;
	const struct family_facts *facts; /* NULL: no family */
	size_t patch[2];
	char told[200];
};

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
			name, value, r->facts->network, has);
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
	if (!*value || *end || !(number > 0 && number < 1e9))
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
		"its config.json has \"%s\": %s, and network %s here computes with %s alone; "
		"--names plain converts the arrays under their names",
		name, value, r->facts->network, words);
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
	case NUMBER:
		MU_TRY(set_number((double *)((char *)c + m->offset), name, value));
		break;
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
	if (!r->family)
		goto out;
	m = model_member(r->family, name);
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

/* Is the output's weight where config.json says? */
static enum mu_status check_tied(const struct reading *r, bool told)
{
	enum mu_status st = MU_OK;
	const struct model_config *c = r->c;
	const struct model_sizes *s = r->sizes;

	if (s->head && !s->head_tied && c->there && c->tied != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"its output has weights of its own, \"lm_head.weight\", and its "
			"config.json "
			"%s: other programs leave them out",
			told ? "has \"tie_word_embeddings\": true"
			     : "does not say \"tie_word_embeddings\": false");
	if (!s->head && c->tied == 0 && s->vocabulary > 0)
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json %s, and it holds no \"lm_head.weight\"",
			told ? "has \"tie_word_embeddings\": false"
			     : "does not say \"tie_word_embeddings\": true");
out:
	return st;
}

/* Heads of a size of their own, which arrays show. */
static enum mu_status check_heads(const struct reading *r)
{
	enum mu_status st = MU_OK;
	const struct model_config *c = r->c;
	const struct model_sizes *s = r->sizes;

	if (fmod(c->heads, c->kv_heads) != 0 || fmod(c->head_dim, 2) != 0)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"its config.json has %g heads, %g of keys, of %g channels; heads of keys "
			"must divide heads, and channels be even",
			c->heads, c->kv_heads, c->head_dim);
	if (s->query > 0 && s->key > 0 &&
	    (c->heads * c->head_dim != (double)s->query ||
	     c->kv_heads * c->head_dim != (double)s->key))
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has %g heads, %g of keys, of %g channels, and its arrays "
			"have queries of %zu and keys of %zu: they are not of one model",
			c->heads, c->kv_heads, c->head_dim, s->query, s->key);
out:
	return st;
}

static enum mu_status check_whole(const struct reading *r)
{
	enum mu_status st = MU_OK;
	const struct model_config *c = r->c;
	const struct model_sizes *s = r->sizes;
	const bool grouped = r->facts && r->facts->grouped;

	if (s->inner > 0 && s->hidden > 0 && s->inner != 4 * s->hidden && !grouped)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"its blocks have %zu units inside, and network %s here has four times the "
			"width, %zu",
			s->inner, r->facts->network, 4 * s->hidden);
	if (c->heads > 0 && s->hidden > 0 && fmod((double)s->hidden, c->heads) != 0 &&
	    !(grouped && fmod(c->head_dim, 1) == 0))
		MU_FAIL(MU_ERR_FORMAT,
			"its config.json has %g heads, which do not divide a width of %zu",
			c->heads, s->hidden);
	if (grouped && c->heads > 0)
		MU_TRY(check_heads(r));
out:
	return st;
}

/* What transformers takes where config.json says nothing. */
static void set_defaults(const struct reading *r)
{
	struct model_config *c = r->c;

	if (c->eps == 0)
		c->eps = r->facts->eps;
	if (c->tied < 0 && r->facts->text)
		c->tied = r->facts->tied;
	if (!r->facts->grouped)
		return;
	if (c->kv_heads == 0)
		c->kv_heads = c->heads;
	if (c->head_dim == 0 && c->heads > 0)
		c->head_dim = (double)r->sizes->hidden / c->heads;
	if (c->theta == 0)
		c->theta = 10000;
	if (c->positions == 0)
		c->positions = 2048;
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
	const bool is_vit = family && strcmp(name_family_word(family), "vit") == 0;
	struct reading r = {.c = c,
			    .sizes = sizes,
			    .family = family,
			    .facts = family ? name_family_facts(family) : NULL};
	char path[MODEL_PATH];
	bool told;

	*c = (struct model_config){.tied = -1};
	model_path(place, "config.json", path);
	MU_TRY(mu_settings_each(path, read_member, &r, &c->there));
	told = c->tied >= 0;
	if (c->there && r.facts)
		set_defaults(&r);
	if (*r.told)
		model_note(c,
			   "config.json has %s, which is not taken over: images are resized by "
			   "bilinear interpolation here; give trainer --image-shape and --resize",
			   r.told);
	MU_TRY(check_whole(&r));
	if (r.facts && r.facts->text)
		MU_TRY(check_tied(&r, told));
	if (r.facts && !r.facts->text)
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
