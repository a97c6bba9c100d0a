/* SPDX-License-Identifier: Apache-2.0 */
/* The networks that --network knows. A new one: its file beside this one, and a line in each list
 * here. */
#include <muster/net.h>

extern const struct mu_network mu_network_lenet;
extern const struct mu_network mu_network_mlp;

const struct mu_network *const mu_network_table[] = {
	&mu_network_lenet,
	&mu_network_mlp,
	NULL,
};
