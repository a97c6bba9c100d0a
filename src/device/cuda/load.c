/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the CUDA libraries by name: first by the loader's search (LD_LIBRARY_PATH, run path,
 * ld.so.conf), then in the folders that configure found. The driver belongs to the machine, so only
 * the loader's search is used for it.
 */
#include "config.h"

#include "cuda.h"

#include <dlfcn.h>
#include <stdlib.h>
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
	const char *what;     /* for errors: what to install */
	const struct symbol *symbols;
	const char *folders; /* "a:b"; NULL: the loader's search only */
};

/* The functions used from cuBLAS are the same in versions 12 and 13. */
static const struct library libraries[] = {
	[DRIVER] = {{"libcuda.so.1"}, "NVIDIA's driver", driver_symbols, NULL},
	[BLAS_LIBRARY] = {{"libcublas.so." WORD(CUBLAS_VER_MAJOR), "libcublas.so.12"},
			  "cuBLAS, of the CUDA toolkit",
			  blas_symbols,
			  MU_CUDA_LIBRARY_PATH},
	[DNN_LIBRARY] = {{"libcudnn.so." WORD(CUDNN_MAJOR)},
			 "cuDNN 9",
			 dnn_symbols,
			 MU_CUDA_LIBRARY_PATH},
};

void *mu_cuda_open_in(const char *folders, const char *file)
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
			handle = mu_cuda_open_in(l->folders, l->files[i]);
	}
	if (!handle)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s (%s)", reason, l->what);
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

const char *mu_cuda_text(const struct cuda_api *api, CUresult result)
{
	const char *text = NULL;

	if (api->cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
		return "an error that the driver does not know";
	return text;
}

enum mu_status mu_cuda_load_driver(struct cuda_api *api)
{
	enum mu_status st = MU_OK;
	CUresult result;

	MU_TRY(open_library(api, DRIVER));
	result = api->cuInit(0);
	if (result != CUDA_SUCCESS)
		MU_FAIL(MU_ERR_DEVICE, "the driver says: %s", mu_cuda_text(api, result));
out:
	return st;
}

enum mu_status mu_cuda_load_libraries(struct cuda_api *api)
{
	enum mu_status st = MU_OK;

	MU_TRY(open_library(api, BLAS_LIBRARY));
	MU_TRY(open_library(api, DNN_LIBRARY));
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
