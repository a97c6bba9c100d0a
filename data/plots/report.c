/* SPDX-License-Identifier: Apache-2.0 */
/* A page about runs, out of their logs: see report.h. */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <muster/metrics.h>
#include <muster/storage.h>

#include "page.h"

struct report {
	const struct log_set *set;
	const struct notes *notes; /* of every log */
	FILE *out;
};

/* The last value of a cell, and the best: as the metric's row says, else the lowest. */
static bool last_and_best(const struct log_table *table, const char *metric, size_t cell,
			  double *last, double *best)
{
	const struct mu_metric *row = mu_metric_printed(metric);
	const bool highest = row ? row->better > 0
				 : strstr(metric, "accuracy") || strstr(metric, "top");
	bool found = false;
	double v;

	for (size_t i = 0; i < table->n; i++)
		if (log_table_value(&table->rows[i], cell, &v)) {
			*last = v;
			*best = !found ? v : highest ? fmax(*best, v) : fmin(*best, v);
			found = true;
		}
	return found;
}

/* As the log says, else the harmonic mean of its lines of speed. */
static double mean_speed(const struct notes *notes)
{
	double seconds_a_sample = 0;

	if (notes->speed > 0)
		return notes->speed;
	for (size_t i = 0; i < notes->n_speeds; i++)
		seconds_a_sample += 1 / notes->speeds[i].speed;
	return notes->n_speeds ? (double)notes->n_speeds / seconds_a_sample : 0;
}

/* How a run ended, in a line. Logs of other programs do not say it. */
static const char *ending(const struct notes *notes)
{
	if (*notes->stop)
		return notes->stop;
	if (notes->trained)
		return "Trained to its last epoch.";
	return notes->nodes.n ? "The log stops before the training's end: the run goes on, or was "
				"killed."
			      : "";
}

static void put_tiles(const struct report *r, size_t t)
{
	const struct log_table *table = &r->set->tables[t];
	const struct log_metrics *m = &r->set->metrics;
	const double speed = mean_speed(&r->notes[t]);
	double last = 0, best = 0, seconds = 0, v;
	char name[2 * LOG_NAME_BYTES], value[64];

	fputs("<div class=\"tiles\">\n", r->out);
	for (size_t i = 0; i < m->n; i++) {
		const bool valid =
			last_and_best(table, m->names[i], log_metrics_cell(i), &last, &best);

		if (!valid &&
		    !last_and_best(table, m->names[i], log_metrics_cell(i) - 1, &last, &best))
			continue;
		snprintf(name, sizeof name, "%s %s, last", valid ? "validation" : "training",
			 m->names[i]);
		snprintf(value, sizeof value, "%.5g", last);
		page_tile(r->out, name, value);
		snprintf(name, sizeof name, "%s %s, best", valid ? "validation" : "training",
			 m->names[i]);
		snprintf(value, sizeof value, "%.5g", best);
		page_tile(r->out, name, value);
	}
	for (size_t i = 0; i < table->n; i++)
		if (log_table_value(&table->rows[i], 2 * m->n, &v))
			seconds += v;
	snprintf(value, sizeof value, "%zu", table->n);
	page_tile(r->out, "epochs", value);
	snprintf(value, sizeof value, "%.4g s", seconds);
	page_tile(r->out, "time of training", value);
	snprintf(value, sizeof value, "%.0f", speed);
	if (speed > 0)
		page_tile(r->out, "samples/s", value);
	snprintf(value, sizeof value, "%.0f MB", r->notes[t].memory);
	if (r->notes[t].memory > 0)
		page_tile(r->out, "memory, of the rank with most", value);
	snprintf(value, sizeof value, "%.4g kJ, %.4g kWh", 1e-3 * r->notes[t].joules,
		 r->notes[t].joules / 3.6e6);
	if (r->notes[t].joules > 0)
		page_tile(r->out, "energy", value);
	fputs("</div>\n<p>", r->out);
	page_text(r->out, ending(&r->notes[t]));
	fputs("</p>\n", r->out);
}

/* The value of the setting of this name, its end, or NULL. */
static const char *setting(const char *settings, const char *name, size_t len, const char **end)
{
	while (settings && *settings) {
		const char *next = strstr(settings, ", ");

		*end = next ? next : settings + strlen(settings);
		if (strncmp(settings, name, len) == 0 && settings[len] == '=')
			return settings + len + 1;
		settings = next ? next + 2 : NULL;
	}
	return NULL;
}

static void put_setting(const struct report *r, size_t t, const char *name, size_t len)
{
	const char *end, *value = setting(r->notes[t].settings, name, len, &end);
	char text[NOTES_TEXT] = "";

	if (value)
		snprintf(text, sizeof text, "%.*s", (int)(end - value), value);
	fputs("<td>", r->out);
	page_text(r->out, text);
	fputs("</td>", r->out);
}

/* Whether a later run, if its log has settings, has another value than the first. */
static bool differs(const struct report *r, const char *name, size_t len)
{
	const char *end, *end0, *v0 = setting(r->notes[0].settings, name, len, &end0), *v;

	for (size_t t = 1; t < r->set->n; t++) {
		if (!r->notes[t].settings)
			continue;
		v = setting(r->notes[t].settings, name, len, &end);
		if (!v != !v0 ||
		    (v && (end - v != end0 - v0 || strncmp(v, v0, (size_t)(end - v)) != 0)))
			return true;
	}
	return false;
}

/* Settings of which the runs have different values, by the names that the first run's log has. */
static void put_differences(const struct report *r)
{
	const char *name = r->notes[0].settings, *next;
	char text[256];
	bool any = false;

	for (; r->set->n > 1 && name && *name; name = next ? next + 2 : NULL) {
		const size_t len = strcspn(name, "=,");

		next = strstr(name, ", ");
		if (name[len] != '=' || !differs(r, name, len))
			continue;
		if (!any) {
			fputs("<h2>Settings that differ</h2>\n<table>\n<tr>"
			      "<th scope=\"col\">Setting</th>",
			      r->out);
			for (size_t t = 0; t < r->set->n; t++) {
				fputs("<th scope=\"col\">", r->out);
				page_text(r->out,
					  log_name(r->set->names[t], text, sizeof text));
				fputs("</th>", r->out);
			}
			fputs("</tr>\n", r->out);
		}
		any = true;
		snprintf(text, sizeof text, "%.*s", (int)len, name);
		fputs("<tr><td>", r->out);
		page_text(r->out, text);
		fputs("</td>", r->out);
		for (size_t t = 0; t < r->set->n; t++)
			put_setting(r, t, name, len);
		fputs("</tr>\n", r->out);
	}
	if (any)
		fputs("</table>\n", r->out);
}

/* Where worker 0's time went, as a bar and a table. */
static void put_phases(const struct report *r, const struct notes *notes)
{
	double sum = 0;

	for (size_t i = 0; i < notes->n_phases; i++)
		sum += notes->phases[i].seconds;
	if (!(sum > 0))
		return;
	fputs("<h2>Where the time went</h2>\n<div class=\"bar\">", r->out);
	for (size_t i = 0; i < notes->n_phases; i++)
		fprintf(r->out,
			"<span style=\"flex:%.4f;background:var(--c%zu)\" title=\"%s\"></span>",
			notes->phases[i].seconds / sum, i % 6, notes->phases[i].name);
	fputs("</div>\n<table>\n<tr><th scope=\"col\">Part</th><th scope=\"col\">Time</th>"
	      "<th scope=\"col\">Share</th></tr>\n",
	      r->out);
	for (size_t i = 0; i < notes->n_phases; i++) {
		fprintf(r->out,
			"<tr><td class=\"legend\"><i style=\"display:inline-block;width:.8rem;"
			"height:.8rem;background:var(--c%zu)\"></i> ",
			i % 6);
		page_text(r->out, notes->phases[i].name);
		fprintf(r->out, "</td><td>%.3f s</td><td>%.1f %%</td></tr>\n",
			notes->phases[i].seconds, 100 * notes->phases[i].seconds / sum);
	}
	fputs("</table>\n<p class=\"soft\">Seconds of worker 0; push and pull are communication "
	      "that computation does not hide.</p>\n",
	      r->out);
	if (*notes->exposed) {
		fputs("<p class=\"soft\">", r->out);
		page_text(r->out, notes->exposed);
		fputs("</p>\n", r->out);
	}
}

static void put_lines(const struct report *r, const char *heading, const struct notes_lines *lines)
{
	if (lines->n == 0)
		return;
	fprintf(r->out, "<h2>%s</h2>\n<pre>", heading);
	for (size_t i = 0; i < lines->n; i++) {
		page_text(r->out, lines->text[i]);
		fputc('\n', r->out);
	}
	fputs("</pre>\n", r->out);
	if (lines->seen > lines->n)
		fprintf(r->out, "<p class=\"soft\">%zu of %zu lines.</p>\n", lines->n, lines->seen);
}

static void put_settings(const struct report *r, const char *settings)
{
	if (!settings)
		return;
	fputs("<details><summary>All settings</summary>\n<pre>", r->out);
	for (; *settings; settings++) {
		const char one[] = {*settings, '\0'};

		if (settings[0] == ',' && settings[1] == ' ')
			fputc('\n', r->out), settings++;
		else
			page_text(r->out, one);
	}
	fputs("</pre>\n</details>\n", r->out);
}

/* A metric over epochs: validation with points, training dashed. */
static enum mu_status put_metric(const struct report *r, size_t metric)
{
	enum mu_status st = MU_OK;
	const size_t n = r->set->n;
	struct page_line *lines = NULL;
	double *values = NULL, *at;
	char(*names)[128] = NULL, title[LOG_NAME_BYTES + 64];
	size_t room = 0;
	const struct mu_metric *row;

	for (size_t t = 0; t < n; t++)
		room += 4 * r->set->tables[t].n;
	MU_TRY(MU_ALLOC(lines, 2 * n, "lines of a chart"));
	MU_TRY(MU_ALLOC(names, n, "names of a chart"));
	MU_TRY(MU_ALLOC(values, room + 1, "values of a chart"));
	at = values;
	for (size_t l = 0; l < 2 * n; l++) {
		const struct log_table *table = &r->set->tables[l / 2];

		lines[l] = (struct page_line){log_name(r->set->names[l / 2], names[l / 2], 128),
					      at,
					      at + table->n,
					      table->n,
					      (int)(l / 2),
					      l % 2};
		for (size_t i = 0; i < table->n; i++) {
			at[i] = (double)table->rows[i].epoch + 1;
			if (!log_table_value(&table->rows[i], log_metrics_cell(metric) - l % 2,
					     &at[table->n + i]))
				at[table->n + i] = NAN;
		}
		at += 2 * table->n;
	}
	row = mu_metric_printed(r->set->metrics.names[metric]);
	snprintf(title, sizeof title, "%s%s%s (training dashed)", r->set->metrics.names[metric],
		 row && row->unit ? ", " : "", row && row->unit ? row->unit : "");
	page_chart(r->out, title, "epoch", lines, 2 * n, false);
out:
	mu_free(lines);
	mu_free(names);
	mu_free(values);
	return st;
}

static enum mu_status put_speeds(const struct report *r)
{
	enum mu_status st = MU_OK;
	const size_t n = r->set->n;
	struct page_line *lines = NULL;
	double *values = NULL, *at;
	char(*names)[128] = NULL;
	size_t room = 0;
	bool epochs = true;

	for (size_t t = 0; t < n; t++)
		room += 2 * r->notes[t].n_speeds;
	MU_TRY(MU_ALLOC(lines, n, "lines of a chart"));
	MU_TRY(MU_ALLOC(names, n, "names of a chart"));
	MU_TRY(MU_ALLOC(values, room + 1, "values of a chart"));
	at = values;
	for (size_t t = 0; t < n; t++) {
		const struct notes *notes = &r->notes[t];
		const size_t m = notes->n_speeds;

		lines[t] = (struct page_line){
			log_name(r->set->names[t], names[t], 128), at, at + m, m, (int)t, false};
		for (size_t i = 0; i < m; i++) {
			at[i] = notes->speeds[i].at;
			at[m + i] = notes->speeds[i].speed;
		}
		epochs = epochs && notes->steps > 0;
		at += 2 * m;
	}
	page_chart(r->out, "samples/s", epochs ? "epoch" : "line of the log", lines, n, true);
out:
	mu_free(lines);
	mu_free(names);
	mu_free(values);
	return st;
}

static enum mu_status put_page(struct report *r, const char *title)
{
	enum mu_status st = MU_OK;
	char name[256];

	page_begin(r->out, title           ? title
			   : r->set->n > 1 ? "Comparison of runs"
					   : log_name(r->set->names[0], name, sizeof name));
	for (size_t t = 0; t < r->set->n; t++) {
		if (r->set->n > 1) {
			fputs("<h2>", r->out);
			page_text(r->out, log_name(r->set->names[t], name, sizeof name));
			fputs("</h2>\n", r->out);
		}
		put_tiles(r, t);
	}
	put_differences(r);
	fputs("<h2>Curves</h2>\n<div class=\"charts\">\n", r->out);
	for (size_t i = 0; i < r->set->metrics.n; i++)
		MU_TRY(put_metric(r, i));
	MU_TRY(put_speeds(r));
	fputs("</div>\n", r->out);
	for (size_t t = 0; t < r->set->n; t++) {
		const struct notes *notes = &r->notes[t];

		if (r->set->n > 1) {
			fputs("<h1>", r->out);
			page_text(r->out, log_name(r->set->names[t], name, sizeof name));
			fputs("</h1>\n", r->out);
		}
		put_phases(r, notes);
		put_lines(r, "Hosts and their ranks", &notes->nodes);
		put_lines(r, "Warnings and errors, the last ones", &notes->warnings);
		put_lines(r, "Its last lines", &notes->end);
		put_lines(r, "Its first lines", &notes->start);
		put_settings(r, notes->settings);
	}
	page_end(r->out);
out:
	return st;
}

enum mu_status report_write(const struct log_set *set, const char *path, const char *title)
{
	enum mu_status st = MU_OK;
	struct report r = {.set = set, .notes = set->notes};
	struct mu_replace replace = {0};

	MU_TRY(mu_replace_open(&replace, path));
	r.out = replace.stream;
	MU_TRY(put_page(&r, title));
	MU_TRY(mu_replace_commit(&replace));
out:
	mu_replace_release(&replace);
	return st;
}
