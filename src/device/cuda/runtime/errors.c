/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the driver and of libraries, with what to do about them. See errors.h and cuda.h. */
#include "device/cuda/runtime/errors.h"

#include "device/cuda/cuda.h"

static const char lost[] = ": the GPU is lost: dmesg (lines with Xid) and nvidia-smi show why; the "
			   "training can continue from its last checkpoint, on other GPUs or after "
			   "a reset";
static const char driver[] = ": a newer driver is needed, or Muster built with an older CUDA";

/* MU_ERR_HARDWARE: may pass, so that another start makes sense; MU_ERR_UNSUPPORTED: not by itself.
 */
static const struct {
	CUresult result;
	enum mu_status status;
	const char *cure;
} rows[] = {
	{CUDA_ERROR_NO_DEVICE, MU_ERR_UNSUPPORTED,
	 ": nvidia-smi lists the GPUs of this host; CUDA_VISIBLE_DEVICES, a container or the queue "
	 "may hide them"},
	{CUDA_ERROR_STUB_LIBRARY, MU_ERR_UNSUPPORTED,
	 ": libcuda.so.1 is the CUDA toolkit's stub: remove its folder from LD_LIBRARY_PATH"},
	{CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, MU_ERR_UNSUPPORTED,
	 ": the driver's library and kernel module have two versions: restart the host after an "
	 "update of the driver; a container must not bring a libcuda.so.1 of its own"},
	{CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, MU_ERR_UNSUPPORTED,
	 ": libcuda.so.1 is that of CUDA's package for forward compatibility, which does not "
	 "support this GPU: remove its folder from LD_LIBRARY_PATH"},
	{CUDA_ERROR_SYSTEM_NOT_READY, MU_ERR_HARDWARE,
	 ": GPUs joined by NVSwitch need the service nvidia-fabricmanager: start it"},
	{CUDA_ERROR_DEVICE_UNAVAILABLE, MU_ERR_HARDWARE,
	 ": another process has the GPU for itself (nvidia-smi lists processes and the compute "
	 "mode), or it is lost (dmesg, lines with Xid)"},
	{CUDA_ERROR_NO_BINARY_FOR_GPU, MU_ERR_UNSUPPORTED,
	 ": this build has no kernels for this GPU: compute capability 8.0 or later is needed"},
	{CUDA_ERROR_UNSUPPORTED_PTX_VERSION, MU_ERR_UNSUPPORTED, driver},
	{CUDA_ERROR_OUT_OF_MEMORY, MU_ERR_MEMORY,
	 ": the GPU's memory is full: a smaller batch size needs less; nvidia-smi lists other "
	 "processes"},
	{CUDA_ERROR_ECC_UNCORRECTABLE, MU_ERR_HARDWARE, lost},
	{CUDA_ERROR_NVLINK_UNCORRECTABLE, MU_ERR_HARDWARE, lost},
	{(CUresult)226, MU_ERR_HARDWARE, lost}, /* CUDA_ERROR_CONTAINED of later headers */
	{CUDA_ERROR_HARDWARE_STACK_ERROR, MU_ERR_HARDWARE, lost},
	{CUDA_ERROR_LAUNCH_TIMEOUT, MU_ERR_HARDWARE, lost},
	{CUDA_ERROR_LAUNCH_FAILED, MU_ERR_HARDWARE, lost},
	{CUDA_ERROR_EXTERNAL_DEVICE, MU_ERR_HARDWARE, lost},
	{CUDA_ERROR_UNKNOWN, MU_ERR_HARDWARE, lost},
};

const char *mu_cuda_cure(CUresult result, enum mu_status *st)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].result == result) {
			*st = rows[i].status;
			return rows[i].cure;
		}
	*st = MU_ERR_DEVICE;
	return "";
}

const char *mu_cuda_text(const struct cuda_api *api, CUresult result)
{
	const char *text = NULL;

	if (api->cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
		return "an error that the driver does not know";
	return text;
}

enum mu_status mu_cuda_failed(const struct cuda_device *d, const char *function, CUresult result)
{
	enum mu_status st = MU_OK, kind;
	const char *cure = mu_cuda_cure(result, &kind);

	MU_FAIL(kind, "gpu:%d: %s: %s%s", d->index, function, mu_cuda_text(&d->api, result), cure);
out:
	return st;
}

/* A GPU that is lost answers all calls with the error. */
enum mu_status mu_cuda_library_failed(const struct cuda_device *d, const char *function,
				      const char *text)
{
	enum mu_status st = MU_OK;
	const CUresult state = d->worked ? d->api.cuEventQuery(d->worked) : CUDA_SUCCESS;

	if (state != CUDA_SUCCESS && state != CUDA_ERROR_NOT_READY)
		return mu_cuda_failed(d, function, state);
	MU_FAIL(MU_ERR_DEVICE, "gpu:%d: %s: %s", d->index, function, text);
out:
	return st;
}
