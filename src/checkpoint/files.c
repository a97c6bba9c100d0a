/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a prefix: names, listing, removal. */
#include "checkpoint.h"
#include "lock.h"
#include "saver.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FUTURE_SECONDS = 60 };

/* ---- names ---- */

/* The folder of a prefix: "/P" is in "/". Returns where the prefix of the names begins. */
static const char *split(const char *prefix, char folder[CHECKPOINT_PATH])
{
	const char *slash = strrchr(prefix, '/');

	snprintf(folder, CHECKPOINT_PATH, "%.*s", slash ? (int)(slash - prefix) + 1 : 1,
		 slash ? prefix : ".");
	return slash ? slash + 1 : prefix;
}

enum mu_status mu_checkpoint_check(const struct conf *v)
{
	enum mu_status st = MU_OK;
	const char *prefix = v->model_prefix;
	char folder[CHECKPOINT_PATH];

	if (!mu_array_file_supported())
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"--model-prefix %s: this build writes no files, because it has no HDF5",
			prefix);
	if (strlen(prefix) + sizeof "-0001-000001.h5.tmp-" + 32 > sizeof folder)
		MU_FAIL(MU_ERR_USAGE, "--model-prefix %s: too long a name", prefix);
	if (prefix[strlen(prefix) - 1] == '/')
		MU_FAIL(MU_ERR_USAGE,
			"--model-prefix %s: a name must follow the folder, as in %srun", prefix,
			prefix);
	split(prefix, folder);
	st = mu_folder_make(folder);
	if (st != MU_OK)
		mu_trace_prefix("--model-prefix %s: ", prefix);
	MU_TRY(st);
out:
	return st;
}

void mu_checkpoint_path(const char *prefix, size_t epoch, size_t step, char *text, size_t nbytes)
{
	if (step > 0)
		snprintf(text, nbytes, "%s-%04zu-%06zu.h5", prefix, epoch, step);
	else
		snprintf(text, nbytes, "%s-%04zu.h5", prefix, epoch);
}

/* ---- the files that are there ---- */

/* The text after "-0001.h5" or "-0001-000250.h5"; NULL: this is neither. */
static const char *after_ending(const char *text)
{
	for (int parts = 0; parts < 2; parts++) {
		if (*text++ != '-' || !isdigit((unsigned char)*text))
			return NULL;
		while (isdigit((unsigned char)*text))
			text++;
		if (strncmp(text, ".h5", 3) == 0)
			return text + 3;
	}
	return NULL;
}

static bool is_ending(const char *text)
{
	const char *after = after_ending(text);

	return after && !*after;
}

/* Length of the name without ".tmp-PID", if it is a temporary name (mu_replace_begin) of a process
 * that this host does not have; else 0. */
static size_t without_pid(const char *text, long *pid)
{
	const char *mark = strstr(text, ".tmp-");
	int n = 0;

	if (!mark || sscanf(mark, ".tmp-%ld%n", pid, &n) != 1 || mark[n] || *pid <= 0 ||
	    *pid > INT_MAX || kill((pid_t)*pid, 0) == 0 || errno != ESRCH)
		return 0;
	return (size_t)(mark - text);
}

/* Is the text after the prefix a temporary name of one of the files that a run writes there? */
static bool is_temporary(const char *text, long *pid)
{
	static const char *const names[] = {"-latest", "-best", "-run.json", "-vocab.txt"};
	const size_t n = without_pid(text, pid);
	const char *after = after_ending(text);

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (n > 0 && strlen(names[i]) == n && strncmp(text, names[i], n) == 0)
			return true;
	return n > 0 && after && after == text + n;
}

void mu_checkpoint_files_sweep(const char *prefix, const struct mu_checkpoint_lock *lock)
{
	char folder[CHECKPOINT_PATH], path[CHECKPOINT_PATH];
	const char *base = split(prefix, folder);
	DIR *d = opendir(folder);

	for (const struct dirent *e; d && (e = readdir(d));) {
		struct stat status;
		long pid;

		if (strncmp(e->d_name, base, strlen(base)) != 0)
			continue;
		snprintf(path, sizeof path, "%.*s%.255s", (int)(base - prefix), prefix, e->d_name);
		if (is_temporary(e->d_name + strlen(base), &pid) && lstat(path, &status) == 0 &&
		    !S_ISDIR(status.st_mode) &&
		    mu_checkpoint_lock_outlives(lock, pid, status.st_mtim.tv_sec) &&
		    unlink(path) == 0)
			mu_log_info("removed %s, which a run that was stopped has left", path);
	}
	if (d)
		closedir(d);
}

static int compare_sizes(size_t x, size_t y)
{
	return (x > y) - (x < y);
}

static int compare_places(const struct checkpoint_file *x, const struct checkpoint_file *y)
{
	const int by_epoch = compare_sizes(x->epoch, y->epoch);

	return by_epoch ? by_epoch : compare_sizes(x->step, y->step);
}

static int compare_times(const struct timespec *x, const struct timespec *y)
{
	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static int compare_files(const void *a, const void *b)
{
	const struct checkpoint_file *x = a, *y = b;

	if (x->earlier != y->earlier)
		return x->earlier ? 1 : -1;
	return compare_places(y, x);
}

/* "-0001.h5": epoch 1; "-0001-000250.h5": and 250 steps. */
static void read_place(const char *ending, struct checkpoint_file *file)
{
	char *after;

	file->epoch = strtoul(ending + 1, &after, 10);
	file->step = *after == '-' ? strtoul(after + 1, NULL, 10) : 0;
}

/* Fills in the table, or counts the files while there is none. No folder: no files. */
static enum mu_status list_files(const char *prefix, struct checkpoint_files *files)
{
	enum mu_status st = MU_OK;
	char folder[CHECKPOINT_PATH];
	const char *base = split(prefix, folder);
	DIR *d = opendir(folder);
	size_t n = 0;

	if (!d && errno != ENOENT)
		MU_FAIL(MU_ERR_IO, "--model-prefix %s: the folder %s cannot be read: %s", prefix,
			folder, strerror(errno));
	for (const struct dirent *e; d && (e = readdir(d));) {
		struct checkpoint_file file = {.earlier = false};
		struct stat status;

		if (strncmp(e->d_name, base, strlen(base)) != 0 ||
		    !is_ending(e->d_name + strlen(base)))
			continue;
		snprintf(file.path, sizeof file.path, "%.*s%.255s", (int)(base - prefix), prefix,
			 e->d_name);
		if (stat(file.path, &status) != 0 || !S_ISREG(status.st_mode))
			continue;
		read_place(e->d_name + strlen(base), &file);
		file.changed = status.st_mtim;
		if (files->of && n < files->n)
			files->of[n] = file;
		n++;
	}
	if (!files->of || n < files->n)
		files->n = n;
out:
	if (d)
		closedir(d);
	return st;
}

/* The file that a link points to; "": there is no such link. */
static void read_link(const char *prefix, const char *which, char path[CHECKPOINT_PATH])
{
	char folder[CHECKPOINT_PATH], link[CHECKPOINT_PATH + 8], target[CHECKPOINT_PATH];
	const char *base = split(prefix, folder);
	ssize_t n;

	path[0] = '\0';
	snprintf(link, sizeof link, "%s-%s", prefix, which);
	n = readlink(link, target, sizeof target - 1);
	if (n <= 0)
		return;
	target[n] = '\0';
	if (strncmp(target, base, strlen(base)) == 0 && is_ending(target + strlen(base)))
		snprintf(path, CHECKPOINT_PATH, "%s%.255s", prefix, target + strlen(base));
}

/* The file that P-latest points to, and when the link was made. false: there is no such link. */
static bool read_latest(const char *prefix, struct checkpoint_file *latest)
{
	char link[CHECKPOINT_PATH + 8], path[CHECKPOINT_PATH];
	struct stat status;

	read_link(prefix, "latest", path);
	snprintf(link, sizeof link, "%s-latest", prefix);
	if (!*path || lstat(link, &status) != 0)
		return false;
	read_place(path + strlen(prefix), latest);
	latest->changed = status.st_mtim;
	return true;
}

/* saved: the file that was just saved; NULL: the one of P-latest. */
static enum mu_status find_files(const char *prefix, const char *saved,
				 struct checkpoint_files *files)
{
	enum mu_status st = MU_OK;
	struct checkpoint_file latest = {.earlier = false};
	bool known = saved || read_latest(prefix, &latest);

	*files = (struct checkpoint_files){.n = 0};
	if (saved)
		read_place(saved + strlen(prefix), &latest);
	MU_TRY(list_files(prefix, files));
	MU_TRY(MU_ALLOC(files->of, files->n + 1, "list of checkpoints"));
	MU_TRY(list_files(prefix, files));
	for (size_t i = 0; known && i < files->n; i++) {
		struct checkpoint_file *f = &files->of[i];

		f->earlier = compare_places(f, &latest) > 0 &&
			     (saved || compare_times(&f->changed, &latest.changed) <= 0);
	}
	qsort(files->of, files->n, sizeof *files->of, compare_files);
out:
	return st;
}

enum mu_status mu_checkpoint_files_find(const char *prefix, struct checkpoint_files *files)
{
	return find_files(prefix, NULL, files);
}

enum mu_status mu_checkpoint_check_unused(const struct conf *v)
{
	enum mu_status st = MU_OK;
	struct checkpoint_files files = {.n = 0};
	char steps[48] = "";

	if (v->facts.goes_on || v->overwrite)
		goto out;
	MU_TRY(find_files(v->model_prefix, NULL, &files));
	if (files.n == 0)
		goto out;
	if (files.of->step > 0)
		snprintf(steps, sizeof steps, ", step %zu", files.of->step);
	MU_FAIL(MU_ERR_USAGE,
		"--model-prefix %s: an earlier run's checkpoints are there, the newest %s (epoch "
		"%zu%s): continue from it with --resume auto, use another --model-prefix, or "
		"replace them with --overwrite",
		v->model_prefix, files.of->path, files.of->epoch, steps);
out:
	mu_checkpoint_files_release(&files);
	return st;
}

void mu_checkpoint_files_warn(const struct checkpoint_files *files)
{
	const time_t now = time(NULL);

	for (size_t i = 0; i < files->n; i++) {
		if (files->of[i].changed.tv_sec <= now + FUTURE_SECONDS)
			continue;
		mu_log_warn("%s is from the future, by %.0f s: the clocks of hosts differ, or one "
			    "was put back; checkpoints are chosen by epoch and step",
			    files->of[i].path, difftime(files->of[i].changed.tv_sec, now));
		return;
	}
}

void mu_checkpoint_files_release(struct checkpoint_files *files)
{
	mu_free(files->of);
	*files = (struct checkpoint_files){.n = 0};
}

/* The new link replaces the old one in one step. */
static enum mu_status point(const char *prefix, const char *which, const char *path)
{
	enum mu_status st = MU_OK;
	const char *slash = strrchr(path, '/');
	char link[CHECKPOINT_PATH], temporary[CHECKPOINT_PATH + 32];

	snprintf(link, sizeof link, "%s-%s", prefix, which);
	snprintf(temporary, sizeof temporary, "%s.tmp-%ld", link, (long)getpid());
	unlink(temporary);
	if (symlink(slash ? slash + 1 : path, temporary) != 0 || rename(temporary, link) != 0) {
		const int error = errno;

		unlink(temporary);
		MU_FAIL(MU_ERR_IO, "%s cannot be pointed to %s: %s", link, path, strerror(error));
	}
out:
	return st;
}

static enum mu_status unpoint(const char *prefix, const char *which)
{
	enum mu_status st = MU_OK;
	char link[CHECKPOINT_PATH];

	snprintf(link, sizeof link, "%s-%s", prefix, which);
	if (unlink(link) != 0 && errno != ENOENT)
		MU_FAIL(MU_ERR_IO, "%s cannot be removed: %s", link, strerror(errno));
out:
	return st;
}

/* The file that P-best pointed to before was saved for that alone: it is removed. */
static void remove_best(const struct conf *v, const char *was, const char *best, const char *path)
{
	struct checkpoint_file file = {.step = 0};

	if (!*was || strcmp(was, best) == 0 || strcmp(was, path) == 0)
		return;
	read_place(was + strlen(v->model_prefix), &file);
	if (file.step == 0 && file.epoch % (size_t)v->save_period != 0)
		unlink(was);
}

enum mu_status mu_checkpoint_files_settle(const struct conf *v, const char *path, size_t best_epoch)
{
	enum mu_status st = MU_OK;
	struct checkpoint_files files = {.n = 0};
	char best[CHECKPOINT_PATH] = "", was[CHECKPOINT_PATH];

	MU_TRY(point(v->model_prefix, "latest", path));
	if (best_epoch > 0)
		mu_checkpoint_path(v->model_prefix, best_epoch, 0, best, sizeof best);
	read_link(v->model_prefix, "best", was);
	/* A run that resumed with another prefix has no file of its own for it. */
	if (*best && access(best, F_OK) == 0) {
		MU_TRY(point(v->model_prefix, "best", best));
		remove_best(v, was, best, path);
	} else if (*was) { /* best by other validation data, by another metric or of another run */
		MU_TRY(unpoint(v->model_prefix, "best"));
	}
	if (v->keep == 0 && !v->overwrite)
		goto out;
	MU_TRY(find_files(v->model_prefix, path, &files));
	for (size_t i = 0; i < files.n; i++) {
		const struct checkpoint_file *f = &files.of[i];
		const bool replaced = v->overwrite && f->earlier;

		if ((replaced || (v->keep > 0 && i >= (size_t)v->keep)) &&
		    strcmp(f->path, path) != 0 && strcmp(f->path, best) != 0 &&
		    unlink(f->path) != 0)
			MU_FAIL(MU_ERR_IO, "--%s: %s cannot be removed: %s",
				replaced ? "overwrite" : "keep", f->path, strerror(errno));
	}
out:
	mu_checkpoint_files_release(&files);
	return st;
}
