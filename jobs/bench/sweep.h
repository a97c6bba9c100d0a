/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mubench run and mubench report: sweeps of training jobs, in the way of the Deep Learning
 * Benchmarking Suite (DLBS), whose configurations are accepted as far as they mean something here.
 *
 * A configuration is a JSON file with an object "parameters" and an object "variables", whose
 * values are lists: the experiments are "parameters" with each element of the product of these
 * lists, the first list changing slowest. Texts may hold ${name}, of a parameter or else of the
 * environment. sweep_table.c lists the parameters.
 *
 * An experiment is one job of the trainer and one log: lines `__name__=JSON value`, one for each
 * parameter, then what the job printed, then its results. Of a name that comes again the last value
 * counts; other lines mean nothing. An experiment is done when its log says so.
 *
 * Here an experiment is a JSON object with every parameter of the table, and what follows from
 * them: exp.num_replicas, exp.effective_batch. Nothing of this knows MPI: jobs are processes.
 */
#ifndef BENCH_SWEEP_H
#define BENCH_SWEEP_H

#include <jansson.h>
#include <muster/base.h>

#include "sweep_main.h"

/* The words before the first option are names; the rest is parsed into values. *done: --help was
 * asked for and is answered. names points into argv. */
struct sweep_command {
	const char *usage; /* the line, and a text after an empty one */
	const struct mu_option *table;
	size_t n_options;
	void *values;
	char *const *names; /* out */
	size_t n_names;     /* out */
};
enum mu_status sweep_command_parse(struct sweep_command *c, int argc, char **argv, bool *done);
/* The exit status for st; prints an error. */
int sweep_command_end(const char *name, enum mu_status st);

/* ---- parameters ---- */

enum sweep_type {
	SWEEP_TEXT,
	SWEEP_GIVEN_TEXT, /* an experiment has it only where it is given */
	SWEEP_WHOLE,
	SWEEP_WITHOUT_EFFECT
};

struct sweep_parameter {
	const char *name;
	enum sweep_type type;
	const char *initial; /* default as text; NULL: must be given */
	long least;          /* of SWEEP_WHOLE */
	const char *choices; /* of a text, "a|b"; NULL: anything */
	const char *help;
	bool identity; /* another value is another experiment */
};

extern const struct sweep_parameter sweep_parameters[];
extern const size_t sweep_parameter_count;

/* MU_ERR_USAGE with the nearest name for one that is not in the table. where: file, for errors. */
enum mu_status sweep_parameter_find(const struct sweep_parameter **out, const char *name,
				    const char *where);
/* What value is as a value of this parameter; a new reference. Texts that hold "${" pass. */
enum mu_status sweep_parameter_take(const struct sweep_parameter *p, const json_t *value,
				    const char *where, json_t **out);
/* "" and 0 for what is not there. */
const char *sweep_text(const json_t *experiment, const char *name);
long sweep_whole(const json_t *experiment, const char *name);

/* Have both the same, or neither any? */
bool sweep_is_same(const json_t *a, const json_t *b, const char *name);

/* JSON of nbytes and a zero byte, which is overwritten; a new reference. path: for errors. */
enum mu_status sweep_json_read(const char *path, char *text, size_t nbytes, json_t **out);

/* ---- configurations ---- */

/* An array of experiments that are right by themselves and among each other; json_decref it. */
enum mu_status sweep_config_read(const char *path, json_t **experiments);
/* ${name} in all texts; sweep_config_read has done it. */
enum mu_status sweep_expand(json_t *experiment, const char *where);

/* ---- a job ---- */

/* Words of a command; the texts are owned, the last of list is NULL. */
struct sweep_words {
	char **list;
	size_t n;
};

/* What follows from the parameters, and whether they go together. */
enum mu_status sweep_job_settle(json_t *experiment, const char *where);
/* The command that trains; released by the caller also after an error. */
enum mu_status sweep_job_command(const json_t *experiment, struct sweep_words *words);
/* The words of a text; one option with its value. */
enum mu_status sweep_words_add(struct sweep_words *words, const char *text);
enum mu_status sweep_words_option(struct sweep_words *words, const char *name, const char *value);
void sweep_words_release(struct sweep_words *words);
/* One line of it, for people; mu_free it. */
enum mu_status sweep_words_text(const struct sweep_words *words, char **text);
/* Batches of an experiment: those of a line of the trainer's log, before what counts, in all. */
struct sweep_batches {
	long line, warm_up, all;
};
void sweep_job_batches(const json_t *experiment, struct sweep_batches *b);

/* ---- containers ---- */

bool sweep_container_is_used(const json_t *experiment);
/* Are mpirun and all ranks in one container? */
bool sweep_container_has_mpirun(const json_t *experiment);
/* Whether the parameters of a container go together. */
enum mu_status sweep_container_settle(json_t *experiment, const char *where);
/* What starts the container, if it stands before mpirun (has_mpirun), or before the trainer. */
enum mu_status sweep_container_add(const json_t *experiment, bool has_mpirun,
				   struct sweep_words *words);

/* ---- logs ---- */

void sweep_log_put(FILE *log, const char *name, const json_t *value);
/* Names and values of a log, as an object. MU_ERR_FORMAT: there are none. A value that is no JSON
 * (nan) is told of and left out. */
enum mu_status sweep_log_read(const char *path, json_t **values);
/* Did this experiment come to its end, with a result? */
bool sweep_log_is_ok(const json_t *values);
/* Hosts of a job, by the start of its log; 0: unknown. */
long sweep_log_hosts(const char *path);
/* Of the last epoch's validation, or of its training where there was none; below 0: unknown. */
double sweep_log_accuracy(const char *path);
/* Milliseconds a batch, of each line of speed that counts: a new array. Empty: the job did not get
 * there. */
enum mu_status sweep_log_times(const char *path, const json_t *experiment, json_t **times);

#endif
