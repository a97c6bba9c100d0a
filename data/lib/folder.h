/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that a tool of data/ made. */
#ifndef MUSTER_DATA_FOLDER_H
#define MUSTER_DATA_FOLDER_H

/* With all that is in it. Errors leave something behind, no more. */
void data_folder_remove(const char *path);

#endif
