/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of images per class inside a tar file, as records in the order of the tar file. Labels
 * follow the sorted names of the classes and ids those of classes and files, as if the tar file
 * were unpacked and read as a folder. The tar file is read twice.
 */
#ifndef MUSTER_DATA_TAR_SOURCE_H
#define MUSTER_DATA_TAR_SOURCE_H

#include <muster/records.h>

struct data_tar_source;

/* First pass: the names. */
enum mu_status data_tar_source_open(struct data_tar_source **out, const char *path);
void data_tar_source_close(struct data_tar_source *s);
void data_tar_source_info(const struct data_tar_source *s, struct mu_records_info *info);
/* Second pass: take is called with each record. */
enum mu_status data_tar_source_read(struct data_tar_source *s,
				    enum mu_status (*take)(void *context,
							   const struct mu_record *record,
							   const char *where, double done),
				    void *context);

#endif
