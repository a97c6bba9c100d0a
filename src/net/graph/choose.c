/* SPDX-License-Identifier: Apache-2.0 */
/* Find a network by its name, a depth by num_layers. Errors list the known ones. */
#include <muster/net.h>

#include <string.h>

#include <muster/base.h>

static bool is_file(const char *name)
{
	size_t n = strlen(name);

	return strchr(name, '/') || (n > 3 && strcmp(name + n - 3, ".so") == 0);
}

static bool same_name(const char *known, const char *typed)
{
	size_t i;

	for (i = 0; known[i] && typed[i]; i++)
		if (known[i] != (typed[i] == '_' ? '-' : typed[i]))
			return false;
	return known[i] == typed[i];
}

enum mu_status mu_network_find(const struct mu_network **out, const char *name)
{
	enum mu_status st = MU_OK;
	char list[1024] = "";

	if (is_file(name))
		return mu_network_load(out, name);
	for (size_t i = 0; mu_network_table[i]; i++) {
		if (same_name(mu_network_table[i]->name, name)) {
			*out = mu_network_table[i];
			return MU_OK;
		}
		snprintf(list + strlen(list), sizeof list - strlen(list), " %s",
			 mu_network_table[i]->name);
	}
	MU_FAIL(MU_ERR_USAGE, "network %s: unknown; known networks are:%s", name, list);
out:
	return st;
}

enum mu_status mu_net_find_depth(const struct mu_net_config *config, const int *depths, size_t n,
				 size_t *found)
{
	enum mu_status st = MU_OK;
	char list[256] = "";

	for (size_t i = 0; i < n; i++) {
		if (config->num_layers == depths[i] || config->num_layers == 0) {
			*found = i;
			return MU_OK;
		}
		snprintf(list + strlen(list), sizeof list - strlen(list), "%s %d", i ? "," : "",
			 depths[i]);
	}
	MU_FAIL(MU_ERR_USAGE, "num_layers %ld: network %s has no such depth; it has:%s",
		config->num_layers, config->network, list);
out:
	return st;
}
