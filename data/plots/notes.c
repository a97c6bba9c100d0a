/* SPDX-License-Identifier: Apache-2.0 */
/* What a log says beside results: see notes.h. */
#include "notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Of too many lines the first `most` stay, or with `last` the last ones. */
static enum mu_status add_text(struct notes_lines *lines, const char *text, size_t most, bool last)
{
	enum mu_status st = MU_OK;

	lines->seen++;
	if (!lines->text)
		MU_TRY(MU_ALLOC(lines->text, NOTES_LINES, "lines of a log"));
	if (lines->n == most) {
		if (!last)
			goto out;
		memmove(lines->text, lines->text + 1, (most - 1) * sizeof *lines->text);
		lines->n--;
	}
	snprintf(lines->text[lines->n++], NOTES_TEXT, "%s", text);
out:
	return st;
}

/* "Epoch[1] Batch [0-20]	Speed: 1706.99 samples/sec	accuracy=0.86	comm=13.3%" */
static enum mu_status add_speed(struct notes *notes, const struct log_line *line)
{
	enum mu_status st = MU_OK;
	const char *speed = strstr(line->text, "Speed: "), *comm = strstr(line->text, "comm=");
	const char *batch = strstr(line->text, "Batch [");
	struct notes_speed s = {.comm = -1};
	long last = 0;

	if (sscanf(speed, "Speed: %lf", &s.speed) != 1)
		goto out;
	if (batch)
		sscanf(batch, "Batch [%ld-%ld]", &(long){0}, &last);
	if (comm)
		sscanf(comm, "comm=%lf", &s.comm);
	s.at = notes->steps > 0 ? (double)line->epoch + (double)last / notes->steps
				: (double)notes->n_speeds;
	if (notes->n_speeds == notes->room) {
		const size_t room = notes->room ? 2 * notes->room : 256;
		struct notes_speed *grown = realloc(notes->speeds, room * sizeof *grown);

		if (!grown)
			MU_FAIL(MU_ERR_MEMORY, "no memory for %zu lines of speed", room);
		notes->speeds = grown;
		notes->room = room;
	}
	notes->speeds[notes->n_speeds++] = s;
out:
	return st;
}

/* "data 0.003, forward 1.100, ..." */
static void read_phases(struct notes *notes, const char *text)
{
	struct notes_phase p;
	int n;

	notes->n_phases = 0;
	while (notes->n_phases < NOTES_PHASES &&
	       sscanf(text, " %31[a-z -]%lf%n", p.name, &p.seconds, &n) == 2) {
		p.name[strcspn(p.name, " ")] = '\0';
		notes->phases[notes->n_phases++] = p;
		text += n;
		if (*text == ',')
			text++;
	}
}

/* A line that is neither of speed nor of results. */
static enum mu_status add_other(struct notes *notes, const char *text)
{
	static const char settings[] = "start with arguments ", phases[] = "worker 0's seconds: ";
	const char *steps = strstr(text, " samples in ");
	enum mu_status st = MU_OK;
	double v;

	if (steps && sscanf(steps, " samples in %lf steps an epoch", &v) == 1)
		notes->steps = v;
	if (sscanf(text, "trained %*f samples in %*f s: %lf samples/sec", &v) == 1) {
		notes->speed = v;
		notes->trained = true;
	}
	if (sscanf(text, "peak memory: at most %lf MB", &v) == 1)
		notes->memory = v;
	if (sscanf(text, "energy: %lf J", &v) == 1)
		notes->joules = v;
	if (strstr(text, "error: ") ||
	    (strstr(text, "training ends") && !strstr(notes->stop, "error: ")))
		snprintf(notes->stop, sizeof notes->stop, "%s", text);
	if (begins(text, settings)) {
		free(notes->settings);
		notes->settings = strdup(text + sizeof settings - 1);
		if (!notes->settings)
			MU_FAIL(MU_ERR_MEMORY, "no memory for a line of a log");
	} else if (begins(text, phases)) {
		read_phases(notes, text + sizeof phases - 1);
	} else if (begins(text, "exposed communication")) {
		snprintf(notes->exposed, sizeof notes->exposed, "%s", text);
	} else if (strstr(text, "warning: ") || strstr(text, "error: ")) {
		MU_TRY(add_text(&notes->warnings, text, NOTES_LAST, true));
	} else if (begins(text, "node ")) {
		MU_TRY(add_text(&notes->nodes, text, NOTES_LINES, false));
	} else if (*text && notes->n_speeds == 0 && !begins(text, "Saved") &&
		   !begins(text, "Epoch[")) {
		MU_TRY(add_text(&notes->start, text, NOTES_LINES / 2, false));
	}
out:
	return st;
}

enum mu_status notes_add(struct notes *notes, const struct log_line *line)
{
	enum mu_status st = MU_OK;

	if (line->kind == LOG_SPEED)
		MU_TRY(add_speed(notes, line));
	else if (line->kind == LOG_OTHER)
		MU_TRY(add_other(notes, line->text));
	if (*line->text && !begins(line->text, "  "))
		MU_TRY(add_text(&notes->end, line->text, NOTES_LAST, true));
out:
	return st;
}

void notes_release(struct notes *notes)
{
	free(notes->settings);
	free(notes->speeds);
	mu_free(notes->start.text);
	mu_free(notes->nodes.text);
	mu_free(notes->warnings.text);
	mu_free(notes->end.text);
	*notes = (struct notes){0};
}
