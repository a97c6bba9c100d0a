/* SPDX-License-Identifier: Apache-2.0 */
/*
 * P-run.json: what was run, where, with which versions, and how it ended. Worker 0 writes it when
 * training begins, and again at the end. A killed job leaves "running": the next job with the same
 * prefix changes that to "lost" and keeps the file as P-run-K.json.
 */
#include "run_file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <muster/storage.h>

#include "checkpoint.h"
#include "git_version.h"

static void put_options(struct mu_json *j, const struct mu_options *o)
{
	mu_json_open(j, "options", '{');
	for (size_t i = 0; i < o->n; i++) {
		const struct mu_option *option = &o->table[i];
		const void *value = (const char *)o->values + option->offset;

		if (mu_option_unset(o, option)) {
			mu_json_text(j, option->name, NULL);
			continue;
		}
		switch (option->type) {
		case MU_OPTION_FLAG: mu_json_bool(j, option->name, *(const bool *)value); break;
		case MU_OPTION_INT:
			mu_json_number(j, option->name, (double)*(const long *)value);
			break;
		case MU_OPTION_REAL: mu_json_number(j, option->name, *(const double *)value); break;
		case MU_OPTION_STRING:
			mu_json_text(j, option->name, *(const char *const *)value);
			break;
		case MU_OPTION_WORD:
			mu_json_text(j, option->name, option->words[*(const int *)value]);
			break;
		}
	}
	mu_json_close(j, '}');
}

/* The options that were given: --config repeats the run with these. */
static void put_given(struct mu_json *j, const struct mu_options *o)
{
	mu_json_open(j, "given", '[');
	for (size_t i = 0; i < o->n; i++)
		if (o->given[i])
			mu_json_text(j, NULL, o->table[i].name);
	mu_json_close(j, ']');
}

static void put_versions(struct mu_json *j, const struct mu_engine *e)
{
	const struct mu_device *device = &e->devices.of[0].device;
	char text[160];

	mu_json_open(j, "versions", '{');
	mu_json_text(j, "muster", PACKAGE_VERSION);
	mu_json_text(j, "git", *MU_GIT_VERSION ? MU_GIT_VERSION : NULL);
	mu_comm_version(text, sizeof text);
	mu_json_text(j, "mpi", text);
	mu_json_text(j, "hdf5", mu_array_file_version());
	device->ops->describe(device, text, sizeof text);
	mu_json_text(j, "device", text); /* with the version of oneDNN */
	mu_json_close(j, '}');
}

/* What options without a value, and "auto", have become. */
static void put_settled(struct mu_json *j, const struct mu_engine *e)
{
	const struct conf *v = e->conf;
	const struct mu_shape *shape = mu_input_shape(e->train);
	struct mu_net_counts counts;
	const char *note = mu_net_notes(e->net);

	mu_net_counts(e->net, &counts);
	mu_json_open(j, "settled", '{');
	mu_json_text(j, "network", v->network_name);
	mu_json_text(j, "structure", note && *note ? note : NULL);
	mu_json_number(j, "layers", (double)mu_plan_layers(e->plan));
	mu_json_number(j, "parameters", (double)counts.params);
	mu_json_number(j, "classes", (double)e->train->classes);
	mu_json_open(j, "shape", '[');
	for (int i = 1; i < shape->ndims; i++)
		mu_json_number(j, NULL, (double)shape->dims[i]);
	mu_json_close(j, ']');
	mu_json_number(j, "batch_size", (double)e->train->config.batch);
	mu_json_number(j, "steps", (double)e->steps);
	mu_json_text(j, "optimizer", v->optimizer);
	mu_json_number(j, "lr", mu_conf_base_lr(v, e->team.n));
	mu_json_text(j, "kv_store", v->kv_store);
	mu_json_number(j, "workers", e->members->num_workers);
	mu_json_number(j, "servers", e->members->num_servers);
	mu_json_number(j, "threads", e->n_threads);
	mu_json_close(j, '}');
}

/* memory: bytes of each rank; NULL: not known yet. */
static void put_ranks(struct mu_json *j, const struct mu_members *m, const double *memory)
{
	mu_json_open(j, "ranks", '[');
	for (int r = 0; r < m->size; r++) {
		int index;
		const enum mu_role role = mu_members_role(m, r, &index);

		mu_json_open(j, NULL, '{');
		mu_json_number(j, "rank", r);
		mu_json_text(j, "role", mu_role_name(role));
		mu_json_number(j, "index", index);
		mu_json_text(j, "host", m->topology.hosts[r]);
		if (memory)
			mu_json_number(j, "peak_memory", memory[r]);
		mu_json_close(j, '}');
	}
	mu_json_close(j, ']');
}

/* UTC, in the format of RFC 3339. */
static void put_time(struct mu_json *j, const char *name, time_t when)
{
	char text[32];
	struct tm tm;

	if (when == 0 || !gmtime_r(&when, &tm) ||
	    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		mu_json_text(j, name, NULL);
	else
		mu_json_text(j, name, text);
}

/* Worker 0's process, so that its host can tell whether it still runs. */
static void put_process(struct mu_json *j, const struct mu_members *m)
{
	const long pid = getpid();

	mu_json_open(j, "process", '{');
	mu_json_text(j, "host", m->topology.host);
	mu_json_number(j, "pid", (double)pid);
	mu_json_number(j, "start_ticks", (double)mu_process_started(pid));
	mu_json_close(j, '}');
}

/* Where an error was detected, and the calls that passed it on. */
static void put_places(struct mu_json *j, const struct checkpoint_run_file *f)
{
	mu_json_open(j, "trace", '[');
	for (size_t i = 0; i < f->n_places; i++)
		mu_json_text(j, NULL, f->places[i]);
	mu_json_close(j, ']');
}

static void put_energy(struct mu_json *j, const struct checkpoint_run_file *f)
{
	const struct engine_energy *g = &f->e->energy;

	mu_json_open(j, "energy", '{');
	mu_json_number(j, "joules", g->job + g->mine - g->summed);
	mu_json_number(j, "joules_before", f->joules_before);
	mu_json_text(j, "of", g->of);
	mu_json_text(j, "without", g->not_of);
	mu_json_close(j, '}');
}

static void put_all(struct mu_json *j, const struct checkpoint_run_file *f, const char *state,
		    const char *cause)
{
	mu_json_open(j, NULL, '{');
	mu_json_text(j, "exit", state);
	mu_json_text(j, "cause", cause);
	put_time(j, "started", f->started);
	put_time(j, "ended", f->ended);
	put_process(j, f->e->members);
	if (f->e->energy.known)
		put_energy(j, f);
	mu_json_number(j, "seed", (double)f->e->conf->seed);
	mu_json_text(j, "resumed_from", *f->resumed_from ? f->resumed_from : NULL);
	put_versions(j, f->e);
	put_ranks(j, f->e->members, f->memory);
	put_options(j, f->options);
	put_given(j, f->options);
	put_settled(j, f->e);
	if (f->n_places > 0)
		put_places(j, f);
	mu_json_close(j, '}');
}

static void path_of(const struct conf *v, char path[CHECKPOINT_PATH])
{
	snprintf(path, CHECKPOINT_PATH, "%s-run.json", v->model_prefix);
}

static enum mu_status write_file(const struct checkpoint_run_file *f, const char *state,
				 const char *cause)
{
	enum mu_status st = MU_OK;
	struct mu_replace replace = {0};
	char path[CHECKPOINT_PATH];
	struct mu_json json = {.file = NULL};

	path_of(f->e->conf, path);
	MU_TRY(mu_replace_open(&replace, path));
	json.file = replace.stream;
	put_all(&json, f, state, cause);
	MU_TRY(mu_replace_commit(&replace));
out:
	mu_replace_release(&replace);
	return st;
}

/* An error here does not end the run. The trace of the run's own error is kept. */
static void try_file(const struct checkpoint_run_file *f, const char *state, const char *cause)
{
	struct mu_trace *before = mu_trace_detach();

	if (write_file(f, state, cause) != MU_OK) {
		mu_log_warn("the file about this run cannot be written: %s", mu_trace_message());
		mu_trace_clear();
	}
	mu_trace_attach(before);
}

/* ---- the file of the run before this one ---- */

/* What is read of it: put_all writes these within the first PREVIOUS_LINES lines. */
struct previous {
	char exit[16], host[64];
	long pid;
	unsigned long long start_ticks;
	double joules, joules_before;
};
enum { PREVIOUS_LINES = 24 };

/* false: there is none. */
static bool read_previous(const char *path, struct previous *f)
{
	FILE *file;
	char *line = NULL;
	size_t room = 0;

	*f = (struct previous){.pid = 0};
	if (mu_stream_open(&file, path) != MU_OK) {
		mu_trace_clear();
		return false;
	}
	for (int i = 0; i < PREVIOUS_LINES && getline(&line, &room, file) > 0; i++) {
		sscanf(line, " \"exit\": \"%15[a-z]", f->exit);
		sscanf(line, " \"host\": \"%63[^\"]", f->host);
		sscanf(line, " \"pid\": %ld", &f->pid);
		sscanf(line, " \"start_ticks\": %llu", &f->start_ticks);
		sscanf(line, " \"joules\": %lf", &f->joules);
		sscanf(line, " \"joules_before\": %lf", &f->joules_before);
	}
	free(line);
	fclose(file);
	return true;
}

/* A run that goes on from a checkpoint: of the runs before it with this prefix, lost ones, too. */
static double joules_before(const struct conf *v, const struct checkpoint_resume *resumed)
{
	char path[CHECKPOINT_PATH];
	struct previous f;
	double sum;

	path_of(v, path);
	if (!*resumed->path || !read_previous(path, &f))
		return 0;
	sum = f.joules + f.joules_before;
	return isfinite(sum) && sum > 0 ? sum : 0;
}

static bool has_finished(const struct conf *v)
{
	char path[CHECKPOINT_PATH];
	struct previous f;

	path_of(v, path);
	return read_previous(path, &f) && strcmp(f.exit, "finished") == 0;
}

/* Rewrites the file with the exit "lost". */
static enum mu_status mark_lost(const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_replace replace = {0};
	FILE *file;
	char *line = NULL;
	size_t room = 0;

	MU_TRY(mu_stream_open(&file, path));
	MU_TRY(mu_replace_open(&replace, path));
	while (getline(&line, &room, file) > 0)
		if (strcmp(line, "  \"exit\": \"running\",\n") == 0)
			fputs("  \"exit\": \"lost\",\n", replace.stream);
		else if (strcmp(line, "  \"cause\": null,\n") == 0)
			fputs("  \"cause\": \"it told no end: killed, or its host was lost\",\n",
			      replace.stream);
		else
			fputs(line, replace.stream);
	if (ferror(file))
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
	MU_TRY(mu_replace_commit(&replace));
out:
	free(line);
	if (file)
		fclose(file);
	mu_replace_release(&replace);
	return st;
}

/* Renames the file to P-run-K.json. */
static enum mu_status keep_previous(const struct conf *v, const char *path)
{
	enum mu_status st = MU_OK;
	char kept[CHECKPOINT_PATH + 32];
	int k = 0;

	do
		snprintf(kept, sizeof kept, "%s-run-%d.json", v->model_prefix, ++k);
	while (access(kept, F_OK) == 0);
	if (rename(path, kept) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be renamed to %s: %s", path, kept, strerror(errno));
	mu_log_info("the run before this one was killed, or its host was lost: %s tells of it",
		    kept);
out:
	return st;
}

static enum mu_status settle_previous(const struct conf *v, const char *host)
{
	enum mu_status st = MU_OK;
	char path[CHECKPOINT_PATH];
	struct previous f;
	bool running;

	path_of(v, path);
	if (!read_previous(path, &f))
		goto out;
	running = strcmp(f.exit, "running") == 0;
	if (running && f.start_ticks > 0 && strcmp(f.host, host) == 0 &&
	    mu_process_started(f.pid) == f.start_ticks) {
		mu_log_warn("%s: another run with this prefix is under way, its worker 0 is "
			    "process %ld: each removes and replaces files of the other",
			    path, f.pid);
		goto out;
	}
	if (running)
		MU_TRY(mark_lost(path));
	/* "lost": a start that was killed between the two calls. */
	if (running || strcmp(f.exit, "lost") == 0)
		MU_TRY(keep_previous(v, path));
out:
	return st;
}

void mu_checkpoint_run_file_begin(struct checkpoint_run_file *f, const struct mu_engine *e,
				  const struct checkpoint_resume *resumed,
				  const struct mu_options *options)
{
	if (!e->conf->model_prefix || e->conf->evaluate || !mu_members_lead(e->members))
		return;
	if (resumed->at.epoch >= (size_t)e->conf->num_epochs && has_finished(e->conf))
		return; /* nothing is left to train: the file of the run that trained stays */
	*f = (struct checkpoint_run_file){
		.e = e,
		.resumed_from = resumed->path,
		.options = options,
		.started = time(NULL),
		.joules_before = joules_before(e->conf, resumed),
	};
	if (settle_previous(e->conf, e->members->topology.host) != MU_OK) {
		mu_log_warn("the file about the run before this one cannot be kept: %s",
			    mu_trace_message());
		mu_trace_clear();
	}
	try_file(f, "running", NULL);
}

void mu_checkpoint_run_file_energy(const struct checkpoint_run_file *f)
{
	if (f->options && f->e->energy.known)
		try_file(f, "running", NULL);
}

/* "peak memory: at most 85.2 MB (rank 0, h1); rank 0 85.2, rank 1 83.0, ... MB" */
static void log_memory(const struct mu_members *m, const double *memory)
{
	char list[512] = "";
	size_t n = 0;
	int most = 0;

	for (int r = 0; r < m->size; r++) {
		most = memory[r] > memory[most] ? r : most;
		if (n + 64 < sizeof list)
			n += (size_t)snprintf(list + n, sizeof list - n, "%s rank %d %.1f",
					      r ? "," : "", r, memory[r] / 1e6);
		else if (list[n - 1] != '.')
			n += (size_t)snprintf(list + n, sizeof list - n, ", ...");
	}
	mu_log_detail("peak memory: at most %.1f MB (rank %d, %s);%s MB", memory[most] / 1e6, most,
		      m->topology.hosts[most], list);
}

enum mu_status mu_checkpoint_run_file_memory(struct checkpoint_run_file *f,
					     const struct mu_members *m)
{
	enum mu_status st = MU_OK;
	struct rusage used = {.ru_maxrss = 0};
	double mine;

	getrusage(RUSAGE_SELF, &used);
	mine = 1024.0 * (double)used.ru_maxrss; /* it counts KiB */
	if (!f->memory)
		MU_TRY(mu_agree(MU_ALLOC(f->memory, (size_t)m->size, "memory of ranks"), m->comm));
	MU_TRY(mu_allgather(&mine, f->memory, sizeof mine, m->comm));
	if (mu_members_lead(m))
		log_memory(m, f->memory);
out:
	return st;
}

static void end_file(struct checkpoint_run_file *f, enum mu_status st, const char *halted)
{
	char cause[1024];

	f->ended = time(NULL);
	snprintf(cause, sizeof cause, "%s", mu_trace_message());
	while (st != MU_OK && f->n_places < CHECKPOINT_PLACES &&
	       mu_trace_place(f->n_places, f->places[f->n_places], sizeof *f->places))
		f->n_places++;
	if (st != MU_OK)
		try_file(f, "error", *cause ? cause : mu_status_name(st));
	else if (halted)
		try_file(f, "halted", halted);
	else
		try_file(f, "finished", NULL);
}

void mu_checkpoint_run_file_back(struct checkpoint_run_file *f, const char *cause)
{
	f->ended = time(NULL);
	if (f->options)
		try_file(f, "error", cause);
	mu_free(f->memory);
	f->memory = NULL;
}

void mu_checkpoint_run_file_end(struct checkpoint_run_file *f, enum mu_status st,
				const char *halted)
{
	if (f->options)
		end_file(f, st, halted);
	mu_free(f->memory);
	f->memory = NULL;
}
