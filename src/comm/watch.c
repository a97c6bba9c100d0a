/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch over waits: limits, who is waited for, and when that has taken too long. See struct
 * mu_limits.
 */
#include <stdio.h>
#include <string.h>

#include "wake.h"
#include "watch.h"

/*
 * Later by this are ranks to tell that do not see who is to blame: those who do have told by then.
 */
#define UNSURE_SECONDS 2.0
/* Who has told of the end ends the job; if it does not, the next one tells. */
#define END_SECONDS 5.0

/* What is known of the members of a communicator. */
struct group {
	struct mu_watch *watch;
	enum mu_group_kind kind; /* MU_GROUP_N: nothing */
};

struct mu_watch {
	int refs; /* the topology and communicators */
	struct mu_limits limits;
	const struct mu_topology *topology; /* NULL: none */
	struct mu_topology copy;            /* that is it: the caller may move its own */
	struct mu_note *mine;               /* NULL: there is no page */
	struct mu_sight *sights;            /* of the ranks of the node */
	enum mu_alive *states;
	struct group groups[MU_GROUP_N + 1];
};

static const struct mu_limits defaults = {MU_WARN_SECONDS, MU_TIMEOUT_SECONDS};

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
	struct group *group = in;

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
	struct group *group = value;

	(void)comm;
	(void)key;
	(void)extra;
	drop(group->watch);
	return MPI_SUCCESS;
}

/* MPI names attributes by a number that is made once per process. */
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

static enum mu_status attach(MPI_Comm comm, struct group *group)
{
	enum mu_status st = MU_OK;
	int key;

	MU_TRY(attribute_key(&key));
	MU_MPI(MPI_Comm_set_attr(comm, key, group));
	group->watch->refs++;
out:
	return st;
}

static struct group *group_of(MPI_Comm comm)
{
	struct group *group = NULL;
	int key, found = 0;

	if (attribute_key(&key) != MU_OK ||
	    MPI_Comm_get_attr(comm, key, &group, &found) != MPI_SUCCESS)
		mu_trace_clear();
	return found ? group : NULL;
}

static enum mu_status new_watch(struct mu_watch **out)
{
	enum mu_status st = MU_OK;
	struct mu_watch *watch = NULL;

	MU_TRY(MU_ALLOC(watch, 1, "watch over waits"));
	watch->refs = 1;
	watch->limits = defaults;
	for (int i = 0; i <= MU_GROUP_N; i++)
		watch->groups[i] = (struct group){watch, (enum mu_group_kind)i};
	*out = watch;
out:
	return st;
}

enum mu_status mu_comm_set_limits(MPI_Comm comm, const struct mu_limits *limits)
{
	enum mu_status st = MU_OK;
	struct group *group = group_of(comm);
	struct mu_watch *watch = NULL;

	if (!(limits->warn >= 0) || !(limits->timeout >= 0))
		MU_FAIL(MU_ERR_ARGUMENT, "limits of waits: %g s and %g s: they must be 0 or more",
			limits->warn, limits->timeout);
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

/* ---- of a topology ---- */

enum mu_status mu_watch_open(struct mu_topology *t)
{
	enum mu_status st = MU_OK;
	struct group *inherited = group_of(t->world);
	struct mu_watch *watch = NULL;

	MU_TRY(new_watch(&watch));
	t->watch = watch;
	if (inherited)
		watch->limits = inherited->watch->limits;
	MU_TRY(MU_ALLOC(watch->sights, (size_t)t->node_size, "sights of ranks"));
	MU_TRY(MU_ALLOC(watch->states, (size_t)t->node_size, "states of ranks"));
	watch->copy = *t;
	watch->topology = &watch->copy;
	watch->mine = mu_wake_note(t, t->node_rank);
	MU_TRY(attach(t->world, &watch->groups[MU_GROUP_WORLD]));
	MU_TRY(attach(t->peers, &watch->groups[MU_GROUP_PEERS]));
	MU_TRY(attach(t->node, &watch->groups[MU_GROUP_NODE]));
out:
	return st;
}

void mu_watch_close(struct mu_topology *t)
{
	if (!t->watch)
		return;
	t->watch->topology = NULL;
	t->watch->mine = NULL;
	drop(t->watch);
	t->watch = NULL;
}

void mu_watch_begin(const struct mu_watch *watch)
{
	if (watch && watch->mine)
		atomic_fetch_add_explicit(&watch->mine->waits, 1, memory_order_relaxed);
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
	const struct group *group = group_of(meeting->comm);

	w->watch = group ? group->watch : NULL;
	mu_watch_begin(w->watch);
	if (w->watch && w->watch->mine && group->kind < MU_GROUP_N)
		atomic_fetch_add(&w->watch->mine->entered[group->kind], 1);
}

static bool is_member(const struct mu_topology *t, enum mu_group_kind kind, int rank)
{
	const int n = t->role == MU_ROLE_WORKER ? t->num_workers : t->num_servers;
	const int *peers = t->role == MU_ROLE_WORKER ? t->worker_ranks : t->server_ranks;

	if (kind == MU_GROUP_WORLD)
		return true;
	if (kind == MU_GROUP_NODE)
		return t->slot_of[rank] >= 0;
	for (int i = 0; i < n; i++)
		if (peers[i] == rank)
			return true;
	return false;
}

/* A rank of this node has come if it has begun as many collectives of the group as this one. */
static bool has_come(const struct mu_watch *watch, enum mu_group_kind kind, int rank)
{
	const struct mu_topology *t = watch->topology;
	struct mu_note *theirs;

	if (!watch->mine || t->slot_of[rank] < 0)
		return false;
	theirs = mu_wake_note(t, t->slot_of[rank]);
	return (int32_t)(atomic_load(&theirs->entered[kind]) -
			 atomic_load(&watch->mine->entered[kind])) >= 0;
}

void mu_awaited_meeting(const void *context, struct mu_awaited *a)
{
	const struct mu_meeting *meeting = context;
	const struct group *group = group_of(meeting->comm);
	const struct mu_topology *t = group ? group->watch->topology : NULL;

	snprintf(a->what, sizeof a->what, "%s", meeting->what);
	a->patient = meeting->patient;
	a->somebody = true;
	for (int r = 0; t && group->kind < MU_GROUP_N && r < t->size; r++)
		if (r != t->rank && is_member(t, group->kind, r) &&
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

/* ---- who is to blame ---- */

void mu_awaited_add(struct mu_awaited *a, int rank)
{
	for (size_t i = 0; i < a->n && i < MU_AWAITED_MAX; i++)
		if (a->ranks[i] == rank)
			return;
	if (a->n < MU_AWAITED_MAX)
		a->ranks[a->n] = rank;
	a->n++;
}

static void await_somebody(const void *context, struct mu_awaited *a)
{
	const char *what = context;

	snprintf(a->what, sizeof a->what, "%s", what);
	a->somebody = true;
}

struct verdict {
	double seconds;   /* since when nothing moves */
	bool sure;        /* who is named is in no wait itself */
	bool by_the_way;  /* nobody waits for who is named */
	size_t n;         /* named */
	char names[1024]; /* of them */
};

static double look_period(const struct mu_limits *l)
{
	double least = l->timeout;

	if (least == 0 || (l->warn > 0 && l->warn < least))
		least = l->warn;
	return least > 16 ? 2 : least < 0.4 ? 0.05 : least / 8;
}

static void look_around(struct mu_watch *watch, double now)
{
	const struct mu_topology *t = watch->topology;
	const double recent = 4 * look_period(&watch->limits);

	for (int i = 0; watch->mine && i < t->node_size; i++)
		if (i != t->node_rank)
			watch->states[i] =
				mu_alive_look(mu_wake_note(t, i), &watch->sights[i], now, recent);
}

static enum mu_alive state_of(const struct mu_watch *watch, int rank)
{
	const int slot = watch->topology->slot_of[rank];

	return watch->mine && slot >= 0 ? watch->states[slot] : MU_ALIVE_UNKNOWN;
}

static void name(struct verdict *v, const struct mu_watch *watch, int rank)
{
	char who[128];
	size_t used = strlen(v->names), n;

	mu_topology_name(watch->topology, rank, who, sizeof who);
	n = strlen(who);
	if (n > 0 && state_of(watch, rank) == MU_ALIVE_STOPPED)
		snprintf(who + n - 1, sizeof who - n, "; stopped)");
	if (n > 0 && state_of(watch, rank) == MU_ALIVE_WAITS)
		snprintf(who + n - 1, sizeof who - n, "; waits, too)");
	if (used + n + 32 < sizeof v->names)
		snprintf(v->names + used, sizeof v->names - used, "%s%s", v->n > 0 ? ", " : "",
			 who);
	else if (strcmp(v->names + used - 3, "...") != 0)
		snprintf(v->names + used, sizeof v->names - used, ", ...");
	v->n++;
}

/* Those that are awaited, as world ranks; for somebody all of the node. */
static int awaited(const struct mu_watch *watch, const struct mu_awaited *a, size_t i)
{
	const struct mu_topology *t = watch->topology;

	if (a->n > 0)
		return i < a->n && i < MU_AWAITED_MAX ? a->ranks[i] : -1;
	for (int r = 0; a->somebody && r < t->size; r++)
		if (t->slot_of[r] == (int)i)
			return r;
	return -1;
}

static void name_awaited(struct verdict *v, const struct mu_watch *watch,
			 const struct mu_awaited *a, bool guilty)
{
	int rank;

	for (size_t i = 0; (rank = awaited(watch, a, i)) >= 0; i++) {
		const enum mu_alive state = state_of(watch, rank);
		const bool still = state == MU_ALIVE_STILL || state == MU_ALIVE_STOPPED;

		if (rank != watch->topology->rank && still == guilty)
			name(v, watch, rank);
	}
}

/* Ranks of the node that a signal has stopped. */
static void name_stopped(struct verdict *v, const struct mu_watch *watch, double now)
{
	const struct mu_topology *t = watch->topology;
	double from = now;

	for (int r = 0; watch->mine && r < t->size; r++) {
		if (r == t->rank || state_of(watch, r) != MU_ALIVE_STOPPED)
			continue;
		name(v, watch, r);
		if (watch->sights[t->slot_of[r]].stopped_from < from)
			from = watch->sights[t->slot_of[r]].stopped_from;
	}
	v->by_the_way = v->sure = v->n > 0;
	v->seconds = v->n > 0 ? now - from : 0;
}

/* What moved since the clock of the wait began starts it anew. */
static void restart(struct mu_waiter *w, const struct mu_awaited *a)
{
	const struct mu_watch *watch = w->watch;
	int rank;

	for (size_t i = 0; watch->mine && (rank = awaited(watch, a, i)) >= 0; i++) {
		const int slot = watch->topology->slot_of[rank];

		if (slot >= 0 && watch->sights[slot].moved > w->still)
			w->still = watch->sights[slot].moved;
	}
}

/* Nobody of those awaited is known to be still. */
static void judge_unseen(struct verdict *v, struct mu_waiter *w, const struct mu_awaited *a,
			 double now)
{
	const struct mu_awaited all = {.somebody = true};

	name_stopped(v, w->watch, now);
	if (v->n > 0 || (a->n == 0 && !a->somebody))
		return;
	/* Who waits, too, may wait for somebody else of the node, and will tell if that is still.
	 */
	restart(w, &all);
	v->seconds = now - w->still;
	if (a->n > 0)
		name_awaited(v, w->watch, a, false);
	/* What a server waits for are the workers' own pushes; a worker waits for sums of all. */
	v->sure = a->n > 0 && w->watch->topology->role == MU_ROLE_SERVER;
}

static struct verdict judge(struct mu_waiter *w, const struct mu_awaited *a, double now)
{
	struct verdict v = {.seconds = 0};

	if (!w->watch || !w->watch->topology) {
		v.seconds = a->n > 0 || a->somebody ? now - w->still : 0;
		return v;
	}
	look_around(w->watch, now);
	restart(w, a);
	name_awaited(&v, w->watch, a, true);
	v.sure = v.n > 0;
	v.seconds = now - w->still;
	if (v.n == 0)
		judge_unseen(&v, w, a, now);
	return v;
}

/* ---- telling ---- */

/* One rank of a node warns. */
static bool may_warn(const struct mu_watch *watch, double now, double warn)
{
	struct mu_note *first;
	uint64_t before;

	if (!watch || !watch->mine)
		return true;
	first = mu_wake_note(watch->topology, 0);
	before = atomic_load(&first->warned);
	return now - (double)before * 1e-9 >= 0.9 * warn &&
	       atomic_compare_exchange_strong(&first->warned, &before, mu_nanoseconds(now));
}

/* One rank of a node ends the job. */
static bool may_end(const struct mu_watch *watch, double now)
{
	struct mu_note *first;
	uint64_t before = 0;

	if (!watch || !watch->mine)
		return true;
	first = mu_wake_note(watch->topology, 0);
	return atomic_compare_exchange_strong(&first->ended, &before, mu_nanoseconds(now)) ||
	       now - (double)before * 1e-9 > END_SECONDS;
}

static void put_text(char *text, size_t nbytes, const struct mu_watch *watch,
		     const struct mu_awaited *a, const struct verdict *v)
{
	char me[32] = "this rank";

	if (watch && watch->topology)
		snprintf(me, sizeof me, "%s %d", mu_role_name(watch->topology->role),
			 watch->topology->index);
	if (v->by_the_way)
		snprintf(text, nbytes, "%s did not move for %.1f s", v->names, v->seconds);
	else
		snprintf(text, nbytes, "%s has waited %.1f s for %s%s%s", me, v->seconds, a->what,
			 v->n > 0 ? ": nothing from " : "", v->names);
}

enum mu_status mu_waiter_check(struct mu_waiter *w, mu_awaited_fn *fn, const void *context)
{
	enum mu_status st = MU_OK;
	const struct mu_limits l = w->watch ? w->watch->limits : defaults;
	const double now = w->last;
	struct mu_awaited a = {.n = 0};
	struct verdict v;
	char text[1280];

	if (now < w->next || (l.warn == 0 && l.timeout == 0))
		goto out;
	w->next = now + look_period(&l);
	(fn ? fn : await_somebody)(context, &a);
	v = judge(w, &a, now);
	if (!v.sure)
		v.seconds -= UNSURE_SECONDS;
	if (v.seconds < w->told)
		w->told = 0;
	if (l.timeout > 0 && v.seconds >= l.timeout && (v.sure || !a.patient) &&
	    may_end(w->watch, now)) {
		put_text(text, sizeof text, w->watch, &a, &v);
		MU_FAIL(MU_ERR_TIMEOUT, "%s; the limit is %g s (--comm-timeout)", text, l.timeout);
	}
	if (l.warn == 0 || v.seconds < w->told + l.warn)
		goto out;
	w->told = v.seconds;
	if (may_warn(w->watch, now, l.warn)) {
		put_text(text, sizeof text, w->watch, &a, &v);
		mu_log_warn("%s", text);
	}
out:
	return st;
}
