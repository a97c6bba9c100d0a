/* SPDX-License-Identifier: Apache-2.0 */
/* The random network of test_campaign. */
#ifndef MUSTER_RANDOM_NET_H
#define MUSTER_RANDOM_NET_H

#include "net/plan.h"

enum { RANDOM_CLASSES = 4 };

/* config->num_layers = seed << 32 | number of the case; seed < 2^31. */
extern const struct mu_network random_network;

#endif
