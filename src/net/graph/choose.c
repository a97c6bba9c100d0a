/* SPDX-License-Identifier: Apache-2.0 */
/* Find a network by its name, a depth by num_layers. Errors list the known ones. */
#include <muster/net.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

static bool is_file(const char *name)
{
	return strchr(name, '/') || mu_stem(name, ".so");
}

static bool same_name(const char *known, const char *typed)
{
	size_t i;

	for (i = 0; known[i] && typed[i]; i++)
		if (known[i] != (typed[i] == '_' ? '-' : tolower((unsigned char)typed[i])))
			return false;
	return known[i] == typed[i];
}

/* The network with this name, compared by letters and digits only; NULL: none. */
static const struct mu_network *find_letters(const char *name)
{
	for (size_t i = 0; mu_network_table[i]; i++) {
		const char *known = mu_network_table[i]->name, *typed = name;

		while (*known && tolower((unsigned char)*typed) == *known) {
			do
				known++;
			while (*known && !isalnum((unsigned char)*known));
			do
				typed++;
			while (*typed && !isalnum((unsigned char)*typed));
		}
		if (!*known && !*typed)
			return mu_network_table[i];
	}
	return NULL;
}

const struct mu_network *mu_network_guess(const char *name, long *depth)
{
	const size_t before = strcspn(name, "0123456789");
	const struct mu_network *found = find_letters(name);
	char text[64], *end;

	*depth = 0;
	if (found || !name[before] || strlen(name) >= sizeof text)
		return found;
	*depth = strtol(name + before, &end, 10);
	snprintf(text, sizeof text, "%.*s%s", (int)before, name, end);
	found = find_letters(text);
	text[before] = '\0';
	if (!found)
		found = find_letters(text);
	if (!found || *depth <= 0 || (!(found->traits & MU_NETWORK_DEPTHS) && *end))
		return NULL;
	if (!(found->traits & MU_NETWORK_DEPTHS)) /* "LeNet-5" */
		*depth = 0;
	return found;
}

/* "", or "; the nearest is lenet". */
static const char *nearest(const char *name, char *text, size_t nbytes)
{
	const struct mu_network *best = NULL;

	for (size_t i = 0; mu_network_table[i]; i++) {
		const char *known = mu_network_table[i]->name;

		if (tolower((unsigned char)*name) == *known && mu_name_is_near(name, known) &&
		    (!best || mu_name_distance(name, known) < mu_name_distance(name, best->name)))
			best = mu_network_table[i];
	}
	snprintf(text, nbytes, "%s%s", best ? "; the nearest is " : "", best ? best->name : "");
	return text;
}

enum mu_status mu_network_find(const struct mu_network **out, const char *name)
{
	enum mu_status st = MU_OK;
	const struct mu_network *meant;
	char list[1024] = "", near[128];
	long depth;

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
	meant = mu_network_guess(name, &depth);
	if (meant && depth > 0)
		MU_FAIL(MU_ERR_USAGE, "network %s: unknown; take network %s with num_layers %ld",
			name, meant->name, depth);
	if (meant)
		MU_FAIL(MU_ERR_USAGE, "network %s: unknown; take network %s", name, meant->name);
	MU_FAIL(MU_ERR_USAGE, "network %s: unknown%s; known networks are:%s", name,
		nearest(name, near, sizeof near), list);
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
