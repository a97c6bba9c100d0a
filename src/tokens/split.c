/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of a text, by one of the rules of the table. Without `wide` it is that of GPT-2's
 * encoder.py (Radford et al., Language models are unsupervised multitask learners, 2019).
 */
#include "tokens.h"

#include <string.h>
#include <strings.h>

#include "base/utf8.h"

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define WIDE(number) \
	"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" number \
	"| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

const struct token_rule mu_token_rules[] = {
	{.name = "GPT-2"},
	{.name = "GPT-2", .pattern = GPT2},
	{.name = "Llama 3", .pattern = WIDE("\\p{N}{1,3}"), .wide = true, .digits = 3},
	{.name = "Qwen2", .pattern = WIDE("\\p{N}"), .wide = true, .digits = 1},
	{.name = "SmolLM", .digits_alone = true, .digits = 1},
	{.name = NULL},
};

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

/* Bytes of "'s" and its like; 0: none. any_case: "'S", too, and the long s, which is one. */
static size_t contraction(const char *p, size_t nbytes, bool any_case)
{
	static const char *const all[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};

	for (size_t i = 0; *p == '\'' && i < sizeof all / sizeof *all; i++) {
		const size_t n = strlen(all[i]);

		if (n <= nbytes &&
		    (any_case ? strncasecmp(p, all[i], n) : memcmp(p, all[i], n)) == 0)
			return n;
	}
	return any_case && nbytes > 2 && memcmp(p, "'\xc5\xbf", 3) == 0 ? 3 : 0;
}

/* Bytes of the characters of one class from p on, at most `most`; 0: all. */
static size_t run_of(enum mu_token_class class, size_t most, const char *p, size_t nbytes)
{
	size_t n = 0;

	for (size_t i = 0; n < nbytes && (most == 0 || i < most); i++) {
		const struct character c = look(p + n, nbytes - n);

		if (c.class != class)
			break;
		n += c.nbytes;
	}
	return n;
}

static size_t line_breaks(const char *p, size_t nbytes)
{
	size_t n = 0;

	while (n < nbytes && (p[n] == '\n' || p[n] == '\r'))
		n++;
	return n;
}

/* Blanks; the last one of several is left for the word after them. lines: if there are line breaks,
 * they end with the last of these. apart: numbers do not belong to the text of the blanks. */
static size_t blanks(const char *p, size_t nbytes, bool lines, bool apart)
{
	size_t n = 0, last = 0, line = 0;
	struct character c = {MU_TOKEN_SPACE, 0};

	while (n < nbytes) {
		c = look(p + n, nbytes - n);
		if (c.class != MU_TOKEN_SPACE)
			break;
		last = n;
		n += c.nbytes;
		line = lines && line_breaks(p + last, 1) > 0 ? n : line;
	}
	if (line > 0)
		return line;
	return n < nbytes && last > 0 && !(apart && c.class == MU_TOKEN_NUMBER) ? last : n;
}

static size_t narrow_word(const struct token_rule *rule, const char *text, size_t nbytes)
{
	const size_t space = nbytes > 1 && *text == ' ';
	const struct character c = look(text + space, nbytes - space);
	const bool apart = rule->digits_alone;

	if (c.class == MU_TOKEN_SPACE || (space && apart && c.class == MU_TOKEN_NUMBER))
		return blanks(text, nbytes, false, apart);
	return space + run_of(c.class, c.class == MU_TOKEN_NUMBER ? rule->digits : 0, text + space,
			      nbytes - space);
}

static size_t wide_word(const struct token_rule *rule, const char *text, size_t nbytes)
{
	const struct character c = look(text, nbytes);
	const size_t space = nbytes > 1 && *text == ' ';
	struct character next = {MU_TOKEN_SPACE, 0};
	size_t n;

	if (c.nbytes < nbytes)
		next = look(text + c.nbytes, nbytes - c.nbytes);
	if (c.class == MU_TOKEN_NUMBER)
		return run_of(c.class, rule->digits, text, nbytes);
	if (c.class == MU_TOKEN_LETTER)
		return run_of(c.class, 0, text, nbytes);
	if (next.class == MU_TOKEN_LETTER && line_breaks(text, 1) == 0)
		return c.nbytes + run_of(next.class, 0, text + c.nbytes, nbytes - c.nbytes);
	if (c.class == MU_TOKEN_SPACE && !(space && next.class == MU_TOKEN_OTHER))
		return blanks(text, nbytes, true, false);
	n = space + run_of(MU_TOKEN_OTHER, 0, text + space, nbytes - space);
	return n + line_breaks(text + n, nbytes - n);
}

size_t mu_token_word(const struct token_rule *rule, const char *text, size_t nbytes)
{
	const size_t n = contraction(text, nbytes, rule->wide);

	if (n > 0)
		return n;
	return rule->wide ? wide_word(rule, text, nbytes) : narrow_word(rule, text, nbytes);
}
