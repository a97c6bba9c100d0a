/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a job: rank 0 reads them, and every rank gets a copy. */
#ifndef TRAIN_ARGUMENTS_H
#define TRAIN_ARGUMENTS_H

#include <mpi.h>

#include <muster/base.h>

#include "checkpoint/checkpoint.h"
#include "conf/conf.h"

/* Words of rank 0 on every rank: argv of pointers into text. */
struct train_words {
	char *text;
	char **argv;
	long argc;
};

/* Rank 0's arguments on every rank. */
struct train_arguments {
	struct train_words given, site; /* site: as mu_conf_site_apply takes them */
	const struct conf_arguments *own; /* rank 0's, as it has read them; elsewhere empty */
};

/* Rank 0: with the options of its --config files. Ranks that run another program, or have other
 * options, are refused. Collective over comm. */
enum mu_status mu_train_read_arguments(struct conf_arguments *own, MPI_Comm comm, int argc,
				       char *const argv[]);
/* Collective over comm; own is rank 0's. */
enum mu_status mu_train_share_arguments(struct train_arguments *a, MPI_Comm comm,
					const struct conf_arguments *own);
void mu_train_release_arguments(struct train_arguments *a);

/* What a checkpoint says where options do not: whose settings are options, and values. */
enum mu_status mu_train_description_take(struct checkpoint_description *d, struct mu_options *o,
					 struct conf *v, const struct train_arguments *a);

#endif
