/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the ranks of a node share: one POSIX shared-memory object, mapped by all of them and
 * unlinked at once, so that it disappears however the job ends. Its pages are allocated when it is
 * created: if /dev/shm is too small the call fails, instead of a signal at the first access.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <muster/comm.h>

#define SEGMENT_ALIGN ((size_t)4096)
#define NAME_BYTES 64

struct mu_window {
	char *base;
	size_t nbytes;
	size_t *at; /* offset of the memory of every rank of the node */
};

static size_t round_up(size_t nbytes)
{
	return (nbytes + SEGMENT_ALIGN - 1) / SEGMENT_ALIGN * SEGMENT_ALIGN;
}

/* tmpfs overcommits: check first, because filling it up would harm other programs. */
static bool has_room(int fd, size_t nbytes)
{
	struct statvfs fs;

	return fstatvfs(fd, &fs) == 0 && (double)fs.f_bavail * (double)fs.f_bsize > (double)nbytes;
}

static bool allocate(int fd, size_t nbytes)
{
	int error;

	if (!has_room(fd, nbytes))
		return false;
	do /* a signal may interrupt it */
		error = posix_fallocate(fd, 0, (off_t)nbytes);
	while (error == EINTR);
	return error == 0;
}

static char *map(const char *name, size_t nbytes, bool create)
{
	void *p = MAP_FAILED;
	int fd = shm_open(name, (create ? O_CREAT | O_EXCL : 0) | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0) {
		if (!create || allocate(fd, nbytes))
			p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	}
	return p == MAP_FAILED ? NULL : p;
}

static enum mu_status place_segments(struct mu_window *w, const struct mu_topology *t,
				     size_t nbytes)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(w->at, (size_t)t->node_size, "places in shared memory"));
	MU_TRY(mu_allgather(&nbytes, w->at, sizeof nbytes, t->node));
	for (int r = 0; r < t->node_size; r++) {
		size_t mine = round_up(w->at[r]);

		w->at[r] = w->nbytes;
		w->nbytes += mine;
	}
out:
	return st;
}

static enum mu_status share(struct mu_window *w, const struct mu_topology *t, bool *shared)
{
	enum mu_status st = MU_OK;
	char name[NAME_BYTES] = "";
	long ok;

	if (t->node_rank == 0) {
		snprintf(name, sizeof name, "/muster-%ld-%llx", (long)getpid(),
			 (unsigned long long)(mu_now() * 1e9));
		w->base = map(name, w->nbytes, true);
	}
	MU_TRY(mu_bcast(name, sizeof name, 0, t->node));
	if (t->node_rank > 0)
		w->base = map(name, w->nbytes, false);
	ok = w->base != NULL;
	MU_TRY(mu_allreduce_long(&ok, 1, MPI_MIN, t->node));
	*shared = ok != 0;
out:
	if (t->node_rank == 0 && name[0])
		shm_unlink(name);
	return st;
}

enum mu_status mu_window_open(struct mu_window **out, const struct mu_topology *t, size_t nbytes)
{
	enum mu_status st = MU_OK;
	struct mu_window *w = NULL;
	bool shared = false;

	*out = NULL;
	MU_TRY(MU_ALLOC(w, 1, "shared memory"));
	MU_TRY(place_segments(w, t, nbytes));
	if (w->nbytes > 0)
		MU_TRY(share(w, t, &shared));
	if (shared) {
		*out = w;
		w = NULL;
	}
out:
	mu_window_close(w);
	return st;
}

void mu_window_close(struct mu_window *w)
{
	if (!w)
		return;
	if (w->base)
		munmap(w->base, w->nbytes);
	mu_free(w->at);
	mu_free(w);
}

void *mu_window_of(const struct mu_window *w, int node_rank)
{
	return w->base + w->at[node_rank];
}
