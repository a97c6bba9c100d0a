/* SPDX-License-Identifier: Apache-2.0 */
/* Characters of UTF-8. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at p, of which nbytes may be read, and its code point; 0: p does not begin
 * with a character (RFC 3629: no surrogates, no longer forms). */
size_t mu_utf8_read(const char *p, size_t nbytes, uint32_t *code);

#endif
