/* SPDX-License-Identifier: Apache-2.0 */
/* JSON (RFC 8259), written sequentially. */
#include <muster/base.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

static void put_text(FILE *file, const char *text)
{
	const char *p = text, *const end = text + strlen(text);
	uint32_t code;

	fputc('"', file);
	while (*p) {
		const size_t n = mu_utf8_read(p, (size_t)(end - p), &code);

		if (n == 0)
			fputs("\\ufffd", file); /* a path may contain any bytes */
		else if (*p == '"' || *p == '\\')
			fprintf(file, "\\%c", *p);
		else if (code < 0x20)
			fprintf(file, "\\u%04x", (unsigned)code);
		else
			fwrite(p, 1, n, file);
		p += n > 0 ? n : 1;
	}
	fputc('"', file);
}

/* Does the open bracket share one line? */
static bool is_flat(const struct mu_json *j)
{
	return j->flat > 0 && j->depth >= j->flat;
}

static void begin_value(struct mu_json *j, const char *name)
{
	if (j->depth > 0 && is_flat(j))
		fputs(j->more ? ", " : "", j->file);
	else if (j->depth > 0)
		fprintf(j->file, "%s\n%*s", j->more ? "," : "", 2 * j->depth, "");
	j->more = true;
	if (!name)
		return;
	put_text(j->file, name);
	fputs(": ", j->file);
}

void mu_json_open(struct mu_json *j, const char *name, char bracket)
{
	begin_value(j, name);
	fputc(bracket, j->file);
	j->depth++;
	j->more = false;
}

void mu_json_close(struct mu_json *j, char bracket)
{
	bool flat = is_flat(j);

	j->depth--;
	if (j->more && !flat)
		fprintf(j->file, "\n%*s", 2 * j->depth, "");
	fputc(bracket, j->file);
	if (j->depth == 0)
		fputc('\n', j->file);
	j->more = true;
}

void mu_json_text(struct mu_json *j, const char *name, const char *value)
{
	begin_value(j, name);
	if (value)
		put_text(j->file, value);
	else
		fputs("null", j->file);
}

void mu_json_number(struct mu_json *j, const char *name, double value)
{
	char text[32];

	begin_value(j, name);
	snprintf(text, sizeof text, "%.15g", value);
	for (int digits = 16; digits <= 17 && strtod(text, NULL) != value; digits++)
		snprintf(text, sizeof text, "%.*g", digits, value);
	fputs(isfinite(value) ? text : "null", j->file);
}

void mu_json_bool(struct mu_json *j, const char *name, bool value)
{
	begin_value(j, name);
	fputs(value ? "true" : "false", j->file);
}
