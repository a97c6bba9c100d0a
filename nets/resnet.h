/* SPDX-License-Identifier: Apache-2.0 */
/* resnet: what the residual networks share: depths, widths, the stem and the end. */
#ifndef NETS_RESNET_H
#define NETS_RESNET_H

#include <muster/net.h>

struct resnet {
	long depth;
	int n_stages;
	int units[4];
	int stem;       /* filters of the first convolution */
	int filters[4]; /* output filters of each stage */
	bool bottleneck;
	bool small; /* images of height <= 32: a 3x3 stem without pooling */
};

/*
 * From image height and --num-layers, as MXNet chooses: height <= 28 takes the CIFAR depths, 6n+2
 * below 164 and 9n+2 from there (He et al., Identity Mappings, 2016), height > 28 the ImageNet
 * depths, with the small stem up to height 32. There MXNet refuses the CIFAR depths; here those
 * that are no ImageNet depth work at heights 29 to 32, too. Without --num-layers: 20 up to height
 * 32, else 50. Notes the choice in the net.
 */
enum mu_status mu_resnet_choose(struct mu_net *net, const struct mu_net_config *config,
				struct resnet *r);

/* The end of all of them: global average pooling, a fully connected layer, softmax. */
void mu_resnet_head(struct mu_net *net, int in, const struct mu_net_config *config);

#endif
