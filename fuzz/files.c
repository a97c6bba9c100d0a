/* SPDX-License-Identifier: Apache-2.0 */
/* Files for fuzz targets. What cannot be done ends the program: it is no finding. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES_MAX = 4, PATH_BYTES = 256 };

static char folder[PATH_BYTES / 2];

static struct {
	const char *name;
	char path[PATH_BYTES];
} files[NAMES_MAX];

static void give_up(const char *what)
{
	perror(what);
	_exit(3);
}

static void remove_files(void)
{
	for (int i = 0; i < NAMES_MAX; i++)
		if (files[i].name)
			unlink(files[i].path);
	rmdir(folder);
}

static void make_folder(void)
{
	if (*folder)
		return;
	snprintf(folder, sizeof folder, "/dev/shm/muster-fuzz-XXXXXX");
	if (!mkdtemp(folder)) {
		snprintf(folder, sizeof folder, "/tmp/muster-fuzz-XXXXXX");
		if (!mkdtemp(folder))
			give_up(folder);
	}
	atexit(remove_files);
}

const char *fuzz_file(const char *name, const uint8_t *data, size_t n)
{
	int i = 0;
	FILE *f;

	make_folder();
	while (i < NAMES_MAX && files[i].name && strcmp(files[i].name, name) != 0)
		i++;
	if (i == NAMES_MAX)
		give_up("too many names");
	files[i].name = name;
	snprintf(files[i].path, PATH_BYTES, "%s/%.100s", folder, name);
	f = fopen(files[i].path, "wb");
	if (!f || (n && fwrite(data, 1, n, f) != n) || fclose(f) != 0)
		give_up(files[i].path);
	return files[i].path;
}

void fuzz_read_records(const char *paths, const struct mu_records_config *config)
{
	struct mu_records *r;
	struct mu_records_info info;
	struct mu_record_buffer buffer = {0};
	struct mu_record record;
	char where[600];
	uint32_t sum = 0;

	if (mu_records_open(&r, paths, config) == MU_OK) {
		mu_records_info(r, &info);
		buffer.ahead = info.n / 2;
		for (size_t i = 0; i < info.n; i++) {
			mu_records_where(r, i, where, sizeof where);
			if (mu_records_read(r, i, &buffer, &record) != MU_OK)
				continue;
			/* Every byte that the record claims is there. */
			for (size_t j = 0; j < record.n; j++)
				sum += record.data[j];
			for (size_t j = 0; j < record.n_labels; j++)
				sum += record.labels[j] > 0;
		}
		for (size_t i = 0; info.class_names && i < info.classes; i++)
			sum += (uint32_t)strlen(info.class_names[i]);
	}
	if (sum == 1) /* so that the sum is needed */
		mu_trace_clear();
	mu_trace_clear();
	mu_records_close(r);
	mu_record_buffer_release(&buffer);
}
