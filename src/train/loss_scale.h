/* SPDX-License-Identifier: Apache-2.0 */
/* The scale of the loss of networks in half precision. */
#ifndef TRAIN_LOSS_SCALE_H
#define TRAIN_LOSS_SCALE_H

#include "conf/options.h"

struct train_run;

/* ---- loss_scale.c: --loss-scale ---- */

/*
 * A scale of the loss (struct mu_batch), fixed or dynamic: halved when a gradient overflows, whose
 * batch is left out, and doubled after so many good batches. Alike on all workers of synchronous
 * stores, for they agree on what overflows; 0: none.
 */
struct train_loss_scale {
	double scale;
	bool dynamic;
	size_t window;         /* good batches before it grows */
	size_t good, in_a_row; /* good batches since the last change; bad ones in a row */
	size_t left_out;       /* batches so far */
};

/* Of a run whose batches and devices are known. */
void mu_train_loss_scale_begin(struct train_run *run);

#endif
