/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mubench report: logs of experiments as one table. Exploration: a row for each. Weak scaling,
 * where the batch of a replica is the same: an efficiency of 100 t(b) / t(N) per cent. Strong
 * scaling, where the batch of a step is the same: 100 b t(b) / (N t(N)). N replicas, b the fewest
 * of the group, t the time of a batch. Speed-up is throughput over that of b replicas.
 */
#include "sweep.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <muster/storage.h>

struct values {
	const char *type, *format, *output;
	bool help;
};

#define AT(member) .offset = offsetof(struct values, member)

static const struct mu_option table[] = {
	{.name = "type",
	 .type = MU_OPTION_STRING,
	 AT(type),
	 .initial = "exploration",
	 .choices = "exploration|weak-scaling|strong-scaling",
	 .group = "Options",
	 .help = "NAME  a row for each experiment, or experiments of one batch per replica or per "
		 "step beside each other, with their efficiency, unless nodes share a host"},
	{.name = "format",
	 .type = MU_OPTION_STRING,
	 AT(format),
	 .initial = "markdown",
	 .choices = "markdown|csv|json",
	 .group = "Options",
	 .help = "NAME  of the table; json of an exploration holds all parameters"},
	{.name = "output",
	 .type = MU_OPTION_STRING,
	 AT(output),
	 .group = "Options",
	 .help = "FILE  instead of the standard output"},
	{.name = "help", .type = MU_OPTION_FLAG, AT(help), .group = "Options", .help = "this text"},
};

static const char usage[] =
	"mubench report LOG|FOLDER... [options]\n\n"
	"Make a table of the logs of mubench run, or of all files *.log in folders.\n";

/* A column of every table: its title, and the name in logs. */
static const struct {
	const char *title, *name;
} columns[] = {
	{"model", "exp.model"},
	{"phase", "exp.phase"},
	{"kv-store", "mxnet.kv_store"},
	{"nodes", "exp.num_nodes"},
	{"replicas", "exp.num_replicas"},
	{"servers", "muster.num_servers"},
	{"dtype", "exp.dtype"},
	{"replica batch", "exp.replica_batch"},
	{"effective batch", "exp.effective_batch"},
	{"ms per batch", "results.time"},
	{"samples/s", "results.throughput"},
};

/* ---- the logs ---- */

static int is_log(const struct dirent *entry)
{
	return mu_stem(entry->d_name, ".log") > 0;
}

static enum mu_status read_log(const char *path, json_t *logs)
{
	enum mu_status st = MU_OK;
	json_t *log = NULL;

	MU_TRY(sweep_log_read(path, &log));
	if (!*sweep_text(log, "exp.model"))
		MU_FAIL(MU_ERR_FORMAT, "%s: it has no line __exp.model__: not a log of mubench run",
			path);
	if (!json_object_get(log, "exp.status"))
		json_object_set_new(log, "exp.status", json_string("unfinished"));
	json_array_append(logs, log);
out:
	json_decref(log);
	return st;
}

static enum mu_status read_folder(const char *path, json_t *logs)
{
	enum mu_status st = MU_OK;
	struct dirent **names = NULL;
	const int n = scandir(path, &names, is_log, alphasort);
	char file[PATH_MAX];

	if (n < 0)
		MU_FAIL(MU_ERR_IO, "%s: %s", path, strerror(errno));
	if (n == 0)
		MU_FAIL(MU_ERR_IO, "%s: the folder holds no file *.log", path);
	for (int i = 0; i < n; i++) {
		if ((size_t)snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name) >=
		    sizeof file)
			MU_FAIL(MU_ERR_IO, "%.60s...: the path is too long", path);
		MU_TRY(read_log(file, logs));
	}
out:
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return st;
}

static enum mu_status read_logs(const struct sweep_command *c, json_t *logs)
{
	enum mu_status st = MU_OK;
	struct stat status;

	if (c->n_names == 0)
		MU_FAIL(MU_ERR_USAGE, "no logs are named: mubench report LOG|FOLDER... [options]");
	for (size_t i = 0; i < c->n_names; i++) {
		if (stat(c->names[i], &status) == 0 && S_ISDIR(status.st_mode))
			MU_TRY(read_folder(c->names[i], logs));
		else
			MU_TRY(read_log(c->names[i], logs));
	}
out:
	return st;
}

/* ---- rows ---- */

static void put_cell(json_t *row, const json_t *log, const char *title, const char *name)
{
	json_t *value = json_object_get(log, name);
	const bool result = strncmp(name, "results.", 8) == 0;

	if (value && (sweep_log_is_ok(log) || !result))
		json_object_set(row, title, value);
	else
		json_object_set_new(row, title, json_null());
}

static bool is_column(const char *name)
{
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		if (strcmp(columns[i].name, name) == 0)
			return true;
	return false;
}

/* Have these logs more than one value of it? */
static bool differs(const json_t *logs, const char *name)
{
	const json_t *first = json_array_get(logs, 0), *log;
	size_t i;

	json_array_foreach(logs, i, log)
	{
		if (!sweep_is_same(log, first, name))
			return true;
	}
	return false;
}

static bool any_has(const json_t *logs, const char *name)
{
	const json_t *log;
	size_t i;

	json_array_foreach(logs, i, log)
	{
		if (json_object_get(log, name))
			return true;
	}
	return false;
}

/* The columns, and what else tells these logs apart; of a good log its results. */
static json_t *make_row(const json_t *log, const json_t *logs)
{
	json_t *row = json_object();

	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		put_cell(row, log, columns[i].title, columns[i].name);
	for (size_t i = 0; i < sweep_parameter_count; i++) {
		const char *name = sweep_parameters[i].name;

		if (sweep_parameters[i].identity && !is_column(name) && differs(logs, name))
			put_cell(row, log, name, name);
	}
	if (any_has(logs, "results.accuracy"))
		put_cell(row, log, "accuracy", "results.accuracy");
	return row;
}

struct experiment {
	const json_t *log;
	char *group; /* what is the same in the group, as text */
	json_int_t n;
	double time; /* of a batch; 0: none */
};

/* All that makes an experiment but the numbers of nodes, workers and servers, and the batch that is
 * not kept. */
static char *group_of(const json_t *log, bool weak)
{
	static const char *const free_ones[] = {"exp.num_nodes", "muster.workers_per_node",
						"muster.num_servers", "exp.gpus",
						"exp.replica_batch"};
	json_t *group = json_object();
	char *text;

	for (size_t i = 0; i < sweep_parameter_count; i++) {
		const char *name = sweep_parameters[i].name;
		bool same = sweep_parameters[i].identity;

		for (size_t j = 0; j < sizeof free_ones / sizeof *free_ones; j++)
			same = same && strcmp(name, free_ones[j]) != 0;
		if (same)
			json_object_set(group, name, json_object_get(log, name));
	}
	json_object_set_new(group, "gpus", json_boolean(*sweep_text(log, "exp.gpus") != '\0'));
	json_object_set(group, "batch",
			json_object_get(log, weak ? "exp.replica_batch" : "exp.effective_batch"));
	text = json_dumps(group, JSON_COMPACT);
	json_decref(group);
	return text;
}

/* By group, in it by replicas; of one number the fastest first, who has no result last. */
static int compare(const void *a, const void *b)
{
	const struct experiment *x = a, *y = b;
	const int group = strcmp(x->group, y->group);

	if (group != 0)
		return group;
	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	if ((x->time > 0) != (y->time > 0))
		return x->time > 0 ? -1 : 1;
	return (x->time > y->time) - (x->time < y->time);
}

/* There is no efficiency of nodes that are pretended: they share the cores of a host. */
static void add_scaling(json_t *row, const struct experiment *e, const struct experiment *base,
			bool weak)
{
	const bool known = e->time > 0 && base && base->time > 0 && base->n > 0 && e->n > 0;
	const double batch = (double)sweep_whole(e->log, "exp.effective_batch");
	const double base_batch = known ? (double)sweep_whole(base->log, "exp.effective_batch") : 0;
	const json_int_t hosts = json_integer_value(json_object_get(e->log, "results.hosts"));
	double efficiency;

	if (!known) {
		json_object_set_new(row, "speed-up", json_null());
		json_object_set_new(row, "efficiency %", json_null());
		return;
	}
	json_object_set_new(row, "speed-up",
			    json_real(batch / e->time / (base_batch / base->time)));
	if (hosts > 0 && hosts < sweep_whole(e->log, "exp.num_nodes")) {
		json_object_set_new(row, "efficiency %", json_null());
		return;
	}
	efficiency = 100 * base->time / e->time;
	if (!weak)
		efficiency *= (double)base->n / (double)e->n;
	json_object_set_new(row, "efficiency %", json_real(efficiency));
}

/* Sorted; released by release_list, also after an error. */
static enum mu_status make_list(const json_t *logs, bool weak, struct experiment **list)
{
	enum mu_status st = MU_OK;
	const size_t n = json_array_size(logs);

	MU_TRY(MU_ALLOC(*list, n, "experiments"));
	for (size_t i = 0; i < n; i++) {
		const json_t *log = json_array_get(logs, i);
		const bool good = sweep_log_is_ok(log);

		(*list)[i] = (struct experiment){
			log, group_of(log, weak),
			json_integer_value(json_object_get(log, "exp.num_replicas")),
			good ? json_number_value(json_object_get(log, "results.time")) : 0};
		if (!(*list)[i].group)
			MU_FAIL(MU_ERR_MEMORY, "no memory for the names of groups");
	}
	qsort(*list, n, sizeof **list, compare);
out:
	return st;
}

static void release_list(struct experiment *list, size_t n)
{
	for (size_t i = 0; list && i < n; i++)
		free(list[i].group);
	mu_free(list);
}

/* ---- kinds of report ---- */

static enum mu_status explore(const json_t *logs, json_t **rows)
{
	enum mu_status st = MU_OK;
	struct experiment *list = NULL;
	const size_t n = json_array_size(logs);

	*rows = json_array();
	MU_TRY(make_list(logs, true, &list));
	for (size_t i = 0; i < n; i++) {
		json_t *row = make_row(list[i].log, logs);

		json_object_set(row, "status", json_object_get(list[i].log, "exp.status"));
		json_array_append_new(*rows, row);
	}
out:
	release_list(list, n);
	return st;
}

static enum mu_status scale(const json_t *logs, bool weak, json_t **rows)
{
	enum mu_status st = MU_OK;
	const size_t n = json_array_size(logs);
	const struct experiment *base = NULL;
	struct experiment *list = NULL;

	*rows = json_array();
	MU_TRY(make_list(logs, weak, &list));
	for (size_t i = 0; i < n; i++) {
		json_t *row = make_row(list[i].log, logs);

		if (i == 0 || strcmp(list[i].group, list[i - 1].group) != 0)
			base = NULL;
		if (!base && list[i].time > 0)
			base = &list[i];
		add_scaling(row, &list[i], base, weak);
		json_array_append_new(*rows, row);
	}
out:
	release_list(list, n);
	return st;
}

/* ---- tables ---- */

static void print_cell(FILE *file, const json_t *value, bool csv)
{
	const char *text = json_string_value(value);

	if (json_is_integer(value))
		fprintf(file, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		fprintf(file, csv ? "%.9g" : "%.5g", json_real_value(value));
	else if (!text)
		fputs(csv ? "" : "-", file);
	else if (csv)
		mu_text_put_csv(file, text);
	else
		fputs(mu_shown(text), file);
}

static void print_table(FILE *file, const json_t *rows, bool csv)
{
	json_t *first = json_array_get(rows, 0), *row, *value;
	const char *title;
	size_t i;

	json_object_foreach(first, title, value)
	{
		fputs(!csv ? "| " : strcmp(title, columns[0].title) == 0 ? "" : ",", file);
		fprintf(file, csv ? "%s" : "%s ", title);
	}
	fputs(csv ? "\n" : "|\n", file);
	json_object_foreach(csv ? NULL : first, title, value) fputs("| --- ", file);
	fputs(csv ? "" : "|\n", file);
	json_array_foreach(rows, i, row)
	{
		json_object_foreach(row, title, value)
		{
			fputs(!csv ? "| " : strcmp(title, columns[0].title) == 0 ? "" : ",", file);
			print_cell(file, value, csv);
			fputs(csv ? "" : " ", file);
		}
		fputs(csv ? "\n" : "|\n", file);
	}
}

static void print_json(FILE *file, json_t *rows)
{
	json_t *root = json_object();

	json_object_set(root, "data", rows);
	json_dumpf(root, file, JSON_INDENT(2));
	fputc('\n', file);
	json_decref(root);
}

static enum mu_status print(const struct values *v, json_t *rows, FILE *file, const char *name)
{
	enum mu_status st = MU_OK;

	if (strcmp(v->format, "json") == 0)
		print_json(file, rows);
	else
		print_table(file, rows, strcmp(v->format, "csv") == 0);
	if (fflush(file) != 0 || ferror(file))
		MU_FAIL(MU_ERR_IO, "%s: %s", name, strerror(errno));
out:
	return st;
}

/* The file is there whole or not at all. */
static enum mu_status write_file(const struct values *v, json_t *rows)
{
	enum mu_status st = MU_OK;
	struct mu_replace replace = {0};

	if (!v->output) {
		MU_TRY(print(v, rows, stdout, "the standard output"));
		goto out;
	}
	MU_TRY(mu_replace_open(&replace, v->output));
	MU_TRY(print(v, rows, replace.stream, v->output));
	MU_TRY(mu_replace_commit(&replace));
out:
	mu_replace_release(&replace);
	return st;
}

int sweep_main_report(int argc, char **argv)
{
	enum mu_status st = MU_OK;
	struct values v;
	struct sweep_command c = {usage, table, sizeof table / sizeof *table, &v, NULL, 0};
	json_t *logs = json_array(), *rows = NULL;
	bool done = false;

	MU_TRY(sweep_command_parse(&c, argc, argv, &done));
	if (done)
		goto out;
	MU_TRY(read_logs(&c, logs));
	if (strcmp(v.type, "exploration") != 0)
		MU_TRY(scale(logs, strcmp(v.type, "weak-scaling") == 0, &rows));
	else if (strcmp(v.format, "json") == 0)
		rows = json_incref(logs);
	else
		MU_TRY(explore(logs, &rows));
	MU_TRY(write_file(&v, rows));
out:
	json_decref(logs);
	json_decref(rows);
	return sweep_command_end("mubench report", st);
}
