/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the CUDA libraries by name: first by the loader's search (LD_LIBRARY_PATH, run path,
 * ld.so.conf), then in the folders that configure found. The driver belongs to the machine, so only
 * the loader's search is used for it.
 */
#include "config.h"

#include "device/cuda/cuda.h"
#include "device/cuda/runtime/errors.h"

#include <dlfcn.h>
#include <string.h>

#include <muster/base.h>

#define WORD_OF(x) #x
#define WORD(x) WORD_OF(x)

enum { DRIVER, BLAS_LIBRARY, DNN_LIBRARY };

/* A function of a library, and the offset of its address in struct cuda_api. */
struct symbol {
	const char *name;
	size_t at;
};

/* The name that the header's macro expands to. */
#define SYMBOL(f) {WORD(f), offsetof(struct cuda_api, f)},
static const struct symbol driver_symbols[] = {CUDA_DRIVER_FUNCTIONS(SYMBOL){NULL, 0}};
static const struct symbol blas_symbols[] = {CUDA_BLAS_FUNCTIONS(SYMBOL){NULL, 0}};
static const struct symbol dnn_symbols[] = {CUDA_DNN_FUNCTIONS(SYMBOL){NULL, 0}};

struct library {
	const char *files[3]; /* the first that exists is used; ends with NULL */
	const char *what, *cure; /* for errors: what to install, and how */
	const struct symbol *symbols;
	const char *folders; /* "a:b"; NULL: the loader's search only */
};

static const char folder[] = "install it, or name its folder in LD_LIBRARY_PATH";

/* The functions used from cuBLAS are the same in versions 12 and 13. */
static const struct library libraries[] = {
	[DRIVER] = {{"libcuda.so.1"},
		    "NVIDIA's driver",
		    "install it, or start the container with the GPUs",
		    driver_symbols,
		    NULL},
	[BLAS_LIBRARY] = {{"libcublas.so." WORD(CUBLAS_VER_MAJOR), "libcublas.so.12"},
			  "cuBLAS, of the CUDA toolkit",
			  folder,
			  blas_symbols,
			  MU_CUDA_LIBRARY_PATH},
	[DNN_LIBRARY] = {{"libcudnn.so." WORD(CUDNN_MAJOR)},
			 "cuDNN " WORD(CUDNN_MAJOR),
			 folder,
			 dnn_symbols,
			 MU_CUDA_LIBRARY_PATH},
};

/* It stays open until the process ends. NULL: no folder has it. */
static void *open_in(const char *folders, const char *file)
{
	char path[1024];
	void *handle = NULL;

	while (folders && *folders && !handle) {
		const size_t n = strcspn(folders, ":");

		if ((size_t)snprintf(path, sizeof path, "%.*s/%s", (int)n, folders, file) <
		    sizeof path)
			handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
		folders += n + (folders[n] == ':');
	}
	return handle;
}

void mu_cuda_keep_nvrtc(const struct cuda_api *api)
{
	char file[64];

	snprintf(file, sizeof file, "libnvrtc.so.%zu", api->cudnnGetCudartVersion() / 1000);
	if (!dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
		open_in(MU_CUDA_LIBRARY_PATH, file);
}

static enum mu_status open_library(struct cuda_api *api, int which)
{
	enum mu_status st = MU_OK;
	const struct library *l = &libraries[which];
	const char *said;
	char reason[256] = "";
	void *handle = NULL;

	for (size_t i = 0; i < sizeof l->files / sizeof *l->files && l->files[i] && !handle; i++) {
		handle = dlopen(l->files[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
		if (!handle && !*reason && (said = dlerror()))
			snprintf(reason, sizeof reason, "%s", said);
		if (!handle)
			handle = open_in(l->folders, l->files[i]);
	}
	if (!handle)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s (%s: %s)", reason, l->what, l->cure);
	api->handles[which] = handle;
	for (const struct symbol *s = l->symbols; s->name; s++) {
		void *address = dlsym(handle, s->name);

		if (!address)
			MU_FAIL(MU_ERR_UNSUPPORTED,
				"%s has no function %s: a newer version is needed", l->what,
				s->name);
		memcpy((char *)api + s->at, &address, sizeof address);
	}
out:
	return st;
}

enum mu_status mu_cuda_load_driver(struct cuda_api *api)
{
	enum mu_status st = MU_OK, kind;
	const char *cure;
	CUresult result;

	MU_TRY(open_library(api, DRIVER));
	result = api->cuInit(0);
	cure = mu_cuda_cure(result, &kind);
	if (result != CUDA_SUCCESS)
		MU_FAIL(kind, "the driver says: %s%s", mu_cuda_text(api, result), cure);
out:
	return st;
}

/* A library works with drivers for its own major version of CUDA, and with later ones. Without a
 * driver, where plans are made for GPUs that are not there, it need not. */
static enum mu_status check_driver(const struct cuda_api *api, const char *library, int cuda)
{
	enum mu_status st = MU_OK;
	int driver = 0;

	if (!api->cuDriverGetVersion || api->cuDriverGetVersion(&driver) != CUDA_SUCCESS ||
	    driver / 1000 >= cuda)
		goto out;
	MU_FAIL(MU_ERR_UNSUPPORTED,
		"NVIDIA's driver is for CUDA %d.%d, and %s for CUDA %d: install a newer driver, or "
		"%s for CUDA %d",
		driver / 1000, driver % 1000 / 10, library, cuda, library, driver / 1000);
out:
	return st;
}

static enum mu_status check_versions(const struct cuda_api *api)
{
	enum mu_status st = MU_OK;
	const size_t dnn = api->cudnnGetVersion();
	const size_t major = dnn / (dnn >= 90000 ? 10000 : 1000); /* until 8.9: 8907 */
	int blas = 0;

	if (major != CUDNN_MAJOR)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"libcudnn.so." WORD(CUDNN_MAJOR) " is cuDNN %zu: install cuDNN " WORD(
				CUDNN_MAJOR) ", or name its folder in LD_LIBRARY_PATH",
			major);
	if (api->cublasGetProperty(MAJOR_VERSION, &blas) == CUBLAS_STATUS_SUCCESS)
		MU_TRY(check_driver(api, "cuBLAS", blas));
	MU_TRY(check_driver(api, "cuDNN", (int)(api->cudnnGetCudartVersion() / 1000)));
out:
	return st;
}

enum mu_status mu_cuda_load_libraries(struct cuda_api *api)
{
	enum mu_status st = MU_OK;

	MU_TRY(open_library(api, BLAS_LIBRARY));
	MU_TRY(open_library(api, DNN_LIBRARY));
	MU_TRY(check_versions(api));
out:
	return st;
}

void mu_cuda_unload(struct cuda_api *api)
{
	for (size_t i = sizeof api->handles / sizeof *api->handles; i-- > 0;)
		if (api->handles[i])
			dlclose(api->handles[i]);
	*api = (struct cuda_api){.handles = {NULL}};
}
