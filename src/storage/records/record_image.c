/* SPDX-License-Identifier: Apache-2.0 */
/* Images in RecordIO payloads, the memory of a reading thread, and little-endian words. */
#include "record_io.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { HEADER = 24 }; /* flag, label, id, id2 */

uint32_t mu_get_u32(const uint8_t *b)
{
	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

uint64_t mu_get_u64(const uint8_t *b)
{
	return mu_get_u32(b) | (uint64_t)mu_get_u32(b + 4) << 32;
}

void mu_put_u32(uint8_t *b, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		b[i] = (uint8_t)(value >> 8 * i);
}

void mu_put_u64(uint8_t *b, uint64_t value)
{
	mu_put_u32(b, (uint32_t)value);
	mu_put_u32(b + 4, (uint32_t)(value >> 32));
}

static float get_float(const uint8_t *b)
{
	uint32_t bits = mu_get_u32(b);
	float value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

static void put_float(uint8_t *b, float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof bits);
	mu_put_u32(b, bits);
}

/* ---- the buffer ---- */

enum mu_status mu_record_buffer_grow(struct mu_record_buffer *b, size_t used, size_t nbytes)
{
	enum mu_status st = MU_OK;
	uint8_t *bytes;
	size_t capacity = b->capacity > nbytes / 3 * 2 ? b->capacity / 2 * 3 : nbytes;

	b->piece.n = 0;
	if (nbytes <= b->capacity && b->bytes)
		goto out;
	if (capacity < nbytes)
		capacity = nbytes;
	MU_TRY(MU_ALLOC(bytes, capacity, "records"));
	if (used)
		memcpy(bytes, b->bytes, used);
	mu_free(b->bytes);
	b->bytes = bytes;
	b->capacity = capacity;
out:
	return st;
}

enum mu_status mu_record_buffer_labels(struct mu_record_buffer *b, size_t n)
{
	enum mu_status st = MU_OK;
	float *labels;

	if (n <= b->labels_capacity && b->labels)
		goto out;
	MU_TRY(MU_ALLOC(labels, n, "labels"));
	mu_free(b->labels);
	b->labels = labels;
	b->labels_capacity = n;
out:
	return st;
}

void mu_record_buffer_release(struct mu_record_buffer *b)
{
	mu_free(b->bytes);
	mu_free(b->labels);
	*b = (struct mu_record_buffer){0};
}

/* ---- images ---- */

enum mu_record_encoding mu_record_encoding(const uint8_t *data, size_t n)
{
	static const uint8_t jpeg[] = {0xff, 0xd8, 0xff};
	static const uint8_t png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

	if (n >= sizeof jpeg && memcmp(data, jpeg, sizeof jpeg) == 0)
		return MU_RECORD_JPEG;
	if (n >= sizeof png && memcmp(data, png, sizeof png) == 0)
		return MU_RECORD_PNG;
	return MU_RECORD_UNKNOWN;
}

enum mu_status mu_record_unpack(const uint8_t *payload, size_t n, struct mu_record_buffer *buffer,
				struct mu_record *out, const char *what)
{
	enum mu_status st = MU_OK;
	size_t n_labels;

	if (n < HEADER)
		MU_FAIL(MU_ERR_FORMAT, "%s: has %zu bytes; the header of an image alone has %d",
			what, n, HEADER);
	n_labels = mu_get_u32(payload);
	if (n_labels > (n - HEADER) / 4)
		MU_FAIL(MU_ERR_FORMAT, "%s: claims %zu labels; its %zu bytes have room for %zu",
			what, n_labels, n, (n - HEADER) / 4);
	MU_TRY(mu_record_buffer_labels(buffer, n_labels ? n_labels : 1));
	buffer->labels[0] = get_float(payload + 4);
	for (size_t i = 0; i < n_labels; i++)
		buffer->labels[i] = get_float(payload + HEADER + 4 * i);
	*out = (struct mu_record){
		.data = payload + HEADER + 4 * n_labels,
		.n = n - HEADER - 4 * n_labels,
		.id = mu_get_u64(payload + 8),
		.id2 = mu_get_u64(payload + 16),
		.n_labels = n_labels ? n_labels : 1,
		.labels = buffer->labels,
	};
out:
	return st;
}

enum mu_status mu_record_pack(const struct mu_record *record, struct mu_record_buffer *buffer,
			      const uint8_t **payload, size_t *n)
{
	enum mu_status st = MU_OK;
	size_t n_labels = record->n_labels == 1 ? 0 : record->n_labels;
	size_t nbytes = HEADER + 4 * n_labels + record->n;
	uint8_t *out;

	if (record->n_labels == 0 || record->n_labels > UINT32_MAX)
		MU_FAIL(MU_ERR_ARGUMENT, "record of id %llu: %zu labels; it must have at least one",
			(unsigned long long)record->id, record->n_labels);
	MU_TRY(mu_record_buffer_grow(buffer, 0, nbytes));
	out = buffer->bytes;
	mu_put_u32(out, (uint32_t)n_labels);
	put_float(out + 4, n_labels ? 0 : record->labels[0]);
	mu_put_u64(out + 8, record->id);
	mu_put_u64(out + 16, record->id2);
	for (size_t i = 0; i < n_labels; i++)
		put_float(out + HEADER + 4 * i, record->labels[i]);
	if (record->n)
		memcpy(out + HEADER + 4 * n_labels, record->data, record->n);
	*payload = out;
	*n = nbytes;
out:
	return st;
}

/* ---- files of images ---- */

bool mu_record_is_image(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0 ||
		       strcasecmp(dot, ".png") == 0);
}

enum mu_status mu_record_read_image(const char *path, struct mu_record_buffer *buffer,
				    struct mu_record *out)
{
	enum mu_status st = MU_OK;
	struct mu_file file;

	mu_file_init(&file);
	MU_TRY(mu_file_open(&file, path));
	if (file.nbytes == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: the file is empty; expected an image", path);
	MU_TRY(mu_record_buffer_grow(buffer, 0, file.nbytes));
	MU_TRY(mu_file_read(&file, 0, buffer->bytes, file.nbytes));
	out->data = buffer->bytes;
	out->n = file.nbytes;
out:
	mu_file_close(&file);
	return st;
}

void mu_record_hash_file(const char *path, uint64_t *listing, uint64_t *times)
{
	struct stat status = {0};
	int64_t size, time[2];

	if (stat(path, &status) != 0)
		status.st_size = -1;
	size = status.st_size;
	time[0] = status.st_mtim.tv_sec;
	time[1] = status.st_mtim.tv_nsec;
	*listing = mu_hash_block(*listing, &size, sizeof size);
	*times = mu_hash_block(*times, time, sizeof time);
}
