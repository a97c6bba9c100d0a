/* SPDX-License-Identifier: Apache-2.0 */
/* End time of the Slurm job: SLURM_JOB_END_TIME, or the output of squeue, which runs once a minute
 * in the background. Only the first output, before the training, is waited for. */
#include "queue_end.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <muster/base.h>

#include "program.h"

#define ASK_SECONDS 60.0
/* squeue is killed after this time. */
#define ANSWER_SECONDS 45.0
/* Time that training waits for the first output; squeue usually needs less than a second. */
#define FIRST_SECONDS 5.0

struct comm_queue {
	double before; /* seconds before the end at which training stops */
	double end;    /* in mu_now's time; 0: unknown */
	double limit;  /* time limit of the job in seconds; 0: unknown */
	char id[32];
	bool asks; /* uses squeue */
	struct comm_program squeue;
	char text[64];
	size_t n_text;
	double when; /* start of the last squeue */
	bool warned;
};

/* "5m", "90s", "1.5h" */
static enum mu_status read_duration(const char *text, double *seconds)
{
	enum mu_status st = MU_OK;
	static const struct {
		char letter;
		double seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
	char *end;

	*seconds = strtod(text, &end);
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (end != text && end[0] == units[i].letter && end[1] == '\0' && *seconds > 0 &&
		    *seconds < 1e9) {
			*seconds *= units[i].seconds;
			goto out;
		}
	MU_FAIL(MU_ERR_USAGE, "halt before %s: a length of time is needed, such as 90s, 5m or 1h",
		text);
out:
	return st;
}

/* A time in the format of time(2). */
static enum mu_status read_time(const char *variable, const char *text, double *seconds)
{
	enum mu_status st = MU_OK;
	char *end;

	*seconds = strtod(text, &end);
	if (end == text || *end != '\0' || !(*seconds > 0))
		MU_FAIL(MU_ERR_USAGE, "halt before: %s is \"%s\", and not a number of seconds",
			variable, text);
out:
	return st;
}

/* Is the time limit long enough for training at all? A job that restarts near its end may not train
 * now, and ends as usual (mu_comm_queue_ends); a job whose limit is too short never trains. */
static enum mu_status check_limit(const struct comm_queue *job, const char *before)
{
	enum mu_status st = MU_OK;

	if (job->limit > 0 && job->limit <= job->before)
		MU_FAIL(MU_ERR_USAGE,
			"halt before %s: the job's time limit is %.0f s, and training would end "
			"%.0f s before it: nothing could be trained; a longer limit is needed, or "
			"a shorter halt before",
			before, job->limit, job->before);
out:
	return st;
}

/* Read SLURM_JOB_END_TIME and, where it is set, SLURM_JOB_START_TIME. */
static enum mu_status read_end_time(struct comm_queue *job, const char *end, const char *before)
{
	enum mu_status st = MU_OK;
	const char *start = getenv("SLURM_JOB_START_TIME");
	double at, began, left;
	struct timespec now;

	MU_TRY(read_time("SLURM_JOB_END_TIME", end, &at));
	clock_gettime(CLOCK_REALTIME, &now);
	left = at - (double)now.tv_sec - (double)now.tv_nsec * 1e-9;
	job->end = mu_now() + left;
	if (start && *start) {
		MU_TRY(read_time("SLURM_JOB_START_TIME", start, &began));
		job->limit = at - began;
		MU_TRY(check_limit(job, before));
	} else if (left <= job->before) {
		MU_FAIL(MU_ERR_USAGE,
			"halt before %s: the job has only %.0f s left: nothing could be trained",
			before, left);
	}
out:
	return st;
}

void mu_comm_queue_close(struct comm_queue *job)
{
	if (!job)
		return;
	mu_comm_program_end(&job->squeue);
	mu_free(job);
}

static void warn(struct comm_queue *job, const char *what)
{
	if (!job->warned)
		mu_log_warn("halt before the job's end: squeue does not say when job %s ends: %s",
			    job->id, what);
	job->warned = true;
}

static void start_squeue(struct comm_queue *job)
{
	char words[][8] = {"squeue", "-h", "-o", "%L %l", "-j"};
	char *const argv[] = {words[0], words[1], words[2], words[3], words[4], job->id, NULL};
	int error;

	job->when = mu_now();
	job->n_text = 0;
	error = mu_comm_program_start(&job->squeue, argv, false);
	if (error != 0)
		warn(job, strerror(error));
}

/* D-HH:MM:SS, HH:MM:SS, MM:SS; false: another format. */
static bool read_left(const char *text, double *seconds)
{
	unsigned days, hours, minutes, rest;
	char more;

	if (sscanf(text, "%u-%u:%u:%u%c", &days, &hours, &minutes, &rest, &more) != 4) {
		days = 0;
		if (sscanf(text, "%u:%u:%u%c", &hours, &minutes, &rest, &more) != 3) {
			hours = 0;
			if (sscanf(text, "%u:%u%c", &minutes, &rest, &more) != 2)
				return false;
		}
	}
	*seconds = 86400.0 * days + 3600.0 * hours + 60.0 * minutes + rest;
	return true;
}

/* Two words: remaining time and time limit. */
static void parse_answer(struct comm_queue *job)
{
	char left[32] = "", limit[32] = "";
	double seconds;

	job->text[job->n_text] = '\0';
	job->text[strcspn(job->text, "\n")] = '\0';
	sscanf(job->text, "%31s %31s", left, limit);
	if (read_left(limit, &seconds))
		job->limit = seconds;
	if (read_left(left, &seconds))
		job->end = mu_now() + seconds;
	else if (strcmp(left, "UNLIMITED") == 0 || strcmp(left, "NOT_SET") == 0)
		job->end = 0;
	else
		warn(job, *job->text ? job->text : "no answer");
}

static void look(struct comm_queue *job)
{
	ssize_t n;

	if (job->squeue.pid <= 0)
		return;
	while ((n = read(job->squeue.output, job->text + job->n_text,
			 sizeof job->text - 1 - job->n_text)) > 0)
		job->n_text += (size_t)n;
	if (n == 0) { /* end of the output, or too much of it */
		mu_comm_program_end(&job->squeue);
		parse_answer(job);
	} else if (mu_now() - job->when > ANSWER_SECONDS) {
		mu_comm_program_end(&job->squeue);
		warn(job, "no answer");
	}
}

enum mu_status mu_comm_queue_open(struct comm_queue **out, const char *before)
{
	enum mu_status st = MU_OK;
	struct comm_queue *job = NULL;
	const char *end_time = getenv("SLURM_JOB_END_TIME"), *id = getenv("SLURM_JOB_ID");

	MU_TRY(MU_ALLOC(job, 1, "the job's end"));
	MU_TRY(read_duration(before, &job->before));
	if (end_time && *end_time) {
		MU_TRY(read_end_time(job, end_time, before));
	} else if (id && *id) {
		job->asks = true;
		snprintf(job->id, sizeof job->id, "%s", id);
		start_squeue(job);
	} else {
		MU_FAIL(MU_ERR_USAGE,
			"halt before %s is for jobs of Slurm, and neither SLURM_JOB_END_TIME nor "
			"SLURM_JOB_ID is set on the host of worker 0",
			before);
	}
	*out = job;
	job = NULL;
out:
	mu_free(job);
	return st;
}

enum mu_status mu_comm_queue_check(struct comm_queue *job, const char *before)
{
	static const struct timespec nap = {.tv_nsec = 5 * 1000 * 1000};

	for (look(job); job->squeue.pid > 0 && mu_now() - job->when < FIRST_SECONDS; look(job))
		nanosleep(&nap, NULL);
	return check_limit(job, before);
}

bool mu_comm_queue_ends(struct comm_queue *job)
{
	const double now = mu_now();

	look(job);
	if (job->asks && job->squeue.pid == 0 && now - job->when >= ASK_SECONDS)
		start_squeue(job);
	return job->end > 0 && job->end - now <= job->before;
}
