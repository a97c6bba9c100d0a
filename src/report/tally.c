/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of all predictions of a validation together, of a loss that is alone and of each
 * head of several: what is odd about them, and a line for each class. */
#include "report.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

/* Of fewer targets it is no news that all predictions are one class. */
enum { MANY_TARGETS = 100, SHOWN_CLASSES = 20 };

static bool uses(const struct engine_metrics *metrics, const struct mu_loss_part *part,
		 const char *name)
{
	return mu_engine_metrics_use(metrics, part, name);
}

/* "validation", "validation: head class" */
static const char *name_part(const struct mu_loss_part *part, char *text, size_t nbytes)
{
	snprintf(text, nbytes, "validation%s%s", *part->head ? ": head " : "", part->head);
	return text;
}

static bool tell_part(const struct engine_metrics *metrics, const struct mu_loss_part *part)
{
	const struct mu_tally *t = part->m.tally;
	const double samples = part->m.samples, counted = part->m.counted;
	const size_t only = t ? mu_tally_only(t) : 0;
	const bool none = samples > 0 && counted == 0;
	const bool one = t && only < t->outputs && counted >= MANY_TARGETS,
		   auc = t && uses(metrics, part, "auc") && !isfinite(t->auc),
		   r2 = t && uses(metrics, part, "r2") && !isfinite(mu_tally_r2(&part->m));
	char text[64];

	name_part(part, text, sizeof text);
	if (none)
		mu_log_warn("%s: none of the targets of %.0f samples counts; metrics are not "
			    "defined",
			    text, samples);
	if (one)
		mu_log_warn("%s: all %.0f predictions are class %zu, which %.0f of the targets are",
			    text, counted, only, mu_tally_class(t, only).targets);
	if (auc)
		mu_log_warn("%s: auc is not %s", text,
			    t->too_many ? "computed: there are more predictions than are kept"
					: "defined: it needs targets of both classes, and "
					  "predictions that are numbers");
	if (r2)
		mu_log_warn("%s: r2 is not defined: the targets do not vary, or a prediction is "
			    "not finite",
			    text);
	return none || one || auc || r2;
}

bool mu_report_tally(const struct engine_metrics *metrics, const struct mu_metrics *m)
{
	struct mu_loss_part part;
	bool told = false;

	for (size_t i = 0; mu_loss_part(&part, metrics->loss, i, m); i++)
		told |= tell_part(metrics, &part);
	return told;
}

/* "head class, " */
static const char *name_head(const struct mu_loss_part *part, char *text, size_t nbytes)
{
	snprintf(text, nbytes, "%s%s%s", *part->head ? "head " : "", part->head,
		 *part->head ? ", " : "");
	return text;
}

/* The row of a matrix: "3: 0 0 2 118". */
static void tell_row(const struct mu_tally *t, const char *head, size_t k)
{
	char text[512];
	size_t n = (size_t)snprintf(text, sizeof text, "%zu:", k);

	for (size_t i = 0; i < t->outputs && n < sizeof text; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, " %.0f",
				      t->sums[k * t->outputs + i]);
	mu_log_info("%sconfusion of class %s", head, text);
}

static void tell_classes(const struct engine_metrics *metrics, const struct mu_loss_part *part)
{
	const struct mu_tally *t = part->m.tally;
	char head[64];

	if (!t || t->n_sums == 0 ||
	    !(uses(metrics, part, "recall") || uses(metrics, part, "iou") ||
	      uses(metrics, part, "dice-score")))
		return;
	name_head(part, head, sizeof head);
	for (size_t k = 0; k < t->outputs; k++) {
		const struct mu_class_counts c = mu_tally_class(t, k);
		const double either = c.targets + c.predicted - c.both;

		if (either > 0)
			mu_log_info("%sclass %zu: %.0f targets, %.0f predicted, %.0f of them "
				    "right: recall %.6f, iou %.6f",
				    head, k, c.targets, c.predicted, c.both,
				    c.targets > 0 ? c.both / c.targets : 0, c.both / either);
	}
	for (size_t k = 0; k < t->outputs && t->outputs <= SHOWN_CLASSES; k++)
		tell_row(t, head, k);
}

void mu_report_classes(const struct engine_metrics *metrics, const struct mu_metrics *m)
{
	struct mu_loss_part part;

	for (size_t i = 0; mu_loss_part(&part, metrics->loss, i, m); i++)
		tell_classes(metrics, &part);
}
