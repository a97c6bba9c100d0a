/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of images with their labels: .lst files. */
#include <muster/records.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "storage/file.h"

/* The field at *text, terminated by a zero instead of its tab; NULL at the end of the line. */
static char *next_field(char **text)
{
	char *field = *text;
	size_t n;

	if (!field)
		return NULL;
	n = strcspn(field, "\t");
	*text = field[n] ? field + n + 1 : NULL;
	field[n] = '\0';
	return field;
}

static bool parse_id(const char *field, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(field, &end, 10);
	return *field >= '0' && *field <= '9' && *end == '\0' && errno == 0;
}

/* Records hold labels as float32: above 2^24 it has not all whole numbers. *exact false: it becomes
 * another number. */
static bool parse_label(const char *field, float *out, bool *exact)
{
	enum { EXACT = 1 << 24 };
	char *end;
	const double value = strtod(field, &end);

	*out = strtof(field, NULL);
	*exact = fabs(value) <= EXACT || (double)*out == value;
	return end != field && *end == '\0' && isfinite(*out);
}

/* Parse a line without its newline. labels has space for one label per tab. *inexact: a label that
 * float32 does not hold. */
static bool parse_line(char *text, struct mu_image_list_line *out, float *labels,
		       const char **inexact)
{
	bool exact = true;
	const char *field = next_field(&text);

	*out = (struct mu_image_list_line){.labels = labels};
	if (!field || !parse_id(field, &out->id))
		return false;
	for (field = next_field(&text); text; field = next_field(&text)) {
		if (!parse_label(field, &labels[out->n_labels++], &exact))
			return false;
		*inexact = exact ? *inexact : field;
	}
	out->path = field;
	return out->n_labels > 0 && field && *field;
}

static size_t count(const char *text, char c)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == c;
	return n;
}

static enum mu_status parse(struct mu_image_list *list, const char *path)
{
	enum mu_status st = MU_OK;
	size_t number = 1, n_labels = 0;
	const char *inexact = NULL;
	char shown[48];

	for (char *line = list->text, *end; line; line = end, number++) {
		size_t n = strcspn(line, "\n");

		end = line[n] ? line + n + 1 : NULL;
		line[n] = '\0';
		if (n && line[n - 1] == '\r')
			line[n - 1] = '\0';
		if (!*line)
			continue;
		snprintf(shown, sizeof shown, "%.40s", line);
		if (!parse_line(line, &list->line[list->n], list->labels + n_labels, &inexact))
			MU_FAIL(MU_ERR_FORMAT,
				"%s: line %zu is \"%s\"; expected a number, labels and a path, "
				"parted by tabs",
				path, number, shown);
		if (inexact)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: line %zu has label %s, and records hold labels as float32, in "
				"which it becomes %.0f: number the classes from 0 on",
				path, number, inexact, (double)strtof(inexact, NULL));
		n_labels += list->line[list->n++].n_labels;
	}
out:
	return st;
}

enum mu_status mu_image_list_read(struct mu_image_list *list, const char *path)
{
	enum mu_status st = MU_OK;
	size_t n;

	*list = (struct mu_image_list){0};
	MU_TRY(mu_file_read_text(&list->text, &n, path));
	MU_TRY(MU_ALLOC(list->line, count(list->text, '\n') + 1, path));
	MU_TRY(MU_ALLOC(list->labels, count(list->text, '\t') + 1, path));
	MU_TRY(parse(list, path));
out:
	if (st != MU_OK)
		mu_image_list_release(list);
	return st;
}

void mu_image_list_release(struct mu_image_list *list)
{
	mu_free(list->line);
	mu_free(list->text);
	mu_free(list->labels);
	*list = (struct mu_image_list){0};
}
