/* SPDX-License-Identifier: Apache-2.0 */
/* Names of classes, in the order of the labels: an attribute of a checkpoint, a name a line. */
#include "contents.h"

#include <string.h>

#define CLASS_NAMES CHECKPOINT_CLASS_NAMES

enum mu_status mu_checkpoint_classes_write(const struct mu_engine *e, struct mu_array_file *file)
{
	enum mu_status st = MU_OK;
	const struct mu_input *in = e->train;
	size_t nbytes = 1;
	char *text = NULL, *at;

	for (size_t i = 0; i < in->about.n_class_names; i++) {
		if (strchr(in->about.class_names[i], '\n'))
			return MU_OK;
		nbytes += strlen(in->about.class_names[i]) + 1;
	}
	if (in->about.n_class_names == 0)
		return MU_OK;
	MU_TRY(MU_ALLOC(text, nbytes, "names of classes"));
	at = text;
	for (size_t i = 0; i < in->about.n_class_names; i++)
		at += sprintf(at, "%s\n", in->about.class_names[i]);
	MU_TRY(mu_array_file_set_text(file, CLASS_NAMES, text));
out:
	mu_free(text);
	return st;
}

static enum mu_status read_names(struct mu_array_file *file, struct checkpoint_classes *c)
{
	enum mu_status st = MU_OK;
	size_t lines = 0;

	MU_TRY(mu_array_file_read_text(file, CLASS_NAMES, &c->text));
	if (!c->text)
		goto out;
	for (const char *p = c->text; *p; p++)
		lines += *p == '\n';
	MU_TRY(MU_ALLOC(c->name, lines + 1, "names of classes"));
	for (char *p = c->text, *end; (end = strchr(p, '\n')); p = end + 1) {
		*end = '\0';
		c->name[c->n++] = p;
	}
out:
	return st;
}

void mu_checkpoint_classes_release(struct checkpoint_classes *c)
{
	mu_free(c->text);
	mu_free(c->name);
	*c = (struct checkpoint_classes){.n = 0};
}

enum mu_status mu_checkpoint_classes_read(struct checkpoint_classes *c, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_array_file *file = NULL;

	*c = (struct checkpoint_classes){.n = 0};
	MU_TRY(mu_array_file_open_checked(&file, path));
	MU_TRY(read_names(file, c));
out:
	mu_array_file_close(file, false);
	if (st != MU_OK)
		mu_checkpoint_classes_release(c);
	return st;
}

enum mu_status mu_checkpoint_classes_check(const struct mu_engine *e, struct mu_array_file *file,
					   const char *path, const char *cure)
{
	enum mu_status st = MU_OK;
	const struct mu_input *in = e->train;
	const char *data = e->conf->data_train;
	struct checkpoint_classes c = {.n = 0};
	size_t i = 0;

	if (in->about.n_class_names == 0)
		goto out;
	MU_TRY(read_names(file, &c));
	while (i < c.n && i < in->about.n_class_names &&
	       strcmp(c.name[i], in->about.class_names[i]) == 0)
		i++;
	if (i < c.n && i < in->about.n_class_names)
		MU_FAIL(MU_ERR_USAGE,
			"class %zu is \"%s\" in %s and \"%s\" in %s: the same classes are needed, "
			"also those without images (as empty folders)%s",
			i, c.name[i], path, in->about.class_names[i], data, cure);
	if (c.n > 0 && c.n != in->about.n_class_names)
		MU_FAIL(MU_ERR_USAGE,
			"%s has %zu classes and %s %zu: class %zu, \"%s\", is in one of them "
			"only%s",
			path, c.n, data, in->about.n_class_names, i,
			i < c.n ? c.name[i] : in->about.class_names[i], cure);
out:
	mu_checkpoint_classes_release(&c);
	return st;
}
