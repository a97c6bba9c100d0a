/* SPDX-License-Identifier: Apache-2.0 */
/* The log before the first step: ranks, data, network, store, batch. */
#include "report.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <muster/base.h>
#include <muster/pictures.h>

#include "conf/slurm.h"
#include "conf/conf.h"

/* What every rank reports about itself. */
struct card {
	char host[64];
	char address[96]; /* with its interface; see mu_conf_interface_address */
	int role, index, pid;
	int crowd, cores, machine_cores; /* see struct mu_topology */
	int node_workers, node_cores;
};

/* The address of a node: its first rank's that has one. */
static const char *node_address(const struct mu_engine *e, const struct card *cards, int node)
{
	for (int r = 0; r < e->members->size; r++)
		if (e->members->topology.node_of[r] == node && *cards[r].address)
			return cards[r].address;
	return "";
}

/*
 * "node 0 (host, eth0 10.0.0.1): worker 0 (rank 0, pid 17), server 0 (rank 2, pid 19)", one line a
 * node; a rank with another address than its node's has it after its number.
 */
static void print_node(const struct mu_engine *e, const struct card *cards, int node)
{
	char line[2048];
	const char *address = node_address(e, cards, node);
	size_t n = 0;

	for (int r = 0; r < e->members->size; r++) {
		const struct card *c = &cards[r];
		const bool own = *c->address && strcmp(c->address, address) != 0;

		if (e->members->topology.node_of[r] != node)
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
	mu_log_detail("%s", line);
}

/* Servers sleep most of the time: they are not counted. */
static void warn_workers(const struct card *cards, int n, const int *node_of, int node)
{
	for (int r = 0; r < n; r++) {
		const struct card *c = &cards[r];

		if (node_of[r] != node)
			continue;
		if (c->node_workers > c->node_cores)
			mu_log_warn("node %d (%s): %d workers on %d core%s: speed suffers, though "
				    "ranks that wait leave the cores to others",
				    node, c->host, c->node_workers, c->node_cores,
				    MU_S(c->node_cores));
		return;
	}
}

/* Once for a node: by the first of the workers that share too few cores. */
static void warn_crowd(const struct mu_engine *e, const struct card *cards, int node)
{
	for (int r = 0; r < e->members->size; r++) {
		const struct card *c = &cards[r];

		if (e->members->topology.node_of[r] != node || c->crowd == 0)
			continue;
		mu_log_warn("node %d (%s): %d workers are bound to the same %d core%s of %d; see "
			    "the binding of mpirun (-bind-to), srun (--cpus-per-task, "
			    "--cpu-bind) or taskset",
			    node, c->host, c->crowd, c->cores, MU_S(c->cores),
			    c->machine_cores);
		return;
	}
	warn_workers(cards, e->members->size, e->members->topology.node_of, node);
}

enum mu_status mu_report_ranks(const struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = e->members;
	struct card mine = {
		.role = (int)m->role,
		.index = m->index,
		.pid = (int)getpid(),
		.crowd = m->topology.crowd,
		.cores = m->topology.my_cores,
		.machine_cores = m->topology.machine_cores,
		.node_workers = m->topology.node_num_workers,
		.node_cores = m->topology.node_cores,
	};
	struct report_environment environment, *environments = NULL;
	struct card *cards = NULL;

	MU_TRY(MU_ALLOC(cards, (size_t)m->size, "addresses of ranks"));
	MU_TRY(MU_ALLOC(environments, (size_t)m->size, "environments of ranks"));
	mu_report_environment(&environment);
	snprintf(mine.host, sizeof mine.host, "%s", m->topology.host);
	mu_conf_interface_address(e->conf, mine.address, sizeof mine.address);
	if (mu_members_lead(m))
		mu_conf_interface_report(e->conf);
	MU_TRY(mu_allgather(&mine, cards, sizeof mine, m->comm));
	MU_TRY(mu_allgather(&environment, environments, sizeof environment, m->comm));
	for (int node = 0; mu_members_lead(m) && node < m->topology.num_nodes; node++) {
		print_node(e, cards, node);
		warn_crowd(e, cards, node);
	}
	if (mu_members_lead(m))
		mu_report_environments(e, environments);
out:
	mu_free(environments);
	mu_free(cards);
	return st;
}

/* Each device, and where their gradients are summed. */
static void report_devices(const struct mu_engine *e)
{
	const struct engine_devices *s = &e->devices;

	e->ops->describe(e);
	if (s->list.n > (size_t)e->n_threads)
		mu_log_warn("%zu devices share %d thread%s of a worker: none has a core of its own",
			    s->list.n, e->n_threads,
			    MU_S(e->n_threads));
	if (strcmp(s->list.kind->name, "ref") == 0)
		mu_log_warn("device ref is the plain reference, slow; a build with oneDNN has the "
			    "device cpu");
}

/* "gemm does 1, 2 and 3, "; "" for none. */
static void tell_counts(char *text, size_t nbytes, const char *name,
			const size_t n[MU_CONVOLUTION_PHASES])
{
	const size_t forward = n[MU_CONVOLUTION_FORWARD], data = n[MU_CONVOLUTION_DATA];
	const size_t weights = n[MU_CONVOLUTION_WEIGHTS];

	*text = '\0';
	if (forward + data + weights > 0)
		snprintf(text, nbytes, "%s does %zu, %zu and %zu, ", name, forward, data, weights);
}

/* Their algorithms on the first device; the others use the same. */
static void report_convolutions(const struct mu_engine *e)
{
	struct mu_plan_convolutions c;
	enum { FORWARD = MU_CONVOLUTION_FORWARD, DATA = MU_CONVOLUTION_DATA };
	const int weights = MU_CONVOLUTION_WEIGHTS;
	char gemm[96], engines[96];

	mu_plan_convolutions(e->plan, &c);
	if (c.n[FORWARD] == 0)
		return;
	tell_counts(gemm, sizeof gemm, "gemm", c.gemm);
	tell_counts(engines, sizeof engines, "the table's engine", c.engines);
	mu_log_detail("convolutions %s: winograd does %zu of %zu forward, %zu of %zu gradients of "
		      "data and %zu of %zu of weights; %s%sdirect the others",
		      mu_conf_conv_words[e->conf->conv_algo], c.winograd[FORWARD], c.n[FORWARD],
		      c.winograd[DATA], c.n[DATA], c.winograd[weights], c.n[weights], gemm,
		      engines);
	if (*e->conv->text)
		mu_log_detail("convolutions by the table of %s, hash %016" PRIx64, e->conv->path,
			      e->conv->hash);
}

static void report_model(const struct mu_engine *e)
{
	const struct mu_picture p = mu_sample_picture(mu_input_shape(e->train));
	struct mu_net_counts counts;

	mu_net_counts(e->net, &counts);
	mu_log_detail("network %s: %zu parameters in %zu array%s, %zu auxiliary values; %.1f MB of "
		      "activations",
		      e->conf->network_name, counts.params, counts.arrays,
		      MU_S(counts.arrays), counts.aux,
		      e->ops->activations(e) / 1e6);
	if (mu_net_depth(e->net) > 0 && e->conf->num_layers == 0)
		mu_log_info("network %s: %ld layers, its usual depth for %zu x %zu pixels; "
			    "--num-layers N sets another",
			    e->conf->network_name, mu_net_depth(e->net), p.h, p.w);
	if (*mu_net_notes(e->net))
		mu_log_detail("%s", mu_net_notes(e->net));
	report_devices(e);
	report_convolutions(e);
}

const char *mu_report_outputs(const struct mu_input *in)
{
	if (mu_input_field(in, MU_FIELD_TARGET)->number == MU_NUMBER_FLOAT32)
		return in->classes == 1 ? "value" : "values";
	return in->classes == 1 ? "class" : "classes";
}

void mu_report_data(const struct mu_engine *e)
{
	const struct mu_input *in = e->train;
	const struct mu_picture p = mu_sample_picture(mu_input_shape(in));
	const struct mu_picture_settings *pictures = mu_input_pictures(in);
	char what[1024], more[64] = "", shape[MU_SAMPLE_TEXT];

	in->ops->describe(in, what, sizeof what);
	if (e->validate)
		snprintf(more, sizeof more, ", %zu for validation", e->validate->n);
	mu_log_detail("data %s: %zu sample%s for training%s, shape (%s), %zu %s: %s",
		      in->ops->name, in->n, MU_S(in->n), more,
		      mu_sample_text(mu_input_shape(in), ", ", shape, sizeof shape), in->classes,
		      mu_report_outputs(in), what);
	if (in->about.n_class_names > 0 && in->about.n_class_names < in->classes)
		mu_log_info("%s has %zu classes, and the network %zu outputs: --num-classes %zu",
			    e->conf->data_train, in->about.n_class_names, in->classes, in->classes);
	if (in->groups && e->validate) {
		e->validate->ops->describe(e->validate, what, sizeof what);
		mu_log_detail("data %s: validation: %s", in->ops->name, what);
	}
	if (pictures && !e->conf->evaluate) {
		mu_augment_describe(&pictures->augment, what, sizeof what);
		mu_log_detail("data %s: training images: %s", in->ops->name, what);
		if (mu_augment_crop_is_fixed(&pictures->augment, &in->about.stored,
					     mu_input_shape(in)))
			mu_log_info("data %s: the random crop cannot move, because images and crop "
				    "are %zu x %zu: --pad-size 4 lets it",
				    in->ops->name, p.h, p.w);
	}
	if (in->config.shuffle_chunk)
		mu_log_detail("data %s: shuffled in runs of %zu samples", in->ops->name,
			      in->config.shuffle_chunk);
	if (in->pipeline)
		mu_log_detail(
			"data %s: %d thread%s per worker decode%s, at most %zu batches ahead: "
			"%.1f MB%s",
			in->ops->name, in->config.threads, MU_S(in->config.threads),
			in->config.threads == 1 ? "s" : "", in->config.prefetch,
			(double)mu_input_prefetch_bytes(in) / 1e6,
			e->validate ? ", and as much for validation" : "");
}

/* What the links between ranks allow, if anything travels over them. */
static void report_bound(const struct report_view *view)
{
	const struct mu_kv *kv = view->engine->kv;
	const double bound = mu_kv_bound(kv, view->link), split = mu_kv_bound_split(kv, view->link);
	char best[80] = "";

	if (mu_members_alone(view->engine->members) || bound <= 0)
		return;
	if (split > 0)
		snprintf(best, sizeof best, "; the best split of servers over all ranks: %.3f ms",
			 1e3 * split);
	mu_log_detail("a link of %.3f GB/s bounds a step's push and pull by messages to %.3f ms%s",
		      view->link / 1e9, 1e3 * bound, best);
}

static void report_store(const struct report_view *view)
{
	const struct mu_engine *e = view->engine;
	struct mu_kv_layout layout;

	mu_kv_layout(e->kv, &layout);
	if (e->store->has_servers)
		mu_log_detail("kv-store %s: %zu key%s, %.3f MB in %zu bucket%s, %d server%s "
			      "with %.3f to %.3f MB",
			      e->conf->kv_store, layout.n_keys, MU_S(layout.n_keys),
			      (double)layout.bytes / 1e6, layout.n_buckets, MU_S(layout.n_buckets),
			      e->members->num_servers, MU_S(e->members->num_servers),
			      (double)layout.bytes_per_server_min / 1e6,
			      (double)layout.bytes_per_server_max / 1e6);
	else
		mu_log_detail("kv-store %s: %zu key%s, %.3f MB in %zu bucket%s", e->conf->kv_store,
			      layout.n_keys, MU_S(layout.n_keys),
			      (double)layout.bytes / 1e6, layout.n_buckets,
			      MU_S(layout.n_buckets));
	if (*e->without_nccl)
		mu_log_warn("--%s auto: %s; sums of GPUs are the host's%s",
			    e->store->has_servers ? "node-reduce" : "inter-node",
			    e->without_nccl, e->store->has_servers ? "" : ", and MPI's");
	if (!e->store->distributed || e->store->on_gpus)
		return;
	if (e->members->topology.node_size > 1)
		mu_log_detail(
			"ranks of a node %s",
			layout.shares_memory
				? "share memory: inside it gradients and weights do not travel"
			: layout.sums_on_node
				? "send messages, and to other nodes one sum of gradients"
				: "send messages");
	report_bound(view);
}

/* "momentum, previous: 3.448 MB" */
static void report_states(const struct mu_engine *e)
{
	struct mu_optim_config config = e->conf->optim;
	const char *names[MU_MAX_STATES];
	struct mu_kv_layout layout;
	char text[128] = "";
	size_t used = 0;
	int n;

	config.prior = !e->store->synchronous;
	n = mu_optim_states(&config, names);
	for (int i = 0; i < n; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "",
					 names[i]);
	mu_kv_layout(e->kv, &layout);
	if (n > 0)
		mu_log_detail("state of %s: %s: %.3f MB%s", config.name, text,
			      (double)layout.bytes * n / 1e6,
			      e->conf->sync_period > 1 ? " on every worker" : "");
}

/* PyTorch's loss of a language model is a mean over tokens; doc/train.md has the table. */
static void tell_sums(const struct mu_engine *e, char *text, size_t nbytes)
{
	const struct conf *v = e->conf;
	const struct mu_rule *rule = NULL;
	const size_t tokens = mu_shape_space(mu_input_shape(e->train), 0);
	const char *what = NULL, *rate = "";

	*text = '\0';
	if (!(e->network->traits & MU_NETWORK_SEQUENCES) || tokens < 2 ||
	    mu_rule_find(&rule, v->optimizer) != MU_OK)
		return;
	if (strcmp(rule->name, "adam") == 0)
		what = v->optim.decoupled ? "--epsilon" : "--epsilon, --wd";
	else if (strcmp(rule->name, "sgd") == 0 || strcmp(rule->name, "nag") == 0)
		what = "--wd", rate = ", --lr is PyTorch's / as many";
	if (what)
		snprintf(text, nbytes,
			 "sums over the %zu tokens of a sequence: %s and limits of clipping are "
			 "PyTorch's times as many%s",
			 tokens, what, rate);
	else
		snprintf(text, nbytes, "sums over the %zu tokens of a sequence, not means as in "
				       "PyTorch", tokens);
}

static void report_optimizer(const struct report_view *view, size_t count)
{
	const struct mu_engine *e = view->engine;
	const struct conf *v = e->conf;
	const struct conf_schedule *s = &v->schedule;
	const struct mu_rule *rule;
	bool has_rate = mu_rule_find(&rule, v->optimizer) == MU_OK && mu_rule_setting(rule, "lr");
	char rate[32] = "", sums[256];

	if (has_rate)
		snprintf(rate, sizeof rate, "lr %g, ", view->lr);
	mu_log_detail("optimizer %s: %sgradients rescaled by 1/%zu", v->optimizer, rate, count);
	tell_sums(e, sums, sizeof sums);
	if (*sums)
		mu_log_detail("gradients are %s", sums);
	if (s->scale_with_workers)
		mu_log_detail("lr %g is multiplied by the %zu %s%s", v->lr, e->team.n,
			      e->team.size > 1 ? "team" : "worker", MU_S(e->team.n));
	if (has_rate && s->kind != CONF_SCHEDULE_CONSTANT)
		mu_log_detail("learning rate: schedule %s", mu_conf_schedule_words[s->kind]);
	if (s->warmup_epochs > 0)
		mu_log_detail("learning rate: %s warm-up of %g epoch%s from %g",
			      mu_conf_warmup_words[s->warmup_strategy], s->warmup_epochs,
			      MU_S(s->warmup_epochs), s->warmup_begin_lr);
	if (s->warmup_steps > 0)
		mu_log_detail("learning rate: %s warm-up of %ld step%s from %g",
			      mu_conf_warmup_words[s->warmup_strategy], s->warmup_steps,
			      MU_S(s->warmup_steps), s->warmup_begin_lr);
	report_states(e);
	if (mu_optim_needs_norms(&v->optim))
		mu_log_detail(
			"norms over whole keys: nothing is updated before the last gradient of "
			"a step is there");
}

static void report_smoothing(const struct report_view *view)
{
	struct mu_loss_part part;
	char heads[256] = "";

	for (size_t i = 0; mu_loss_part(&part, view->metrics->loss, i, NULL); i++)
		if (*part.head && part.loss->smooths)
			snprintf(heads + strlen(heads), sizeof heads - strlen(heads), "%s %s",
				 *heads ? "," : " of head", part.head);
	mu_log_detail("label smoothing %g in training%s; metrics are those of the labels "
		      "themselves%s",
		      view->engine->conf->label_smoothing, heads,
		      *heads ? ", and Train-loss, the sum, has the smoothed ones" : "");
}

/* The batches and samples of an update. */
static void report_batch(const struct report_view *view)
{
	const struct mu_engine *e = view->engine;
	const struct conf *v = e->conf;
	size_t batch = e->train->config.batch, period = mu_engine_update_period(e);
	size_t n_updates = mu_engine_updates(e);
	size_t mine = batch * period, all = mine * e->team.n;
	char updates[96] = "", steps[64], device[256];

	snprintf(steps, sizeof steps, "step%s", MU_S(e->steps));

	if (period > 1) {
		snprintf(updates, sizeof updates, " (%zu batches of each worker make an update)",
			 period);
		snprintf(steps, sizeof steps, "batches and %zu update%s", n_updates,
			 MU_S(n_updates));
	}
	mu_log_detail("batch size %s per device, %zu per %s, %zu global%s; %zu sample%s in %zu "
		      "%s an epoch",
		      mu_engine_device_batches(&e->devices.list, batch, device, sizeof device),
		      batch, e->team.size > 1 ? "team" : "worker", all, updates, view->examples,
		      MU_S(view->examples), e->steps, steps);
	if (!v->evaluate)
		report_optimizer(view, e->store->synchronous && v->sync_period == 1 ? all : mine);
	mu_report_store(e);
	for (size_t i = 0; i < view->metrics->n; i++)
		if (view->metrics->of[i]->use & MU_METRIC_OF_WEIGHTS)
			mu_log_detail("training minimises %s: losses of a sample's targets, by "
				      "their weights, divided by the samples; %s is the mean of "
				      "the targets that count, by weight",
				      view->metrics->printed[i], view->metrics->mean->printed);
	if (v->label_smoothing > 0)
		report_smoothing(view);
}

/* Keys that are not trained. */
static void report_fixed(const struct report_view *view)
{
	size_t n_slices, fixed = 0, fixed_n = 0, all_n = 0;

	mu_plan_slices(view->engine->plan, &n_slices);
	for (size_t k = 0; k < n_slices; k++) {
		const struct mu_slice *slice = &view->slices[k];

		fixed += slice->fixed;
		fixed_n += slice->fixed ? slice->n : 0;
		all_n += slice->n;
	}
	if (fixed > 0)
		mu_log_detail("fixed: %zu of %zu arrays, %zu of %zu values", fixed, n_slices,
			      fixed_n, all_n);
}

void mu_report_start(const struct report_view *view)
{
	const struct mu_engine *e = view->engine;
	const struct conf *v = e->conf;
	char text[64];

	mu_report_data(e);
	report_model(e);
	report_fixed(view);
	report_store(view);
	mu_log_detail(
		"%s, %d thread%s per worker; speed and metrics below are those of the whole job%s",
		mu_members_text(e->members, text, sizeof text), e->n_threads, MU_S(e->n_threads),
		e->store->synchronous ? ""
				      : " (inside an epoch the metrics are those of worker 0)");
	mu_engine_team_report(e);
	mu_engine_comm_thread_report(e);
	mu_comm_report_launcher(e->members);
	mu_conf_slurm_report(
		e->members->topology.my_cores, strcmp(e->devices.list.kind->name, "gpu") == 0,
		v->model_prefix && v->load_epoch == 0 && strcmp(v->resume, "none") == 0);
	report_batch(view);
}
