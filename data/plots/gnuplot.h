/* SPDX-License-Identifier: Apache-2.0 */
/* The program gnuplot, which draws what it is told. It need not be there before it is called. */
#ifndef MUSTER_DATA_GNUPLOT_H
#define MUSTER_DATA_GNUPLOT_H

#include <muster/storage.h>

struct gnuplot {
	FILE *in; /* commands go here */
	int pid;
	struct mu_replace replace;
};

/*
 * Start it for a picture of so many points at path, which ends in .svg or .png. MU_ERR_USAGE for
 * another name, MU_ERR_UNSUPPORTED if there is no such program.
 */
enum mu_status gnuplot_begin(struct gnuplot *g, const char *path, int width, int height);
/* No more commands: the picture is at path, or there is an error. */
enum mu_status gnuplot_end(struct gnuplot *g);
/* Without _end nothing is at path. */
void gnuplot_release(struct gnuplot *g);
/* A text, with quotes around it. */
void gnuplot_text(const struct gnuplot *g, const char *text);

#endif
