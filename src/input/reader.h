/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readers that there are. A new one is a file with one const table, a line here and a line in
 * the list in input.c.
 */
#ifndef MUSTER_INPUT_READER_H
#define MUSTER_INPUT_READER_H

#include <muster/input.h>

extern const struct mu_reader mu_reader_cifar;
extern const struct mu_reader mu_reader_idx;
extern const struct mu_reader mu_reader_synthetic;

#endif
