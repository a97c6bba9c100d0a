/* SPDX-License-Identifier: Apache-2.0 */
/* Has a wait taken too long, and which rank causes it? See struct mu_limits. */
#include <stdio.h>
#include <string.h>

#include "wake.h"
#include "watch.h"

/* Ranks that cannot see the cause report later by this time, so that a rank that can see it reports
 * first. */
#define UNSURE_SECONDS 2.0
/* Ranks of other nodes may see the same. A node that sees a rank stand still reports first, then
 * one node after the other, later by the time in which a report ends the job (mu_world_fail). */
#define TURN_SECONDS 1.5
#define MOST_TURNS 8
/* The rank that reported first ends the job; after this time the next one does. */
#define END_SECONDS 5.0

static const struct mu_limits defaults = {MU_WARN_SECONDS, MU_TIMEOUT_SECONDS, MU_SETUP_SECONDS};

void mu_awaited_peers(struct mu_awaited *a, const struct mu_members *m)
{
	int index;

	for (int r = 0; r < m->size; r++)
		if (r != m->rank && mu_members_role(m, r, &index) == m->role)
			mu_awaited_add(a, r);
}

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
	double seconds;   /* time without progress */
	bool sure;        /* the named ranks are in no wait themselves */
	bool seen;        /* this node alone sees that they stand still */
	bool by_the_way;  /* no rank waits for the named ranks */
	size_t n;         /* number of named ranks */
	char names[1024]; /* their names */
};

static double look_period(const struct mu_limits *l)
{
	double least = l->timeout;

	if (least == 0 || (l->warn > 0 && l->warn < least))
		least = l->warn;
	if (least == 0)
		least = l->setup;
	return least > 16 ? 2 : least < 0.4 ? 0.05 : least / 8;
}

static void look_around(struct mu_watch *watch, double now)
{
	const struct mu_members *m = watch->members;
	const double recent = 4 * look_period(&watch->limits);

	for (int i = 0; watch->mine && i < m->topology.node_size; i++)
		if (i != m->topology.node_rank)
			watch->states[i] =
				mu_alive_check(mu_wake_note(m, i), &watch->sights[i], now, recent);
}

static enum mu_alive state_of(const struct mu_watch *watch, int rank)
{
	const int slot = watch->members->topology.slot_of[rank];

	return watch->mine && slot >= 0 ? watch->states[slot] : MU_ALIVE_UNKNOWN;
}

static void name(struct verdict *v, const struct mu_watch *watch, int rank)
{
	char who[128];
	size_t used = strlen(v->names), n;

	mu_members_name(watch->members, rank, who, sizeof who);
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

/* The awaited ranks, as world ranks; the whole node if they are unknown. */
static int awaited(const struct mu_watch *watch, const struct mu_awaited *a, size_t i)
{
	const struct mu_members *m = watch->members;

	if (a->n > 0)
		return i < a->n && i < MU_AWAITED_MAX ? a->ranks[i] : -1;
	for (int r = 0; a->somebody && r < m->size; r++)
		if (m->topology.slot_of[r] == (int)i)
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

		if (rank != watch->members->rank && still == guilty)
			name(v, watch, rank);
	}
}

/* Ranks of the node that a signal has stopped. */
static void name_stopped(struct verdict *v, const struct mu_watch *watch, double now)
{
	const struct mu_members *m = watch->members;
	double from = now;

	for (int r = 0; watch->mine && r < m->size; r++) {
		if (r == m->rank || state_of(watch, r) != MU_ALIVE_STOPPED)
			continue;
		name(v, watch, r);
		if (watch->sights[m->topology.slot_of[r]].stopped_from < from)
			from = watch->sights[m->topology.slot_of[r]].stopped_from;
	}
	v->by_the_way = v->sure = v->seen = v->n > 0;
	v->seconds = v->n > 0 ? now - from : 0;
}

/* Progress since the wait's clock started restarts it. */
static void restart(struct mu_waiter *w, const struct mu_awaited *a)
{
	const struct mu_watch *watch = w->watch;
	int rank;

	for (size_t i = 0; watch->mine && (rank = awaited(watch, a, i)) >= 0; i++) {
		const int slot = watch->members->topology.slot_of[rank];

		if (slot >= 0 && watch->sights[slot].moved > w->still)
			w->still = watch->sights[slot].moved;
	}
}

/* No awaited rank is known to stand still. */
static void assess_unseen(struct verdict *v, struct mu_waiter *w, const struct mu_awaited *a,
			 double now)
{
	const struct mu_awaited all = {.somebody = true};

	name_stopped(v, w->watch, now);
	if (v->n > 0 || (a->n == 0 && !a->somebody))
		return;
	/* An awaited rank that waits itself may wait for another rank of the node, and reports if
	 * that one stands still. */
	restart(w, &all);
	v->seconds = now - w->still;
	if (a->n > 0)
		name_awaited(v, w->watch, a, false);
	v->sure = a->direct;
}

static struct verdict assess(struct mu_waiter *w, const struct mu_awaited *a, double now)
{
	struct verdict v = {.seconds = 0};

	if (!w->watch || !w->watch->members) {
		v.seconds = a->n > 0 || a->somebody ? now - w->still : 0;
		return v;
	}
	look_around(w->watch, now);
	restart(w, a);
	name_awaited(&v, w->watch, a, true);
	v.sure = v.seen = v.n > 0;
	v.seconds = now - w->still;
	if (v.n == 0)
		assess_unseen(&v, w, a, now);
	return v;
}

/* ---- reports ---- */

/* Only one rank of a node warns. */
static bool may_warn(const struct mu_watch *watch, double now, double warn)
{
	struct mu_note *first;
	uint64_t before;

	if (!watch || !watch->mine)
		return true;
	first = mu_wake_note(watch->members, 0);
	before = atomic_load(&first->warned);
	return atomic_load(&first->ended) == 0 && now - (double)before * 1e-9 >= 0.9 * warn &&
	       atomic_compare_exchange_strong(&first->warned, &before, mu_nanoseconds(now));
}

/* Only one rank of a node ends the job. */
static bool may_end(const struct mu_watch *watch, double now)
{
	struct mu_note *first;
	uint64_t before = 0;

	if (!watch || !watch->mine)
		return true;
	first = mu_wake_note(watch->members, 0);
	return atomic_compare_exchange_strong(&first->ended, &before, mu_nanoseconds(now)) ||
	       now - (double)before * 1e-9 > END_SECONDS;
}

static void put_text(char *text, size_t nbytes, const struct mu_watch *watch,
		     const struct mu_awaited *a, const struct verdict *v)
{
	char me[32] = "this rank";

	if (watch && watch->members)
		snprintf(me, sizeof me, "%s %d", mu_role_name(watch->members->role),
			 watch->members->index);
	if (v->by_the_way && *a->what)
		snprintf(text, nbytes, "%s waits for %s, and %s did not move for %.1f s", me,
			 a->what, v->names, v->seconds);
	else if (v->by_the_way)
		snprintf(text, nbytes, "%s did not move for %.1f s", v->names, v->seconds);
	else
		snprintf(text, nbytes, "%s has waited %.1f s for %s%s%s", me, v->seconds, a->what,
			 v->n > 0 ? ": nothing from " : "", v->names);
}

/* A check opens a file for every rank of the node, which takes longer than most waits: a rank
 * checks once in a period, however many waits begin in it. */
static bool is_due(struct mu_waiter *w, const struct mu_limits *l, double now)
{
	const double next = now + look_period(l);

	if (w->watch && w->watch->next == 0)
		w->watch->next = next;
	if (w->next == 0)
		w->next = w->watch ? w->watch->next : next;
	if (now < w->next)
		return false;
	w->next = next;
	if (w->watch)
		w->watch->next = next;
	return true;
}

/* The turns of the nodes (delay_of) hold only if no check comes late. */
static void check_earlier(struct mu_waiter *w, double then)
{
	if (then >= w->next)
		return;
	w->next = then;
	if (w->watch)
		w->watch->next = then;
}

/* Seconds without progress that end the job; 0: none. */
static double limit_of(const struct mu_limits *l, const struct mu_awaited *a, bool sure)
{
	if (sure)
		return l->timeout;
	if (a->setup)
		return l->setup;
	return a->patient ? 0 : l->timeout;
}

static int at_most(int a, int most)
{
	return a < most ? a : most;
}

/* How much later than the limit this rank reports, so that one rank does. */
static double delay_of(const struct mu_waiter *w, const struct verdict *v)
{
	const struct mu_members *m = w->watch ? w->watch->members : NULL;
	const double unsure = v->sure ? 0 : UNSURE_SECONDS;
	int turns = 0;

	if (m && m->topology.num_nodes > 1 && !v->seen) {
		turns = 1 + at_most(m->topology.my_node, MOST_TURNS - 1);
		turns += v->sure ? 0 : at_most(m->topology.num_nodes, MOST_TURNS);
	}
	return unsure + turns * TURN_SECONDS;
}

enum mu_status mu_waiter_check(struct mu_waiter *w, mu_awaited_fn *fn, const void *context)
{
	enum mu_status st = MU_OK;
	const struct mu_limits l = w->watch ? w->watch->limits : defaults;
	const double now = w->last;
	struct mu_awaited a = {.n = 0};
	struct verdict v;
	double seconds, limit, left;
	char text[1280];

	MU_TRY(mu_alarm_look(w->watch, now));
	if ((l.warn == 0 && l.timeout == 0 && l.setup == 0) || !is_due(w, &l, now))
		goto out;
	(fn ? fn : await_somebody)(context, &a);
	v = assess(w, &a, now);
	limit = limit_of(&l, &a, v.sure);
	left = limit + delay_of(w, &v) - v.seconds;
	if (limit > 0 && v.seconds > 0 && left <= 0 && may_end(w->watch, now)) {
		put_text(text, sizeof text, w->watch, &a, &v);
		mu_memory_keep(); /* of the messages that did not come */
		MU_FAIL(MU_ERR_TIMEOUT, "%s; the limit is %g s (%s timeout)", text, limit,
			limit == l.timeout ? "communication" : "set-up");
	}
	if (limit > 0 && left > 0)
		check_earlier(w, now + left);
	seconds = v.sure ? v.seconds : v.seconds - UNSURE_SECONDS;
	if (seconds < w->told)
		w->told = 0;
	if (l.warn == 0 || seconds < w->told + l.warn)
		goto out;
	w->told = seconds;
	if (may_warn(w->watch, now, l.warn)) {
		put_text(text, sizeof text, w->watch, &a, &v);
		mu_log_warn("%s", text);
	}
out:
	return st;
}
