/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of its own for a test that writes files. */
#ifndef MUSTER_SCRATCH_H
#define MUSTER_SCRATCH_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SCRATCH_BYTES = 512 };

/* Make a new folder under $TMPDIR or /tmp; false, with the reason printed, if that cannot be. */
static inline bool scratch_make(char folder[SCRATCH_BYTES])
{
	const char *base = getenv("TMPDIR");

	snprintf(folder, SCRATCH_BYTES, "%s/muster-test-XXXXXX", base && *base ? base : "/tmp");
	if (mkdtemp(folder))
		return true;
	perror(folder);
	return false;
}

/* Number of files in the folder. */
static inline int scratch_count(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = 0;

	if (!dir)
		return -1;
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(dir);
	return n;
}

/* Remove the files in the folder, and the folder. */
static inline void scratch_remove(const char *folder)
{
	char path[2 * SCRATCH_BYTES];
	DIR *dir = opendir(folder);

	if (!dir)
		return;
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			unlink(path);
	}
	closedir(dir);
	rmdir(folder);
}

#endif
