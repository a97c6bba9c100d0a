/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics: sums over predictions, and the table of the numbers computed from them. */
#include "conf/text.h"
#include "metrics.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

void mu_metrics_add(struct mu_metrics *m, const struct mu_metrics *more)
{
	m->samples += more->samples;
	m->predictions += more->predictions;
	m->correct += more->correct;
	m->top_k += more->top_k;
	m->cross_entropy += more->cross_entropy;
}

void mu_metrics_measure(struct mu_metrics *m, const struct mu_batch *batch, size_t steps, size_t k)
{
	for (size_t i = 0; i < batch->count * steps; i++) {
		const struct mu_prediction *p = &batch->predictions[i];

		if (batch->use_ignore && batch->labels[i] == batch->ignore_label)
			continue;
		m->predictions++;
		m->correct += p->place == 0;
		m->top_k += p->place < k;
		m->cross_entropy += (double)p->cross_entropy;
	}
	m->samples += (double)batch->count;
}

static double mean(const struct mu_metrics *m, double sum)
{
	return m->predictions > 0 ? sum / m->predictions : 0;
}

static double accuracy(const struct mu_metrics *m)
{
	return mean(m, m->correct);
}

static double top_k(const struct mu_metrics *m)
{
	return mean(m, m->top_k);
}

static double cross_entropy(const struct mu_metrics *m)
{
	return mean(m, m->cross_entropy);
}

static double perplexity(const struct mu_metrics *m)
{
	return exp(cross_entropy(m));
}

/* NLL in MXNet's examples of language models: of whole sequences, not of words. */
static double sentence_nll(const struct mu_metrics *m)
{
	return m->samples > 0 ? m->cross_entropy / m->samples : 0;
}

const struct mu_metric mu_metric_table[] = {
	{"accuracy", NULL, "accuracy", accuracy, .always = true},
	{"top-k", NULL, "top_k_accuracy_", top_k, .takes_k = true},
	{"ce", "cross-entropy", "cross-entropy", cross_entropy, .always = true, .loss = true},
	{"nll", "nll_loss", "nll-loss", cross_entropy, .loss = true},
	{"perplexity", NULL, "perplexity", perplexity, .loss = true},
	{"sentence-nll", NULL, "sentence-nll", sentence_nll, .loss = true},
	{.name = NULL},
};

static void add(struct engine_metrics *metrics, const struct mu_metric *metric, long k)
{
	size_t n = metrics->n;

	for (size_t i = 0; i < n; i++)
		if (metrics->of[i] == metric)
			return;
	metrics->of[n] = metric;
	if (metric->takes_k)
		snprintf(metrics->printed[n], sizeof metrics->printed[n], "%s%ld", metric->printed,
			 k);
	else
		snprintf(metrics->printed[n], sizeof metrics->printed[n], "%s", metric->printed);
	metrics->n++;
}

static bool has_name(const char *name, const char *word, size_t n)
{
	return name && strlen(name) == n && strncmp(name, word, n) == 0;
}

/* The loss of this name of n characters. */
static enum mu_status find(const char *word, size_t n, const struct mu_metric **out)
{
	enum mu_status st = MU_OK;
	char list[128] = "";

	for (const struct mu_metric *m = mu_metric_table; m->name; m++) {
		if (!m->loss)
			continue;
		*out = m;
		if (has_name(m->name, word, n) || has_name(m->other, word, n))
			goto out;
		snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? ", " : "",
			 m->name);
	}
	MU_FAIL(MU_ERR_USAGE, "--loss: unknown metric \"%.*s\"; a list of these is needed: %s",
		(int)n, word, list);
out:
	return st;
}

enum mu_status mu_engine_metrics_choose(struct engine_metrics *metrics, const struct conf *v)
{
	enum mu_status st = MU_OK;
	const char *of_tokens = v->facts.reads_sequences && !v->benchmark ? "perplexity" : NULL;
	const char *of_texts = mu_conf_reads_text(v) ? "perplexity,sentence-nll" : of_tokens;
	const char *word = v->loss && *v->loss ? v->loss : of_texts;

	*metrics = (struct engine_metrics){.n = 0};
	for (const struct mu_metric *m = mu_metric_table; m->name; m++)
		if (m->always || (m->takes_k && v->top_k > 1))
			add(metrics, m, v->top_k);
	while (word) {
		size_t n = strcspn(word, ",");
		const struct mu_metric *metric = NULL;

		MU_TRY(find(word, n, &metric));
		add(metrics, metric, 0);
		word = word[n] ? word + n + 1 : NULL;
	}
out:
	return st;
}

enum mu_status mu_engine_metrics_best(const struct mu_metric **metric, const struct conf *v)
{
	enum mu_status st = MU_OK;
	const char *usual = v->facts.reads_sequences ? "perplexity" : "accuracy";
	const char *name = v->best_metric ? v->best_metric : usual;

	*metric = NULL;
	if (strcmp(name, "none") == 0)
		goto out;
	if (strcmp(name, "loss") == 0)
		name = "ce";
	for (*metric = mu_metric_table; (*metric)->name; ++*metric)
		if (strcmp((*metric)->name, name) == 0)
			goto out;
	MU_FAIL(MU_ERR_USAGE, "--best-metric %s: unknown", name); /* the option's words say which */
out:
	return st;
}

enum mu_status mu_engine_metrics_reduce(struct mu_metrics *m, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	double sums[5] = {m->samples, m->predictions, m->correct, m->top_k, m->cross_entropy};

	MU_TRY(mu_allreduce_double(sums, 5, MPI_SUM, comm));
	*m = (struct mu_metrics){sums[0], sums[1], sums[2], sums[3], sums[4]};
out:
	return st;
}
