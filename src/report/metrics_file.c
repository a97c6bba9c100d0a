/* SPDX-License-Identifier: Apache-2.0 */
/* --metrics-file: see scalars.h. Each line is written at once. */
#include "scalars.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>
#include <muster/storage.h>

struct report_metrics_file {
	FILE *file;
	const char *path; /* the option's */
	bool csv, headed;
	char *head; /* of a .csv that is there; NULL: none, or it has been compared */
};

enum mu_status mu_report_metrics_file_check(const struct conf *v)
{
	enum mu_status st = MU_OK;

	if (v->metrics_file && !mu_stem(v->metrics_file, ".jsonl") &&
	    !mu_stem(v->metrics_file, ".csv"))
		MU_FAIL(MU_ERR_USAGE,
			"--metrics-file %s: its name must end in .jsonl (a JSON object in each "
			"line) or in .csv",
			v->metrics_file);
out:
	return st;
}

static enum mu_status read_head(struct report_metrics_file *f)
{
	enum mu_status st = MU_OK;
	FILE *file;
	size_t room = 0;

	MU_TRY(mu_stream_open(&file, f->path));
	if (getline(&f->head, &room, file) < 0)
		f->headed = false;
	fclose(file);
out:
	return st;
}

enum mu_status mu_report_metrics_file_open(struct report_metrics_file **out, const char *path,
					   bool append)
{
	enum mu_status st = MU_OK;
	struct report_metrics_file *f;

	MU_TRY(MU_ALLOC(*out, 1, "file of metrics"));
	f = *out;
	f->path = path;
	f->csv = mu_stem(path, ".csv") > 0;
	st = mu_stream_append(&f->file, path, append);
	if (st != MU_OK)
		mu_trace_prefix("--metrics-file ");
	MU_TRY(st);
	f->headed = fseek(f->file, 0, SEEK_END) == 0 && ftell(f->file) > 0;
	if (f->csv && f->headed)
		MU_TRY(read_head(f));
out:
	return st;
}

void mu_report_metrics_file_close(struct report_metrics_file *f)
{
	if (f && f->file)
		fclose(f->file);
	if (f)
		free(f->head);
	mu_free(f);
}

static void put_json(FILE *file, const struct report_numbers *r)
{
	struct mu_json j = {.file = file, .flat = 1};

	mu_json_open(&j, NULL, '{');
	mu_json_text(&j, "event", r->event);
	mu_json_number(&j, "epoch", (double)r->epoch);
	mu_json_number(&j, "step", (double)r->step);
	mu_json_number(&j, "time", round(1e3 * r->time) / 1e3);
	for (size_t i = 0; i < r->n; i++)
		if (!isnan(r->values[i]))
			mu_json_number(&j, r->names[i], r->values[i]);
	mu_json_close(&j, '}');
}

static void write_head(char *text, size_t nbytes, const struct report_numbers *r)
{
	size_t n = (size_t)snprintf(text, nbytes, "event,epoch,step,time");

	for (size_t i = 0; i < r->n && n < nbytes; i++)
		n += (size_t)snprintf(text + n, nbytes - n, ",%s", r->names[i]);
	if (n < nbytes)
		snprintf(text + n, nbytes - n, "\n");
}

/* A run that goes on may have other metrics: its rows do not fit under that head. */
static enum mu_status put_head(struct report_metrics_file *f, const struct report_numbers *r)
{
	enum mu_status st = MU_OK;
	char text[64 * SCALAR_MAX];

	write_head(text, sizeof text, r);
	if (!f->headed)
		fputs(text, f->file);
	f->headed = true;
	if (f->head && strcmp(f->head, text) != 0)
		MU_FAIL(MU_ERR_FORMAT, "%s has the columns %.*s, and this run has %.*s", f->path,
			(int)strcspn(f->head, "\r\n"), f->head, (int)strcspn(text, "\n"), text);
	free(f->head);
	f->head = NULL;
out:
	return st;
}

static void put_csv(FILE *file, const struct report_numbers *r)
{
	fprintf(file, "%s,%zu,%zu,%.3f", r->event, r->epoch, r->step, r->time);
	for (size_t i = 0; i < r->n; i++)
		fprintf(file, isnan(r->values[i]) ? "," : ",%.9g", r->values[i]);
	fputc('\n', file);
}

enum mu_status mu_report_metrics_file_put(struct report_metrics_file *f,
					  const struct report_numbers *record)
{
	enum mu_status st = MU_OK;

	if (f->csv)
		MU_TRY(put_head(f, record));
	(f->csv ? put_csv : put_json)(f->file, record);
	if (fflush(f->file) != 0 || ferror(f->file))
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", f->path, strerror(errno));
out:
	return st;
}
