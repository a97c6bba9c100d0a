/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: their names, what is in them, and which there are. See checkpoint.h. */
#include "checkpoint.h"
#include "saver.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The process may be one of another host: a save that is under way changes its file all the time.
 */
enum { ABANDONED_SECONDS = 3600, FUTURE_SECONDS = 60 };

/* ---- folders and names ---- */

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
			"--model-prefix %s: this build writes no files, for it is without HDF5",
			prefix);
	if (strlen(prefix) + sizeof "-0001-000001.h5.tmp-" + 32 > sizeof folder)
		MU_FAIL(MU_ERR_USAGE, "--model-prefix %s: too long a name", prefix);
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

/* ---- arrays ---- */

static void add_worker(struct checkpoint_arrays *a, int worker, size_t n_slices)
{
	for (size_t i = 0; i < a->own.n; i++)
		for (size_t k = 0; k < n_slices; k++)
			a->all[a->n++] = (struct checkpoint_array){.of = CHECKPOINT_ARRAY_OWN,
								   .which = (int)i,
								   .worker = worker,
								   .key = k};
}

enum mu_status mu_checkpoint_arrays_make(const struct mu_engine *e, struct checkpoint_arrays *a,
					 bool own)
{
	enum mu_status st = MU_OK;
	size_t n_slices, workers = (size_t)e->topology->num_workers;
	const struct mu_slice *slices = mu_plan_slices(e->plan, &n_slices);

	*a = (struct checkpoint_arrays){.n = 0};
	a->n_states = mu_kv_state_names(e->kv, a->states);
	if (own)
		mu_kv_own(e->kv, &a->own);
	MU_TRY(MU_ALLOC(a->all, (1 + (size_t)a->n_states + a->own.n * workers) * n_slices,
			"table of a checkpoint"));
	for (size_t k = 0; k < n_slices; k++)
		a->all[a->n++] =
			(struct checkpoint_array){.of = CHECKPOINT_ARRAY_WEIGHTS, .key = k};
	for (int i = 0; i < a->n_states; i++)
		for (size_t k = 0; k < n_slices; k++)
			if (slices[k].rule == MU_SLICE_LEARN)
				a->all[a->n++] = (struct checkpoint_array){
					.of = CHECKPOINT_ARRAY_STATE, .which = i, .key = k};
	for (size_t w = 0; w < workers; w++)
		add_worker(a, (int)w, n_slices);
out:
	return st;
}

void mu_checkpoint_arrays_release(struct checkpoint_arrays *a)
{
	mu_free(a->all);
	*a = (struct checkpoint_arrays){.n = 0};
}

void mu_checkpoint_weights_name(const struct mu_slice *slice, char *text, size_t nbytes)
{
	snprintf(text, nbytes, "%s/%s", slice->rule == MU_SLICE_AVERAGE ? "aux" : "arg",
		 slice->name);
}

void mu_checkpoint_array_name(const struct mu_engine *e, const struct checkpoint_arrays *a,
			      const struct checkpoint_array *array, char *text, size_t nbytes)
{
	size_t n;
	const struct mu_slice *slice = &mu_plan_slices(e->plan, &n)[array->key];

	if (array->of == CHECKPOINT_ARRAY_WEIGHTS)
		mu_checkpoint_weights_name(slice, text, nbytes);
	else if (array->of == CHECKPOINT_ARRAY_STATE)
		snprintf(text, nbytes, "%s/%s/%s", e->conf->sync_period > 1 ? "block" : "state",
			 a->states[array->which], slice->name);
	else
		snprintf(text, nbytes, "worker-%d/%s/%s", array->worker,
			 a->own.arrays[array->which].name, slice->name);
}

/* ---- positions ---- */

static void print_metrics(const struct mu_metrics *m, char *text, size_t nbytes)
{
	snprintf(text, nbytes,
		 "samples %.17g predictions %.17g correct %.17g top_k %.17g cross_entropy %.17g "
		 "log_loss %.17g",
		 m->samples, m->predictions, m->correct, m->top_k, m->cross_entropy, m->log_loss);
}

static bool scan_metrics(struct mu_metrics *m, const char *text)
{
	return sscanf(text,
		      "samples %lf predictions %lf correct %lf top_k %lf cross_entropy %lf "
		      "log_loss %lf",
		      &m->samples, &m->predictions, &m->correct, &m->top_k, &m->cross_entropy,
		      &m->log_loss) == 6;
}

enum mu_status mu_checkpoint_position_write(const struct checkpoint_position *at,
					    struct mu_array_file *file)
{
	enum mu_status st = MU_OK;
	char text[512];

	snprintf(text, sizeof text, "%zu", at->epoch);
	MU_TRY(mu_array_file_set_text(file, "epoch", text));
	snprintf(text, sizeof text, "%zu", at->step);
	MU_TRY(mu_array_file_set_text(file, "step", text));
	snprintf(text, sizeof text,
		 "window %zu, %zu workers, %zu samples a step, %.17g samples, %llu updates, last "
		 "lr %.17g",
		 at->window_first, at->workers, at->batch, at->progress,
		 (unsigned long long)at->updates, at->last_lr);
	MU_TRY(mu_array_file_set_text(file, "position", text));
	print_metrics(&at->total, text, sizeof text);
	MU_TRY(mu_array_file_set_text(file, "metrics_epoch", text));
	print_metrics(&at->window, text, sizeof text);
	MU_TRY(mu_array_file_set_text(file, "metrics_window", text));
	snprintf(text, sizeof text, "best %.17g, rate %.17g", at->plateau.best, at->plateau.rate);
	MU_TRY(mu_array_file_set_text(file, "plateau", text));
	snprintf(text, sizeof text, "%.17g, %zu good batches since, %zu left out",
		 at->loss_scale.scale, at->loss_scale.good, at->loss_scale.left_out);
	MU_TRY(mu_array_file_set_text(file, "loss_scale", text));
out:
	return st;
}

/* What an earlier version has saved has none. */
static enum mu_status read_loss_scale(struct checkpoint_loss_scale *s, struct mu_array_file *file,
				      const char *path)
{
	enum mu_status st = MU_OK;
	char text[128];
	bool there;

	MU_TRY(mu_array_file_has_text(file, "loss_scale", &there));
	if (!there)
		goto out;
	MU_TRY(mu_array_file_get_text(file, "loss_scale", text, sizeof text));
	if (sscanf(text, "%lf, %zu good batches since, %zu left out", &s->scale, &s->good,
		   &s->left_out) != 3 ||
	    !(s->scale >= 0) || !isfinite(s->scale))
		MU_FAIL(MU_ERR_FORMAT, "%s: attribute \"loss_scale\" is not one: \"%s\"", path,
			text);
out:
	return st;
}

enum mu_status mu_checkpoint_position_read(struct checkpoint_position *at,
					   struct mu_array_file *file, const char *path)
{
	enum mu_status st = MU_OK;
	unsigned long long updates;
	char text[512];
	bool there;

	MU_TRY(mu_array_file_get_text(file, "epoch", text, sizeof text));
	at->epoch = strtoul(text, NULL, 10);
	MU_TRY(mu_array_file_get_text(file, "step", text, sizeof text));
	at->step = strtoul(text, NULL, 10);
	MU_TRY(mu_array_file_get_text(file, "position", text, sizeof text));
	if (sscanf(text,
		   "window %zu, %zu workers, %zu samples a step, %lf samples, %llu updates, last "
		   "lr %lf",
		   &at->window_first, &at->workers, &at->batch, &at->progress, &updates,
		   &at->last_lr) != 6 ||
	    at->workers == 0 || at->workers > INT_MAX || !(at->progress >= 0) ||
	    !isfinite(at->progress))
		MU_FAIL(MU_ERR_FORMAT, "%s: attribute \"position\" is not one: \"%s\"", path, text);
	at->updates = updates;
	MU_TRY(read_loss_scale(&at->loss_scale, file, path));
	MU_TRY(mu_array_file_get_text(file, "metrics_epoch", text, sizeof text));
	if (!scan_metrics(&at->total, text))
		MU_FAIL(MU_ERR_FORMAT, "%s: attribute \"metrics_epoch\": \"%s\"", path, text);
	MU_TRY(mu_array_file_get_text(file, "metrics_window", text, sizeof text));
	if (!scan_metrics(&at->window, text))
		MU_FAIL(MU_ERR_FORMAT, "%s: attribute \"metrics_window\": \"%s\"", path, text);
	MU_TRY(mu_array_file_has_text(file, "plateau", &there));
	if (!there) /* an earlier version has saved it */
		goto out;
	MU_TRY(mu_array_file_get_text(file, "plateau", text, sizeof text));
	if (sscanf(text, "best %lf, rate %lf", &at->plateau.best, &at->plateau.rate) != 2)
		MU_FAIL(MU_ERR_FORMAT, "%s: attribute \"plateau\": \"%s\"", path, text);
out:
	return st;
}

/* ---- files ---- */

/* What stands behind "-0001.h5" or "-0001-000250.h5"; NULL: this is neither. */
static const char *behind_ending(const char *text)
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
	const char *behind = behind_ending(text);

	return behind && !*behind;
}

/* Behind the prefix a name that mu_replace_begin gives, of a process that is not there any more. */
static bool is_abandoned(const char *text, const struct stat *status)
{
	const char *behind = behind_ending(text);
	long pid;

	if (!behind || sscanf(behind, ".tmp-%ld", &pid) != 1 || pid <= 0 || pid > INT_MAX)
		return false;
	return S_ISREG(status->st_mode) &&
	       time(NULL) - status->st_mtim.tv_sec > ABANDONED_SECONDS &&
	       kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

void mu_checkpoint_files_sweep(const char *prefix)
{
	char folder[CHECKPOINT_PATH], path[CHECKPOINT_PATH];
	const char *base = split(prefix, folder);
	DIR *d = opendir(folder);

	for (const struct dirent *e; d && (e = readdir(d));) {
		struct stat status;

		if (strncmp(e->d_name, base, strlen(base)) != 0)
			continue;
		snprintf(path, sizeof path, "%.*s%.255s", (int)(base - prefix), prefix, e->d_name);
		if (stat(path, &status) == 0 && is_abandoned(e->d_name + strlen(base), &status) &&
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
	char *behind;

	file->epoch = strtoul(ending + 1, &behind, 10);
	file->step = *behind == '-' ? strtoul(behind + 1, NULL, 10) : 0;
}

/* Files into the table, or only counted while there is none. No folder: no files. */
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

/* Where P-latest points to, and when it was made. False: there is no such link. */
static bool read_latest(const char *prefix, struct checkpoint_file *latest)
{
	char folder[CHECKPOINT_PATH], link[CHECKPOINT_PATH + 8], target[CHECKPOINT_PATH];
	const char *base = split(prefix, folder);
	struct stat status;
	ssize_t n;

	snprintf(link, sizeof link, "%s-latest", prefix);
	n = readlink(link, target, sizeof target - 1);
	if (n <= 0 || lstat(link, &status) != 0)
		return false;
	target[n] = '\0';
	if (strncmp(target, base, strlen(base)) != 0 || !is_ending(target + strlen(base)))
		return false;
	read_place(target + strlen(base), latest);
	latest->changed = status.st_mtim;
	return true;
}

/* saved: what was saved a moment ago; NULL: what P-latest says. */
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

/* A link of that name replaces the old one at once. */
static enum mu_status point_latest(const char *prefix, const char *path)
{
	enum mu_status st = MU_OK;
	const char *slash = strrchr(path, '/');
	char link[CHECKPOINT_PATH], temporary[CHECKPOINT_PATH + 32];

	snprintf(link, sizeof link, "%s-latest", prefix);
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

enum mu_status mu_checkpoint_files_settle(const struct conf *v, const char *path)
{
	enum mu_status st = MU_OK;
	struct checkpoint_files files = {.n = 0};

	MU_TRY(point_latest(v->model_prefix, path));
	if (v->keep == 0)
		goto out;
	MU_TRY(find_files(v->model_prefix, path, &files));
	for (size_t i = (size_t)v->keep; i < files.n; i++)
		if (strcmp(files.of[i].path, path) != 0 && unlink(files.of[i].path) != 0)
			MU_FAIL(MU_ERR_IO, "--keep %ld: %s cannot be removed: %s", v->keep,
				files.of[i].path, strerror(errno));
out:
	mu_checkpoint_files_release(&files);
	return st;
}
