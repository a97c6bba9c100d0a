/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a command line that are not options: im2rec PREFIX ROOT --resize 256. */
#ifndef MUSTER_DATA_ARGUMENTS_H
#define MUSTER_DATA_ARGUMENTS_H

#include "interrupt.h"

/* What main of a tool gives and gets. */
struct data_command {
	const char *tool;
	const struct mu_option *table;
	size_t n_options;
	void *values;       /* the struct that the table's offsets point into */
	const char *usage;  /* "PREFIX ROOT": words that there must be; then, after an empty line, a
			      text for --help */
	size_t n_words;     /* of them; out: how many there are */
	bool many;          /* there may be more words */
	const char **words; /* out; freed by data_command_end */
	struct data_interrupt *interrupt; /* out of data_command_watch */
};

/*
 * Options into values, the other words into words. *done: --help was given and printed. Errors:
 * MU_ERR_USAGE. The table's last line is --help.
 */
enum mu_status data_command_parse(struct data_command *command, int argc, char **argv, bool *done);
/* Signals shall leave nothing unfinished beside this path: data_interrupt_watch. */
enum mu_status data_command_watch(struct data_command *command, const char *output);
/* The exit status for st, after printing the trace if it is an error. */
int data_command_end(struct data_command *command, enum mu_status st);

#endif
