/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: the log of connections and messages (enum mu_verbose, PS_VERBOSE) that both kinds of
 * store write. While it is off a message costs the test of a flag.
 */
#ifndef MUSTER_COMM_TRAFFIC_H
#define MUSTER_COMM_TRAFFIC_H

#include <muster/comm.h>

struct mu_traffic {
	const struct mu_members *members;
	enum mu_verbose verbose;
	double opened; /* lines give the time since then */
};

/* verbose counts on rank 0; ENVIRONMENT: PS_VERBOSE there. Collective over comm, whose ranks are
 * those of m->comm. */
enum mu_status mu_traffic_open(struct mu_traffic *traffic, const struct mu_members *m,
			       MPI_Comm comm, enum mu_verbose verbose);

static inline bool mu_traffic_connections(const struct mu_traffic *traffic)
{
	return traffic->verbose >= MU_VERBOSE_CONNECTIONS;
}

static inline bool mu_traffic_messages(const struct mu_traffic *traffic)
{
	return traffic->verbose >= MU_VERBOSE_MESSAGES;
}

enum mu_traffic_direction { MU_TRAFFIC_OUT, MU_TRAFFIC_IN };

/* One line: a message to or from a rank. seconds: how long it took; below 0: not known. */
void mu_traffic_write(const struct mu_traffic *traffic, enum mu_traffic_direction direction,
		      int rank, size_t nbytes, double seconds, const char *what, ...)
	__attribute__((format(printf, 6, 7)));

#endif
