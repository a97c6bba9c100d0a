/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waking a sleeping rank of the same node. A nap that ends by itself must be short to notice a
 * message in time, and every end of a nap takes the core from whoever computes there (measured: 30
 * us on a virtual machine). So ranks of a node share a page with one counter each: a rank sleeps on
 * its counter (futex), and who sends it something counts it up and wakes it. The message itself
 * travels by MPI; a wake says only that it is worth to look. Without the page (no /dev/shm) there
 * are only naps.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wake.h"

struct mu_wake_slot {
	_Alignas(MU_ALIGN) _Atomic uint32_t count; /* wakes so far */
	_Atomic uint32_t asleep;
	struct mu_note note;
};

static size_t page_bytes(const struct mu_topology *t)
{
	return (size_t)t->node_size * sizeof(struct mu_wake_slot);
}

static struct mu_wake_slot *map(const struct mu_topology *t, const char *name, int flags)
{
	void *p = MAP_FAILED;
	int fd = shm_open(name, flags | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0) {
		/*
		 * Allocated here and now: a full /dev/shm is an error of this call, not a signal
		 * later.
		 */
		if (!(flags & O_CREAT) || posix_fallocate(fd, 0, (off_t)page_bytes(t)) == 0)
			p = mmap(NULL, page_bytes(t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	}
	return p == MAP_FAILED ? NULL : p;
}

enum mu_status mu_wake_open(struct mu_topology *t)
{
	enum mu_status st = MU_OK;
	char name[64] = "";
	long ok;

	if (t->node_rank == 0) {
		snprintf(name, sizeof name, "/muster-%ld-%llx", (long)getpid(),
			 (unsigned long long)(mu_now() * 1e9));
		t->wake = map(t, name, O_CREAT | O_EXCL);
	}
	MU_TRY(mu_bcast(name, sizeof name, 0, t->node));
	if (t->node_rank > 0)
		t->wake = map(t, name, 0);
	ok = t->wake != NULL;
	MU_TRY(mu_allreduce_long(&ok, 1, MPI_MIN, t->node));
	if (ok)
		mu_alive_begin(mu_wake_note(t, t->node_rank));
	else
		mu_wake_close(t);
out:
	if (t->node_rank == 0 && name[0])
		shm_unlink(name);
	return st;
}

void mu_wake_close(struct mu_topology *t)
{
	if (t->wake)
		munmap(t->wake, page_bytes(t));
	t->wake = NULL;
}

void mu_wake(const struct mu_topology *t, int rank)
{
	struct mu_wake_slot *slot;

	if (!t->wake || t->slot_of[rank] < 0)
		return;
	slot = &t->wake[t->slot_of[rank]];
	atomic_fetch_add(&slot->count, 1);
	if (atomic_load(&slot->asleep))
		syscall(SYS_futex, &slot->count, FUTEX_WAKE, 1, NULL, NULL, 0);
}

uint32_t mu_wake_count(const struct mu_topology *t)
{
	return t->wake ? atomic_load(&t->wake[t->node_rank].count) : 0;
}

void mu_wake_sleep(const struct mu_topology *t, uint32_t count, double seconds)
{
	struct mu_wake_slot *slot = &t->wake[t->node_rank];
	struct timespec timeout = {0, (long)(seconds * 1e9)};

	/*
	 * Sequentially consistent on both sides: either the waker sees `asleep`, or the futex sees
	 * the new count.
	 */
	atomic_store(&slot->asleep, 1);
	syscall(SYS_futex, &slot->count, FUTEX_WAIT, count, &timeout, NULL, 0);
	atomic_store(&slot->asleep, 0);
}

struct mu_note *mu_wake_note(const struct mu_topology *t, int node_rank)
{
	return t->wake ? &t->wake[node_rank].note : NULL;
}
