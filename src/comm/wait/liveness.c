/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does another rank of the node move? See liveness.h. /proc/PID/stat: proc(5); fields are counted
 * from 1, the second is a name in parentheses that may hold anything.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "liveness.h"

/* A rank that polled so long ago is in no wait, or cannot run. */
#define POLL_SECONDS 0.25

struct process {
	char state;
	unsigned long long ticks, started;
};

/* false: the kernel tells nothing of it. */
static bool read_process(long pid, struct process *p)
{
	char path[64], text[1024];
	const char *fields;
	unsigned long long user, kernel;
	FILE *file;
	size_t n;

	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	n = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[n] = '\0';
	fields = strrchr(text, ')');
	/* State is field 3, processor time 14 and 15, the start 22. */
	if (!fields ||
	    sscanf(fields + 1,
		   " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu %*s %*s %*s %*s %*s %*s "
		   "%llu",
		   &p->state, &user, &kernel, &p->started) != 4)
		return false;
	p->ticks = user + kernel;
	return true;
}

unsigned long long mu_process_started(long pid)
{
	struct process p;

	/* Z, X: it has ended, and its parent has not asked for its status. */
	return read_process(pid, &p) && p.state != 'Z' && p.state != 'X' ? p.started : 0;
}

void mu_alive_begin(struct mu_note *mine)
{
	mine->pid = (int32_t)getpid();
	mine->started = mu_process_started(mine->pid);
}

enum mu_alive mu_alive_look(const struct mu_note *note, struct mu_sight *sight, double now,
			    double recent)
{
	const struct mu_sight before = *sight;
	const bool polls = now - (double)atomic_load(&note->polled) * 1e-9 < POLL_SECONDS;
	struct process p;

	/* A number of another pid namespace may be anybody's: the start must be the one noted. */
	if (!read_process(note->pid, &p) || p.started != note->started)
		return MU_ALIVE_UNKNOWN;
	sight->waits = atomic_load(&note->waits);
	sight->ticks = p.ticks;
	sight->looked = now;
	if (p.state == 'T') {
		/* The same stop as before, if it did not run in between. */
		if (sight->stopped_from == 0 || sight->waits != before.waits ||
		    sight->ticks != before.ticks)
			sight->stopped_from = now;
		return MU_ALIVE_STOPPED;
	}
	sight->stopped_from = 0;
	/*
	 * A rank that polls uses time, too: that is no movement. One that could run, and does not
	 * get a core, is not to blame.
	 */
	if (before.looked > 0 && now - before.looked < recent &&
	    (sight->waits != before.waits ||
	     (!polls && (p.state == 'R' || sight->ticks > before.ticks)))) {
		sight->moved = now;
		return MU_ALIVE_MOVES;
	}
	return polls ? MU_ALIVE_WAITS : MU_ALIVE_STILL;
}
