/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --predict FILE.csv: a line for each record. With labels: id, label, predicted class and all
 * probabilities. Images without labels: the file, and the best --top-k classes (1) with their
 * probabilities. Classes are names where the checkpoint or the data have them, else numbers. If the
 * loss has values for probabilities: id, targets, values.
 *
 * Of sequences: where it is, how many tokens it predicts, how many of them are the likeliest, the
 * sum and the mean of their log-probabilities (natural logarithms), and each token's number and
 * log-probability. All sums together are the loss of --evaluate times the tokens, less than 0.
 */
#include "prediction_table.h"

#include <math.h>
#include <string.h>

static const char *class_name(const struct prediction_table *t, size_t class)
{
	return t->saved.n == t->classes                     ? t->saved.name[class]
	       : t->data->about.n_class_names == t->classes ? t->data->about.class_names[class]
							    : NULL;
}

static void put_class(const struct prediction_table *t, size_t class, const char *before)
{
	const char *name = class_name(t, class);

	if (name)
		mu_text_put_csv(t->stream, name);
	else
		fprintf(t->stream, "%s%zu", before, class);
}

static void begin_values(const struct prediction_table *t)
{
	fprintf(t->stream, "id");
	for (size_t i = 0; i < t->targets && !t->data->unlabelled; i++)
		fprintf(t->stream, ",target%zu", i);
	for (size_t i = 0; i < t->classes; i++)
		fprintf(t->stream, ",value%zu", i);
}

static void put_values(const struct prediction_table *t, size_t id, const float *targets,
		       const float *row)
{
	fprintf(t->stream, "%zu", id);
	for (size_t i = 0; i < t->targets && !t->data->unlabelled; i++)
		fprintf(t->stream, ",%.9g", (double)targets[i]);
	for (size_t i = 0; i < t->classes; i++)
		fprintf(t->stream, ",%.9g", (double)row[i]);
}

void mu_prediction_table_begin(const struct prediction_table *t)
{
	if (t->output == MU_OUTPUT_VALUES) {
		begin_values(t);
	} else if (t->sequences) {
		fprintf(t->stream, "id,record,tokens,correct,log_probability,"
				   "mean_log_probability,labels,log_probabilities");
	} else if (t->data->unlabelled) {
		fprintf(t->stream, "file,class,probability");
		for (size_t k = 2; k <= t->top_k; k++)
			fprintf(t->stream, ",class%zu,probability%zu", k, k);
	} else {
		fprintf(t->stream, "id,label,predicted");
		for (size_t c = 0; c < t->classes; c++) {
			fputc(',', t->stream);
			put_class(t, c, "p");
		}
	}
	fputc('\n', t->stream);
}

/* The best class of those that are below (value, class) in order; ties: the lower number first. */
static size_t find_next(const float *row, size_t classes, size_t before)
{
	size_t best = classes;

	for (size_t c = 0; c < classes; c++) {
		const bool below = before == classes || row[c] < row[before] ||
				   (row[c] == row[before] && c > before);

		if (below && (best == classes || row[c] > row[best]))
			best = c;
	}
	return best < classes ? best : 0; /* values that are no numbers */
}

static void put_best(const struct prediction_table *t, size_t id, const float *row)
{
	char file[4096];
	size_t class = t->classes;

	t->data->ops->name_record(t->data, id, file, sizeof file);
	mu_text_put_csv(t->stream, file);
	for (size_t k = 0; k < t->top_k; k++) {
		class = find_next(row, t->classes, class);
		fputc(',', t->stream);
		put_class(t, class, "");
		fprintf(t->stream, ",%.9g", (double)row[class]);
	}
}

void mu_prediction_table_line(const struct prediction_table *t, size_t id, const float *labels,
			      const float *row)
{
	const float label = *labels;

	if (t->output == MU_OUTPUT_VALUES) {
		put_values(t, id, labels, row);
	} else if (t->data->unlabelled) {
		put_best(t, id, row);
	} else {
		fprintf(t->stream, "%zu,", id);
		if (label >= 0 && label < (float)t->classes)
			put_class(t, (size_t)label, "");
		else
			fprintf(t->stream, "%g", (double)label);
		fputc(',', t->stream);
		put_class(t, find_next(row, t->classes, t->classes), "");
		for (size_t c = 0; c < t->classes; c++)
			fprintf(t->stream, ",%.9g", (double)row[c]);
	}
	fputc('\n', t->stream);
}

void mu_prediction_table_sequence(const struct prediction_table *t, size_t id, size_t n,
				  const float *labels, const float *row)
{
	size_t tokens = 0, correct = 0;
	double sum = 0;
	char record[4096];

	for (size_t i = 0; i < n; i++) {
		if (isnan(labels[i]))
			continue;
		tokens++;
		correct += row[n + i] == 0;
		sum += (double)row[i];
	}
	t->data->ops->name_record(t->data, id, record, sizeof record);
	fprintf(t->stream, "%zu,", id);
	mu_text_put_csv(t->stream, record);
	fprintf(t->stream, ",%zu,%zu,%.9g,%.9g,", tokens, correct, sum,
		tokens > 0 ? sum / (double)tokens : 0);
	for (size_t i = 0, k = 0; i < n; i++)
		if (!isnan(labels[i]))
			fprintf(t->stream, "%s%.0f", k++ > 0 ? " " : "", (double)labels[i]);
	fputc(',', t->stream);
	for (size_t i = 0, k = 0; i < n; i++)
		if (!isnan(labels[i]))
			fprintf(t->stream, "%s%.9g", k++ > 0 ? " " : "", (double)row[i]);
	fputc('\n', t->stream);
}

bool mu_prediction_table_is(const char *path)
{
	static const char *const begins[] = {"id,label,predicted", "file,class,probability",
					     "id,record,tokens,", "id,target0", "id,value0"};
	char line[64] = "";
	FILE *stream = fopen(path, "re");
	bool is = !stream || !fgets(line, sizeof line, stream);

	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		is |= strncmp(line, begins[i], strlen(begins[i])) == 0;
	if (stream)
		fclose(stream);
	return is;
}
