/* SPDX-License-Identifier: Apache-2.0 */
/* The folder that a tool of data/ writes to. */
#ifndef MUSTER_DATA_FOLDER_H
#define MUSTER_DATA_FOLDER_H

#include <muster/base.h>

/* Make the folder and those that it lies in. That it cannot be written to is told before the work.
 */
enum mu_status data_folder_make(const char *path);
/* A folder that we made, with all that is in it. Errors leave something behind, no more. */
void data_folder_remove(const char *path);

#endif
