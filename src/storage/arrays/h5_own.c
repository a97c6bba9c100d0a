/* SPDX-License-Identifier: Apache-2.0 */
/* What HDF5 files of other programs may be: in newer formats, and in several files. See h5.h. */
#include "h5.h"

#include <string.h>

void mu_h5_add_advice(char message[MU_H5_MESSAGE])
{
	const size_t n = strlen(message);

	if (strstr(message, "version"))
		snprintf(message + n, MU_H5_MESSAGE - n,
			 ": the file is damaged, or of a newer HDF5 than %d.%d here; write it with "
			 "h5py's libver=('v110', 'v110'), or convert it by the newer h5repack -j 2 "
			 "-k 2",
			 H5_VERS_MAJOR, H5_VERS_MINOR);
}

/* The name by which the file of an object was opened. */
static enum mu_status file_of(hid_t object, const char *path, char **name)
{
	enum mu_status st = MU_OK;
	ssize_t n;

	MU_H5_TRY(path, n = H5Fget_name(object, NULL, 0));
	MU_TRY(MU_ALLOC(*name, (size_t)n + 1, "name of a file"));
	MU_H5_TRY(path, H5Fget_name(object, *name, (size_t)n + 1));
out:
	return st;
}

enum mu_status mu_h5_check_own(hid_t file, hid_t set, const char *path, const char *name)
{
	enum mu_status st = MU_OK;
	char *ours = NULL, *found = NULL;
	hid_t list = -1;

	MU_TRY(file_of(file, path, &ours));
	MU_TRY(file_of(set, path, &found));
	if (strcmp(ours, found) != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array \"%s\" is a link to another file, %s, which is not followed; "
			"copy "
			"it into this file (h5copy -f ext)",
			path, name, found);
	MU_H5_TRY(path, list = H5Dget_create_plist(set));
	if (H5Pget_external_count(list) != 0 || H5Pget_layout(list) == H5D_VIRTUAL)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: the numbers of array \"%s\" are in other files, which are not read; "
			"h5repack writes one file of all",
			path, name);
out:
	mu_h5_close_list(list);
	mu_free(ours);
	mu_free(found);
	return st;
}
