/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x.classes, beside x.rec: RecordIO has no place for the names of the classes. A title, then a line
 * per class, from class 0 on. A file without the title is somebody else's, and left alone.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <muster/storage.h>

#include "records.h"
#include "storage/file.h"

enum { PATH_BYTES = 4096 };

static const char title[] = "# names of the classes, a line each\n";

/* false: not the name of a RecordIO file. */
static bool find_path(char path[PATH_BYTES], const char *rec)
{
	const size_t n = mu_stem(rec, ".rec");

	return n > 0 && snprintf(path, PATH_BYTES, "%.*s.classes", (int)n, rec) < PATH_BYTES;
}

/* Has the text the title, maybe as an editor of another system saves it? */
static bool is_names(const char *text, size_t n)
{
	const size_t words = sizeof title - 2;

	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		text += 3;
	return strncmp(text, title, words) == 0 && text[words + (text[words] == '\r')] == '\n';
}

/* Lines end in \n alone. */
static void drop_returns(char *text)
{
	char *to = text;

	for (const char *c = text; *c; c++)
		if (*c != '\r' || c[1] != '\n')
			*to++ = *c;
	*to = '\0';
}

/* The names are cut out of the text. */
static enum mu_status cut_names(struct mu_class_names *c, const char *path)
{
	enum mu_status st = MU_OK;
	char *line = c->text + sizeof title - 1, *end;
	size_t lines = 0;

	for (const char *at = line; (at = strchr(at, '\n')); at++)
		lines++;
	if (lines == 0 || c->text[strlen(c->text) - 1] != '\n')
		MU_FAIL(MU_ERR_FORMAT, "%s: its last line is cut off, or there is none", path);
	MU_TRY(MU_ALLOC(c->name, lines, path));
	for (; *line; line = end + 1) {
		end = strchr(line, '\n');
		*end = '\0';
		if (!*line)
			MU_FAIL(MU_ERR_FORMAT, "%s: class %zu has no name", path, c->n);
		c->name[c->n++] = line;
	}
out:
	return st;
}

enum mu_status mu_class_names_read(struct mu_class_names *c, const char *rec)
{
	enum mu_status st = MU_OK;
	char path[PATH_BYTES];
	size_t n;
	bool is;

	*c = (struct mu_class_names){.n = 0};
	if (!find_path(path, rec) || access(path, F_OK) != 0)
		goto out;
	MU_TRY(mu_file_read_whole(&c->text, &n, path));
	is = is_names(c->text, n);
	mu_free(c->text);
	c->text = NULL;
	if (!is)
		goto out;
	MU_TRY(mu_file_read_text(&c->text, &n, path));
	drop_returns(c->text);
	MU_TRY(cut_names(c, path));
out:
	if (st != MU_OK)
		mu_class_names_release(c);
	return st;
}

/* Names of other records, which were there before. */
static enum mu_status remove_old(const char *rec, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_class_names old;

	MU_TRY(mu_class_names_read(&old, rec));
	if (old.n > 0 && unlink(path) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be removed: %s", path, strerror(errno));
out:
	mu_class_names_release(&old);
	return st;
}

enum mu_status mu_class_names_write(const char *rec, const char *const *name, size_t n)
{
	enum mu_status st = MU_OK;
	struct mu_replace replace = {0};
	char path[PATH_BYTES];

	if (!find_path(path, rec))
		goto out;
	for (size_t i = 0; i < n; i++)
		if (!*name[i] || strpbrk(name[i], "\r\n")) {
			mu_log_warn("%s: is not written: the name of class %zu is empty or has "
				    "several lines",
				    path, i);
			n = 0;
		}
	if (n == 0) {
		MU_TRY(remove_old(rec, path));
		goto out;
	}
	MU_TRY(mu_replace_open(&replace, path));
	fputs(title, replace.stream);
	for (size_t i = 0; i < n; i++)
		fprintf(replace.stream, "%s\n", name[i]);
	MU_TRY(mu_replace_commit(&replace));
out:
	mu_replace_release(&replace);
	return st;
}

void mu_class_names_release(struct mu_class_names *c)
{
	mu_free(c->name);
	mu_free(c->text);
	*c = (struct mu_class_names){.n = 0};
}
