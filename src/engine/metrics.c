/* SPDX-License-Identifier: Apache-2.0 */
/* Which metrics of the net's loss a run uses, and for what, by options and the rows of the loss. */
#include "conf/text.h"
#include "metrics.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

enum {
	LIST = 2048,         /* names of all metrics of eight heads */
	WATCHED_CLASSES = 64 /* outputs of a sample whose predictions are watched although no metric
				needs them */
};
#define MOST_GATHERED 0x1p27

/* ---- names ---- */

/* Is the name in "a, b"? */
static bool lists(const char *text, const char *name)
{
	const size_t n = strlen(name);

	for (const char *p = text; (p = strstr(p, name)); p++)
		if ((p == text || p[-1] == ' ') && (p[n] == ',' || p[n] == '\0'))
			return true;
	return false;
}

/* "ce, nll": metrics of a loss; of --loss those that it may name. */
static void list_names(const struct mu_loss *loss, bool of_loss, char *text, size_t nbytes)
{
	for (const struct mu_metric *m = loss->metrics; m->name; m++)
		if ((m->use & MU_METRIC_CHOSEN || !of_loss) && !lists(text, m->name))
			snprintf(text + strlen(text), nbytes - strlen(text), "%s%s",
				 *text ? ", " : "", m->name);
}

static const struct mu_metric *find_chosen(const struct mu_loss *loss, const char *word, size_t n)
{
	const struct mu_metric *m = mu_metric_named(loss, word, n);

	return m && m->use & MU_METRIC_CHOSEN ? m : NULL;
}

/* "; --objective huber chooses the loss", if the word is the name of one. */
static const char *by_objective(const char *word, size_t n, char *text, size_t nbytes)
{
	const struct mu_loss *loss;

	*text = '\0';
	for (size_t i = 0; (loss = mu_loss_at(i)); i++)
		if (strlen(loss->name) == n && strncmp(loss->name, word, n) == 0)
			snprintf(text, nbytes, "; --objective %s chooses the loss", loss->name);
	return text;
}

/* Is it a metric of some loss, or after a '-' that of a head? */
static bool is_known(const char *word, size_t n, bool of_loss)
{
	const struct mu_loss *loss;
	const char *dash = memchr(word, '-', n);

	for (size_t i = 0; (loss = mu_loss_at(i)); i++)
		if (of_loss ? find_chosen(loss, word, n) : mu_metric_named(loss, word, n))
			return true;
	return dash && is_known(dash + 1, n - (size_t)(dash + 1 - word), false);
}

/* The word of n characters is a metric of --loss. */
static enum mu_status check_word(const char *word, size_t n)
{
	enum mu_status st = MU_OK;
	const struct mu_loss *loss;
	char list[256] = "", cure[64];

	if ((n == 4 && strncmp(word, "loss", n) == 0) || is_known(word, n, true))
		goto out;
	for (size_t i = 0; (loss = mu_loss_at(i)); i++)
		list_names(loss, true, list, sizeof list);
	MU_FAIL(MU_ERR_USAGE, "--loss: unknown metric \"%.*s\"; a list of these is needed: %s%s",
		(int)n, word, list, by_objective(word, n, cure, sizeof cure));
out:
	return st;
}

static enum mu_status check_best(const char *name)
{
	enum mu_status st = MU_OK;
	char list[512];

	if (!name || strcmp(name, "none") == 0 || strcmp(name, "loss") == 0 ||
	    is_known(name, strlen(name), false))
		goto out;
	snprintf(list, sizeof list, "%s", mu_conf_best_metrics());
	for (char *p = strchr(list, '|'); p; p = strchr(p, '|'))
		*p = ' ';
	MU_FAIL(MU_ERR_USAGE,
		"--best-metric: \"%s\" is not known; choose one of: %s (of one head of several: "
		"class-accuracy)",
		name, list);
out:
	return st;
}

enum mu_status mu_engine_metrics_check(const struct conf *v)
{
	enum mu_status st = MU_OK;
	const char *word = v->loss && *v->loss ? v->loss : NULL;

	/* It brings its loss, whose metrics are known when it is built: see find_metric. */
	if (v->owner.network && !v->owner.network->objective)
		goto out;
	MU_TRY(check_best(v->best_metric));
	while (word) {
		const size_t n = strcspn(word, ",");

		MU_TRY(check_word(word, n));
		word = word[n] ? word + n + 1 : NULL;
	}
out:
	return st;
}

/* ---- what the log shows ---- */

/* The outputs of the head that the metric is of: one of the K likeliest needs K or more. 0: of a
 * loss that is alone, for which the data have been compared with --top-k. */
static size_t outputs_of(const struct mu_loss *loss, const struct mu_metric *metric)
{
	struct mu_loss_part part;

	if (metric->head == 0 || !mu_loss_part(&part, loss, metric->head - 1U, NULL))
		return 0;
	return mu_shape_channels(&part.output);
}

/* Has the log the metric of the K likeliest? */
static bool takes_k(const struct mu_loss *loss, const struct mu_metric *metric, long k)
{
	return metric->takes_k && k > 0 &&
	       (metric->head == 0 || outputs_of(loss, metric) >= (size_t)k);
}

static enum mu_status show(struct engine_metrics *metrics, const struct mu_metric *metric, long k)
{
	enum mu_status st = MU_OK;
	const size_t n = metrics->n;

	for (size_t i = 0; i < n; i++)
		if (metrics->of[i] == metric)
			goto out;
	if (n == TRAIN_MAX_METRICS)
		MU_FAIL(MU_ERR_USAGE, "--loss: a log shows at most %d metrics", TRAIN_MAX_METRICS);
	metrics->of[n] = metric;
	if (metric->takes_k)
		snprintf(metrics->printed[n], sizeof metrics->printed[n], "%s%ld", metric->printed,
			 k);
	else
		snprintf(metrics->printed[n], sizeof metrics->printed[n], "%s", metric->printed);
	metrics->n++;
out:
	return st;
}

static enum mu_status show_default(struct engine_metrics *metrics, const struct conf *v,
				   bool weighs)
{
	enum mu_status st = MU_OK;
	const bool lists = v->loss && *v->loss, text = mu_conf_reads_text(v);
	const bool tokens = v->facts.reads_sequences && !v->benchmark;
	const unsigned of_weights = weighs && !text && !tokens ? MU_METRIC_OF_WEIGHTS : 0;
	const unsigned use = of_weights | (lists    ? 0
					   : text   ? MU_METRIC_OF_TEXTS
					   : tokens ? MU_METRIC_OF_SEQUENCES
						    : 0);

	for (const struct mu_metric *m = metrics->loss->metrics; m->name; m++)
		if (m->use & MU_METRIC_ALWAYS ||
		    (v->top_k > 1 && takes_k(metrics->loss, m, v->top_k)))
			MU_TRY(show(metrics, m, v->top_k));
	for (const struct mu_metric *m = metrics->loss->metrics; m->name; m++)
		if (m->use & use)
			MU_TRY(show(metrics, m, v->top_k));
out:
	return st;
}

static enum mu_status show_listed(struct engine_metrics *metrics, const struct conf *v)
{
	enum mu_status st = MU_OK;
	const char *word = v->loss && *v->loss ? v->loss : NULL;
	char list[LIST] = "", cure[64];

	while (word) {
		const size_t n = strcspn(word, ",");
		const struct mu_metric *metric = find_chosen(metrics->loss, word, n);

		if (!metric) {
			list_names(metrics->loss, true, list, sizeof list);
			MU_FAIL(MU_ERR_USAGE,
				"--loss %.*s: the network's loss is %s, whose metrics are: %s%s",
				(int)n, word, metrics->loss->help, list,
				by_objective(word, n, cure, sizeof cure));
		}
		MU_TRY(show(metrics, metric, 0));
		word = word[n] ? word + n + 1 : NULL;
	}
out:
	return st;
}

/* ---- what decides ---- */

/* Without --best-metric: by the loss, else the mean loss. */
static const struct mu_metric *usual_best(const struct engine_metrics *metrics,
					  const struct conf *v)
{
	const struct mu_metric *best = mu_metric_used(metrics->loss, MU_METRIC_BEST),
			       *of_sequences = mu_metric_used(metrics->loss,
							      MU_METRIC_BEST_OF_SEQUENCES);

	if (v->facts.reads_sequences && of_sequences)
		return of_sequences;
	return best ? best : metrics->mean;
}

/* An option names a metric that this loss may lack. */
static enum mu_status find_metric(const struct mu_metric **metric, const struct mu_loss *loss,
				  const struct conf *v, const char *name, const char *option)
{
	enum mu_status st = MU_OK;
	char list[LIST] = "";

	*metric = mu_metric_named(loss, name, strlen(name));
	if (*metric && (*metric)->head > 0 && (*metric)->takes_k &&
	    !takes_k(loss, *metric, v->top_k))
		MU_FAIL(MU_ERR_USAGE, "--%s %s needs --top-k, from 1 to %zu", option, name,
			outputs_of(loss, *metric));
	if (*metric)
		goto out;
	list_names(loss, false, list, sizeof list);
	MU_FAIL(MU_ERR_USAGE,
		"--%s: the network's loss is %s, which has no %s; its metrics are: %s", option,
		loss->help, name, list);
out:
	return st;
}

static enum mu_status choose_best(struct engine_metrics *metrics, const struct conf *v)
{
	enum mu_status st = MU_OK;
	const char *name = v->best_metric;

	if (!name)
		metrics->best = usual_best(metrics, v);
	else if (strcmp(name, "loss") == 0)
		metrics->best = metrics->mean;
	else if (strcmp(name, "none") != 0)
		MU_TRY(find_metric(&metrics->best, metrics->loss, v, name, "best-metric"));
out:
	return st;
}

static enum mu_status check_classes(const struct mu_loss *loss, const struct conf *v)
{
	enum mu_status st = MU_OK;
	const bool classes = loss->of_classes || loss->joint;
	bool takes = false, has_k = false;

	for (const struct mu_metric *m = loss->metrics; m->name; m++) {
		has_k |= m->takes_k;
		takes |= takes_k(loss, m, v->top_k);
	}
	if (!takes && v->top_k > 0)
		MU_FAIL(MU_ERR_USAGE, "--top-k %ld: the network's loss is %s, which %s", v->top_k,
			loss->help,
			has_k	  ? "has no head of so many classes"
			: classes ? "has no such metric"
				  : "knows no classes");
	if (!loss->smooths && v->label_smoothing > 0)
		MU_FAIL(MU_ERR_USAGE, "--label-smoothing %g: the network's loss is %s, which %s",
			v->label_smoothing, loss->help,
			classes ? "has no such targets" : "knows no classes");
out:
	return st;
}

enum mu_status mu_engine_metrics_choose(struct engine_metrics *metrics, const struct mu_loss *loss,
					const struct conf *v, bool weighs)
{
	enum mu_status st = MU_OK;

	*metrics = (struct engine_metrics){.loss = loss,
					   .mean = mu_metric_used(loss, MU_METRIC_IS_LOSS),
					   .plateau = mu_metric_used(loss, MU_METRIC_OF_PLATEAU)};
	if (!metrics->plateau)
		metrics->plateau = metrics->mean;
	MU_TRY(check_classes(loss, v));
	MU_TRY(show_default(metrics, v, weighs));
	MU_TRY(show_listed(metrics, v));
	MU_TRY(choose_best(metrics, v));
	if (v->target_accuracy > 0)
		MU_TRY(find_metric(&metrics->target, loss, v, "accuracy", "target-accuracy"));
out:
	return st;
}

/* ---- sums over workers ---- */

/* The mean of all, then squares about that. */
static enum mu_status reduce_moments(struct mu_tally *t, const struct mu_members *members)
{
	enum mu_status st = MU_OK;
	const size_t n = t->n_moments;
	double *all = NULL;

	MU_TRY(mu_peers_agree(members, MU_ALLOC(all, 2 * n + 1, "moments of targets")));
	for (size_t i = 0; i < n; i++) {
		all[i] = t->moments[i].n;
		all[n + i] = t->moments[i].n * t->moments[i].mean;
	}
	MU_TRY(mu_peers_sum(members, all, 2 * n));
	for (size_t i = 0; i < n; i++) {
		struct mu_moments *m = &t->moments[i];
		const double mean = all[i] > 0 ? all[n + i] / all[i] : 0, off = m->mean - mean;

		m->squares += m->n * off * off;
		*m = (struct mu_moments){all[i], mean, m->squares, m->errors};
		all[i] = m->squares;
		all[n + i] = m->errors;
	}
	MU_TRY(mu_peers_sum(members, all, 2 * n));
	for (size_t i = 0; i < n; i++) {
		t->moments[i].squares = all[i];
		t->moments[i].errors = all[n + i];
	}
out:
	mu_free(all);
	return st;
}

static enum mu_status check_pairs(const struct mu_tally *t)
{
	enum mu_status st = MU_OK;

	if (t->no_memory)
		MU_FAIL(MU_ERR_MEMORY,
			"auc keeps every prediction of a validation, and after %zu there is no "
			"memory for more: --max-val-samples makes them fewer",
			t->n_pairs);
out:
	return st;
}

/* The pairs of all workers, one after another. */
static enum mu_status reduce_pairs(struct mu_tally *t, const struct mu_members *members)
{
	enum mu_status st = MU_OK;
	long most[2] = {(long)t->n_pairs, t->too_many}, *counts = NULL;
	float (*mine)[2] = NULL, (*all)[2] = NULL;
	size_t total = 0;
	int n = 0;

	MU_TRY(mu_peers_agree(members, check_pairs(t)));
	MU_TRY(mu_peers_gather(members, most, sizeof *most, (void **)&counts, &n));
	MU_TRY(mu_peers_reduce(members, most, 2, MPI_MAX));
	t->too_many = most[1] || (double)most[0] * n > MOST_GATHERED;
	if (t->too_many)
		goto out;
	MU_TRY(mu_peers_agree(members, MU_ALLOC(mine, (size_t)most[0] + 1, "pairs of auc")));
	if (t->n_pairs > 0)
		memcpy(mine, t->pairs, t->n_pairs * sizeof *mine);
	if (most[0] > 0)
		MU_TRY(mu_peers_gather(members, mine, (size_t)most[0] * sizeof *mine,
				       (void **)&all, &n));
	for (int r = 0; r < n && all; r++) { /* close the gaps */
		memmove(all[total], all[(size_t)r * (size_t)most[0]],
			(size_t)counts[r] * sizeof *all);
		total += (size_t)counts[r];
	}
	MU_TRY(mu_peers_agree(members, all ? mu_tally_auc(t, all, total) : MU_OK));
out:
	mu_free(counts);
	mu_free(mine);
	mu_free(all);
	return st;
}

static enum mu_status reduce_part(struct mu_tally *t, const struct mu_members *members)
{
	enum mu_status st = MU_OK;

	if (t->n_sums > 0)
		MU_TRY(mu_peers_sum(members, t->sums, t->n_sums));
	if (t->n_moments > 0)
		MU_TRY(reduce_moments(t, members));
	if (t->keeps_pairs)
		MU_TRY(reduce_pairs(t, members));
out:
	return st;
}

static enum mu_status reduce_tally(struct mu_tally *t, const struct mu_members *members)
{
	enum mu_status st = MU_OK;
	struct mu_tally *part;

	for (size_t i = 0; i < (t->n_heads ? t->n_heads : 1); i++) {
		part = mu_tally_part(t, i);
		if (part)
			MU_TRY(reduce_part(part, members));
	}
out:
	return st;
}

enum mu_status mu_engine_metrics_reduce(struct mu_metrics *m, const struct mu_members *members)
{
	enum mu_status st = MU_OK;
	double sums[2 + MU_LOSS_SUMS] = {m->samples, m->counted};

	memcpy(sums + 2, m->sums, sizeof m->sums);
	MU_TRY(mu_peers_sum(members, sums, 2 + MU_LOSS_SUMS));
	m->samples = sums[0];
	m->counted = sums[1];
	memcpy(m->sums, sums + 2, sizeof m->sums);
	if (m->tally)
		MU_TRY(reduce_tally(m->tally, members));
out:
	return st;
}

/* ---- what a run needs ---- */

bool mu_engine_metrics_use(const struct engine_metrics *metrics, const struct mu_loss_part *part,
			   const char *name)
{
	char own[64];
	bool found;

	snprintf(own, sizeof own, "%s%s%s", part->head, *part->head ? "-" : "", name);
	found = metrics->best && strcmp(metrics->best->name, own) == 0;
	for (size_t i = 0; i < metrics->n; i++)
		found |= strcmp(metrics->of[i]->name, own) == 0;
	return found;
}

/* Does one of the metrics of the part need a tally? */
static bool needs_tally(const struct engine_metrics *metrics, const struct mu_loss_part *part)
{
	for (const struct mu_metric *m = part->loss->metrics; m->name; m++)
		if (m->use & MU_METRIC_OF_TALLY && mu_engine_metrics_use(metrics, part, m->name))
			return true;
	return false;
}

static enum mu_status open_part(struct mu_tally *t, const struct engine_metrics *metrics,
				const struct mu_loss_part *part)
{
	enum mu_status st = MU_OK;
	const bool auc = mu_engine_metrics_use(metrics, part, "auc");

	MU_TRY(mu_tally_open(t, part->loss, &part->output));
	if (auc && !t->keeps_pairs)
		MU_FAIL(MU_ERR_USAGE,
			"auc: of two classes, and %s%s has %zu: accuracy, recall and iou are for "
			"several",
			*part->head ? "head " : "this network", part->head,
			mu_shape_channels(&part->output));
	t->keeps_pairs = t->keeps_pairs && auc;
out:
	return st;
}

enum mu_status mu_engine_tally_open(struct mu_engine *e, const struct engine_metrics *metrics)
{
	enum mu_status st = MU_OK;
	struct mu_loss_part part;
	struct mu_tally none = {.outputs = 0};

	for (size_t i = 0; mu_loss_part(&part, metrics->loss, i, NULL); i++) {
		if (!*part.head)
			part.output = *mu_plan_probabilities_shape(e->plan);
		if (!part.loss->tally ||
		    !(needs_tally(metrics, &part) ||
		      (part.loss->of_classes && mu_shape_sample(&part.output) <= WATCHED_CLASSES)))
			continue;
		if (!e->tally) {
			MU_TRY(MU_ALLOC(e->tally, 1, "tally of validation"));
			*e->tally = none;
			if (*part.head)
				MU_TRY(mu_tally_heads(e->tally, MU_MAX_HEADS));
		}
		MU_TRY(open_part(*part.head ? &e->tally->heads[i] : e->tally, metrics, &part));
	}
out:
	return st;
}
