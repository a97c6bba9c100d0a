/* SPDX-License-Identifier: Apache-2.0 */
/* The depths of residual networks, and their end. */
#include "resnet.h"

#include <stdio.h>
#include <string.h>

static const struct {
	int depth, units[4];
	bool bottleneck;
} imagenet[] = {
	{18, {2, 2, 2, 2}, false},   {34, {3, 4, 6, 3}, false},  {50, {3, 4, 6, 3}, true},
	{101, {3, 4, 23, 3}, true},  {152, {3, 8, 36, 3}, true}, {200, {3, 24, 36, 3}, true},
	{269, {3, 30, 48, 8}, true},
};

enum { N_IMAGENET = sizeof imagenet / sizeof *imagenet, BOTTLENECK_FROM = 164 };

static bool choose_imagenet(struct resnet *r)
{
	for (int i = 0; i < N_IMAGENET; i++) {
		if (imagenet[i].depth != r->depth)
			continue;
		r->n_stages = 4;
		r->stem = 64;
		r->bottleneck = imagenet[i].bottleneck;
		for (int s = 0; s < 4; s++) {
			r->units[s] = imagenet[i].units[s];
			r->filters[s] = (r->bottleneck ? 256 : 64) << s;
		}
		return true;
	}
	return false;
}

static bool choose_cifar(struct resnet *r)
{
	int layers_per_unit = r->depth >= BOTTLENECK_FROM ? 9 : 6;

	if (r->depth < 8 || (r->depth - 2) % layers_per_unit != 0)
		return false;
	r->n_stages = 3;
	r->stem = 16;
	r->bottleneck = r->depth >= BOTTLENECK_FROM;
	for (int s = 0; s < 3; s++) {
		r->units[s] = (int)(r->depth - 2) / layers_per_unit;
		r->filters[s] = (r->bottleneck ? 64 : 16) << s;
	}
	return true;
}

static void list_imagenet(char *text, size_t nbytes)
{
	size_t at = 0;

	for (int i = 0; i < N_IMAGENET && at < nbytes; i++)
		at += (size_t)snprintf(text + at, nbytes - at, "%s%d", i ? ", " : "",
				       imagenet[i].depth);
}

enum mu_status mu_resnet_choose(struct mu_net *net, const struct mu_net_config *config,
				struct resnet *r)
{
	enum mu_status st = MU_OK;
	size_t height = mu_sample_picture(&config->shape).h;
	char list[64];

	*r = (struct resnet){.small = height <= 32};
	r->depth = config->num_layers ? config->num_layers : r->small ? 20 : 50;
	if ((height <= 28 || !choose_imagenet(r)) && (height > 32 || !choose_cifar(r))) {
		list_imagenet(list, sizeof list);
		MU_FAIL(MU_ERR_USAGE,
			"num_layers %ld: network %s has no such depth for images of height %zu; "
			"up to height 32 it has 8, 14, 20 and every sixth up to 158, and 164, 173 "
			"and every ninth from there; above height 28 it has %s",
			r->depth, config->network, height, list);
	}
	mu_net_set_depth(net, r->depth);
	mu_net_note(net, "%s-%ld: %s stem for height %zu, %d stages of %s units from %d filters",
		    config->network, r->depth, r->small ? "3x3" : "7x7", height, r->n_stages,
		    r->bottleneck ? "bottleneck" : "basic", r->filters[0]);
out:
	return st;
}

void mu_resnet_head(struct mu_net *net, int in, const struct mu_net_config *config)
{
	const struct mu_pooling pool = {.average = true, .global = true};
	const struct mu_fully_connected fc = {.units = (int)config->classes};
	int x;

	mu_net_group(net, "head");
	x = mu_net_pooling(net, in, &pool, "pool1");
	x = mu_net_flatten(net, x, NULL);
	x = mu_net_fully_connected(net, x, &fc, "fc1");
	mu_net_objective(net, x);
}
