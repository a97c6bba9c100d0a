/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: MXNet's lines (1.4 and later), and at the start what the job is. Speed and metrics are
 * those of the whole job.
 */
#include "scalars.h"
#include "conf/slurm.h"
#include "engine/stages/staged.h"

#include <stdlib.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <muster/base.h>

/* What every rank tells of itself. */
struct card {
	char host[64];
	char address[96]; /* with its interface; see mu_conf_interface_address */
	int role, index, pid;
	int crowd, cores, machine_cores; /* see struct mu_topology */
};

/* The address of a node: its first rank's that has one. */
static const char *node_address(const struct train_run *run, const struct card *cards, int node)
{
	for (int r = 0; r < run->topology.size; r++)
		if (run->topology.node_of[r] == node && *cards[r].address)
			return cards[r].address;
	return "";
}

/*
 * "node 0 (host, eth0 10.0.0.1): worker 0 (rank 0, pid 17), server 0 (rank 2, pid 19)", one line a
 * node; a rank with another address than its node's has it behind its number.
 */
static void print_node(const struct train_run *run, const struct card *cards, int node)
{
	char line[2048];
	const char *address = node_address(run, cards, node);
	size_t n = 0;

	for (int r = 0; r < run->topology.size; r++) {
		const struct card *c = &cards[r];
		const bool own = *c->address && strcmp(c->address, address) != 0;

		if (run->topology.node_of[r] != node)
			continue;
		if (n == 0)
			n += (size_t)snprintf(line, sizeof line, "node %d (%s%s%s):", node, c->host,
					      *address ? ", " : "", address);
		else
			line[n++] = ',';
		if (n + 64 + sizeof c->address > sizeof line) {
			snprintf(line + n, sizeof line - n, " ...");
			break;
		}
		n += (size_t)snprintf(line + n, sizeof line - n, " %s %d (rank %d, pid %d%s%s)",
				      mu_role_name((enum mu_role)c->role), c->index, r, c->pid,
				      own ? ", " : "", own ? c->address : "");
	}
	mu_log_info("%s", line);
}

/* Once for a node: by the first of the workers that share too few cores. */
static void warn_crowd(const struct train_run *run, const struct card *cards, int node)
{
	for (int r = 0; r < run->topology.size; r++) {
		const struct card *c = &cards[r];

		if (run->topology.node_of[r] != node || c->crowd == 0)
			continue;
		mu_log_warn("node %d (%s): %d workers are bound to the same %d core%s of %d; see "
			    "to the binding of mpirun (-bind-to), srun (--cpus-per-task, "
			    "--cpu-bind) or taskset",
			    node, c->host, c->crowd, c->cores, c->cores == 1 ? "" : "s",
			    c->machine_cores);
		return;
	}
}

enum mu_status mu_report_ranks(const struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct mu_topology *t = &run->topology;
	struct card mine = {
		.role = (int)t->role,
		.index = t->index,
		.pid = (int)getpid(),
		.crowd = t->crowd,
		.cores = t->my_cores,
		.machine_cores = t->machine_cores,
	};
	struct card *cards = calloc((size_t)t->size, sizeof *cards);

	if (!cards)
		MU_FAIL(MU_ERR_MEMORY, "no memory");
	snprintf(mine.host, sizeof mine.host, "%s", t->host);
	mu_conf_interface_address(&run->options, mine.address, sizeof mine.address);
	if (t->rank == t->worker_ranks[0])
		mu_conf_interface_report(&run->options);
	MU_TRY(mu_allgather(&mine, cards, sizeof mine, t->world));
	for (int node = 0; t->rank == t->worker_ranks[0] && node < t->num_nodes; node++) {
		print_node(run, cards, node);
		warn_crowd(run, cards, node);
	}
out:
	free(cards);
	return st;
}

/* Each device, and where their gradients are summed. */
static void report_devices(const struct train_run *run)
{
	const struct engine_devices *s = &run->engine.devices;

	run->engine.ops->describe(&run->engine);
	if (s->list.n > (size_t)run->engine.n_threads)
		mu_log_warn("%zu devices share %d thread%s of a worker: none has a core of its own",
			    s->list.n, run->engine.n_threads,
			    run->engine.n_threads == 1 ? "" : "s");
	if (strcmp(s->list.kind->name, "ref") == 0)
		mu_log_warn("device ref is the plain reference, slow; a build with oneDNN has the "
			    "device cpu");
}

/* How the first device computes them; the others do likewise. */
static void report_convolutions(const struct train_run *run)
{
	struct mu_plan_convolutions c;
	enum { FORWARD = MU_CONVOLUTION_FORWARD, DATA = MU_CONVOLUTION_DATA };
	const int weights = MU_CONVOLUTION_WEIGHTS;
	char gemm[96] = "";

	mu_plan_convolutions(run->engine.plan, &c);
	if (c.n[FORWARD] == 0)
		return;
	if (c.gemm[FORWARD] + c.gemm[DATA] + c.gemm[weights] > 0)
		snprintf(gemm, sizeof gemm, "gemm does %zu, %zu and %zu, ", c.gemm[FORWARD],
			 c.gemm[DATA], c.gemm[weights]);
	mu_log_info("convolutions %s: winograd does %zu of %zu forward, %zu of %zu gradients of "
		    "data and %zu of %zu of weights; %sdirect the others",
		    mu_conf_conv_words[run->options.conv_algo], c.winograd[FORWARD], c.n[FORWARD],
		    c.winograd[DATA], c.n[DATA], c.winograd[weights], c.n[weights], gemm);
	if (*run->engine.conv->text)
		mu_log_info("convolutions by the table of %s, hash %016" PRIx64,
			    run->engine.conv->path, run->engine.conv->hash);
}

static void report_model(const struct train_run *run)
{
	struct mu_net_counts counts;

	mu_net_counts(run->engine.net, &counts);
	mu_log_info("network %s: %zu parameters in %zu arrays, %zu auxiliary values; %.1f MB of "
		    "activations",
		    run->options.network_name, counts.params, counts.arrays, counts.aux,
		    run->engine.ops->activations(&run->engine) / 1e6);
	if (*mu_net_notes(run->engine.net))
		mu_log_info("%s", mu_net_notes(run->engine.net));
	report_devices(run);
	report_convolutions(run);
}

void mu_report_data(const struct train_run *run)
{
	const struct mu_input *in = &run->train;
	char what[1024], more[64] = "";

	in->ops->describe(in, what, sizeof what);
	if (run->has_validation)
		snprintf(more, sizeof more, ", %zu for validation", run->validate.n);
	mu_log_info("data %s: %zu samples for training%s, shape (%zu, %zu, %zu), %zu classes: %s",
		    in->ops->name, in->n, more, in->shape[0], in->shape[1], in->shape[2],
		    in->classes, what);
	if (in->groups && run->has_validation) {
		run->validate.ops->describe(&run->validate, what, sizeof what);
		mu_log_info("data %s: validation: %s", in->ops->name, what);
	}
	if (in->ops->colour_images) {
		mu_augment_describe(&in->config.augment, what, sizeof what);
		mu_log_info("data %s: training images: %s", in->ops->name, what);
	}
	if (in->config.shuffle_chunk)
		mu_log_info("data %s: shuffled in runs of %zu samples", in->ops->name,
			    in->config.shuffle_chunk);
	if (in->pipeline)
		mu_log_info("data %s: %d thread%s per worker decode%s, at most %zu batches ahead: "
			    "%.1f MB%s",
			    in->ops->name, in->config.threads, in->config.threads == 1 ? "" : "s",
			    in->config.threads == 1 ? "s" : "", in->config.prefetch,
			    (double)mu_input_prefetch_bytes(in) / 1e6,
			    run->has_validation ? ", and as much for validation" : "");
}

static void report_store(const struct train_run *run)
{
	struct mu_kv_layout layout;

	mu_kv_layout(run->kv, &layout);
	if (run->store.has_servers)
		mu_log_info("kv-store %s: %zu keys, %.3f MB in %zu buckets, %d server%s with "
			    "%.3f to %.3f MB",
			    run->options.kv_store, layout.n_keys, (double)layout.bytes / 1e6,
			    layout.n_buckets, run->topology.num_servers,
			    run->topology.num_servers == 1 ? "" : "s",
			    (double)layout.bytes_per_server_min / 1e6,
			    (double)layout.bytes_per_server_max / 1e6);
	else
		mu_log_info("kv-store %s: %zu keys, %.3f MB in %zu buckets", run->options.kv_store,
			    layout.n_keys, (double)layout.bytes / 1e6, layout.n_buckets);
	if (*run->engine.without_nccl)
		mu_log_warn("--%s auto: %s; sums of GPUs are the host's%s",
			    run->store.has_servers ? "node-reduce" : "inter-node",
			    run->engine.without_nccl, run->store.has_servers ? "" : ", and MPI's");
	if (!run->store.distributed || run->store.on_gpus)
		return;
	if (run->topology.node_size > 1)
		mu_log_info("ranks of a node %s",
			    layout.shares_memory
				    ? "share memory: inside it gradients and weights do not travel"
			    : layout.sums_on_node
				    ? "send messages, and to other nodes one sum of gradients"
				    : "send messages");
	if (run->topology.num_workers > 1)
		mu_log_info("a link of %.3f GB/s bounds a step's push and pull by messages to %.3f "
			    "ms; the best "
			    "split of servers over all ranks: %.3f ms",
			    run->link / 1e9, 1e3 * mu_kv_bound(run->kv, run->link),
			    1e3 * mu_kv_bound_split(run->kv, run->link));
}

/* "momentum, previous: 3.448 MB" */
static void report_states(const struct train_run *run)
{
	struct mu_optim_config config = run->options.optim;
	const char *names[MU_MAX_STATES];
	struct mu_kv_layout layout;
	char text[128] = "";
	size_t used = 0;
	int n;

	config.prior = !run->store.synchronous;
	n = mu_optim_states(&config, names);
	for (int i = 0; i < n; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "",
					 names[i]);
	mu_kv_layout(run->kv, &layout);
	if (n > 0)
		mu_log_info("state of %s: %s: %.3f MB%s", config.name, text,
			    (double)layout.bytes * n / 1e6,
			    run->options.sync_period > 1 ? " on every worker" : "");
}

static void report_optimizer(const struct train_run *run, size_t count)
{
	const struct conf *v = &run->options;
	const struct conf_schedule *s = &v->schedule;
	const struct mu_rule *rule;
	bool has_rate = mu_rule_find(&rule, v->optimizer) == MU_OK && mu_rule_setting(rule, "lr");
	char rate[32] = "";

	if (has_rate)
		snprintf(rate, sizeof rate, "lr %g, ", run->lr);
	mu_log_info("optimizer %s: %sgradients rescaled by 1/%zu", v->optimizer, rate, count);
	if (s->scale_with_workers)
		mu_log_info("lr %g is multiplied by the %zu %s", v->lr, run->engine.team.n,
			    run->engine.team.size > 1 ? "teams" : "workers");
	if (has_rate && s->kind != CONF_SCHEDULE_CONSTANT)
		mu_log_info("learning rate: schedule %s", mu_conf_schedule_words[s->kind]);
	if (s->warmup_epochs > 0)
		mu_log_info("learning rate: %s warm-up of %g epochs from %g",
			    mu_conf_warmup_words[s->warmup_strategy],
			    s->warmup_epochs, s->warmup_begin_lr);
	report_states(run);
	if (mu_optim_needs_norms(&v->optim))
		mu_log_info("norms over whole keys: nothing is updated before the last gradient of "
			    "a step is there");
}

/* What an update is made of. */
static void report_batch(const struct train_run *run)
{
	const struct conf *v = &run->options;
	size_t batch = run->train.config.batch, asked = (size_t)v->update_period;
	size_t period = asked < run->steps ? asked : run->steps; /* an epoch ends an update */
	size_t mine = batch * period, all = mine * run->engine.team.n;
	char updates[96] = "", steps[64] = "steps", device[256];

	if (period > 1) {
		snprintf(updates, sizeof updates, " (%zu batches of each worker make an update)",
			 period);
		snprintf(steps, sizeof steps, "batches and %zu updates",
			 (run->steps + period - 1) / period);
	}
	mu_log_info(
		"batch size %s per device, %zu per %s, %zu global%s; %zu samples in %zu "
		"%s an epoch",
		mu_engine_device_batches(&run->engine.devices.list, batch, device, sizeof device),
		batch, run->engine.team.size > 1 ? "team" : "worker", all, updates, run->examples,
		run->steps, steps);
	report_optimizer(run, run->store.synchronous && v->sync_period == 1 ? all : mine);
	mu_report_store(run);
	if (v->label_smoothing > 0)
		mu_log_info("label smoothing %g in training; metrics are those of the labels "
			    "themselves",
			    v->label_smoothing);
}

/* Keys that are not trained. */
static void report_fixed(const struct train_run *run)
{
	size_t n_slices, fixed = 0, fixed_n = 0, all_n = 0;

	mu_plan_slices(run->engine.plan, &n_slices);
	for (size_t k = 0; k < n_slices; k++) {
		const struct mu_slice *slice = &run->slices[k];

		fixed += slice->fixed;
		fixed_n += slice->fixed ? slice->n : 0;
		all_n += slice->n;
	}
	if (fixed > 0)
		mu_log_info("fixed: %zu of %zu arrays, %zu of %zu values", fixed, n_slices, fixed_n,
			    all_n);
}

void mu_report_start(const struct train_run *run)
{
	const struct conf *v = &run->options;

	mu_report_data(run);
	report_model(run);
	report_fixed(run);
	report_store(run);
	mu_log_info("%d worker%s, %d server%s, %d thread%s per worker; speed and metrics below are "
		    "those of the whole job%s",
		    run->topology.num_workers, run->topology.num_workers == 1 ? "" : "s",
		    run->topology.num_servers, run->topology.num_servers == 1 ? "" : "s",
		    run->engine.n_threads, run->engine.n_threads == 1 ? "" : "s",
		    run->store.synchronous
			    ? ""
			    : " (inside an epoch the metrics are those of worker 0)");
	mu_engine_team_report(&run->engine);
	mu_engine_comm_thread_report(&run->engine);
	mu_conf_slurm_report(
		run->topology.my_cores, strcmp(run->engine.devices.list.kind->name, "gpu") == 0,
		v->model_prefix && v->load_epoch == 0 && strcmp(v->resume, "none") == 0);
	report_batch(run);
}

static double mean(double sum, double n)
{
	return n > 0 ? sum / n : 0;
}

void mu_report_speed(const struct train_run *run, const struct report_window *w)
{
	const struct engine_metrics *shown = &run->metrics;
	char text[512];
	size_t n;

	snprintf(text, sizeof text, "Epoch[%zu] Batch [%zu-%zu]\tSpeed: %.2f samples/sec", w->epoch,
		 w->first, w->last, mean(w->samples, w->seconds));
	for (size_t i = 0; i < shown->n; i++) {
		n = strlen(text);
		snprintf(text + n, sizeof text - n, "\t%s=%f", shown->printed[i],
			 shown->of[i]->value(&w->metrics));
	}
	n = strlen(text);
	if (run->train.pipeline)
		snprintf(text + n, sizeof text - n, "\tdata=%.1f%%",
			 100 * mean(w->data_seconds, w->seconds));
	n = strlen(text);
	if (run->store.distributed)
		snprintf(text + n, sizeof text - n, "\tcomm=%.1f%%",
			 100 * mean(w->comm_seconds, w->seconds));
	if (!run->terminal)
		mu_log_info("%s", text);
	mu_report_scalars_window(run, w);
}

static void report_metrics(const struct train_run *run, const char *what, size_t epoch,
			   const struct mu_metrics *m)
{
	const struct engine_metrics *shown = &run->metrics;

	for (size_t i = 0; i < shown->n; i++)
		mu_log_info("Epoch[%zu] %s-%s=%f", epoch, what, shown->printed[i],
			    shown->of[i]->value(m));
}

void mu_report_epoch(const struct train_run *run, const struct report_window *w)
{
	report_metrics(run, "Train", w->epoch, &w->metrics);
	mu_log_info("Epoch[%zu] Time cost=%.3f", w->epoch, w->seconds);
	if (run->store.distributed)
		mu_log_info("Epoch[%zu] Exposed communication=%.3f", w->epoch, w->comm_seconds);
	mu_report_scalars_epoch(run, w);
}

void mu_report_validation(const struct train_run *run, size_t epoch, const struct mu_metrics *m)
{
	report_metrics(run, "Validation", epoch, m);
	mu_report_scalars_validation(run, epoch, m);
}

/* More than 1: what was moved was hidden behind computation. */
static void report_bound(const struct train_run *run)
{
	double bound = mu_kv_bound(run->kv, run->link) * run->exchanges;
	double spent = mu_clock_seconds(MU_CLOCK_PUSH) + mu_clock_seconds(MU_CLOCK_PULL);

	if (run->store.distributed)
		mu_log_info("exposed communication (worker 0's time in pushes and pulls): %.3f s, "
			    "%.1f%% of training",
			    run->comm_seconds, 100 * mean(run->comm_seconds, run->speed_seconds));
	if (run->link > 0 && bound > 0 && spent > 0)
		mu_log_info("push and pull: %.3f ms a step, %.2f of the bound's speed",
			    1e3 * spent / run->exchanges, bound / spent);
}

void mu_report_end(const struct train_run *run)
{
	if (run->speed_samples == 0)
		return;
	mu_log_info("trained %.0f samples in %.3f s: %.2f samples/sec", run->speed_samples,
		    run->speed_seconds, mean(run->speed_samples, run->speed_seconds));
	mu_log_info("worker 0's seconds: data %.3f, forward %.3f, backward %.3f, push %.3f, pull "
		    "%.3f, update %.3f",
		    mu_clock_seconds(MU_CLOCK_DATA), mu_clock_seconds(MU_CLOCK_FORWARD),
		    mu_clock_seconds(MU_CLOCK_BACKWARD), mu_clock_seconds(MU_CLOCK_PUSH),
		    mu_clock_seconds(MU_CLOCK_PULL), mu_clock_seconds(MU_CLOCK_UPDATE));
	report_bound(run);
	mu_report_store_end(run);
}

static void report_device(FILE *stream, const struct mu_device_ops *ops)
{
	struct mu_device device;
	char text[128] = "cannot be opened";

	if (mu_device_open(&device, ops->name, 1) == MU_OK) {
		device.ops->describe(&device, text, sizeof text);
		mu_device_close(&device);
	} else {
		snprintf(text, sizeof text, "%s: %s", ops->name, mu_trace_message());
		mu_trace_clear();
	}
	fprintf(stream, "device:  %s\n", text);
}

/* Devices that can be counted are GPUs. */
static const char *cuda_state(char *text, size_t nbytes)
{
	char why[256];

	snprintf(text, nbytes, "not built in");
	for (size_t i = 0; mu_device_table[i]; i++) {
		const int n =
			mu_device_table[i]->count ? mu_device_table[i]->count(why, sizeof why) : -1;

		if (n > 0)
			snprintf(text, nbytes, "built in, %d device%s", n, n == 1 ? "" : "s");
		else if (n == 0)
			snprintf(text, nbytes, "built in, no device: %s", why);
	}
	return text;
}

double mu_report_comm_seconds(void)
{
	return mu_clock_seconds(MU_CLOCK_PUSH) + mu_clock_seconds(MU_CLOCK_PULL);
}

void mu_report_info(FILE *stream)
{
	char mpi[128], text[320];

	mu_comm_version(mpi, sizeof mpi);
	fprintf(stream, "Muster %s\n", PACKAGE_VERSION);
	fprintf(stream, "MPI:     %s\n", mpi);
	fprintf(stream, "HDF5:    %s\n", mu_array_file_version());
	for (size_t i = 0; mu_device_table[i]; i++)
		if (mu_device_is_here(mu_device_table[i], text, sizeof text))
			report_device(stream, mu_device_table[i]);
	fprintf(stream, "networks:");
	for (size_t i = 0; mu_network_table[i]; i++)
		fprintf(stream, " %s", mu_network_table[i]->name);
	fprintf(stream, "\nCUDA:    %s\n", cuda_state(text, sizeof text));
	fprintf(stream, "GPU-aware MPI: %s; none is needed\n", mu_comm_gpu_support());
	fprintf(stream, "cores:   %ld online\n", sysconf(_SC_NPROCESSORS_ONLN));
	fprintf(stream, "threads: OMP_NUM_THREADS if set, else the node's cores shared among its "
			"workers\n");
}
