/* SPDX-License-Identifier: Apache-2.0 */
/* mubench run and mubench report in a build without a JSON library. */
#include "sweep_main.h"

#include <stdio.h>

static int refuse(const char *command)
{
	fprintf(stderr,
		"mubench %s: error: this build has no jansson, which writes JSON: install it "
		"(Debian: libjansson-dev) and configure again\n",
		command);
	return 1;
}

int sweep_main_run(int argc, char **argv)
{
	(void)argc;
	return refuse(argv[0]);
}

int sweep_main_report(int argc, char **argv)
{
	(void)argc;
	return refuse(argv[0]);
}
