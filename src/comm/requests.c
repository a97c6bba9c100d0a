/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of MPI requests. See requests.h. */
#include "requests.h"

enum mu_status mu_requests_new(MPI_Request **out, size_t n)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_alloc((void **)out, (n + 1) * sizeof **out, "requests"));
	for (size_t i = 0; i < n; i++)
		(*out)[i] = MPI_REQUEST_NULL;
out:
	return st;
}

void mu_requests_free(MPI_Request *requests, size_t n)
{
	for (size_t i = 0; requests && i < n; i++) {
		if (requests[i] != MPI_REQUEST_NULL)
			MPI_Request_free(&requests[i]);
	}
	mu_free(requests);
}

bool mu_request_is_complete(MPI_Request request)
{
	int done = 0;

	return MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done;
}

bool mu_requests_are_complete(const MPI_Request *requests, size_t n)
{
	for (size_t i = 0; requests && i < n; i++)
		if (!mu_request_is_complete(requests[i]))
			return false;
	return true;
}
