/* SPDX-License-Identifier: Apache-2.0 */
/* The random network of test_campaign, see random_net.c. */
#ifndef MUSTER_RANDOM_NET_H
#define MUSTER_RANDOM_NET_H

/* num_layers = seed << 32 | number of the case; seed < 2^31. */
#define RANDOM_NET "random"

#endif
