/* SPDX-License-Identifier: Apache-2.0 */
/* The monotonic clock, and a stop-watch for each phase of a training step. One stop-watch per
 * thread runs at a time: starting another pauses it. Also records the spans in which they ran. */
#include <muster/base.h>

#include <assert.h>
#include <stdatomic.h>
#include <time.h>

enum { DEPTH_MAX = 8 };

static _Thread_local struct {
	double seconds[MU_CLOCK_N];
	double since; /* start or resumption of the running one */
	int depth;    /* started and not stopped; the last one runs */
	enum mu_clock started[DEPTH_MAX];
	int marks[DEPTH_MAX], mark; /* marks of the started ones, and of the next */
	struct mu_span *spans;      /* NULL: not recorded */
	size_t n, room;
} state = {.mark = -1};

static atomic_uint_fast64_t progress;

void mu_progress_made(void)
{
	atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
}

uint64_t mu_progress(void)
{
	return atomic_load_explicit(&progress, memory_order_relaxed);
}

double mu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *mu_clock_name(enum mu_clock clock)
{
	static const char *const names[MU_CLOCK_N] = {
		[MU_CLOCK_DATA] = "data",         [MU_CLOCK_FORWARD] = "forward",
		[MU_CLOCK_BACKWARD] = "backward", [MU_CLOCK_PUSH] = "push",
		[MU_CLOCK_PULL] = "pull",         [MU_CLOCK_UPDATE] = "update",
		[MU_CLOCK_COMPRESS] = "compress",
	};

	return names[clock];
}

/* Add the time until now to the running clock. */
static void count(void)
{
	double now = mu_now();

	mu_progress_made();
	if (state.depth > 0) {
		state.seconds[state.started[state.depth - 1]] += now - state.since;
		if (state.spans)
			mu_spans_add((int)state.started[state.depth - 1],
				     state.marks[state.depth - 1], state.since, now);
	}
	state.since = now;
}

void mu_clock_start(enum mu_clock clock)
{
	count();
	assert(state.depth < DEPTH_MAX);
	state.marks[state.depth] = state.mark;
	state.started[state.depth++] = clock;
}

void mu_clock_stop(enum mu_clock clock)
{
	count();
	assert(state.depth > 0 && state.started[state.depth - 1] == clock);
	(void)clock;
	state.depth--;
}

double mu_clock_seconds(enum mu_clock clock)
{
	return state.seconds[clock];
}

void mu_clock_reset(void)
{
	for (int i = 0; i < MU_CLOCK_N; i++)
		state.seconds[i] = 0;
}

void mu_clock_mark(int which)
{
	state.mark = which;
}

void mu_spans_start(struct mu_span *spans, size_t room)
{
	state.spans = spans;
	state.n = 0;
	state.room = room;
	state.since = mu_now(); /* a running clock counts from here on */
}

size_t mu_spans_stop(void)
{
	state.spans = NULL;
	return state.n;
}

bool mu_spans_wanted(void)
{
	return state.spans;
}

void mu_spans_add(int what, int which, double begin, double end)
{
	if (state.spans && state.n < state.room)
		state.spans[state.n++] = (struct mu_span){begin, end, what, which};
}
