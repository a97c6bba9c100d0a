/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* The reader of JSON: values, places, and what it refuses. */
#include <muster/json.h>

#include <stdlib.h>
#include <string.h>

#include "../lib/check.h"

/* The text is the caller's, to be freed after the document. */
static enum mu_status read_bytes(struct mu_json_document *d, const char *text, size_t n,
				 char **copy)
{
	*copy = malloc(n + 1); /* of this size, so that a sanitizer sees reads after its end */
	if (!CHECK(*copy))
		return MU_ERR_MEMORY;
	memcpy(*copy, text, n);
	(*copy)[n] = '\0';
	return mu_json_read(d, "x.json", *copy, n);
}

static void test_values(void)
{
	static const char text[] = "\xef\xbb\xbf{\"a\": [1, -2.5e1, true, false, null],\r\n"
				   " \"b\\n\": \"\\u00e9\\ud83d\\ude00\\\"\\u0000x\", \"\": {},\n"
				   "\t\"c\": 9007199254740993}";
	struct mu_json_document d = {0};
	const struct mu_json_value *v, *first;
	char *copy;
	uint64_t n;

	CHECK(read_bytes(&d, text, sizeof text - 1, &copy) == MU_OK);
	CHECK(d.n == 10 && d.values->type == MU_JSON_OBJECT && d.values->n == 4);
	first = v = mu_json_member(d.values, "a");
	CHECK(v && v->type == MU_JSON_ARRAY && v->n == 5 && v->line == 1);
	CHECK(mu_json_integer(mu_json_first(v), 1, &n) && n == 1);
	CHECK(!mu_json_integer(mu_json_first(v), 0, &n));
	CHECK(mu_json_double(mu_json_next(mu_json_first(v))) == -25);
	CHECK(!mu_json_integer(mu_json_next(mu_json_first(v)), 100, &n));
	v = mu_json_member(d.values, "b\n");
	CHECK(v && v == mu_json_next(first) && v->line == 2 && v->text_bytes == 9);
	CHECK(v && memcmp(v->text, "\u00e9\U0001f600\"\0x", 10) == 0);
	CHECK(!mu_json_is_text(v, "\u00e9\U0001f600\""));
	CHECK(mu_json_member(d.values, "") && !mu_json_member(d.values, "d"));
	v = mu_json_member(d.values, "c");
	CHECK(v && v->line == 3 && !mu_json_integer(v, UINT64_MAX, &n));
	CHECK(v && v->text_bytes == 16 && memcmp(v->text, "9007199254740993", 16) == 0);
	mu_json_release(&d);
	free(copy);
}

static void test_refusals(void)
{
	static const struct {
		const char *text, *message;
		size_t n; /* bytes; 0: up to the first zero byte */
	} bad[] = {
		{"", "x.json, line 1, column 1: is no JSON: a value is missing", 0},
		{"{\n \"a\": 1,\n \"b\" 2}",
		 "x.json, line 3, column 6: is no JSON: a colon is missing", 0},
		{"[\"a\\n\\n\\u0041\",\n x]", "line 2, column 2: is no JSON: a value is missing",
		 0},
		{"[1,]", "line 1, column 4: is no JSON: a value is missing", 0},
		{"{\"a\": 1,}", "is no JSON: a name in quotation marks is missing", 0},
		{"[1 2]", "is no JSON: a comma or ] is missing", 0},
		{"[1] x", "column 5: is no JSON: there is more after its end", 0},
		{"[1]\0", "column 4: is no JSON: there is more after its end", 4},
		{"[\"a\0b\"]", "is no JSON: a control character in a text", 7},
		{"[\"a\nb\"]", "is no JSON: a control character in a text", 0},
		{"[\"a", "is no JSON: a text without end", 0},
		{"[\"\\x\"]", "is no JSON: an unknown character after a backslash", 0},
		{"[\"\\ud800\"]", "is no JSON: half of a surrogate pair", 0},
		{"[\"\\u12g4\"]", "is no JSON: \\u without four digits", 0},
		{"[\"\xc0\xaf\"]", "is no JSON: a text that is not UTF-8", 0},
		{"[01]", "is no JSON: a value is missing", 0},
		{"[+1]", "is no JSON: a value is missing", 0},
		{"[1.]", "is no JSON: a number without digits after the point", 0},
		{"[1e]", "is no JSON: a number without an exponent", 0},
		{"[-1e999]", "column 2: is no JSON: a number that is too large", 0},
		{"[NaN]", "is no JSON: a value is missing", 0},
		{"[nul]", "is no JSON: a value is missing", 0},
		{"[{\"a\": 1,\n\"b\": 2, \"\\u0061\": 3}]", "x.json, line 2: has two members \"a\"",
		 0},
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct mu_json_document d = {0};
		const size_t n = bad[i].n ? bad[i].n : strlen(bad[i].text);
		char *copy;

		if (!CHECK(read_bytes(&d, bad[i].text, n, &copy) == MU_ERR_FORMAT) ||
		    !CHECK(strstr(mu_trace_message(), bad[i].message)))
			fprintf(stderr, "%s: %s\n", bad[i].text, mu_trace_message());
		CHECK(!d.values);
		mu_trace_clear();
		mu_json_release(&d);
		free(copy);
	}
}

static void test_depth(void)
{
	struct mu_json_document d = {0};
	char text[130], *copy;

	for (size_t depth = 64; depth <= 65; depth++) {
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		CHECK(read_bytes(&d, text, 2 * depth, &copy) ==
		      (depth == 64 ? MU_OK : MU_ERR_FORMAT));
		CHECK(depth == 64 || strstr(mu_trace_message(), "nested more than 64 deep"));
		mu_trace_clear();
		mu_json_release(&d);
		free(copy);
	}
}

/* Objects inside, beside and after large ones: each has its own names. */
static void test_names(void)
{
	enum { N = 3000, BYTES = 20 };
	struct mu_json_document d = {0};
	char *text = malloc(2 * N * BYTES), *copy;
	size_t n = 0;

	if (!CHECK(text))
		return;
	for (int twice = 0; twice < 2; twice++) {
		n = 0;
		for (int i = 0; i < N; i++)
			n += (size_t)sprintf(text + n, "%s\"n%d\": {\"n%d\": %d}",
					     i ? ", " : "{", i, i, i);
		n += (size_t)sprintf(text + n, twice ? ", \"n%d\": 0}" : "}", N / 2);
		CHECK(read_bytes(&d, text, n, &copy) == (twice ? MU_ERR_FORMAT : MU_OK));
		CHECK(!twice || strstr(mu_trace_message(), "has two members \"n1500\""));
		mu_trace_clear();
		mu_json_release(&d);
		free(copy);
	}
	free(text);
}

int main(void)
{
	test_values();
	test_refusals();
	test_depth();
	test_names();
	return check_failures() ? 1 : 0;
}
