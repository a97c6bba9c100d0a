/* SPDX-License-Identifier: Apache-2.0 */
/* How far a long work is: see progress.h. */
#include "progress.h"

#include <unistd.h>

void data_progress_begin(struct data_progress *p, const char *tool)
{
	double now = mu_now();

	*p = (struct data_progress){tool, now, now, isatty(STDERR_FILENO) == 1};
}

void data_progress_tell(struct data_progress *p, size_t n, double done)
{
	double now = mu_now(), seconds = now - p->start;

	if (now - p->last < (p->terminal ? 0.2 : 5) || done <= 0)
		return;
	p->last = now;
	fprintf(stderr, "%s%s: %zu image%s, %.0f images/s, %.0f %% done, %.0f s left%s",
		p->terminal ? "\r" : "", p->tool, n, MU_S(n), (double)n / seconds, 100 * done,
		seconds * (1 - done) / done, p->terminal ? "    " : "\n");
}

void data_progress_end(const struct data_progress *p)
{
	if (p->terminal && p->last > p->start)
		fprintf(stderr, "\r%72s\r", "");
}
