/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that a tool made: see folder.h. */
#include "folder.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

void data_folder_remove(const char *path)
{
	char inside[PATH_BYTES];
	DIR *stream = opendir(path);

	if (!stream)
		return;
	for (struct dirent *entry = readdir(stream); entry; entry = readdir(stream)) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name) < PATH_BYTES &&
		    unlink(inside) != 0)
			data_folder_remove(inside);
	}
	closedir(stream);
	rmdir(path);
}
