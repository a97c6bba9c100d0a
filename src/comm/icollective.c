/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Non-blocking collectives, of a subset as messages: a generalized request, and a state machine
 * that posts the messages of its next round when those of the last one are complete. See
 * icollective.h.
 */
#include "icollective.h"

#include <string.h>

#include "requests.h"

#define PIECE_BYTES ((size_t)1 << 30)

/* Of a collective, and of the next one that takes it over. */
struct memory {
	MPI_Request *parts; /* messages of a round */
	char *room;         /* for blocks or values of others; or NULL */
	size_t most_parts, room_bytes;
};

struct move {
	struct mu_subset *subset;
	int (*round)(struct move *); /* posts messages, or sets done; a code of MPI's */
	bool done;
	int error; /* of MPI */
	MPI_Request request;
	size_t n; /* messages of the round */
	int tag, rank, size;
	int step; /* rounds begun so far */
	struct move *after;
	/* What the caller gave. */
	const void *mine;
	char *all;
	size_t nbytes;
	int root;
	MPI_Datatype type;
	MPI_Op op;
	int count;
	struct memory memory;
};

/* Memory for so much is kept for the subset's next collective: most need no more. */
enum { KEPT_ROOM = 1 << 16, KEPT_PARTS = 1 << 12 };

/* In the order of their begins. Only a thread that may call MPI gets here. */
static struct move *moves;

/* ---- messages ---- */

static int post(struct move *m, bool sends, char *data, size_t nbytes, int rank)
{
	const int other = m->subset->ranks[rank];
	const MPI_Comm comm = mu_subset_comm(m->subset);
	int error = MPI_SUCCESS;

	do {
		const size_t piece = nbytes < PIECE_BYTES ? nbytes : PIECE_BYTES;
		MPI_Request *request = &m->memory.parts[m->n++];

		error = sends ? MPI_Isend(data, (int)piece, MPI_BYTE, other, m->tag, comm, request)
			      : MPI_Irecv(data, (int)piece, MPI_BYTE, other, m->tag, comm, request);
		data = data ? data + piece : NULL;
		nbytes -= piece;
	} while (error == MPI_SUCCESS && nbytes > 0);
	return error;
}

static int exchange(struct move *m, char *out, int to, char *in, int from, size_t nbytes)
{
	const int error = post(m, false, in, nbytes, from);

	return error == MPI_SUCCESS ? post(m, true, out, nbytes, to) : error;
}

/* ---- the collectives ---- */

static int barrier_round(struct move *m)
{
	const long far = 1L << m->step;

	m->done = far >= m->size;
	return m->done ? MPI_SUCCESS
		       : exchange(m, NULL, (int)((m->rank + far) % m->size), NULL,
				  (int)((m->rank - far + m->size) % m->size), 0);
}

/* A binomial tree: rank v, counted from the root, gets the data from v without its lowest bit. */
static int bcast_round(struct move *m)
{
	const int v = (m->rank - m->root + m->size) % m->size, lowest = v & -v;
	int error = MPI_SUCCESS, bit = 1;

	m->done = m->step == 2;
	if (m->step == 0 && v > 0)
		return post(m, false, m->all, m->nbytes, (v - lowest + m->root) % m->size);
	if (m->step != 1)
		return MPI_SUCCESS;
	while (bit < (v > 0 ? lowest : m->size))
		bit *= 2;
	for (bit /= 2; bit > 0 && error == MPI_SUCCESS; bit /= 2)
		if (v + bit < m->size)
			error = post(m, true, m->all, m->nbytes, (v + bit + m->root) % m->size);
	return error;
}

static int gather_round(struct move *m)
{
	int error = MPI_SUCCESS;

	m->done = m->step == 1;
	if (m->done)
		return MPI_SUCCESS;
	if (m->rank != m->root)
		return post(m, true, (char *)(uintptr_t)m->mine, m->nbytes, m->root);
	memcpy(m->all + (size_t)m->rank * m->nbytes, m->mine, m->nbytes);
	for (int r = 0; r < m->size && error == MPI_SUCCESS; r++)
		if (r != m->rank)
			error = post(m, false, m->all + (size_t)r * m->nbytes, m->nbytes, r);
	return error;
}

/* Bruck's: before round k the room has the blocks of 2^k ranks, from this one on. */
static int allgather_round(struct move *m)
{
	const long far = 1L << m->step;
	const size_t n = (size_t)m->size, after = n - (size_t)m->rank, each = m->nbytes;
	const size_t blocks = far < m->size - far ? (size_t)far : n - (size_t)far;

	if (m->step == 0)
		memcpy(m->memory.room, m->mine, each);
	m->done = far >= m->size;
	if (m->done) {
		memcpy(m->all + (size_t)m->rank * each, m->memory.room, after * each);
		memcpy(m->all, m->memory.room + after * each, (n - after) * each);
		return MPI_SUCCESS;
	}
	return exchange(m, m->memory.room, (int)((m->rank - far + m->size) % m->size),
			m->memory.room + (size_t)far * each, (int)((m->rank + far) % m->size),
			blocks * each);
}

static int add_room(struct move *m)
{
	return MPI_Reduce_local(m->memory.room, m->all, m->count, m->type, m->op);
}

static int log2_of(int power)
{
	int n = 0;

	while (1 << n < power)
		n++;
	return n;
}

/*
 * Recursive doubling. Where the ranks are no power of two each even one of the first 2 * rest gives
 * its values to the next rank (step 0), and gets the result from it (after the last exchange). The
 * order is MPICH's for few values on one node; of more, or on several nodes, MPICH adds otherwise.
 */
static int allreduce_round(struct move *m)
{
	int power = 1, rest, last, mine, other, error = MPI_SUCCESS;
	bool folds;

	while (power <= m->size / 2)
		power *= 2;
	rest = m->size - power;
	last = log2_of(power) + 1;
	folds = m->rank < 2 * rest;
	mine = !folds ? m->rank - rest : m->rank % 2 ? m->rank / 2 : -1;
	m->done = m->step > last;
	if (m->step == 0 && folds)
		return mine < 0 ? post(m, true, m->all, m->nbytes, m->rank + 1)
				: post(m, false, m->memory.room, m->nbytes, m->rank - 1);
	if (m->step > 0 && m->step <= last && mine >= 0 && (m->step > 1 || folds))
		error = add_room(m);
	if (error == MPI_SUCCESS && m->step == last && folds)
		return post(m, mine >= 0, m->all, m->nbytes, m->rank + (mine >= 0 ? -1 : 1));
	if (error != MPI_SUCCESS || m->step == 0 || m->step >= last || mine < 0)
		return error;
	other = mine ^ 1 << (m->step - 1);
	other = other < rest ? 2 * other + 1 : other + rest;
	return exchange(m, m->all, other, m->memory.room, other, m->nbytes);
}

/* ---- progress ---- */

/* False: a message of the round has not arrived. */
static bool advance(struct move *m)
{
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */
	int all = 1;

	while (!m->done) {
		if (m->n > 0)
			m->error = MPI_Testall((int)m->n, m->memory.parts, &all, ignore);
		if (m->error == MPI_SUCCESS && !all)
			return false;
		m->n = 0;
		if (m->error == MPI_SUCCESS)
			m->error = m->round(m);
		m->done |= m->error != MPI_SUCCESS;
		m->step++;
	}
	if (m->error != MPI_SUCCESS)
		mu_memory_keep(); /* of messages that are under way */
	MPI_Grequest_complete(m->request);
	return true;
}

bool mu_icollective_move(void)
{
	bool some = false;

	for (struct move **at = &moves; *at;) {
		struct move *m = *at;

		if (advance(m)) {
			*at = m->after;
			some = true;
		} else {
			at = &m->after;
		}
	}
	return some;
}

static int query(void *of, MPI_Status *status)
{
	const struct move *m = of;

	MPI_Status_set_elements(status, MPI_BYTE, 0);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = MPI_UNDEFINED;
	status->MPI_TAG = MPI_UNDEFINED;
	return m->error;
}

static void free_move(struct move *m)
{
	if (m) {
		mu_free(m->memory.parts);
		mu_free(m->memory.room);
	}
	mu_free(m);
}

void mu_icollective_free(struct move *all)
{
	struct move *after;

	for (; all; all = after) {
		after = all->after;
		free_move(all);
	}
}

static int release(void *of)
{
	struct move *m = of;
	struct mu_subset *s = m->subset;

	if (m->memory.room_bytes > KEPT_ROOM || m->memory.most_parts > KEPT_PARTS ||
	    mu_memory_is_kept()) {
		free_move(m);
	} else {
		m->after = s->spare;
		s->spare = m;
	}
	mu_subset_drop(s);
	return MPI_SUCCESS;
}

static int cancel(void *of, int complete)
{
	(void)of;
	(void)complete;
	return MPI_SUCCESS;
}

/* One of the subset's, or a new one, with memory for so many messages and bytes. */
static enum mu_status take(struct mu_subset *s, size_t parts, size_t room, struct move **out)
{
	enum mu_status st = MU_OK;
	struct move *m = s->spare;

	if (m)
		s->spare = m->after;
	else
		MU_TRY(MU_ALLOC(m, 1, "collective of some ranks"));
	if (m->memory.most_parts < parts) {
		mu_free(m->memory.parts);
		m->memory.parts = NULL;
		MU_TRY(mu_requests_new(&m->memory.parts, parts));
		m->memory.most_parts = parts;
	}
	if (m->memory.room_bytes < room) {
		mu_free(m->memory.room);
		m->memory.room = NULL;
		MU_TRY(mu_alloc((void **)&m->memory.room, room, "collective of some ranks"));
		m->memory.room_bytes = room;
	}
	*out = m;
	m = NULL;
out:
	free_move(m);
	return st;
}

/* like: as the collective has it. room: bytes. */
static enum mu_status begin(struct mu_subset *s, const struct move *like, size_t room,
			    MPI_Request *request)
{
	enum mu_status st = MU_OK;
	const size_t total = like->nbytes * (size_t)s->size;
	struct move *m = NULL, **at = &moves;
	struct memory memory;

	MU_TRY(take(s, 2 * ((size_t)s->size + 32 + total / PIECE_BYTES), room, &m));
	memory = m->memory;
	*m = *like;
	m->memory = memory;
	m->subset = s;
	m->rank = s->rank;
	m->size = s->size;
	m->tag = mu_subset_turn(s);
	MU_MPI(MPI_Grequest_start(query, release, cancel, m, &m->request));
	s->refs++;
	*request = m->request;
	while (*at)
		at = &(*at)->after;
	*at = m;
	m = NULL;
	mu_icollective_move();
out:
	free_move(m);
	return st;
}

/* ---- calls ---- */

enum mu_status mu_ibarrier(MPI_Comm comm, MPI_Request *request)
{
	enum mu_status st = MU_OK;
	struct mu_subset *s = mu_subset_of(comm);

	if (s)
		MU_TRY(begin(s, &(struct move){.round = barrier_round}, 0, request));
	else
		MU_MPI(MPI_Ibarrier(comm, request));
out:
	return st;
}

enum mu_status mu_ibcast(void *data, size_t nbytes, int root, MPI_Comm comm, MPI_Request *request)
{
	enum mu_status st = MU_OK;
	struct mu_subset *s = mu_subset_of(comm);
	const struct move m = {.round = bcast_round, .all = data, .nbytes = nbytes, .root = root};

	if (s)
		MU_TRY(begin(s, &m, 0, request));
	else
		MU_MPI(MPI_Ibcast(data, mu_count(nbytes), MPI_BYTE, root, comm, request));
out:
	return st;
}

enum mu_status mu_iallgather(const void *mine, void *all, size_t nbytes_each, MPI_Comm comm,
			     MPI_Request *request)
{
	enum mu_status st = MU_OK;
	struct mu_subset *s = mu_subset_of(comm);
	const int n = mu_count(nbytes_each);
	const struct move m = {
		.round = allgather_round, .mine = mine, .all = all, .nbytes = nbytes_each};

	if (s)
		MU_TRY(begin(s, &m, (size_t)s->size * nbytes_each + 1, request));
	else
		MU_MPI(MPI_Iallgather(mine, n, MPI_BYTE, all, n, MPI_BYTE, comm, request));
out:
	return st;
}

enum mu_status mu_igather(const void *mine, void *all, size_t nbytes_each, int root, MPI_Comm comm,
			  MPI_Request *request)
{
	enum mu_status st = MU_OK;
	struct mu_subset *s = mu_subset_of(comm);
	const int n = mu_count(nbytes_each);
	const struct move m = {.round = gather_round,
			       .mine = mine,
			       .all = all,
			       .nbytes = nbytes_each,
			       .root = root};

	if (s)
		MU_TRY(begin(s, &m, 0, request));
	else
		MU_MPI(MPI_Igather(mine, n, MPI_BYTE, all, n, MPI_BYTE, root, comm, request));
out:
	return st;
}

enum mu_status mu_iallreduce(const void *in, void *out, size_t n, MPI_Datatype type, MPI_Op op,
			     MPI_Comm comm, MPI_Request *request)
{
	enum mu_status st = MU_OK;
	struct mu_subset *s = mu_subset_of(comm);
	struct move m = {
		.round = allreduce_round, .all = out, .type = type, .op = op, .count = mu_count(n)};
	int each = 0;

	if (s) {
		MU_MPI(MPI_Type_size(type, &each));
		m.nbytes = n * (size_t)each;
		if (in != MPI_IN_PLACE)
			memcpy(out, in, m.nbytes);
		MU_TRY(begin(s, &m, m.nbytes + 1, request));
	} else {
		MU_MPI(MPI_Iallreduce(in, out, m.count, type, op, comm, request));
	}
out:
	return st;
}
