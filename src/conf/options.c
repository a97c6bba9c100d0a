/* SPDX-License-Identifier: Apache-2.0 */
/* Settle options: defaults that depend on other options, facts, then the rules (rules.c). */
#include "conf.h"
#include "rules.h"
#include "text.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <muster/net.h>
#include <muster/storage.h>

static enum mu_status settle_network(const struct mu_options *o, struct conf *v,
				     long *pad)
{
	enum mu_status st = MU_OK;
	const struct mu_network *network;
	const struct mu_loss *objective;

	if (!v->network && v->load && (v->evaluate || v->onnx.file))
		MU_FAIL(MU_ERR_USAGE,
			"--%s: %s does not say of which network its parameters are: --network NAME "
			"is needed",
			v->onnx.file ? "export" : v->predict ? "predict" : "evaluate", v->load);
	if (!v->network && v->evaluate)
		MU_FAIL(MU_ERR_USAGE, "--%s needs the file of parameters: --load FILE",
			v->predict ? "predict" : "evaluate");
	if (!v->network && v->text.sample > 0 && !v->load && !v->model_prefix)
		MU_FAIL(MU_ERR_USAGE, "--sample needs a trained network: --load FILE names it");
	if (!v->network && v->text.sample > 0 && !v->load)
		MU_FAIL(MU_ERR_USAGE,
			"--sample: there is no checkpoint %s-*.h5 to generate from; --load FILE "
			"names one",
			v->model_prefix);
	if (!v->network)
		MU_FAIL(MU_ERR_USAGE,
			"--network NAME is missing (--help lists the options)");
	MU_TRY(mu_conf_network(&network, v->network));
	if (v->owner.network != network)
		MU_FAIL(MU_ERR_ARGUMENT, "the options are those of another network than %s",
			network->name);
	MU_TRY(mu_conf_objective(&objective, network, v->objective));
	if (v->owner.objective != objective)
		MU_FAIL(MU_ERR_ARGUMENT, "the options are those of another objective than %s",
			objective ? objective->name : "the network's own");
	v->facts.of_values = objective && !objective->of_classes;
	v->facts.of_classes = objective && objective->of_classes;
	v->facts.reads_sequences = network->traits & MU_NETWORK_SEQUENCES;
	v->network_name = network->name;
	if (v->num_layers == 0 && (network->traits & MU_NETWORK_LINEAR) &&
	    mu_options_given(o, "num-layers"))
		v->num_layers = -1;
	MU_TRY(mu_conf_training_settle(o, network, v, pad));
out:
	return st;
}

/* "dynamic", "dynamic:START", "none", or a number. */
static enum mu_status settle_loss_scale(struct conf *v)
{
	enum mu_status st = MU_OK;
	static const char dynamic[] = "dynamic";
	const char *text = v->loss_scale;
	const size_t n = sizeof dynamic - 1;
	char *end;

	if (!text)
		text = v->dtype == MU_FLOAT16 ? dynamic : "none";
	v->scale.dynamic = strncmp(text, dynamic, n) == 0 && (text[n] == '\0' || text[n] == ':');
	if (v->scale.dynamic && text[n] == '\0')
		goto out;
	if (v->scale.dynamic)
		text += n + 1;
	if (strcmp(text, "none") == 0 && !v->scale.dynamic)
		goto out;
	v->scale.start = strtod(text, &end);
	if (end == text || *end ||
	    !(v->scale.start >= CONF_SCALE_LEAST && v->scale.start <= CONF_SCALE_MOST))
		MU_FAIL(MU_ERR_USAGE,
			"--loss-scale %s: dynamic, dynamic:START, none, or a number from %g to %g "
			"is needed",
			v->loss_scale, CONF_SCALE_LEAST, CONF_SCALE_MOST);
out:
	return st;
}

/* "3": the file of epoch 3, as --load-epoch 3. */
static void settle_resume(struct conf *v)
{
	const size_t digits = strspn(v->resume, "0123456789");

	if (digits > 0 && digits <= 4 && !v->resume[digits] && v->load_epoch == 0) {
		v->load_epoch = strtol(v->resume, NULL, 10);
		v->resume = "none";
	}
	v->resume_from = strcmp(v->resume, "none") == 0   ? CONF_RESUME_NONE
			 : strcmp(v->resume, "auto") == 0 ? CONF_RESUME_AUTO
							  : CONF_RESUME_FILE;
}

/* The unit of "500steps": 0 epochs, 1 steps, 2 minutes, 3 none of them. */
static int find_unit(const char *text, size_t n)
{
	static const char *const units[3][3] = {
		{"", "epoch", "epochs"}, {"step", "steps", "steps"}, {"min", "minute", "minutes"}};
	int unit = 0;

	for (; unit < 3; unit++)
		for (int i = 0; i < 3; i++)
			if (strlen(units[unit][i]) == n && strncmp(units[unit][i], text, n) == 0)
				return unit;
	return unit;
}

/* One item of --save-every. false: it is none. */
static bool set_period(struct conf *v, const char *item, size_t n)
{
	char *end;
	const double x = strtod(item, &end);
	const size_t digits = (size_t)(end - item);
	const int unit = digits > 0 && digits <= n ? find_unit(end, n - digits) : 3;

	if (unit == 3 || !(x > 0 && x <= (unit == 2 ? 1e6 : INT_MAX)) ||
	    (unit < 2 && x != floor(x)))
		return false;
	if (unit == 0)
		v->save_period = (long)x;
	else if (unit == 1)
		v->save_steps = (long)x;
	else
		v->save_minutes = x;
	return true;
}

/* "1,500steps,10min" */
static enum mu_status settle_save_every(struct conf *v)
{
	enum mu_status st = MU_OK;

	for (const char *item = v->save_every; item;) {
		const size_t n = strcspn(item, ",");

		if (!set_period(v, item, n))
			MU_FAIL(MU_ERR_USAGE,
				"--save-every %s: \"%.*s\" is no period: a number of epochs, of "
				"steps or of minutes is needed, as in 1,500steps,10min",
				v->save_every, (int)n, item);
		item = item[n] ? item + n + 1 : NULL;
	}
out:
	return st;
}

/* --model-parallel and --model-parallel-ranks: a number, or a list as --group2dev and --group2rank
 * have it. */
static enum mu_status settle_cut(const char *option, const char *text, long *n, const char **list)
{
	enum mu_status st = MU_OK;
	const long least = *n; /* what is set without the option */
	char *end;

	if (!text)
		goto out;
	if (strchr(text, '=')) {
		if (*list)
			MU_FAIL(MU_ERR_USAGE, "--%s %s with %s: use one of them", option, text,
				*list);
		*list = text;
		goto out;
	}
	*n = strtol(text, &end, 10);
	if (end == text || *end || *n < least || *n > CONF_MAX_STAGES)
		MU_FAIL(MU_ERR_USAGE,
			"--%s %s: a number from %ld to %d is needed, or a list of groups of layers",
			option, text, least, CONF_MAX_STAGES);
out:
	return st;
}

static void find_mode(struct conf *v)
{
	const bool has_job = mu_conf_mode_has(v, CONF_MODE_HAS_JOB);

	v->facts.mode = mu_conf_mode_option(v, mu_conf_mode(v));
	v->facts.unwatched = has_job && !mu_conf_mode_has(v, CONF_MODE_TRAINS);
	v->facts.uncomputed = has_job && !mu_conf_mode_has(v, CONF_MODE_COMPUTES);
}

static void find_facts(struct conf *v)
{
	const struct conf_schedule *s = &v->schedule;
	const bool ends = s->kind == CONF_SCHEDULE_POLY || s->kind == CONF_SCHEDULE_COSINE;
	const bool files_alone = v->data_train && !v->data_val && v->val_split <= 0;
	struct conf_facts *f = &v->facts;

	f->text_or_sample = mu_conf_reads_text(v) || v->text.sample > 0;
	f->sequences_or_sample = f->reads_sequences || f->text_or_sample;
	f->validation = !v->benchmark && !files_alone;
	f->evaluates = v->evaluate;
	f->evaluates_files = v->evaluate && !v->benchmark;
	f->can_evaluate = v->benchmark ? !v->predict : !files_alone;
	f->split = v->group2dev || v->model_parallel > 0 || v->group2rank ||
		   v->model_parallel_ranks > 1 || v->micro_batches > 1 || v->time_block > 0;
	f->cut_devices = v->model_parallel > 0;
	f->cut_several = v->model_parallel > 1;
	f->cut_ranks = v->model_parallel_ranks > 1;
	f->goes_on = v->resume_from != CONF_RESUME_NONE || v->load_epoch > 0;
	f->parameters = f->goes_on || v->load || v->benchmark;
	f->past_the_end = v->load_epoch > v->num_epochs && !v->evaluate && v->text.sample == 0;
	f->warmup_only = ends && s->warmup_epochs >= (double)v->num_epochs;
	f->final_above = s->final_lr > v->lr && v->lr > 0;
	f->warmup_above = s->warmup_begin_lr > v->lr;
	f->uneven_verify = v->verify_steps % v->sync_period != 0;
	f->dynamic_scale = v->scale.dynamic;
	f->no_best = v->best_metric && strcmp(v->best_metric, "none") == 0;
	find_mode(v);
}

static enum mu_status check_predict(const struct conf *v)
{
	enum mu_status st = MU_OK;
	const bool hdf5 = v->predict && mu_stem(v->predict, ".h5") > 0;

	if (v->predict && !hdf5 && !mu_stem(v->predict, ".csv") && !mu_stem(v->predict, ".npy"))
		MU_FAIL(MU_ERR_USAGE,
			"--predict %s: a name that ends in .h5, .csv or .npy is needed",
			v->predict);
	if (hdf5 && !mu_array_file_supported())
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"--predict %s: this build has no HDF5; a .csv or .npy file is possible",
			v->predict);
out:
	return st;
}

static enum mu_status check_export(const struct conf *v)
{
	enum mu_status st = MU_OK;

	if (v->onnx.file && !mu_stem(v->onnx.file, ".onnx"))
		MU_FAIL(MU_ERR_USAGE, "--export %s: a name that ends in .onnx is needed",
			v->onnx.file);
	if (v->onnx.opset != 17 && v->onnx.opset != 23)
		MU_FAIL(MU_ERR_USAGE, "--export-opset %ld: 17 and 23 are written", v->onnx.opset);
out:
	return st;
}

static enum mu_status check_data(const struct conf *v)
{
	enum mu_status st = MU_OK;

	if (!v->benchmark && !v->data_dir && !v->data_train && !v->data_val &&
	    mu_conf_mode_has(v, CONF_MODE_HAS_JOB))
		MU_FAIL(MU_ERR_USAGE,
			"no data: use --data-dir DIR with files of MNIST, CIFAR or tokens, "
			"--data-train FILE with images or a text, or --benchmark 1");
	MU_TRY(check_predict(v));
	MU_TRY(check_export(v));
out:
	return st;
}

static bool is_asked(const struct conf *v, enum conf_mode mode)
{
	switch (mode) {
#define MODE(NAME, option, condition, traits) \
	case CONF_MODE_##NAME: return condition;
#include "modes.def"
#undef MODE
	default: return false;
	}
}

enum conf_mode mu_conf_mode(const struct conf *v)
{
	enum conf_mode mode = 0;

	while (!is_asked(v, mode)) /* training is the last, and always possible */
		mode++;
	return mode;
}

bool mu_conf_mode_has(const struct conf *v, enum conf_mode_trait trait)
{
	static const unsigned of[] = {
#define MODE(NAME, option, condition, traits) traits,
#include "modes.def"
#undef MODE
	};

	return of[mu_conf_mode(v)] & trait;
}

const char *mu_conf_mode_option(const struct conf *v, enum conf_mode mode)
{
	static const char *const of[] = {
#define MODE(NAME, option, condition, traits) option,
#include "modes.def"
#undef MODE
	};

	return is_asked(v, mode) ? of[mode] : NULL;
}

enum mu_status mu_conf_settle(const struct mu_options *o, const struct conf_ranks *ranks,
			      struct conf *v)
{
	enum mu_status st = MU_OK;
	long pad;

	v->facts = (struct conf_facts){.servers = false};
	v->scale = (struct conf_loss_scale){.start = 0};
	v->traffic = mu_options_given(o, "verbose") ? (enum mu_verbose)(MU_VERBOSE_NO + v->verbose)
						    : MU_VERBOSE_ENVIRONMENT;
	v->evaluate |= v->predict != NULL;
	MU_TRY(settle_network(o, v, &pad));
	settle_resume(v);
	MU_TRY(settle_save_every(v));
	v->model_parallel = 0;
	v->model_parallel_ranks = 1;
	MU_TRY(settle_cut("model-parallel", v->cut.devices, &v->model_parallel, &v->group2dev));
	MU_TRY(settle_cut("model-parallel-ranks", v->cut.ranks, &v->model_parallel_ranks,
			  &v->group2rank));
	MU_TRY(settle_loss_scale(v));
	MU_TRY(mu_conf_text_settle(o, v));
	MU_TRY(mu_conf_schedule_settle(o, v));
	MU_TRY(mu_conf_reader_settle(o, v, pad));
	find_facts(v);
	MU_TRY(mu_conf_optimizer_settle(o, v));
	MU_TRY(mu_conf_owner_check(o, v));
	MU_TRY(mu_option_rules_check(o, &mu_conf_rules));
	MU_TRY(mu_conf_compression_settle(o, v));
	MU_TRY(check_data(v));
	if (v->model_prefix && !*v->model_prefix)
		MU_FAIL(MU_ERR_USAGE, "--model-prefix '': a name is needed, such as out/lenet");
	if (v->evaluate && v->data_val && !v->data_train)
		v->data_train = v->data_val;
	if (mu_conf_mode_has(v, CONF_MODE_HAS_JOB) || mu_conf_sums_up_job(v, ranks->n))
		MU_TRY(mu_conf_job_settle(o, ranks, v));
out:
	return st;
}
