/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image: from the bytes of a JPEG or PNG file to the values that a net reads. Used by input.
 *
 *	mu_image_begin      size of the picture, from the header
 *	mu_augment_geometry region, size and orientation of the result: random draws and arithmetic
 *	mu_image_decode     decode that region, at 1, 1/2, 1/4 or 1/8 of its size
 *	mu_image_sample     planar float32, one bilinear interpolation for the whole geometry
 *	mu_augment_colour   brightness, contrast, saturation, hue, noise
 *	mu_image_normalise  (value - mean) / std
 *
 * mu_augment_file does all of this, in the order of MXNet's ImageRecordIter. Every function depends
 * on its arguments only: random draws come from mu_random with a key of (seed, epoch, sample), so
 * they depend neither on threads nor on ranks.
 *
 * Coordinates in a picture are real numbers: pixel (i, j) covers y in [i, i + 1) and x in [j, j +
 * 1); its centre is (i + 0.5, j + 0.5).
 */
#ifndef MUSTER_IMAGE_H
#define MUSTER_IMAGE_H

#include <muster/base.h>
#include <muster/shape.h>

MU_BEGIN_C

/* ---- pictures ---- */

/*
 * A region of a picture. A pixel is red | green << 8 | blue << 16; the highest byte is unused. With
 * shrink s, pixel (i, j) stands for s x s pixels of the whole picture; its centre is at (y, x) = (s
 * (top + i + 0.5), s (left + j + 0.5)) there. {0} is an empty picture.
 */
struct mu_image {
	uint32_t *pixels; /* (h, w); owned */
	uint32_t *low;    /* NULL: 8 bits; else the lower 8 of 16 bits, in the same form: a value,
			     0 to 255 again, is (256 pixel + low) / 257; owned */
	size_t h, w;
	size_t top, left, shrink;
	size_t capacity; /* allocated pixels */
};

/* Largest picture that is decoded, in pixels: 64 Mi, 8192 x 8192. A JPEG file may have four times
 * as many if a part or a reduced picture of it is decoded. */
#define MU_IMAGE_MAX_PIXELS ((size_t)1 << 26)
#define MU_IMAGE_MAX_STORED ((size_t)1 << 28)

/* Set the size to (h, w), a whole picture of 8 bits; the pixels are undefined. */
enum mu_status mu_image_resize(struct mu_image *image, size_t h, size_t w);
/* Make it one of 16 bits, if it is none; the lower ones are 0. */
enum mu_status mu_image_deepen(struct mu_image *image);
void mu_image_release(struct mu_image *image);
/* From raw bytes: planes (c, h, w) or, if interleaved, (h, w, c). c is 1 (grey) or 3. */
enum mu_status mu_image_from_bytes(struct mu_image *image, const uint8_t *bytes,
				   const struct mu_shape *shape, bool interleaved);

/* ---- decoding ---- */

/*
 * Decoder of one thread, reused for every picture. Reads JPEG (8 bits; grey is converted to colour,
 * CMYK as if printed on white, its inks inverted as Adobe stores them, with or without Adobe's
 * marker) and PNG (all kinds; transparency is dropped): see
 * mu_image_traits. JPEG is turned upright according to mu_image_orientation, as by MXNet 1.9's
 * packages, which decode by OpenCV. Errors: MU_ERR_FORMAT: neither JPEG nor PNG, no pixels, more
 * than MU_IMAGE_MAX_PIXELS, or in a JPEG file MU_IMAGE_MAX_STORED, damaged or
 * truncated in the region that is decoded; MU_ERR_UNSUPPORTED:
 * this build lacks libjpeg-turbo or libpng. Messages do not name the file; the caller adds that.
 */
struct mu_image_decoder;

enum mu_status mu_image_decoder_new(struct mu_image_decoder **out);
void mu_image_decoder_free(struct mu_image_decoder *decoder);
/* upright = false: from the next begin on ignore Exif's orientation. */
void mu_image_decoder_upright(struct mu_image_decoder *decoder, bool upright);
/* "libjpeg-turbo 2.1.5, libpng 1.6.39", or the names of missing libraries. */
void mu_image_decoder_version(char *text, size_t nbytes);

/* A window of the picture at 1/shrink of its size, ceil(h / shrink) by ceil(w / shrink). */
struct mu_image_window {
	size_t top, left, h, w; /* in pixels of the reduced picture */
	size_t shrink;          /* 1, 2, 4 or 8 */
};

/* Parse the header. data must not change until mu_image_decode has returned. */
enum mu_status mu_image_begin(struct mu_image_decoder *decoder, const uint8_t *data, size_t n,
			      size_t *h, size_t *w);
/* What the picture of the last begin has that three channels of 8 bits have not. */
enum mu_image_trait {
	MU_IMAGE_GREY = 1 << 0,  /* one channel of colour */
	MU_IMAGE_INK = 1 << 1,   /* CMYK */
	MU_IMAGE_DEEP = 1 << 2,  /* 16 bits */
	MU_IMAGE_ALPHA = 1 << 3, /* transparency */
};

unsigned mu_image_traits(const struct mu_image_decoder *decoder);
/* Decode a region that contains the window, which must lie in the picture, and have at most
 * MU_IMAGE_MAX_PIXELS. Pixels inside the window
 * do not depend on the window. */
enum mu_status mu_image_decode(struct mu_image_decoder *decoder,
			       const struct mu_image_window *window, struct mu_image *image);

/*
 * Exif's orientation of a JPEG file, 1 to 8, from the first Exif segment. 1 is upright as stored; 1
 * is also returned if there is none, if it is damaged, and for other files. For h x w pixels as
 * stored, the position (y, x) of pixel (i, j) is:
 *	1 (i, j)  2 (i, w-1-j)  3 (h-1-i, w-1-j)  4 (h-1-i, j)
 *	5 (j, i)  6 (j, h-1-i)  7 (w-1-j, h-1-i)  8 (w-1-j, i)
 */
int mu_image_orientation(const uint8_t *data, size_t n);

/* ---- geometry ---- */

/* A map from the pixels of a new picture to those of a source. */
struct mu_geometry {
	size_t h, w;               /* size of the new picture */
	size_t source_h, source_w; /* size of the source */
	/* Point (y, x) of the new picture is point (m[0][0] y + m[0][1] x + m[0][2], m[1][0] y +
	 * ...) of the source. */
	double m[2][3];
	/* Pixels outside of rows [top, bottom) and columns [left, right) have the fill value. */
	double top, left, bottom, right;
};

/* The identity: the source itself. */
void mu_geometry_start(struct mu_geometry *g, size_t h, size_t w);
/* Resize to (h, w). */
void mu_geometry_resize(struct mu_geometry *g, size_t h, size_t w);
/* Resize the shorter edge to n, the longer one to n long / short, rounded down. */
void mu_geometry_resize_shorter(struct mu_geometry *g, size_t n);
/* Add n pixels of fill on each side. */
void mu_geometry_pad(struct mu_geometry *g, size_t n);
/* Crop to (h, w) with the upper left pixel (top, left); the crop must lie in the picture. */
void mu_geometry_crop(struct mu_geometry *g, size_t top, size_t left, size_t h, size_t w);
/* Mirror left and right. */
void mu_geometry_mirror(struct mu_geometry *g);

/*
 * Rotate by angle (degrees), shear, and scale about the centre, into a picture of max(1, scale h)
 * by max(1, scale w). MXNet's matrix (src/io/image_aug_default.cc): with hs = 2 scale / (1 +
 * aspect), ws = aspect hs, a = cos(angle), b = sin(angle), a vector (x, y) is mapped to
 *	(hs a - shear b ws) x + (hs b + shear a ws) y,  -b ws x + a ws y.
 */
struct mu_affine {
	double angle, shear, scale, aspect;
};

void mu_geometry_affine(struct mu_geometry *g, const struct mu_affine *affine);

/* The smallest window of the source that mu_image_sample reads, at the largest shrink up to
 * max_shrink that leaves at least as many pixels as the geometry needs. */
void mu_geometry_window(const struct mu_geometry *g, size_t max_shrink,
			struct mu_image_window *window);

/* ---- sampling ---- */

/* Memory of one thread; it grows. {0} is empty. */
struct mu_image_scratch {
	float *floats;
	size_t floats_capacity;
	int32_t *index;
	size_t index_capacity;
};

void mu_image_scratch_release(struct mu_image_scratch *scratch);

struct mu_image_values {
	float fill;    /* value of each channel, 0 to 255 */
	float mean[3]; /* a result is (v - mean) / std with v from 0 to 255 */
	float std[3];  /* > 0 */
};

/*
 * out, (3, g->h, g->w): for the centre of each pixel the value of the source, by bilinear
 * interpolation between the centres of the four nearest pixels. At the edges of the source its last
 * pixels are repeated. Outside of the source and of the geometry's limits: fill.
 */
enum mu_status mu_image_sample(const struct mu_image *image, const struct mu_geometry *g,
			       const struct mu_image_values *values,
			       struct mu_image_scratch *scratch, float *out);

/* The same as bytes, (3, g->h, g->w), if every pixel of the result is a pixel of the image or
 * `fill`: then *moved is true. Otherwise *moved is false and out is undefined. */
enum mu_status mu_image_move(const struct mu_image *image, const struct mu_geometry *g,
			     uint8_t fill, struct mu_image_scratch *scratch, uint8_t *out,
			     bool *moved);

/* ---- colour: planes (3, n) of red, green, blue from 0 to 255, in place ---- */

/* v <- amount v. This function and the next three clamp to 0 to 255. */
void mu_image_brightness(float *rgb, size_t n, float amount);
/* v <- amount v + (1 - amount) m, m the mean of 0.299 red + 0.587 green + 0.114 blue. */
void mu_image_contrast(float *rgb, size_t n, float amount);
/* v <- amount v + (1 - amount) g, g the same weighted sum of the pixel itself. */
void mu_image_saturation(float *rgb, size_t n, float amount);
/*
 * Add to hue (0 to 180, half degrees), lightness and saturation (0 to 255) of each pixel. Each is
 * clamped to its range; hue does not wrap around. Hue, lightness (min + max) / 2 and saturation of
 * Joblove and Greenberg, "Color spaces for computer graphics", SIGGRAPH 1978.
 */
void mu_image_hsl(float *rgb, size_t n, float hue, float saturation, float lightness);
/*
 * Add the eigenvectors of ImageNet's colours, each times its eigenvalue and weight[i]: Krizhevsky,
 * Sutskever and Hinton, "ImageNet classification with deep convolutional neural networks", NIPS
 * 2012, section 4.1.
 */
void mu_image_pca(float *rgb, size_t n, const float weight[3]);
/* 0.299 red + 0.587 green + 0.114 blue, (n), from (3, n). */
void mu_image_grey(float *grey, const float *rgb, size_t n);
/* (value - mean) / std of n values, in place. */
void mu_image_normalise(float *values, size_t n, float mean, float std);

/* ---- augmentation: names and meanings of MXNet's ImageRecordIter; 0: off ---- */

struct mu_augment {
	bool as_stored; /* ignore Exif's orientation: see mu_image_decoder_upright */
	long resize;    /* resize the shorter edge to this */
	/* Affine step: angle in whole degrees from -max to max, shear in +-max, scale in [min, max]
	 * (both 0: 1), aspect: see min_aspect. */
	long max_rotate_angle;
	double max_shear, min_scale, max_scale;
	/* Aspect ratio, width to height, of the affine step or of random_resized_crop: in [min,
	 * max], or with min 0 in [1 - max, 1 + max]. */
	double min_aspect, max_aspect;
	long pad, fill; /* pixels on each side, and their value, 0 to 255 */
	/*
	 * The crop. random_resized_crop: up to 10 trials of an area in [min_area, max_area] (both
	 * 0: 1) of the picture and an aspect ratio, exchanged with its inverse with probability
	 * 1/2; the first crop that fits is placed at random; if none fits, the centre is cropped.
	 * Otherwise, max_crop > 0: a square of [min_crop, max_crop] pixels, resized. Otherwise the
	 * shape itself, after enlarging a picture that is too small. random_crop: at a random
	 * place, else at the centre.
	 */
	long random_resized_crop, random_crop;
	double min_area, max_area;
	long min_crop, max_crop;
	/* In random order: factors in [1 - x, 1 + x]. */
	double brightness, contrast, saturation;
	/* Integers from -max to max: rounded (u1 + 4 u2) / 5 max, with u1 and u2 uniform in [-1,
	 * 1). */
	long max_h, max_s, max_l;
	double pca_noise;   /* standard deviation of the three weights */
	long random_mirror; /* with probability 1/2 */
};

/* MU_ERR_USAGE: contradictory settings, with option names. shape: (c, h, w) of the net's input. */
enum mu_status mu_augment_check(const struct mu_augment *a, const struct mu_shape *shape);
/* Is the centre crop the only step? */
bool mu_augment_is_none(const struct mu_augment *a);
/* Is there a random crop of this shape that has one place only, in images of the stored size? */
bool mu_augment_crop_is_fixed(const struct mu_augment *a, const struct mu_shape *stored,
			      const struct mu_shape *shape);
/* "shorter edge to 256, cut at random, mirrored at random" */
void mu_augment_describe(const struct mu_augment *a, char *text, size_t nbytes);
/* Geometry from a picture of (h, w) to those of shape. MU_ERR_FORMAT: the picture is smaller
 * than max_crop. */
enum mu_status mu_augment_geometry(const struct mu_augment *a, const struct mu_random *key,
				   const struct mu_shape *shape, size_t h, size_t w,
				   struct mu_geometry *g);
/* All colour steps, on planes (3, n) from 0 to 255. */
void mu_augment_colour(const struct mu_augment *a, const struct mu_random *key, float *rgb,
		       size_t n);

/* Memory of one thread for pictures. {0} is empty. */
struct mu_image_worker {
	struct mu_image_decoder *decoder; /* created for the first file */
	struct mu_image image;
	size_t h, w; /* of the last picture, all of it */
	struct mu_image_scratch scratch;
	float *planes; /* the three planes of one channel before conversion; of the lower bits */
	size_t planes_capacity;
};

void mu_image_worker_release(struct mu_image_worker *worker);

struct mu_augment_task {
	const struct mu_augment *augment;
	const struct mu_shape *shape; /* (c, h, w), c = 1 or 3; with one channel the result is
					 grey, normalised by mean[0] and std[0] */
	const float *mean, *std;
	struct mu_random key; /* purpose MU_RANDOM_AUGMENT */
	/* Output as bytes, before mean and std, if possible: then *are_bytes is true. NULL: floats
	 * only. Only if mu_augment_keeps_bytes. */
	uint8_t *bytes;
	bool *are_bytes;
};

/* Can pictures of this shape be output as bytes? Then all that are not resized or rotated are. */
bool mu_augment_keeps_bytes(const struct mu_augment *a, const struct mu_shape *shape);

/* All steps, from the bytes of a file, or from worker->image. out: (c, h, w). */
enum mu_status mu_augment_file(const struct mu_augment_task *task, const uint8_t *data, size_t n,
			       struct mu_image_worker *worker, float *out);
enum mu_status mu_augment_image(const struct mu_augment_task *task, struct mu_image_worker *worker,
				float *out);

MU_END_C

#endif
