/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entropy decoding of baseline JPEG: ITU-T T.81, annexes C (codes), F.2.2 (decoding) and B.1.1.5
 * (stuffed bytes). The time of a symbol is that of one dependency chain: the next bits, the table's
 * entry, the shift by the entry's length. So the lowest 6 bits of an entry are the total length of
 * the symbol, its code and its value; everything else is computed off that chain.
 */
#include <string.h>

#include "jpeg.h"

/* Entries: bits 0 to 5 length of code and value, bits 8 to 15 step in coefficients, bits 16 to 23
 * length of the code, bits 24 to 31 length of the value. 0: a longer code, or none. */
enum {
	STEP = 8,
	CODE = 16,
	SIZE = 24,
	FIRST = 32,
	SECOND = 48,
	BAD = 64,         /* a step beyond the block: baseline files cannot have it */
	END = 128,        /* the step of "no more coefficients" */
	SIZE_MAX_DC = 11, /* T.81, table F.1, for 8 bits */
	SIZE_MAX_AC = 10, /* T.81, table F.2 */
	REFILLED = 56,    /* least bits available after fill; a symbol has at most 27 */
};

/* Place of the file's coefficient k in row order: T.81, figure A.6; times lanes. Coefficients
 * without a place, such as the end of a block, go after the last one. */
#define AT(k) ((k)*MU_JPEG_LANES)
static const uint16_t places[2 * END] = {
	AT(0),  AT(1),  AT(8),  AT(16), AT(9),
	AT(2),  AT(3),  AT(10), AT(17), AT(24),
	AT(32), AT(25), AT(18), AT(11), AT(4),
	AT(5),  AT(12), AT(19), AT(26), AT(33),
	AT(40), AT(48), AT(41), AT(34), AT(27),
	AT(20), AT(13), AT(6),  AT(7),  AT(14),
	AT(21), AT(28), AT(35), AT(42), AT(49),
	AT(56), AT(57), AT(50), AT(43), AT(36),
	AT(29), AT(22), AT(15), AT(23), AT(30),
	AT(37), AT(44), AT(51), AT(58), AT(59),
	AT(52), AT(45), AT(38), AT(31), AT(39),
	AT(46), AT(53), AT(60), AT(61), AT(54),
	AT(47), AT(55), AT(62), AT(63), [MU_JPEG_BLOCK... 2 * END - 1] = AT(MU_JPEG_BLOCK),
};

/* ---- tables ---- */

static uint32_t make_entry(enum mu_jpeg_use use, unsigned symbol, unsigned length)
{
	unsigned run = symbol >> 4, size = symbol & 15, step = run + 1;

	if (symbol == 0)
		step = END;
	else if (use == MU_JPEG_DC && size > SIZE_MAX_DC)
		step = BAD;
	else if (use == MU_JPEG_AC && (size > SIZE_MAX_AC || (size == 0 && run != 15)))
		step = BAD;
	if (step == BAD)
		size = 0;
	return (length + size) | step << STEP | length << CODE | size << SIZE;
}

/* T.81, F.2.2.1, EXTEND: values that begin with 0 are negative: subtract 2^size - 1. */
MU_INLINE int32_t value_of(uint64_t entry, uint64_t bits)
{
	unsigned size = entry >> SIZE & 15;
	uint64_t from = bits << (entry >> CODE & 31);
	uint64_t negative = (from >> 63) - 1;
	uint64_t magnitude = from >> 1 >> (63 - size);

	return (int32_t)(magnitude + (negative & ((UINT64_MAX << size) + 1)));
}

/*
 * The first symbol, and the second if both are completely in these bits. Like an entry, but length
 * and step are of both; bits 32 to 39 are the step to the first, bits 48 to 63 the value of the
 * second. 0: the code of the first is not completely in these bits.
 */
static uint64_t make_pair(const struct mu_jpeg_table *t, uint64_t index)
{
	uint64_t bits = index << (64 - MU_JPEG_PAIR);
	uint64_t one = t->entries[bits >> (64 - MU_JPEG_LOOKUP)], two;
	unsigned length = one & 63, step = one >> STEP & 255;

	if (one == 0 || step >= BAD || length > MU_JPEG_PAIR)
		return one | (uint64_t)step << FIRST;
	bits <<= length;
	two = t->entries[bits >> (64 - MU_JPEG_LOOKUP)];
	if (two == 0 || (two >> STEP & 255) == BAD || length + (two & 63) > MU_JPEG_PAIR)
		return one | (uint64_t)step << FIRST;
	one += (two & 63) + (two >> STEP & 255) * (1 << STEP);
	return one | (uint64_t)step << FIRST | (uint64_t)(uint16_t)value_of(two, bits) << SECOND;
}

/* Codes in order of length, each one greater than the one before: T.81, C.2. */
bool mu_jpeg_table_make(struct mu_jpeg_table *t, enum mu_jpeg_use use,
			const struct mu_jpeg_codes *codes)
{
	uint32_t code = 0;
	size_t n = 0;

	if (t->valid && memcmp(t->bits, codes->bits, sizeof t->bits) == 0 &&
	    memcmp(t->symbols, codes->symbols, sizeof t->symbols) == 0)
		return true;
	t->valid = false;
	t->use = use;
	memcpy(t->bits, codes->bits, sizeof t->bits);
	memcpy(t->symbols, codes->symbols, sizeof t->symbols);
	memset(t->entries, 0, sizeof t->entries);
	for (unsigned l = 1; l <= 16; l++) {
		t->offset[l] = (int32_t)n - (int32_t)code;
		if (n + t->bits[l] > sizeof t->symbols)
			return false;
		for (int i = 0; i < t->bits[l]; i++, n++, code++) {
			uint32_t entry = make_entry(use, t->symbols[n], l);
			size_t first, end;

			if (use == MU_JPEG_DC && t->symbols[n] > 15)
				return false;
			if (l > MU_JPEG_LOOKUP)
				continue;
			first = (size_t)code << (MU_JPEG_LOOKUP - l);
			end = (size_t)(code + 1) << (MU_JPEG_LOOKUP - l);
			for (size_t k = first; k < end && end <= 1 << MU_JPEG_LOOKUP; k++)
				t->entries[k] = entry;
		}
		if (code >= 1u << l) /* a code of ones only is invalid */
			return false;
		t->limit[l] = code << (16 - l);
		code <<= 1;
	}
	for (uint64_t i = 0; use == MU_JPEG_AC && i < 1 << MU_JPEG_PAIR; i++)
		t->pairs[i] = make_pair(t, i);
	t->valid = true;
	return true;
}

/* For a code longer than the table's index, or an invalid one. */
static uint32_t find_long(const struct mu_jpeg_table *t, uint64_t bits)
{
	uint32_t first = (uint32_t)(bits >> 48);

	for (unsigned l = MU_JPEG_LOOKUP + 1; l <= 16; l++) {
		int32_t code = (int32_t)(first >> (16 - l));

		if (first < t->limit[l])
			return make_entry(t->use, t->symbols[code + t->offset[l]], l);
	}
	return BAD << STEP;
}

/* ---- bits ---- */

bool mu_jpeg_bits_start(struct mu_jpeg_bits *b, const uint8_t *from, size_t n, uint8_t *buffer,
			size_t *used)
{
	const uint8_t *at = from, *end = from + n;
	uint8_t *to = buffer;
	bool marker = false;

	while (at < end && !marker) {
		const uint8_t *ff = memchr(at, 0xff, (size_t)(end - at));
		size_t run = (size_t)((ff ? ff : end) - at);

		memcpy(to, at, run);
		to += run;
		at += run;
		if (!ff || end - at < 2 || at[1] == 0xff) /* fill bytes, handled by libjpeg */
			break;
		marker = at[1] != 0;
		if (!marker) {
			*to++ = 0xff;
			at += 2;
		}
	}
	memset(to, 0, MU_JPEG_SLACK);
	*b = (struct mu_jpeg_bits){
		.start = buffer, .next = buffer, .total = 8 * (size_t)(to - buffer)};
	*used = (size_t)(at - from);
	return marker;
}

ptrdiff_t mu_jpeg_bits_left(const struct mu_jpeg_bits *b)
{
	return (ptrdiff_t)(b->total + b->n) - 8 * (b->next - b->start);
}

/* Load whole bytes while there is space. Bits of a partly loaded byte are loaded again. */
MU_INLINE void fill(struct mu_jpeg_bits *b)
{
	uint64_t more;

	memcpy(&more, b->next, sizeof more);
	more = __builtin_bswap64(more);
	b->bits |= more >> b->n;
	b->next += (63 - b->n) >> 3;
	b->n |= REFILLED;
}

MU_INLINE void drop(struct mu_jpeg_bits *b, uint64_t entry)
{
	b->bits <<= entry & 63;
	b->n -= entry & 63;
}

MU_INLINE uint32_t find(const struct mu_jpeg_table *t, uint64_t bits)
{
	uint32_t entry = t->entries[bits >> (64 - MU_JPEG_LOOKUP)];

	return entry ? entry : find_long(t, bits);
}

/* ---- blocks ---- */

/* The mean of a block is coded as the difference from the block before. */
MU_INLINE bool read_mean(struct mu_jpeg_bits *b, struct mu_jpeg_coding *coding)
{
	uint32_t entry = find(coding->dc, b->bits);

	coding->mean += value_of(entry, b->bits);
	drop(b, entry);
	return (entry >> STEP & 255) != BAD && coding->mean == (int16_t)coding->mean;
}

/* The next coefficient; k becomes its place. k is BAD to END - 1 if there is no such place, END or
 * more at the end of the block. out NULL: not stored. */
MU_INLINE unsigned read_one(struct mu_jpeg_bits *b, const struct mu_jpeg_table *ac, int16_t *out,
			    unsigned k, bool wanted)
{
	uint32_t entry = find(ac, b->bits);

	k += entry >> STEP & 255;
	if (wanted && k < MU_JPEG_BLOCK)
		out[places[k]] = (int16_t)value_of(entry, b->bits);
	drop(b, entry);
	return k;
}

/*
 * One or two symbols without a branch: without a second one, its place is that of the first, which
 * is written last. Near the last coefficient of a block, which no end of the block follows, read
 * symbols one by one.
 */
MU_INLINE unsigned read_two(struct mu_jpeg_bits *b, const struct mu_jpeg_table *ac, int16_t *out,
			    unsigned k, bool wanted)
{
	uint64_t entry = ac->pairs[b->bits >> (64 - MU_JPEG_PAIR)];
	unsigned first = k + (entry >> FIRST & 255), second = k + (entry >> STEP & 255);

	if (entry == 0 || second % END >= MU_JPEG_BLOCK - 1)
		return read_one(b, ac, out, k, wanted);
	if (wanted) {
		out[places[second]] = (int16_t)(entry >> SECOND);
		out[places[first]] = (int16_t)value_of(entry, b->bits);
	}
	drop(b, entry);
	return second;
}

/* Place of the last coefficient; negative: unreadable. */
MU_INLINE int read_block(struct mu_jpeg_bits *from, struct mu_jpeg_coding *coding, int16_t *out,
			 bool wanted)
{
	struct mu_jpeg_bits b = *from;
	unsigned k = 0;
	bool good;

	fill(&b);
	good = read_mean(&b, coding);
	if (wanted)
		out[0] = (int16_t)coding->mean;
	while (k < MU_JPEG_BLOCK - 1) {
		fill(&b); /* enough bits for two symbols */
		k = read_two(&b, coding->ac, out, k, wanted);
		if (k < MU_JPEG_BLOCK - 1)
			k = read_two(&b, coding->ac, out, k, wanted);
	}
	*from = b;
	return good && (k < MU_JPEG_BLOCK || k >= END) ? (int)(k % END) : -1;
}

MU_SHIFT static int read_wanted(struct mu_jpeg_bits *b, struct mu_jpeg_coding *coding, int16_t *out)
{
	return read_block(b, coding, out, true);
}

MU_SHIFT static int read_unwanted(struct mu_jpeg_bits *b, struct mu_jpeg_coding *coding)
{
	return read_block(b, coding, NULL, false);
}

bool mu_jpeg_read_block(struct mu_jpeg_bits *b, struct mu_jpeg_coding *coding, int16_t *out,
			int *last)
{
	int k = read_wanted(b, coding, out);

	*last = k > *last ? k : *last;
	return k >= 0;
}

bool mu_jpeg_skip_block(struct mu_jpeg_bits *b, struct mu_jpeg_coding *coding)
{
	return read_unwanted(b, coding) >= 0;
}
