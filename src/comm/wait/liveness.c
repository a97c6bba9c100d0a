/* SPDX-License-Identifier: Apache-2.0 */
/* Does another rank of the node run? See liveness.h. /proc/PID/stat: proc(5); fields count from 1,
 * the second is a name in parentheses that may contain anything. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "liveness.h"

/* A rank whose last poll is older than this is in no wait, or cannot run. */
#define POLL_SECONDS 0.25
#define UNKNOWN_TICKS UINT64_MAX

struct process {
	char state;
	unsigned long long ticks, started;
};

/* false: the kernel has no information. */
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
	/* State is field 3, processor time 14 and 15, start time 22. */
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

	/* Z, X: the process has ended and its parent has not collected its status. */
	return read_process(pid, &p) && p.state != 'Z' && p.state != 'X' ? p.started : 0;
}

void mu_alive_begin(struct mu_note *mine)
{
	mine->pid = (int32_t)getpid();
	atomic_store_explicit(&mine->started, mu_process_started(mine->pid), memory_order_release);
}

enum mu_alive mu_alive_check(const struct mu_note *note, struct mu_sight *sight, double now,
			    double recent)
{
	const struct mu_sight before = *sight;
	const bool polls = now - (double)atomic_load(&note->polled) * 1e-9 < POLL_SECONDS;
	const uint64_t started = atomic_load_explicit(&note->started, memory_order_acquire);
	const uint32_t waits = atomic_load(&note->waits);
	const bool knows = before.looked > 0 && now - before.looked < recent;
	struct process p;

	/* Its notes say it all: where most ranks of a node wait, most look at the same time. */
	if (started != 0 && polls) {
		*sight = (struct mu_sight){waits, UNKNOWN_TICKS, now, before.moved, 0};
		if (!knows || waits == before.waits)
			return MU_ALIVE_WAITS;
		sight->moved = now;
		return MU_ALIVE_MOVES;
	}
	/* In another pid namespace the number may belong to another process: compare the start
	 * time. */
	if (started == 0 || !read_process(note->pid, &p) || p.started != started)
		return before.looked > 0 ? MU_ALIVE_STILL : MU_ALIVE_UNKNOWN;
	sight->waits = waits;
	sight->ticks = p.ticks;
	sight->looked = now;
	if (p.state == 'T') {
		/* Still stopped, if the process did not run in between. */
		if (sight->stopped_from == 0 || sight->waits != before.waits ||
		    sight->ticks != before.ticks)
			sight->stopped_from = now;
		return MU_ALIVE_STOPPED;
	}
	sight->stopped_from = 0;
	/* Processor time does not count while a rank polls. A rank that is runnable but gets no
	 * core is not the cause. */
	if (knows && (waits != before.waits || p.state == 'R' || p.ticks > before.ticks)) {
		sight->moved = now;
		return MU_ALIVE_MOVES;
	}
	return MU_ALIVE_STILL;
}
