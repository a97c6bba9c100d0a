/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernels compute for one element, or for one row: formulas in plain C, equal to those of
 * the reference device (src/device/ref), a header an operation. Before a header of them come
 * CUDA_FUNCTION, the qualifiers of a function, CUDA_SHARED and CUDA_BARRIER; sum_of and most_of,
 * the sum and the maximum over the threads of a row; warp_sum and warp_most, over a warp.
 */
#ifndef DEVICE_CUDA_KERNELS_OPERATIONS_H
#define DEVICE_CUDA_KERNELS_OPERATIONS_H

#include "attention.h"
#include "batch_norm_groups.h"
#include "dropout.h"
#include "elements.h"
#include "embedding.h"
#include "group_norm.h"
#include "layer_norm.h"
#include "losses.h"
#include "lrn.h"
#include "lstm.h"
#include "pooling.h"
#include "positions.h"
#include "smooth.h"
#include "softmax.h"
#include "space.h"
#include "step.h"

#endif
