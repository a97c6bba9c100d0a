/* SPDX-License-Identifier: Apache-2.0 */
/* Which reader a run's data need: random data, files in a folder, or records. */
#include "data.h"

#include <string.h>

#include <muster/base.h>

#include "conf/conf.h"
#include "conf/text.h"

enum { FEW_CLASSES = 100 };

/* A network for images may read volumes; if not, it says so. */
static bool is_volume(const struct mu_shape *shape, const struct mu_network *network)
{
	return shape->ndims == 5 && network->shape.ndims == 4 &&
	       !(network->traits & MU_NETWORK_SEQUENCES);
}

enum mu_status mu_train_find_shape(const struct conf *v, const struct mu_network *network,
				   struct mu_shape *shape)
{
	enum mu_status st = MU_OK;
	char usual[MU_SAMPLE_TEXT];

	*shape = network->shape;
	if (network->traits & MU_NETWORK_SEQUENCES)
		*shape = mu_sample_sequence(mu_conf_window(v, network));
	if (!v->image_shape)
		return MU_OK;
	if (!mu_sample_parse(shape, v->image_shape) ||
	    (shape->ndims != network->shape.ndims && !is_volume(shape, network)))
		MU_FAIL(MU_ERR_USAGE,
			"--image-shape %s: a shape such as %s is needed, of numbers from 1 to "
			"99999",
			v->image_shape,
			mu_sample_text(&network->shape, ",", usual, sizeof usual));
out:
	return st;
}

/* ---- settings of readers, one function each ---- */

/* What they depend on. */
struct reading {
	const struct conf *v;
	const struct mu_network *network;
	const struct mu_vocabulary *vocabulary;
};

_Static_assert(sizeof(union train_reader_settings) <= MU_SETTINGS_BYTES, "of struct conf_owner");

/* Settled: validation data are read in the place of training data, to evaluate. */
static bool swaps(const struct conf *v)
{
	return v->data_train == v->data_val;
}

static enum mu_status set_arrays(const struct reading *r, union train_reader_settings *s)
{
	if (swaps(r->v))
		s->arrays.label_train = s->arrays.label_val;
	s->arrays.ignored = mu_conf_ignored(r->v, &s->arrays.ignores);
	return MU_OK;
}

static enum mu_status set_pictures(const struct reading *r, union train_reader_settings *s)
{
	if (swaps(r->v))
		s->pictures.data_train_idx = s->pictures.data_val_idx;
	return mu_train_find_shape(r->v, r->network, &s->pictures.net_shape);
}

static enum mu_status set_synthetic(const struct reading *r, union train_reader_settings *s)
{
	s->synthetic.number =
		r->network->traits & MU_NETWORK_SEQUENCES ? MU_NUMBER_INT32 : MU_NUMBER_FLOAT32;
	return MU_OK;
}

static enum mu_status set_text(const struct reading *r, union train_reader_settings *s)
{
	s->text = (struct mu_text_settings){.characters = mu_conf_text_characters(r->v),
					    .vocabulary = r->vocabulary,
					    .lengths = r->v->text.lengths,
					    .n_lengths = r->v->text.n_lengths};
	return MU_OK;
}

static enum mu_status set_tokens(const struct reading *r, union train_reader_settings *s)
{
	s->tokens.window = mu_conf_window(r->v, r->network);
	return MU_OK;
}

static const struct {
	const char *reader;
	enum mu_status (*set)(const struct reading *r, union train_reader_settings *s);
} kinds[] = {
	{"arrays", set_arrays},       {"cifar", set_pictures}, {"records", set_pictures},
	{"synthetic", set_synthetic}, {"text", set_text},      {"tokens", set_tokens},
};

enum mu_status mu_train_reader_set(const struct conf *v, const struct mu_network *network,
				   const struct mu_vocabulary *vocabulary,
				   struct mu_input_config *config, union train_reader_settings *s)
{
	enum mu_status st = MU_OK;
	const struct reading r = {v, network, vocabulary};
	const struct mu_reader *reader;
	const void *options;

	memset(s, 0, sizeof *s);
	MU_TRY(mu_input_reader(config->reader, &reader));
	options = mu_conf_reader_settings(v, config->reader);
	if (options)
		memcpy(s, options, reader->settings_nbytes);
	config->settings = s;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kinds[i].reader, config->reader) == 0)
			MU_TRY(kinds[i].set(&r, s));
out:
	return st;
}

/* ---- which reader ---- */

enum mu_status mu_train_choose_reader(const struct conf *v, const struct mu_network *network,
				      struct mu_input_config *config)
{
	enum mu_status st = MU_OK;
	const struct mu_reader *reader;
	const char *given;

	config->values = v->facts.of_values;
	config->classes = config->values ? 0 : (size_t)v->num_classes;
	MU_TRY(mu_train_find_shape(v, network, &config->shape));
	config->reader = "synthetic";
	if (v->data_train) {
		config->reader = mu_conf_reads_text(v)     ? "text"
				 : mu_conf_reads_tokens(v) ? "tokens"
				 : mu_conf_reads_arrays(v) ? "arrays"
							   : "records";
		if (v->predict && mu_conf_reads_arrays(v)) /* which may have no targets */
			config->classes = (size_t)v->num_classes;
		if (mu_conf_reads_text(v)) /* as many as words */
			config->classes = 0;
		if (!v->image_shape)
			config->shape = (struct mu_shape){0};
		return MU_OK;
	}
	if (!v->benchmark) {
		MU_TRY(mu_input_detect(v->data_dir, &reader));
		config->reader = reader->name;
		if (!v->image_shape)
			config->shape = (struct mu_shape){0};
		given = !reader->colour_images && v->image_shape ? "image-shape"
			: !mu_conf_reader_settings(v, reader->name) ? v->owner.given
								 : NULL;
		if (given)
			MU_FAIL(MU_ERR_USAGE,
				"--%s is for colour images; %s holds %s files, which are taken as "
				"they are",
				given, v->data_dir, reader->name);
		if (reader->knows_classes)
			goto out;
	}
	if (config->classes == 0)
		config->classes = config->values ? mu_train_outputs(v, NULL) : network->classes;
out:
	return st;
}

size_t mu_train_outputs(const struct conf *v, const struct mu_input *in)
{
	if (!v->facts.of_values)
		return in->classes;
	if (v->num_classes > 0 || !in || v->benchmark)
		return v->num_classes > 0 ? (size_t)v->num_classes : 1;
	return mu_shape_channels(&mu_input_field(in, MU_FIELD_TARGET)->shape);
}

enum mu_status mu_train_widen_targets(struct mu_input *in, size_t n)
{
	enum mu_status st = MU_OK;
	struct mu_input_config config = in->config;
	union train_reader_settings settings;

	if (!in->unlabelled || strcmp(in->ops->name, "arrays") != 0 || n == mu_input_width(in))
		return MU_OK;
	memcpy(&settings, config.settings, in->ops->settings_nbytes);
	config.settings = &settings;
	config.label_width = n;
	mu_input_close(in);
	MU_TRY(mu_input_open(in, &config));
out:
	return st;
}

/* Targets of arrays that are classes. tell: and warn of what may be wrong. */
static enum mu_status check_classes(const struct conf *v, const struct mu_input *in,
				    const char *place, bool tell)
{
	enum mu_status st = MU_OK;
	const size_t used = in->about.used, last = in->classes - 1;
	bool ignores;
	const size_t ignored = mu_conf_ignored(v, &ignores);

	if (!mu_conf_reads_arrays(v) || in->about.not_classes)
		goto out;
	if (ignores && in->about.ignored && used == 0)
		MU_FAIL(MU_ERR_USAGE,
			"%s: all of its targets are %zu, which --ignore-class leaves out: there is "
			"nothing to learn",
			place, ignored);
	if (v->num_classes <= 0 && in->classes > FEW_CLASSES && used < in->classes / 2)
		MU_FAIL(MU_ERR_USAGE,
			"%s: its targets are integers up to %zu, and only %zu of these %zu numbers "
			"occur; if %zu marks targets that do not count, --ignore-class %zu says "
			"so; if they are values, --objective mse is for them; if they are classes, "
			"--num-classes %zu",
			place, last, used, in->classes, last, last, in->classes);
	tell = tell && in->config.worker == 0;
	if (tell && v->num_classes <= 0 && used < in->classes)
		mu_log_warn("%s: its targets are integers up to %zu: %zu classes, of which %zu "
			    "occur%s; --num-classes says how many there are",
			    place, last, in->classes, used, used == 1 ? "s" : "");
	if (tell && ignores && !in->about.ignored)
		mu_log_warn("%s: none of its targets is %zu, which --ignore-class leaves out",
			    place, ignored);
out:
	return st;
}

enum mu_status mu_train_check_targets(const struct conf *v, const struct mu_input *in,
				      const struct mu_loss *loss, size_t labels)
{
	enum mu_status st = MU_OK;
	const struct mu_field *field = mu_input_field(in, MU_FIELD_TARGET);
	const size_t width = mu_input_width(in);
	char text[MU_SAMPLE_TEXT];
	const char *why = in->about.not_classes;
	const char *place = in->about.targets ? in->about.targets
			    : v->data_train   ? v->data_train
					      : v->data_dir;

	if (v->benchmark || in->unlabelled || !loss->of_classes)
		goto out;
	if (mu_conf_reads_arrays(v) && width == 1 && v->num_classes <= 0 &&
	    in->classes > FEW_CLASSES && in->classes > in->n)
		MU_FAIL(MU_ERR_USAGE,
			"%s: the largest of its targets, which are integers, is %zu, and there are "
			"%zu samples; if they are values, --objective mse is for them; if they are "
			"classes, --num-classes says how many",
			place, in->classes - 1, in->n);
	MU_TRY(check_classes(v, in, place, labels > 0));
	if (field->number == MU_NUMBER_FLOAT32 && width == 1)
		MU_FAIL(MU_ERR_USAGE,
			"%s: its targets are values, not classes (%s), and the loss, %s, needs "
			"classes, integers from 0 on: --objective mse is for values; where a "
			"negative number marks targets that do not count, write 255, and say "
			"--ignore-class 255",
			place, why ? why : "real numbers", loss->help);
	if (field->number == MU_NUMBER_FLOAT32 && field->shape.ndims > 2)
		MU_FAIL(MU_ERR_USAGE,
			"%s: a sample's targets are %s values (%s), and the loss, %s, needs the "
			"number of a class at each position: y.astype('int32') makes that of a "
			"mask of whole numbers; --objective mse, bce and dice are for values",
			place, mu_sample_text(&field->shape, " x ", text, sizeof text),
			why ? why : "real numbers", loss->help);
	if (labels == 1 && width > 1 && field->shape.ndims > 2)
		MU_FAIL(MU_ERR_USAGE,
			"%s: a sample has %s targets, and the network one output: one with an "
			"output for each position is needed (%s)",
			place, mu_sample_text(&field->shape, " x ", text, sizeof text), loss->help);
	if (field->number == MU_NUMBER_FLOAT32 || (labels == 1 && width > 1))
		MU_FAIL(MU_ERR_USAGE,
			"%s: has %zu targets a sample (%s), and the loss, %s, needs the number of "
			"a class: numpy.argmax(y, axis=1) makes that of one-hot rows; "
			"--objective mse is for several values",
			place, width, why ? why : "integers", loss->help);
out:
	return st;
}

enum mu_status mu_train_check_validation(const struct conf *v, const struct mu_input *in,
					 const struct mu_input *train)
{
	enum mu_status st = MU_OK;
	const struct mu_field *have = mu_input_field(in, MU_FIELD_TARGET);
	const struct mu_field *want = mu_input_field(train, MU_FIELD_TARGET);
	const char *columns = in->about.columns, *usual = train->about.columns;
	const char *why = in->about.not_classes;
	const char *data = v->data_val ? v->data_val : v->data_dir;
	const char *place = in->about.targets ? in->about.targets : data;
	char a[MU_SAMPLE_TEXT], b[MU_SAMPLE_TEXT];

	if (!mu_shape_equal(mu_input_shape(in), mu_input_shape(train)))
		MU_FAIL(MU_ERR_FORMAT, "%s: samples for validation are %s, those for training %s",
			data, mu_sample_text(mu_input_shape(in), " x ", a, sizeof a),
			mu_sample_text(mu_input_shape(train), " x ", b, sizeof b));
	if (columns && usual && strcmp(columns, usual) != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: its columns are %.100s, those for training %.100s: the same are "
			"needed, in the same order",
			data, columns, usual);
	if (in->about.target_columns && train->about.target_columns &&
	    strcmp(in->about.target_columns, train->about.target_columns) != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: its targets are the columns %.100s, those for training %.100s: the "
			"same are needed, in the same order (--label-columns)",
			place, in->about.target_columns, train->about.target_columns);
	if (in->unlabelled || in->groups)
		goto out;
	if (have->number != want->number)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: targets for validation are %s%s%s, those for training %s", place,
			have->number == MU_NUMBER_INT32 ? "classes" : "values",
			why && *why ? ", " : "", why ? why : "",
			want->number == MU_NUMBER_INT32 ? "classes" : "values");
	if (!mu_shape_equal(&have->shape, &want->shape))
		MU_FAIL(MU_ERR_FORMAT,
			"%s: a sample for validation has %zu target%s, one for training %zu", place,
			mu_input_width(in), MU_S(mu_input_width(in)), mu_input_width(train));
out:
	return st;
}
