/* SPDX-License-Identifier: Apache-2.0 */
/* Folders to write to: mu_folder_make of storage.h, mu_folder_of of file.h. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <muster/storage.h>

#include "file.h"

static enum mu_status make_one_folder(const char *path)
{
	enum mu_status st = MU_OK;
	struct stat status;

	if (mkdir(path, 0777) == 0)
		goto out;
	if (errno != EEXIST)
		MU_FAIL(MU_ERR_IO, "%s: the folder cannot be made: %s", path, strerror(errno));
	if (stat(path, &status) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be used: %s", path, strerror(errno));
	if (!S_ISDIR(status.st_mode))
		MU_FAIL(MU_ERR_IO, "%s: is there, but is not a folder", path);
out:
	return st;
}

enum mu_status mu_folder_make(const char *path)
{
	enum mu_status st = MU_OK;
	char part[MU_FOLDER_BYTES];

	if (strlen(path) >= sizeof part)
		MU_FAIL(MU_ERR_IO, "%.60s...: the path is longer than %zu bytes", path,
			sizeof part - 1);
	for (const char *c = path; *c; c++) {
		if (c > path && *c == '/' && c[-1] != '/') {
			memcpy(part, path, (size_t)(c - path));
			part[c - path] = '\0';
			MU_TRY(make_one_folder(part));
		}
	}
	MU_TRY(make_one_folder(path));
	if (access(path, W_OK | X_OK) != 0)
		MU_FAIL(MU_ERR_IO, "%s: the folder cannot be written to: %s", path,
			strerror(errno));
out:
	return st;
}

void mu_folder_of(char folder[MU_FOLDER_BYTES], const char *path)
{
	const char *slash = strrchr(path, '/');
	const int n = slash && slash != path ? (int)(slash - path) : 1;

	snprintf(folder, MU_FOLDER_BYTES, "%.*s", n, slash ? path : ".");
}
