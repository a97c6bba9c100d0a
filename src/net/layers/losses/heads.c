/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several losses as one: a row that is made of those of the heads. Its sums are the weighted sum of
 * the losses, then of each head the targets that count and the sums of its loss; its metrics are
 * the mean, then those of the heads under the head's name.
 */
#include "net/layers/layer.h"

#include <stdio.h>
#include <string.h>

#include "device/joint.h"

enum { LOSS, NAME = 32, SUM_NAME = 40, HELP = 512 };

/* A row and all that it points to. */
struct row {
	struct mu_loss loss; /* first */
	struct mu_joint joint;
	char name[MU_MAX_HEADS * NAME], help[HELP], sums[MU_LOSS_SUMS][SUM_NAME];
	struct metric_names {
		char name[NAME], other[NAME], printed[NAME];
	} *names;
	struct mu_metric metrics[];
};

static size_t count_sums(const struct mu_loss *loss)
{
	size_t n = 0;

	while (loss->sums[n])
		n++;
	return n + (loss->extra ? 1 : 0);
}

static size_t count_metrics(const struct mu_joint *joint)
{
	size_t n = 0;

	for (size_t i = 0; i < joint->n; i++)
		for (const struct mu_metric *m = joint->heads[i].loss->metrics; m->name; m++)
			n++;
	return n;
}

static void name_sum(struct row *r, size_t i, const char *head, const char *sum)
{
	snprintf(r->sums[i], SUM_NAME, "%s_%s", head, sum);
	r->loss.sums[i] = r->sums[i];
}

/* Those of head h, from sum number `at` on; returns what follows. */
static size_t add_sums(struct row *r, const struct mu_joint_head *h, size_t at)
{
	name_sum(r, at++, h->name, "counted");
	for (size_t i = 0; h->loss->sums[i]; i++)
		name_sum(r, at++, h->name, h->loss->sums[i]);
	if (h->loss->extra)
		name_sum(r, at++, h->name, h->loss->extra);
	return at;
}

/* What the log shows, and --loss may name, of a head: not by what decides for a loss alone. */
static unsigned use_of(const struct mu_metric *m)
{
	return (m->use & (MU_METRIC_ALWAYS | MU_METRIC_OF_TALLY)) |
	       (m->takes_k ? 0 : MU_METRIC_CHOSEN);
}

/* Those of head i, whose sums begin at `at`, from number n on; returns how many there are then. */
static size_t add_metrics(struct row *r, size_t i, size_t at, size_t n)
{
	const struct mu_joint_head *h = &r->joint.heads[i];

	for (const struct mu_metric *m = h->loss->metrics; m->name; m++) {
		struct metric_names *names = &r->names[n];

		snprintf(names->name, NAME, "%s-%s", h->name, m->name);
		snprintf(names->other, NAME, "%s-%s", h->name, m->other ? m->other : m->name);
		snprintf(names->printed, NAME, "%s-%s", h->name, m->printed);
		r->metrics[n] = *m;
		r->metrics[n].name = names->name;
		r->metrics[n].other = names->other;
		r->metrics[n].printed = names->printed;
		r->metrics[n].column = m->column ? m->column : m->name;
		r->metrics[n].use = use_of(m);
		r->metrics[n].head = (unsigned short)(i + 1);
		r->metrics[n++].head_at = (unsigned short)at;
	}
	return n;
}

/* Help "the sum of class softmax, value mse * 0.5", name "class:softmax,value:mse". */
static void describe(struct row *r, const struct mu_joint_head *h)
{
	size_t n = strlen(r->name);
	char factor[32] = "";

	snprintf(r->name + n, sizeof r->name - n, "%s%s:%s", n ? "," : "", h->name, h->loss->name);
	if (h->weight != 1)
		snprintf(factor, sizeof factor, " * %g", h->weight);
	n = strlen(r->help);
	snprintf(r->help + n, sizeof r->help - n, "%s%s %s%s", n ? ", " : "the sum of ",
		 h->name, h->loss->name, factor);
}

/* "a" with bce and "a-binary" with softmax have "a-binary-accuracy". NULL: no name stands twice. */
static const char *has_twice(const struct mu_metric *metrics, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(metrics[i].name, metrics[k].name) == 0 ||
			    strcmp(metrics[i].printed, metrics[k].printed) == 0)
				return metrics[i].name;
	return NULL;
}

enum mu_status mu_joint_row(struct mu_loss **out, const struct mu_joint *joint)
{
	enum mu_status st = MU_OK;
	const size_t n = count_metrics(joint) + 1;
	void *memory = NULL;
	struct row *r;
	size_t at = LOSS + 1, all = LOSS + 1, filled = 1;

	for (size_t i = 0; i < joint->n; i++)
		all += 1 + count_sums(joint->heads[i].loss);
	if (all > MU_LOSS_SUMS)
		MU_FAIL(MU_ERR_USAGE, "its heads have %zu sums; %d are possible", all,
			MU_LOSS_SUMS);
	MU_TRY(mu_alloc(&memory, sizeof *r + (n + 1) * sizeof *r->metrics + n * sizeof *r->names,
			"losses of a net"));
	r = memory;
	r->names = (void *)(r->metrics + n + 1);
	r->joint = *joint;
	r->loss = (struct mu_loss){.name = r->name,
				   .help = r->help,
				   .output = MU_OUTPUT_VALUES,
				   .mean = MU_MEAN_OF_TARGETS,
				   .reads_output = true,
				   .sums = {"loss"},
				   .metrics = r->metrics,
				   .joint = &r->joint};
	r->metrics[0] = (struct mu_metric)MU_METRIC_OF_LOSS("loss");
	for (size_t i = 0; i < joint->n; i++) {
		const struct mu_joint_head *h = &joint->heads[i];

		describe(r, h);
		filled = add_metrics(r, i, at, filled);
		at = add_sums(r, h, at);
		r->loss.smooths |= h->smooths;
	}
	if (has_twice(r->metrics, filled))
		MU_FAIL(MU_ERR_USAGE, "two of its heads have a metric %s: give one of them another "
				      "name",
			has_twice(r->metrics, filled));
	*out = &r->loss;
	memory = NULL;
out:
	mu_free(memory);
	return st;
}

const char *mu_loss_heads(const struct mu_loss *loss, char *text, size_t nbytes)
{
	const struct mu_joint *joint = loss->joint;

	*text = '\0';
	for (size_t i = 0; joint && i < joint->n; i++) {
		const size_t n = strlen(text);

		snprintf(text + n, nbytes - n, "%s%s %zu", i ? ", " : "", joint->heads[i].name,
			 mu_joint_part(joint, i).targets);
	}
	return text;
}

/* Sums of the head whose own begin at `at`, as of a loss that is alone. */
static struct mu_metrics of_head(const struct mu_metrics *m, size_t head, size_t at)
{
	struct mu_metrics own = {.samples = m->samples, .counted = m->sums[at]};

	memcpy(own.sums, m->sums + at + 1, (MU_LOSS_SUMS - at - 1) * sizeof *own.sums);
	own.tally = mu_tally_part(m->tally, head);
	return own;
}

double mu_metric_value(const struct mu_metric *metric, const struct mu_metrics *m)
{
	struct mu_metrics own;

	if (metric->head == 0)
		return metric->value(m);
	own = of_head(m, metric->head - 1U, metric->head_at);
	return metric->value(&own);
}

bool mu_loss_part(struct mu_loss_part *part, const struct mu_loss *loss, size_t i,
		  const struct mu_metrics *m)
{
	const struct mu_joint *joint = loss->joint;
	size_t at = LOSS + 1;

	if (i >= (joint ? joint->n : 1))
		return false;
	*part = (struct mu_loss_part){.head = "", .loss = loss};
	if (!joint && m)
		part->m = *m;
	if (!joint)
		return true;
	part->head = joint->heads[i].name;
	part->loss = joint->heads[i].loss;
	part->output = joint->heads[i].shape;
	for (size_t k = 0; k < i; k++)
		at += 1 + count_sums(joint->heads[k].loss);
	if (m)
		part->m = of_head(m, i, at);
	return true;
}

/* What head i found out about sample s. */
static void see(struct mu_loss_results *own, struct mu_batch *batch,
		const struct mu_loss_results *r, const struct mu_joint_part *part,
		const struct mu_joint_part *all, size_t s)
{
	batch->labels = r->batch->labels + s * all->target + part->target;
	batch->predictions = r->batch->predictions + s * all->prediction + part->prediction;
	batch->count = 1;
	own->output = r->output ? r->output + s * all->output + part->output : NULL;
}

static void measure_heads(struct mu_metrics *m, const struct mu_joint *joint,
			  const struct mu_loss_results *r)
{
	const struct mu_joint_part all = mu_joint_part(joint, joint->n);
	size_t at = LOSS + 1;

	for (size_t i = 0; i < joint->n; i++) {
		const struct mu_joint_head *h = &joint->heads[i];
		const struct mu_joint_part part = mu_joint_part(joint, i);
		const size_t n = count_sums(h->loss);
		struct mu_shape shape = h->shape;
		struct mu_batch batch;
		struct mu_loss_results own = {
			.batch = &batch, .targets = part.targets, .k = r->k, .shape = &shape};
		struct mu_metrics sums = {.tally = mu_tally_part(m->tally, i)};

		shape.dims[0] = 1;
		mu_joint_batch(&batch, r->batch, h);
		for (size_t s = 0; s < r->batch->count; s++) {
			see(&own, &batch, r, &part, &all, s);
			mu_metrics_measure(&sums, h->loss, &own);
			for (size_t k = 0; k < part.predictions; k++)
				m->sums[LOSS] += h->weight * batch.predictions[k].loss;
		}
		m->sums[at++] += sums.counted;
		for (size_t k = 0; k < n; k++)
			m->sums[at++] += sums.sums[k];
	}
}

void mu_metrics_measure(struct mu_metrics *m, const struct mu_loss *loss,
			const struct mu_loss_results *r)
{
	m->samples += (double)r->batch->count;
	m->counted += (double)mu_loss_counted(loss, r);
	if (loss->joint)
		measure_heads(m, loss->joint, r);
	else
		loss->measure(m, r);
	if (m->tally && loss->tally)
		loss->tally(m->tally, r);
}
