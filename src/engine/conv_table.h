/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithm of each convolution. */
#ifndef ENGINE_CONV_TABLE_H
#define ENGINE_CONV_TABLE_H

#include "net/plan.h"
#include "conf/options.h"

struct mu_engine;

/* ---- conv_table.c ---- */

#define TRAIN_CONV_ATTRIBUTE "convolutions" /* of a checkpoint: the text of its table */
enum { TRAIN_CONV_BYTES = 60000, TRAIN_CONV_TEXT = 256, TRAIN_CONV_PATH = 1024 };

/* The same on all ranks, except the pointer to choices. */
struct engine_conv {
	char path[TRAIN_CONV_PATH];  /* of the file */
	char text[TRAIN_CONV_BYTES]; /* "": there is no table */
	bool saved;                  /* from a checkpoint */
	char network[TRAIN_CONV_TEXT], device[TRAIN_CONV_TEXT], measured[TRAIN_CONV_TEXT];
	uint64_t hash;
	struct mu_convolution_choice *choices;
	size_t n;
};

/* Is it the text of a table? */
bool mu_engine_conv_is_text(const char *text);
/* Read the file of --conv-table: sets path and text. */
enum mu_status mu_engine_conv_read(struct engine_conv *c, const char *path);
/* All ranks get worker 0's path and text (e->conv), and parse them. Collective over world. */
enum mu_status mu_engine_conv_share(struct mu_engine *e);
void mu_engine_conv_close(struct mu_engine *e);
/* Set the choices of an open device, before its first plan. A checkpoint's table that was measured
 * with another library or instruction set is dropped, with a warning: a run may resume on another
 * machine. */
void mu_engine_conv_set(struct mu_engine *e, struct mu_device *device);
/* MU_ERR_FORMAT: the table does not match the network, library or instruction set of e->plan.
 * shape: of a sample. Not collective. */
enum mu_status mu_engine_conv_check(const struct mu_engine *e, const struct mu_shape *shape);

struct engine_conv_net {
	const char *name;             /* of the network */
	const struct mu_shape *shape; /* of a sample */
	const char *path;             /* of the table */
};
/* Replace the file net->path. */
enum mu_status mu_engine_conv_write(const struct mu_plan *plan, const struct mu_device *device,
				    const struct engine_conv_net *net,
				    const struct mu_convolution_choice *choices, size_t n);

#endif
