/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tokens as llm.c writes them (write_datafile of its data_common.py); plain texts. */
#include "tokens.h"

#include <string.h>

#include <muster/storage.h>

#include "base/utf8.h"
#include "storage/file.h"

enum { MAGIC = 20240520, VERSION = 1, HEADER = 256 * 4, PIECE = 1 << 15 };

/* The first two numbers of a header, and the bytes of a token. */
static const struct {
	uint32_t magic, version;
	size_t width;
} kinds[] = {
	{MAGIC, VERSION, 2}, {MAGIC, 2, 4}, {20240801, 7, 4}, /* llm.c's for Llama 3 */
};

enum { NUM_KINDS = sizeof kinds / sizeof *kinds };

static void put_int(unsigned char *to, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = (unsigned char)(value >> 8 * i);
}

static uint32_t get_int(const unsigned char *from)
{
	return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

uint32_t mu_token_get(const unsigned char *bytes, size_t i, size_t width)
{
	bytes += i * width;
	return width == 4 ? get_int(bytes) : bytes[0] | (uint32_t)bytes[1] << 8;
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

static bool is_magic(uint32_t number)
{
	for (size_t i = 0; i < NUM_KINDS; i++)
		if (kinds[i].magic == number)
			return true;
	return false;
}

/* Check the header; *n is the number of tokens, *width the bytes of each. */
static enum mu_status read_header(const struct mu_file *file, size_t *n, size_t *width)
{
	enum mu_status st = MU_OK;
	unsigned char header[12] = {0};
	const size_t have = file->nbytes < sizeof header ? file->nbytes : sizeof header;

	MU_TRY(mu_file_read(file, 0, header, have));
	if (!is_magic(get_int(header)))
		MU_FAIL(MU_ERR_FORMAT,
			"%s: has no header of a token file: it begins with %lu, not with %d. If it "
			"holds tokens alone, as nanoGPT writes them, put 256 int32 before them, "
			"%d, %d (%d for uint32), their number and zeros: python3 -c \"import numpy "
			"as n; a=n.fromfile('old.bin',n.uint16); h=n.zeros(256,n.int32); "
			"h[:3]=%d,%d,len(a); open('new.bin','wb').write(h.tobytes()+a.tobytes())\"",
			file->path, (unsigned long)get_int(header), MAGIC, MAGIC, VERSION, 2, MAGIC,
			VERSION);
	if (file->nbytes < HEADER)
		MU_FAIL(MU_ERR_FORMAT, "%s: has %zu bytes: a token file begins with a header of %d",
			file->path, file->nbytes, HEADER);
	*width = 0;
	for (size_t i = 0; i < NUM_KINDS; i++)
		if (kinds[i].magic == get_int(header) && kinds[i].version == get_int(header + 4))
			*width = kinds[i].width;
	if (*width == 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: is a token file of version %lu; version %d (uint16) or %d (uint32) is "
			"needed",
			file->path, (unsigned long)get_int(header + 4), VERSION, 2);
	*n = get_int(header + 8);
	if (file->nbytes != HEADER + *width * *n)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: has %zu bytes, and %zu by its header of %zu tokens: it was cut short "
			"or "
			"is damaged",
			file->path, file->nbytes, HEADER + *width * *n, *n);
out:
	return st;
}

enum mu_status mu_token_file_count(const char *path, size_t *n, size_t *width)
{
	enum mu_status st = MU_OK;
	struct mu_file file;

	MU_TRY(mu_file_open(&file, path));
	MU_TRY(read_header(&file, n, width));
out:
	mu_file_close(&file);
	return st;
}

enum mu_status mu_token_file_read(const char *path, struct mu_token_list *list)
{
	enum mu_status st = MU_OK;
	unsigned char piece[4 * PIECE];
	struct mu_file file;
	size_t n, width;

	MU_TRY(mu_file_open(&file, path));
	MU_TRY(read_header(&file, &n, &width));
	MU_TRY(TOKENS_GROW(list->ids, list->room, list->n + n));
	for (size_t at = 0; at < n; at += PIECE) {
		const size_t count = n - at < PIECE ? n - at : PIECE;

		MU_TRY(mu_file_read(&file, HEADER + width * at, piece, width * count));
		for (size_t i = 0; i < count; i++)
			list->ids[list->n++] = mu_token_get(piece, i, width);
	}
out:
	mu_file_close(&file);
	return st;
}

bool mu_token_file_is(const char *path)
{
	unsigned char head[4];

	return mu_stream_head(path, head, sizeof head) == sizeof head && is_magic(get_int(head));
}

enum mu_status mu_token_text_read(const char *path, bool plain, char **text, size_t *nbytes)
{
	enum mu_status st = MU_OK;
	struct mu_file file;
	size_t mark;

	*text = NULL;
	MU_TRY(mu_file_open(&file, path));
	MU_TRY(MU_ALLOC(*text, file.nbytes + 1, "a text"));
	MU_TRY(mu_file_read(&file, 0, *text, file.nbytes));
	if (plain)
		MU_TRY(mu_text_plain(path, *text, file.nbytes, &mark));
	else
		MU_TRY(mu_text_begin(path, *text, file.nbytes, &mark));
	*nbytes = file.nbytes - mark;
	memmove(*text, *text + mark, *nbytes + 1);
out:
	mu_file_close(&file);
	return st;
}
