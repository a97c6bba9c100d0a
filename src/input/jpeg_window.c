/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the data of a scan to the pixels of a window. MCUs are read in the order of the file, row
 * by row; those that the window needs are transformed 16 at a time, into planes that hold two rows
 * of MCUs, for smooth chroma of a row needs the row above and the row below. Of the others only
 * what later ones need is read, and below the window nothing.
 */
#include <string.h>

#include "jpeg.h"

enum {
	SIDE = 8,
	CHUNK = MU_JPEG_LANES, /* MCUs that are transformed together */
	GROUPS = 6,            /* blocks of an MCU, so groups of a chunk */
	KEPT = 2,              /* rows of MCUs in the planes */
	SPREAD = 2,            /* pixels beside a pixel that smooth chroma looks at, at most */
};

struct mu_jpeg {
	struct mu_jpeg_table dc[MU_JPEG_TABLES], ac[MU_JPEG_TABLES];
	int16_t coefficients[GROUPS][MU_JPEG_GROUP]; /* zero but for those of the present chunk */
	int last[GROUPS];
	uint8_t *bytes; /* of a segment, then planes and rows */
	size_t capacity;
};

struct component {
	int across, down; /* blocks of an MCU */
	int group;        /* its first */
	int side;         /* samples of a block */
	bool wide, tall;  /* two pixels per sample in this direction */
	bool smooth;
	size_t w, h;    /* samples of the picture */
	uint8_t *plane; /* those of KEPT rows of MCUs, by turns */
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
	/* MCUs that are transformed; only rows before bottom are read. */
	size_t top, bottom, left, right;
	size_t late; /* rows of pixels that wait for the next row of MCUs */
	struct mu_jpeg_bits bits;
	uint8_t *segment;          /* without stuffing */
	const uint8_t *from, *end; /* data behind the present segment */
	size_t until_restart;
	int restarts;
	uint16_t *scratch;
};

static size_t ceil_div(size_t a, size_t b)
{
	return (a + b - 1) / b;
}

enum mu_status mu_jpeg_new(struct mu_jpeg **out)
{
	return MU_ALLOC(*out, 1, "JPEG decoder");
}

void mu_jpeg_free(struct mu_jpeg *jpeg)
{
	if (jpeg)
		mu_free(jpeg->bytes);
	mu_free(jpeg);
}

/* ---- what is where ---- */

/*
 * libjpeg's choice for chroma: rather more samples by a larger transform than by upsampling, where
 * both directions allow it.
 */
static void size_component(struct work *w, int i, int side)
{
	const struct mu_jpeg_frame *f = w->frame;
	struct component *c = &w->components[i];

	c->across = i == 0 ? f->across : 1;
	c->down = i == 0 ? f->down : 1;
	c->group = i == 0 ? 0 : f->across * f->down + i - 1;
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

/* From pixels [first, first + n) of `all` and `spread` more at each side to units of `unit`. */
static void find_units(size_t first, size_t n, size_t spread, size_t all, size_t unit,
		       size_t range[2])
{
	size_t end = first + n + spread;

	range[0] = (first > spread ? first - spread : 0) / unit;
	range[1] = ceil_div(end < all ? end : all, unit);
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
}

/* All buffers are one: the planes, the rows, the scratch row, the segment. */
static enum mu_status take_memory(struct work *w)
{
	enum mu_status st = MU_OK;
	struct mu_jpeg *j = w->jpeg;
	size_t mcus = ceil_div(w->right - w->left, CHUNK) * CHUNK, at = 0;
	size_t width = mcus * w->mcu_w, needed = 0;

	for (int i = 0; i < w->frame->n; i++) {
		struct component *c = &w->components[i];

		c->stride = mcus * (size_t)(c->across * c->side);
		needed += KEPT * c->stride * (size_t)(c->down * c->side) + width;
	}
	needed += (width + MU_ALIGN) * sizeof *w->scratch + w->frame->nbytes + MU_JPEG_SLACK;
	if (needed > j->capacity) {
		mu_free(j->bytes);
		j->capacity = 0;
		MU_TRY(MU_ALLOC(j->bytes, needed, "samples of a JPEG image"));
		j->capacity = needed;
	}
	w->scratch = (uint16_t *)(void *)j->bytes;
	at = (width + MU_ALIGN) * sizeof *w->scratch;
	for (int i = 0; i < w->frame->n; i++) {
		struct component *c = &w->components[i];

		c->plane = j->bytes + at;
		at += KEPT * c->stride * (size_t)(c->down * c->side);
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

/* The segment must be read to its last byte, and the right one of eight markers follow. */
static bool restart(struct work *w)
{
	if (mu_jpeg_bits_left(&w->bits) >= 8 || w->from[1] != 0xd0 + w->restarts)
		return false;
	w->restarts = (w->restarts + 1) % 8;
	w->from += 2;
	return start_segment(w);
}

/* One row of a component's blocks. */
static bool read_blocks(struct work *w, struct component *c, int y, int lane)
{
	struct mu_jpeg *j = w->jpeg;

	for (int x = 0; x < c->across; x++) {
		int block = lane * c->across + x;
		int group = c->group + y * c->across + block / MU_JPEG_LANES;

		if (!mu_jpeg_read_block(&w->bits, &c->coding,
					j->coefficients[group] + block % MU_JPEG_LANES,
					&j->last[group]))
			return false;
	}
	return true;
}

/* MCU number `lane` of a chunk. */
static bool read_mcu(struct work *w, int lane)
{
	for (int i = 0; i < w->frame->n; i++) {
		struct component *c = &w->components[i];

		for (int y = 0; y < c->down; y++) {
			if (!read_blocks(w, c, y, lane))
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

/* The group's blocks stand side by side, beginning with MCU `first` of the row. */
static bool transform_group(struct work *w, const struct component *c, int k, size_t row,
			    size_t first)
{
	struct mu_jpeg *j = w->jpeg;
	size_t side = (size_t)c->side, down = (size_t)c->down, across = (size_t)c->across;
	size_t y = (row % KEPT * down + (size_t)k / across) * side;
	size_t x = ((first - w->left) * across + (size_t)k % across * MU_JPEG_LANES) * side;
	const struct mu_jpeg_group group = {
		.coefficients = j->coefficients[c->group + k],
		.quant = w->frame->quant[c - w->components],
		.last = j->last[c->group + k],
		.out = c->plane + y * c->stride + x,
		.stride = c->stride,
	};

	return mu_jpeg_inverse(&group, c->side);
}

static void clear_groups(struct mu_jpeg *j, int n)
{
	memset(j->coefficients, 0, (size_t)n * sizeof *j->coefficients);
	memset(j->last, 0, sizeof j->last);
}

static bool transform_chunk(struct work *w, size_t row, size_t first)
{
	bool good = true;
	int groups = 0;

	for (int i = 0; i < w->frame->n; i++) {
		const struct component *c = &w->components[i];

		for (int k = 0; k < c->across * c->down; k++, groups++)
			good = transform_group(w, c, k, row, first) && good;
	}
	clear_groups(w->jpeg, groups);
	return good;
}

static bool read_row(struct work *w, size_t row)
{
	for (size_t x = 0; x < w->n_across; x++) {
		bool wanted = row >= w->top && x >= w->left && x < w->right;
		size_t lane = wanted ? (x - w->left) % CHUNK : 0;

		if (w->frame->restart > 0 && w->until_restart == 0 && !restart(w))
			return false;
		w->until_restart--;
		if (!(wanted ? read_mcu(w, (int)lane) : skip_mcu(w)) ||
		    mu_jpeg_bits_left(&w->bits) < 0)
			return false;
		if (wanted && (lane == CHUNK - 1 || x == w->right - 1) &&
		    !transform_chunk(w, row, x - lane))
			return false;
	}
	return true;
}

/* ---- pixels ---- */

static const uint8_t *plane_row(const struct component *c, size_t y)
{
	return c->plane + y % (size_t)(KEPT * c->down * c->side) * c->stride;
}

/* The samples of the pixels of row y, beginning with the first of MCU left. */
static const uint8_t *find_row(const struct work *w, const struct component *c, size_t y)
{
	size_t sample = c->tall ? y / 2 : y, other = sample;
	size_t first = w->left * (size_t)(c->across * c->side);
	/* Of the window, from the first pixel on. */
	size_t from = w->window->left - w->left * w->mcu_w, to = from + w->window->w;

	if (!c->wide && !c->tall)
		return plane_row(c, y);
	if (c->tall && y % 2 == 1 && sample + 1 < c->h)
		other = sample + 1;
	else if (c->tall && y % 2 == 0 && sample > 0)
		other = sample - 1;
	mu_jpeg_widen(
		&(struct mu_jpeg_widening){
			.near = plane_row(c, sample),
			.far = plane_row(c, other),
			.w = c->w - first,
			.from = c->wide ? from / 2 : from,
			.to = c->wide ? (to + 1) / 2 : to,
			.across = c->wide,
			.down = c->tall,
			.smooth = c->smooth,
			.below = y % 2 == 1,
			.scratch = w->scratch,
		},
		c->row);
	return c->row;
}

/* Rows of pixels [from, to), as far as they are wanted. */
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
		size_t y = row * w->mcu_h, end = y + w->mcu_h;

		if (!read_row(w, row))
			return false;
		if (row >= w->top)
			put_rows(w, row > w->top ? y - w->late : y,
				 row + 1 < w->bottom ? end - w->late : end);
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
	MU_TRY(take_memory(&w));
	MU_TRY(mu_image_resize(image, window->h, window->w));
	image->top = window->top;
	image->left = window->left;
	image->shrink = window->shrink;
	*done = read_window(&w);
	if (!*done)
		clear_groups(jpeg, GROUPS);
out:
	return st;
}
