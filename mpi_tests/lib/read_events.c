/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_events FILE: the scalars of an event file of TensorBoard, a line each: "step tag value"; the
 * first line is the file's version. Reads the bytes by itself: TFRecord's frames with their
 * CRC-32C, and protobuf's wire format. Exit status 1, with a line that says why, if the file is not
 * as it should be.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES = 1 << 20 };

/* A message, or a part of one. */
struct bytes {
	const uint8_t *at, *end;
};

static void die(const char *why)
{
	fprintf(stderr, "read_events: %s\n", why);
	exit(EXIT_FAILURE);
}

/* Bit by bit, unlike the writer. */
static uint32_t masked_crc(const uint8_t *data, size_t n)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < 8 * n; i++) {
		uint32_t bit = (crc ^ (uint32_t)data[i / 8] >> i % 8) & 1;

		crc = crc >> 1 ^ (bit ? 0x82f63b78u : 0);
	}
	crc = ~crc;
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static uint64_t little(const uint8_t *p, int nbytes)
{
	uint64_t value = 0;

	for (int i = nbytes; i-- > 0;)
		value = value << 8 | p[i];
	return value;
}

static uint64_t varint(struct bytes *b)
{
	uint64_t value = 0;

	for (int shift = 0; shift < 64; shift += 7) {
		if (b->at == b->end)
			die("a number is cut off");
		value |= (uint64_t)(*b->at & 0x7f) << shift;
		if (*b->at++ < 0x80)
			return value;
	}
	die("a number is too long");
	return 0;
}

/* The next field: its number; 0 at the end. *value: its bytes; of a varint *number. */
static uint64_t field(struct bytes *b, struct bytes *value, uint64_t *number)
{
	uint64_t key, n = 0;

	if (b->at == b->end)
		return 0;
	key = varint(b);
	switch (key & 7) {
	case 0: *number = varint(b); break;
	case 1: n = 8; break;
	case 2: n = varint(b); break;
	case 5: n = 4; break;
	default: die("a field of a kind that there is not");
	}
	if (n > (uint64_t)(b->end - b->at))
		die("a field is longer than its message");
	*value = (struct bytes){b->at, b->at + n};
	b->at += n;
	return key >> 3;
}

static void print_value(struct bytes message, uint64_t step)
{
	struct bytes v, tag = {NULL, NULL};
	uint64_t number = 0, f;
	uint32_t bits = 0;
	float value;
	int has_value = 0;

	while ((f = field(&message, &v, &number))) {
		if (f == 1)
			tag = v;
		if (f == 2 && v.end - v.at == 4) {
			bits = (uint32_t)little(v.at, 4);
			has_value = 1;
		}
	}
	if (!tag.at || !has_value)
		die("a scalar without a tag or without a value");
	memcpy(&value, &bits, sizeof value);
	printf("%llu %.*s %.9g\n", (unsigned long long)step, (int)(tag.end - tag.at),
	       (const char *)tag.at, (double)value);
}

static void print_event(struct bytes event)
{
	struct bytes v, summary = {NULL, NULL};
	uint64_t step = 0, number = 0, f;
	int has_time = 0;

	while ((f = field(&event, &v, &number))) {
		has_time |= f == 1 && v.end - v.at == 8;
		if (f == 2)
			step = number;
		if (f == 3)
			printf("version %.*s\n", (int)(v.end - v.at), (const char *)v.at);
		if (f == 5)
			summary = v;
	}
	if (!has_time)
		die("an event without a time");
	while (summary.at && (f = field(&summary, &v, &number)))
		if (f == 1)
			print_value(v, step);
}

int main(int argc, char **argv)
{
	static uint8_t data[FILE_BYTES];
	FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
	const uint8_t *at = data, *end;
	uint64_t n;

	if (!file)
		die("there is no such file");
	end = data + fread(data, 1, sizeof data, file);
	fclose(file);
	for (; at < end; at += 16 + n) {
		if (end - at < 16)
			die("a record is cut off");
		n = little(at, 8);
		if (little(at + 8, 4) != masked_crc(at, 8))
			die("the checksum of a length is wrong");
		if (n > (uint64_t)(end - at - 16))
			die("a record is longer than the file");
		if (little(at + 12 + n, 4) != masked_crc(at + 12, n))
			die("the checksum of a record is wrong");
		print_event((struct bytes){at + 12, at + 12 + n});
	}
	return EXIT_SUCCESS;
}
