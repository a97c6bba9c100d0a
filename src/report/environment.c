/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environment variables that other libraries read and results may depend on: the number of threads,
 * where they run, and which instructions oneDNN uses. The log names those that are set, and ranks
 * where they differ.
 */
#include "report.h"

#include <string.h>

#include <muster/base.h>

extern char **environ;

/* ONEDNN_ is the newer name of DNNL_. */
static const char *const prefixes[] = {"OMP_", "GOMP_", "KMP_", "DNNL_", "ONEDNN_"};
static const char *const others[] = {"NVIDIA_TF32_OVERRIDE="};
/* They change the speed or the output, no result. The trainer itself sets GOMP_SPINCOUNT and
 * DNNL_JIT_PROFILE. */
static const char *const harmless[] = {
	"OMP_DISPLAY_ENV=", "OMP_DISPLAY_AFFINITY=", "OMP_AFFINITY_FORMAT=",
	"OMP_WAIT_POLICY=", "GOMP_SPINCOUNT=",       "KMP_BLOCKTIME=",
	"DNNL_VERBOSE=",    "ONEDNN_VERBOSE=",       "OMP_TOOL_LIBRARIES=",
	"DNNL_JIT_PROFILE=",
};

#define N(table) (sizeof table / sizeof *table)

static bool begins_with(const char *text, const char *const *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(text, table[i], strlen(table[i])) == 0)
			return true;
	return false;
}

static bool matters(const char *pair)
{
	return (begins_with(pair, prefixes, N(prefixes)) || begins_with(pair, others, N(others))) &&
	       !begins_with(pair, harmless, N(harmless));
}

/* The first in the order of the alphabet that comes after `after`; NULL: none. */
static const char *next_pair(const char *after)
{
	const char *next = NULL;

	for (char **pair = environ; pair && *pair; pair++)
		if (matters(*pair) && (!after || strcmp(*pair, after) > 0) &&
		    (!next || strcmp(*pair, next) < 0))
			next = *pair;
	return next;
}

void mu_report_environment(struct report_environment *e)
{
	size_t n = 0;

	memset(e, 0, sizeof *e);
	e->hash = MU_HASH_START;
	for (const char *pair = next_pair(NULL); pair; pair = next_pair(pair)) {
		e->hash = mu_hash(e->hash, pair, strlen(pair) + 1);
		if (n < sizeof e->text)
			n += (size_t)snprintf(e->text + n, sizeof e->text - n, "%s%s",
					      n ? ", " : "", pair);
	}
}

void mu_report_environments(const struct mu_engine *e, const struct report_environment *of_rank)
{
	const struct mu_members *m = e->members;
	const struct report_environment *mine = &of_rank[m->rank];
	char who[128];
	int n = 0, workers = 0, first = -1, index;

	if (*mine->text)
		mu_log_detail("environment: %s", mine->text);
	for (int r = m->size; r-- > 0;) {
		if (mu_members_role(m, r, &index) != MU_ROLE_WORKER)
			continue;
		workers++;
		if (of_rank[r].hash != mine->hash) {
			n++;
			first = r;
		}
	}
	if (n > 0)
		mu_log_warn("%d of %d workers ha%s another environment than worker 0, and may "
			    "compute other bits: %s has %s, worker 0 has %s",
			    n, workers, n == 1 ? "s" : "ve",
			    mu_members_name(m, first, who, sizeof who),
			    *of_rank[first].text ? of_rank[first].text : "none of such variables",
			    *mine->text ? mine->text : "none of such variables");
}
