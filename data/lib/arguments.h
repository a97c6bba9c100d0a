/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a command line that are not options: im2rec PREFIX ROOT --resize 256. */
#ifndef MUSTER_DATA_ARGUMENTS_H
#define MUSTER_DATA_ARGUMENTS_H

#include "interrupt.h"

/* Input and output of data_command_parse. */
struct data_command {
	const char *tool;
	const struct mu_option *table;
	size_t n_options;
	const struct mu_option_rules *rules; /* about several options; or NULL */
	const struct mu_option_rules *voids; /* options without effect, which are told; or NULL */
	void *values;       /* the struct that the table's offsets point into */
	const char *usage;  /* "PREFIX ROOT": required words; then, after an empty line, a text for
			       --help */
	size_t n_words;     /* number of required words; out: number of words */
	bool many;          /* more words are allowed */
	const char *noted;  /* name of an option, or NULL */
	bool is_noted;      /* out: it was given */
	const char **words; /* out; freed by data_command_end */
	struct data_interrupt *interrupt; /* out of data_command_watch */
};

/* Store options in values and other words in words. *done: --help was given and printed. Errors:
 * MU_ERR_USAGE. The last line of the table is --help. */
enum mu_status data_command_parse(struct data_command *command, int argc, char **argv, bool *done);
/* On a signal, remove temporary files beside this path: see data_interrupt_watch. */
enum mu_status data_command_watch(struct data_command *command, const char *output);
/* Print the trace if st is an error; returns the exit status. */
int data_command_end(struct data_command *command, enum mu_status st);

#endif
