/* SPDX-License-Identifier: Apache-2.0 */
/* Texts from the options table: --help, and the one-line description for the log. */
#include "options.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "config.h"

enum { LEAST_COLUMNS = 60, COLUMNS = 100, MOST_COLUMNS = 120 };
enum { HELP_COLUMN = 30, NARROW_HELP_COLUMN = 24, HELP_BYTES = 2048, NAME_BYTES = 128 };

/* Where texts go: their columns, and the first column of a text beside a name. */
struct page {
	FILE *stream;
	size_t columns, help_column;
};

size_t mu_columns(FILE *stream)
{
	const int fd = fileno(stream);
	const char *set = getenv("COLUMNS"), *behind = getenv("MUSTER_COLUMNS");
	struct winsize size = {.ws_col = 0};
	long n = set ? strtol(set, NULL, 10) : 0;

	if (fd < 0 || !isatty(fd)) /* the command muster writes to the terminal behind a pipe */
		n = behind ? strtol(behind, NULL, 10) : COLUMNS;
	else if (n <= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0)
		n = size.ws_col;
	if (n <= 0)
		return COLUMNS;
	return n < LEAST_COLUMNS ? LEAST_COLUMNS : n > MOST_COLUMNS ? MOST_COLUMNS : (size_t)n;
}

/* Print words; continue at the help column when a line is full. The cursor is there. */
static void print_wrapped(const struct page *page, const char *text)
{
	FILE *stream = page->stream;
	size_t column = page->help_column;
	const char *word = text;
	bool first = true;

	while (*(word += strspn(word, " "))) {
		size_t n = strcspn(word, " ");

		if (!first && column + 1 + n > page->columns) {
			fprintf(stream, "\n%*s", (int)page->help_column, "");
			column = page->help_column;
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

const char *mu_option_choices(const struct mu_option *option)
{
	return option->list_choices ? option->list_choices() : option->choices;
}

void mu_option_list(const struct mu_option *option, char *text, size_t nbytes)
{
	const char *choices = mu_option_choices(option);
	size_t used = 0;

	*text = '\0';
	for (size_t i = 0; i < option->n_words && used < nbytes; i++)
		if (option->words[i] && *option->words[i])
			used += (size_t)snprintf(text + used, nbytes - used, "%s%s",
						 used ? ", " : "", option->words[i]);
	for (const char *word = choices; word && *word && used < nbytes;
	     word += strcspn(word, "|")) {
		word += *word == '|';
		used += (size_t)snprintf(text + used, nbytes - used, "%s%.*s", used ? ", " : "",
					 (int)strcspn(word, "|"), word);
	}
}

/* Print what is behind the text: " (default 64)"; of a switch that is on, how to put it off. */
static void describe_default(const struct mu_option *option, char *text, size_t nbytes)
{
	const char *initial = option->initial;

	*text = '\0';
	if (option->toggle && initial && strcmp(initial, "1") == 0)
		snprintf(text, nbytes, " (on; off by --no-%s)", option->name);
	else if (!option->toggle && option->type != MU_OPTION_FLAG && initial)
		snprintf(text, nbytes, " (default %s)",
			 option->automatic ? "auto" : initial);
}

static void print_option(const struct page *page, const struct mu_option *option)
{
	char left[NAME_BYTES], text[HELP_BYTES], choices[HELP_BYTES / 2] = "", initial[NAME_BYTES];
	size_t metavar = metavar_length(option);
	const char letter[] = {'-', option->letter, ',', ' ', '\0'};
	int n = snprintf(left, sizeof left, "  %s--%s%s%.*s", option->letter ? letter : "",
			 option->name, metavar ? " " : "", (int)metavar, option->help);

	if (!memchr(option->help, '|', metavar)) /* else they are there already */
		mu_option_list(option, choices, sizeof choices);
	describe_default(option, initial, sizeof initial);
	snprintf(text, sizeof text, "%s%s%s%s", option->help + metavar, *choices ? ": " : "",
		 choices, initial);
	if ((size_t)n + 1 < page->help_column)
		fprintf(page->stream, "%-*s", (int)page->help_column, left);
	else /* no space beside a long name */
		fprintf(page->stream, "%s\n%*s", left, (int)page->help_column, "");
	print_wrapped(page, text);
}

/* The pages of --help: 0; of --help-all: 0 and 1, then 2; of none: -1. */
static int page_of(const struct mu_option *option)
{
	return option->now ? -1 : option->expert ? 2 : option->advanced ? 1 : 0;
}

static bool is_shown(const struct mu_option *option, int least, int most)
{
	return page_of(option) >= least && page_of(option) <= most;
}

/* Is an option of this group shown before number i? */
static bool group_done(const struct mu_options *o, size_t i, int least, int most)
{
	for (size_t j = 0; j < i; j++)
		if (is_shown(&o->table[j], least, most) &&
		    strcmp(o->table[j].group, o->table[i].group) == 0)
			return true;
	return false;
}

/* The index of the option; n: there is none. */
static size_t find_name(const struct mu_options *o, const char *name)
{
	size_t i = 0;

	while (i < o->n && strcmp(o->table[i].name, name) != 0)
		i++;
	return i;
}

static void print_group(const struct mu_options *o, const struct page *page, const char *group,
			int least, int most)
{
	static const struct mu_option version = {
		.name = "version", .type = MU_OPTION_FLAG, .help = "print the version"};
	const size_t help = find_name(o, "version") == o->n ? find_name(o, "help") : o->n;

	fprintf(page->stream, "%s:\n", group);
	for (size_t i = 0; i < o->n; i++) {
		const struct mu_option *option = &o->table[i];

		if (!is_shown(option, least, most) || strcmp(option->group, group) != 0)
			continue;
		print_option(page, option);
		if (i == help)
			print_option(page, &version);
	}
}

void mu_options_help(const struct mu_options *o, FILE *stream, bool all)
{
	struct page page = {.stream = stream, .columns = mu_columns(stream)};
	const char *gap = "";

	page.help_column = page.columns < COLUMNS ? NARROW_HELP_COLUMN : HELP_COLUMN;
	for (int expert = 0; expert <= all; expert++) {
		const int least = expert ? 2 : 0, most = expert ? 2 : all;

		for (size_t i = 0; i < o->n; i++) {
			const struct mu_option *option = &o->table[i];

			if (!is_shown(option, least, most) || group_done(o, i, least, most))
				continue;
			fprintf(stream, "%s", gap);
			gap = "\n";
			print_group(o, &page, option->group, least, most);
		}
	}
}

bool mu_options_answer(const struct mu_options *o, const char *program, const char *usage)
{
	const size_t i = find_name(o, "help");
	const bool help = i < o->n && o->given[i];

	if (help) {
		printf("%s", usage);
		mu_options_help(o, stdout, true);
	} else if (o->version) {
		printf("%s (Muster) %s\n", program, PACKAGE_VERSION);
	}
	return help || o->version;
}

const char *mu_option_unset(const struct mu_options *o, const struct mu_option *option)
{
	const void *value = (const char *)o->values + option->offset;
	const double initial = option->initial ? strtod(option->initial, NULL) : 0;
	double number;

	if (o->given[option - o->table] ||
	    (option->type != MU_OPTION_INT && option->type != MU_OPTION_REAL))
		return NULL;
	number = option->type == MU_OPTION_INT ? (double)*(const long *)value
					       : *(const double *)value;
	if (number != initial || (option->initial && !option->automatic))
		return NULL;
	return option->automatic ? "auto" : "none";
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
		if (digits == 0)
			return mu_real_text(*(const double *)value, text, nbytes);
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

void mu_option_now(const struct mu_option *option, const char *value, char *text, size_t nbytes)
{
	size_t n = 0;

	*text = '\0';
	for (const char *p = option->now; *p && n < nbytes; p++)
		n += (size_t)snprintf(text + n, nbytes - n, "%.*s", *p == '*' ? NAME_BYTES : 1,
				      *p == '*' ? value : p);
}

bool mu_options_note(const struct mu_options *o, size_t i, char *text, size_t nbytes)
{
	const struct mu_option *option = &o->table[i];
	char number[32], now[HELP_BYTES / 2];
	const char *value = mu_option_text(o, option, 10, number, sizeof number);

	if (!o->given[i] || !option->now || option->silent)
		return false;
	mu_option_now(option, value, now, sizeof now);
	snprintf(text, nbytes, "--%s %.*s is now %s", option->name, NAME_BYTES, value, now);
	return true;
}

void mu_options_describe(const struct mu_options *o, char *text, size_t nbytes)
{
	size_t used = 0;

	if (nbytes > 0)
		*text = '\0';
	for (size_t i = 0; i < o->n && used < nbytes; i++) {
		char name[NAME_BYTES], number[32];
		const char *value = mu_option_unset(o, &o->table[i]);

		if (!value)
			value = mu_option_text(o, &o->table[i], 0, number, sizeof number);
		snprintf(name, sizeof name, "%s", o->table[i].name);
		for (char *c = name; *c; c++) {
			if (*c == '-')
				*c = '_';
		}
		used += (size_t)snprintf(text + used, nbytes - used, "%s%s=%s", i ? ", " : "", name,
					 value);
	}
}
