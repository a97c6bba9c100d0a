/* SPDX-License-Identifier: Apache-2.0 */
#include "utf8.h"

#include <string.h>

/* ---- texts of files ---- */

/* Zero bytes in every second place: UTF-16 without a mark, of letters below U+0100. */
static bool has_zeros_between(const char *text, size_t nbytes)
{
	enum { LOOK = 4096 };
	size_t zeros[2] = {0, 0}, n = nbytes < LOOK ? nbytes : LOOK;

	for (size_t i = 0; i < n; i++)
		zeros[i % 2] += text[i] == '\0';
	return nbytes % 2 == 0 && n >= 2 && (zeros[0] == 0) != (zeros[1] == 0) &&
	       zeros[0] + zeros[1] > n / 4;
}

static const char *name_wide(const char *text, size_t nbytes)
{
	if (nbytes >= 4 &&
	    (memcmp(text, "\xff\xfe\0\0", 4) == 0 || memcmp(text, "\0\0\xfe\xff", 4) == 0))
		return "UTF-32";
	if (nbytes >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
		return "UTF-16";
	return has_zeros_between(text, nbytes) ? "UTF-16" : NULL;
}

enum mu_status mu_text_begin(const char *path, const char *text, size_t nbytes, size_t *mark)
{
	enum mu_status st = MU_OK;
	const char *wide = name_wide(text, nbytes);

	*mark = nbytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	if (wide)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: is a text in %s, and UTF-8 is needed: convert it by iconv -f %s -t "
			"UTF-8",
			path, wide, wide);
out:
	return st;
}

/* What is no plain text, by its first bytes or by its name. Where the first may be letters of a
 * text, more follow after a digit, or stand at the end. */
static const struct other {
	const char *bytes, *ending;
	const char *what, *cure;
	const char *after_digit, *last;
} others[] = {
	{"\x1f\x8b", NULL, "packed by gzip", "unpack it: gunzip", NULL, NULL},
	{"PK\3\4", NULL, "a zip file", "unpack it: unzip", NULL, NULL},
	{"BZh", NULL, "packed by bzip2", "unpack it: bunzip2", "1AY&SY", NULL},
	{"\xfd\x37zXZ", NULL, "packed by xz", "unpack it: unxz", NULL, NULL},
	{"\x28\xb5\x2f\xfd", NULL, "packed by zstd", "unpack it: unzstd", NULL, NULL},
	{"PAR1", NULL, "a Parquet file", "write its column of texts to a text file", NULL, "PAR1"},
	{"%PDF-", NULL, "a PDF file", "take its text out: pdftotext", ".", NULL},
	{NULL, ".jsonl", "JSON lines", "take the texts out: jq -r .text", NULL, NULL},
	{NULL, ".ndjson", "JSON lines", "take the texts out: jq -r .text", NULL, NULL},
	{NULL, ".json", "JSON", "take the texts out: jq -r '.[].text'", NULL, NULL},
};

static bool has_bytes(const struct other *o, const char *text, size_t nbytes)
{
	const size_t n = strlen(o->bytes), more = o->after_digit ? strlen(o->after_digit) : 0;
	const size_t last = o->last ? strlen(o->last) : 0;

	if (nbytes < n || memcmp(text, o->bytes, n) != 0)
		return false;
	if (more > 0 && (nbytes < n + 1 + more || text[n] < '0' || text[n] > '9' ||
			 memcmp(text + n + 1, o->after_digit, more) != 0))
		return false;
	return last == 0 ||
	       (nbytes >= n + last && memcmp(text + nbytes - last, o->last, last) == 0);
}

enum mu_status mu_text_plain(const char *path, const char *text, size_t nbytes, size_t *mark)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_text_begin(path, text, nbytes, mark));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		const char *ending = others[i].ending;

		if (ending ? mu_stem(path, ending) > 0 : has_bytes(&others[i], text, nbytes))
			MU_FAIL(MU_ERR_FORMAT, "%s: is %s, no plain text: %s%s", path,
				others[i].what, others[i].cure,
				ending ? ", or name it .txt to learn it as it is" : "");
	}
out:
	return st;
}
