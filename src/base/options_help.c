/* SPDX-License-Identifier: Apache-2.0 */
/* Texts from the options table: --help, and the one-line description for the log. */
#include <muster/base.h>

#include <string.h>

enum { COLUMNS = 100, HELP_COLUMN = 30, HELP_BYTES = 2048, NAME_BYTES = 128 };

/* Print words; continue at HELP_COLUMN when a line is full. column: position of the cursor. */
static void print_wrapped(FILE *stream, const char *text, size_t column)
{
	const char *word = text;
	bool first = true;

	while (*(word += strspn(word, " "))) {
		size_t n = strcspn(word, " ");

		if (!first && column + 1 + n > COLUMNS) {
			fprintf(stream, "\n%*s", HELP_COLUMN, "");
			column = HELP_COLUMN;
		} else if (!first) {
			fputc(' ', stream);
			column++;
		}
		fwrite(word, 1, n, stream);
		column += n;
		word += n;
		first = false;
	}
	fputc('\n', stream);
}

/* Length of the METAVAR that help starts with: a word in capitals before two spaces. */
static size_t metavar_length(const struct mu_option *option)
{
	const char *end = strstr(option->help, "  ");

	return option->type != MU_OPTION_FLAG && end ? (size_t)(end - option->help) : 0;
}

void mu_option_list(const struct mu_option *option, char *text, size_t nbytes)
{
	const char *choices = option->choices ? option->choices : "";
	size_t used = 0;

	*text = '\0';
	for (size_t i = 0; i < option->n_words && used < nbytes; i++)
		if (option->words[i] && *option->words[i])
			used += (size_t)snprintf(text + used, nbytes - used, "%s%s",
						 used ? ", " : "", option->words[i]);
	for (const char *word = choices; *word && used < nbytes; word += strcspn(word, "|")) {
		word += *word == '|';
		used += (size_t)snprintf(text + used, nbytes - used, "%s%.*s", used ? ", " : "",
					 (int)strcspn(word, "|"), word);
	}
}

static void print_option(FILE *stream, const struct mu_option *option)
{
	char left[NAME_BYTES], text[HELP_BYTES], choices[HELP_BYTES / 2] = "";
	size_t metavar = metavar_length(option);
	bool show_default = option->initial && option->type != MU_OPTION_FLAG;
	int n = snprintf(left, sizeof left, "  --%s%s%.*s", option->name, metavar ? " " : "",
			 (int)metavar, option->help);

	mu_option_list(option, choices, sizeof choices);
	snprintf(text, sizeof text, "%s%s%s%s%s%s", option->help + metavar, *choices ? ": " : "",
		 choices,
		 show_default ? " (default " : "", show_default ? option->initial : "",
		 show_default ? ")" : "");
	if (n < HELP_COLUMN - 1)
		fprintf(stream, "%-*s", HELP_COLUMN, left);
	else /* no space beside a long name */
		fprintf(stream, "%s\n%*s", left, HELP_COLUMN, "");
	print_wrapped(stream, text, HELP_COLUMN);
}

/* Is an option of this group shown before number i? */
static bool group_done(const struct mu_options *o, size_t i, bool all)
{
	for (size_t j = 0; j < i; j++) {
		if ((all || !o->table[j].advanced) &&
		    strcmp(o->table[j].group, o->table[i].group) == 0)
			return true;
	}
	return false;
}

void mu_options_help(const struct mu_options *o, FILE *stream, bool all)
{
	bool first = true;

	for (size_t i = 0; i < o->n; i++) {
		const char *group = o->table[i].group;

		if ((!all && o->table[i].advanced) || group_done(o, i, all))
			continue;
		fprintf(stream, "%s%s:\n", first ? "" : "\n", group);
		first = false;
		for (size_t j = i; j < o->n; j++) {
			if ((all || !o->table[j].advanced) && strcmp(o->table[j].group, group) == 0)
				print_option(stream, &o->table[j]);
		}
	}
}

const char *mu_option_text(const struct mu_options *o, const struct mu_option *option, int digits,
			   char *text, size_t nbytes)
{
	const void *value = (const char *)o->values + option->offset;
	const char *word;

	switch (option->type) {
	case MU_OPTION_FLAG: return *(const bool *)value ? "true" : "false";
	case MU_OPTION_INT: snprintf(text, nbytes, "%ld", *(const long *)value); return text;
	case MU_OPTION_REAL:
		snprintf(text, nbytes, "%.*g", digits, *(const double *)value);
		return text;
	case MU_OPTION_STRING:
		return *(const char *const *)value ? *(const char *const *)value : "none";
	case MU_OPTION_WORD:
		word = option->words[*(const int *)value];
		return word ? word : "none";
	}
	return "";
}

void mu_options_describe(const struct mu_options *o, char *text, size_t nbytes)
{
	size_t used = 0;

	if (nbytes > 0)
		*text = '\0';
	for (size_t i = 0; i < o->n && used < nbytes; i++) {
		char name[NAME_BYTES], number[32];
		const char *value = mu_option_text(o, &o->table[i], 10, number, sizeof number);

		snprintf(name, sizeof name, "%s", o->table[i].name);
		for (char *c = name; *c; c++) {
			if (*c == '-')
				*c = '_';
		}
		used += (size_t)snprintf(text + used, nbytes - used, "%s%s=%s", i ? ", " : "", name,
					 value);
	}
}
