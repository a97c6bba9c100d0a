/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bundle of machine code (fatbinary) as the driver reads it: a header, then entries for the
 * kinds of GPU. Ours have compute capability 9.0: entries of machine code for that alone count.
 */
#include <stdint.h>
#include <string.h>

#include "pretend.h"

struct header {
	uint32_t magic;
	uint16_t version, nbytes;
	uint64_t nbytes_entries;
};
struct entry {
	uint16_t kind, version;
	uint32_t nbytes_header;
	uint64_t nbytes;
	uint32_t unused[3], capability;
	unsigned char flags[8];
};
enum { MAGIC = (int)0xBA55ED50, MACHINE_CODE = 2, OURS = 90 };

/* A module: its machine code for our kind of GPU. */
struct CUmod_st {
	const char *code;
	size_t n;
};

CUresult cuModuleLoadData(CUmodule *m, const void *p)
{
	const char *at = p, *end;
	struct CUmod_st found = {NULL, 0};
	struct header h;
	struct entry e;

	NEED(pretend_device() >= 0 && (uintptr_t)p % 8 == 0);
	memcpy(&h, p, sizeof h);
	NEED(h.magic == (uint32_t)MAGIC && h.version == 1 && h.nbytes >= sizeof h);
	at += h.nbytes;
	end = at + h.nbytes_entries;
	while (at < end) {
		memcpy(&e, at, sizeof e);
		NEED(e.nbytes_header >= sizeof e && at + e.nbytes_header + e.nbytes <= end);
		at += e.nbytes_header;
		if (e.kind == MACHINE_CODE && e.capability == OURS)
			found = (struct CUmod_st){at, e.nbytes};
		at += e.nbytes;
	}
	if (!found.code)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	*m = malloc(sizeof **m);
	NEED(*m);
	**m = found;
	return 0;
}
CUresult cuModuleUnload(CUmodule m)
{
	free(m);
	return 0;
}

/* A kernel's instructions are a section of the ELF file, .text.NAME. */
int pretend_has_kernel(CUmodule m, const char *name)
{
	char section[128];
	const int n = snprintf(section, sizeof section, ".text.%s", name) + 1;

	NEED(m && memcmp(m->code, "\177ELF", 4) == 0);
	return memmem(m->code, m->n, section, (size_t)n) != NULL;
}
