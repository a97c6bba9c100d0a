/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other frameworks that are given where a checkpoint is wanted, by their first bytes. */
#include "foreign.h"

#include <string.h>

#include <muster/base.h>
#include <muster/storage.h>

#define SAVE \
	"save the model as safetensors (save_pretrained, or safetensors.torch.save_file), and " \
	"convert that by muconvert"
#define PICKLE "; it is Python's pickle, as of an early PyTorch, which is not read: " SAVE

static const struct {
	const char *start;
	size_t n;
	const char *advice;
} table[] = {
	{"\x12\x01\0\0\0\0\0\0", 8, "; it is MXNet's: muconvert makes one of it"},
	{"PK\3\4", 4,
	 "; it is a zip file, as PyTorch and NumPy write them, which is not read: " SAVE},
	{"\x80\2", 2, PICKLE},
	{"\x80\3", 2, PICKLE},
	{"\x80\4", 2, PICKLE},
	{"\x80\5", 2, PICKLE},
	{"\x93NUMPY", 6, "; it is NumPy's, which is not read: " SAVE},
};

const char *mu_array_file_advice(const char *path)
{
	char start[8];
	const size_t n = mu_stream_head(path, start, sizeof start);

	if (mu_stem(path, ".safetensors"))
		return "; muconvert makes one of safetensors";
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (n >= table[i].n && memcmp(start, table[i].start, table[i].n) == 0)
			return table[i].advice;
	return "";
}
