/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of files with labelled images: one file and one const table each. A new kind is one
 * line here and one line in the list in records.c. */
#ifndef MUSTER_STORAGE_RECORDS_H
#define MUSTER_STORAGE_RECORDS_H

#include <muster/records.h>

/* The start of a list's first path, for the detection of its kind. */
struct mu_records_probe {
	const char *path;
	bool folder;
	uint8_t head[16];
	size_t n;      /* bytes of head that were read */
	size_t nbytes; /* of the file */
};

struct mu_records_ops {
	const char *files; /* for messages: the files of this kind */
	bool several;      /* more than one path */
	bool (*holds)(const struct mu_records_probe *probe);
	/* Set r->impl, which close frees even after an error, and r->info. */
	enum mu_status (*open)(struct mu_records *r, const char *paths);
	void (*close)(struct mu_records *r);
	/* i < n. Labels are checked by the caller. */
	enum mu_status (*read)(const struct mu_records *r, size_t i,
			       struct mu_record_buffer *buffer, struct mu_record *out);
	/* NULL: the bytes of raw pixels. See mu_records_bound. */
	size_t (*bound)(const struct mu_records *r, size_t i);
	void (*where)(const struct mu_records *r, size_t i, char *text, size_t nbytes);
	/* NULL: files are opened for each read, whatever they hold by then. */
	enum mu_status (*unchanged)(const struct mu_records *r);
	/* NULL: nothing is known but the records. See mu_records_hash_files. */
	void (*hash_files)(const struct mu_records *r, uint64_t *listing, uint64_t *times);
};

struct mu_records {
	const struct mu_records_ops *ops;
	struct mu_records_config config;
	struct mu_records_info info;
	void *impl;
};

extern const struct mu_records_ops mu_records_cifar;
extern const struct mu_records_ops mu_records_data_file;
extern const struct mu_records_ops mu_records_folder;
extern const struct mu_records_ops mu_records_idx;
extern const struct mu_records_ops mu_records_image_files;
extern const struct mu_records_ops mu_records_recordio;
extern const struct mu_records_ops mu_records_tar;

/* Check the labels of record i against the config. */
enum mu_status mu_records_check_labels(const struct mu_records *r, size_t i, const float *labels,
				       size_t n);

/* The paths of a list, separated by ';'; "{000..127}" and "{a,b}" in one are several. */
struct mu_path_list {
	char **path; /* owned, one block */
	size_t n;
};

/* MU_ERR_USAGE: an empty path; `what` names the path in the message. */
enum mu_status mu_path_list_split(struct mu_path_list *list, const char *paths, const char *what);
void mu_path_list_release(struct mu_path_list *list);

#endif
