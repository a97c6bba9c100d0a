/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where h5rec and im2rec write records to. The name determines the kind of file:
 *
 *	x.rec                   RecordIO, with x.idx and x.classes (names) beside it
 *	x.h5                    an HDF5 data file
 *	x.bin                   CIFAR-10's records, 3 x 32 x 32
 *	x-images-idx3-ubyte     IDX, with x-labels-idx1-ubyte beside it; also with .gz
 *	x.tar, x.tar.gz, ...    a folder of images per class, in a tar file
 *	x/                      a folder of images per class
 *
 * Encoded images are decoded and pixels encoded where the kind needs it. Everything is written
 * under a temporary name until it is complete.
 */
#ifndef MUSTER_DATA_SINK_H
#define MUSTER_DATA_SINK_H

#include <muster/records.h>

#include "../lib/image.h"

struct data_sink;

struct data_sink_config {
	const char *creator;
	struct mu_records_info source; /* what the records come from */
	bool raw;                      /* HDF5: pixels, not encoded images */
	struct data_encoding encoding; /* for pixels that must be encoded */
};

/* A sample in the form that a sink wants. */
struct data_sample {
	const struct mu_record *record;
	const char *where;    /* for messages */
	const uint8_t *bytes; /* an encoded image, or pixels (h, w, c) */
	size_t n;
	size_t h, w, c; /* of pixels */
	long label;     /* for kinds that hold classes */
};

/* Has a kind of sink the names of classes? SORTED: if they are in the order of their bytes. */
enum data_sink_names { DATA_NAMES_NONE, DATA_NAMES_ANY, DATA_NAMES_SORTED };

/* What a kind of sink needs: one const table each. */
struct data_sink_ops {
	enum data_sink_names names;
	bool grey;    /* has grey pixels */
	bool pixels;  /* wants pixels, else encoded images */
	bool classes; /* needs one label that is a whole number from 0 on */
	enum mu_status (*open)(struct data_sink *sink, const char *path);
	enum mu_status (*add)(struct data_sink *sink, const struct data_sample *sample);
	/* Frees; commit: everything is there. */
	enum mu_status (*finish)(struct data_sink *sink, bool commit);
};

struct data_sink {
	const struct data_sink_ops *ops;
	struct data_sink_config config;
	void *impl;
	struct data_codec codec;
	struct data_buffer encoded, colour;
	char *path; /* owned */
	size_t n;   /* records so far */
	bool names; /* the source's class names can be those of folders */
};

extern const struct data_sink_ops data_sink_cifar, data_sink_folder, data_sink_h5, data_sink_h5_raw,
	data_sink_idx, data_sink_rec, data_sink_tar;

enum mu_status data_sink_open(struct data_sink **out, const char *path,
			      const struct data_sink_config *config);
/* where: names the record in messages. */
enum mu_status data_sink_add(struct data_sink *sink, const struct mu_record *record,
			     const char *where);
/* Frees the sink. commit: MU_ERR_USAGE if there are no records. */
enum mu_status data_sink_finish(struct data_sink *sink, bool commit);

/* The name of a class for a folder: the source's if these are in the order in which folders are
 * read, else its number with five digits, so that labels stay what they are. */
const char *data_class_name(const struct data_sink *sink, size_t label, char text[16]);
/* ".jpg" or ".png", by the first bytes; ".img" for others. */
const char *data_image_end(const uint8_t *bytes, size_t n);

#endif
