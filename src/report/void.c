/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that do nothing in this run: one line for each row of mu_conf_void_rules that applies.
 * The rules of conf refuse what contradicts; here is what has nothing to work on, which is known
 * once data, network and devices are open. A fact that is not known stays false: no line is wrong.
 */
#include "report.h"

#include <string.h>

#include <muster/base.h>

#include "conf/conf.h"
#include "conf/rules.h"

enum { LINE_BYTES = 2048 };

static void find_modes(struct conf_void *f)
{
	const struct conf *v = &f->conf;

	f->unread = v->summary || v->text.sample > 0;
	f->no_training_data = f->unread || (v->evaluate && !v->benchmark);
	f->untrained = f->unread || v->evaluate || v->test_io || v->dump_batch ||
		       v->conv_algo == CONF_CONV_TUNE;
	f->undrawn = (v->evaluate && !v->benchmark && !v->skip_mismatch) || v->summary;
	f->given_weights = v->load && !v->skip_mismatch;
}

static void find_data(const struct mu_engine *e, struct conf_void *f)
{
	const struct conf *v = e->conf;
	const struct mu_input *in = e->train;
	const struct mu_augment a = mu_conf_images_augment(&v->images, MU_INPUT_TRAIN);

	f->no_threads = !in->ops->threads;
	f->no_images = !in->ops->colour_images;
	f->no_outside = a.pad == 0 && a.max_rotate_angle == 0 && a.max_shear <= 0 &&
			a.min_scale <= 0 && a.max_scale <= 0 && a.max_aspect <= 0;
	f->few_samples = in->n < (size_t)v->num_examples;
	f->few_steps = e->steps > 0 && e->steps < (size_t)v->num_batches;
	f->short_epochs = e->steps > 0 && e->steps < (size_t)v->update_period;
}

static void find_network(const struct mu_engine *e, struct conf_void *f)
{
	struct mu_plan_convolutions c;
	const struct mu_slice *slices;
	size_t n;

	mu_plan_convolutions(e->plan, &c);
	f->no_convolutions = c.n[MU_CONVOLUTION_FORWARD] == 0;
	slices = mu_plan_slices(e->plan, &n);
	f->no_gammas = true;
	for (size_t k = 0; k < n; k++)
		f->no_gammas &= !mu_stem(slices[k].name, "_gamma");
}

void mu_report_void(const struct conf *conf, const struct mu_options *options,
		    const struct report_view *view)
{
	const struct mu_engine *e = view ? view->engine : NULL;
	struct mu_options o = *options;
	struct conf_void v = {.conf = *conf};
	char line[LINE_BYTES];

	o.values = &v;
	find_modes(&v);
	if (e) {
		v.no_gpus = !e->list->kind->memory;
		v.one_device = e->list->n == 1;
		v.one_rank = e->topology->size == 1;
		v.one_worker = e->topology->num_workers == 1;
		v.given_weights |= view->saved && *view->saved;
		find_data(e, &v);
		if (e->plan)
			find_network(e, &v);
	}
	for (size_t i = 0; i < mu_conf_void_rules.n; i++)
		if (mu_option_rule_void(&o, &mu_conf_void_rules, &mu_conf_void_rules.of[i], line,
					sizeof line))
			mu_log_warn("%s", line);
}
