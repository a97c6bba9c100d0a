/* SPDX-License-Identifier: Apache-2.0 */
/* mu_train: arguments, then set-up, then training or serving, then the end. */
#include "train.h"

#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <muster/base.h>

/* Rank 0's arguments on every rank: argv of pointers into text. */
struct arguments {
	char *text;
	char **argv;
	long argc, nbytes;
};

static enum mu_status share_arguments(struct arguments *a, MPI_Comm comm, int argc,
				      char *const argv[])
{
	enum mu_status st = MU_OK;
	long sizes[2] = {argc, 0};
	char *at;
	int rank, size;

	MU_TRY(mu_comm_rank(comm, &rank, &size));
	for (int i = 0; i < argc; i++)
		sizes[1] += (long)strlen(argv[i]) + 1;
	MU_TRY(mu_bcast(sizes, sizeof sizes, 0, comm));
	a->argc = sizes[0];
	a->text = malloc((size_t)sizes[1]);
	a->argv = calloc((size_t)a->argc + 1, sizeof *a->argv);
	if (!a->text || !a->argv)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the arguments");
	at = a->text;
	for (int i = 0; rank == 0 && i < argc; i++)
		at = stpcpy(at, argv[i]) + 1;
	MU_TRY(mu_bcast(a->text, (size_t)sizes[1], 0, comm));
	at = a->text;
	for (long i = 0; i < a->argc; i++) {
		a->argv[i] = at;
		at += strlen(at) + 1;
	}
out:
	return st;
}

/* An error that every rank has for the same reason is rank 0's to tell. */
static enum mu_status told_once(enum mu_status st, int rank)
{
	if (st == MU_OK || rank == 0)
		return st;
	mu_trace_clear();
	return MU_ERR_PEER;
}

static enum mu_status parse(struct mu_options *o, struct train_run *run, const struct arguments *a)
{
	enum mu_status st = MU_OK;
	const struct train_options *v = &run->options;

	MU_TRY(mu_options_init(o, train_option_table, train_option_count, &run->options));
	MU_TRY(mu_options_parse(o, (int)a->argc, a->argv));
	if (!v->help && !v->help_all && !v->version && !v->info)
		MU_TRY(train_options_check(o, v));
out:
	return st;
}

/* --help and the like; true if one was asked for. */
static bool answer(const struct mu_options *o, const struct train_options *v, int rank)
{
	if (!v->help && !v->help_all && !v->version && !v->info)
		return false;
	if (rank != 0)
		return true;
	if (v->version)
		printf("Muster trainer %s\n", PACKAGE_VERSION);
	if (v->info)
		train_report_info(stdout);
	if (v->help || v->help_all) {
		printf("usage: mpirun -np N trainer --network NAME --data-dir DIR [--kv-store "
		       "NAME] [options]\n");
		mu_options_help(o, stdout, v->help_all);
	}
	return true;
}

static void start_log(const struct train_run *run, const char *prefix)
{
	mu_log_configure(&(struct mu_log_config){
		.level = MU_LOG_INFO,
		.time = run->options.log_time != 0,
		.prefix = strcmp(run->options.log_prefix, "none") == 0 ? NULL : prefix,
	});
}

/* Rules about store, servers and ranks; the same on every rank. */
static enum mu_status check_roles(struct train_run *run, int size)
{
	enum mu_status st = MU_OK;
	const struct train_options *v = &run->options;

	MU_TRY(mu_kv_type_check(v->kv_store, &run->has_servers, &run->distributed));
	if (!run->has_servers && v->num_servers > 0)
		MU_FAIL(MU_ERR_USAGE, "--num-servers %ld: --kv-store %s has no servers",
			v->num_servers, v->kv_store);
	if (run->has_servers && v->num_servers == 0)
		MU_FAIL(MU_ERR_USAGE, "--num-servers 0: --kv-store %s needs at least one server",
			v->kv_store);
	if (!run->distributed && size > 1)
		MU_FAIL(MU_ERR_USAGE,
			"--kv-store %s is for one rank, not %d; use dist_sync or dist_async",
			v->kv_store, size);
out:
	return st;
}

static enum mu_status find_roles(struct train_run *run, MPI_Comm comm, int rank, int size)
{
	enum mu_status st = MU_OK;
	struct train_options *v = &run->options;

	if (!v->kv_store)
		v->kv_store = size > 1 ? "dist_sync" : "device";
	MU_TRY(told_once(check_roles(run, size), rank));
	run->synchronous = strcmp(v->kv_store, "dist_async") != 0;
	MU_TRY(told_once(
		mu_topology_init(&run->topology, comm, run->has_servers ? (int)v->num_servers : 0),
		rank));
out:
	return st;
}

static enum mu_status work(struct train_run *run)
{
	enum mu_status st = MU_OK;

	if (run->topology.role == MU_ROLE_SERVER)
		return mu_kv_serve(run->kv);
	MU_TRY(mu_kv_init(run->kv));
	MU_TRY(train_fit(run));
	MU_TRY(mu_kv_finish(run->kv));
	if (run->topology.index == 0)
		train_report_end(run);
out:
	return st;
}

enum mu_status mu_train(MPI_Comm comm, int argc, char *const argv[], bool *agreed)
{
	enum mu_status st = MU_OK;
	struct arguments arguments = {0};
	struct mu_options options = {0};
	struct train_run *run = calloc(1, sizeof *run);
	char prefix[32], line[4096];
	int rank = 0, size = 1;

	*agreed = true;
	if (!run)
		MU_FAIL(MU_ERR_MEMORY, "no memory");
	MU_TRY(mu_comm_rank(comm, &rank, &size));
	MU_TRY(share_arguments(&arguments, comm, argc, argv));
	MU_TRY(told_once(parse(&options, run, &arguments), rank));
	if (answer(&options, &run->options, rank))
		goto out;
	MU_TRY(find_roles(run, comm, rank, size));
	snprintf(prefix, sizeof prefix,
		 run->topology.role == MU_ROLE_SERVER ? "Server[%d]" : "Node[%d]",
		 run->topology.index);
	start_log(run, prefix);
	mu_options_describe(&options, line, sizeof line);
	if (rank == 0)
		mu_log_info("start with arguments %s", line);
	MU_TRY(train_setup(run));
	if (run->options.check || run->options.test_io)
		goto out;
	*agreed = false;
	MU_TRY(work(run));
	*agreed = true;
out:
	if (run)
		train_release(run);
	free(run);
	mu_options_release(&options);
	free(arguments.argv);
	free(arguments.text);
	return st;
}
