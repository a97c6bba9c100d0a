/* SPDX-License-Identifier: Apache-2.0 */
/* Which algorithm computes which convolution. */
#ifndef ENGINE_CONV_TABLE_H
#define ENGINE_CONV_TABLE_H

#include <muster/device.h>
#include <muster/net.h>

#include "conf/options.h"

struct mu_engine;

/* ---- conv_table.c: which algorithm computes which convolution ---- */

#define TRAIN_CONV_ATTRIBUTE "convolutions" /* of a checkpoint: the table's text */
enum { TRAIN_CONV_BYTES = 60000, TRAIN_CONV_TEXT = 256, TRAIN_CONV_PATH = 1024 };

/* Alike on all ranks but for choices, which are each rank's own. */
struct engine_conv {
	char path[TRAIN_CONV_PATH];  /* where it comes from */
	char text[TRAIN_CONV_BYTES]; /* "": there is no table */
	bool saved;                  /* it is a checkpoint's */
	char network[TRAIN_CONV_TEXT], device[TRAIN_CONV_TEXT], measured[TRAIN_CONV_TEXT];
	uint64_t hash;
	struct mu_convolution_choice *choices;
	size_t n;
};

/* Is it the text of a table? */
bool mu_engine_conv_is_text(const char *text);
/* path and text, from the file of --conv-table. */
enum mu_status mu_engine_conv_read(struct engine_conv *c, const char *path);
/* All ranks get worker 0's path and text (e->conv), and parse them. Collective over world. */
enum mu_status mu_engine_conv_share(struct mu_engine *e);
void mu_engine_conv_close(struct mu_engine *e);
/* On a device of its own that is open, before its first plan. A checkpoint's table that was
 * measured on another library or instruction set is dropped, with a warning: a run may go on
 * elsewhere. */
void mu_engine_conv_ask(struct mu_engine *e, struct mu_device *device);
/* MU_ERR_FORMAT: the table is of another network, library or instruction set than the plan of this
 * e, whose samples have this shape (c, h, w). Not collective. */
enum mu_status mu_engine_conv_check(const struct mu_engine *e, const size_t *shape);

struct engine_conv_net {
	const char *name;    /* of the network */
	const size_t *shape; /* of a sample, (c, h, w) */
	const char *path;    /* of the table */
};
/* Replaces the file. */
enum mu_status mu_engine_conv_write(const struct mu_plan *plan, const struct mu_device *device,
				    const struct engine_conv_net *net,
				    const struct mu_convolution_choice *choices, size_t n);

#endif
