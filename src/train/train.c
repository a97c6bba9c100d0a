/* SPDX-License-Identifier: Apache-2.0 */
/* mu_train: arguments, then set-up, then training or serving, then the end. */
#include "setup.h"

#include <limits.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <muster/base.h>
#include <muster/train.h>

#include "arguments.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/lock.h"
#include "checkpoint/saver.h"
#include "engine/comm_thread.h"
#include "engine/gpus.h"
#include "multipliers.h"
#include "report/scalars.h"
#include "train/modes/modes.h"

#define SAVE_SECONDS 25.0

/*
 * If all ranks know of an error, the lowest rank with an error of its own keeps its trace and
 * reports it, and all return its status, so that the launcher sees one. Before and after training
 * every step of all ranks ends with an agreement, so that errors of the user's are told once. What
 * fails in between, such as an allocation, only its rank knows. first: no run has trained yet.
 */
static enum mu_status settle(enum mu_status mine, MPI_Comm comm, struct mu_train_end *end,
			     bool first)
{
	enum mu_status st = MU_OK;
	const bool starting = first && end->phase < MU_TRAIN_RUNNING;
	long told[2] = {mine, mu_trace_is_final()};
	int reporter = 0, rank = 0, size = 0;

	end->final = told[1] && starting;
	MU_TRY(mu_comm_rank(comm, &rank, &size));
	end->agreed = end->phase != MU_TRAIN_RUNNING && mine != MU_ERR_TIMEOUT &&
		      (size == 1 ||
		       (mu_trace_known() == size && mu_agree_reporter(mine, comm, &reporter)));
	if (!end->agreed || reporter == size)
		goto out;
	MU_TRY(mu_bcast(told, sizeof told, reporter, comm));
	if (reporter != rank)
		mu_trace_clear();
	end->final = told[1] && starting;
out:
	return st == MU_OK ? (enum mu_status)told[0] : mine;
}

/* Checks that need the tables of layers above conf. */
static enum mu_status check_values(const struct conf *v, struct engine_device_list *list)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_engine_metrics_check(v));
	MU_TRY(mu_train_multipliers_check(v));
	MU_TRY(mu_report_metrics_file_check(v));
	MU_TRY(mu_train_dump_check(v));
	MU_TRY(mu_report_events_check(v));
	MU_TRY(mu_engine_device_list_read(list, v));
	if (v->dtype == MU_FLOAT16 && !list->kind->memory && !v->dtype_fallback)
		MU_FAIL(MU_ERR_USAGE,
			"--dtype float16: device %s has float32 and bfloat16; float16 is for GPUs "
			"(--devices gpu:auto); --dtype-fallback 1 trains in float32 here",
			list->kind->name);
out:
	return st;
}

static enum mu_status parse(struct mu_options *o, struct conf *v, const struct train_arguments *a)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_conf_check_foreign((int)a->given.argc, a->given.argv));
	MU_TRY(mu_conf_options_find(o, v, (int)a->given.argc, a->given.argv));
	MU_TRY(mu_conf_site_apply(o, v, (int)a->site.argc, a->site.argv));
	MU_TRY(mu_options_parse(o, (int)a->given.argc, a->given.argv));
out:
	return st;
}

/* What files say where options do not: the checkpoint, then the data. Collective. */
static enum mu_status read_files(struct mu_options *o, struct conf *v, struct train_run *run,
				 const struct train_arguments *a, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	const struct mu_network *network;

	if (v->network && !v->owner.network) /* it is not known: this says so */
		MU_TRY(mu_agree(mu_conf_network(&network, v->network), comm));
	MU_TRY(mu_checkpoint_description_read(&run->description, o, v, comm));
	MU_TRY(mu_agree(mu_train_description_take(&run->description, o, v, a), comm));
	MU_TRY(mu_train_look(o, v, comm, &run->look));
	v->num_samples = (long)run->look.n;
	if (*run->look.shape)
		v->image_shape = run->look.shape;
out:
	return st;
}

/* No CPU has float16: with --dtype-fallback, float32 from here on, and no loss scale that only
 * float16 needs. */
static void fall_back(struct conf *v, struct train_run *run)
{
	run->falls_back = v->dtype == MU_FLOAT16 && !run->list.kind->memory;
	if (!run->falls_back)
		return;
	v->dtype = MU_FLOAT32;
	if (!v->loss_scale)
		v->scale.dynamic = false;
}

/* Sets v, which nothing but mu_conf_roles_settle changes afterwards. */
static enum mu_status settle_options(const struct mu_options *o, struct conf *v,
				     struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct conf_ranks ranks = {run->members.size, run->members.topology.num_nodes};

	MU_TRY(mu_conf_settle(o, &ranks, v));
	MU_TRY(check_values(v, &run->list));
	MU_TRY(mu_conf_interface_check(v, ranks.nodes));
	fall_back(v, run);
	run->store = v->store;
out:
	return st;
}

bool mu_train_agreed(const struct mu_train_end *end)
{
	return end->agreed;
}

static const char usage[] =
	"usage: mpirun -np N trainer --network NAME --data-dir DIR [options]\n\n"
	"Train a network in one process, or in N processes of workers and servers:\n"
	"  trainer --network lenet --data-dir mnist --num-epochs 5\n"
	"  mpirun -np 4 trainer --network lenet --data-dir mnist --num-servers 1\n\n"
	"An option is --name value, a switch --name or --no-name; names may be cut short.\n\n";

/* MU_ERR_USAGE: --help of a network that there is not. */
static enum mu_status answer(const struct conf *v)
{
	enum mu_status st = MU_OK;

	if (v->version)
		printf("Muster trainer %s\n", PACKAGE_VERSION);
	if (v->info)
		mu_report_info(stdout);
	if (v->help && *v->help)
		MU_TRY(mu_conf_help_owner(v->help, stdout));
	else if (v->help || v->help_all) {
		printf("%s", usage);
		MU_TRY(mu_conf_help(stdout, v->help_all));
	}
out:
	return st;
}

bool mu_train_answer(int argc, char *const argv[])
{
	struct mu_options o = {0};
	struct conf v;
	bool done = false;

	if (mu_conf_options_parse(&o, &v, argc, argv) == MU_OK && mu_conf_asks(&v))
		done = answer(&v) == MU_OK;
	mu_options_release(&o);
	mu_trace_clear(); /* mu_train reports wrong options */
	return done;
}

/* Worker 0: what was taken from the training data. */
static void note_data(const struct conf *v, const struct train_look *look)
{
	if (*look->note)
		mu_log_info("%s", look->note);
	if (v->lowered_from)
		mu_log_info("batch size %ld of each worker, not the usual %ld, because there are "
			    "%ld training samples; --batch-size N sets another",
			    v->batch_size, v->lowered_from, v->num_samples);
}

static enum mu_status start_log(const struct train_run *run, const struct mu_options *options,
				const struct train_words *site)
{
	enum mu_status st = MU_OK;
	const struct checkpoint_description *d = &run->description;
	char line[4096];

	MU_TRY(mu_report_log_open(run->conf, options, &run->members));
	for (size_t i = 0; i < options->n; i++)
		if (mu_members_lead(&run->members) &&
		    mu_options_note(options, i, line, sizeof line))
			mu_log_info("note: %s", line);
	if (mu_members_lead(&run->members))
		mu_conf_site_tell(options, (int)site->argc, site->argv);
	mu_options_describe(options, line, sizeof line);
	if (mu_members_lead(&run->members))
		mu_log_detail("start with arguments %s", line);
	if (mu_members_lead(&run->members) && *d->taken)
		mu_log_detail("options from %s: %s", d->path, d->taken);
	if (mu_members_lead(&run->members) && *d->differs)
		mu_log_info("%s was saved with %s: the options of this run are used", d->path,
			    d->differs);
	if (mu_members_lead(&run->members))
		note_data(run->conf, &run->look);
	if (mu_members_lead(&run->members) && run->falls_back)
		mu_log_warn("--dtype float16: device %s has none: this job works in float32 "
			    "(--dtype-fallback 1)",
			    run->list.kind->name);
out:
	return st;
}

/* Requirements of stores of GPUs and of the communication thread; the same on every rank. */
static enum mu_status check_job(struct train_run *run)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_engine_gpus_settle(run->conf, &run->store, &run->list));
	MU_TRY(mu_engine_comm_thread_check(run->conf));
out:
	return st;
}

/*
 * Training has failed: here, or on a rank that has raised the alarm. All ranks complete what was
 * handed over to be saved before the job ends.
 */
static void end_badly(struct train_run *run, enum mu_status st)
{
	mu_trace_hold(true);
	mu_engine_comm_thread_close(&run->engine);
	mu_alarm_raise(&run->members, st, run->conf->model_prefix && !run->conf->evaluate);
	mu_checkpoint_saver_rescue(run->saver, SAVE_SECONDS);
	mu_trace_hold(false);
}

/* The work of a mode that needs the store. */
static enum mu_status work(struct train_run *run)
{
	enum mu_status st = MU_OK;

	if (run->members.role == MU_ROLE_SERVER) {
		MU_TRY(mu_kv_serve(run->kv));
	} else {
		MU_TRY(mu_kv_weights_init(run->kv));
		MU_TRY(run->mode->work(run));
		/* While others wait for this rank: after a halt the launcher may kill it. */
		mu_checkpoint_unlock(run->lock);
		run->lock = NULL;
		MU_TRY(mu_kv_finish(run->kv));
	}
	MU_TRY(mu_train_halt_share(&run->halt));
	MU_TRY(mu_report_end(run->observers));
	MU_TRY(mu_checkpoint_run_file_memory(&run->run_file, &run->members));
out:
	if (st != MU_OK)
		end_badly(run, st);
	mu_checkpoint_saver_close(run->saver);
	return st;
}

/* Who is a worker and who a server, and what depends on their numbers. */
static enum mu_status find_roles(struct train_run *run, struct conf *conf)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_members_share_out(
		&run->members, conf->store.has_servers ? (int)conf->num_servers : 0,
		conf->server_placement == CONF_PACKED ? MU_PLACEMENT_PACKED : MU_PLACEMENT_SPREAD));
	run->members.generation = (unsigned)run->back->times;
	mu_conf_roles_settle(conf, run->members.num_workers, run->members.num_servers);
out:
	return st;
}

/* Several ranks watch each other. */
static void set_patience(const struct mu_train_end *end, const struct conf *v, int size)
{
	const double limit = v->limits.timeout < INT_MAX ? v->limits.timeout : INT_MAX;

	if (end->patience)
		atomic_store(end->patience, size > 1 ? 0 : limit < 1 ? limit > 0 : (int)limit);
}

/* A mode that needs no job: rank 0 works, on standard output. Collective over comm. */
static enum mu_status run_alone(struct train_run *run, struct mu_options *options,
				struct conf *conf, const struct train_arguments *arguments,
				MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	int rank, size;

	MU_TRY(mu_comm_rank(comm, &rank, &size));
	if (rank == 0) {
		mu_report_void(conf, options, NULL);
		mu_conf_recorded_tell(arguments->own, options);
	}
	if (run->mode->needs >= TRAIN_ROLES)
		MU_TRY(find_roles(run, conf));
	MU_TRY(mu_agree(rank == 0 ? run->mode->work(run) : MU_OK, comm));
out:
	return st;
}

/* A mode that needs less than the store. Collective over all ranks. */
static enum mu_status work_before_store(struct train_run *run)
{
	const bool works = run->mode->who == TRAIN_WORKER_0 ? mu_members_lead(&run->members)
							    : run->members.role == MU_ROLE_WORKER;

	return mu_agree_late(works ? run->mode->work(run) : MU_OK, run->members.comm);
}

static enum mu_status run_job(struct train_run *run, struct mu_options *options, struct conf *conf,
			      const struct train_arguments *arguments, MPI_Comm comm,
			      struct mu_train_end *end)
{
	enum mu_status st = MU_OK;
	const struct conf *v = conf;
	int rank, size;

	MU_TRY(mu_comm_rank(comm, &rank, &size));
	end->phase = MU_TRAIN_OPTIONS;
	/* The same on all ranks, except that a node may lack the file of a network. */
	run->conf = v;
	MU_TRY(mu_agree(parse(options, conf, arguments), comm));
	if (mu_conf_asks(v)) {
		MU_TRY(mu_agree(rank == 0 ? answer(v) : MU_OK, comm));
		goto out;
	}
	MU_TRY(read_files(options, conf, run, arguments, comm));
	MU_TRY(mu_comm_set_limits(comm, &v->limits));
	MU_TRY(mu_members_find(&run->members, comm));
	MU_TRY(mu_agree(settle_options(options, conf, run), comm));
	run->mode = &mu_train_modes[mu_conf_mode(v)];
	if (!mu_conf_mode_has(v, CONF_MODE_HAS_JOB)) {
		MU_TRY(run_alone(run, options, conf, arguments, comm));
		goto out;
	}
	mu_trace_configure(v->verbose > 0, mu_comm_colours());
	MU_TRY(mu_agree(check_job(run), comm));
	set_patience(end, v, size);
	end->phase = MU_TRAIN_ROLES;
	MU_TRY(find_roles(run, conf));
	snprintf(end->who, sizeof end->who, "%s %d", mu_role_name(run->members.role),
		 run->members.index);
	end->phase = MU_TRAIN_SETUP;
	MU_TRY(mu_agree_late(start_log(run, options, &arguments->site), run->members.comm));
	MU_TRY(mu_train_setup(run));
	if (mu_members_lead(&run->members) && run->members.generation == 0)
		mu_report_void(v, options, &run->view);
	if (rank == 0 && run->members.generation == 0)
		mu_conf_recorded_tell(arguments->own, options);
	if (run->kv && run->store.on_gpus)
		MU_TRY(mu_agree_late(run->members.role == MU_ROLE_WORKER
					     ? mu_engine_gpus_join(&run->engine)
					     : MU_OK,
				     run->members.comm));
	if (run->kv)
		MU_TRY(mu_engine_gpus_record(&run->engine));
	if (v->check && mu_members_lead(&run->members))
		mu_log_info("check: options, data and layout are good");
	if (v->check)
		goto out;
	if (run->mode->needs < TRAIN_STORE) {
		MU_TRY(work_before_store(run));
		goto out;
	}
	MU_TRY(mu_agree_late(mu_members_lead(&run->members) ? mu_train_halt_check(&run->halt)
							    : MU_OK,
			     run->members.comm));
	MU_TRY(mu_report_open(&run->observers, &run->view));
	mu_checkpoint_run_file_begin(&run->run_file, &run->engine, run->resume, options);
	run->engine.energy.before = run->run_file.joules_before;
	end->phase = MU_TRAIN_RUNNING;
	MU_TRY(work(run));
	end->halted = run->halt.wanted && !run->halt.goes_back;
	end->phase = MU_TRAIN_DONE;
out:
	return st;
}

/* Should the next run not begin, the file has the error for which this one goes back. */
static void end_run_file(struct train_run *run, enum mu_status st)
{
	const char *error = *run->recovering.error ? run->recovering.error : run->halt.cause;

	if (st == MU_OK && run->halt.goes_back)
		mu_checkpoint_run_file_back(&run->run_file, error);
	else
		mu_checkpoint_run_file_end(&run->run_file, st,
					   run->halt.wanted ? run->halt.cause : NULL);
}

/* One run, from the arguments to its end; *again: it rolls back to a checkpoint. */
static enum mu_status run_once(struct checkpoint_rollback *back,
			       const struct train_arguments *arguments, MPI_Comm comm,
			       struct mu_train_end *end, bool *again)
{
	enum mu_status st = MU_OK;
	struct mu_options options = {0};
	struct train_run *run = NULL;
	struct conf conf = {.network = NULL};

	*end = (struct mu_train_end){.signal = end->signal, .patience = end->patience};
	*again = false;
	MU_TRY(MU_ALLOC(run, 1, "run"));
	run->halt.signal = end->signal;
	run->back = back;
	MU_TRY(run_job(run, &options, &conf, arguments, comm, end));
	*again = run->halt.goes_back;
out:
	mu_conf_name_options();
	if (run)
		end_run_file(run, st);
	if (st != MU_OK)
		st = settle(st, comm, end, back->times == 0);
	if (run)
		mu_engine_gpus_leave(&run->engine);
	if (run && st != MU_OK && !end->agreed) {
		/* Messages may be in flight, so their memory stays until the process ends. */
		mu_train_leave(run);
		mu_options_release(&options);
		return st;
	}
	if (run)
		mu_train_release(run);
	mu_free(run);
	mu_options_release(&options);
	return st;
}

enum mu_status mu_train(MPI_Comm comm, int argc, char *const argv[], struct mu_train_end *end)
{
	enum mu_status st = MU_OK;
	struct train_arguments arguments = {.own = NULL};
	struct conf_arguments own = {.argc = 0};
	struct checkpoint_rollback back = {0};
	bool again;

	*end = (struct mu_train_end){
		.signal = end->signal, .patience = end->patience, .phase = MU_TRAIN_OPTIONS};
	st = mu_agree(mu_train_read_arguments(&own, comm, argc, argv), comm);
	if (st != MU_OK) {
		st = settle(st, comm, end, true);
		goto out;
	}
	*end = (struct mu_train_end){.signal = end->signal, .patience = end->patience};
	arguments.own = &own;
	st = mu_train_share_arguments(&arguments, comm, &own);
	if (st != MU_OK) /* agreed where a process is alone */
		st = settle(st, comm, end, true);
	if (st != MU_OK)
		goto out;
	do { /* a rank without a trace does not report the error: none is added here */
		st = run_once(&back, &arguments, comm, end, &again);
		back.times += again;
	} while (st == MU_OK && again);
out:
	mu_conf_arguments_release(&own);
	mu_train_release_arguments(&arguments);
	return st;
}
