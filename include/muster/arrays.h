/* SPDX-License-Identifier: Apache-2.0 */
/* arrays: settings of the reader "arrays", of numbers in files such as .npy
 * (mu_input_config.settings). */
#ifndef MUSTER_ARRAYS_H
#define MUSTER_ARRAYS_H

#include <muster/base.h>

MU_BEGIN_C

/* Texts are the caller's. {0}: the targets are in the file of the samples, its last column. */
struct mu_array_settings {
	/* Of the options, arrays_reader.c: files of the targets of each part, NULL: they are in
	 * that of the samples; columns of a .csv file, or arrays of an .npz file, that are targets,
	 * "a,b" or "none", NULL: the last one, array y. */
	const char *label_train, *label_val, *label_columns;
	bool ignores; /* targets equal to `ignored` are of no class */
	size_t ignored;
};

MU_END_C

#endif
