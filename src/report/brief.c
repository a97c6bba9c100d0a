/* SPDX-License-Identifier: Apache-2.0 */
/* The start log in the plain form: what is trained on what, in some lines that fit a terminal. */
#include "report.h"

#include <stdarg.h>
#include <string.h>

#include <muster/base.h>

enum { COLUMNS = 100, HOSTS_SHOWN = 4 };

/* A line, cut where the terminal would continue it. */
static void put(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(const char *label, const char *format, ...)
{
	static const char cut[] = " ...";
	char line[COLUMNS + 1];
	int n = snprintf(line, sizeof line, "%-10s ", label);
	va_list args;

	va_start(args, format);
	n += vsnprintf(line + n, sizeof line - (size_t)n, format, args);
	va_end(args);
	if (n > COLUMNS)
		memcpy(line + sizeof line - sizeof cut, cut, sizeof cut);
	mu_log_plain("%s", line);
}

static void put_network(const struct mu_engine *e)
{
	struct mu_net_counts counts;
	char device[160];

	mu_net_counts(e->net, &counts);
	mu_engine_device_text(&e->devices.of[0].device, device, sizeof device);
	put("network", "%s, %zu parameters, on %s%s", e->conf->network_name, counts.params, device,
	    e->devices.list.n > 1 ? " and others" : "");
}

static void put_data(const struct mu_engine *e)
{
	const struct conf *v = e->conf;
	const struct mu_input *in = e->train;
	char validation[64] = "", shape[MU_SAMPLE_TEXT];

	if (e->validate)
		snprintf(validation, sizeof validation, " + %zu for validation", e->validate->n);
	put("data", "%zu sample%s%s, %s, %zu %s: %s", in->n, MU_S(in->n), validation,
	    mu_sample_text(mu_input_shape(in), " x ", shape, sizeof shape), in->classes,
	    mu_report_outputs(in),
	    v->benchmark    ? "random numbers"
	    : v->data_train ? v->data_train
			    : v->data_dir);
}

/* "vm", or "4 hosts: a, b, c, d" */
static void list_hosts(const struct mu_members *m, char *text, size_t nbytes)
{
	size_t n = 0;

	if (m->topology.num_nodes > 1)
		n = (size_t)snprintf(text, nbytes, "%d hosts: ", m->topology.num_nodes);
	for (int node = 0; node < m->topology.num_nodes && n < nbytes; node++) {
		if (node == HOSTS_SHOWN) {
			snprintf(text + n, nbytes - n, ", ...");
			return;
		}
		for (int r = 0; r < m->size; r++) {
			if (m->topology.node_of[r] != node)
				continue;
			n += (size_t)snprintf(text + n, nbytes - n, "%s%s", node ? ", " : "",
					      m->topology.hosts[r]);
			break;
		}
	}
}

static void put_ranks(const struct mu_engine *e)
{
	const struct mu_members *m = e->members;
	char hosts[512] = "", servers[32] = "";

	list_hosts(m, hosts, sizeof hosts);
	if (m->num_servers > 0)
		snprintf(servers, sizeof servers, ", %d server%s", m->num_servers,
			 MU_S(m->num_servers));
	put("ranks", "%d worker%s of %d thread%s%s, %s, on %s", m->num_workers,
	    MU_S(m->num_workers), e->n_threads, MU_S(e->n_threads), servers, e->conf->kv_store,
	    hosts);
}

static void put_steps(const struct report_view *view)
{
	const struct mu_engine *e = view->engine;
	const size_t batch = e->train->config.batch;
	char each[64] = "";

	if (e->team.n > 1)
		snprintf(each, sizeof each, " (%zu per %s)", batch,
			 e->team.size > 1 ? "team" : "worker");
	put("steps", "batches of %zu sample%s%s, %zu step%s an epoch, %ld epoch%s",
	    batch * e->team.n, MU_S(batch * e->team.n), each, e->steps,
	    MU_S(e->steps), e->conf->num_epochs,
	    MU_S(e->conf->num_epochs));
}

static void put_optimizer(const struct report_view *view)
{
	const struct conf *v = view->engine->conf;
	const struct mu_rule *rule = NULL;
	const size_t tokens = mu_shape_space(mu_input_shape(view->engine->train), 0);
	char text[128] = "";
	size_t n = 0;

	if (mu_rule_find(&rule, v->optimizer) != MU_OK)
		return;
	if (mu_rule_setting(rule, "lr"))
		n += (size_t)snprintf(text, sizeof text, ", lr %g (%s)", view->lr,
				      mu_conf_schedule_words[v->schedule.kind]);
	if (mu_rule_setting(rule, "mom"))
		n += (size_t)snprintf(text + n, sizeof text - n, ", momentum %g", v->optim.mom);
	snprintf(text + n, sizeof text - n, ", weight decay %g", v->optim.wd);
	put("optimizer", "%s%s", v->optimizer, text);
	if ((view->engine->network->traits & MU_NETWORK_SEQUENCES) && tokens > 1)
		put("gradients", "sums over the %zu tokens of a sequence; PyTorch's are means",
		    tokens);
}

static void put_files(const struct conf *v)
{
	if (v->model_prefix && !v->evaluate)
		put("writes", "%s-0001.h5, ...", v->model_prefix);
	if (v->log_file)
		put("log", "%s", v->log_file);
}

void mu_report_start_brief(const struct report_view *view)
{
	const struct mu_engine *e = view->engine;

	put_network(e);
	put_data(e);
	put_ranks(e);
	if (!e->conf->evaluate) {
		put_steps(view);
		put_optimizer(view);
	}
	put_files(e->conf);
}
