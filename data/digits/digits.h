/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits, internals: how an image of the embedded data set is drawn. A glyph (strokes in glyphs.c)
 * becomes the path of a pen (path.c), and the path becomes pixels (digits/image.c). Image number i
 * depends only on the seed and i. The code uses only sums, products, divisions and square roots,
 * which IEEE 754 rounds alike everywhere, and no function whose last bit depends on the library. A
 * compiler that fuses products with sums needs -ffp-contract=off to give the same bytes as others.
 */
#ifndef MUSTER_DIGITS_H
#define MUSTER_DIGITS_H

#include <muster/base.h>

enum {
	DIGITS_SIDE = 28,
	DIGITS_PIXELS = DIGITS_SIDE * DIGITS_SIDE,
	DIGITS_CLASSES = 10,
	DIGITS_NODES_MAX = 16,   /* of one glyph */
	DIGITS_POINTS_MAX = 160, /* of one path */
};

/* ---- glyphs ---- */

enum digits_kind {
	DIGITS_START = 1, /* first node of a stroke */
	DIGITS_SMOOTH,    /* the pen passes without a change of direction */
	DIGITS_CORNER,    /* the pen turns on the spot */
};

/* A place that the pen passes, in hundredths of the unit square; x to the right, y down. */
struct digits_node {
	uint8_t x, y;
	enum digits_kind kind;
};

struct digits_glyph {
	int n;
	struct digits_node node[DIGITS_NODES_MAX];
};

/* The ways to write a digit, 0 <= label < 10; *n of them. */
const struct digits_glyph *digits_glyphs(int label, int *n);

/* ---- random draws of one image, one after the other ---- */

struct digits_draws {
	struct mu_random key;
	uint64_t next; /* number of the next draw */
};

/* Uniform in [low, high). */
float digits_uniform(struct digits_draws *d, float low, float high);
/* A sum of three uniform draws: about normal, never beyond three standard deviations. */
float digits_normal(struct digits_draws *d, float deviation);

/* ---- path ---- */

struct digits_point {
	float x, y;   /* pixels; the centre of the pixel in row i, column j is (j + 0.5, i + 0.5) */
	float radius; /* of the pen, pixels */
	bool lifted;  /* no ink between the point before and this one */
};

struct digits_path {
	int n;
	struct digits_point point[DIGITS_POINTS_MAX];
};

/* One way to write label: glyph, hand (elastic and affine distortion), pen, place on the paper. */
void digits_path(struct digits_path *path, struct digits_draws *d, int label);

/* ---- image ---- */

/* Draw image number `sample` for this seed: DIGITS_PIXELS bytes, row by row, background 0. */
void digits_image(uint8_t *pixels, uint64_t seed, uint64_t sample, int label);

/* ---- a whole set ---- */

struct digits_set {
	const char *name; /* as MNIST has it in its file names: "train" or "t10k" */
	uint32_t number;  /* 0 or 1: sets of other numbers share no image */
	uint64_t seed;
	size_t n;
	uint8_t *labels; /* n; owned */
	uint8_t *images; /* n * DIGITS_PIXELS, NULL before digits_set_draw; owned */
};

/* Set the labels: classes of equal size (within one), in random order. */
enum mu_status digits_set_init(struct digits_set *set);
/* Draw all images. progress: a terminal for progress output, or NULL. */
enum mu_status digits_set_draw(struct digits_set *set, FILE *progress);
void digits_set_release(struct digits_set *set);
/* One image of the set. */
void digits_set_image(const struct digits_set *set, size_t i, uint8_t *pixels);
/* folder/<name>-images-idx3-ubyte.gz and folder/<name>-labels-idx1-ubyte.gz, the labels last. */
enum mu_status digits_set_write(const struct digits_set *set, const char *folder);
/* A PGM file with the first images of each class, a row per class. The images need not be drawn. */
enum mu_status digits_set_preview(const struct digits_set *set, const char *path);

#endif
