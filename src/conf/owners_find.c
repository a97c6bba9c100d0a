/* SPDX-License-Identifier: Apache-2.0 */
/* Which network, objective and reader a command line names: the owners of its options. */
#include "conf.h"
#include "text.h"

#include <string.h>

#include <muster/metrics.h>
#include <muster/net.h>

#include "input/reader.h"

enum mu_status mu_conf_network(const struct mu_network **network, const char *name)
{
	enum mu_status st = mu_network_find(network, name);

	if (st != MU_OK)
		mu_trace_prefix("--"); /* the message begins with "network NAME" */
	return st;
}

enum mu_status mu_conf_objective(const struct mu_loss **loss, const struct mu_network *network,
				 const char *name)
{
	enum mu_status st = MU_OK;

	*loss = NULL;
	if (name)
		MU_TRY(mu_loss_find(loss, name));
	if (name && network && !network->objective)
		MU_FAIL(MU_ERR_USAGE,
			"objective %s: network %s ends in a loss of its own, which its file "
			"chooses: leave the option out",
			name, network->name);
	if (!name && network && network->objective)
		MU_TRY(mu_loss_find(loss, network->objective));
out:
	if (st != MU_OK)
		mu_trace_prefix("--");
	return st;
}

bool mu_conf_asks(const struct conf *v)
{
	return v->help || v->help_all || v->version || v->info;
}

static bool is_file(const char *name)
{
	return strchr(name, '/') || mu_stem(name, ".so");
}

/* Data whose names do not say it, which may be pictures. */
static const struct mu_reader folders = {.name = "folders",
					 .help = "a folder of --data-dir",
					 MU_PICTURE_SETTINGS},
			      no_data = {.name = "none",
					 .help = "a run without --data-train",
					 MU_PICTURE_SETTINGS};

/* Not by the files, which servers may not see. */
enum mu_status mu_conf_reader(const struct mu_reader **reader, const struct conf *v)
{
	const char *name = v->benchmark              ? "synthetic"
			   : mu_conf_reads_text(v)   ? "text"
			   : mu_conf_reads_tokens(v) ? "tokens"
			   : mu_conf_reads_arrays(v) ? "arrays"
						     : "records";

	*reader = v->data_dir ? &folders : &no_data;
	if (v->data_train || v->data_val || v->benchmark)
		return mu_input_reader(name, reader);
	return MU_OK;
}

enum mu_status mu_conf_options_find(struct mu_options *o, struct conf *v, int argc,
				    char *const argv[])
{
	enum mu_status st = MU_OK;
	struct conf_owner owner = {.network = NULL};

	MU_TRY(mu_conf_options_open(o, v, &owner));
	mu_options_scan(o, argc, argv);
	if (!mu_conf_asks(v))
		MU_TRY(mu_conf_reader(&owner.reader, v));
	/* An error of a network's own file comes before those of its options. */
	if (v->network && is_file(v->network) && !mu_conf_asks(v))
		MU_TRY(mu_conf_network(&owner.network, v->network));
	else if (v->network && mu_network_find(&owner.network, v->network) != MU_OK)
		mu_trace_clear();
	/* Without the option a checkpoint may say which it is: rows of all until then. */
	if (v->objective && !mu_conf_asks(v))
		MU_TRY(mu_conf_objective(&owner.objective, owner.network, v->objective));
	MU_TRY(mu_conf_options_open(o, v, &owner));
out:
	return st;
}

enum mu_status mu_conf_options_parse(struct mu_options *o, struct conf *v, int argc,
				     char *const argv[])
{
	enum mu_status st = MU_OK;
	struct conf_owner owner;

	MU_TRY(mu_conf_options_find(o, v, argc, argv));
	MU_TRY(mu_options_parse(o, argc, argv));
	owner = (struct conf_owner){.network = v->owner.network, .reader = v->owner.reader};
	if (!owner.network || v->owner.objective || mu_conf_asks(v))
		goto out;
	MU_TRY(mu_conf_objective(&owner.objective, owner.network, NULL));
	MU_TRY(mu_conf_options_open(o, v, &owner));
	MU_TRY(mu_options_parse(o, argc, argv));
out:
	return st;
}
