/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of a save: it writes this worker's pieces at their places in the file; on worker 0 it
 * renames the file after all have been written. It calls neither MPI nor HDF5.
 */
#include "snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/file.h"

/* Worker 0 has created the file. What has its name now and is a link, or has a second name, was put
 * there by somebody: it may be any file. */
static enum mu_status open_new_file(int *fd, const char *path)
{
	enum mu_status st = MU_OK;
	struct stat status;

	*fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (*fd < 0 || fstat(*fd, &status) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode) || status.st_nlink > 1)
		MU_FAIL(MU_ERR_IO,
			"%s: cannot be written: somebody put another file in its place; write to "
			"a folder that only you may write to",
			path);
out:
	return st;
}

static bool is_finite(const struct checkpoint_piece *p)
{
	for (size_t i = 0; i < p->nbytes / sizeof *p->data; i++)
		if (!isfinite(p->data[i]))
			return false;
	return true;
}

enum mu_status mu_checkpoint_pieces_write(const char *path, const struct checkpoint_piece *pieces,
					  size_t n)
{
	enum mu_status st = MU_OK;
	int fd = -1;

	MU_TRY(open_new_file(&fd, path));
	for (size_t i = 0; i < n; i++) {
		const struct checkpoint_piece *p = &pieces[i];
		uint32_t sum = mu_checksum(0, p->data, p->nbytes);

		if (p->weights && !is_finite(p))
			MU_FAIL(MU_ERR_NUMERIC, "%s is not finite, and is not saved", p->weights);
		MU_TRY(mu_file_write_at(fd, path, p->data, p->nbytes, p->offset));
		MU_TRY(mu_file_write_at(fd, path, &sum, sizeof sum, p->checksum));
	}
	if (fsync(fd) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be synced to the disk: %s", path, strerror(errno));
out:
	if (fd >= 0 && close(fd) != 0 && st == MU_OK)
		st = mu_trace_start(MU_ERR_IO, __FILE__, __LINE__, "%s: cannot be closed: %s", path,
				    strerror(errno));
	return st;
}

static void *run_writer(void *argument)
{
	struct checkpoint_writer *w = argument;

	w->st = w->fn(w->context);
	if (w->st != MU_OK)
		snprintf(w->message, sizeof w->message, "%s", mu_trace_message());
	mu_trace_clear();
	atomic_store(&w->done, true);
	return NULL;
}

void mu_checkpoint_writer_begin(struct checkpoint_writer *w, checkpoint_writer_fn *fn,
				void *context)
{
	sigset_t all, before;
	int error;

	*w = (struct checkpoint_writer){.begun = true, .fn = fn, .context = context};
	sigfillset(&all); /* the caller handles signals */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&w->thread, NULL, run_writer, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	w->threaded = error == 0;
	if (w->threaded)
		return;
	mu_log_warn("the thread that writes checkpoints cannot be started: %s; training waits for "
		    "the disk",
		    strerror(error));
	run_writer(w);
}

bool mu_checkpoint_writer_done(struct checkpoint_writer *w)
{
	return atomic_load(&w->done);
}

enum mu_status mu_checkpoint_writer_end(struct checkpoint_writer *w)
{
	enum mu_status st = MU_OK;

	if (!w->begun)
		goto out;
	if (w->threaded)
		pthread_join(w->thread, NULL);
	w->begun = false;
	if (w->st != MU_OK)
		MU_FAIL(w->st, "%s", w->message);
out:
	return st;
}
