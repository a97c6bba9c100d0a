/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wakes a sleeping rank of the same node. Without a wake naps must be short to notice a message in
 * time, and every end of a nap takes the core from a computing rank (measured: 30 us on a virtual
 * machine). So the ranks of a node share a page with one counter each: a rank sleeps on its counter
 * (futex), and a sender increments it and wakes the rank. The message itself travels by MPI; a wake
 * only means that a poll is worthwhile. Without the page (no /dev/shm) ranks only nap.
 */
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wake.h"

struct mu_wake_slot {
	_Atomic uint32_t count;  /* wakes so far */
	_Atomic uint32_t asleep; /* threads of the rank */
	struct mu_note note;
};

enum mu_status mu_wake_open(struct mu_members *m)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_window_open(&m->wake, &m->topology, sizeof(struct mu_wake_slot)));
	if (m->wake)
		mu_alive_begin(mu_wake_note(m, m->topology.node_rank));
out:
	return st;
}

void mu_wake_close(struct mu_members *m)
{
	mu_window_close(m->wake);
	m->wake = NULL;
}

static struct mu_wake_slot *slot_of(const struct mu_members *m, int node_rank)
{
	return mu_window_of(m->wake, node_rank);
}

void mu_wake(const struct mu_members *m, int rank)
{
	struct mu_wake_slot *slot;

	if (!m->wake || m->topology.slot_of[rank] < 0)
		return;
	slot = slot_of(m, m->topology.slot_of[rank]);
	atomic_fetch_add(&slot->count, 1);
	if (atomic_load(&slot->asleep))
		syscall(SYS_futex, &slot->count, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

uint32_t mu_wake_count(const struct mu_members *m)
{
	return m->wake ? atomic_load(&slot_of(m, m->topology.node_rank)->count) : 0;
}

void mu_wake_sleep(const struct mu_members *m, uint32_t count, double seconds)
{
	struct mu_wake_slot *slot = slot_of(m, m->topology.node_rank);
	struct timespec timeout = {0, (long)(seconds * 1e9)};

	/* Sequentially consistent on both sides: either the waker sees `asleep`, or the futex sees
	 * the new count. */
	atomic_fetch_add(&slot->asleep, 1);
	syscall(SYS_futex, &slot->count, FUTEX_WAIT, count, &timeout, NULL, 0);
	atomic_fetch_sub(&slot->asleep, 1);
}

struct mu_note *mu_wake_note(const struct mu_members *m, int node_rank)
{
	return m->wake ? &slot_of(m, node_rank)->note : NULL;
}
