/* SPDX-License-Identifier: Apache-2.0 */
/* Progress lines of a long job: on a terminal one line that is updated, else one line every 5 s. */
#ifndef MUSTER_DATA_PROGRESS_H
#define MUSTER_DATA_PROGRESS_H

#include <muster/base.h>

struct data_progress {
	const char *tool;
	double start, last; /* mu_now */
	bool terminal;
};

void data_progress_begin(struct data_progress *p, const char *tool);
/* Report n images; done: fraction of the work, 0 to 1. */
void data_progress_tell(struct data_progress *p, size_t n, double done);
/* Remove the line from the terminal. */
void data_progress_end(const struct data_progress *p);

#endif
