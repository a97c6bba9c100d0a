/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of a text, by the rule of GPT-2's encoder.py (Radford et al., Language models are
 * unsupervised multitask learners, 2019):
 *
 *	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 */
#include "tokens.h"

#include <string.h>

#include "base/utf8.h"

struct character {
	enum mu_token_class class;
	size_t nbytes;
};

/* Bytes that are not UTF-8 are characters of one byte, of class OTHER. */
static struct character look(const char *p, size_t nbytes)
{
	const unsigned char c = (unsigned char)*p;
	uint32_t code;
	size_t n;

	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
		return (struct character){MU_TOKEN_LETTER, 1};
	if (c < 0x80)
		return (struct character){c >= '0' && c <= '9'              ? MU_TOKEN_NUMBER
					  : c == ' ' || (c >= 9 && c <= 13) ? MU_TOKEN_SPACE
									    : MU_TOKEN_OTHER,
					  1};
	n = mu_utf8_read(p, nbytes, &code);
	return n == 0 ? (struct character){MU_TOKEN_OTHER, 1}
		      : (struct character){mu_token_class(code), n};
}

/* Bytes of "'s" and its like; 0: none. */
static size_t contraction(const char *p, size_t nbytes)
{
	static const char *const all[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};

	for (size_t i = 0; *p == '\'' && i < sizeof all / sizeof *all; i++) {
		const size_t n = strlen(all[i]);

		if (n <= nbytes && memcmp(p, all[i], n) == 0)
			return n;
	}
	return 0;
}

/* Bytes of the characters of one class from p on. */
static size_t run_of(enum mu_token_class class, const char *p, size_t nbytes)
{
	size_t n = 0;

	while (n < nbytes) {
		const struct character c = look(p + n, nbytes - n);

		if (c.class != class)
			break;
		n += c.nbytes;
	}
	return n;
}

/* Blanks; the last one of several is left for the word behind them. */
static size_t blanks(const char *p, size_t nbytes)
{
	size_t n = 0, last = 0;

	while (n < nbytes) {
		const struct character c = look(p + n, nbytes - n);

		if (c.class != MU_TOKEN_SPACE)
			break;
		last = n;
		n += c.nbytes;
	}
	return n < nbytes && last > 0 ? last : n;
}

size_t mu_token_word(const char *text, size_t nbytes)
{
	size_t n = contraction(text, nbytes);
	const size_t space = nbytes > 1 && *text == ' ';
	struct character c;

	if (n > 0)
		return n;
	c = look(text + space, nbytes - space);
	if (c.class == MU_TOKEN_SPACE)
		return blanks(text, nbytes);
	return space + run_of(c.class, text + space, nbytes - space);
}
