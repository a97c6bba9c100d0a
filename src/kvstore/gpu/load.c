/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL and the driver's functions, opened by name. */
#include "config.h"

#include "nccl.h"

#include <dlfcn.h>
#include <string.h>

#include <muster/base.h>

#include "device/cuda/runtime/errors.h"

#define WORD_OF(x) #x
#define WORD(x) WORD_OF(x)

/* A function of a library, and the offset of its address in struct nccl_api. */
struct symbol {
	const char *name;
	size_t at;
};

/* The name after expansion: some names are macros. */
#define SYMBOL(f) {WORD(f), offsetof(struct nccl_api, f)},
static const struct symbol driver_symbols[] = {NCCL_DRIVER_FUNCTIONS(SYMBOL){NULL, 0}};
static const struct symbol nccl_symbols[] = {NCCL_FUNCTIONS(SYMBOL){NULL, 0}};

static void *open_one(const char *file)
{
	return dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* Tries the folders of "a:b" in their order. */
static void *open_in(const char *folders, const char *file)
{
	char path[1024];
	void *handle = NULL;

	while (*folders && !handle) {
		const size_t n = strcspn(folders, ":");

		if ((size_t)snprintf(path, sizeof path, "%.*s/%s", (int)n, folders, file) <
		    sizeof path)
			handle = open_one(path);
		folders += n + (folders[n] == ':');
	}
	return handle;
}

static enum mu_status find_symbols(struct nccl_api *api, void *handle, const char *file,
				   const struct symbol *symbols)
{
	enum mu_status st = MU_OK;

	for (const struct symbol *s = symbols; s->name; s++) {
		void *address = dlsym(handle, s->name);

		if (!address)
			MU_FAIL(MU_ERR_UNSUPPORTED,
				"%s has no function %s: a newer version is needed",
				file, s->name);
		memcpy((char *)api + s->at, &address, sizeof address);
	}
out:
	return st;
}

enum mu_status mu_nccl_load(struct nccl_api *api, bool with_nccl)
{
	enum mu_status st = MU_OK;
	static const char driver[] = "libcuda.so.1", nccl[] = "libnccl.so." WORD(NCCL_MAJOR);
	void *handle = open_one(driver);
	char reason[256];

	if (!handle)
		MU_FAIL(MU_ERR_UNSUPPORTED, "NVIDIA's driver cannot be opened: %s", dlerror());
	MU_TRY(find_symbols(api, handle, driver, driver_symbols));
	if (!with_nccl)
		goto out;
	handle = open_one(nccl);
	if (!handle) {
		snprintf(reason, sizeof reason, "%s", dlerror());
		handle = open_in(MU_NCCL_LIBRARY_PATH, nccl);
	}
	if (!handle)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"NCCL cannot be opened: %s, nor in %s; name its folder in LD_LIBRARY_PATH",
			reason, MU_NCCL_LIBRARY_PATH);
	MU_TRY(find_symbols(api, handle, nccl, nccl_symbols));
out:
	return st;
}

enum mu_status mu_kv_gpus_check(void)
{
	struct nccl_api api;

	return mu_nccl_load(&api, true);
}

static enum mu_status failed(const struct nccl_api *api, int gpu, const char *what, CUresult result)
{
	enum mu_status st = MU_OK, kind;
	const char *text = NULL, *cure = mu_cuda_cure(result, &kind);

	if (api->cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
		text = "unknown error";
	MU_FAIL(kind, "gpu:%d: %s: %s%s", gpu, what, text, cure);
out:
	return st;
}

/* A GPU has the same number as its place in the driver's list. */
enum mu_status mu_nccl_driver_failed(const struct nccl_api *api, const char *what, CUresult result)
{
	CUdevice gpu = 0;

	api->cuCtxGetDevice(&gpu);
	return failed(api, gpu, what, result);
}

enum mu_status mu_nccl_gpu_failed(const struct mu_nccl *n, const struct nccl_gpu *g,
				  const char *what, CUresult result)
{
	return failed(&n->api, g->device->index, what, result);
}
