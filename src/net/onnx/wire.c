/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of Protocol Buffers (protobuf.dev/programming-guides/encoding). */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, LENGTH = 2, FIXED32 = 5 };

void mu_wire_append(struct onnx_bytes *b, const void *fields, size_t n)
{
	if (b->n + n > b->room) {
		const size_t room = 2 * b->room + n + 64;
		char *grown = realloc(b->of, room);

		b->failed |= !grown;
		if (!grown)
			return;
		b->of = grown;
		b->room = room;
	}
	if (n > 0)
		memcpy(b->of + b->n, fields, n);
	b->n += n;
}

/* Seven bits a byte, the low ones first; the eighth bit: more follow. */
static void add_varint(struct onnx_bytes *b, uint64_t value)
{
	unsigned char of[10];
	size_t n = 0;

	do {
		of[n] = (unsigned char)(value & 127);
		value >>= 7;
		of[n++] |= value ? 128 : 0;
	} while (value);
	mu_wire_append(b, of, n);
}

static void add_key(struct onnx_bytes *b, int field, int type)
{
	add_varint(b, (uint64_t)field << 3 | (uint64_t)type);
}

void mu_wire_int(struct onnx_bytes *b, int field, uint64_t value)
{
	add_key(b, field, VARINT);
	add_varint(b, value);
}

void mu_wire_float(struct onnx_bytes *b, int field, float value)
{
	uint32_t bits;
	unsigned char of[4];

	memcpy(&bits, &value, sizeof bits);
	for (int i = 0; i < 4; i++)
		of[i] = (unsigned char)(bits >> 8 * i);
	add_key(b, field, FIXED32);
	mu_wire_append(b, of, sizeof of);
}

void mu_wire_begin(struct onnx_bytes *b, int field, size_t n)
{
	add_key(b, field, LENGTH);
	add_varint(b, n);
}

void mu_wire_text(struct onnx_bytes *b, int field, const char *text)
{
	mu_wire_begin(b, field, strlen(text));
	mu_wire_append(b, text, strlen(text));
}

void mu_wire_message(struct onnx_bytes *b, int field, struct onnx_bytes *m)
{
	b->failed |= m->failed;
	mu_wire_begin(b, field, m->n);
	mu_wire_append(b, m->of, m->n);
	mu_wire_release(m);
}

void mu_wire_release(struct onnx_bytes *b)
{
	free(b->of);
	*b = (struct onnx_bytes){.n = 0};
}
