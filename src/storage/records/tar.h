/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to tar files: the members of one, by their headers. Written here, not libarchive's, which
 * says how much of a file it has read, but not where a member's contents lie: records are read by
 * offset, in any order. What is read: the formats of V7, POSIX (ustar, pax) and GNU tar.
 */
#ifndef MUSTER_STORAGE_TAR_H
#define MUSTER_STORAGE_TAR_H

#include "storage/file.h"
#include "records.h"

enum { MU_TAR_BLOCK = 512 };

enum mu_tar_type {
	MU_TAR_FILE,
	MU_TAR_FOLDER,
	MU_TAR_LINK,  /* to another member or file, with no contents of its own */
	MU_TAR_OTHER, /* a device, a label of the volume, ... */
};

struct mu_tar_member {
	const char *name; /* valid until the next call */
	enum mu_tar_type type;
	size_t head;       /* byte of its first header */
	size_t at, nbytes; /* of its contents */
};

/* {.f = an open file}: before the first member. Release by mu_tar_release. */
struct mu_tar {
	const struct mu_file *f;
	size_t next;    /* byte of the next header */
	uint8_t *bytes; /* a piece of the file; owned */
	size_t piece_at, piece_n, capacity;
	char *name; /* owned */
	size_t name_capacity;
};

/* *found false: the end, after which the file has zeros only. MU_ERR_FORMAT names file and byte. */
enum mu_status mu_tar_next(struct mu_tar *t, struct mu_tar_member *m, bool *found);
/* Bytes [at, at + n) of the file, which must exist; valid until the next call. */
enum mu_status mu_tar_look(struct mu_tar *t, size_t at, size_t n, const uint8_t **bytes);
/* The name in the header whose contents begin at byte `at`, as far as it stands there: for
 * messages. */
void mu_tar_name_before(const struct mu_file *f, size_t at, char *text, size_t nbytes);
void mu_tar_release(struct mu_tar *t);

struct mu_tar_sample {
	uint64_t at; /* byte of the image */
	uint32_t n;  /* bytes */
	float label;
};

/* Of one file. */
struct mu_tar_samples {
	bool may_lack;                /* set by the caller: a sample may have no class */
	struct mu_tar_sample *sample; /* owned, by free */
	size_t n, capacity;
	size_t n_lack, lacks; /* samples without a class; the first of them */
	struct mu_left_out left_out;
};

/* Any thread. */
enum mu_status mu_tar_scan(struct mu_tar_samples *all, const struct mu_file *f);

#endif
