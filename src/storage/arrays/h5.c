/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that use HDF5: see h5.h. */
#include "h5.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "storage/file.h"

/*
 * A file that cannot be closed, for the disk is full, stays in HDF5's tables, and its handler at
 * exit then crashes. All files are closed where they are used, so the handler has nothing to do.
 * This has an effect before the process's first call of HDF5 only.
 */
static void leave_exit_alone(void)
{
	static bool done;

	if (!done)
		H5dont_atexit();
	done = true;
}

void mu_h5_quiet_begin(struct mu_h5_quiet *q)
{
	leave_exit_alone();
	*q = (struct mu_h5_quiet){0};
	H5Eget_auto2(H5E_DEFAULT, &q->print, &q->data);
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void mu_h5_quiet_end(const struct mu_h5_quiet *q)
{
	H5Eset_auto2(H5E_DEFAULT, q->print, q->data);
}

/* For a failed system call HDF5 reports time, file, addresses and more, on two lines: keep only
 * what it tried and the system's message. */
static herr_t copy_first(unsigned n, const H5E_error2_t *error, void *text)
{
	static const char mark[] = "error message = '";
	const char *what = error->desc ? error->desc : "";
	const char *cause = strstr(what, mark);

	if (n > 0)
		return 0;
	if (cause) {
		cause += sizeof mark - 1;
		snprintf(text, MU_H5_MESSAGE, "%.*s: %.*s", (int)strcspn(what, ":"), what,
			 (int)strcspn(cause, "'"), cause);
	} else {
		snprintf(text, MU_H5_MESSAGE, "%s", what);
	}
	return 0;
}

const char *mu_h5_message(char text[MU_H5_MESSAGE])
{
	snprintf(text, MU_H5_MESSAGE, "no message from HDF5");
	H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, copy_first, text);
	mu_h5_add_advice(text);
	return text;
}

/* Where a folder vanishes during a call, HDF5 may tell no message of the system: add it. */
static void add_folder_error(const char *path, char message[MU_H5_MESSAGE])
{
	const size_t used = strlen(message);
	char folder[MU_FOLDER_BYTES];

	mu_folder_of(folder, path);
	if (!strchr(message, ':') && access(folder, X_OK) != 0)
		snprintf(message + used, MU_H5_MESSAGE - used, ": %s", strerror(errno));
}

enum mu_status mu_h5_check(long long answer, const char *path, const char *call)
{
	enum mu_status st = MU_OK;
	char message[MU_H5_MESSAGE];

	if (answer < 0) {
		const char *equals = strstr(call, "= H5");
		const char *name = equals ? equals + 2 : call;

		mu_h5_message(message);
		add_folder_error(path, message);
		MU_FAIL(MU_ERR_IO, "%s: %.*s failed: %s", path, (int)strcspn(name, "("), name,
			message);
	}
out:
	return st;
}

void mu_h5_close_type(hid_t type)
{
	if (type >= 0)
		H5Tclose(type);
}

void mu_h5_close_space(hid_t space)
{
	if (space >= 0)
		H5Sclose(space);
}

void mu_h5_close_list(hid_t list)
{
	if (list >= 0)
		H5Pclose(list);
}

void mu_h5_close_set(hid_t set)
{
	if (set >= 0)
		H5Dclose(set);
}

void mu_h5_close_attribute(hid_t attribute)
{
	if (attribute >= 0)
		H5Aclose(attribute);
}

enum mu_status mu_h5_access_list(const char *path, hid_t *list)
{
	enum mu_status st = MU_OK;

	MU_H5_TRY(path, *list = H5Pcreate(H5P_FILE_ACCESS));
	MU_H5_TRY(path, H5Pset_fclose_degree(*list, H5F_CLOSE_STRONG));
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
	MU_H5_TRY(path, H5Pset_file_locking(*list, false, true));
#endif
out:
	return st;
}
