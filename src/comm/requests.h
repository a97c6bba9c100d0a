/* SPDX-License-Identifier: Apache-2.0 */
/* Private: arrays of MPI requests. */
#ifndef MUSTER_COMM_REQUESTS_H
#define MUSTER_COMM_REQUESTS_H

#include <muster/comm.h>

/* n requests, all MPI_REQUEST_NULL. */
enum mu_status mu_requests_new(MPI_Request **out, size_t n);
/* Frees the requests and the array; NULL is allowed. */
void mu_requests_free(MPI_Request *requests, size_t n);
/* Is the request complete or inactive? For reports: it changes nothing. */
bool mu_request_is_complete(MPI_Request request);
/* All of them; NULL is allowed. */
bool mu_requests_are_complete(const MPI_Request *requests, size_t n);

#endif
