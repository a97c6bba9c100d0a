/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that a tool of data/ makes or fills. */
#ifndef MUSTER_DATA_FOLDER_H
#define MUSTER_DATA_FOLDER_H

#include <muster/base.h>

/*
 * Files of two processes that write a set of the same names to one folder would make one set, with
 * files of both. This process fills the folder until it ends. MU_ERR_IO: another one does. Those
 * of other hosts are not noticed where the file system locks for one host only.
 */
enum mu_status data_folder_claim(const char *path);
/* Remove a folder with its contents. Errors are ignored. */
void data_folder_remove(const char *path);

#endif
