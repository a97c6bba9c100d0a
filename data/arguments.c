/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a tool: see arguments.h. */
#include "arguments.h"

#include <string.h>

/* Has this option a value in the next word? An unknown one is left to mu_options_parse. */
static bool takes_value(const struct data_command *command, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i < command->n_options; i++) {
		const struct mu_option *o = &command->table[i];
		bool same = strlen(o->name) >= n;

		for (size_t j = 0; same && j < n; j++)
			same = o->name[j] == (word[j] == '_' ? '-' : word[j]);
		if (same)
			return o->type != MU_OPTION_FLAG;
	}
	return false;
}

/* The words go to command, the rest to options[0..*n); the first word too many, NULL if there is
 * none. */
static const char *split(struct data_command *command, int argc, char **argv, char **options,
			 int *n)
{
	const char *excess = NULL;
	size_t words = 0;

	for (int i = 0; i < argc; i++) {
		const char *word = argv[i];
		bool option = i == 0 || strncmp(word, "--", 2) == 0;

		if (!option && words < command->n_words)
			command->words[words++] = word;
		else if (!option && !excess)
			excess = word;
		if (!option)
			continue;
		options[(*n)++] = argv[i];
		if (i > 0 && !strchr(word, '=') && takes_value(command, word + 2) && i + 1 < argc)
			options[(*n)++] = argv[++i];
	}
	return excess;
}

static void print_help(const struct data_command *command, const struct mu_options *options)
{
	size_t n = strcspn(command->usage, "\n");

	printf("usage: %s %.*s [options]\n%s\n", command->tool, (int)n, command->usage,
	       command->usage + n + (command->usage[n] != '\0'));
	mu_options_help(options, stdout, true);
}

enum mu_status data_command_parse(struct data_command *command, int argc, char **argv, bool *done)
{
	enum mu_status st = MU_OK;
	struct mu_options options = {0};
	char **list = NULL;
	const char *excess;
	int n = 0;

	MU_TRY(mu_options_init(&options, command->table, command->n_options, command->values));
	MU_TRY(MU_ALLOC(list, (size_t)argc + 1, "options"));
	excess = split(command, argc, argv, list, &n);
	MU_TRY(mu_options_parse(&options, n, list)); /* first: the excess may be the value of an
							unknown option */
	*done = mu_options_given(&options, "help");
	if (!*done && excess)
		MU_FAIL(MU_ERR_USAGE, "\"%s\" is one word too many; expected %.*s", excess,
			(int)strcspn(command->usage, "\n"), command->usage);
	if (*done)
		print_help(command, &options);
	for (size_t i = 0; !*done && i < command->n_words; i++)
		if (!command->words[i] || !*command->words[i])
			MU_FAIL(MU_ERR_USAGE, "expected %.*s (see --help)",
				(int)strcspn(command->usage, "\n"), command->usage);
out:
	mu_options_release(&options);
	mu_free(list);
	return st;
}

int data_command_end(const struct data_command *command, enum mu_status st)
{
	if (st != MU_OK)
		mu_trace_print(stderr, command->tool);
	return st == MU_OK ? 0 : st == MU_ERR_USAGE ? 2 : 1;
}
