/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the data of a scan to the pixels of a window. MCUs are read in file order, row by row. Those
 * that the window needs are transformed 16 at a time, into planes that hold one more row of MCUs,
 * because smooth chroma of a row needs the row above and the row below. Of other MCUs only what
 * later ones depend on is read, and nothing below the window.
 *
 * A chunk is the MCUs that are transformed together: up to 16 MCUs of a row, whose blocks are side
 * by side in the planes; or, for a window that is at most half as wide, several rows of MCUs, whose
 * blocks fill the lanes without gaps and have one place in the planes each.
 */
#include <string.h>

#include "jpeg.h"

enum {
	SIDE = 8,
	CHUNK = MU_JPEG_LANES, /* MCUs that are transformed together */
	GROUPS = 6,            /* blocks of an MCU, so groups of a chunk */
	EMPTY = -1,            /* `last` of a group without blocks */
	SPREAD = 2,            /* neighbouring pixels that smooth chroma reads, at most */
};

struct mu_jpeg {
	struct mu_jpeg_table dc[MU_JPEG_TABLES], ac[MU_JPEG_TABLES];
	int16_t coefficients[GROUPS][MU_JPEG_GROUP]; /* zero, except those of the current chunk */
	int last[GROUPS];
	uint8_t *places[GROUPS][MU_JPEG_LANES]; /* of blocks that are not side by side */
	uint8_t *bytes; /* of a segment, then planes and rows */
	size_t capacity;
};

struct component {
	int across, down; /* blocks of an MCU */
	/* Block number n of a chunk is lane n % 16 of group n / 16: number of the first block, and
	 * distance to the next row of an MCU and to the next MCU. */
	int first, next_row, next_mcu;
	int side; /* samples of a block */
	bool wide, tall;  /* two pixels per sample in this direction */
	bool smooth;
	size_t w, h;    /* samples of the picture */
	uint8_t *plane; /* of w->kept rows of MCUs, in a ring */
	size_t stride;
	uint8_t *row; /* of the picture's width, if wide or tall */
	struct mu_jpeg_coding coding;
};

struct work {
	struct mu_jpeg *jpeg;
	const struct mu_jpeg_frame *frame;
	const struct mu_image_window *window;
	struct mu_image *image;
	struct component components[MU_JPEG_COMPONENTS];
	size_t mcu_h, mcu_w; /* pixels of the reduced picture */
	size_t n_across;     /* MCUs of the picture */
	/* MCUs to transform; only rows before bottom are read. */
	size_t top, bottom, left, right;
	size_t rows; /* of MCUs in a chunk */
	size_t kept; /* rows of MCUs in the planes */
	size_t late; /* rows of pixels that need the next row of MCUs */
	struct mu_jpeg_bits bits;
	uint8_t *segment;          /* without stuffing */
	const uint8_t *from, *end; /* data after the current segment */
	size_t until_restart;
	int restarts;
};

static size_t ceil_div(size_t a, size_t b)
{
	return (a + b - 1) / b;
}

enum mu_status mu_jpeg_new(struct mu_jpeg **out)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(*out, 1, "JPEG decoder"));
	for (int g = 0; g < GROUPS; g++)
		(*out)->last[g] = EMPTY;
out:
	return st;
}

void mu_jpeg_free(struct mu_jpeg *jpeg)
{
	if (jpeg)
		mu_free(jpeg->bytes);
	mu_free(jpeg);
}

/* ---- what is where ---- */

/* libjpeg's choice for chroma: a larger transform instead of upsampling, where both directions
 * allow it. */
static void size_component(struct work *w, int i, int side)
{
	const struct mu_jpeg_frame *f = w->frame;
	struct component *c = &w->components[i];

	c->across = i == 0 ? f->across : 1;
	c->down = i == 0 ? f->down : 1;
	c->side = side;
	while (c->side < SIDE && f->across * side % (c->across * c->side * 2) == 0 &&
	       f->down * side % (c->down * c->side * 2) == 0)
		c->side *= 2;
	c->wide = f->across * side > c->across * c->side;
	c->tall = f->down * side > c->down * c->side;
	c->w = ceil_div(f->w * (size_t)(c->across * c->side), (size_t)(f->across * SIDE));
	c->h = ceil_div(f->h * (size_t)(c->down * c->side), (size_t)(f->down * SIDE));
	c->smooth = (c->wide || c->tall) && side > 1 && (!c->wide || c->w > 2);
}

/*
 * Convert pixels [first, first + n) of `all`, with `spread` more at each side, to units of `unit`.
 */
static void find_units(size_t first, size_t n, size_t spread, size_t all, size_t unit,
		       size_t range[2])
{
	size_t end = first + n + spread;

	range[0] = (first > spread ? first - spread : 0) / unit;
	range[1] = ceil_div(end < all ? end : all, unit);
}

/* Both chroma components share a group if there is space and they have equal parameters. */
static void number_blocks(struct work *w)
{
	const struct mu_jpeg_frame *f = w->frame;
	int mcus = (int)(w->rows * (w->right - w->left)), first = 0;

	for (int i = 0; i < f->n; i++) {
		struct component *c = &w->components[i];
		bool side_by_side = w->rows == 1;

		c->next_row = side_by_side ? c->across * CHUNK : c->across;
		c->next_mcu = side_by_side ? c->across : c->across * c->down;
		c->first = first;
		first += c->across * c->down * MU_JPEG_LANES;
		if (i == 2 && !side_by_side && 2 * mcus <= MU_JPEG_LANES &&
		    memcmp(f->quant[2], f->quant[1], MU_JPEG_BLOCK * sizeof *f->quant[2]) == 0)
			c->first = w->components[1].first + mcus;
	}
}

static void find_mcus(struct work *w)
{
	const struct mu_jpeg_frame *f = w->frame;
	const struct mu_image_window *window = w->window;
	size_t side = SIDE / window->shrink, range[2], spread[2] = {0, 0};

	for (int i = 0; i < f->n; i++) {
		size_component(w, i, (int)side);
		if (w->components[i].smooth && w->components[i].tall)
			spread[0] = SPREAD;
		if (w->components[i].smooth && w->components[i].wide)
			spread[1] = SPREAD;
	}
	w->mcu_h = (size_t)f->down * side;
	w->mcu_w = (size_t)f->across * side;
	w->n_across = ceil_div(f->w, (size_t)f->across * SIDE);
	w->late = spread[0];
	find_units(window->top, window->h, spread[0], ceil_div(f->h, window->shrink), w->mcu_h,
		   range);
	w->top = range[0];
	w->bottom = range[1];
	find_units(window->left, window->w, spread[1], ceil_div(f->w, window->shrink), w->mcu_w,
		   range);
	w->left = range[0];
	w->right = range[1];
	w->rows = CHUNK / (w->right - w->left);
	w->rows = w->rows > 1 ? w->rows : 1;
	w->kept = w->rows + 1;
	number_blocks(w);
}

/* All buffers are one block: the planes, the rows, the segment. */
static enum mu_status allocate(struct work *w)
{
	enum mu_status st = MU_OK;
	struct mu_jpeg *j = w->jpeg;
	size_t mcus = w->rows > 1 ? w->right - w->left
				  : ceil_div(w->right - w->left, CHUNK) * CHUNK;
	size_t width = mcus * w->mcu_w + MU_JPEG_BEYOND, needed = 0, at;

	for (int i = 0; i < w->frame->n; i++) {
		struct component *c = &w->components[i];

		c->stride = mcus * (size_t)(c->across * c->side);
		needed += w->kept * c->stride * (size_t)(c->down * c->side) + width;
	}
	needed += MU_JPEG_BEYOND + w->frame->nbytes + MU_JPEG_SLACK;
	if (needed > j->capacity) {
		mu_free(j->bytes);
		j->capacity = 0;
		MU_TRY(MU_ALLOC(j->bytes, needed, "samples of a JPEG image"));
		j->capacity = needed;
	}
	at = MU_JPEG_BEYOND;
	for (int i = 0; i < w->frame->n; i++) {
		struct component *c = &w->components[i];

		c->plane = j->bytes + at;
		at += w->kept * c->stride * (size_t)(c->down * c->side);
		c->row = j->bytes + at;
		at += width;
	}
	w->segment = j->bytes + at;
out:
	return st;
}

/* ---- reading ---- */

static bool make_tables(struct work *w)
{
	const struct mu_jpeg_frame *f = w->frame;
	struct mu_jpeg *j = w->jpeg;

	for (int i = 0; i < f->n; i++) {
		const struct mu_jpeg_codes *dc = &f->dc_codes[f->dc[i]],
					   *ac = &f->ac_codes[f->ac[i]];

		if (!mu_jpeg_table_make(&j->dc[f->dc[i]], MU_JPEG_DC, dc) ||
		    !mu_jpeg_table_make(&j->ac[f->ac[i]], MU_JPEG_AC, ac))
			return false;
		w->components[i].coding.dc = &j->dc[f->dc[i]];
		w->components[i].coding.ac = &j->ac[f->ac[i]];
	}
	return true;
}

static bool start_segment(struct work *w)
{
	size_t used;

	if (!mu_jpeg_bits_start(&w->bits, w->from, (size_t)(w->end - w->from), w->segment, &used))
		return false;
	w->from += used;
	w->until_restart = w->frame->restart;
	for (int i = 0; i < w->frame->n; i++)
		w->components[i].coding.mean = 0;
	return true;
}

/* The segment must be read completely, and the expected one of eight markers must follow. */
static bool restart(struct work *w)
{
	if (mu_jpeg_bits_left(&w->bits) >= 8 || w->from[1] != 0xd0 + w->restarts)
		return false;
	w->restarts = (w->restarts + 1) % 8;
	w->from += 2;
	return start_segment(w);
}

/* Row y of the blocks of a component's MCU number `lane` of a chunk; out: their place. */
static bool read_blocks(struct work *w, struct component *c, int y, int lane, uint8_t *out)
{
	struct mu_jpeg *j = w->jpeg;
	int block = c->first + y * c->next_row + lane * c->next_mcu;

	for (int x = 0; x < c->across; x++, block++, out += c->side) {
		int group = block / MU_JPEG_LANES, place = block % MU_JPEG_LANES;

		j->places[group][place] = out;
		if (!mu_jpeg_read_block(&w->bits, &c->coding, j->coefficients[group] + place,
					&j->last[group]))
			return false;
	}
	return true;
}

/* Place of block (row, column) of a component, counted in rows and columns of MCUs. */
static uint8_t *place_of(const struct work *w, const struct component *c, size_t row, size_t x)
{
	size_t side = (size_t)c->side, y = row % w->kept * (size_t)c->down * side;

	return c->plane + y * c->stride + (x - w->left) * (size_t)c->across * side;
}

/* MCU number `lane` of a chunk. */
static bool read_mcu(struct work *w, size_t row, size_t x, int lane)
{
	for (int i = 0; i < w->frame->n; i++) {
		struct component *c = &w->components[i];
		uint8_t *out = place_of(w, c, row, x);

		for (int y = 0; y < c->down; y++, out += c->stride * (size_t)c->side) {
			if (!read_blocks(w, c, y, lane, out))
				return false;
		}
	}
	return true;
}

static bool skip_mcu(struct work *w)
{
	for (int i = 0; i < w->frame->n; i++) {
		struct component *c = &w->components[i];

		for (int k = 0; k < c->across * c->down; k++) {
			if (!mu_jpeg_skip_block(&w->bits, &c->coding))
				return false;
		}
	}
	return true;
}

static void clear_group(struct mu_jpeg *j, int group)
{
	memset(j->coefficients[group], 0, sizeof j->coefficients[group]);
	memset(j->places[group], 0, sizeof j->places[group]);
	j->last[group] = EMPTY;
}

static bool transform_chunk(struct work *w)
{
	struct mu_jpeg *j = w->jpeg;
	bool good = true;

	for (int i = 0; i < w->frame->n; i++) {
		const struct component *c = &w->components[i];

		for (int k = 0; k < c->across * c->down; k++) {
			int n = c->first / MU_JPEG_LANES + k;
			const struct mu_jpeg_group group = {
				.coefficients = j->coefficients[n],
				.quant = w->frame->quant[i],
				.last = j->last[n],
				.places = w->rows > 1 ? j->places[n] : NULL,
				.out = j->places[n][0],
				.stride = c->stride,
			};

			if (group.last == EMPTY)
				continue;
			good = mu_jpeg_inverse(&group, c->side) && good;
			clear_group(j, n);
		}
	}
	return good;
}

static bool read_row(struct work *w, size_t row)
{
	bool any = row >= w->top;
	/* MCUs of the chunk in the rows above this one. */
	size_t before = any ? (row - w->top) % w->rows * (w->right - w->left) : 0;

	for (size_t x = 0; x < w->n_across; x++) {
		bool wanted = any && x >= w->left && x < w->right;
		size_t lane = wanted ? (before + x - w->left) % CHUNK : 0;

		if (w->frame->restart > 0 && w->until_restart == 0 && !restart(w))
			return false;
		w->until_restart--;
		if (!(wanted ? read_mcu(w, row, x, (int)lane) : skip_mcu(w)) ||
		    mu_jpeg_bits_left(&w->bits) < 0)
			return false;
		if (wanted && w->rows == 1 && (lane == CHUNK - 1 || x == w->right - 1) &&
		    !transform_chunk(w))
			return false;
	}
	return true;
}

/* ---- pixels ---- */

static const uint8_t *plane_row(const struct work *w, const struct component *c, size_t y)
{
	return c->plane + y % (w->kept * (size_t)(c->down * c->side)) * c->stride;
}

/* Samples of the pixels of row y, from the first pixel of MCU column `left`. */
static const uint8_t *find_row(const struct work *w, const struct component *c, size_t y)
{
	size_t sample = c->tall ? y / 2 : y, other = sample;
	size_t first = w->left * (size_t)(c->across * c->side);
	/* Range of the window, relative to the first pixel. */
	size_t from = w->window->left - w->left * w->mcu_w, to = from + w->window->w;

	if (!c->wide && !c->tall)
		return plane_row(w, c, y);
	if (c->tall && y % 2 == 1 && sample + 1 < c->h)
		other = sample + 1;
	else if (c->tall && y % 2 == 0 && sample > 0)
		other = sample - 1;
	mu_jpeg_widen(
		&(struct mu_jpeg_widening){
			.near = plane_row(w, c, sample),
			.far = plane_row(w, c, other),
			.w = c->w - first,
			.from = c->wide ? from / 2 : from,
			.to = c->wide ? (to + 1) / 2 : to,
			.across = c->wide,
			.down = c->tall,
			.smooth = c->smooth,
			.below = y % 2 == 1,
		},
		c->row);
	return c->row;
}

/* Rows of pixels [from, to), within the window. */
static void put_rows(struct work *w, size_t from, size_t to)
{
	const struct mu_image_window *window = w->window;
	size_t x = window->left - w->left * w->mcu_w;

	from = from > window->top ? from : window->top;
	to = to < window->top + window->h ? to : window->top + window->h;
	for (size_t y = from; y < to; y++) {
		uint32_t *pixels = w->image->pixels + (y - window->top) * window->w;
		const uint8_t *rows[MU_JPEG_COMPONENTS];

		for (int i = 0; i < w->frame->n; i++)
			rows[i] = find_row(w, &w->components[i], y) + x;
		if (w->frame->n == 1)
			mu_jpeg_grey(pixels, rows[0], window->w);
		else
			mu_jpeg_colour(pixels, rows[0], rows[1], rows[2], window->w);
	}
}

static bool read_window(struct work *w)
{
	if (!make_tables(w) || !start_segment(w))
		return false;
	for (size_t row = 0; row < w->bottom; row++) {
		size_t first, end = (row + 1) * w->mcu_h;

		if (!read_row(w, row))
			return false;
		if (row < w->top ||
		    (row + 1 < w->bottom && (row - w->top) % w->rows != w->rows - 1))
			continue;
		if (w->rows > 1 && !transform_chunk(w))
			return false;
		first = row - (row - w->top) % w->rows;
		put_rows(w, first * w->mcu_h - (first > w->top ? w->late : 0),
			 end - (row + 1 < w->bottom ? w->late : 0));
	}
	return true;
}

enum mu_status mu_jpeg_decode(struct mu_jpeg *jpeg, const struct mu_jpeg_frame *frame,
			      const struct mu_image_window *window, struct mu_image *image,
			      bool *done)
{
	enum mu_status st = MU_OK;
	struct work w = {.jpeg = jpeg,
			 .frame = frame,
			 .window = window,
			 .image = image,
			 .from = frame->data,
			 .end = frame->data + frame->nbytes};

	find_mcus(&w);
	MU_TRY(allocate(&w));
	MU_TRY(mu_image_resize(image, window->h, window->w));
	image->top = window->top;
	image->left = window->left;
	image->shrink = window->shrink;
	*done = read_window(&w);
	for (int g = 0; g < GROUPS && !*done; g++)
		clear_group(jpeg, g);
out:
	return st;
}
