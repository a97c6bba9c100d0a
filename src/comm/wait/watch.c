/* SPDX-License-Identifier: Apache-2.0 */
/* The watchdog of waits, an attribute of communicators: limits, and the ranks that take part in a
 * collective. See struct mu_limits; blame.c decides whether a wait is too long. */
#include <stdio.h>

#include "wake.h"
#include "watch.h"

/* ---- the attribute of communicators ---- */

static void drop(struct mu_watch *watch)
{
	if (--watch->refs > 0)
		return;
	mu_free(watch->sights);
	mu_free(watch->states);
	mu_free(watch);
}

static int copy_attribute(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
	struct mu_group *group = in;

	(void)comm;
	(void)key;
	(void)extra;
	group->watch->refs++;
	*(void **)out = in;
	*flag = 1;
	return MPI_SUCCESS;
}

static int delete_attribute(MPI_Comm comm, int key, void *value, void *extra)
{
	struct mu_group *group = value;

	(void)comm;
	(void)key;
	(void)extra;
	drop(group->watch);
	return MPI_SUCCESS;
}

/* MPI identifies attributes by a number that is created once per process. */
static enum mu_status attribute_key(int *out)
{
	enum mu_status st = MU_OK;
	static int key = MPI_KEYVAL_INVALID;

	if (key == MPI_KEYVAL_INVALID)
		MU_MPI(MPI_Comm_create_keyval(copy_attribute, delete_attribute, &key, NULL));
	*out = key;
out:
	return st;
}

static enum mu_status attach(MPI_Comm comm, struct mu_group *group)
{
	enum mu_status st = MU_OK;
	int key;

	MU_TRY(attribute_key(&key));
	MU_MPI(MPI_Comm_set_attr(comm, key, group));
	group->watch->refs++;
out:
	return st;
}

static struct mu_group *group_of(MPI_Comm comm)
{
	struct mu_group *group = NULL;
	int key, found = 0;

	if (attribute_key(&key) != MU_OK ||
	    MPI_Comm_get_attr(comm, key, &group, &found) != MPI_SUCCESS)
		mu_trace_clear();
	return found ? group : NULL;
}

struct mu_watch *mu_watch_of(MPI_Comm comm)
{
	struct mu_group *group = group_of(comm);

	return group ? group->watch : NULL;
}

static enum mu_status new_watch(struct mu_watch **out)
{
	enum mu_status st = MU_OK;
	struct mu_watch *watch = NULL;

	MU_TRY(MU_ALLOC(watch, 1, "watch over waits"));
	watch->refs = 1;
	watch->limits = (struct mu_limits){MU_WARN_SECONDS, MU_TIMEOUT_SECONDS,
					    MU_SETUP_SECONDS};
	for (int i = 0; i <= MU_GROUP_N; i++)
		watch->groups[i] = (struct mu_group){watch, (enum mu_group_kind)i};
	*out = watch;
out:
	return st;
}

enum mu_status mu_comm_set_limits(MPI_Comm comm, const struct mu_limits *limits)
{
	enum mu_status st = MU_OK;
	struct mu_group *group = group_of(comm);
	struct mu_watch *watch = NULL;

	if (!(limits->warn >= 0) || !(limits->timeout >= 0) || !(limits->setup >= 0))
		MU_FAIL(MU_ERR_ARGUMENT,
			"limits of waits: %g s, %g s and %g s: they must be 0 or more",
			limits->warn, limits->timeout, limits->setup);
	if (!group) {
		MU_TRY(new_watch(&watch));
		MU_TRY(attach(comm, &watch->groups[MU_GROUP_N]));
		group = &watch->groups[MU_GROUP_N];
	}
	group->watch->limits = *limits;
out:
	if (watch)
		drop(watch);
	return st;
}

/* ---- of members ---- */

enum mu_status mu_watch_open(struct mu_members *m)
{
	enum mu_status st = MU_OK;
	struct mu_group *inherited = group_of(m->comm);
	struct mu_watch *watch = NULL;

	MU_TRY(new_watch(&watch));
	m->watch = watch;
	if (inherited)
		watch->limits = inherited->watch->limits;
	MU_TRY(MU_ALLOC(watch->sights, (size_t)m->topology.node_size, "sights of ranks"));
	MU_TRY(MU_ALLOC(watch->states, (size_t)m->topology.node_size, "states of ranks"));
	watch->copy = *m;
	watch->members = &watch->copy;
	watch->mine = mu_wake_note(m, m->topology.node_rank);
	MU_TRY(attach(m->comm, &watch->groups[MU_GROUP_WORLD]));
	MU_TRY(attach(m->peers, &watch->groups[MU_GROUP_PEERS]));
	MU_TRY(attach(m->topology.node, &watch->groups[MU_GROUP_NODE]));
out:
	return st;
}

static struct mu_watch *let_go;

void mu_watch_close(struct mu_members *m)
{
	if (!m->watch)
		return;
	mu_alarm_forget(m->watch);
	m->watch->members = NULL;
	m->watch->mine = NULL;
	if (m->dropped) { /* its communicators stay, and name it */
		m->watch->let_go = let_go;
		let_go = m->watch;
	}
	drop(m->watch);
	m->watch = NULL;
}

void mu_watch_begin(const struct mu_watch *watch)
{
	if (watch && watch->mine && watch->nested == 0)
		atomic_fetch_add_explicit(&watch->mine->waits, 1, memory_order_relaxed);
}

void mu_waiter_nest(struct mu_waiter *w, bool begin)
{
	if (w->watch)
		w->watch->nested += begin ? 1 : -1;
}

void mu_watch_polled(const struct mu_watch *watch, double now)
{
	if (watch && watch->mine)
		atomic_store_explicit(&watch->mine->polled, mu_nanoseconds(now),
				      memory_order_relaxed);
}

/* ---- collectives ---- */

void mu_meeting_enter(const struct mu_meeting *meeting, struct mu_waiter *w)
{
	const struct mu_group *group = group_of(meeting->comm);

	w->watch = group ? group->watch : NULL;
	mu_watch_begin(w->watch);
	if (w->watch && w->watch->mine && group->kind < MU_GROUP_N)
		atomic_fetch_add(&w->watch->mine->entered[group->kind], 1);
}

static bool is_member(const struct mu_members *m, enum mu_group_kind kind, int rank)
{
	int index;

	if (kind == MU_GROUP_WORLD)
		return true;
	if (kind == MU_GROUP_NODE)
		return m->topology.slot_of[rank] >= 0;
	return mu_members_role(m, rank, &index) == m->role;
}

/* A rank of this node has arrived if it has begun as many collectives of the group as this one. */
static bool has_come(const struct mu_watch *watch, enum mu_group_kind kind, int rank)
{
	const struct mu_members *m = watch->members;
	struct mu_note *theirs;

	if (!watch->mine || m->topology.slot_of[rank] < 0)
		return false;
	theirs = mu_wake_note(m, m->topology.slot_of[rank]);
	return (int32_t)(atomic_load(&theirs->entered[kind]) -
			 atomic_load(&watch->mine->entered[kind])) >= 0;
}

void mu_awaited_meeting(const void *context, struct mu_awaited *a)
{
	const struct mu_meeting *meeting = context;
	const struct mu_group *group = group_of(meeting->comm);
	const struct mu_members *m = group ? group->watch->members : NULL;

	snprintf(a->what, sizeof a->what, "%s", meeting->what);
	a->setup = meeting->setup;
	a->somebody = true;
	for (int r = 0; m && group->kind < MU_GROUP_N && r < m->size; r++)
		if (r != m->rank && is_member(m, group->kind, r) &&
		    !has_come(group->watch, group->kind, r))
			mu_awaited_add(a, r);
}

enum mu_status mu_watch_collective(const struct mu_meeting *meeting, MPI_Request *request)
{
	enum mu_status st = MU_OK;
	struct mu_waiter waiter;
	int done = 0;

	mu_waiter_init(&waiter, NULL);
	mu_meeting_enter(meeting, &waiter);
	for (;;) {
		MU_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE));
		if (done)
			break;
		mu_waiter_nap(&waiter);
		MU_TRY(mu_waiter_check(&waiter, mu_awaited_meeting, meeting));
	}
out:
	return st;
}
