/* SPDX-License-Identifier: Apache-2.0 */
/* IDX files, the format of MNIST (Y. LeCun, C. Cortes, C. Burges, "The MNIST database", section
 * "File formats"), read and written by zlib, which passes plain files through. */
#include <muster/storage.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum {
	TYPE_BYTE = 0x08,
	NDIMS_MAX = 4,
	BUFFER_BYTES = 1 << 17,
	PIECE_BYTES = 1 << 30, /* zlib counts in unsigned int and returns int */
	DIMS_TEXT_BYTES = 64,
	DEFLATE_RATIO_MAX = 1032, /* largest compression ratio of deflate */
};

/* A file being read. */
struct source {
	gzFile gz;
	const char *path; /* as the user gave it, or with ".gz" */
	size_t nbytes;    /* of the file */
};

/* "60000 x 28 x 28" */
static const char *dims_text(const struct mu_idx *idx, char text[DIMS_TEXT_BYTES])
{
	int used = 0;

	for (int i = 0; i < idx->ndims; i++)
		used += snprintf(text + used, DIMS_TEXT_BYTES - (size_t)used, "%s%zu",
				 i ? " x " : "", idx->dims[i]);
	return text;
}

/* ---- reading ---- */

/* Open path, or path with ".gz" appended if there is no such file; zipped holds that name. */
static enum mu_status open_source(struct source *s, const char *path, const char *zipped)
{
	enum mu_status st = MU_OK;
	struct stat status;

	s->path = path;
	if (stat(path, &status) != 0 && errno == ENOENT && !mu_stem(path, ".gz")) {
		if (stat(zipped, &status) != 0 && errno == ENOENT)
			MU_FAIL(MU_ERR_IO, "%s: no such file, and no %s either", path, zipped);
		s->path = zipped;
	}
	if (stat(s->path, &status) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", s->path, strerror(errno));
	if (S_ISDIR(status.st_mode))
		MU_FAIL(MU_ERR_IO, "%s: is a folder, not an IDX file", s->path);
	if (!S_ISREG(status.st_mode))
		MU_FAIL(MU_ERR_IO, "%s: is not a plain file", s->path);
	s->nbytes = (size_t)status.st_size;
	if (s->nbytes == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: the file is empty; expected an IDX header", s->path);
	errno = 0;
	s->gz = gzopen(s->path, "rbe");
	if (!s->gz)
		MU_FAIL(MU_ERR_IO, "%s: cannot be opened: %s", s->path,
			errno ? strerror(errno) : "no memory");
	gzbuffer(s->gz, BUFFER_BYTES);
out:
	return st;
}

/* Read up to nbytes; *got is less at the end of the file, also of a truncated gzip file. */
static enum mu_status read_some(struct source *s, void *out, size_t nbytes, size_t *got)
{
	enum mu_status st = MU_OK;
	const char *message;
	int n = 1, error;

	*got = 0;
	while (*got < nbytes && n > 0) {
		size_t piece = nbytes - *got < PIECE_BYTES ? nbytes - *got : PIECE_BYTES;

		errno = 0;
		n = gzread(s->gz, (char *)out + *got, (unsigned)piece);
		if (n < 0) {
			message = gzerror(s->gz, &error);
			if (error == Z_ERRNO)
				MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", s->path,
					strerror(errno));
			MU_FAIL(MU_ERR_FORMAT, "%s: corrupt gzip data: %s", s->path, message);
		}
		*got += (size_t)n;
	}
out:
	return st;
}

static enum mu_status read_header(struct source *s, struct mu_idx *idx, int ndims)
{
	enum mu_status st = MU_OK;
	uint8_t header[4 + 4 * NDIMS_MAX];
	size_t nbytes = 4 + 4 * (size_t)ndims, got;

	MU_TRY(read_some(s, header, nbytes, &got));
	if (got >= 4 && (header[0] || header[1] || header[2] != TYPE_BYTE || header[3] != ndims))
		MU_FAIL(MU_ERR_FORMAT,
			"%s: wrong magic number: starts with %02x %02x %02x %02x; "
			"expected 00 00 08 %02x "
			"(IDX, unsigned bytes, %d dimensions)",
			s->path, header[0], header[1], header[2], header[3], (unsigned)ndims,
			ndims);
	if (got < nbytes)
		MU_FAIL(MU_ERR_FORMAT, "%s: truncated: %zu bytes; the IDX header alone has %zu",
			s->path, got, nbytes);
	idx->ndims = ndims;
	for (int i = 0; i < ndims; i++) {
		const uint8_t *b = header + 4 + 4 * i;

		idx->dims[i] = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
	}
out:
	return st;
}

/* Bytes of data according to the header; an error if no file of this size can hold them. */
static enum mu_status count_data(const struct source *s, const struct mu_idx *idx, size_t *nbytes)
{
	enum mu_status st = MU_OK;
	char text[DIMS_TEXT_BYTES];
	size_t most = s->nbytes;

	*nbytes = 1;
	for (int i = 0; i < idx->ndims; i++) {
		if (__builtin_mul_overflow(*nbytes, idx->dims[i], nbytes))
			MU_FAIL(MU_ERR_FORMAT,
				"%s: corrupt header: %s bytes are more than any file holds",
				s->path, dims_text(idx, text));
	}
	/* Before any allocation: a corrupt header may claim far more data than there is. */
	if (!gzdirect(s->gz) && __builtin_mul_overflow(most, DEFLATE_RATIO_MAX, &most))
		most = SIZE_MAX;
	if (*nbytes > most)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: truncated: the header promises %s = %zu bytes of data; the file has "
			"%zu bytes",
			s->path, dims_text(idx, text), *nbytes, s->nbytes);
out:
	return st;
}

static enum mu_status read_data(struct source *s, struct mu_idx *idx)
{
	enum mu_status st = MU_OK;
	char text[DIMS_TEXT_BYTES];
	size_t nbytes, got;
	uint8_t extra;

	MU_TRY(count_data(s, idx, &nbytes));
	MU_TRY(MU_ALLOC(idx->data, nbytes, s->path));
	MU_TRY(read_some(s, idx->data, nbytes, &got));
	if (got < nbytes)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: truncated: %zu bytes of data; the header promises %s = %zu", s->path,
			got, dims_text(idx, text), nbytes);
	/*
	 * One more byte, which must not exist; zlib also checks the checksum of a gzip file here.
	 */
	MU_TRY(read_some(s, &extra, 1, &got));
	if (got > 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: too long: more bytes follow the %s = %zu that the header promises",
			s->path, dims_text(idx, text), nbytes);
out:
	return st;
}

/* data: all of the file; else the header. */
static enum mu_status read_parts(struct mu_idx *idx, const char *path, int ndims, bool data)
{
	enum mu_status st = MU_OK;
	struct source s = {0};
	char *zipped = NULL;
	size_t nbytes = strlen(path) + sizeof ".gz";
	int error;

	*idx = (struct mu_idx){0};
	if (ndims < 1 || ndims > NDIMS_MAX)
		MU_FAIL(MU_ERR_ARGUMENT, "%s: %d dimensions asked for; 1 to %d are possible", path,
			ndims, NDIMS_MAX);
	MU_TRY(MU_ALLOC(zipped, nbytes, "file name"));
	snprintf(zipped, nbytes, "%s.gz", path);
	MU_TRY(open_source(&s, path, zipped));
	MU_TRY(read_header(&s, idx, ndims));
	if (!data)
		goto out;
	MU_TRY(read_data(&s, idx));
	error = gzclose_r(s.gz);
	s.gz = NULL;
	/* All data was read: the end of the gzip file with its checksum is missing. */
	if (error == Z_BUF_ERROR)
		MU_FAIL(MU_ERR_FORMAT, "%s: truncated: the end of the gzip data is missing",
			s.path);
out:
	if (s.gz)
		gzclose_r(s.gz);
	if (st != MU_OK)
		mu_idx_release(idx);
	mu_free(zipped);
	return st;
}

enum mu_status mu_idx_read(struct mu_idx *idx, const char *path, int ndims)
{
	return read_parts(idx, path, ndims, true);
}

enum mu_status mu_idx_read_header(struct mu_idx *idx, const char *path, int ndims)
{
	return read_parts(idx, path, ndims, false);
}

void mu_idx_release(struct mu_idx *idx)
{
	mu_free(idx->data);
	*idx = (struct mu_idx){0};
}

/* ---- writing ---- */

static enum mu_status write_all(gzFile gz, const void *data, size_t nbytes, const char *path)
{
	enum mu_status st = MU_OK;
	int error;

	for (size_t done = 0; done < nbytes;) {
		size_t piece = nbytes - done < PIECE_BYTES ? nbytes - done : PIECE_BYTES;
		int n;

		errno = 0;
		n = gzwrite(gz, (const char *)data + done, (unsigned)piece);
		if (n <= 0)
			MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", path,
				errno ? strerror(errno) : gzerror(gz, &error));
		done += (size_t)n;
	}
out:
	return st;
}

static enum mu_status write_idx(gzFile gz, const struct mu_idx *idx, const char *path)
{
	enum mu_status st = MU_OK;
	uint8_t header[4 + 4 * NDIMS_MAX] = {0, 0, TYPE_BYTE, (uint8_t)idx->ndims};
	size_t nbytes = 1;

	for (int i = 0; i < idx->ndims; i++) {
		uint8_t *b = header + 4 + 4 * i;

		if (idx->dims[i] > UINT32_MAX ||
		    __builtin_mul_overflow(nbytes, idx->dims[i], &nbytes))
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s: dimension %d of %zu is too large for an IDX file", path, i,
				idx->dims[i]);
		b[0] = (uint8_t)(idx->dims[i] >> 24);
		b[1] = (uint8_t)(idx->dims[i] >> 16);
		b[2] = (uint8_t)(idx->dims[i] >> 8);
		b[3] = (uint8_t)idx->dims[i];
	}
	MU_TRY(write_all(gz, header, 4 + 4 * (size_t)idx->ndims, path));
	MU_TRY(write_all(gz, idx->data, nbytes, path));
out:
	return st;
}

enum mu_status mu_idx_write(const char *path, const struct mu_idx *idx)
{
	enum mu_status st = MU_OK;
	struct mu_replace replace = {0};
	gzFile gz = NULL;
	int error;

	if (idx->ndims < 1 || idx->ndims > NDIMS_MAX)
		MU_FAIL(MU_ERR_ARGUMENT, "%s: %d dimensions; an IDX file here has 1 to %d", path,
			idx->ndims, NDIMS_MAX);
	MU_TRY(mu_replace_begin(&replace, path));
	errno = 0;
	/* T: no compression. The gzip header that zlib writes holds no time and no name. */
	gz = gzopen(replace.written, mu_stem(path, ".gz") ? "wbe6" : "wbeT");
	if (!gz)
		MU_FAIL(MU_ERR_IO, "%s: cannot be created: %s", path,
			errno ? strerror(errno) : "no memory");
	gzbuffer(gz, BUFFER_BYTES);
	MU_TRY(write_idx(gz, idx, path));
	errno = 0;
	error = gzclose_w(gz);
	gz = NULL;
	if (error != Z_OK)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", path,
			errno ? strerror(errno) : "zlib cannot finish");
	MU_TRY(mu_replace_commit(&replace));
out:
	if (gz)
		gzclose_w(gz);
	mu_replace_release(&replace);
	return st;
}
