/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of this build in order of preference. A new device is one line in each list here. */
#include "config.h"

#include "device/op.h"

#ifdef HAVE_CUDA
extern const struct mu_device_ops mu_device_cuda;
#endif
#ifdef HAVE_ONEDNN
extern const struct mu_device_ops mu_device_cpu;
#endif
extern const struct mu_device_ops mu_device_ref;

const struct mu_device_ops *const mu_device_table[] = {
#ifdef HAVE_ONEDNN
	&mu_device_cpu,
#endif
	&mu_device_ref,
#ifdef HAVE_CUDA
	&mu_device_cuda,
#endif
	NULL,
};
