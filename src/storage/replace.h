/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic replacement of a file: write under a temporary name in the same folder, then rename. A
 * reader, or a job that is killed at any time, meets the old file or the new one, never a part.
 */
#ifndef MUSTER_STORAGE_REPLACE_H
#define MUSTER_STORAGE_REPLACE_H

#include <muster/base.h>

struct mu_replace {
	char *path;      /* owned */
	char *temporary; /* the name to write to; owned; NULL when there is nothing to remove */
};

/* Choose the temporary name; creates nothing. */
enum mu_status mu_replace_begin(struct mu_replace *r, const char *path);
/* The temporary file is complete and closed: bring it to the disk and rename it. */
enum mu_status mu_replace_commit(struct mu_replace *r);
/* Free; without a commit also remove the temporary file. */
void mu_replace_release(struct mu_replace *r);

#endif
