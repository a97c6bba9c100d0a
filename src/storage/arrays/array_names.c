/* SPDX-License-Identifier: Apache-2.0 */
/* Names in a file of named arrays: "arg/convolution0_weight" is an array of the group "arg". */
#include "array_file.h"

#include <string.h>

enum mu_status mu_array_find_link(struct mu_array_file *f, const char *name, bool *found)
{
	enum mu_status st = MU_OK;
	char part[MU_ARRAY_NAME_BYTES];
	htri_t answer = 1;

	if (strlen(name) >= sizeof part || !*name)
		MU_FAIL(MU_ERR_ARGUMENT, "%s: array name \"%s\" must have 1 to %d letters", f->path,
			name, MU_ARRAY_NAME_BYTES - 1);
	for (size_t n = 0; answer > 0 && name[n]; n += name[n] == '/') {
		n += strcspn(name + n, "/");
		memcpy(part, name, n);
		part[n] = '\0';
		MU_H5(answer = H5Lexists(f->file, part, H5P_DEFAULT));
	}
	*found = answer > 0;
out:
	return st;
}

enum mu_status mu_array_file_has(struct mu_array_file *f, const char *name, bool *found)
{
	enum mu_status st = MU_OK;
	struct mu_h5_quiet quiet;

	mu_h5_quiet_begin(&quiet);
	MU_TRY(mu_array_find_link(f, name, found));
out:
	mu_h5_quiet_end(&quiet);
	return st;
}

/* HDF5 takes "a//b" and "a/./b" for "a/b". */
static bool is_path(const char *name)
{
	for (const char *p = name;; p++) {
		const size_t n = strcspn(p, "/");

		if (n == 0 || (n == 1 && *p == '.'))
			return false;
		p += n;
		if (!*p)
			return true;
	}
}

/* *found: the link of the name is a group. */
static enum mu_status is_group(struct mu_array_file *f, const char *name, bool *found)
{
	enum mu_status st = MU_OK;
	hid_t object = -1;

	MU_H5(object = H5Oopen(f->file, name, H5P_DEFAULT));
	*found = H5Iget_type(object) == H5I_GROUP;
out:
	if (object >= 0)
		H5Oclose(object);
	return st;
}

static enum mu_status refuse_both(const struct mu_array_file *f, const char *name, const char *more)
{
	enum mu_status st = MU_OK;

	MU_FAIL(MU_ERR_FORMAT,
		"%s: arrays \"%s\" and \"%s/%s\" cannot both be in an HDF5 file, where \"%s\" "
		"would "
		"be a group: give one another name",
		f->path, name, name, more, name);
out:
	return st;
}

enum mu_status mu_array_make_groups(struct mu_array_file *f, const char *name)
{
	enum mu_status st = MU_OK;
	char part[MU_ARRAY_NAME_BYTES];
	hid_t list = -1, group;
	bool found, group_found = false;

	if (*name && !is_path(name))
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array name \"%s\" has an empty part or \".\", which HDF5 leaves out",
			f->path, name);
	MU_H5(list = H5Pcreate(H5P_GROUP_CREATE));
	MU_H5(H5Pset_link_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED));
	MU_H5(H5Pset_obj_track_times(list, false));
	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
		MU_TRY(mu_array_find_link(f, part, &found));
		if (found)
			MU_TRY(is_group(f, part, &group_found));
		if (found && !group_found)
			MU_TRY(refuse_both(f, part, slash + 1));
		if (found)
			continue;
		MU_H5(group = H5Gcreate2(f->file, part, H5P_DEFAULT, list, H5P_DEFAULT));
		MU_H5(H5Gclose(group));
	}
	MU_TRY(mu_array_find_link(f, name, &found));
	if (found)
		MU_TRY(is_group(f, name, &group_found));
	if (found && group_found)
		MU_TRY(refuse_both(f, name, "..."));
	if (found)
		MU_FAIL(MU_ERR_ARGUMENT, "%s: array \"%s\" is written twice", f->path, name);
out:
	mu_h5_close_list(list);
	return st;
}
