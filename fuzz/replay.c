/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain program from a fuzz target: feeds it files, and all files of folders, then each of them
 * cut short and with a bit changed here and there. Prints how many inputs there were.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 1 << 20, CHANGES = 64, PATH_BYTES = 4096 };

static size_t inputs;

static void feed(const uint8_t *data, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1); /* of its own, so that a sanitizer knows its end */

	if (!copy)
		return;
	memcpy(copy, data, n);
	LLVMFuzzerTestOneInput(copy, n);
	inputs++;
	free(copy);
}

static void feed_file(const char *path)
{
	static uint8_t data[BYTES_MAX];
	FILE *f = fopen(path, "rb");
	size_t n = f ? fread(data, 1, sizeof data, f) : 0;

	if (!f) {
		perror(path);
		exit(1);
	}
	fclose(f);
	feed(data, n);
	for (size_t i = 0; i < CHANGES && n > 0; i++) {
		size_t at = i * 2654435761u % n;
		uint8_t bit = (uint8_t)(1 << i % 8);

		feed(data, at);
		data[at] ^= bit;
		feed(data, n);
		data[at] ^= bit;
	}
}

int main(int argc, char **argv)
{
	char path[PATH_BYTES];

	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);

		if (!dir) {
			feed_file(argv[i]);
			continue;
		}
		for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
			if (entry->d_name[0] == '.')
				continue;
			snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
			feed_file(path);
		}
		closedir(dir);
	}
	printf("%zu inputs\n", inputs);
	return inputs == 0;
}
