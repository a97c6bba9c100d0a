/* SPDX-License-Identifier: Apache-2.0 */
/* Private to RecordIO: heads of parts and offsets of records. records.h has the format. */
#ifndef MUSTER_STORAGE_RECORD_IO_H
#define MUSTER_STORAGE_RECORD_IO_H

#include <muster/records.h>

#include "storage/file.h"

#define MU_RECORDIO_MAGIC 0xced7230au

enum { MU_RECORDIO_HEAD = 8 }; /* bytes of the head of a part */

enum mu_recordio_part {
	MU_RECORDIO_WHOLE,
	MU_RECORDIO_FIRST,
	MU_RECORDIO_MIDDLE,
	MU_RECORDIO_LAST,
};

struct mu_recordio_place {
	uint64_t key;
	size_t at; /* byte of the first head */
};

struct mu_recordio_places {
	struct mu_recordio_place *place; /* owned; one more than n: the end of the file */
	size_t n, capacity;
};

/* As mu_records_hash_files. */
void mu_recordio_hash_files(const struct mu_recordio *r, uint64_t *listing, uint64_t *times);

/* Little-endian words. */
uint32_t mu_get_u32(const uint8_t *bytes);
uint64_t mu_get_u64(const uint8_t *bytes);
void mu_put_u32(uint8_t *bytes, uint32_t value);
void mu_put_u64(uint8_t *bytes, uint64_t value);

/* Files of images. Does the name end as theirs do? Sets out->data and out->n. */
bool mu_record_is_image(const char *name);
/* Adds the size of a file of an image, and the time of its last change. */
void mu_record_hash_file(const char *path, uint64_t *listing, uint64_t *times);
enum { MU_RECORD_MOST_STATS = 1 << 16 }; /* files that are looked at so; more take seconds */
enum mu_status mu_record_read_image(const char *path, struct mu_record_buffer *buffer,
				    struct mu_record *out);

/* Grow to nbytes; keeps the first `used` bytes. They are no piece of a file any more. */
enum mu_status mu_record_buffer_grow(struct mu_record_buffer *b, size_t used, size_t nbytes);
enum mu_status mu_record_buffer_labels(struct mu_record_buffer *b, size_t n);

/*
 * Head of the part at byte `at` of the file; the record must end at or before byte `limit`. first:
 * it must start a record, else it must continue one. *length: bytes of the payload; last: the
 * record ends with this part.
 */
struct mu_recordio_head {
	enum mu_recordio_part part;
	size_t length;
	bool last;
};

enum mu_status mu_recordio_head(struct mu_recordio_head *out, const uint8_t head[MU_RECORDIO_HEAD],
				const struct mu_file *f, size_t at, size_t limit, bool first);

/* Bytes of a part with head and padding. */
size_t mu_recordio_stored(size_t length);

/* Find every record of the file by its heads; keys are 0, 1, ... */
enum mu_status mu_recordio_scan(struct mu_recordio_places *places, const struct mu_file *f);
/* Offsets from an index, sorted. The first record must start at the file's start and the last one
 * end at its end; what lies between is checked when it is read. */
enum mu_status mu_recordio_load(struct mu_recordio_places *places, const struct mu_file *f,
				const char *index);

#endif
