/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a tool: see arguments.h. */
#include "arguments.h"

#include <string.h>

/* The words go to command->words[0..*n_words), the rest to list[0..*n). */
static void split(struct data_command *command, const struct mu_options *options, char **argv,
		  size_t *n_words, char **list, int *n)
{
	*n_words = 0;
	list[(*n)++] = *argv++;
	for (; *argv; argv++) {
		if (!mu_options_is_option(*argv)) {
			command->words[(*n_words)++] = *argv;
			continue;
		}
		list[(*n)++] = *argv;
		if (mu_options_takes(options, *argv, argv[1]))
			list[(*n)++] = *++argv;
	}
}

/* Check the number of words; none may be empty. */
static enum mu_status check_words(const struct data_command *command, size_t n)
{
	enum mu_status st = MU_OK;
	int shown = (int)strcspn(command->usage, "\n");
	bool good = n >= command->n_words;

	if (n > command->n_words && !command->many)
		MU_FAIL(MU_ERR_USAGE, "\"%s\" is one word too many; expected %.*s",
			command->words[command->n_words], shown, command->usage);
	for (size_t i = 0; i < n; i++)
		good &= *command->words[i] != '\0';
	if (!good)
		MU_FAIL(MU_ERR_USAGE, "expected %.*s (see --help)", shown, command->usage);
out:
	return st;
}

static bool answer(const struct data_command *command, const struct mu_options *options)
{
	const int n = (int)strcspn(command->usage, "\n");
	const char *more = command->usage + n;
	char usage[4096];

	snprintf(usage, sizeof usage, "usage: %s %.*s [options]\n%s\n", command->tool, n,
		 command->usage, more + (*more != '\0'));
	return mu_options_answer(options, command->tool, usage);
}

/* A line for each row that applies. */
static void tell_void(const struct data_command *command, const struct mu_options *options)
{
	const struct mu_option_rules *r = command->voids;
	char line[512];

	for (size_t i = 0; r && i < r->n; i++)
		if (mu_option_rule_void(options, r, &r->of[i], line, sizeof line))
			fprintf(stderr, "%s: warning: %s\n", command->tool, line);
}

enum mu_status data_command_parse(struct data_command *command, int argc, char **argv, bool *done)
{
	enum mu_status st = MU_OK;
	struct mu_options options = {0};
	char **list = NULL;
	size_t n_words;
	int n = 0;

	mu_streams_begin();
	MU_TRY(mu_options_init(&options, command->table, command->n_options, command->values));
	MU_TRY(MU_ALLOC(list, (size_t)argc + 1, "options"));
	MU_TRY(MU_ALLOC(command->words, (size_t)argc + 1, "words"));
	split(command, &options, argv, &n_words, list, &n);
	MU_TRY(mu_options_parse(&options, n, list)); /* first, because an extra word may be the
							value of an unknown option */
	command->is_noted = command->noted && mu_options_given(&options, command->noted);
	*done = answer(command, &options);
	if (!*done && command->rules)
		MU_TRY(mu_option_rules_check(&options, command->rules));
	if (!*done)
		MU_TRY(check_words(command, n_words));
	if (!*done)
		tell_void(command, &options);
	command->n_words = n_words;
out:
	mu_options_release(&options);
	mu_free(list);
	return st;
}

enum mu_status data_command_watch(struct data_command *command, const char *output)
{
	return data_interrupt_watch(&command->interrupt, command->tool, output);
}

int data_command_end(struct data_command *command, enum mu_status st)
{
	data_interrupt_check(command->interrupt);
	mu_free(command->words);
	if (st != MU_OK)
		mu_trace_report(stderr, command->tool);
	return mu_streams_end(command->tool, st == MU_OK ? 0 : st == MU_ERR_USAGE ? 2 : 1);
}
