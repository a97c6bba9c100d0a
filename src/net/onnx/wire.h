/* SPDX-License-Identifier: Apache-2.0 */
/* wire: messages of Protocol Buffers, whose fields are a number, a type and a value each. */
#ifndef NET_ONNX_WIRE_H
#define NET_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct onnx_bytes {
	char *of;
	size_t n, room;
	bool failed; /* there was no memory: it is not complete */
};

void mu_wire_int(struct onnx_bytes *b, int field, uint64_t value);
void mu_wire_float(struct onnx_bytes *b, int field, float value);
void mu_wire_text(struct onnx_bytes *b, int field, const char *text);
/* The message that m holds; m is released. */
void mu_wire_message(struct onnx_bytes *b, int field, struct onnx_bytes *m);
/* A field of n bytes, without these. */
void mu_wire_begin(struct onnx_bytes *b, int field, size_t n);
/* Fields that are complete. */
void mu_wire_append(struct onnx_bytes *b, const void *fields, size_t n);
void mu_wire_release(struct onnx_bytes *b);

#endif
