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

/* What is no plain text, by its first bytes or by its name. */
static const struct {
	const char *bytes, *ending;
	const char *what, *cure;
} others[] = {
	{"\x1f\x8b", NULL, "packed by gzip", "unpack it: gunzip"},
	{"PK\3\4", NULL, "a zip file", "unpack it: unzip"},
	{"BZh", NULL, "packed by bzip2", "unpack it: bunzip2"},
	{"\xfd\x37zXZ", NULL, "packed by xz", "unpack it: unxz"},
	{"\x28\xb5\x2f\xfd", NULL, "packed by zstd", "unpack it: unzstd"},
	{"PAR1", NULL, "a Parquet file", "write its column of texts to a text file"},
	{"%PDF-", NULL, "a PDF file", "take its text out: pdftotext"},
	{NULL, ".jsonl", "JSON lines", "take the texts out: jq -r .text"},
	{NULL, ".ndjson", "JSON lines", "take the texts out: jq -r .text"},
	{NULL, ".json", "JSON", "take the texts out: jq -r '.[].text'"},
};

enum mu_status mu_text_plain(const char *path, const char *text, size_t nbytes, size_t *mark)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_text_begin(path, text, nbytes, mark));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		const char *bytes = others[i].bytes, *ending = others[i].ending;
		const size_t n = bytes ? strlen(bytes) : 0;

		if ((bytes && nbytes >= n && memcmp(text, bytes, n) == 0) ||
		    (ending && mu_stem(path, ending)))
			MU_FAIL(MU_ERR_FORMAT, "%s: is %s, no plain text: %s%s", path,
				others[i].what, others[i].cure,
				ending ? ", or name it .txt to learn it as it is" : "");
	}
out:
	return st;
}
