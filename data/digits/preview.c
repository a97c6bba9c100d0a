/* SPDX-License-Identifier: Apache-2.0 */
/* A sheet of images for people to look at, as PGM (netpbm's grey format "P5"): see digits.h. */
#include <muster/storage.h>

#include "digits.h"

#include <string.h>

enum {
	COLUMNS = 20,
	WIDTH = COLUMNS * DIGITS_SIDE,
	HEIGHT = DIGITS_CLASSES * DIGITS_SIDE,
};

/* Draw image i of the set as the column-th of its row. */
static void draw_cell(const struct digits_set *set, size_t i, int column, uint8_t *sheet)
{
	uint8_t pixels[DIGITS_PIXELS];
	uint8_t *cell = sheet + set->labels[i] * DIGITS_SIDE * WIDTH + column * DIGITS_SIDE;

	digits_set_image(set, i, pixels);
	for (int row = 0; row < DIGITS_SIDE; row++)
		memcpy(cell + row * WIDTH, pixels + row * DIGITS_SIDE, DIGITS_SIDE);
}

static enum mu_status write_sheet(const uint8_t *sheet, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_replace replace = {0};

	MU_TRY(mu_replace_open(&replace, path));
	fprintf(replace.stream, "P5\n%d %d\n255\n", WIDTH, HEIGHT);
	fwrite(sheet, 1, WIDTH * HEIGHT, replace.stream);
	MU_TRY(mu_replace_commit(&replace));
out:
	mu_replace_release(&replace);
	return st;
}

enum mu_status digits_set_preview(const struct digits_set *set, const char *path)
{
	enum mu_status st = MU_OK;
	int columns[DIGITS_CLASSES] = {0};
	uint8_t *sheet = NULL;

	MU_TRY(MU_ALLOC(sheet, WIDTH * HEIGHT, "preview"));
	for (size_t i = 0; i < set->n; i++) {
		int *column = &columns[set->labels[i]];

		if (*column < COLUMNS)
			draw_cell(set, i, (*column)++, sheet);
	}
	MU_TRY(write_sheet(sheet, path));
out:
	mu_free(sheet);
	return st;
}
