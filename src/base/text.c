/* SPDX-License-Identifier: Apache-2.0 */
/* Texts for people: numbers, names from files and other people, endings of names. */
#include <muster/base.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

enum { LONG_NUMBER = 17, NUMBER_BYTES = 32, SHOWN = 4, SHOWN_BYTES = 4096 };

const char *mu_real_text(double value, char *text, size_t nbytes)
{
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, nbytes, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	return text;
}

/* The length of the number at p, which may be of hexadecimal digits; 0: there is none. */
static size_t number_length(const char *text, const char *p)
{
	char *end;

	if (!isdigit((unsigned char)*p) ||
	    (p > text && (isalnum((unsigned char)p[-1]) || strchr("._", p[-1]))))
		return 0;
	strtod(p, &end);
	return isalnum((unsigned char)*end) ? 0 : (size_t)(end - p);
}

void mu_text_shorten(char *text)
{
	char number[NUMBER_BYTES];

	for (char *p = text; *p; p++) {
		const size_t n = number_length(text, p);
		size_t short_n;

		if (n < LONG_NUMBER || !memchr(p, '.', n))
			continue;
		mu_real_text(strtod(p, NULL), number, sizeof number);
		short_n = strlen(number);
		if (short_n >= n)
			continue;
		memcpy(p, number, short_n);
		memmove(p + short_n, p + n, strlen(p + n) + 1);
		p += short_n - 1;
	}
}

/*
 * May this character be shown? Not those that a terminal obeys (C0, C1), that begin a line, or that
 * turn the order of others round (Unicode's UAX 9), which would let a name pose as a message.
 */
static bool is_shown(uint32_t code)
{
	return (code >= 0x20 || code == 0x09) && (code < 0x7f || code > 0x9f) && code != 0x61c &&
	       (code < 0x200e || code > 0x200f) && (code < 0x2028 || code > 0x202e) &&
	       (code < 0x2066 || code > 0x2069);
}

/* Does the shown text end in "error" or "warning", so that a colon would make a message of it? */
static bool poses(const char *out, size_t used)
{
	return (used >= 5 && memcmp(out + used - 5, "error", 5) == 0) ||
	       (used >= 7 && memcmp(out + used - 7, "warning", 7) == 0);
}

const char *mu_text_show(char *out, size_t nbytes, const char *text)
{
	const char *const end = text + strlen(text);
	size_t used = 0, n, bytes;
	uint32_t code;
	bool shown, hidden = false;

	while (text < end) {
		bytes = mu_utf8_read(text, (size_t)(end - text), &code);
		n = bytes > 0 ? bytes : 1;
		shown = bytes > 0 && is_shown(code);
		hidden |= !shown;
		if (shown && !(hidden && code == ':' && poses(out, used))) {
			if (used + n >= nbytes)
				break;
			memcpy(out + used, text, n);
			used += n;
		} else {
			if (used + 4 * n >= nbytes)
				break;
			for (size_t i = 0; i < n; i++, used += 4)
				snprintf(out + used, nbytes - used, "\\x%02x",
					 (unsigned char)text[i]);
		}
		text += n;
	}
	out[used] = '\0';
	return out;
}

const char *mu_shown(const char *text)
{
	static _Thread_local char texts[SHOWN][SHOWN_BYTES];
	static _Thread_local size_t next;

	return mu_text_show(texts[next++ % SHOWN], SHOWN_BYTES, text);
}

/* Would a table program compute it? Quotation marks do not hinder that. What begins with '-' is an
 * option here. */
static bool is_formula(const char *text)
{
	char *end;

	if (!*text || !strchr("=+@\t\r", *text))
		return false;
	strtod(text, &end);
	return end == text || *end;
}

void mu_text_put_csv(FILE *stream, const char *text)
{
	const bool formula = is_formula(text);

	if (!formula && !text[strcspn(text, ",\"\r\n")]) {
		fputs(text, stream);
		return;
	}
	fputs(formula ? "\"'" : "\"", stream);
	for (; *text; text++)
		fprintf(stream, *text == '"' ? "\"\"" : "%c", *text);
	fputc('"', stream);
}

size_t mu_stem(const char *name, const char *ending)
{
	const size_t n = strlen(name), m = strlen(ending);

	return n > m && strcmp(name + n - m, ending) == 0 ? n - m : 0;
}
