/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records: labelled images, still encoded, from files. One interface reads MXNet's RecordIO files,
 * WebDataset's tar files, Muster's HDF5 data files, folders of images, CIFAR's binary files and IDX
 * files. The sections below it read and write the single formats. Part of storage; not collective.
 *
 * Life cycle: mu_records_open, then mu_records_read from any thread in any order, mu_records_close.
 * Files are not mapped into memory: a file that is truncated or removed while in use causes an
 * error of mu_records_read, not a signal. Files must not change while they are open.
 *
 * Errors name the file, the record, its byte offset, the value found and the value expected.
 * MU_ERR_IO: a file cannot be read, or has changed; MU_ERR_FORMAT: its contents are wrong.
 */
#ifndef MUSTER_RECORDS_H
#define MUSTER_RECORDS_H

#include <muster/base.h>
#include <muster/shape.h>

MU_BEGIN_C

/* ---- one sample ---- */

struct mu_record {
	const uint8_t *data; /* an encoded image (see mu_record_encoding), or raw uint8 pixels (h,
				w, c) */
	size_t n;            /* bytes */
	uint64_t id, id2;    /* id2: RecordIO only, else 0 */
	size_t n_labels;
	const float *labels;
};

/* Memory of one reading thread; it grows. {0} is empty. */
struct mu_record_buffer {
	uint8_t *bytes;
	size_t capacity;
	float *labels;
	size_t labels_capacity;
	/* Set by the caller, a hint: so many records after the next one are read next, in order.
	 * Tar files are then read in large pieces. */
	size_t ahead;
	struct {
		uint64_t of; /* a file */
		size_t at, n;
	} piece; /* of it, in bytes; n 0: none */
};

void mu_record_buffer_release(struct mu_record_buffer *buffer);

enum mu_record_encoding {
	MU_RECORD_UNKNOWN,
	MU_RECORD_JPEG, /* ff d8 ff */
	MU_RECORD_PNG,  /* 89 50 4e 47 0d 0a 1a 0a */
};

enum mu_record_encoding mu_record_encoding(const uint8_t *data, size_t n);

/* ---- what a listing of folders leaves out: counted, for one line ---- */

enum mu_left_kind {
	MU_LEFT_OTHER,   /* a file of another kind, by its name */
	MU_LEFT_HIDDEN,  /* a name that begins with a dot */
	MU_LEFT_OUTSIDE, /* an image beside the folders of classes */
	MU_LEFT_FOLDER,  /* a folder that is not looked into */
	MU_LEFT_EMPTY,   /* a class without images: it keeps its label */
	MU_LEFT_KINDS,
};

/* {0}: nothing. */
struct mu_left_out {
	size_t n[MU_LEFT_KINDS];
	char first[MU_LEFT_KINDS][64];
};

/* Is the file hidden, or in a hidden folder? Tar files of a Mac have "._0001.jpg" beside each
 * image. */
bool mu_left_hidden(const char *path);
void mu_left_out_add(struct mu_left_out *left, enum mu_left_kind kind, const char *name);
/* "3 files of other kinds (the first is ant/x.webp), 1 hidden file or folder (.x.jpg)"; "":
 * nothing. Returns text. */
const char *mu_left_out_text(const struct mu_left_out *left, char *text, size_t nbytes);

enum { MU_LEFT_OUT_BYTES = 1024 }; /* of a text */

/* ---- records of any kind of file ---- */

enum mu_record_kind { MU_RECORD_ENCODED, MU_RECORD_RAW };

struct mu_records_info {
	size_t n; /* records */
	enum mu_record_kind kind;
	struct mu_shape shape; /* (c, h, w) of raw images, else without dimensions */
	size_t classes;     /* number of class_names; without names, from the config; 0: unknown */
	size_t label_width; /* of the first record; equal for all records, except in .rec files of
			       mixed widths */
	const char *format; /* "RecordIO", "tar file", "HDF5", "folder", "CIFAR-10", "CIFAR-100",
			       "IDX" */
	const char *const *class_names; /* `classes` names, or NULL */
	bool unlabelled;                /* labels are 0 and mean nothing */
	struct mu_left_out left_out;    /* of folders and tar files */
	bool separate;                  /* each record is a file of its own */
	bool has_checksum;
	uint32_t checksum; /* CRC-32 of the data of all records in order, if has_checksum */
};

struct mu_records_config {
	size_t classes;      /* labels must be integers below this; 0: any labels */
	size_t label_width;  /* required labels per record; 0: any number */
	const char *indexes; /* .idx files of the .rec files, "a.idx;b.idx"; NULL: X.idx beside
				X.rec if it exists; "": none, scan for record headers */
	bool unlabelled;     /* images without labels are no error */
};

struct mu_records;

/*
 * paths: "a.rec;b.rec" (several files as one), also as "{a,b}.rec"; "train-{000..127}.tar" (as
 * WebDataset has them: consecutive members 1.jpg and 1.cls); "x.h5"; a folder with one folder of
 * .jpg, .jpeg and .png files per class, also in folders below (labels number the sorted folders;
 * records are sorted by class, folder and file, as by torchvision's ImageFolder);
 * "data_batch_1.bin;data_batch_2.bin" (CIFAR); or an IDX file of images, with its labels in
 * the file whose name has "labels-idx1" instead of "images-idx3". With config->unlabelled also a
 * folder of images without folders, and "x.lst", paths of images, one a line. The contents
 * determine the format. config may be NULL. Records of .rec files are in file order, with or
 * without an index. Labels of .rec files are checked when a record is read, all others on opening.
 */
enum mu_status mu_records_open(struct mu_records **out, const char *paths,
			       const struct mu_records_config *config);
void mu_records_close(struct mu_records *r);
/* The pointers in *info are valid until r is closed. */
void mu_records_info(const struct mu_records *r, struct mu_records_info *info);
/* Any thread, any order. The pointers in *out are valid until the next use of the buffer. */
enum mu_status mu_records_read(const struct mu_records *r, size_t i,
			       struct mu_record_buffer *buffer, struct mu_record *out);
/* An upper bound of the bytes of record i. Reads no data; 0 if a file is gone. */
size_t mu_records_bound(const struct mu_records *r, size_t i);
/* Add to a hash what is known without reading records: labels, names and sizes, where they are
 * stored apart; and when the files changed. Reads no data. */
void mu_records_hash_files(const struct mu_records *r, uint64_t *listing, uint64_t *times);
/* Write "train.rec, record 17 (key 93) at byte 52344" into text, for messages; returns text. Reads
 * no records. */
const char *mu_records_where(const struct mu_records *r, size_t i, char *text, size_t nbytes);
/* MU_ERR_IO if the size or modification time of a file has changed since it was opened. Cheap: call
 * once per epoch. */
enum mu_status mu_records_unchanged(const struct mu_records *r);
/* crc: CRC-32 of the data of all records in order. MU_ERR_FORMAT: the file has another one. */
enum mu_status mu_records_check_sum(const struct mu_records *r, uint32_t crc);

/*
 * ---- RecordIO: the records of one .rec file, with any contents. ----
 *
 * A record is, in little-endian 4-byte words: the magic 0xced7230a; (part << 29) | length, with
 * part 0 = whole, 1 = first, 2 = middle, 3 = last; the payload, padded with zeros to 4 bytes. A
 * payload that contains the magic at a multiple of 4 is cut there: the writer drops the magic
 * between two parts and the reader restores it. Index: lines of text "key <tab> byte offset of the
 * record".
 */

enum { MU_RECORDIO_PAYLOAD_MAX = (1 << 29) - 1 }; /* bytes */

struct mu_recordio;

/* index: path of the .idx file; NULL: the file beside path, if it exists; "": none. Without an
 * index the file is scanned for record headers. */
enum mu_status mu_recordio_open(struct mu_recordio **out, const char *path, const char *index);
void mu_recordio_close(struct mu_recordio *r);
size_t mu_recordio_count(const struct mu_recordio *r);
/* Key of record i in the index; i without an index. */
uint64_t mu_recordio_key(const struct mu_recordio *r, size_t i);
/* Byte offset of record i. */
size_t mu_recordio_at(const struct mu_recordio *r, size_t i);
/* Any thread. The payload is in the buffer; *payload is aligned to 4 bytes. */
enum mu_status mu_recordio_read(const struct mu_recordio *r, size_t i,
				struct mu_record_buffer *buffer, const uint8_t **payload,
				size_t *n);
enum mu_status mu_recordio_unchanged(const struct mu_recordio *r);

struct mu_recordio_writer;

/* Written under temporary names; finish with commit = true syncs and renames both files. index
 * NULL: none is written. */
enum mu_status mu_recordio_create(struct mu_recordio_writer **out, const char *path,
				  const char *index);
/* MU_ERR_ARGUMENT: a payload larger than MU_RECORDIO_PAYLOAD_MAX. */
enum mu_status mu_recordio_write(struct mu_recordio_writer *w, uint64_t key, const uint8_t *payload,
				 size_t n);
enum mu_status mu_recordio_finish(struct mu_recordio_writer *w, bool commit);
/* Write an index with keys 0, 1, ... for a .rec file; *n is the number of records. */
enum mu_status mu_recordio_index(const char *path, const char *index, size_t *n);

/*
 * An image in a payload: u32 flag, f32 label, u64 id, u64 id2, then `flag` labels of f32 (with flag
 * 0 the only label is `label`), then the encoded image. unpack: out->data points into payload,
 * out->labels into the buffer; `what` names the record in errors. pack: *payload points into the
 * buffer; one label is written as flag 0, as by MXNet's im2rec.
 */
enum mu_status mu_record_unpack(const uint8_t *payload, size_t n, struct mu_record_buffer *buffer,
				struct mu_record *out, const char *what);
enum mu_status mu_record_pack(const struct mu_record *record, struct mu_record_buffer *buffer,
			      const uint8_t **payload, size_t *n);

/* ---- .lst files: lines of text "id <tab> label ... <tab> path", at least one label each. ---- */

struct mu_image_list_line {
	uint64_t id;
	size_t n_labels;
	const float *labels;
	const char *path; /* relative to a folder that the list does not name */
};

struct mu_image_list {
	size_t n;
	struct mu_image_list_line *line; /* owned, with all that it points to */
	char *text;
	float *labels;
};

/*
 * Names of the classes of x.rec, in the text file x.classes beside it: a title, then a line per
 * class.
 */
struct mu_class_names {
	size_t n;          /* 0: there is no such file */
	const char **name; /* into text; owned */
	char *text;
};

enum mu_status mu_class_names_read(struct mu_class_names *names, const char *rec);
/* n 0, or a name that is no line: removes the file, if it is of this form. */
enum mu_status mu_class_names_write(const char *rec, const char *const *name, size_t n);
void mu_class_names_release(struct mu_class_names *names);

/* Errors name the line: also a label above 2^24 that float32 does not hold. n 0: the list is
 * empty. */
enum mu_status mu_image_list_read(struct mu_image_list *list, const char *path);
void mu_image_list_release(struct mu_image_list *list);

/*
 * ---- HDF5 data files. ----
 *
 *	/images   uint8: encoded images back to back, (bytes), or raw pixels, (n, h, w, c)
 *	/offsets  uint64 (n + 1), of encoded images: image i is bytes [offsets[i], offsets[i + 1])
 *	/labels   float32 (n, label_width)
 *	/ids      uint64 (n)
 *	/classes  strings of fixed length (classes); optional
 *
 * Attributes of the file: format = "muster-data", version = 1, kind = "encoded" or "raw", creator,
 * count = n, checksum = "CRC-32 (zlib) of the bytes of each array, little-endian". Of each array:
 * units, checksum = "crc32:89abcdef". Readers need format, version and the arrays; kind, count and
 * checksums must be correct where they exist. The checksum of the images is that of whoever reads
 * all of them (recinfo, h5rec); every opening checks the others.
 *
 * All arrays are contiguous, and arrays of 1 MiB and more begin at a multiple of 1 MiB, the usual
 * stripe of a parallel file system. HDF5 only locates the images; any thread then reads a record by
 * offset in one read. Only the thread that opens, writes or finishes a file calls HDF5. No times
 * are stored: equal records give equal bytes.
 */

struct mu_data_file_config {
	enum mu_record_kind kind;
	struct mu_shape shape;          /* (c, h, w) of raw images */
	const char *const *class_names; /* NULL: none */
	size_t classes;                 /* number of class_names */
	const char *creator;            /* the program, "im2rec" */
};

struct mu_data_writer;

/*
 * Written under a temporary name; MU_ERR_UNSUPPORTED in a build without HDF5. The images are
 * collected in an unnamed file in the same folder until finish, because their total size is not
 * known.
 */
enum mu_status mu_data_file_create(struct mu_data_writer **out, const char *path,
				   const struct mu_data_file_config *config);
/* MU_ERR_ARGUMENT: another number of labels than the first record's, or raw images of another size
 * than shape. id2 is not stored. */
enum mu_status mu_data_file_write(struct mu_data_writer *w, const struct mu_record *record);
enum mu_status mu_data_file_finish(struct mu_data_writer *w, bool commit);

MU_END_C

#endif
