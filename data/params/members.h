/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of a config.json: a table says of each what it is: told to the network here, known from
 * the arrays, of one value, or without effect on what the model computes. Any other member is
 * refused, for it may have an effect.
 */
#ifndef MUSTER_DATA_MEMBERS_H
#define MUSTER_DATA_MEMBERS_H

#include "names.h"

enum how {
	HARMLESS, /* nothing follows from it */
	TOLD,     /* of the images, and not taken over: one note tells all of them */
	ONE_OF,   /* one of `words` */
	ROUNDING, /* another value than `words` changes the rounding alone */
	SIZE,     /* the arrays' */
	INNER,    /* units within a block: four times the width, or null */
	NUMBER,   /* of struct model_config */
	IMAGE, /* one side, or two */
	PATCH,
	TIED,
	MEAN, /* of pixels from 0 to 1 */
	STD,
};

struct member {
	const char *names;
	enum how how;
	const char *words;
	size_t offset; /* of SIZE and NUMBER */
};

/* The row of a member of a model of this family; NULL: it is not known. */
const struct member *model_member(const struct name_family *family, const char *name);

#endif
