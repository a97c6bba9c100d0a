/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tokens as llm.c writes them (write_datafile of its data_common.py); plain texts. */
#include "tokens.h"

#include <muster/storage.h>

#include "storage/file.h"

enum { MAGIC = 20240520, VERSION = 1, HEADER = 256 * 4, PIECE = 1 << 15 };

static void put_int(unsigned char *to, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = (unsigned char)(value >> 8 * i);
}

static uint32_t get_int(const unsigned char *from)
{
	return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static enum mu_status write_tokens(const char *path, const uint32_t *ids, size_t n, FILE *file)
{
	enum mu_status st = MU_OK;
	unsigned char header[HEADER] = {0}, piece[2 * PIECE];

	put_int(header, MAGIC);
	put_int(header + 4, VERSION);
	put_int(header + 8, (uint32_t)n);
	fwrite(header, 1, sizeof header, file);
	for (size_t at = 0; at < n;) {
		size_t i = 0;

		for (; i < PIECE && at < n; i++, at++) {
			if (ids[at] >= MU_TOKEN_FILE_MAX)
				MU_FAIL(MU_ERR_UNSUPPORTED,
					"%s: token %lu needs more than the 16 bits that a token "
					"file "
					"has; a vocabulary of at most %d is possible",
					path, (unsigned long)ids[at], MU_TOKEN_FILE_MAX);
			piece[2 * i] = (unsigned char)ids[at];
			piece[2 * i + 1] = (unsigned char)(ids[at] >> 8);
		}
		fwrite(piece, 2, i, file); /* the commit tells of an error */
	}
out:
	return st;
}

enum mu_status mu_token_file_write(const char *path, const uint32_t *ids, size_t n)
{
	enum mu_status st = MU_OK;
	struct mu_replace file = {0};

	if (n > INT32_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: %zu tokens; at most %ld fit in a token file: write "
			"several",
			path, n, (long)INT32_MAX);
	MU_TRY(mu_replace_open(&file, path));
	MU_TRY(write_tokens(path, ids, n, file.stream));
	MU_TRY(mu_replace_commit(&file));
out:
	mu_replace_release(&file);
	return st;
}

/* Check the header; *n is the number of tokens. */
static enum mu_status read_header(const struct mu_file *file, size_t *n)
{
	enum mu_status st = MU_OK;
	unsigned char header[12];

	if (file->nbytes < HEADER)
		MU_FAIL(MU_ERR_FORMAT, "%s: has %zu bytes: a token file begins with a header of %d",
			file->path, file->nbytes, HEADER);
	MU_TRY(mu_file_read(file, 0, header, sizeof header));
	if (get_int(header) != MAGIC)
		MU_FAIL(MU_ERR_FORMAT, "%s: begins with %lu, not with %d: it is not a token file",
			file->path, (unsigned long)get_int(header), MAGIC);
	if (get_int(header + 4) != VERSION)
		MU_FAIL(MU_ERR_FORMAT, "%s: is a token file of version %lu; version %d is needed",
			file->path, (unsigned long)get_int(header + 4), VERSION);
	*n = get_int(header + 8);
	if (file->nbytes != HEADER + 2 * *n)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: has %zu bytes, and %zu by its header of %zu tokens: it was cut short "
			"or "
			"is damaged",
			file->path, file->nbytes, HEADER + 2 * *n, *n);
out:
	return st;
}

enum mu_status mu_token_file_count(const char *path, size_t *n)
{
	enum mu_status st = MU_OK;
	struct mu_file file;

	MU_TRY(mu_file_open(&file, path));
	MU_TRY(read_header(&file, n));
out:
	mu_file_close(&file);
	return st;
}

enum mu_status mu_token_file_read(const char *path, struct mu_token_list *list)
{
	enum mu_status st = MU_OK;
	unsigned char piece[2 * PIECE];
	struct mu_file file;
	size_t n;

	MU_TRY(mu_file_open(&file, path));
	MU_TRY(read_header(&file, &n));
	MU_TRY(TOKENS_GROW(list->ids, list->room, list->n + n));
	for (size_t at = 0; at < n; at += PIECE) {
		const size_t count = n - at < PIECE ? n - at : PIECE;

		MU_TRY(mu_file_read(&file, HEADER + 2 * at, piece, 2 * count));
		for (size_t i = 0; i < count; i++)
			list->ids[list->n++] = piece[2 * i] | (uint32_t)piece[2 * i + 1] << 8;
	}
out:
	mu_file_close(&file);
	return st;
}

bool mu_token_file_is(const char *path)
{
	unsigned char head[4];
	FILE *f = fopen(path, "rb");
	const bool is =
		f && fread(head, 1, sizeof head, f) == sizeof head && get_int(head) == MAGIC;

	if (f)
		fclose(f);
	return is;
}

enum mu_status mu_token_text_read(const char *path, char **text, size_t *nbytes)
{
	enum mu_status st = MU_OK;
	struct mu_file file;

	*text = NULL;
	MU_TRY(mu_file_open(&file, path));
	MU_TRY(MU_ALLOC(*text, file.nbytes + 1, "a text"));
	MU_TRY(mu_file_read(&file, 0, *text, file.nbytes));
	*nbytes = file.nbytes;
out:
	mu_file_close(&file);
	return st;
}
