/* SPDX-License-Identifier: Apache-2.0 */
/* Lines about how far a long work is: on a terminal one that changes, else one every 5 s. */
#ifndef MUSTER_DATA_PROGRESS_H
#define MUSTER_DATA_PROGRESS_H

#include <muster/base.h>

struct data_progress {
	const char *tool;
	double start, last; /* mu_now */
	bool terminal;
};

void data_progress_begin(struct data_progress *p, const char *tool);
/* n images; done: the share of the work, from 0 to 1. */
void data_progress_tell(struct data_progress *p, size_t n, double done);
/* Remove the line from the terminal. */
void data_progress_end(const struct data_progress *p);

#endif
