/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of options. After parsing each part settles its own options. */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <muster/image.h>
#include <muster/input.h>
#include <muster/net.h>
#include <muster/optim.h>

#include "options.h"

/* ---- config_file.c ---- */

/* A command line with the options of its --config files before its own. */
struct conf_arguments {
	int argc;
	char **argv;
	char **places; /* "file:line" of arguments of files; else NULL */
	/* "--name=value" of what the file of a run records, and does not repeat; or NULL */
	struct conf_arguments *recorded;
	/* site.c: argv[0] is the path; argc 0: there is no file. NULL: not read */
	struct conf_arguments *site;
};
/* _check: are the options of files good? MU_ERR_USAGE names file and line. Release it after an
 * error, too. Not collective. */
enum mu_status mu_conf_arguments_read(struct conf_arguments *a, int argc, char *const argv[]);
enum mu_status mu_conf_arguments_check(const struct conf_arguments *a);
void mu_conf_arguments_release(struct conf_arguments *a);
/* For other readers: a word of the command line; the lines "name value" of a file. */
enum mu_status mu_conf_arguments_add(struct conf_arguments *a, const char *word);
enum mu_status mu_conf_lines_read(struct conf_arguments *a, const char *path);

/* ---- site.c: defaults of a site's file. argv: the file's path, then "--name=value" ---- */

/* Sets a->site. MU_ERR_USAGE names file and line. Not collective. */
enum mu_status mu_conf_site_read(struct conf_arguments *a);
/* After mu_conf_options_open or _find, before options are parsed: none of them counts as given. */
enum mu_status mu_conf_site_apply(struct mu_options *o, struct conf *v, int argc,
				  char *const argv[]);
/* Worker 0: the line of the log, after options are parsed. */
void mu_conf_site_tell(const struct mu_options *o, int argc, char *const argv[]);

/* config_record.c: a warning of values that this run has not, although the file of a run records
 * them: they were chosen by other defaults, or edited. */
void mu_conf_recorded_tell(const struct conf_arguments *a, const struct mu_options *o);

/* ---- optimizer.c ---- */

/* Parts of mu_conf_settle: the learning rate, then the optimiser. */
enum mu_status mu_conf_schedule_settle(const struct mu_options *o, struct conf *v);
enum mu_status mu_conf_optimizer_settle(const struct mu_options *o, struct conf *v);
/* --lr, scaled with the workers (teams of them) if that was asked for. */
double mu_conf_base_lr(const struct conf *v, size_t workers);
/* Samples of the warm-up: of --warmup-epochs, or of --warmup-steps, of which an epoch has
 * `updates` > 0, of `each` samples, but the last one may have fewer. */
double mu_conf_warmup(const struct conf *v, double samples_per_epoch, size_t updates, size_t each);
/* The schedule of settled options; lr: at its start, after scaling; warmup: in samples.
 * MU_ERR_USAGE: the warm-up leaves nothing for the schedule. */
enum mu_status mu_conf_schedule(const struct conf *v, double lr, double samples_per_epoch,
				double warmup, struct mu_schedule *s);

/* ---- training.c ---- */

/* The part of mu_conf_settle about defaults of the network: before the facts. *pad: as
 * mu_reader.settle takes it. */
enum mu_status mu_conf_training_settle(const struct mu_options *o, const struct mu_network *network,
				       struct conf *v, long *pad);

/* ---- interface.c ---- */

/* The network interface of --interface or of the environment; NULL: neither is set. */
const char *mu_conf_interface(const struct conf *v);
/* MU_ERR_USAGE if this host has no such interface with an address; a site's default may lack where
 * the job has one node. Not collective. */
enum mu_status mu_conf_interface_check(const struct conf *v, int nodes);

/* foreign.c. MU_ERR_USAGE for an option of other programs that none here stands for: what to do. */
enum mu_status mu_conf_check_foreign(int argc, char *const argv[]);
/* "eth1 10.0.0.1": this interface, else all that carry TCP to other hosts; "": none. */
void mu_conf_interface_address(const struct conf *v, char *text, size_t nbytes);
/* Warn of variables that the user has set to another interface. */
void mu_conf_interface_report(const struct conf *v);

/*
 * Before MPI_Init: make MPI use the interface that --interface of argv or DMLC_INTERFACE names.
 * Sets the environment variables that MPI libraries read; existing values are kept. MU_ERR_USAGE if
 * this host has no such interface; mu_train reports other errors of argv. Not collective.
 */
enum mu_status mu_conf_choose_interface(int argc, char *const argv[]);

/* ---- messages.c ---- */

/* In the message of an error: options in place of the library's settings. */
void mu_conf_name_options(void);

/* ---- store.c: the store, local SGD and compression ---- */

/* Parts of mu_conf_settle: compression, and the store of a job. */
enum mu_status mu_conf_compression_settle(const struct mu_options *o, struct conf *v);
enum mu_status mu_conf_job_settle(const struct mu_options *o, const struct conf_ranks *ranks,
				  struct conf *v);
/* Is --summary asked of as many ranks as the store needs at least? Not of a net that is cut. */
bool mu_conf_sums_up_job(const struct conf *v, int ranks);
void mu_conf_store_config(const struct conf *v, struct mu_kv_config *config);

#endif
