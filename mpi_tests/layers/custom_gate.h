/* SPDX-License-Identifier: Apache-2.0 */
/* The network of custom_gate.c: (3, 6, 6), 5 classes, smooth everywhere. */
#ifndef MUSTER_CUSTOM_GATE_H
#define MUSTER_CUSTOM_GATE_H

#include <muster/net.h>

extern const struct mu_network custom_gates;

#endif
