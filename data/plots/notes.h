/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the lines of a log (log_lines.h) say of a run beside its results: how it began, the speed
 * during it, where the time went, warnings, and how it ended. MXNet's logs have fewer of them.
 */
#ifndef MUSTER_DATA_NOTES_H
#define MUSTER_DATA_NOTES_H

#include "log_lines.h"

enum { NOTES_PHASES = 16, NOTES_LINES = 64, NOTES_LAST = 5, NOTES_TEXT = 512 };

/* A line of speed: samples/s at a place of the run, in epochs if the log says how many steps one
 * has, else by count. */
struct notes_speed {
	double at, speed, comm; /* comm: part of the time, in percent; below 0: not in the log */
};

struct notes_phase {
	char name[32];
	double seconds;
};

/* Lines, each one without time and rank; the first ones, or the last ones, of their kind. */
struct notes_lines {
	char (*text)[NOTES_TEXT]; /* owned */
	size_t n, seen;           /* kept, met */
};

struct notes {
	char *settings; /* "network=lenet, ..."; NULL: not in the log; owned */
	struct notes_lines start, nodes, warnings, end;
	struct notes_speed *speeds; /* owned */
	size_t n_speeds, room;
	struct notes_phase phases[NOTES_PHASES]; /* of worker 0 */
	size_t n_phases;
	double steps; /* in an epoch; 0: not in the log */
	double speed; /* samples/s of all the training; 0: not in the log */
	double joules; /* of the run, without those before it; 0: not in the log */
	double memory; /* MB, the most that a rank had; 0: not in the log */
	char exposed[NOTES_TEXT];
	bool trained;          /* the log has the line of the end of a training */
	char stop[NOTES_TEXT]; /* what ended it before: an error, else a signal; "": nothing */
};

/* {0} at first. */
enum mu_status notes_add(struct notes *notes, const struct log_line *line);
void notes_release(struct notes *notes);

#endif
