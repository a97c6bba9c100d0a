/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of a page about trainings: HTML with its charts as SVG inside it, so that the file needs
 * no network and no other file.
 */
#ifndef MUSTER_DATA_PAGE_H
#define MUSTER_DATA_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Text with &, <, > and quotes as entities. */
void page_text(FILE *out, const char *text);
/* From the doctype to the page's heading; to the end. */
void page_begin(FILE *out, const char *title);
void page_end(FILE *out);
/* A figure that counts, with its name. */
void page_tile(FILE *out, const char *name, const char *value);

/* A line of a chart; values that are not finite are gaps. */
struct page_line {
	const char *name;
	const double *x, *y;
	size_t n;
	int colour;  /* from 0 on; they repeat */
	bool dashed; /* no points, and not in the legend */
};

/* Axes begin at 0 with from_zero. Nothing is drawn without a finite value. */
void page_chart(FILE *out, const char *title, const char *x_name, const struct page_line *lines,
		size_t n, bool from_zero);

#endif
