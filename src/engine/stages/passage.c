/* SPDX-License-Identifier: Apache-2.0 */
/* Messages across a border between ranks: see parallel.h. */
#include <muster/parallel.h>

#include "comm/icollective.h"

/* Bytes of one MPI message; longer ones are split. */
#define PIECE (MU_MESSAGE_MAX * sizeof(float))

struct mu_passage {
	bool sends;
	size_t n_micro, n_kinds;
	size_t *nbytes;        /* by kind */
	size_t stride, pieces; /* of a micro-batch: bytes of its buffer, requests of a kind */
	char *buffer;
	MPI_Request *requests; /* pieces of them for each kind and micro-batch */
	const size_t *kinds;   /* of the step's micro-batches */
	size_t begun, passed;
};

static size_t pieces_of(size_t nbytes)
{
	return (nbytes + PIECE - 1) / PIECE;
}

static MPI_Request *requests_of(const struct mu_passage *p, size_t kind, size_t micro)
{
	return p->requests + (kind * p->n_micro + micro) * p->pieces;
}

static enum mu_status make_request(struct mu_passage *p, const struct mu_passage_config *c,
				   size_t kind, size_t micro, size_t piece)
{
	enum mu_status st = MU_OK;
	const size_t at = piece * PIECE, left = p->nbytes[kind] - at;
	char *data = p->buffer + micro * p->stride + at;
	const int n = mu_count(left < PIECE ? left : PIECE);
	MPI_Request *request = requests_of(p, kind, micro) + piece;
	int peer = c->peer, tag = c->tag;
	MPI_Comm comm;

	MU_TRY(mu_comm_address(c->comm, &comm, &peer, &tag));
	if (p->sends)
		MU_MPI(MPI_Send_init(data, n, MPI_BYTE, peer, tag, comm, request));
	else
		MU_MPI(MPI_Recv_init(data, n, MPI_BYTE, peer, tag, comm, request));
out:
	return st;
}

static enum mu_status make_requests(struct mu_passage *p, const struct mu_passage_config *c)
{
	enum mu_status st = MU_OK;
	const size_t n = p->n_kinds * p->n_micro * p->pieces;

	MU_TRY(MU_ALLOC(p->requests, n, "messages of a border"));
	for (size_t i = 0; i < n; i++)
		p->requests[i] = MPI_REQUEST_NULL;
	for (size_t kind = 0; kind < p->n_kinds; kind++)
		for (size_t micro = 0; micro < p->n_micro; micro++)
			for (size_t i = 0; i < pieces_of(p->nbytes[kind]); i++)
				MU_TRY(make_request(p, c, kind, micro, i));
out:
	return st;
}

enum mu_status mu_passage_new(struct mu_passage **out, const struct mu_passage_config *config)
{
	enum mu_status st = MU_OK;
	struct mu_passage *p = NULL;

	*out = NULL;
	MU_TRY(MU_ALLOC(p, 1, "border"));
	p->sends = config->sends;
	p->n_micro = config->n_micro;
	p->n_kinds = config->n_kinds;
	MU_TRY(MU_ALLOC(p->nbytes, p->n_kinds, "border"));
	for (size_t kind = 0; kind < p->n_kinds; kind++) {
		p->nbytes[kind] = config->nbytes[kind];
		if (p->stride < p->nbytes[kind])
			p->stride = p->nbytes[kind];
	}
	p->pieces = pieces_of(p->stride);
	MU_TRY(MU_ALLOC(p->buffer, p->n_micro * p->stride, "messages of a border"));
	MU_TRY(make_requests(p, config));
	*out = p;
	p = NULL;
out:
	mu_passage_free(p);
	return st;
}

void mu_passage_free(struct mu_passage *p)
{
	if (!p)
		return;
	for (size_t i = 0; p->requests && i < p->n_kinds * p->n_micro * p->pieces; i++)
		if (p->requests[i] != MPI_REQUEST_NULL)
			MPI_Request_free(&p->requests[i]);
	mu_free(p->requests);
	if (p->passed == p->begun) /* else a message of a failed job may still arrive */
		mu_free(p->buffer);
	mu_free(p->nbytes);
	mu_free(p);
}

/* Start the messages of the next micro-batch. */
static enum mu_status start(struct mu_passage *p)
{
	enum mu_status st = MU_OK;
	const size_t kind = p->kinds[p->begun];
	const size_t n = pieces_of(p->nbytes[kind]);

	if (n > 0)
		MU_MPI(MPI_Startall(mu_count(n), requests_of(p, kind, p->begun)));
	p->begun++;
out:
	return st;
}

enum mu_status mu_passage_begin(struct mu_passage *p, const size_t *kinds, size_t n)
{
	enum mu_status st = MU_OK;

	p->kinds = kinds;
	p->begun = p->passed = 0;
	while (!p->sends && p->begun < n)
		MU_TRY(start(p));
out:
	return st;
}

void *mu_passage_buffer(const struct mu_passage *p, size_t micro)
{
	return p->buffer + micro * p->stride;
}

enum mu_status mu_passage_send(struct mu_passage *p)
{
	return start(p);
}

enum mu_status mu_passage_test(struct mu_passage *p, size_t *passed)
{
	enum mu_status st = MU_OK;
	int done = 1;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */

	while (p->passed < p->begun) {
		const size_t kind = p->kinds[p->passed];

		MU_MPI(MPI_Testall(mu_count(pieces_of(p->nbytes[kind])),
				   requests_of(p, kind, p->passed), &done, ignore));
		if (!done)
			break;
		p->passed++;
	}
	*passed = p->passed;
out:
	return st;
}
