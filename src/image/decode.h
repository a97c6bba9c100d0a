/* SPDX-License-Identifier: Apache-2.0 */
/* Formats of pictures: one const table each, for those in this build. A format may keep the pointer
 * to the bytes from begin to decode. */
#ifndef INPUT_DECODE_H
#define INPUT_DECODE_H

#include <muster/image.h>

struct mu_image_format {
	const char *name;
	const char *magic; /* the first bytes of a file */
	size_t n_magic;
	size_t max_shrink;   /* the largest that decode supports */
	const char *library; /* "libpng 1.6.39", or the missing library */
	/* NULL: this build lacks the library. */
	enum mu_status (*open)(void **state);
	void (*close)(void *state);
	enum mu_status (*begin)(void *state, const uint8_t *data, size_t n, size_t *h, size_t *w);
	unsigned (*traits)(void *state); /* after begin: mu_image_trait */
	/* Set all members of image; its region may be any that contains the window. */
	enum mu_status (*decode)(void *state, const struct mu_image_window *window,
				 struct mu_image *image);
};

/* orientation.c, for a picture stored as h x w pixels: map a window of the upright picture to the
 * stored one; turn a part of the stored picture upright. */
bool mu_orientation_turns(int orientation); /* are rows and columns exchanged? */
struct mu_image_window mu_orientation_window(int orientation, size_t h, size_t w,
					     const struct mu_image_window *upright);
enum mu_status mu_orientation_apply(int orientation, size_t h, size_t w,
				    const struct mu_image *stored, struct mu_image *upright);

extern const struct mu_image_format mu_image_format_jpeg;
extern const struct mu_image_format mu_image_format_png;

#endif
