/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files that use HDF5. HDF5's own error output is off between quiet_begin and
 * quiet_end; its innermost message becomes a part of the error. Debian's parallel HDF5 is not
 * thread-safe: one thread of a process calls it.
 */
#ifndef MUSTER_STORAGE_H5_H
#define MUSTER_STORAGE_H5_H

#include <muster/base.h>

#include <hdf5.h>

enum { MU_H5_MESSAGE = 512 };

/* The caller's error handler, saved. */
struct mu_h5_quiet {
	H5E_auto2_t print;
	void *data;
};

void mu_h5_quiet_begin(struct mu_h5_quiet *q);
void mu_h5_quiet_end(const struct mu_h5_quiet *q);

/* HDF5's innermost message; the outer ones only say that an inner one failed. */
const char *mu_h5_message(char text[MU_H5_MESSAGE]);
/* h5_own.c: what to do about a format that the library here does not know, after the message. */
void mu_h5_add_advice(char message[MU_H5_MESSAGE]);
/* h5_own.c: MU_ERR_FORMAT unless the numbers of the array are in this file: links to other files,
 * external storage and virtual arrays have them elsewhere. */
enum mu_status mu_h5_check_own(hid_t file, hid_t set, const char *path, const char *name);
/* MU_ERR_IO for a negative result. */
enum mu_status mu_h5_check(long long answer, const char *path, const char *call);
/* MU_TRY for an HDF5 call on the file `path`. */
#define MU_H5_TRY(path, call) MU_TRY(mu_h5_check((long long)(call), (path), #call))

/* Close; no effect on negative ids. */
void mu_h5_close_type(hid_t type);
void mu_h5_close_space(hid_t space);
void mu_h5_close_list(hid_t list);
void mu_h5_close_set(hid_t set);
void mu_h5_close_attribute(hid_t attribute);

/* Close a file that was written with the list below; only one is written at a time. MU_ERR_IO: a
 * write, which HDF5 took for done, or the close failed. */
enum mu_status mu_h5_close_written(const char *path, hid_t file);
/* Close a file that was read: an error is a warning, because nothing is lost. Of a file that is not
 * to be kept: no error. No effect on negative ids. */
void mu_h5_close_read(const char *path, hid_t file);
void mu_h5_give_up(hid_t file);

/* File access properties, for every file. Locks are off where HDF5 allows that: a file is
 * written under a temporary name and never changed afterwards, and parallel file systems often
 * refuse locks. */
enum mu_status mu_h5_access_list(const char *path, hid_t *list);

#endif
