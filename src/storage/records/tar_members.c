/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers of tar files: see tar.h. A header is a block of 512 bytes, and contents follow in whole
 * blocks. What does not fit into a header stands in extra members before it: a long name (GNU, of
 * type L), or lines "LENGTH key=value" (pax, of type x). Two blocks of zeros are the end.
 */
#include "tar.h"

#include <string.h>

enum {
	NAME_BYTES = 100,
	PREFIX_BYTES = 155,
	FAR_BYTES = 1 << 12,  /* of a piece, where contents were passed over */
	NEAR_BYTES = 1 << 16, /* where headers follow one another closely */
	EXTRA_MOST = 1 << 20, /* of a long name, or of pax lines */
	SHOWN = 80,           /* characters of a name in a message */
};

/* As POSIX and GNU have it. */
struct header {
	char name[NAME_BYTES], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
	char link[100], magic[6], version[2], user[32], group[32], major[8], minor[8];
	char prefix[PREFIX_BYTES], pad[12];
};

_Static_assert(sizeof(struct header) == MU_TAR_BLOCK, "of a header");

/* What extra members have said of the next one. */
struct extra {
	bool any, name, sized;
	size_t nbytes;
};

/* ---- bytes of the file ---- */

enum mu_status mu_tar_look(struct mu_tar *t, size_t at, size_t n, const uint8_t **bytes)
{
	enum mu_status st = MU_OK;
	const size_t end = t->piece_at + t->piece_n, all = t->f->nbytes;
	size_t want;

	if (at < t->piece_at || at + n > end) {
		want = at >= t->piece_at && at - t->piece_at <= t->piece_n + NEAR_BYTES ? NEAR_BYTES
											: FAR_BYTES;
		want = want < n ? n : want;
		want = want < all - at ? want : all - at;
		if (want > t->capacity) {
			mu_free(t->bytes);
			t->capacity = 0;
			MU_TRY(MU_ALLOC(t->bytes, want < NEAR_BYTES ? NEAR_BYTES : want,
					"headers of a tar file"));
			t->capacity = want < NEAR_BYTES ? NEAR_BYTES : want;
		}
		t->piece_n = 0;
		MU_TRY(mu_file_read(t->f, at, t->bytes, want));
		t->piece_at = at;
		t->piece_n = want;
	}
	*bytes = t->bytes + (at - t->piece_at);
out:
	return st;
}

void mu_tar_release(struct mu_tar *t)
{
	mu_free(t->bytes);
	mu_free(t->name);
	*t = (struct mu_tar){.f = t->f};
}

static size_t whole_blocks(size_t n)
{
	return (n + MU_TAR_BLOCK - 1) / MU_TAR_BLOCK * MU_TAR_BLOCK;
}

/* ---- fields ---- */

/* Octal digits, with blanks before and a blank or zero after them; or, with the first bit set, a
 * number in bytes (GNU). */
static bool parse_number(const char *field, size_t n, uint64_t *out)
{
	const uint8_t *b = (const uint8_t *)field;
	size_t i = 0;

	*out = 0;
	if (b[0] & 0x80) {
		*out = b[0] & 0x7f;
		for (i = 1; i < n; i++) {
			if (*out >> 55)
				return false;
			*out = *out << 8 | b[i];
		}
		return true;
	}
	while (i < n && b[i] == ' ')
		i++;
	for (; i < n && b[i] >= '0' && b[i] <= '7'; i++)
		*out = *out << 3 | (uint64_t)(b[i] - '0');
	return i == n || b[i] == ' ' || b[i] == '\0';
}

/* The sum of the bytes, its own field as blanks; older programs took bytes as signed. */
static bool has_checksum(const struct header *h)
{
	const uint8_t *b = (const uint8_t *)h;
	const size_t from = offsetof(struct header, checksum), to = from + sizeof h->checksum;
	uint64_t want;
	int64_t plain = 0, with_sign = 0;

	for (size_t i = 0; i < sizeof *h; i++) {
		const uint8_t byte = i >= from && i < to ? ' ' : b[i];

		plain += byte;
		with_sign += (int8_t)byte;
	}
	return parse_number(h->checksum, sizeof h->checksum, &want) &&
	       ((int64_t)want == plain || (int64_t)want == with_sign);
}

static size_t length(const char *field, size_t n)
{
	const char *end = memchr(field, '\0', n);

	return end ? (size_t)(end - field) : n;
}

static enum mu_status set_name(struct mu_tar *t, const char *a, size_t n, const char *b, size_t m)
{
	enum mu_status st = MU_OK;
	const size_t nbytes = n + m + 2;

	if (nbytes > t->name_capacity) {
		mu_free(t->name);
		t->name_capacity = 0;
		MU_TRY(MU_ALLOC(t->name, 2 * nbytes, "name in a tar file"));
		t->name_capacity = 2 * nbytes;
	}
	memcpy(t->name, a, n);
	if (n > 0 && m > 0)
		t->name[n++] = '/';
	memcpy(t->name + n, b, m);
	t->name[n + m] = '\0';
out:
	return st;
}

/* POSIX has the folders of a long name in a field of their own; GNU has times there. */
static size_t prefix_length(const struct header *h)
{
	return memcmp(h->magic, "ustar", 6) == 0 ? length(h->prefix, PREFIX_BYTES) : 0;
}

void mu_tar_name_before(const struct mu_file *f, size_t at, char *text, size_t nbytes)
{
	struct header h;
	int n, m;

	*text = '\0';
	if (mu_file_read(f, at - sizeof h, &h, sizeof h) != MU_OK) {
		mu_trace_clear();
		return;
	}
	n = (int)length(h.name, NAME_BYTES);
	m = (int)prefix_length(&h);
	snprintf(text, nbytes, "%.*s%s%.*s%s", m, h.prefix, m ? "/" : "", n, h.name,
		 n == NAME_BYTES ? "..." : "");
}

/* ---- members that say something of the next one ---- */

static enum mu_status check_room(const struct mu_tar *t, size_t at, uint64_t nbytes,
				 const char *name)
{
	enum mu_status st = MU_OK;

	if (nbytes > t->f->nbytes - at)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: truncated: member \"%.*s\" has %llu bytes from byte %zu on, and the "
			"file ends after %zu of them%s",
			t->f->path, SHOWN, name, (unsigned long long)nbytes, at, t->f->nbytes - at,
			mu_file_changed_text(t->f));
out:
	return st;
}

static enum mu_status take_setting(struct mu_tar *t, struct extra *e, const char *line,
				   size_t key_n, size_t n, bool global)
{
	enum mu_status st = MU_OK;
	const char *value = line + key_n + 1;
	const size_t value_n = n - key_n - 1;
	const bool path = key_n == 4 && memcmp(line, "path", 4) == 0;
	const bool size = key_n == 4 && memcmp(line, "size", 4) == 0;

	if (key_n > 10 && memcmp(line, "GNU.sparse", 10) == 0)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: the member at byte %zu is sparse, which is not read: let tar write "
			"it without its option sparse",
			t->f->path, t->next);
	if (global && (path || size))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: the global header at byte %zu gives one %.4s to all members, which is "
			"not read",
			t->f->path, t->next, line);
	if (path && value_n > 0) {
		MU_TRY(set_name(t, value, value_n, "", 0));
		e->name = true;
	}
	if (size && value_n > 0) {
		e->nbytes = 0;
		for (size_t i = 0; i < value_n; i++)
			if (value[i] < '0' || value[i] > '9' ||
			    __builtin_mul_overflow(e->nbytes, 10, &e->nbytes) ||
			    __builtin_add_overflow(e->nbytes, (size_t)(value[i] - '0'), &e->nbytes))
				MU_FAIL(MU_ERR_FORMAT,
					"%s: the pax header at byte %zu has size=%.*s; expected a "
					"number of bytes",
					t->f->path, t->next, value_n < SHOWN ? (int)value_n : SHOWN,
					value);
		e->sized = true;
	}
out:
	return st;
}

/* "30 path=a name\n" and so on: the length counts all of the line. */
static enum mu_status take_pax(struct mu_tar *t, struct extra *e, const char *text, size_t n,
			       bool global)
{
	enum mu_status st = MU_OK;

	for (size_t at = 0; at < n && text[at];) {
		size_t digits = at, all = 0, end;
		const char *equals;

		while (digits < n && text[digits] >= '0' && text[digits] <= '9' && all <= n)
			all = 10 * all + (size_t)(text[digits++] - '0');
		end = all <= n - at ? at + all : 0;
		equals = end > digits ? memchr(text + digits, '=', end - digits) : NULL;
		if (!equals || text[digits] != ' ' || text[end - 1] != '\n')
			MU_FAIL(MU_ERR_FORMAT,
				"%s: the pax header at byte %zu is damaged: expected lines such as "
				"\"19 path=folder/1.jpg\"",
				t->f->path, t->next);
		digits++;
		MU_TRY(take_setting(t, e, text + digits, (size_t)(equals - text) - digits,
				    end - 1 - digits, global));
		at = end;
	}
out:
	return st;
}

static bool is_extra(char type)
{
	return type == 'L' || type == 'K' || type == 'x' || type == 'X' || type == 'g';
}

static enum mu_status take_extra(struct mu_tar *t, struct extra *e, char type, size_t at,
				 uint64_t nbytes)
{
	enum mu_status st = MU_OK;
	const uint8_t *bytes;

	if (nbytes > EXTRA_MOST)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: the header at byte %zu has %llu bytes of names; at most %d are read",
			t->f->path, t->next, (unsigned long long)nbytes, EXTRA_MOST);
	MU_TRY(mu_tar_look(t, at, (size_t)nbytes, &bytes));
	if (type == 'L') {
		MU_TRY(set_name(t, (const char *)bytes, length((const char *)bytes, nbytes), "",
				0));
		e->name = true;
	} else if (type != 'K') {
		MU_TRY(take_pax(t, e, (const char *)bytes, nbytes, type == 'g'));
	}
	e->any |= type != 'g';
out:
	return st;
}

/* ---- members ---- */

/* Zeros up to the end: two tar files in one, say, would be half a set. */
static enum mu_status check_rest(struct mu_tar *t)
{
	enum mu_status st = MU_OK;
	const uint8_t *bytes;
	size_t n;

	for (size_t at = t->next; at < t->f->nbytes; at += n) {
		n = t->f->nbytes - at < FAR_BYTES ? t->f->nbytes - at : FAR_BYTES;
		MU_TRY(mu_tar_look(t, at, n, &bytes));
		for (size_t i = 0; i < n; i++)
			if (bytes[i])
				MU_FAIL(MU_ERR_FORMAT,
					"%s: ends at byte %zu, by its blocks of zeros, and more "
					"follows at byte %zu: tar files one after another are read "
					"as files of their own",
					t->f->path, t->next, at + i);
	}
out:
	return st;
}

/* The header at t->next; NULL: the end. */
static enum mu_status read_header(struct mu_tar *t, struct header *h, bool *found)
{
	enum mu_status st = MU_OK;
	static const uint8_t zeros[MU_TAR_BLOCK];
	const uint8_t *bytes;

	*found = false;
	if (t->f->nbytes - t->next < MU_TAR_BLOCK)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: truncated: it ends at byte %zu, without the blocks of zeros that end "
			"a tar file: make it anew (if it is whole: head -c 1024 /dev/zero >>it)%s",
			t->f->path, t->f->nbytes, mu_file_changed_text(t->f));
	MU_TRY(mu_tar_look(t, t->next, MU_TAR_BLOCK, &bytes));
	if (memcmp(bytes, zeros, MU_TAR_BLOCK) == 0) {
		MU_TRY(check_rest(t));
		goto out;
	}
	memcpy(h, bytes, sizeof *h);
	*found = true;
	if (!has_checksum(h))
		MU_FAIL(MU_ERR_FORMAT,
			"%s: no header of a member at byte %zu: its checksum is wrong; the file is "
			"damaged, or no tar file%s",
			t->f->path, t->next, mu_file_changed_text(t->f));
out:
	return st;
}

static enum mu_tar_type type_of(char type, const char *name)
{
	const size_t n = strlen(name);

	if (type == '0' || type == '7' || type == '\0')
		return n > 0 && name[n - 1] == '/' ? MU_TAR_FOLDER : MU_TAR_FILE;
	return type == '5'                  ? MU_TAR_FOLDER
	       : type == '1' || type == '2' ? MU_TAR_LINK
					    : MU_TAR_OTHER;
}

/* Links, devices and folders have no contents, whatever their size. */
static bool has_contents(char type)
{
	return type < '1' || type > '6';
}

enum mu_status mu_tar_next(struct mu_tar *t, struct mu_tar_member *m, bool *found)
{
	enum mu_status st = MU_OK;
	struct extra e = {.any = false};
	struct header h;
	uint64_t nbytes;

	*m = (struct mu_tar_member){.head = t->next};
	for (bool more = true; more;) {
		const size_t at = t->next + MU_TAR_BLOCK;

		MU_TRY(read_header(t, &h, found));
		if (!*found && e.any)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: truncated: the header at byte %zu is of a member that is "
				"missing",
				t->f->path, m->head);
		if (!*found)
			goto out;
		if (!parse_number(h.size, sizeof h.size, &nbytes))
			MU_FAIL(MU_ERR_FORMAT,
				"%s: the header at byte %zu has no size that can be read",
				t->f->path, t->next);
		more = is_extra(h.type);
		if (!more && e.sized)
			nbytes = e.nbytes;
		if (!more && !e.name)
			MU_TRY(set_name(t, h.prefix, prefix_length(&h), h.name,
					length(h.name, NAME_BYTES)));
		if (!more && !has_contents(h.type))
			nbytes = 0;
		MU_TRY(check_room(t, at, nbytes, more ? h.name : t->name));
		if (more)
			MU_TRY(take_extra(t, &e, h.type, at, nbytes));
		m->at = at;
		m->nbytes = (size_t)nbytes;
		/* The padding of the last member may be cut off: then the end is missing, too. */
		t->next = at + whole_blocks(m->nbytes);
		t->next = t->next < t->f->nbytes ? t->next : t->f->nbytes;
	}
	if (h.type == 'S' || h.type == 'M')
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s: member \"%.*s\" at byte %zu is %s", t->f->path,
			SHOWN, t->name, m->head,
			h.type == 'S' ? "sparse, which is not read: let tar write it without its "
					"option sparse"
				      : "the rest of one in another tar file, which is not read: "
					"let tar write one file, without its option multi-volume");
	m->name = t->name;
	m->type = type_of(h.type, t->name);
out:
	return st;
}
