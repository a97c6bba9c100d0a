/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orientation of a JPEG file: Exif 2.3 (CIPA DC-008), a TIFF block in segment APP1, whose first
 * directory may contain tag 274. Every number of the block may be wrong: reads outside of it return
 * 0. Also turns pictures upright.
 */
#include "decode.h"

#include <string.h>

enum {
	HEAD = 6, /* "Exif", 0 and a pad byte */
	ENTRY = 12,
	TAG = 274,
	MARKER_APP1 = 0xe1,
	MARKER_FIRST_ALONE = 0xd0, /* from here to the last one: markers without a length */
	MARKER_LAST_ALONE = 0xd9,
	MARKER_SCAN = 0xda, /* start of the image data */
	MARKER_TEM = 0x01,  /* also without a length */
};

struct block {
	const uint8_t *bytes;
	size_t n;
	bool big_endian;
};

static size_t number(const struct block *b, size_t at, size_t nbytes)
{
	size_t value = 0;

	if (at > b->n || b->n - at < nbytes)
		return 0;
	for (size_t i = 0; i < nbytes; i++)
		value = value << 8 | b->bytes[at + (b->big_endian ? i : nbytes - 1 - i)];
	return value;
}

/* The first value of an entry of a directory: of a long number 4 bytes, else 2. */
static size_t entry_value(const struct block *b, size_t entry)
{
	enum { LONG = 4, SIGNED_LONG = 9 };
	const size_t type = number(b, entry + 2, 2);

	return number(b, entry + 8, type == LONG || type == SIGNED_LONG ? 4 : 2);
}

/* 42 in either order of bytes: some programs write it in the wrong one. */
static bool is_tiff(const struct block *b)
{
	const size_t magic = number(b, 2, 2);

	return magic == 42 || magic == 42 << 8;
}

/* As OpenCV: an incomplete directory is ignored. */
static int read_tiff(const uint8_t *bytes, size_t n)
{
	struct block b = {bytes, n, n >= 2 && memcmp(bytes, "MM", 2) == 0};
	size_t directory, entries, value = 1;

	if (n < 2 || (!b.big_endian && memcmp(bytes, "II", 2) != 0) || !is_tiff(&b))
		return 1;
	directory = number(&b, 4, 4);
	entries = number(&b, directory, 2);
	if (entries > 0 && entries > (n - directory - 2) / ENTRY)
		return 1;
	for (size_t i = 0; i < entries; i++) {
		size_t entry = directory + 2 + ENTRY * i;

		if (number(&b, entry, 2) != TAG)
			continue;
		value = entry_value(&b, entry);
		break;
	}
	return value >= 1 && value <= 8 ? (int)value : 1;
}

/* Some cameras write "Exif" twice before the block. */
static int read_exif(const uint8_t *bytes, size_t n)
{
	while (n >= HEAD && memcmp(bytes, "Exif", 5) == 0) {
		bytes += HEAD;
		n -= HEAD;
	}
	return read_tiff(bytes, n);
}

/* Skips bytes between segments, as libjpeg does. */
int mu_image_orientation(const uint8_t *data, size_t n)
{
	struct block b = {data, n, true};

	if (number(&b, 0, 2) != 0xffd8)
		return 1;
	for (size_t at = 2; at < n;) {
		size_t marker = number(&b, at + 1, 1), length = number(&b, at + 2, 2);

		if (data[at] != 0xff || marker == 0 || marker == 0xff) {
			at++;
			continue;
		}
		if (marker == MARKER_TEM ||
		    (marker >= MARKER_FIRST_ALONE && marker < MARKER_LAST_ALONE)) {
			at += 2;
			continue;
		}
		if (marker >= MARKER_LAST_ALONE && marker <= MARKER_SCAN)
			break;
		if (length < 2 || length > n - at - 2)
			break;
		if (marker == MARKER_APP1 && length >= 2 + HEAD &&
		    memcmp(data + at + 4, "Exif", 5) == 0)
			return read_exif(data + at + 4, length - 2);
		at += 2 + length;
	}
	return 1;
}

/* ---- turning ---- */

/* Are rows and columns exchanged? Is the last row, or the last column, the first one of the upright
 * picture? */
static const struct kind {
	bool turn, last_row, last_column;
} kinds[] = {
	[1] = {false, false, false}, [2] = {false, false, true}, [3] = {false, true, true},
	[4] = {false, true, false},  [5] = {true, false, false}, [6] = {true, true, false},
	[7] = {true, true, true},    [8] = {true, false, true},
};

bool mu_orientation_turns(int orientation)
{
	return kinds[orientation].turn;
}

/* n places from `from` on, out of all; counted from the other end if last. */
static size_t place(size_t from, size_t n, size_t all, bool last)
{
	return last ? all - from - n : from;
}

struct mu_image_window mu_orientation_window(int orientation, size_t h, size_t w,
					     const struct mu_image_window *upright)
{
	const struct kind *k = &kinds[orientation];
	struct mu_image_window stored = *upright;

	if (k->turn) {
		stored.top = upright->left;
		stored.left = upright->top;
		stored.h = upright->w;
		stored.w = upright->h;
	}
	stored.top = place(stored.top, stored.h, h, k->last_row);
	stored.left = place(stored.left, stored.w, w, k->last_column);
	return stored;
}

enum mu_status mu_orientation_apply(int orientation, size_t h, size_t w,
				    const struct mu_image *stored, struct mu_image *upright)
{
	enum mu_status st = MU_OK;
	const struct kind *k = &kinds[orientation];
	const size_t top = place(stored->top, stored->h, h, k->last_row);
	const size_t left = place(stored->left, stored->w, w, k->last_column);
	const ptrdiff_t row = (k->last_row ? -1 : 1) * (ptrdiff_t)stored->w;
	const ptrdiff_t column = k->last_column ? -1 : 1;
	const uint32_t *first = stored->pixels + (k->last_row ? (stored->h - 1) * stored->w : 0) +
				(k->last_column ? stored->w - 1 : 0);

	MU_TRY(mu_image_resize(upright, k->turn ? stored->w : stored->h,
			       k->turn ? stored->h : stored->w));
	upright->top = k->turn ? left : top;
	upright->left = k->turn ? top : left;
	upright->shrink = stored->shrink;
	for (size_t y = 0; y < upright->h; y++) {
		const uint32_t *from = first + (ptrdiff_t)y * (k->turn ? column : row);
		uint32_t *to = upright->pixels + y * upright->w;

		for (size_t x = 0; x < upright->w; x++)
			to[x] = from[(ptrdiff_t)x * (k->turn ? row : column)];
	}
out:
	return st;
}
