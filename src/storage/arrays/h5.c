/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that use HDF5: see h5.h. */
#include "h5.h"

#include <errno.h>
#include <fcntl.h>
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

/*
 * ---- files ----
 *
 * HDF5 1.10 does not survive a file system's errors: a file whose H5Fcreate, H5Fflush or H5Fclose
 * could not write, or whose close(2) failed, stays in its tables, and its handler in MPI_Finalize
 * crashes or loops. So files are opened by a copy of its driver of POSIX files, which tells HDF5 of
 * no such error and notes the first one for mu_h5_close_written. HDF5 closes a descriptor of
 * /dev/null; the file's is closed here.
 */

static struct {
	hid_t id;
	H5FD_class_t sec2, ours;
	int write_error, close_error; /* errno; 0: none */
} driver;

static herr_t write_file(H5FD_t *file, H5FD_mem_t type, hid_t list, haddr_t at, size_t nbytes,
			 const void *data)
{
	errno = 0;
	if (driver.sec2.write(file, type, list, at, nbytes, data) < 0 && !driver.write_error)
		driver.write_error = errno ? errno : EIO;
	return 0;
}

static herr_t truncate_file(H5FD_t *file, hid_t list, hbool_t closing)
{
	errno = 0;
	if (driver.sec2.truncate(file, list, closing) < 0 && !driver.write_error)
		driver.write_error = errno ? errno : EIO;
	return 0;
}

static herr_t close_file(H5FD_t *file)
{
	void *handle = NULL;
	int fd = -1, null = -1;
	herr_t answer;

	if (driver.sec2.get_handle(file, H5P_DEFAULT, &handle) >= 0 && handle) {
		fd = fcntl(*(const int *)handle, F_DUPFD_CLOEXEC, 0);
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null >= 0 && fd >= 0)
			dup2(null, *(const int *)handle);
		if (null >= 0)
			close(null);
	}
	answer = driver.sec2.close(file);
	if (fd >= 0 && close(fd) != 0)
		driver.close_error = errno;
	return answer;
}

/* HDF5 shows the functions of a driver only in a file that is open. */
static enum mu_status make_driver(const char *path)
{
	enum mu_status st = MU_OK;
	hid_t list = -1;
	H5FD_t *file = NULL;

	MU_H5_TRY(path, list = H5Pcreate(H5P_FILE_ACCESS));
	MU_H5_TRY(path, H5Pset_fapl_sec2(list));
	file = H5FDopen("/dev/null", H5F_ACC_RDONLY, list, 1 << 20);
	MU_H5_TRY(path, file ? 0 : -1);
	driver.ours = driver.sec2 = *file->cls;
	driver.ours.name = "muster";
	driver.ours.terminate = NULL;
	driver.ours.write = write_file;
	driver.ours.truncate = truncate_file;
	driver.ours.close = close_file;
	MU_H5_TRY(path, driver.id = H5FDregister(&driver.ours));
out:
	if (file)
		H5FDclose(file);
	mu_h5_close_list(list);
	return st;
}

enum mu_status mu_h5_close_written(const char *path, hid_t file)
{
	enum mu_status st = MU_OK;
	int error;

	driver.close_error = 0;
	MU_H5_TRY(path, H5Fclose(file));
	error = driver.write_error ? driver.write_error : driver.close_error;
	errno = error;
	if (error)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", path, strerror(error));
out:
	driver.write_error = 0;
	return st;
}

void mu_h5_close_read(const char *path, hid_t file)
{
	driver.close_error = 0;
	if (file >= 0)
		H5Fclose(file);
	if (driver.close_error)
		mu_log_warn("%s: cannot be closed: %s", path, strerror(driver.close_error));
}

void mu_h5_give_up(hid_t file)
{
	if (file >= 0)
		H5Fclose(file);
	driver.write_error = 0;
}

enum mu_status mu_h5_access_list(const char *path, hid_t *list)
{
	enum mu_status st = MU_OK;

	if (H5Iis_valid(driver.id) <= 0) /* at the first file, or after H5close */
		MU_TRY(make_driver(path));
	MU_H5_TRY(path, *list = H5Pcreate(H5P_FILE_ACCESS));
	MU_H5_TRY(path, H5Pset_driver(*list, driver.id, NULL));
	MU_H5_TRY(path, H5Pset_fclose_degree(*list, H5F_CLOSE_STRONG));
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
	MU_H5_TRY(path, H5Pset_file_locking(*list, false, true));
#endif
out:
	return st;
}
