/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as a person reads them, and endings of names. */
#include <muster/base.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_NUMBER = 17, NUMBER_BYTES = 32 };

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

size_t mu_stem(const char *name, const char *ending)
{
	const size_t n = strlen(name), m = strlen(ending);

	return n > m && strcmp(name + n - m, ending) == 0 ? n - m : 0;
}
