/* SPDX-License-Identifier: Apache-2.0 */
/*
 * P-run.json: what was run, where, with which versions, and how it ended. Worker 0 writes it when
 * training begins, and again at the end; a job that was killed leaves "running".
 */
#include "checkpoint.h"

#include <errno.h>
#include <string.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <muster/storage.h>

#include "git_version.h"

static void put_options(struct mu_json *j, const struct mu_options *o)
{
	mu_json_open(j, "options", '{');
	for (size_t i = 0; i < o->n; i++) {
		const struct mu_option *option = &o->table[i];
		const void *value = (const char *)o->values + option->offset;

		switch (option->type) {
		case MU_OPTION_FLAG:
			mu_json_bool(j, option->name, *(const bool *)value);
			break;
		case MU_OPTION_INT:
			mu_json_number(j, option->name, (double)*(const long *)value);
			break;
		case MU_OPTION_REAL:
			mu_json_number(j, option->name, *(const double *)value);
			break;
		case MU_OPTION_STRING:
			mu_json_text(j, option->name, *(const char *const *)value);
			break;
		}
	}
	mu_json_close(j, '}');
}

static void put_versions(struct mu_json *j, const struct train_run *run)
{
	const struct mu_device *device = &run->devices.of[0].device;
	char text[160];

	mu_json_open(j, "versions", '{');
	mu_json_text(j, "muster", PACKAGE_VERSION);
	mu_json_text(j, "git", *MU_GIT_VERSION ? MU_GIT_VERSION : NULL);
	mu_comm_version(text, sizeof text);
	mu_json_text(j, "mpi", text);
	mu_json_text(j, "hdf5", mu_array_file_version());
	device->ops->describe(device, text, sizeof text);
	mu_json_text(j, "device", text); /* with oneDNN's */
	mu_json_close(j, '}');
}

static void put_ranks(struct mu_json *j, const struct mu_topology *t)
{
	mu_json_open(j, "ranks", '[');
	for (int r = 0; r < t->size; r++) {
		int index = 0;
		bool server = false;

		for (int w = 0; w < t->num_workers; w++)
			if (t->worker_ranks[w] == r)
				index = w;
		for (int s = 0; s < t->num_servers; s++)
			if (t->server_ranks[s] == r) {
				index = s;
				server = true;
			}
		mu_json_open(j, NULL, '{');
		mu_json_number(j, "rank", r);
		mu_json_text(j, "role",
				   mu_role_name(server ? MU_ROLE_SERVER : MU_ROLE_WORKER));
		mu_json_number(j, "index", index);
		mu_json_text(j, "host", t->hosts[r]);
		mu_json_close(j, '}');
	}
	mu_json_close(j, ']');
}

/* UTC, as RFC 3339 has it. */
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

static void put_all(struct mu_json *j, const struct train_run *run, const char *state,
		    const char *cause)
{
	const struct train_run_file *f = &run->run_file;

	mu_json_open(j, NULL, '{');
	mu_json_text(j, "exit", state);
	mu_json_text(j, "cause", cause);
	put_time(j, "started", f->started);
	put_time(j, "ended", f->ended);
	mu_json_number(j, "seed", (double)run->options.seed);
	mu_json_text(j, "resumed_from", *run->resume->path ? run->resume->path : NULL);
	put_versions(j, run);
	put_ranks(j, &run->topology);
	put_options(j, f->options);
	mu_json_close(j, '}');
}

static enum mu_status write_file(const struct train_run *run, const char *state, const char *cause)
{
	enum mu_status st = MU_OK;
	struct mu_replace replace = {NULL, NULL};
	char path[CHECKPOINT_PATH];
	struct mu_json json = {.file = NULL};
	bool good;

	snprintf(path, sizeof path, "%s-run.json", run->options.model_prefix);
	MU_TRY(mu_replace_begin(&replace, path));
	json.file = fopen(replace.temporary, "we");
	if (!json.file)
		MU_FAIL(MU_ERR_IO, "%s: %s", replace.temporary, strerror(errno));
	put_all(&json, run, state, cause);
	good = !ferror(json.file);
	good = fclose(json.file) == 0 && good;
	if (!good)
		MU_FAIL(MU_ERR_IO, "%s: %s", replace.temporary, strerror(errno));
	MU_TRY(mu_replace_commit(&replace));
out:
	mu_replace_release(&replace);
	return st;
}

/* A file about the run is no reason to end it. The trace of the run's own error stays. */
static void try_file(const struct train_run *run, const char *state, const char *cause)
{
	struct mu_trace *before = mu_trace_take();

	if (write_file(run, state, cause) != MU_OK) {
		mu_log_warn("the file about this run cannot be written: %s", mu_trace_message());
		mu_trace_clear();
	}
	mu_trace_give(before);
}

void mu_train_run_file_begin(struct train_run *run, const struct mu_options *options)
{
	if (!run->options.model_prefix || run->options.evaluate ||
	    run->topology.role != MU_ROLE_WORKER || run->topology.index != 0)
		return;
	run->run_file.options = options;
	run->run_file.started = time(NULL);
	try_file(run, "running", NULL);
}

void mu_train_run_file_end(struct train_run *run, enum mu_status st)
{
	char cause[1024];

	if (!run->run_file.options)
		return;
	run->run_file.ended = time(NULL);
	snprintf(cause, sizeof cause, "%s", mu_trace_message());
	if (st != MU_OK)
		try_file(run, "error", *cause ? cause : mu_status_name(st));
	else if (run->halt.wanted)
		try_file(run, "halted", run->halt.cause);
	else
		try_file(run, "finished", NULL);
}
