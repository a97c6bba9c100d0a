/* SPDX-License-Identifier: Apache-2.0 */
/* Characters of UTF-8, and what texts of files begin with. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <muster/base.h>

/* Bytes of the character at p, of which nbytes may be read, and its code point; 0: p does not begin
 * with a character (RFC 3629: no surrogates, no longer forms). */
size_t mu_utf8_read(const char *p, size_t nbytes, uint32_t *code);

/* *mark: bytes of the byte order mark that a text of a file begins with, 3 or 0. MU_ERR_FORMAT: it
 * is UTF-16 or UTF-32, by its mark or by its zero bytes. */
enum mu_status mu_text_begin(const char *path, const char *text, size_t nbytes, size_t *mark);
/* The same for a text to learn from. MU_ERR_FORMAT also: it is packed, or by its name JSON. */
enum mu_status mu_text_plain(const char *path, const char *text, size_t nbytes, size_t *mark);

#endif
