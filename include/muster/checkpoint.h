/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: the weights of a file for a network of one's own; muster/train.h includes it. */
#ifndef MUSTER_CHECKPOINT_H
#define MUSTER_CHECKPOINT_H

#include <muster/base.h>
#include <muster/plan.h>

MU_BEGIN_C

/*
 * Load the parameters and running statistics of a checkpoint, or of another HDF5 file with arrays
 * arg/NAME and aux/NAME, into a flat array of the plan. MU_ERR_FORMAT lists all mismatches by name
 * and shape, arrays missing in the file, and arrays missing in the network; with skip_mismatch a
 * warning lists them and the rest is loaded. Not collective.
 */
enum mu_status mu_load_weights(const struct mu_plan *plan, const char *path, bool skip_mismatch,
			       float *flat);

MU_END_C

#endif
