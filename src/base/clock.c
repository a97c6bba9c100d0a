/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monotonic clock, and one stop-watch for each phase of a training step. The stop-watches are
 * used by the main thread only, which counts its waits for the threads of other devices.
 */
#include <muster/base.h>

#include <time.h>

static struct {
	double start[MU_CLOCK_N];
	double seconds[MU_CLOCK_N];
} state;

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
	};

	return names[clock];
}

void mu_clock_start(enum mu_clock clock)
{
	state.start[clock] = mu_now();
}

void mu_clock_stop(enum mu_clock clock)
{
	state.seconds[clock] += mu_now() - state.start[clock];
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
