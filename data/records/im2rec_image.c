/* SPDX-License-Identifier: Apache-2.0 */
/* One image of im2rec: read, turned upright, cut, scaled, encoded. */
#include "im2rec.h"

#include <string.h>

/* Cut and scaled as the options say; the shorter edge is rounded to nothing, the longer one down.
 */
static enum mu_status shape(struct im2rec_maker *maker, const struct im2rec_values *v,
			    struct data_pixels *image)
{
	enum mu_status st = MU_OK;
	struct data_window window = {image, 0, 0, image->h, image->w};
	size_t side = image->w < image->h ? image->w : image->h, height, width;
	size_t edge = v->resize ? (size_t)v->resize : side;

	if (v->center_crop)
		window = (struct data_window){image, (image->h - side) / 2, (image->w - side) / 2,
					      side, side};
	height = window.h > window.w ? edge * window.h / window.w : edge;
	width = window.h > window.w ? edge : edge * window.w / window.h;
	if (height == image->h && width == image->w)
		goto out;
	MU_TRY(data_buffer_grow(&maker->pixels, 0, height * width * 3));
	MU_TRY(data_scale(maker->pixels.bytes, height, width, &window));
	*image = (struct data_pixels){maker->pixels.bytes, width, height};
out:
	return st;
}

enum mu_status im2rec_make_image(struct im2rec_maker *maker, const struct im2rec_values *v,
				 const char *path, struct data_buffer *out, size_t *nbytes)
{
	enum mu_status st = MU_OK;
	struct data_pixels image;
	struct data_encoding how = {.png = strcmp(v->encoding, ".png") == 0,
				    .quality = (int)v->quality};

	if (v->pass_through) {
		MU_TRY(data_buffer_read(out, path, nbytes));
		goto out;
	}
	maker->codec.edge = (size_t)v->resize;
	MU_TRY(data_buffer_read(&maker->file, path, nbytes));
	MU_TRY(data_decode(&maker->codec, path, maker->file.bytes, *nbytes, &image));
	MU_TRY(shape(maker, v, &image));
	how.grey = v->color == 0 || (v->color == -1 && data_is_grey(&image));
	MU_TRY(data_encode(&image, &how, out, nbytes));
out:
	if (st != MU_OK && !strstr(mu_trace_message(), path))
		mu_trace_prefix("%s: ", path);
	return st;
}

void im2rec_maker_release(struct im2rec_maker *maker)
{
	data_codec_release(&maker->codec);
	data_buffer_release(&maker->file);
	data_buffer_release(&maker->pixels);
}
