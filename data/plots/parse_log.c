/* SPDX-License-Identifier: Apache-2.0 */
/* parse_log: the results of trainings, out of their logs, as a table. Runs without MPI. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "../lib/arguments.h"
#include "log_table.h"

struct values {
	const char *format, *metric_names;
	bool average, skip_bad, help;
};

#define AT(member) offsetof(struct values, member)
static const char table[] = "Table", other[] = "Other";

static const struct mu_option options[] = {
	{.name = "format",
	 .type = MU_OPTION_STRING,
	 .offset = AT(format),
	 .initial = "markdown",
	 .choices = "markdown|csv|json|none",
	 .group = table,
	 .help = "NAME  markdown, csv, json, or columns with tabs between them (none)"},
	{.name = "metric-names",
	 .type = MU_OPTION_STRING,
	 .offset = AT(metric_names),
	 .initial = "accuracy",
	 .group = table,
	 .help = "LIST  metrics to show, as in the log: accuracy,cross-entropy"},
	{.name = "average",
	 .type = MU_OPTION_FLAG,
	 .offset = AT(average),
	 .group = table,
	 .help = "the logs are those of one job's workers: one table, of their means"},
	{.name = "skip-bad",
	 .type = MU_OPTION_FLAG,
	 .offset = AT(skip_bad),
	 .group = table,
	 .help = "leave out values that are not finite and a last line that is cut off, and say "
		 "so"},
	{.name = "help",
	 .type = MU_OPTION_FLAG,
	 .offset = AT(help),
	 .group = other,
	 .help = "this text"},
};

/* ---- formats ---- */

struct format {
	const char *name, *before, *between, *after, *missing;
	int width;         /* of epochs */
	int time_decimals; /* MXNet's: 1 */
	void (*put_log)(const char *name);
	bool rule; /* a line below the head */
};

static void put_escaped(const char *name)
{
	for (name = mu_shown(name); *name; name++)
		printf(*name == '|' || *name == '\\' ? "\\%c" : "%c", *name);
}

static void put_csv(const char *name)
{
	mu_text_put_csv(stdout, mu_shown(name));
}

static void put_plain(const char *name)
{
	fputs(mu_shown(name), stdout);
}

static const struct format formats[] = {
	{"markdown", "| ", " | ", " |", "-", 2, 1, put_escaped, true},
	{"csv", "", ",", "", "", 0, 3, put_csv, false},
	{"none", "", "\t", "", "-", 0, 1, put_plain, false},
};

static void put_head(const struct log_set *set, const struct format *f)
{
	size_t n = log_metrics_cells(&set->metrics);
	char text[128];

	printf("%s%s%sepoch", f->before, set->n > 1 ? "log" : "", set->n > 1 ? f->between : "");
	for (size_t c = 0; c < n; c++)
		printf("%s%s", f->between,
		       mu_shown(log_metrics_cell_name(&set->metrics, c, text, sizeof text)));
	printf("%s\n", f->after);
	if (!f->rule)
		return;
	printf("%s---", f->before);
	for (size_t c = 0; c < n + (set->n > 1); c++)
		printf("%s---", f->between);
	printf("%s\n", f->after);
}

static void put_row(const struct log_set *set, const struct format *f, size_t t, size_t i)
{
	const struct log_row *values = &set->tables[t].rows[i];
	size_t n = log_metrics_cells(&set->metrics);
	double v;

	fputs(f->before, stdout);
	if (set->n > 1) {
		f->put_log(set->names[t]);
		fputs(f->between, stdout);
	}
	printf("%*ld", f->width, values->epoch + 1);
	for (size_t c = 0; c < n; c++) {
		fputs(f->between, stdout);
		if (log_table_value(values, c, &v))
			printf("%.*f", c + 1 == n ? f->time_decimals : 6, v);
		else
			fputs(f->missing, stdout);
	}
	printf("%s\n", f->after);
}

static void put_columns(const struct log_set *set, const struct format *f)
{
	put_head(set, f);
	for (size_t t = 0; t < set->n; t++)
		for (size_t i = 0; i < set->tables[t].n; i++)
			put_row(set, f, t, i);
}

static void put_json(const struct log_set *set)
{
	struct mu_json j = {.file = stdout, .flat = 2};
	char text[128];
	double v;

	mu_json_open(&j, NULL, '[');
	for (size_t t = 0; t < set->n; t++)
		for (size_t i = 0; i < set->tables[t].n; i++) {
			const struct log_row *row = &set->tables[t].rows[i];

			mu_json_open(&j, NULL, '{');
			mu_json_text(&j, "log", set->names[t]);
			mu_json_number(&j, "epoch", (double)(row->epoch + 1));
			for (size_t c = 0; c < log_metrics_cells(&set->metrics); c++)
				mu_json_number(
					&j,
					log_metrics_cell_name(&set->metrics, c, text, sizeof text),
					log_table_value(row, c, &v) ? v : NAN);
			mu_json_close(&j, '}');
		}
	mu_json_close(&j, ']');
}

static enum mu_status put(const struct log_set *set, const char *name)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (strcmp(formats[i].name, name) == 0)
			put_columns(set, &formats[i]);
	if (strcmp(name, "json") == 0)
		put_json(set);
	if (fflush(stdout) != 0 || ferror(stdout))
		MU_FAIL(MU_ERR_IO, "the table cannot be written: %s", strerror(errno));
out:
	return st;
}

int main(int argc, char **argv)
{
	enum mu_status st = MU_OK;
	struct values values;
	struct log_set set = {.n = 0};
	struct data_command command = {
		.tool = "parse_log",
		.table = options,
		.n_options = sizeof options / sizeof *options,
		.values = &values,
		.usage = "LOG...\n\n"
			 "Print the results of trainings, out of their logs (-: standard input): a "
			 "row for each epoch,\nthe first is 1, with accuracy of training and "
			 "validation, and seconds. Logs of Muster and\nof MXNet's trainers. Lines "
			 "of several workers are averaged. Several logs: a column says which.\n",
		.n_words = 1,
		.many = true,
		.noted = "metric-names",
	};
	bool done;

	MU_TRY(data_command_parse(&command, argc, argv, &done));
	if (done)
		goto out;
	MU_TRY(log_metrics_read(&set.metrics, values.metric_names));
	MU_TRY(log_set_read(&set, command.words, command.n_words,
			    &(struct log_reading){.average = values.average,
						  .skip_bad = values.skip_bad,
						  .usual = !command.is_noted}));
	MU_TRY(log_set_check(&set));
	MU_TRY(put(&set, values.format));
out:
	log_set_release(&set);
	return data_command_end(&command, st);
}
