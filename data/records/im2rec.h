/* SPDX-License-Identifier: Apache-2.0 */
/*
 * im2rec, inside. With --list it finds images and writes lists of them (im2rec_list.c); without, it
 * reads such lists and packs their images (im2rec_write.c), each as im2rec_image.c makes it.
 * Options and files are those of MXNet's tool of this name.
 */
#ifndef MUSTER_DATA_IM2REC_H
#define MUSTER_DATA_IM2REC_H

#include <muster/records.h>

#include "../lib/image.h"

struct im2rec_values {
	bool list, recursive, pass_through, center_crop, pack_label, skip_bad, help;
	const char *exts, *encoding, *format;
	long shuffle, chunks, resize, quality, num_thread, color, seed;
	double train_ratio, test_ratio;
};

/* Lists of the images under root: prefix.lst, or prefix_train.lst and so on. */
enum mu_status im2rec_make_lists(const struct im2rec_values *v, const char *prefix,
				 const char *root);
/* Pack the images of every list whose name is prefix...lst. */
enum mu_status im2rec_pack_lists(const struct im2rec_values *v, const char *prefix,
				 const char *root);

/* Names of the classes of lists (im2rec_names.c). {0} is empty. */
struct im2rec_names {
	char **name; /* of each label; owned; NULL: not seen */
	size_t n;
	bool none;         /* labels and folders do not belong together one by one */
	char why[200];     /* if names are lost by that */
	bool folders;      /* an image lies in one */
	char outside[104]; /* the first image that lies in none; "": all do */
};

enum mu_status im2rec_names_add(struct im2rec_names *names, const char *list);
/* After the last list: sets none, and why. */
enum mu_status im2rec_names_check(struct im2rec_names *names);
void im2rec_names_release(struct im2rec_names *names);

/* What one thread needs. {0} is empty. */
struct im2rec_maker {
	struct data_codec codec;
	struct data_buffer file, pixels;
};

void im2rec_maker_release(struct im2rec_maker *maker);
/* The image at path as it shall be packed. */
enum mu_status im2rec_make_image(struct im2rec_maker *maker, const struct im2rec_values *v,
				 const char *path, struct data_buffer *out, size_t *nbytes);

#endif
