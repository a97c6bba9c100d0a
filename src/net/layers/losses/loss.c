/* SPDX-License-Identifier: Apache-2.0 */
/* What all losses share: which there are, their metrics by name, and their sums. */
#include "net/layers/layer.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const struct mu_loss *mu_loss_at(size_t i)
{
	for (int op = 0; op < MU_OP_N; op++) {
		const struct mu_loss *const *loss = mu_layer_kind((enum mu_op_kind)op)->losses;

		for (; loss && *loss; loss++)
			if (i-- == 0)
				return *loss;
	}
	return mu_loss_loaded(i);
}

size_t mu_loss_settings(const struct mu_loss *loss)
{
	size_t n = 0;

	while (loss->settings && loss->settings[n].name)
		n++;
	return n;
}

/* "", or "; the nearest is huber". */
static const char *nearest(const char *name, char *text, size_t nbytes)
{
	const struct mu_loss *loss, *best = NULL;

	for (size_t i = 0; (loss = mu_loss_at(i)); i++) {
		if (mu_option_names(loss->similar, name)) {
			best = loss;
			break;
		}
		if (mu_name_is_near(name, loss->name) &&
		    (!best ||
		     mu_name_distance(name, loss->name) < mu_name_distance(name, best->name)))
			best = loss;
	}
	snprintf(text, nbytes, "%s%s", best ? "; the nearest is " : "", best ? best->name : "");
	return text;
}

/* One of a file, whose name no other loss has. */
static enum mu_status find_file(const struct mu_loss **out, const char *path)
{
	enum mu_status st = MU_OK;
	const struct mu_loss *own, *loss;

	MU_TRY(mu_loss_load(&own, path));
	for (size_t i = 0; (loss = mu_loss_at(i)); i++)
		if (loss != own && strcmp(loss->name, own->name) == 0)
			MU_FAIL(MU_ERR_FORMAT,
				"objective %s: there is a loss %s already: rename it", path,
				own->name);
	*out = own;
out:
	return st;
}

enum mu_status mu_loss_find(const struct mu_loss **out, const char *name)
{
	enum mu_status st = MU_OK;
	const struct mu_loss *loss;
	char word[32], list[256] = "", near[64];

	if (strchr(name, '/') || mu_stem(name, ".so") > 0)
		return find_file(out, name);
	snprintf(word, sizeof word, "%s", name);
	for (char *p = word; *p; p++)
		*p = (char)(*p == '_' ? '-' : tolower((unsigned char)*p));
	for (size_t i = 0; (loss = mu_loss_at(i)); i++) {
		if (strcmp(loss->name, word) == 0 && strlen(name) == strlen(word)) {
			*out = loss;
			return MU_OK;
		}
		snprintf(list + strlen(list), sizeof list - strlen(list), " %s", loss->name);
	}
	MU_FAIL(MU_ERR_USAGE, "objective %s: unknown%s; known losses are:%s", name,
		nearest(word, near, sizeof near), list);
out:
	return st;
}

void mu_net_objective(struct mu_net *net, int in)
{
	const struct mu_loss *loss = net->objective;

	if (!loss) {
		mu_net_fail(net, "it leaves its loss open, and its row has no .objective");
		return;
	}
	net->takes_objective = true;
	loss->add(net, in, loss, net->config.objective_settings);
}

/* ---- metrics ---- */

const struct mu_metric *mu_metric_used(const struct mu_loss *loss, enum mu_metric_use use)
{
	for (const struct mu_metric *m = loss->metrics; m->name; m++)
		if (m->use & use)
			return m;
	return NULL;
}

static bool has_name(const char *name, const char *word, size_t n)
{
	return name && strlen(name) == n && strncmp(name, word, n) == 0;
}

const struct mu_metric *mu_metric_named(const struct mu_loss *loss, const char *name, size_t n)
{
	for (const struct mu_metric *m = loss->metrics; m->name; m++)
		if (has_name(m->name, name, n) || has_name(m->other, name, n))
			return m;
	return NULL;
}

static bool prints(const struct mu_metric *m, const char *printed)
{
	const size_t n = strlen(m->printed);

	return m->takes_k ? strncmp(printed, m->printed, n) == 0 &&
				    printed[n + strspn(printed + n, "0123456789")] == '\0'
			  : strcmp(printed, m->printed) == 0;
}

const struct mu_metric *mu_metric_printed(const char *printed)
{
	const struct mu_loss *loss;
	const char *dash = strchr(printed, '-');

	for (size_t i = 0; (loss = mu_loss_at(i)); i++)
		for (const struct mu_metric *m = loss->metrics; m->name; m++)
			if (prints(m, printed))
				return m;
	return dash ? mu_metric_printed(dash + 1) : NULL; /* of a head */
}

bool mu_metric_is_known(const struct mu_metric *metric, const struct mu_metrics *m)
{
	return !(metric->use & MU_METRIC_OF_TALLY) ||
	       mu_tally_part(m->tally, metric->head > 0 ? metric->head - 1U : 0);
}

/* ---- sums ---- */

void mu_metrics_add(struct mu_metrics *m, const struct mu_metrics *more)
{
	m->samples += more->samples;
	m->counted += more->counted;
	for (size_t i = 0; i < MU_LOSS_SUMS; i++)
		m->sums[i] += more->sums[i];
}

struct mu_metrics mu_metrics_since(const struct mu_metrics *m, const struct mu_metrics *before)
{
	struct mu_metrics out = {.samples = m->samples - before->samples,
				 .counted = m->counted - before->counted};

	for (size_t i = 0; i < MU_LOSS_SUMS; i++)
		out.sums[i] = m->sums[i] - before->sums[i];
	return out;
}

bool mu_metrics_are_finite(const struct mu_metrics *m)
{
	for (size_t i = 0; i < MU_LOSS_SUMS; i++)
		if (!isfinite(m->sums[i]))
			return false;
	return true;
}

/* ---- sums in checkpoints ---- */

void mu_metrics_print(const struct mu_metrics *m, const struct mu_loss *loss, char *text,
		      size_t nbytes)
{
	size_t n = 0, i;

	snprintf(text, nbytes, "samples %.17g predictions %.17g", m->samples, m->counted);
	for (i = 0; loss->sums[i]; i++) {
		n = strlen(text);
		snprintf(text + n, nbytes - n, " %s %.17g", loss->sums[i], m->sums[i]);
	}
	n = strlen(text);
	if (loss->again)
		snprintf(text + n, nbytes - n, " %s %.17g", loss->again, m->sums[i - 1]);
	n = strlen(text);
	if (loss->extra && m->sums[i] != 0)
		snprintf(text + n, nbytes - n, " %s %.17g", loss->extra, m->sums[i]);
}

/* "name 1.5" at the text; returns what follows, NULL: it is another text. */
static const char *scan_sum(const char *text, const char *name, double *sum)
{
	const size_t length = strlen(name);
	int n = 0;

	text += strspn(text, " ");
	if (strncmp(text, name, length) != 0 || sscanf(text + length, " %lf%n", sum, &n) != 1)
		return NULL;
	return text + length + n;
}

bool mu_metrics_scan(struct mu_metrics *m, const struct mu_loss *loss, const char *text)
{
	int n = 0;
	size_t i;
	double same;
	const char *rest;

	*m = (struct mu_metrics){0};
	if (sscanf(text, "samples %lf predictions %lf%n", &m->samples, &m->counted, &n) != 2)
		return false;
	text += n;
	for (i = 0; loss->sums[i] && text; i++)
		text = scan_sum(text, loss->sums[i], &m->sums[i]);
	rest = text && loss->again ? scan_sum(text, loss->again, &same) : text;
	if (rest && loss->extra)
		scan_sum(rest, loss->extra, &m->sums[i]);
	return text;
}
