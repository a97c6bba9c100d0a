/* SPDX-License-Identifier: Apache-2.0 */
/* plot_log: pictures of trainings, out of their logs, by gnuplot, or a page. Runs without MPI. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/arguments.h"
#include "gnuplot.h"
#include "log_table.h"
#include "report.h"

struct values {
	const char *output, *metric_names, *title;
	bool scaling, average, skip_bad, help;
};

#define AT(member) offsetof(struct values, member)
static const char picture[] = "Picture", other[] = "Other";

static const struct mu_option options[] = {
	{.name = "output",
	 .type = MU_OPTION_STRING,
	 .offset = AT(output),
	 .group = picture,
	 .help = "FILE  what to write: a .svg or .png picture, or a .html page with charts, "
		 "settings, speed, hosts, warnings and the end of the runs, in one file"},
	{.name = "metric-names",
	 .type = MU_OPTION_STRING,
	 .offset = AT(metric_names),
	 .group = picture,
	 .help = "LIST  metrics to show, as in the log (accuracy,cross-entropy, those that there "
		 "are)"},
	{.name = "scaling",
	 .type = MU_OPTION_FLAG,
	 .offset = AT(scaling),
	 .group = picture,
	 .help = "how the time of an epoch falls with the workers; words are N:LOG, of a run with "
		 "N workers"},
	{.name = "title",
	 .type = MU_OPTION_STRING,
	 .offset = AT(title),
	 .group = picture,
	 .help = "TEXT  above it"},
	{.name = "average",
	 .type = MU_OPTION_FLAG,
	 .offset = AT(average),
	 .group = picture,
	 .help = "the logs are those of one job's workers: show their means"},
	{.name = "skip-bad",
	 .type = MU_OPTION_FLAG,
	 .offset = AT(skip_bad),
	 .group = picture,
	 .help = "leave out values that are not finite and a last line that is cut off, and say "
		 "so"},
	{.name = "help",
	 .type = MU_OPTION_FLAG,
	 .offset = AT(help),
	 .group = other,
	 .help = "this text"},
};

/* What is drawn. */
struct plot {
	struct log_set set;
	const char *title; /* NULL: none */
	struct gnuplot gnuplot;
	FILE *out; /* of gnuplot */
};

enum { PANEL_WIDTH = 520, PANEL_HEIGHT = 380, SCALING_WIDTH = 640, SCALING_HEIGHT = 520 };
enum { LEGEND_LINE = 22 }; /* of the legend under the panels, with LEGEND_NAMES in it */
enum { LEGEND_NAMES = 3 };
enum { FEW_EPOCHS = 10 };

static void put_title(const struct plot *p)
{
	if (!p->title)
		return;
	fputs(" title ", p->out);
	gnuplot_text(&p->gnuplot, p->title);
}

/* ---- curves: metrics over epochs and over time ---- */

static void put_cell(FILE *out, bool known, double v)
{
	if (known)
		fprintf(out, " %.9g", v);
	else
		fputs(" ?", out);
}

/* Columns: epoch, seconds of training up to its end, then the cells. */
static void put_data(const struct plot *p)
{
	const size_t time = 2 * p->set.metrics.n;
	double v = 0, sum;
	bool known;

	for (size_t t = 0; t < p->set.n; t++) {
		fprintf(p->out, "$run%zu << END_OF_RUN\n", t);
		sum = 0;
		for (size_t i = 0; i < p->set.tables[t].n; i++) {
			const struct log_row *row = &p->set.tables[t].rows[i];

			fprintf(p->out, "%ld", row->epoch + 1);
			sum += log_table_value(row, time, &v) ? v : NAN;
			put_cell(p->out, isfinite(sum), sum);
			for (size_t c = 0; c < time; c++) {
				known = log_table_value(row, c, &v);
				put_cell(p->out, known, v);
			}
			fputc('\n', p->out);
		}
		fputs("END_OF_RUN\n", p->out);
	}
}

static void put_name(const struct plot *p, size_t t)
{
	char text[256];

	gnuplot_text(&p->gnuplot, log_name(p->set.names[t], text, sizeof text));
}

/* gnuplot puts ticks between the epochs where there are few of them. */
static const char *ticks(const struct plot *p, int x)
{
	long last = 0;

	for (size_t t = 0; t < p->set.n; t++)
		for (size_t i = 0; i < p->set.tables[t].n; i++)
			if (p->set.tables[t].rows[i].epoch >= last)
				last = p->set.tables[t].rows[i].epoch + 1;
	return x == 1 && last <= FEW_EPOCHS ? "1" : "autofreq";
}

/* A metric over column x: validation with points, training with dashes, in a run's colour. */
static void put_panel(const struct plot *p, size_t metric, int x)
{
	const bool legend = metric == 0 && x == 1;

	fputs("set ylabel ", p->out);
	gnuplot_text(&p->gnuplot, p->set.metrics.names[metric]);
	fprintf(p->out, "\nset xlabel '%s'\nset xtics %s\nplot",
		x == 1 ? "epoch" : "seconds of training", ticks(p, x));
	for (size_t i = 0; i < 2 * p->set.n; i++) {
		const bool valid = i % 2 == 0;

		fprintf(p->out, "%s $run%zu using %d:%zu with %s linetype %zu title ", i ? "," : "",
			i / 2, x, log_metrics_cell(metric) + valid + 2,
			valid ? "linespoints pointtype 7 pointsize 0.5 linewidth 2"
			      : "lines dashtype 2 linewidth 1.5",
			i / 2 + 1);
		if (legend && valid)
			put_name(p, i / 2);
		else
			fputs("''", p->out);
	}
	fprintf(p->out, "%s\n",
		legend ? ", NaN with lines dashtype 2 linecolor 'black' title 'training'" : "");
}

/* Does any log say how long an epoch took? */
static bool has_times(const struct log_set *set)
{
	double v;

	for (size_t t = 0; t < set->n; t++)
		if (set->tables[t].n > 0 &&
		    log_table_value(&set->tables[t].rows[0], 2 * set->metrics.n, &v))
			return true;
	return false;
}

static enum mu_status draw_curves(struct plot *p, const char *output)
{
	enum mu_status st = MU_OK;
	const int columns = has_times(&p->set) ? 2 : 1, rows = (int)p->set.metrics.n;
	const int names = (int)p->set.n + 1; /* and that of training */
	const int lines = (names + LEGEND_NAMES - 1) / LEGEND_NAMES, legend = LEGEND_LINE * lines;
	const int height = rows * PANEL_HEIGHT + legend;

	MU_TRY(gnuplot_begin(&p->gnuplot, output, columns * PANEL_WIDTH, height));
	p->out = p->gnuplot.in;
	fprintf(p->out,
		"set datafile missing '?'\nset grid linecolor 'gray60'\nset xrange [0:*]\n"
		"set linetype 5 linecolor 'sienna4'\n"
		"set key vertical maxrows %d center bottom at screen 0.5, screen 0.01\n",
		lines);
	put_data(p);
	fprintf(p->out, "set multiplot layout %d, %d", rows, columns);
	put_title(p);
	fprintf(p->out, " margins %.3f, 0.97, %.3f, %.3f spacing 0.1, %.3f\n",
		columns == 1 ? 0.14 : 0.08, (60.0 + legend) / height,
		1 - (p->title ? 40.0 : 15.0) / height, 60.0 / height);
	for (int m = 0; m < rows; m++)
		for (int x = 1; x <= columns; x++)
			put_panel(p, (size_t)m, x);
	fputs("unset multiplot\n", p->out);
	MU_TRY(gnuplot_end(&p->gnuplot));
out:
	return st;
}

static enum mu_status read_curves(struct plot *p, const struct values *v, const char **paths,
				  size_t n)
{
	enum mu_status st = MU_OK;
	const struct log_reading how = {.average = v->average,
					.skip_bad = v->skip_bad,
					.notes = mu_stem(v->output, ".html"),
					.usual = !v->metric_names};

	MU_TRY(log_metrics_read(&p->set.metrics,
				v->metric_names ? v->metric_names : "accuracy,cross-entropy"));
	MU_TRY(log_set_read(&p->set, paths, n, &how));
	MU_TRY(log_set_check(&p->set));
out:
	return st;
}

/* ---- scaling: speed-up over workers ---- */

struct point {
	double workers, seconds; /* an epoch's mean */
};

/* "4:a/b.log": the path follows the colon. */
static enum mu_status read_point(struct plot *p, const char *word, bool skip_bad,
				 struct point *point)
{
	enum mu_status st = MU_OK;
	char *colon;
	const long workers = strtol(word, &colon, 10);
	const char *path = colon + 1;
	double v, sum = 0;
	size_t n = 0;

	if (colon == word || *colon != ':' || !*path || workers < 1)
		MU_FAIL(MU_ERR_USAGE,
			"\"%s\": with --scaling words are N:LOG, such as 4:four.log for the log of "
			"4 workers",
			word);
	MU_TRY(log_set_read(&p->set, &path, 1, &(struct log_reading){.skip_bad = skip_bad}));
	for (size_t i = 0; i < p->set.tables[0].n; i++)
		if (log_table_value(&p->set.tables[0].rows[i], 2 * p->set.metrics.n, &v)) {
			sum += v;
			n++;
		}
	if (sum <= 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: it does not say how long an epoch took", path);
	*point = (struct point){(double)workers, sum / (double)n};
out:
	log_set_release(&p->set);
	return st;
}

static int fewer_first(const void *a, const void *b)
{
	const struct point *p = a, *q = b;

	return (p->workers > q->workers) - (p->workers < q->workers);
}

/*
 * Speed-up S(N) = N0 T(N0) / T(N), where N0 is the smallest number of workers and T the time of an
 * epoch; ideal is N. The label is S(N) / N.
 */
static enum mu_status draw_scaling(struct plot *p, const char *output, const struct point *points,
				   size_t n)
{
	enum mu_status st = MU_OK;
	const double one = points[0].workers * points[0].seconds;

	MU_TRY(gnuplot_begin(&p->gnuplot, output, SCALING_WIDTH, SCALING_HEIGHT));
	p->out = p->gnuplot.in;
	fputs("$runs << END_OF_RUNS\n", p->out);
	for (size_t i = 0; i < n; i++)
		fprintf(p->out, "%g %.6g \"%.0f %%\"\n", points[i].workers, one / points[i].seconds,
			100 * one / points[i].seconds / points[i].workers);
	fputs("END_OF_RUNS\nset grid linecolor 'gray60'\nset key top left\n", p->out);
	fprintf(p->out, "set xrange [0:%g]\nset yrange [0:*]\n", 1.1 * points[n - 1].workers);
	for (size_t i = 0; i < n; i++)
		fprintf(p->out, "%s%g", i ? ", " : "set xtics (", points[i].workers);
	fputs(p->title ? ")\nset" : ")", p->out);
	put_title(p);
	fputs("\nset xlabel 'workers'\nset ylabel 'speed-up of an epoch'\n"
	      "plot x with lines dashtype 2 linecolor 'gray40' title 'ideal', "
	      "$runs using 1:2 with linespoints linetype 1 pointtype 7 linewidth 2 "
	      "title 'measured, with its part of the ideal', "
	      "$runs using 1:2:3 with labels offset 0, -1.2 notitle\n",
	      p->out);
	MU_TRY(gnuplot_end(&p->gnuplot));
out:
	return st;
}

static enum mu_status plot_scaling(struct plot *p, const struct values *v, const char **words,
				   size_t n)
{
	enum mu_status st = MU_OK;
	struct point *points = NULL;

	if (n < 2)
		MU_FAIL(MU_ERR_USAGE, "--scaling needs at least two logs, such as 1:one.log "
				      "2:two.log");
	MU_TRY(MU_ALLOC(points, n, "points"));
	for (size_t i = 0; i < n; i++)
		MU_TRY(read_point(p, words[i], v->skip_bad, &points[i]));
	qsort(points, n, sizeof *points, fewer_first);
	for (size_t i = 1; i < n; i++)
		if (points[i].workers == points[i - 1].workers)
			MU_FAIL(MU_ERR_USAGE, "two logs of %g workers", points[i].workers);
	MU_TRY(draw_scaling(p, v->output, points, n));
out:
	mu_free(points);
	return st;
}

int main(int argc, char **argv)
{
	enum mu_status st = MU_OK;
	struct values values;
	struct plot plot = {.out = NULL};
	struct data_command command = {
		.tool = "plot_log",
		.table = options,
		.n_options = sizeof options / sizeof *options,
		.values = &values,
		.usage = "LOG... --output FILE\n\n"
			 "Draw accuracy and loss over epochs and over the time of training, out of "
			 "the logs of one run or\nof several; or, with --scaling, how the time of "
			 "an epoch falls with the workers, beside the\nideal. Logs are those of "
			 "parse_log. The program gnuplot draws pictures; a page needs no other "
			 "program.\n",
		.n_words = 1,
		.many = true,
	};
	bool done;

	MU_TRY(data_command_parse(&command, argc, argv, &done));
	if (done)
		goto out;
	if (!values.output)
		MU_FAIL(MU_ERR_USAGE, "--output FILE is needed: a .svg, .png or .html file");
	if (mu_stem(values.output, ".html") && values.scaling)
		MU_FAIL(MU_ERR_USAGE,
			"--scaling draws a picture: --output must be a .svg or .png file");
	if (values.scaling && (values.average || values.metric_names))
		MU_FAIL(MU_ERR_USAGE, "--scaling shows the time of epochs: --%s is not for it",
			values.average ? "average" : "metric-names");
	MU_TRY(data_command_watch(&command, values.output));
	plot.title = values.title;
	if (values.scaling) {
		MU_TRY(plot_scaling(&plot, &values, command.words, command.n_words));
		goto out;
	}
	MU_TRY(read_curves(&plot, &values, command.words, command.n_words));
	if (mu_stem(values.output, ".html"))
		MU_TRY(report_write(&plot.set, values.output, values.title));
	else
		MU_TRY(draw_curves(&plot, values.output));
out:
	gnuplot_release(&plot.gnuplot);
	log_set_release(&plot.set);
	return data_command_end(&command, st);
}
