/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabularies: an array of words, and a hash table with open addressing. */
#include <muster/text.h>

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include <muster/storage.h>

#include "base/utf8.h"

enum { FIRST_ROOM = 1024 };

struct word {
	size_t at, nbytes; /* in bytes */
};

struct mu_vocabulary {
	bool characters;
	struct word *words;
	size_t n, room; /* words; number 0 included */
	char *bytes;    /* of all words, back to back */
	size_t n_bytes, room_bytes;
	uint32_t *table; /* numbers, 0: free; its size is a power of two, more than 2 n */
	size_t table_n;
	size_t n_wide, n_stray; /* characters of several bytes; single bytes above ASCII */
};

static bool is_word(const char *word, size_t nbytes, const char *other)
{
	return nbytes == strlen(other) && memcmp(word, other, nbytes) == 0;
}

/* Place of the word's number in the hash table, or the free place for it. */
static size_t place_of(const struct mu_vocabulary *v, const char *word, size_t nbytes)
{
	size_t at = mu_hash(MU_HASH_START, word, nbytes) & (v->table_n - 1);

	for (; v->table[at]; at = (at + 1) & (v->table_n - 1)) {
		const struct word *w = &v->words[v->table[at]];

		if (w->nbytes == nbytes && memcmp(v->bytes + w->at, word, nbytes) == 0)
			break;
	}
	return at;
}

/* Double the array, or grow it to `need` if that is more; keeps the contents. */
static enum mu_status grow(void **array, size_t *room, size_t used, size_t need, size_t each)
{
	enum mu_status st = MU_OK;
	void *grown = NULL;

	if (need <= *room)
		return MU_OK;
	if (need < 2 * *room)
		need = 2 * *room;
	MU_TRY(mu_alloc(&grown, need * each, "vocabulary"));
	if (used > 0)
		memcpy(grown, *array, used * each);
	mu_free(*array);
	*array = grown;
	*room = need;
out:
	return st;
}

static enum mu_status grow_table(struct mu_vocabulary *v)
{
	enum mu_status st = MU_OK;

	if (v->table_n > 2 * (v->n + 1))
		return MU_OK;
	mu_free(v->table);
	v->table = NULL;
	v->table_n *= 4;
	MU_TRY(MU_ALLOC(v->table, v->table_n, "vocabulary"));
	for (size_t i = 1; i < v->n; i++) {
		const struct word *w = &v->words[i];

		v->table[place_of(v, v->bytes + w->at, w->nbytes)] = (uint32_t)i;
	}
out:
	return st;
}

enum mu_status mu_vocabulary_add(struct mu_vocabulary *v, const char *word, size_t nbytes,
				 size_t *number)
{
	enum mu_status st = MU_OK;
	size_t at = place_of(v, word, nbytes);

	*number = v->table[at];
	if (*number)
		goto out;
	if (v->n == MU_VOCABULARY_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED, "a vocabulary of more than %d words",
			MU_VOCABULARY_MAX - 1);
	MU_TRY(grow((void **)&v->words, &v->room, v->n, v->n + 1, sizeof *v->words));
	MU_TRY(grow((void **)&v->bytes, &v->room_bytes, v->n_bytes, v->n_bytes + nbytes, 1));
	v->words[v->n] = (struct word){v->n_bytes, nbytes};
	memcpy(v->bytes + v->n_bytes, word, nbytes);
	v->n_bytes += nbytes;
	v->n_wide += nbytes > 1 && !is_word(word, nbytes, MU_WORD_UNKNOWN);
	v->n_stray += nbytes == 1 && (unsigned char)*word >= 0x80;
	v->table[at] = (uint32_t)v->n;
	*number = v->n++;
	MU_TRY(grow_table(v));
out:
	return st;
}

/* A vocabulary with number 0 only. */
static enum mu_status make(struct mu_vocabulary **out, bool characters)
{
	enum mu_status st = MU_OK;
	struct mu_vocabulary *v = NULL;

	*out = NULL;
	MU_TRY(MU_ALLOC(v, 1, "vocabulary"));
	*v = (struct mu_vocabulary){
		.characters = characters, .n = 1, .room = FIRST_ROOM, .room_bytes = FIRST_ROOM};
	v->table_n = 4 * FIRST_ROOM;
	MU_TRY(MU_ALLOC(v->words, v->room, "vocabulary"));
	MU_TRY(MU_ALLOC(v->bytes, v->room_bytes, "vocabulary"));
	MU_TRY(MU_ALLOC(v->table, v->table_n, "vocabulary"));
	*out = v;
	v = NULL;
out:
	mu_vocabulary_free(v);
	return st;
}

enum mu_status mu_vocabulary_new(struct mu_vocabulary **out, bool characters)
{
	enum mu_status st = MU_OK;
	size_t number;

	MU_TRY(make(out, characters));
	if (!characters)
		MU_TRY(mu_vocabulary_add(*out, MU_WORD_END, strlen(MU_WORD_END), &number));
out:
	return st;
}

void mu_vocabulary_free(struct mu_vocabulary *v)
{
	if (!v)
		return;
	mu_free(v->words);
	mu_free(v->bytes);
	mu_free(v->table);
	mu_free(v);
}

size_t mu_vocabulary_n(const struct mu_vocabulary *v)
{
	return v->n;
}

bool mu_vocabulary_characters(const struct mu_vocabulary *v)
{
	return v->characters;
}

bool mu_vocabulary_bytes(const struct mu_vocabulary *v)
{
	return v->characters && v->n_stray > 0 && v->n_wide == 0;
}

size_t mu_vocabulary_step(const struct mu_vocabulary *v, const char *p, size_t nbytes)
{
	uint32_t code;
	const size_t n = mu_vocabulary_bytes(v) ? 1 : mu_utf8_read(p, nbytes, &code);

	return n ? n : 1;
}

const char *mu_vocabulary_word(const struct mu_vocabulary *v, size_t number, size_t *nbytes)
{
	*nbytes = v->words[number].nbytes;
	return v->bytes + v->words[number].at;
}

size_t mu_vocabulary_find(const struct mu_vocabulary *v, const char *word, size_t nbytes)
{
	size_t number = v->table[place_of(v, word, nbytes)];

	return number ? number : v->table[place_of(v, MU_WORD_UNKNOWN, strlen(MU_WORD_UNKNOWN))];
}

uint64_t mu_vocabulary_hash(const struct mu_vocabulary *v)
{
	uint64_t h = mu_hash(MU_HASH_START, &v->characters, sizeof v->characters);

	for (size_t i = 1; i < v->n; i++) {
		h = mu_hash(h, v->bytes + v->words[i].at, v->words[i].nbytes);
		h = mu_hash(h, "", 1);
	}
	return h;
}

/* ---- files ---- */

enum { LINE_BYTES = 4096 };

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Replace "\n", "\\" and "\x1b" by their bytes, in place; returns the number of bytes, 0 for other
 * escapes. */
static size_t unescape(char *line, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n; i++) {
		if (line[i] != '\\') {
			line[to++] = line[i];
		} else if (i + 1 < n && line[i + 1] == 'n') {
			line[to++] = '\n';
			i++;
		} else if (i + 1 < n && line[i + 1] == '\\') {
			line[to++] = '\\';
			i++;
		} else if (i + 3 < n && line[i + 1] == 'x' && hex(line[i + 2]) >= 0 &&
			   hex(line[i + 3]) >= 0) {
			line[to++] = (char)(16 * hex(line[i + 2]) + hex(line[i + 3]));
			i += 3;
		} else {
			return 0;
		}
	}
	return to;
}

static enum mu_status read_line(struct mu_vocabulary *v, const char *path, size_t number,
				char *line, size_t n)
{
	enum mu_status st = MU_OK;
	size_t nbytes = unescape(line, n), before = v->n, given;

	if (nbytes == 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s, line %zu: it must be a word, with backslashes only as in \\n, \\\\ "
			"and \\x1b",
			path, number);
	MU_TRY(mu_vocabulary_add(v, line, nbytes, &given));
	if (v->n == before)
		MU_FAIL(MU_ERR_FORMAT, "%s, line %zu: \"%.*s\" is in line %zu, too", path, number,
			(int)nbytes, line, given);
out:
	return st;
}

static enum mu_status read_lines(struct mu_vocabulary *v, const char *path, FILE *f)
{
	enum mu_status st = MU_OK;
	char line[LINE_BYTES], *begin;
	size_t number = 0, mark;

	while (fgets(line, sizeof line, f)) {
		size_t n = strlen(line);
		const bool cut = n + 1 == sizeof line && line[n - 1] != '\n';

		begin = line;
		if (number++ == 0) {
			MU_TRY(mu_text_begin(path, line, n, &mark));
			begin += mark;
			n -= mark;
		}
		if (cut)
			MU_FAIL(MU_ERR_FORMAT, "%s, line %zu has more than %d bytes", path, number,
				LINE_BYTES - 2);
		n -= n > 0 && begin[n - 1] == '\n';
		n -= n > 0 && begin[n - 1] == '\r'; /* a word's own is written as \x0d */
		MU_TRY(read_line(v, path, number, begin, n));
	}
	if (ferror(f))
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
	if (v->n == 1)
		MU_FAIL(MU_ERR_FORMAT, "%s: is empty: a vocabulary is one word a line", path);
	v->characters = !v->table[place_of(v, MU_WORD_END, strlen(MU_WORD_END))];
out:
	return st;
}

static enum mu_status check_characters(const struct mu_vocabulary *v, const char *path)
{
	enum mu_status st = MU_OK;

	for (size_t i = 1; v->characters && i < v->n; i++) {
		const char *word = v->bytes + v->words[i].at;
		const size_t n = v->words[i].nbytes;
		uint32_t code;

		if (n == 1 || is_word(word, n, MU_WORD_UNKNOWN))
			continue;
		if (mu_utf8_read(word, n, &code) != n)
			MU_FAIL(MU_ERR_FORMAT,
				"%s, line %zu: \"%.*s\" is no character; a vocabulary of words "
				"has \"" MU_WORD_END "\" in a line",
				path, i, (int)n, word);
	}
out:
	return st;
}

static enum mu_status read_stream(struct mu_vocabulary **out, const char *path, FILE *f)
{
	enum mu_status st = MU_OK;
	struct mu_vocabulary *v = NULL;

	MU_TRY(make(&v, false));
	MU_TRY(read_lines(v, path, f));
	MU_TRY(check_characters(v, path));
	*out = v;
	v = NULL;
out:
	mu_vocabulary_free(v);
	return st;
}

enum mu_status mu_vocabulary_read(struct mu_vocabulary **out, const char *path)
{
	enum mu_status st = MU_OK;
	FILE *f = NULL;

	*out = NULL;
	MU_TRY(mu_stream_open(&f, path));
	MU_TRY(read_stream(out, path, f));
out:
	if (f)
		fclose(f);
	return st;
}

enum mu_status mu_vocabulary_from_text(struct mu_vocabulary **out, const char *name, char *text)
{
	enum mu_status st = MU_OK;
	FILE *f = NULL;

	*out = NULL;
	if (!*text)
		MU_FAIL(MU_ERR_FORMAT, "%s: its vocabulary is empty", name);
	f = fmemopen(text, strlen(text), "r");
	if (!f)
		MU_FAIL(MU_ERR_MEMORY, "%s: no memory for its vocabulary", name);
	MU_TRY(read_stream(out, name, f));
out:
	if (f)
		fclose(f);
	return st;
}

static void write_word(FILE *f, const char *word, size_t nbytes)
{
	const bool mark = is_word(word, nbytes, "\xef\xbb\xbf"); /* skipped where a file begins */

	for (size_t i = 0; i < nbytes; i++) {
		unsigned char c = (unsigned char)word[i];

		if (c == '\n')
			fputs("\\n", f);
		else if (c == '\\')
			fputs("\\\\", f);
		else if (iscntrl(c) || mark)
			fprintf(f, "\\x%02x", c);
		else
			fputc(c, f);
	}
	fputc('\n', f);
}

enum mu_status mu_vocabulary_write(const struct mu_vocabulary *v, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_replace replace = {0};

	MU_TRY(mu_replace_open(&replace, path));
	for (size_t i = 1; i < v->n; i++)
		write_word(replace.stream, v->bytes + v->words[i].at, v->words[i].nbytes);
	MU_TRY(mu_replace_commit(&replace));
out:
	mu_replace_release(&replace);
	return st;
}

enum mu_status mu_vocabulary_to_text(const struct mu_vocabulary *v, char **text)
{
	enum mu_status st = MU_OK;
	size_t nbytes;
	FILE *f = open_memstream(text, &nbytes);

	if (!f)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the text of a vocabulary");
	for (size_t i = 1; i < v->n; i++)
		write_word(f, v->bytes + v->words[i].at, v->words[i].nbytes);
	if (fclose(f) != 0)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the text of a vocabulary");
out:
	return st;
}
