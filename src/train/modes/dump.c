/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --dump-batch: the first batch of worker 0, as the network gets it, side by side in a PNG file
 * (W3C recommendation "Portable Network Graphics", 2003), so that a person can look at it.
 */
#include "modes.h"
#include "report/report.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include <zlib.h>

#include <muster/base.h>
#include <muster/pictures.h>
#include <muster/storage.h>

enum { GAP = 2, MAX_SIDE = 1 << 14 };

struct sheet {
	size_t h, w, columns;
	uint8_t *rows; /* h times: a 0, the PNG filter "none", then w pixels of 3 bytes */
};

/* ---- the picture ---- */

/* Conversion of a value to a byte: value * scale + shift, per channel. */
struct tone {
	float scale[3], shift[3];
};

/* Images: by mean and std. Other values: the smallest is black, the largest white. */
static struct tone find_tone(const struct mu_input *in, const struct mu_input_batch *batch)
{
	size_t n = batch->count * mu_shape_sample(mu_input_shape(in));
	const struct mu_picture_settings *pictures = mu_input_pictures(in);
	struct tone tone;
	float low = batch->data[0], high = low;

	for (size_t i = 0; i < n; i++) {
		low = batch->data[i] < low ? batch->data[i] : low;
		high = batch->data[i] > high ? batch->data[i] : high;
	}
	for (int c = 0; c < 3; c++) {
		tone.scale[c] = high > low ? 255 / (high - low) : 0;
		tone.shift[c] = -low * tone.scale[c];
		if (pictures) {
			tone.scale[c] = pictures->std[c];
			tone.shift[c] = pictures->mean[c];
		}
	}
	return tone;
}

static uint8_t to_byte(float value)
{
	return value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)(value + 0.5f);
}

static void draw_sample(const struct sheet *sheet, const struct mu_input *in,
			const struct mu_input_batch *batch, size_t i, const struct tone *tone)
{
	const struct mu_picture p = mu_sample_picture(mu_input_shape(in));
	size_t top = GAP + i / sheet->columns * (p.h + GAP);
	size_t left = GAP + i % sheet->columns * (p.w + GAP);
	const float *sample = batch->data + i * mu_shape_sample(mu_input_shape(in));

	for (size_t y = 0; y < p.h; y++) {
		uint8_t *out = sheet->rows + (top + y) * (1 + 3 * sheet->w) + 1 + 3 * left;

		for (size_t x = 0; x < p.w; x++) {
			for (size_t c = 0; c < 3; c++) {
				size_t from = p.c >= 3 ? c : 0;
				float value = sample[(from * p.h + y) * p.w + x];

				*out++ = to_byte(value * tone->scale[from] + tone->shift[from]);
			}
		}
	}
}

/* About as wide as high. Samples beyond the largest sheet are skipped. */
static enum mu_status draw(struct sheet *sheet, const struct mu_input *in,
			   const struct mu_input_batch *batch)
{
	enum mu_status st = MU_OK;
	struct tone tone = find_tone(in, batch);
	const struct mu_picture p = mu_sample_picture(mu_input_shape(in));
	size_t h = p.h + GAP, w = p.w + GAP, count = batch->count;

	if (h > MAX_SIDE / 2 || w > MAX_SIDE / 2)
		MU_FAIL(MU_ERR_USAGE, "--dump-batch: samples of %zu x %zu are too large", p.h, p.w);
	for (sheet->columns = 1; sheet->columns * sheet->columns * w < count * h;)
		sheet->columns++;
	if (sheet->columns > MAX_SIDE / w)
		sheet->columns = MAX_SIDE / w;
	if (count > MAX_SIDE / h * sheet->columns)
		count = MAX_SIDE / h * sheet->columns;
	if (sheet->columns > count)
		sheet->columns = count;
	sheet->w = GAP + sheet->columns * w;
	sheet->h = GAP + (count + sheet->columns - 1) / sheet->columns * h;
	MU_TRY(MU_ALLOC(sheet->rows, sheet->h * (1 + 3 * sheet->w), "sheet of images"));
	for (size_t i = 0; i < count; i++)
		draw_sample(sheet, in, batch, i, &tone);
out:
	return st;
}

/* ---- the file ---- */

static void put_u32(uint8_t *out, size_t value)
{
	for (int i = 0; i < 4; i++)
		out[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Length, type, data, checksum of type and data. */
static void write_chunk(FILE *f, const char *type, const uint8_t *data, size_t n)
{
	uint8_t number[4];
	uLong crc = crc32(0, (const Bytef *)type, 4);

	put_u32(number, n);
	fwrite(number, 1, 4, f);
	fwrite(type, 1, 4, f);
	if (n > 0) {
		fwrite(data, 1, n, f);
		crc = crc32(crc, data, (uInt)n);
	}
	put_u32(number, crc);
	fwrite(number, 1, 4, f);
}

static enum mu_status write_png(const struct sheet *sheet, const char *path)
{
	enum mu_status st = MU_OK;
	uLong n = sheet->h * (1 + 3 * sheet->w), bound = compressBound(n);
	uint8_t head[13] = {[8] = 8, [9] = 2}, *packed = NULL; /* 8 bits; red, green, blue */
	FILE *f = NULL;
	bool complete;

	MU_TRY(MU_ALLOC(packed, bound, "packed sheet of images"));
	if (compress(packed, &bound, sheet->rows, n) != Z_OK)
		MU_FAIL(MU_ERR_MEMORY, "%s: zlib cannot pack %lu bytes", path, n);
	f = fopen(path, "wb");
	if (!f)
		MU_FAIL(MU_ERR_IO, "%s: cannot be created: %s", path, strerror(errno));
	put_u32(head, sheet->w);
	put_u32(head + 4, sheet->h);
	fwrite("\x89PNG\r\n\x1a\n", 1, 8, f);
	write_chunk(f, "IHDR", head, sizeof head);
	write_chunk(f, "IDAT", packed, bound);
	write_chunk(f, "IEND", NULL, 0);
	complete = !ferror(f);
	complete = fclose(f) == 0 && complete;
	if (!complete)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
out:
	mu_free(packed);
	return st;
}

enum mu_status mu_train_dump_check(const struct conf *v)
{
	enum mu_status st = MU_OK;
	const char *path = v->dump_batch ? v->dump_batch : "", *slash = strrchr(path, '/');
	const char *dot = strrchr(slash ? slash : path, '.');

	if (dot && strcasecmp(dot, ".png") != 0)
		MU_FAIL(MU_ERR_USAGE, "--dump-batch %s: the picture is a PNG: name it FILE.png",
			path);
out:
	return st;
}

enum mu_status mu_train_dump_batch(const struct mu_engine *e, struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const char *path = e->conf->dump_batch;
	struct mu_replace replace = {0};
	struct mu_input_batch batch = {0};
	struct sheet sheet = {0};

	mu_report_data(e);
	MU_TRY(mu_train_batch_new(&batch, in));
	MU_TRY(mu_replace_begin(&replace, path));
	MU_TRY(mu_input_epoch(in, (uint32_t)e->conf->load_epoch));
	MU_TRY(mu_input_read(in, 0, &batch));
	if (batch.count == 0)
		MU_FAIL(MU_ERR_FORMAT, "--dump-batch: no record of the first batch can be read");
	MU_TRY(draw(&sheet, in, &batch));
	MU_TRY(write_png(&sheet, replace.written));
	MU_TRY(mu_replace_commit(&replace));
	mu_log_info("%s: the first %zu sample%s of epoch %ld, %zu x %zu pixels", path, batch.count,
		    MU_S(batch.count), e->conf->load_epoch + 1, sheet.h, sheet.w);
out:
	mu_replace_release(&replace);
	mu_train_batch_free(&batch);
	mu_free(sheet.rows);
	return st;
}
