/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of mubench run and mubench report: see sweep.h. */
#include "sweep.h"

enum mu_status sweep_command_parse(struct sweep_command *c, int argc, char **argv, bool *done)
{
	enum mu_status st = MU_OK;
	struct mu_options options = {0};
	char usage[4096];
	int n = 1;

	while (n < argc && !mu_options_is_option(argv[n]))
		n++;
	c->names = argv + 1;
	c->n_names = (size_t)n - 1;
	MU_TRY(mu_options_init(&options, c->table, c->n_options, c->values));
	MU_TRY(mu_options_parse(&options, argc - n + 1, argv + n - 1));
	snprintf(usage, sizeof usage, "usage: %s\n", c->usage);
	*done = mu_options_answer(&options, "mubench", usage);
out:
	mu_options_release(&options);
	return st;
}

int sweep_command_end(const char *name, enum mu_status st)
{
	if (st != MU_OK)
		mu_trace_report(stderr, name);
	return mu_streams_end(name, st == MU_OK ? 0 : st == MU_ERR_USAGE ? 2 : 1);
}
