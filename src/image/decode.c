/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding: detect the format, and refuse what no format may contain. */
#include <string.h>

#include "decode.h"

static const struct mu_image_format *const formats[] = {
	&mu_image_format_jpeg,
	&mu_image_format_png,
};

enum { NUM_FORMATS = sizeof formats / sizeof *formats };

struct mu_image_decoder {
	void *states[NUM_FORMATS];
	bool as_stored;
	/* Of the current picture: format, orientation, and size as stored. */
	int format, orientation;
	unsigned traits;
	size_t h, w;
	struct mu_image stored; /* a picture before it is turned */
};

enum mu_status mu_image_decoder_new(struct mu_image_decoder **out)
{
	enum mu_status st = MU_OK;
	struct mu_image_decoder *d;

	*out = NULL;
	MU_TRY(MU_ALLOC(d, 1, "decoder"));
	*out = d;
	for (int i = 0; i < NUM_FORMATS; i++) {
		if (formats[i]->open)
			MU_TRY(formats[i]->open(&d->states[i]));
	}
out:
	if (st != MU_OK) {
		mu_image_decoder_free(*out);
		*out = NULL;
	}
	return st;
}

void mu_image_decoder_free(struct mu_image_decoder *decoder)
{
	if (!decoder)
		return;
	for (int i = 0; i < NUM_FORMATS; i++) {
		if (decoder->states[i])
			formats[i]->close(decoder->states[i]);
	}
	mu_image_release(&decoder->stored);
	mu_free(decoder);
}

void mu_image_decoder_upright(struct mu_image_decoder *decoder, bool upright)
{
	decoder->as_stored = !upright;
}

void mu_image_decoder_version(char *text, size_t nbytes)
{
	size_t used = 0;

	for (int i = 0; i < NUM_FORMATS && used < nbytes; i++)
		used += (size_t)snprintf(text + used, nbytes - used, "%s%s", i ? ", " : "",
					 formats[i]->library);
}

static enum mu_status find_format(const uint8_t *data, size_t n, int *format)
{
	enum mu_status st = MU_OK;

	for (*format = 0; *format < NUM_FORMATS; ++*format) {
		const struct mu_image_format *f = formats[*format];

		if (n >= f->n_magic && memcmp(data, f->magic, f->n_magic) == 0)
			break;
	}
	if (*format == NUM_FORMATS && n >= 4)
		MU_FAIL(MU_ERR_FORMAT,
			"neither a JPEG nor a PNG image: %zu bytes, the first %02x %02x %02x %02x",
			n, data[0], data[1], data[2], data[3]);
	if (*format == NUM_FORMATS)
		MU_FAIL(MU_ERR_FORMAT, "neither a JPEG nor a PNG image: %zu bytes", n);
	if (!formats[*format]->open)
		MU_FAIL(MU_ERR_UNSUPPORTED, "a %s image, and this build has %s",
			formats[*format]->name, formats[*format]->library);
out:
	return st;
}

enum mu_status mu_image_begin(struct mu_image_decoder *decoder, const uint8_t *data, size_t n,
			      size_t *h, size_t *w)
{
	enum mu_status st = MU_OK;
	const struct mu_image_format *format;
	size_t most;

	MU_TRY(find_format(data, n, &decoder->format));
	format = formats[decoder->format];
	MU_TRY(format->begin(decoder->states[decoder->format], data, n, h, w));
	most = format->max_shrink > 1 ? MU_IMAGE_MAX_STORED : MU_IMAGE_MAX_PIXELS;
	if (*h == 0 || *w == 0 || *h > most / *w)
		MU_FAIL(MU_ERR_FORMAT,
			"%s image of %zu x %zu pixels (height x width); from 1 to %zu pixels are "
			"read: make it smaller",
			format->name, *h, *w, most);
	decoder->traits = format->traits(decoder->states[decoder->format]);
	decoder->h = *h;
	decoder->w = *w;
	decoder->orientation = decoder->as_stored ? 1 : mu_image_orientation(data, n);
	if (mu_orientation_turns(decoder->orientation)) {
		*h = decoder->w;
		*w = decoder->h;
	}
out:
	return st;
}

unsigned mu_image_traits(const struct mu_image_decoder *decoder)
{
	return decoder->traits;
}

static size_t shrunk(size_t n, size_t shrink)
{
	return (n + shrink - 1) / shrink;
}

/* Set pixel `to` to the mean of four. */
static void set_mean(struct mu_image *image, size_t to, const size_t at[4])
{
	const bool deep = image->low;
	uint32_t pixel = 0, low = 0;

	for (int c = 0; c < 24; c += 8) {
		uint32_t sum = 2;

		for (int i = 0; i < 4; i++)
			sum += deep ? (image->pixels[at[i]] >> c & 255) << 8 |
					      (image->low[at[i]] >> c & 255)
				    : image->pixels[at[i]] >> c & 255;
		pixel |= (deep ? sum / 4 >> 8 : sum / 4) << c;
		low |= (sum / 4 & 255) << c;
	}
	image->pixels[to] = pixel;
	if (deep)
		image->low[to] = low;
}

/* Halve the size: the mean of two by two pixels; of those that exist at the end of odd sizes. */
static void halve(struct mu_image *image)
{
	size_t h = shrunk(image->h, 2), w = shrunk(image->w, 2);

	for (size_t y = 0; y < h; y++) {
		const size_t above = 2 * y * image->w;
		const size_t below = 2 * y + 1 < image->h ? above + image->w : above;

		for (size_t x = 0; x < w; x++) {
			const size_t left = 2 * x, right = left + 1 < image->w ? left + 1 : left;
			const size_t at[4] = {above + left, above + right, below + left,
					      below + right};

			set_mean(image, y * w + x, at);
		}
	}
	image->h = h;
	image->w = w;
	image->shrink *= 2;
}

/* Decode the picture as stored. */
static enum mu_status decode(struct mu_image_decoder *decoder, const struct mu_image_window *window,
			     struct mu_image *image)
{
	enum mu_status st = MU_OK;
	const struct mu_image_format *format = formats[decoder->format];
	const struct mu_image_window whole = {.h = decoder->h, .w = decoder->w, .shrink = 1};

	MU_TRY(format->decode(decoder->states[decoder->format],
			      window->shrink <= format->max_shrink ? window : &whole, image));
	while (image->shrink < window->shrink)
		halve(image);
out:
	return st;
}

enum mu_status mu_image_decode(struct mu_image_decoder *decoder,
			       const struct mu_image_window *window, struct mu_image *image)
{
	enum mu_status st = MU_OK;
	const int orientation = decoder->orientation;
	const bool turns = mu_orientation_turns(orientation);
	const size_t upright_h = turns ? decoder->w : decoder->h;
	const size_t upright_w = turns ? decoder->h : decoder->w;
	const size_t s = window->shrink;
	struct mu_image_window stored;
	size_t h, w;

	if ((s != 1 && s != 2 && s != 4 && s != 8) || window->h == 0 || window->w == 0 ||
	    window->top + window->h > shrunk(upright_h, s) ||
	    window->left + window->w > shrunk(upright_w, s))
		MU_FAIL(MU_ERR_ARGUMENT,
			"window of %zu x %zu pixels at (%zu, %zu), shrunk by %zu, of an image of "
			"%zu x %zu",
			window->h, window->w, window->top, window->left, s, upright_h, upright_w);
	if (window->h > MU_IMAGE_MAX_PIXELS / window->w)
		MU_FAIL(MU_ERR_FORMAT,
			"image of %zu x %zu pixels (height x width), of which %zu x %zu are needed "
			"at once; at most %zu are possible: resize makes them fewer",
			upright_h, upright_w, window->h, window->w, MU_IMAGE_MAX_PIXELS);
	if (orientation == 1) {
		MU_TRY(decode(decoder, window, image));
		goto out;
	}
	h = shrunk(decoder->h, s);
	w = shrunk(decoder->w, s);
	stored = mu_orientation_window(orientation, h, w, window);
	MU_TRY(decode(decoder, &stored, &decoder->stored));
	MU_TRY(mu_orientation_apply(orientation, h, w, &decoder->stored, image));
out:
	return st;
}
