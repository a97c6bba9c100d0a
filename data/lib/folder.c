/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that a tool made: see folder.h. */
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

enum mu_status data_folder_claim(const char *path)
{
	enum mu_status st = MU_OK;
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* until the process ends */

	if (fd < 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be used: %s", path, strerror(errno));
	/* Other errors: this file system has no locks. */
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		MU_FAIL(MU_ERR_IO,
			"%s: another process writes its files to this folder: wait for its end, or "
			"name another folder",
			path);
out:
	return st;
}

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
