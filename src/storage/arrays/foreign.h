/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MUSTER_STORAGE_FOREIGN_H
#define MUSTER_STORAGE_FOREIGN_H

/* What to do with a file that is not HDF5, "; it is MXNet's: ...", for the end of a message; "":
 * nothing is known of it. */
const char *mu_array_file_advice(const char *path);

#endif
