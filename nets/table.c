/* SPDX-License-Identifier: Apache-2.0 */
/* The networks that --network knows. A new one: its file beside this one, and a line in each list
 * here. */
#include <muster/net.h>

extern const struct mu_network mu_network_lstm;
extern const struct mu_network mu_network_mlp;
extern const struct mu_network mu_network_lenet;
extern const struct mu_network mu_network_resnet;
extern const struct mu_network mu_network_resnet_v1;
extern const struct mu_network mu_network_resnext;
extern const struct mu_network mu_network_inception_bn;
extern const struct mu_network mu_network_inception_bn_small;
extern const struct mu_network mu_network_inception_v3;
extern const struct mu_network mu_network_googlenet;
extern const struct mu_network mu_network_alexnet;
extern const struct mu_network mu_network_vgg;
extern const struct mu_network mu_network_vgg_bn;
extern const struct mu_network mu_network_mobilenet;
extern const struct mu_network mu_network_mobilenet_075;
extern const struct mu_network mu_network_mobilenet_050;
extern const struct mu_network mu_network_mobilenet_025;
extern const struct mu_network mu_network_gpt2;
extern const struct mu_network mu_network_gpt2_355m;
extern const struct mu_network mu_network_gpt2_774m;
extern const struct mu_network mu_network_gpt2_1558m;
extern const struct mu_network mu_network_llama;
extern const struct mu_network mu_network_vit_tiny;
extern const struct mu_network mu_network_vit_small;
extern const struct mu_network mu_network_vit_base;

const struct mu_network *const mu_network_table[] = {
	&mu_network_mlp,
	&mu_network_lenet,
	&mu_network_resnet,
	&mu_network_resnet_v1,
	&mu_network_resnext,
	&mu_network_inception_bn,
	&mu_network_inception_bn_small,
	&mu_network_inception_v3,
	&mu_network_googlenet,
	&mu_network_alexnet,
	&mu_network_vgg,
	&mu_network_vgg_bn,
	&mu_network_mobilenet,
	&mu_network_mobilenet_075,
	&mu_network_mobilenet_050,
	&mu_network_mobilenet_025,
	&mu_network_lstm,
	&mu_network_gpt2,
	&mu_network_gpt2_355m,
	&mu_network_gpt2_774m,
	&mu_network_gpt2_1558m,
	&mu_network_llama,
	&mu_network_vit_tiny,
	&mu_network_vit_small,
	&mu_network_vit_base,
	NULL,
};
