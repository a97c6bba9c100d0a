/* SPDX-License-Identifier: Apache-2.0 */
/* The log of messages. See traffic.h. */
#include "traffic.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PS_VERBOSE is MXNet's name for it. */
static enum mu_verbose from_environment(void)
{
	const char *text = getenv("PS_VERBOSE");

	if (!text || !*text)
		return MU_VERBOSE_NO;
	if (strlen(text) > 1 || *text < '0' || *text > '2') {
		mu_log_warn("PS_VERBOSE=%s is not 0, 1 or 2: it has no effect", text);
		return MU_VERBOSE_NO;
	}
	mu_log_info("PS_VERBOSE=%s: the log has connections%s", text,
		    *text == '2' ? " and every message" : "");
	return (enum mu_verbose)(MU_VERBOSE_NO + (*text - '0'));
}

enum mu_status mu_traffic_open(struct mu_traffic *traffic, const struct mu_members *m,
			       MPI_Comm comm, enum mu_verbose verbose)
{
	enum mu_status st = MU_OK;

	traffic->members = m;
	traffic->opened = mu_now();
	traffic->verbose = verbose;
	if (verbose == MU_VERBOSE_ENVIRONMENT && m->rank == 0)
		traffic->verbose = from_environment();
	MU_TRY(mu_bcast(&traffic->verbose, sizeof traffic->verbose, 0, comm));
out:
	return st;
}

void mu_traffic_write(const struct mu_traffic *traffic, enum mu_traffic_direction direction,
		      int rank, size_t nbytes, double seconds, const char *what, ...)
{
	const struct mu_members *m = traffic->members;
	char text[128], other[128], took[48] = "";
	va_list args;

	va_start(args, what);
	vsnprintf(text, sizeof text, what, args);
	va_end(args);
	if (seconds >= 0)
		snprintf(took, sizeof took, ", %.6f s", seconds);
	mu_members_name(m, rank, other, sizeof other);
	mu_log_info("%.6f s: %s %d %s %s: %s, %zu bytes%s", mu_now() - traffic->opened,
		    mu_role_name(m->role), m->index, direction == MU_TRAFFIC_OUT ? "to" : "from",
		    other, text, nbytes, took);
}
