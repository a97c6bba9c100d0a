/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats of pictures: one const table each, of those that this build has. A format may keep the
 * bytes that begin was given until decode.
 */
#ifndef INPUT_DECODE_H
#define INPUT_DECODE_H

#include <muster/image.h>

struct mu_image_format {
	const char *name;
	const char *magic; /* the first bytes of a file */
	size_t n_magic;
	size_t max_shrink;   /* the largest that decode does by itself */
	const char *library; /* "libpng 1.6.39", or what is missing */
	/* NULL: this build lacks the library. */
	enum mu_status (*open)(void **state);
	void (*close)(void *state);
	void (*choose)(void *state, enum mu_jpeg_choice choice); /* NULL: there is no choice */
	enum mu_status (*begin)(void *state, const uint8_t *data, size_t n, size_t *h, size_t *w);
	/* Fills in all of image; the picture may be any that holds the window. */
	enum mu_status (*decode)(void *state, const struct mu_image_window *window,
				 struct mu_image *image);
};

/* orientation.c: of a picture stored as h x w pixels, where a window of the upright one lies; and
 * the upright picture, of a part of the stored one. */
bool mu_orientation_turns(int orientation); /* do rows become columns? */
struct mu_image_window mu_orientation_window(int orientation, size_t h, size_t w,
					     const struct mu_image_window *upright);
enum mu_status mu_orientation_apply(int orientation, size_t h, size_t w,
				    const struct mu_image *stored, struct mu_image *upright);

extern const struct mu_image_format mu_image_format_jpeg;
extern const struct mu_image_format mu_image_format_png;

#endif
