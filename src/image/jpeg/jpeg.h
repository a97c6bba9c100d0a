/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Muster's own decoder for common JPEG files: baseline, Huffman coded (ITU-T T.81, process 1), grey
 * or YCbCr, chroma of full or half size, all components in one scan, with or without restart
 * intervals. libjpeg decodes everything else, and everything in doubt: jpeg/decode.c parses the
 * header with libjpeg and passes the rest to mu_jpeg_decode, which either decodes the picture or
 * declines. In that case libjpeg decodes it from the start and reports errors.
 *
 * The pixels are identical to libjpeg-turbo's with its defaults (the "slow" integer transform,
 * smooth upsampling of chroma, at scales of 1, 1/2, 1/4, 1/8). It is faster because of:
 *
 *	jpeg/bits.c	stuffed bytes are removed before decoding, so that 64 bits are loaded at
 *			once without checks of single bytes; one table lookup per symbol; of
 *			blocks beside and above the window only the mean value is decoded
 *	inverse.c	the inverse transform of 16 blocks at once, one block per vector lane
 *	jpeg/colour.c	upsampling of chroma, and colours, as loops over a row
 *	jpeg/window.c	which blocks a window needs; rows of blocks become rows of pixels
 */
#ifndef INPUT_JPEG_H
#define INPUT_JPEG_H

#include <muster/image.h>

enum {
	MU_JPEG_COMPONENTS = 3,
	MU_JPEG_BLOCK = 64, /* coefficients */
	MU_JPEG_LANES = 16, /* blocks that are transformed together */
	/* Plus a row of lanes for discarded coefficients. */
	MU_JPEG_GROUP = (MU_JPEG_BLOCK + 1) * MU_JPEG_LANES,
	MU_JPEG_TABLES = 4,
	/* Bytes after rows of samples that may be read and written: loops process whole vectors. */
	MU_JPEG_BEYOND = 64,
};

/* ---- the head of a file ---- */

/* A Huffman table as in the file: bits[l] codes of l bits, their symbols in order. */
struct mu_jpeg_codes {
	const uint8_t *bits;    /* (17), of which [0] is unused */
	const uint8_t *symbols; /* (256) */
};

struct mu_jpeg_frame {
	size_t h, w;
	int n;            /* components, 1 or 3 */
	int across, down; /* luma samples per chroma sample, 1 or 2; 1 for n = 1 */
	const uint16_t *quant[MU_JPEG_COMPONENTS];          /* (64), row by row, each below 256 */
	int dc[MU_JPEG_COMPONENTS], ac[MU_JPEG_COMPONENTS]; /* table numbers */
	struct mu_jpeg_codes dc_codes[MU_JPEG_TABLES], ac_codes[MU_JPEG_TABLES]; /* NULL: none */
	size_t restart;      /* MCUs of a restart interval, 0: none */
	const uint8_t *data; /* data after the header of the scan */
	size_t nbytes;
};

/* ---- a decoder ---- */

/* Tables and buffers of one thread, reused for every picture. */
struct mu_jpeg;

enum mu_status mu_jpeg_new(struct mu_jpeg **out);
void mu_jpeg_free(struct mu_jpeg *jpeg);
/* Decode exactly the pixels of the window. *done false: libjpeg must decode this picture; image is
 * undefined. Errors: no memory. */
enum mu_status mu_jpeg_decode(struct mu_jpeg *jpeg, const struct mu_jpeg_frame *frame,
			      const struct mu_image_window *window, struct mu_image *image,
			      bool *done);

/* ---- entropy coding: jpeg/bits.c ---- */

enum {
	MU_JPEG_LOOKUP = 10, /* codes of up to this many bits are found in one step */
	MU_JPEG_PAIR = 10,   /* bits in which two symbols are looked up at once */
	/* Zeros after the data of a segment: more than the largest code of one MCU. */
	MU_JPEG_SLACK = 2048,
};

enum mu_jpeg_use { MU_JPEG_DC, MU_JPEG_AC };

/* For decoding. An entry describes a symbol completely: see jpeg/bits.c. */
struct mu_jpeg_table {
	bool valid;
	enum mu_jpeg_use use;
	uint8_t bits[17], symbols[256]; /* the table's source */
	uint32_t entries[1 << MU_JPEG_LOOKUP];
	uint64_t pairs[1 << MU_JPEG_PAIR]; /* AC only */
	/* Longer codes: the first 16 bits that no code of l bits begins with, and the offset from a
	 * code to its symbol. */
	uint32_t limit[17];
	int32_t offset[17];
};

/* False if the table is invalid. No effect if it was made of the same codes. */
bool mu_jpeg_table_make(struct mu_jpeg_table *table, enum mu_jpeg_use use,
			const struct mu_jpeg_codes *codes);

/* Bytes from one marker to the next, without stuffing, and the read position. */
struct mu_jpeg_bits {
	const uint8_t *start, *next;
	uint64_t bits; /* the next bits, from the highest one */
	size_t n;      /* number of them */
	size_t total;  /* bits of the segment */
};

/* Start at the segment at `from`, of at most n bytes; buffer has n + MU_JPEG_SLACK. *used: bytes up
 * to the 0xff of the marker after it. False if no marker ends it. */
bool mu_jpeg_bits_start(struct mu_jpeg_bits *bits, const uint8_t *from, size_t n, uint8_t *buffer,
			size_t *used);
/* Negative if more bits were read than exist. */
ptrdiff_t mu_jpeg_bits_left(const struct mu_jpeg_bits *bits);

struct mu_jpeg_coding {
	const struct mu_jpeg_table *dc, *ac;
	int32_t mean; /* coefficient 0 of the last block */
};

/*
 * Decode one block: out[lane + k MU_JPEG_LANES], zero before, receives coefficient k in row order.
 * *last becomes at least the place, in file order, of the last coefficient that is not zero. One
 * place of the lane after all coefficients is also written. False: invalid or unusual data, or
 * values too large.
 */
bool mu_jpeg_read_block(struct mu_jpeg_bits *bits, struct mu_jpeg_coding *coding, int16_t *out,
			int *last);
/* Decode only the block's mean. */
bool mu_jpeg_skip_block(struct mu_jpeg_bits *bits, struct mu_jpeg_coding *coding);

/* ---- inverse transform: inverse.c ---- */

struct mu_jpeg_group {
	const int16_t *coefficients; /* (64, MU_JPEG_LANES) */
	const uint16_t *quant;       /* (64) */
	int last;                    /* as above, for all lanes */
	/* Destination of the samples: NULL: side by side from `out` on; else the place of each
	 * block, NULL for lanes without a block. */
	uint8_t *const *places;
	uint8_t *out; /* side rows of MU_JPEG_LANES side samples */
	size_t stride;
};

/*
 * side x side samples of each block, side 1, 2, 4, 8. False if values are so large that libjpeg's
 * arithmetic of 16 bits would overflow.
 */
bool mu_jpeg_inverse(const struct mu_jpeg_group *group, int side);

/* ---- colours: jpeg/colour.c ---- */

/* Chroma from one row to a row with twice the columns, and twice the rows. */
struct mu_jpeg_widening {
	const uint8_t *near, *far; /* the row, and the row on the pixel's other side */
	size_t w;                  /* samples of a row */
	size_t from, to;           /* the range that is needed */
	bool across, down;         /* is it half as wide, half as high? */
	bool smooth;               /* else repeat samples */
	bool below;                /* far is the row below */
};

/* out[i] is the sample of pixel i for pixels from..to, or 2 from..2 to. near, far and out must have
 * MU_JPEG_BEYOND more bytes after the row, and near and far one byte before it. */
void mu_jpeg_widen(const struct mu_jpeg_widening *widening, uint8_t *out);
/* The same holds for y, cb and cr. */
void mu_jpeg_colour(uint32_t *pixels, const uint8_t *y, const uint8_t *cb, const uint8_t *cr,
		    size_t n);
void mu_jpeg_grey(uint32_t *pixels, const uint8_t *y, size_t n);

#endif
