/* SPDX-License-Identifier: Apache-2.0 */
/* What a log says beside results: see notes.h. */
#include "notes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <muster/storage.h>

/* The text of a line, after time and rank: "2026-11-22 10:00:00,123 Node[0] text". */
static char *text_of(char *line)
{
	char *node = strstr(line, "Node["), *end;

	line[strcspn(line, "\r\n")] = '\0';
	if (!node || node - line > 32)
		return line;
	end = strstr(node, "] ");
	return end ? end + 2 : line;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Of too many lines the first `most` stay, or with `last` the last ones. */
static enum mu_status add_line(struct notes_lines *lines, const char *text, size_t most, bool last)
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
static enum mu_status read_speed(struct notes *notes, const char *text)
{
	enum mu_status st = MU_OK;
	const char *speed = strstr(text, "Speed: "), *comm = strstr(text, "comm=");
	const char *batch = strstr(text, "Batch [");
	struct notes_speed s = {.comm = -1};
	long epoch, last = 0;

	if (sscanf(text, "Epoch[%ld]", &epoch) != 1 || sscanf(speed, "Speed: %lf", &s.speed) != 1)
		goto out;
	if (batch)
		sscanf(batch, "Batch [%ld-%ld]", &(long){0}, &last);
	if (comm)
		sscanf(comm, "comm=%lf", &s.comm);
	s.at = notes->steps > 0 ? (double)epoch + (double)last / notes->steps
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

static enum mu_status read_line(struct notes *notes, const char *text)
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
	if (strstr(text, "error: ") ||
	    (strstr(text, "training ends") && !strstr(notes->stop, "error: ")))
		snprintf(notes->stop, sizeof notes->stop, "%s", text);
	if (begins(text, settings)) {
		free(notes->settings);
		notes->settings = strdup(text + sizeof settings - 1);
		if (!notes->settings)
			MU_FAIL(MU_ERR_MEMORY, "no memory for a line of a log");
	} else if (begins(text, "Epoch[")) {
		if (strstr(text, "Speed: "))
			MU_TRY(read_speed(notes, text));
	} else if (begins(text, phases)) {
		read_phases(notes, text + sizeof phases - 1);
	} else if (begins(text, "exposed communication")) {
		snprintf(notes->exposed, sizeof notes->exposed, "%s", text);
	} else if (strstr(text, "warning: ") || strstr(text, "error: ")) {
		MU_TRY(add_line(&notes->warnings, text, NOTES_LAST, true));
	} else if (begins(text, "node ")) {
		MU_TRY(add_line(&notes->nodes, text, NOTES_LINES, false));
	} else if (*text && notes->n_speeds == 0 && !begins(text, "Saved")) {
		MU_TRY(add_line(&notes->start, text, NOTES_LINES / 2, false));
	}
	if (*text && !begins(text, "  "))
		MU_TRY(add_line(&notes->end, text, NOTES_LAST, true));
out:
	return st;
}

enum mu_status notes_read(struct notes *notes, const char *path)
{
	enum mu_status st = MU_OK;
	FILE *file;
	char *line = NULL;
	size_t room = 0;

	MU_TRY(mu_stream_open(&file, path));
	while (getline(&line, &room, file) >= 0)
		MU_TRY(read_line(notes, text_of(line)));
	if (ferror(file))
		MU_FAIL(MU_ERR_IO, "%s: %s", path, strerror(errno));
out:
	free(line);
	if (file)
		fclose(file);
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
