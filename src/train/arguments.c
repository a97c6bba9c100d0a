/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of a job: see arguments.h. */
#include "arguments.h"

#include <stdlib.h>
#include <string.h>

#include <muster/comm.h>

#include "same.h"

enum mu_status mu_train_read_arguments(struct conf_arguments *own, MPI_Comm comm, int argc,
				       char *const argv[])
{
	enum mu_status st = MU_OK;
	int rank, size;

	MU_TRY(mu_train_same_program(comm, argc, argv));
	MU_TRY(mu_comm_rank(comm, &rank, &size));
	if (rank == 0) {
		MU_TRY(mu_conf_arguments_read(own, argc, argv));
		MU_TRY(mu_conf_site_read(own));
		MU_TRY(mu_conf_arguments_check(own));
	}
out:
	return st;
}

static enum mu_status share(struct train_words *w, MPI_Comm comm, const struct conf_arguments *own)
{
	enum mu_status st = MU_OK;
	const int argc = own ? own->argc : 0;
	long sizes[2] = {argc, 0};
	char *at;
	int rank, size;

	MU_TRY(mu_comm_rank(comm, &rank, &size));
	for (int i = 0; i < argc; i++)
		sizes[1] += (long)strlen(own->argv[i]) + 1;
	MU_TRY(mu_bcast(sizes, sizeof sizes, 0, comm));
	w->argc = sizes[0];
	w->text = malloc((size_t)sizes[1] + 1);
	w->argv = calloc((size_t)w->argc + 1, sizeof *w->argv);
	if (!w->text || !w->argv)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the arguments");
	if (w->argc == 0)
		goto out;
	at = w->text;
	for (int i = 0; rank == 0 && i < argc; i++)
		at = stpcpy(at, own->argv[i]) + 1;
	MU_TRY(mu_bcast(w->text, (size_t)sizes[1], 0, comm));
	at = w->text;
	for (long i = 0; i < w->argc; i++) {
		w->argv[i] = at;
		at += strlen(at) + 1;
	}
out:
	return st;
}

enum mu_status mu_train_share_arguments(struct train_arguments *a, MPI_Comm comm,
					const struct conf_arguments *own)
{
	enum mu_status st = MU_OK;

	MU_TRY(share(&a->given, comm, own));
	MU_TRY(share(&a->site, comm, own->site));
out:
	return st;
}

static void release(struct train_words *w)
{
	free(w->argv);
	free(w->text);
}

void mu_train_release_arguments(struct train_arguments *a)
{
	release(&a->given);
	release(&a->site);
}

/* Options of these owners, as they are given. */
static enum mu_status open_options(struct mu_options *o, struct conf *v,
				   const struct conf_owner *owner, const struct train_arguments *a)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_conf_options_open(o, v, owner));
	MU_TRY(mu_conf_site_apply(o, v, (int)a->site.argc, a->site.argv));
	MU_TRY(mu_options_parse(o, (int)a->given.argc, a->given.argv));
out:
	return st;
}

/* Where no option does, the checkpoint says whose settings are options. */
static enum mu_status find_owners(struct mu_options *o, struct conf *v,
				  const struct checkpoint_description *d,
				  const struct train_arguments *a)
{
	enum mu_status st = MU_OK;
	struct conf_owner owner = {.network = v->owner.network, .reader = v->owner.reader};
	const bool of_file = !v->network && *d->network;

	if (of_file)
		st = mu_network_find(&owner.network, d->network);
	if (st != MU_OK)
		mu_trace_prefix("%s: ", d->path);
	MU_TRY(st);
	MU_TRY(mu_checkpoint_objective(d, v, owner.network, &owner.objective));
	MU_TRY(open_options(o, v, &owner, a));
out:
	return st;
}

enum mu_status mu_train_description_take(struct checkpoint_description *d, struct mu_options *o,
					 struct conf *v, const struct train_arguments *a)
{
	enum mu_status st = MU_OK;
	struct conf_owner owner;

	MU_TRY(find_owners(o, v, d, a));
	MU_TRY(mu_checkpoint_description_apply(d, o, v));
	owner = (struct conf_owner){.network = v->owner.network, .objective = v->owner.objective};
	MU_TRY(mu_conf_reader(&owner.reader, v));
	if (owner.reader == v->owner.reader)
		goto out;
	/* The file says that the data are a text: other options are those of their reader. */
	MU_TRY(open_options(o, v, &owner, a));
	*d->taken = *d->differs = '\0';
	MU_TRY(mu_checkpoint_description_apply(d, o, v));
out:
	return st;
}
