/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the ranks of a node share: one POSIX shared-memory object. All ranks open it while it
 * is empty, then it is unlinked, and only then are its pages allocated: so no memory is left behind
 * whenever a rank is killed. Where /dev/shm is too small that is an error of this call, not a
 * signal at the first touch.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <muster/comm.h>

#define SEGMENT_ALIGN ((size_t)4096)
#define NAME_BYTES 64
/* A name lasts milliseconds; its process may be another container's, whose number says nothing. */
#define ABANDONED_SECONDS 60

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

static int open_object(const char *name, bool create)
{
	return shm_open(name, (create ? O_CREAT | O_EXCL : 0) | O_RDWR | O_CLOEXEC, 0600);
}

static char *map(int fd, size_t nbytes)
{
	void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Remove objects of this user's processes that were killed while they made them. */
static void sweep(void)
{
	static bool swept; /* once a process: they are old */
	DIR *d = swept ? NULL : opendir("/dev/shm");

	swept = true;

	for (const struct dirent *e; d && (e = readdir(d));) {
		struct stat status;
		long pid;

		if (sscanf(e->d_name, "muster-%ld-", &pid) == 1 && pid > 0 && pid <= INT_MAX &&
		    fstatat(dirfd(d), e->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
		    time(NULL) - status.st_mtim.tv_sec > ABANDONED_SECONDS &&
		    kill((pid_t)pid, 0) != 0 && errno == ESRCH)
			unlinkat(dirfd(d), e->d_name, 0);
	}
	if (d)
		closedir(d);
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

/* Does every rank of the node say yes? */
static enum mu_status all_can(const struct mu_topology *t, bool can, bool *all)
{
	enum mu_status st = MU_OK;
	long ok = can;

	MU_TRY(mu_allreduce_long(&ok, 1, MPI_MIN, t->node));
	*all = ok != 0;
out:
	return st;
}

static enum mu_status share(struct mu_window *w, const struct mu_topology *t, bool *shared)
{
	enum mu_status st = MU_OK;
	char name[NAME_BYTES] = "";
	const bool makes = t->node_rank == 0;
	int fd = -1;

	if (makes) {
		sweep();
		snprintf(name, sizeof name, "/muster-%ld-%llx", (long)getpid(),
			 (unsigned long long)(mu_now() * 1e9));
		fd = open_object(name, true);
	}
	MU_TRY(mu_bcast(name, sizeof name, 0, t->node));
	if (!makes)
		fd = open_object(name, false);
	MU_TRY(all_can(t, fd >= 0, shared));
	if (makes && fd >= 0)
		shm_unlink(name);
	if (!*shared)
		goto out;
	MU_TRY(all_can(t, !makes || allocate(fd, w->nbytes), shared));
	if (!*shared)
		goto out;
	w->base = map(fd, w->nbytes);
	MU_TRY(all_can(t, w->base != NULL, shared));
out:
	if (fd >= 0)
		close(fd);
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
