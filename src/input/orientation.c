/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The orientation in a JPEG file: Exif 2.3 (CIPA DC-008), a TIFF block in segment APP1, whose first
 * directory may hold tag 274. Every number of the block may be wrong: one that lies outside is 0.
 */
#include <muster/image.h>

#include <string.h>

enum {
	HEAD = 6, /* "Exif", 0 and a byte that pads */
	ENTRY = 12,
	TAG = 274,
	MARKER_APP1 = 0xe1,
	MARKER_FIRST_ALONE = 0xd0, /* from here to the last one: without a length */
	MARKER_LAST_ALONE = 0xd9,
	MARKER_SCAN = 0xda, /* what follows is the picture */
	MARKER_TEM = 0x01,  /* without a length, too */
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

/* As OpenCV does it: a directory that is not all there is none, the type of the entry is not looked
 * at. */
static int read_tiff(const uint8_t *bytes, size_t n)
{
	struct block b = {bytes, n, n >= 2 && memcmp(bytes, "MM", 2) == 0};
	size_t directory, entries, value = 1;

	if (n < 2 || (!b.big_endian && memcmp(bytes, "II", 2) != 0) || number(&b, 2, 2) != 42)
		return 1;
	directory = number(&b, 4, 4);
	entries = number(&b, directory, 2);
	if (entries > 0 && entries > (n - directory - 2) / ENTRY)
		return 1;
	for (size_t i = 0; i < entries; i++) {
		size_t entry = directory + 2 + ENTRY * i;

		if (number(&b, entry, 2) != TAG)
			continue;
		value = number(&b, entry + 8, 2);
		break;
	}
	return value >= 1 && value <= 8 ? (int)value : 1;
}

/* Bytes between segments are skipped, as libjpeg does it. */
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
			return read_tiff(data + at + 4 + HEAD, length - 2 - HEAD);
		at += 2 + length;
	}
	return 1;
}
