/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mubench run: the experiments of a configuration, one after the other, each with a log. What is
 * done is left out, failures do not end it. Everything is checked before the first job starts.
 */
#include "sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct values {
	bool dry_run, help;
};

#define AT(member) .offset = offsetof(struct values, member)

static const struct mu_option table[] = {
	{.name = "dry-run",
	 .type = MU_OPTION_FLAG,
	 AT(dry_run),
	 .group = "Options",
	 .help = "check the configuration and show the commands"},
	{.name = "help", .type = MU_OPTION_FLAG, AT(help), .group = "Options", .help = "this text"},
};

static const char usage[] =
	"mubench run CONFIG.json [options]\n\n"
	"Run the experiments of a configuration: jobs with the \"parameters\" of a JSON\n"
	"file and each combination of its \"variables\", which are lists. Each writes a log; what\n"
	"has a good one is left out, failures do not end the rest. mubench report reads them.\n\n"
	"  {\"parameters\": {\"exp.model\": \"lenet\", \"exp.replica_batch\": 64},\n"
	"   \"variables\": {\"exp.num_nodes\": [1, 2], \"mxnet.kv_store\": [\"dist_sync\",\n"
	"                                                                \"dist_sharded\"]}}\n\n"
	"Exit status: 0 all experiments are done, 1 some failed, 2 wrong use.\n";

/* What became of an experiment. */
enum outcome { TO_DO, RUN, FAILED, DONE_BEFORE, LEFT_OUT, SHOWN };

struct runner {
	json_t *experiments;
	enum outcome *outcome;
	size_t n, to_do, done;
	double start;
};

static volatile sig_atomic_t came;  /* a signal */
static volatile sig_atomic_t child; /* the job's process, 0: none */

/* The job gets it too, and ends as it does on signals. */
static void pass_on(int number)
{
	came = number;
	if (child > 0)
		kill((pid_t)child, SIGTERM);
}

static void take_signals(void)
{
	struct sigaction action = {.sa_handler = pass_on};

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* ---- what is there already ---- */

/* The log's experiment has these parameters; *name: the first that differs. */
static bool is_same(const json_t *experiment, const json_t *log, const char **name)
{
	for (size_t i = 0; i < sweep_parameter_count; i++) {
		*name = sweep_parameters[i].name;
		if (sweep_parameters[i].identity && !sweep_is_same(experiment, log, *name))
			return false;
	}
	return true;
}

/* A log that is there is of this experiment, or one that may be written over. */
static enum mu_status look_at_log(const json_t *experiment, enum outcome *outcome)
{
	enum mu_status st = MU_OK;
	const char *path = sweep_text(experiment, "exp.log_file"), *name;
	const char *rerun = sweep_text(experiment, "exp.rerun");
	json_t *log = NULL;
	struct stat status;

	if (strcmp(rerun, "always") == 0 || stat(path, &status) != 0 || status.st_size == 0)
		goto out;
	MU_TRY(sweep_log_read(path, &log));
	if (!is_same(experiment, log, &name))
		MU_FAIL(MU_ERR_USAGE,
			"%s: the log of another experiment, with another %s: move it away, or "
			"change \"exp.log_file\" (\"exp.rerun\": \"always\" writes over it)",
			path, name);
	if (sweep_log_is_ok(log) || strcmp(rerun, "never") == 0)
		*outcome = DONE_BEFORE;
out:
	json_decref(log);
	return st;
}

/* The folder of the log, with those that it lies in. */
static enum mu_status make_folder(const char *log)
{
	enum mu_status st = MU_OK;
	char path[PATH_MAX];

	if (strlen(log) >= sizeof path)
		MU_FAIL(MU_ERR_USAGE, "%.60s...: the path is too long", log);
	for (const char *c = strchr(log + 1, '/'); c; c = strchr(c + 1, '/')) {
		snprintf(path, sizeof path, "%.*s", (int)(c - log), log);
		if (mkdir(path, 0777) != 0 && errno != EEXIST)
			MU_FAIL(MU_ERR_IO, "%s: the folder cannot be made: %s", path,
				strerror(errno));
	}
	snprintf(path, sizeof path, "%s", log);
	*(strrchr(path, '/') ? strrchr(path, '/') : path) = '\0';
	if (access(*path ? path : *log == '/' ? "/" : ".", W_OK | X_OK) != 0)
		MU_FAIL(MU_ERR_IO, "%s: the folder cannot be written to: %s", *path ? path : ".",
			strerror(errno));
out:
	return st;
}

static enum mu_status show(const json_t *experiment)
{
	enum mu_status st = MU_OK;
	struct sweep_words words = {0};
	char *text = NULL;

	MU_TRY(sweep_job_command(experiment, &words));
	MU_TRY(sweep_words_text(&words, &text));
	printf("%s\n", text);
out:
	sweep_words_release(&words);
	mu_free(text);
	return st;
}

/* All that can be known before the first job: nothing has been run when this fails. */
static enum mu_status prepare(struct runner *r, bool dry)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < r->n; i++) {
		const json_t *experiment = json_array_get(r->experiments, i);
		const char *status = sweep_text(experiment, "exp.status");
		struct sweep_words words = {0};

		if (strcmp(status, "disabled") == 0)
			r->outcome[i] = LEFT_OUT;
		else if (dry || strcmp(status, "simulate") == 0)
			r->outcome[i] = SHOWN;
		else
			MU_TRY(look_at_log(experiment, &r->outcome[i]));
		r->to_do += r->outcome[i] == TO_DO;
		st = sweep_job_command(experiment, &words);
		sweep_words_release(&words);
		MU_TRY(st);
		if (r->outcome[i] == SHOWN)
			MU_TRY(show(experiment));
	}
	for (size_t i = 0; i < r->n; i++)
		if (r->outcome[i] == TO_DO)
			MU_TRY(make_folder(
				sweep_text(json_array_get(r->experiments, i), "exp.log_file")));
out:
	return st;
}

/* What configurations of DLBS say and nothing here asks for. */
static void tell_without_effect(const json_t *experiments)
{
	const json_t *experiment = json_array_get(experiments, 0), *e;
	bool container = false;
	size_t k;

	json_array_foreach(experiments, k, e) container = container || sweep_container_is_used(e);
	for (size_t i = 0; i < sweep_parameter_count; i++) {
		const struct sweep_parameter *p = &sweep_parameters[i];

		if (p->type == SWEEP_WITHOUT_EFFECT && json_object_get(experiment, p->name))
			printf("%s has no effect here\n", p->name);
		if (p->type == SWEEP_GIVEN_TEXT && !container &&
		    strcmp(p->name, "exp.docker") != 0 && json_object_get(experiment, p->name))
			printf("%s has no effect without a container\n", p->name);
	}
	if (*sweep_text(experiment, "mxnet.rendezvous"))
		printf("mxnet.rendezvous %s: ranks find each other by MPI, so no address and no "
		       "port is needed; an interface is used\n",
		       sweep_text(experiment, "mxnet.rendezvous"));
}

/* ---- one experiment ---- */

static void put_time(FILE *log, const char *name)
{
	char text[64];
	time_t now = time(NULL);
	json_t *value;

	strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", localtime(&now));
	value = json_string(text);
	sweep_log_put(log, name, value);
	json_decref(value);
}

static void put_text(FILE *log, const char *name, const char *text)
{
	json_t *value = json_string(text);

	sweep_log_put(log, name, value);
	json_decref(value);
}

/* A log that is new, or to be appended to; no link that somebody has laid is followed. */
static FILE *open_log(const char *path, bool new)
{
	const int flags = new ? O_CREAT | O_EXCL : O_APPEND;
	FILE *log = NULL;
	int fd;

	if (new)
		unlink(path);
	fd = open(path, flags | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd >= 0)
		log = fdopen(fd, new ? "w" : "a");
	if (fd >= 0 && !log)
		close(fd);
	return log;
}

/* Parameters and command; before the job, so that a log always says what it is. */
static enum mu_status begin_log(json_t *experiment, const struct sweep_words *words)
{
	enum mu_status st = MU_OK;
	const char *path = sweep_text(experiment, "exp.log_file"), *name;
	FILE *log = open_log(path, true);
	json_t *value;
	char *text = NULL;

	if (!log)
		MU_FAIL(MU_ERR_IO, "%s: %s", path, strerror(errno));
	MU_TRY(sweep_words_text(words, &text));
	json_object_foreach(experiment, name, value)
	{
		if (strcmp(name, "exp.status") != 0) /* until the end there is none */
			sweep_log_put(log, name, value);
	}
	put_text(log, "muster.command", text);
	put_time(log, "results.start_time");
out:
	mu_free(text);
	if (log && fclose(log) != 0 && st == MU_OK)
		st = mu_trace_start(MU_ERR_IO, __FILE__, __LINE__, "%s: %s", path, strerror(errno));
	return st;
}

/* *status: of waitpid. */
static enum mu_status run_job(const struct sweep_words *words, const char *log, int *status)
{
	enum mu_status st = MU_OK;
	extern char **environ;
	posix_spawn_file_actions_t actions;
	pid_t pid = 0;
	int error;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_APPEND | O_NOFOLLOW, 0);
	posix_spawn_file_actions_adddup2(&actions, 1, 2);
	error = posix_spawnp(&pid, words->list[0], &actions, NULL, words->list, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error)
		MU_FAIL(MU_ERR_IO, "%s: cannot be started: %s", words->list[0], strerror(error));
	child = (sig_atomic_t)pid;
	if (came) /* before it was known whom to tell */
		kill(pid, SIGTERM);
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
	child = 0;
out:
	return st;
}

/* Mean, rate and all times; MU_ERR_FORMAT says what is missing. */
static enum mu_status put_results(FILE *log, const json_t *experiment, double *rate)
{
	enum mu_status st = MU_OK;
	char path[40]; /* this very file, whatever its name has become */
	const long batch = sweep_whole(experiment, "exp.effective_batch");
	struct sweep_batches b;
	json_t *times = NULL, *time, *value;
	double sum = 0, accuracy;
	size_t i, n;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(log));
	sweep_job_batches(experiment, &b);
	n = (size_t)(sweep_whole(experiment, "exp.num_batches") / b.line);
	MU_TRY(sweep_log_times(path, experiment, &times));
	if (json_array_size(times) < n)
		MU_FAIL(MU_ERR_FORMAT,
			"the log tells the speed of %zu times %ld batches, not of %zu times: the "
			"epoch is too short",
			json_array_size(times), b.line, n);
	json_array_foreach(times, i, time) sum += json_real_value(time);
	value = json_real(sum / (double)json_array_size(times));
	*rate = 1e3 * (double)batch / json_real_value(value);
	sweep_log_put(log, "results.time", value);
	json_decref(value);
	value = json_real(*rate);
	sweep_log_put(log, "results.throughput", value);
	json_decref(value);
	sweep_log_put(log, "results.time_data", times);
	value = json_integer(sweep_log_hosts(path));
	sweep_log_put(log, "results.hosts", value);
	json_decref(value);
	accuracy = sweep_log_accuracy(path);
	if (accuracy < 0)
		goto out;
	value = json_real(accuracy);
	sweep_log_put(log, "results.accuracy", value);
	json_decref(value);
out:
	json_decref(times);
	return st;
}

/* The end of the log; *why: NULL if the experiment is done. */
static enum mu_status end_log(const json_t *experiment, int status, double *rate, char why[256])
{
	enum mu_status st = MU_OK;
	const char *path = sweep_text(experiment, "exp.log_file");
	FILE *log = open_log(path, false);

	*why = '\0';
	if (!log)
		MU_FAIL(MU_ERR_IO, "%s: %s", path, strerror(errno));
	put_time(log, "results.end_time");
	if (came)
		snprintf(why, 256, "ended by signal %d", (int)came);
	else if (WIFSIGNALED(status))
		snprintf(why, 256, "the job was ended by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		snprintf(why, 256, "exit status %d", WEXITSTATUS(status));
	else if (put_results(log, experiment, rate) != MU_OK)
		snprintf(why, 256, "%s", mu_trace_message());
	mu_trace_clear();
	if (*why)
		put_text(log, "exp.status_msg", why);
	put_text(log, "exp.status", *why ? "failure" : "ok");
	fflush(log);
	if (ferror(log))
		MU_FAIL(MU_ERR_IO, "%s: %s", path, strerror(errno));
out:
	if (log && fclose(log) != 0 && st == MU_OK)
		st = mu_trace_start(MU_ERR_IO, __FILE__, __LINE__, "%s: %s", path, strerror(errno));
	return st;
}

/* "; about 3 min left" */
static void tell_left(const struct runner *r)
{
	const size_t left = r->to_do - r->done;
	const double seconds = (mu_now() - r->start) / (double)r->done * (double)left;

	if (left == 0)
		printf("\n");
	else if (seconds < 90)
		printf("; about %.0f s left\n", seconds);
	else
		printf("; about %.0f min left\n", ceil(seconds / 60));
}

static enum mu_status run_one(struct runner *r, size_t i)
{
	enum mu_status st = MU_OK;
	json_t *experiment = json_array_get(r->experiments, i);
	const char *log = sweep_text(experiment, "exp.log_file");
	const double start = mu_now();
	struct sweep_words words = {0};
	double rate = 0;
	char why[256];
	int status = 0;

	MU_TRY(sweep_job_command(experiment, &words));
	MU_TRY(begin_log(experiment, &words));
	printf("[%zu/%zu] %s, %s, nodes %ld, batch %ld: ", r->done + 1, r->to_do,
	       sweep_text(experiment, "exp.model"), sweep_text(experiment, "mxnet.kv_store"),
	       sweep_whole(experiment, "exp.num_nodes"),
	       sweep_whole(experiment, "exp.effective_batch"));
	fflush(stdout);
	MU_TRY(run_job(&words, log, &status));
	MU_TRY(end_log(experiment, status, &rate, why));
	r->done++;
	r->outcome[i] = *why ? FAILED : RUN;
	if (*why)
		printf("failed (%s; %s), %.1f s", why, log, mu_now() - start);
	else
		printf("%.6g samples/s, %.1f s", rate, mu_now() - start);
	tell_left(r);
	fflush(stdout);
out:
	sweep_words_release(&words);
	return st;
}

static size_t count(const struct runner *r, enum outcome outcome)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->outcome[i] == outcome;
	return n;
}

static enum mu_status run_all(struct runner *r)
{
	enum mu_status st = MU_OK;

	take_signals();
	r->start = mu_now();
	for (size_t i = 0; i < r->n && !came; i++)
		if (r->outcome[i] == TO_DO)
			MU_TRY(run_one(r, i));
	printf("%zu experiments: %zu run, %zu failed, %zu done before, %zu disabled", r->n,
	       count(r, RUN), count(r, FAILED), count(r, DONE_BEFORE), count(r, LEFT_OUT));
	if (count(r, TO_DO) > 0)
		printf(", %zu not begun", count(r, TO_DO));
	printf("\n");
out:
	return st;
}

static void print_parameters(void)
{
	printf("\nParameters and variables (default):\n");
	for (size_t i = 0; i < sweep_parameter_count; i++) {
		const struct sweep_parameter *p = &sweep_parameters[i];

		if (p->type != SWEEP_WITHOUT_EFFECT)
			printf("  %-23s  %s%s%s%s\n", p->name, p->help,
			       p->initial && *p->initial ? " (" : "",
			       p->initial ? p->initial : " (must be given)",
			       p->initial && *p->initial ? ")" : "");
	}
}

int sweep_main_run(int argc, char **argv)
{
	enum mu_status st = MU_OK;
	struct values v;
	struct runner r = {0};
	struct sweep_command c = {usage, table, sizeof table / sizeof *table, &v, NULL, 0};
	bool done = false, failed = false;

	MU_TRY(sweep_command_parse(&c, argc, argv, &done));
	if (done) {
		print_parameters();
		goto out;
	}
	if (c.n_names != 1)
		MU_FAIL(MU_ERR_USAGE,
			"one configuration is needed, and %zu are named: mubench run "
			"CONFIG.json [options]",
			c.n_names);
	MU_TRY(sweep_config_read(c.names[0], &r.experiments));
	r.n = json_array_size(r.experiments);
	MU_TRY(MU_ALLOC(r.outcome, r.n, "outcomes"));
	MU_TRY(prepare(&r, v.dry_run));
	tell_without_effect(r.experiments);
	if (!v.dry_run)
		MU_TRY(run_all(&r));
	failed = count(&r, FAILED) > 0 || came;
out:
	json_decref(r.experiments);
	mu_free(r.outcome);
	return st == MU_OK && failed ? 1 : sweep_command_end("mubench run", st);
}
