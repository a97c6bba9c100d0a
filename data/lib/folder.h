/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that a tool of data/ made. */
#ifndef MUSTER_DATA_FOLDER_H
#define MUSTER_DATA_FOLDER_H

/* Remove a folder with its contents. Errors are ignored. */
void data_folder_remove(const char *path);

#endif
