/* SPDX-License-Identifier: Apache-2.0 */
/* The table of readers, and what they share. A new reader is a file with one const table, a line
 * here and a line in the list in input.c. */
#ifndef MUSTER_INPUT_READER_H
#define MUSTER_INPUT_READER_H

#include <muster/input.h>
#include <muster/pictures.h>
#include <muster/records.h>

extern const struct mu_reader mu_reader_arrays;
extern const struct mu_reader mu_reader_cifar;
extern const struct mu_reader mu_reader_idx;
extern const struct mu_reader mu_reader_records;
extern const struct mu_reader mu_reader_synthetic;
extern const struct mu_reader mu_reader_text;
extern const struct mu_reader mu_reader_tokens;

/* Memory of a reading thread. {0} is empty. */
struct mu_input_thread {
	struct mu_image_worker image;
	struct mu_record_buffer record;
	uint8_t *bytes; /* space for the sample as bytes, or NULL; are_bytes: it was used */
	bool are_bytes;
};

/* Marks of a sample that was read. */
enum { MU_INPUT_BAD = 1, MU_INPUT_BYTES = 2 };

void mu_input_thread_release(struct mu_input_thread *thread);

/* Does it read data of their own for validation, not a part of the training data? */
bool mu_input_validates(const struct mu_input *in);
/* For readers, when they open: the next field of a sample, which they may change further. */
struct mu_field *mu_input_declare(struct mu_input *in, const char *name, enum mu_field_role role,
				  enum mu_number number, const struct mu_shape *shape);
/* Their usual two: "data", of bytes or numbers, and "label", of `width` numbers. */
struct mu_field *mu_input_declare_data(struct mu_input *in, enum mu_number number,
				       const struct mu_shape *shape);
void mu_input_declare_labels(struct mu_input *in, enum mu_number number, size_t width);

/* pictures.c: settings of readers of images (struct mu_picture_settings). */
#define MU_PICTURE_SETTINGS \
	.settings = mu_picture_options, .rules = mu_picture_rules, .whose = "colour images", \
	.settle = mu_picture_settle, .idle = mu_picture_idle, \
	.settings_nbytes = sizeof(struct mu_picture_settings), .colour_images = true
extern const struct mu_option mu_picture_options[];
extern const struct mu_option_rule mu_picture_rules[];
enum mu_status mu_picture_settle(void *settings, const struct mu_options *o, long pad);
const char *mu_picture_idle(const struct mu_input *in, const char *setting);

/* For readers of images: how to augment record i. */
struct mu_augment_task mu_input_task(const struct mu_input *in, struct mu_input_thread *thread,
				     size_t record);
/* Declares the input, of bytes with the mean and std of the settings; checks these, the shape and
 * the augmentation. */
enum mu_status mu_input_declare_images(struct mu_input *in, const struct mu_shape *shape);

/* A run of a batch: its samples [from, to) are at places [first + from, first + to) of the epoch's
 * order, all of one group. */
struct mu_input_run {
	size_t first, from, to, group;
};

/* Read a run. A record that cannot be read is an error; with skip_bad_records it is reported in the
 * log and marked (one mark per sample). */
enum mu_status mu_input_fill(const struct mu_input *in, struct mu_input_thread *thread,
			     const struct mu_input_run *run, const struct mu_input_batch *batch,
			     uint8_t *marks);
/*
 * Remove samples that are marked as bad from the batch; the others keep their order. Fill the
 * places at the end as struct mu_input_batch says. *n_bad counts the bad ones. If not all of the
 * others are bytes, convert them to floats.
 */
void mu_input_leave_out(const struct mu_input *in, struct mu_input_batch *batch, uint8_t *marks,
			size_t *n_bad);
/* Convert n samples of bytes to floats. */
void mu_input_from_bytes(const struct mu_input *in, float *out, const uint8_t *bytes, size_t n);
/* Keep the config's part of the records: those that are held out, or the others. MU_ERR_USAGE: one
 * of the parts would be empty. */
enum mu_status mu_input_hold_out(struct mu_input *in);
/* Compute the order of an epoch's records. */
void mu_input_order(struct mu_input *in, uint32_t epoch);
/* Number of steps of a group. */
size_t mu_input_group_steps(const struct mu_input *in, size_t group);
/* Number of this worker's samples in a step; *first is the place of the first one in the epoch's
 * order. */
size_t mu_input_find(const struct mu_input *in, size_t step, size_t *first);

#endif
