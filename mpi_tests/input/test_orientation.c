/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * The orientation of a JPEG file: all eight, in both orders of bytes, behind other segments and
 * entries; what is damaged, cut short or no JPEG file is 1.
 */
#include <muster/image.h>

#include <stdlib.h>
#include <string.h>

#include "../lib/check.h"

enum { BYTES_MAX = 256, TAG = 274, SHORT = 3, LONG = 4 };

struct file {
	uint8_t bytes[BYTES_MAX];
	size_t n;
	bool big_endian;
};

static void put(struct file *f, const void *bytes, size_t n)
{
	if (n)
		memcpy(f->bytes + f->n, bytes, n);
	f->n += n;
}

static void put_number(struct file *f, size_t value, size_t nbytes)
{
	for (size_t i = 0; i < nbytes; i++)
		f->bytes[f->n++] = (uint8_t)(value >> 8 * (f->big_endian ? nbytes - 1 - i : i));
}

/* What a file is made of. */
struct file_case {
	const char *before; /* segments in front */
	size_t n_before;
	const char *head; /* of the block; NULL: "Exif" */
	size_t gap;       /* bytes between the block's head and its directory */
	size_t others;    /* entries in front */
	size_t orientation;
	size_t twice;     /* more heads of the block */
	bool long_number; /* of 4 bytes, else 2 */
	bool swapped;     /* 42 has the other order of bytes */
};

static void make(struct file *f, const struct file_case *c, bool big_endian)
{
	size_t at;

	*f = (struct file){.big_endian = big_endian};
	put(f, "\xff\xd8", 2);
	put(f, c->before, c->n_before);
	put(f, "\xff\xe1", 2);
	at = f->n;
	put(f, "\0\0", 2);
	for (size_t i = 0; i <= c->twice; i++)
		put(f, c->head ? c->head : "Exif\0\0", 6);
	put(f, big_endian ? "MM" : "II", 2);
	put_number(f, c->swapped ? 42 << 8 : 42, 2);
	put_number(f, 8 + c->gap, 4);
	put_number(f, 0, c->gap);
	put_number(f, c->others + 1, 2);
	for (size_t i = 0; i <= c->others; i++) {
		put_number(f, i < c->others ? 256 + i : TAG, 2);
		put_number(f, c->long_number ? LONG : SHORT, 2);
		put_number(f, 1, 4);
		put_number(f, i < c->others ? 7 : c->orientation, c->long_number ? 4 : 2);
		put_number(f, 0, c->long_number ? 0 : 2);
	}
	put_number(f, 0, 4);
	f->bytes[at] = (uint8_t)((f->n - at) >> 8);
	f->bytes[at + 1] = (uint8_t)(f->n - at);
	put(f, "\xff\xd9", 2);
}

/* In memory of its own, so that a sanitizer knows the end. */
static int orientation_of(const struct file *f, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);
	int got;

	memcpy(copy, f->bytes, n);
	got = mu_image_orientation(copy, n);
	free(copy);
	return got;
}

#define BYTES(text) text, sizeof text - 1

static void test_all(void)
{
	static const struct file_case cases[] = {
		{.head = NULL},
		{BYTES("\xff\xe0\0\4ab"), .others = 3},
		{BYTES("\xff\xff\xff\x01\xff\xd0\xff\xfe\0\2stray"),
		 .gap = 5}, /* fill bytes, TEM, RST0 */
		{.twice = 1},
		{.twice = 2, .others = 1},
		{.long_number = true},
		{.swapped = true},
		{BYTES("\xff\xe1\0\x10http://ns.adob"), .gap = 2}, /* XMP */
	};
	struct file f;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (size_t o = 0; o < 20; o++) {
			struct file_case c = cases[i];
			int want = o % 10 >= 1 && o % 10 <= 8 ? (int)o % 10 : 1;

			c.orientation = o % 10;
			make(&f, &c, o >= 10);
			if (!CHECK(orientation_of(&f, f.n) == want))
				fprintf(stderr, "case %zu, orientation %zu\n", i, o);
		}
	}
}

/* Cut anywhere, and with any byte changed. */
static void test_damage(void)
{
	static const struct file_case c = {.others = 2, .orientation = 6};
	struct file f;

	for (int big_endian = 0; big_endian < 2; big_endian++) {
		make(&f, &c, big_endian);
		for (size_t n = 0; n + 2 < f.n;
		     n++) /* the segment's length is more than there is */
			CHECK(orientation_of(&f, n) == 1);
		for (size_t i = 0; i < 256 * f.n; i++) {
			uint8_t old = f.bytes[i / 256];
			int got;

			f.bytes[i / 256] = (uint8_t)i;
			got = orientation_of(&f, f.n);
			CHECK(got >= 1 && got <= 8);
			f.bytes[i / 256] = old;
		}
	}
}

static void test_others(void)
{
	static const struct file_case cases[] = {
		{.head = "exif\0\0", .orientation = 6},
		{BYTES("\xff\xd9"), .orientation = 6},         /* the end, and more */
		{BYTES("\xff\xda\0\4ab"), .orientation = 6},   /* in the picture */
		{BYTES("\xff\xe1\0\1"), .orientation = 6},     /* a length of less than itself */
		{.gap = 0, .others = 0, .orientation = 65535}, /* no such */
	};
	struct file f;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		make(&f, &cases[i], i % 2);
		CHECK(orientation_of(&f, f.n) == 1);
	}
	make(&f, &(struct file_case){.orientation = 6}, true);
	f.bytes[1] = 'P'; /* no JPEG file */
	CHECK(orientation_of(&f, f.n) == 1);
	make(&f, &(struct file_case){.orientation = 6}, true);
	f.bytes[13] = 'I'; /* "MI" */
	CHECK(orientation_of(&f, f.n) == 1);
	make(&f, &(struct file_case){.orientation = 6}, true);
	f.bytes[21] = 2; /* entries, of which one is there */
	CHECK(orientation_of(&f, f.n) == 1);
	CHECK(mu_image_orientation(NULL, 0) == 1);
}

int main(void)
{
	test_all();
	test_damage();
	test_others();
	return check_failures() ? 1 : 0;
}
