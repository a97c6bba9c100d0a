/* SPDX-License-Identifier: Apache-2.0 */
/* The stores of a model by their names: the rows of comm/stores.def, and the forms on GPUs. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "comm/store.h"
#include "kv.h"

#define HAS(facts, fact) (((facts)&MU_STORE_##fact) != 0)
#define STORE(type, behaviour, forms, facts) \
	{.name = type, \
	 .ops = (behaviour), \
	 .has_servers = HAS(facts, HAS_SERVERS), \
	 .hosted = HAS(facts, HOSTED), \
	 .one_worker = HAS(facts, ONE_WORKER), \
	 .own_weights = HAS(facts, OWN_WEIGHTS), \
	 .workers_update = HAS(facts, WORKERS_UPDATE), \
	 .synchronous = HAS(facts, SYNCHRONOUS), \
	 .sums_on_devices = HAS(facts, SUMS_ON_DEVICES), \
	 .on_gpus = HAS(facts, ON_GPUS), \
	 .gpus = (forms)},

/* A store that needs NCCL has no ops of its own: mu_kv_kind_of sets them. */
static const struct mu_kv_kind kinds[] = {
#include "comm/stores.def"
};

enum { N_KINDS = sizeof kinds / sizeof *kinds };

#ifdef HAVE_NCCL
static const struct mu_kv_ops *const nccl = &mu_kv_nccl, *const node = &mu_kv_node;
#else
static const struct mu_kv_ops *const nccl = NULL, *const node = NULL;
#endif

/* Does this build have the store? */
static bool is_built(const struct mu_kv_kind *kind)
{
	return kind->ops || nccl;
}

/* NULL: no store has this name. */
static const struct mu_kv_kind *find(const char *type)
{
	for (size_t i = 0; type && i < N_KINDS; i++)
		if (strcmp(type, kinds[i].name) == 0)
			return &kinds[i];
	return NULL;
}

bool mu_kv_kind_has_gpus(const char *type, unsigned gpus)
{
	const struct mu_kv_kind *kind = find(type);

	return kind && nccl && (kind->gpus & gpus);
}

struct mu_kv_kind mu_kv_kind_of(const struct mu_kv_config *config)
{
	struct mu_kv_kind kind = *find(config->type);
	const bool by_node =
		!(kind.gpus & MU_KV_GPUS_NCCL) || config->node_reduce == MU_KV_NODE_NCCL;

	if (!kind.on_gpus && !config->on_gpus)
		return kind;
	kind.on_gpus = true;
	if (by_node && (kind.gpus & MU_KV_GPUS_NODE)) {
		kind.below = kind.ops;
		kind.ops = node;
	} else {
		kind.ops = nccl;
		kind.hosted = false;
	}
	return kind;
}

/* "local, dist_sync, ..." */
static void list_names(char *text, size_t nbytes)
{
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < N_KINDS && n < nbytes; i++)
		if (is_built(&kinds[i]))
			n += (size_t)snprintf(text + n, nbytes - n, "%s%s", i ? ", " : "",
					      kinds[i].name);
}

enum mu_status mu_kv_type_check(const char *type, struct mu_kv_type *is)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_kind *kind = find(type);
	char names[320];

	*is = (struct mu_kv_type){.has_servers = false};
	list_names(names, sizeof names);
	if (!kind)
		MU_FAIL(MU_ERR_USAGE, "kv-store '%s' is not known: %s are", type ? type : "",
			names);
	if (!is_built(kind))
		MU_FAIL(MU_ERR_USAGE,
			"kv-store '%s' sums on GPUs with NCCL, and this build has no CUDA with "
			"NCCL (configure --with-cuda=DIR --with-nccl=DIR); it has %s",
			type, names);
	*is = (struct mu_kv_type){
		.has_servers = kind->has_servers,
		.distributed = !kind->one_worker,
		.synchronous = kind->synchronous,
		.sums_on_devices = kind->sums_on_devices,
		.on_gpus = kind->on_gpus,
		.takes_gpus = nccl && kind->gpus,
		.takes_lives = kind->hosted && !kind->workers_update,
	};
out:
	return st;
}
