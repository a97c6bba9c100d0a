/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cifar_pack, internals: from images to the records of CIFAR's binary files. A source (a folder,
 * cifar/folder.c, or a tar file, archive.c) passes on one file after another. Each is decoded
 * (jpeg.c), scaled (cifar/scale.c) and stored in the set (cifar/set.c), which is written when it is
 * complete. So nothing is written if an image is bad, and the output depends only on the images and
 * their names, not on their order.
 */
#ifndef MUSTER_DATA_CIFAR_PACK_H
#define MUSTER_DATA_CIFAR_PACK_H

#include <muster/base.h>

#include <muster/records.h>

#include "../lib/image.h"
#include "../lib/progress.h"

enum { PACK_CLASSES_MAX = 256 };

/* ---- scaling ---- */

/* The middle square of an image, scaled to (3, size, size). */
enum mu_status pack_scale(uint8_t *out, size_t size, const struct data_pixels *in);

/* ---- the set ---- */

enum pack_part { PACK_TRAIN, PACK_TEST, PACK_PARTS };

extern const char *const pack_part_names[PACK_PARTS]; /* "train", "test" */

struct pack_record {
	enum pack_part part;
	size_t label; /* in pack_set_add's order until pack_set_sort */
	char *file;   /* name within its class; owned */
	size_t at;    /* number of its image in `pixels` */
};

struct pack_set {
	size_t sample; /* bytes of an image */
	size_t n, n_classes;
	size_t counts[PACK_PARTS];
	size_t class_counts[PACK_CLASSES_MAX][PACK_PARTS];
	char *classes[PACK_CLASSES_MAX]; /* owned */
	struct data_buffer records;      /* of struct pack_record */
	struct data_buffer pixels;       /* n images (3, size, size) */
};

/* Add one image. The last three parts of its path are train or test, the class, the file. *pixels:
 * space for its (3, size, size) bytes, to be filled before the next call. */
enum mu_status pack_set_add(struct pack_set *set, const char *path, uint8_t **pixels);
/* After the last image: number the classes in alphabetical order, sort records by part, label and
 * file. Errors: no image in a part, a duplicate file. */
enum mu_status pack_set_sort(struct pack_set *set);
/*
 * Write folder/data_batch_1.bin and so on with per_file records each, test_batch.bin,
 * batches.meta.txt. shuffle: seed of the order of each part, -1: sorted. All files are complete
 * before the first one is renamed. Files data_batch_N.bin of an earlier set that are no longer used
 * are removed.
 */
enum mu_status pack_set_write(const struct pack_set *set, const char *folder, size_t per_file,
			      long shuffle, size_t *n_files);
void pack_set_release(struct pack_set *set);

/* ---- the job ---- */

struct pack_job {
	struct data_jpeg *jpeg;
	struct pack_set set;
	struct data_progress progress;
	size_t size;
	bool resize;
	struct mu_left_out left_out;
};

/* Does the name end like a JPEG file's? */
bool pack_is_image(const char *path);
/* Add one JPEG file. done: fraction of the input read so far, 0 to 1. */
enum mu_status pack_job_add(struct pack_job *job, const char *path, const uint8_t *bytes,
			    size_t nbytes, double done);

/* The sources: every file of path/train/CLASS and path/test/CLASS, or of a tar file. */
enum mu_status pack_read_folder(struct pack_job *job, const char *path);
/* MU_ERR_UNSUPPORTED in a build without libarchive. */
enum mu_status pack_read_tar(struct pack_job *job, const char *path);

#endif
