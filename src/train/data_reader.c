/* SPDX-License-Identifier: Apache-2.0 */
/* Which reader a run's data need: random data, files in a folder, or records. */
#include "data.h"

#include <string.h>

#include <muster/base.h>

#include "conf/conf.h"
#include "conf/text.h"

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

enum mu_status mu_train_choose_reader(const struct conf *v, const struct mu_network *network,
				      struct mu_input_config *config)
{
	enum mu_status st = MU_OK;
	const struct mu_reader *reader;

	config->values = v->facts.of_values;
	config->classes = config->values ? 0 : (size_t)v->num_classes;
	MU_TRY(mu_train_find_shape(v, network, &config->shape));
	MU_TRY(mu_conf_rgb(v, config->mean, config->std));
	config->lengths = v->text.lengths;
	config->n_lengths = v->text.n_lengths;
	config->reader = "synthetic";
	config->number = network->traits & MU_NETWORK_SEQUENCES ? MU_NUMBER_INT32
								: MU_NUMBER_FLOAT32;
	config->window = mu_conf_window(v, network);
	config->ignored = mu_conf_ignored(v, &config->ignores);
	config->labels = v->label_train;
	config->label_columns = v->label_columns;
	if (v->data_train) {
		config->reader = mu_conf_reads_tokens(v)   ? "tokens"
				 : mu_conf_reads_arrays(v) ? "arrays"
							   : "records";
		if (v->predict && mu_conf_reads_arrays(v)) /* which may have no targets */
			config->classes = (size_t)v->num_classes;
		config->net_shape = config->shape;
		if (!v->image_shape)
			config->shape = (struct mu_shape){0};
		return MU_OK;
	}
	if (!v->benchmark) {
		MU_TRY(mu_input_detect(v->data_dir, &reader));
		config->reader = reader->name;
		if (!v->image_shape)
			config->shape = (struct mu_shape){0};
		if (!reader->colour_images && (v->image_shape || v->rgb_mean || v->rgb_std))
			MU_FAIL(MU_ERR_USAGE,
				"--image-shape, --rgb-mean and --rgb-std are for colour images; %s "
				"holds %s files, which bring their own shape",
				v->data_dir, reader->name);
		if (!reader->colour_images && v->images.given)
			MU_FAIL(MU_ERR_USAGE,
				"--%s is for colour images; %s holds %s files, which are taken as "
				"they are",
				v->images.given, v->data_dir, reader->name);
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

enum mu_status mu_train_check_targets(const struct conf *v, const struct mu_input *in,
				      const struct mu_loss *loss, size_t labels)
{
	enum mu_status st = MU_OK;
	const struct mu_field *field = mu_input_field(in, MU_FIELD_TARGET);
	const size_t width = mu_input_width(in);
	char text[MU_SAMPLE_TEXT];
	const char *place = v->label_train  ? v->label_train
			    : v->data_train ? v->data_train
					    : v->data_dir;

	if (v->benchmark || in->unlabelled || !loss->of_classes)
		goto out;
	if (field->number == MU_NUMBER_FLOAT32 && width == 1)
		MU_FAIL(MU_ERR_USAGE,
			"%s: its targets are values, not classes (%s), and the loss, %s, needs "
			"classes, integers from 0 on: --objective mse is for values",
			place, in->not_classes ? in->not_classes : "real numbers", loss->help);
	if (field->number == MU_NUMBER_FLOAT32 && field->shape.ndims > 2)
		MU_FAIL(MU_ERR_USAGE,
			"%s: a sample's targets are %s values (%s), and the loss, %s, needs the "
			"number of a class at each position: y.astype('int32') makes that of a "
			"mask of whole numbers; --objective mse, bce and dice are for values",
			place, mu_sample_text(&field->shape, " x ", text, sizeof text),
			in->not_classes ? in->not_classes : "real numbers", loss->help);
	if (field->number == MU_NUMBER_FLOAT32 || (labels == 1 && width > 1))
		MU_FAIL(MU_ERR_USAGE,
			"%s: has %zu targets a sample (%s), and the loss, %s, needs the number of "
			"a class: numpy.argmax(y, axis=1) makes that of one-hot rows; "
			"--objective mse is for several values",
			place, width, in->not_classes ? in->not_classes : "integers", loss->help);
out:
	return st;
}

enum mu_status mu_train_check_validation(const struct conf *v, const struct mu_input *in,
					 const struct mu_input *train)
{
	enum mu_status st = MU_OK;
	const struct mu_field *have = mu_input_field(in, MU_FIELD_TARGET);
	const struct mu_field *want = mu_input_field(train, MU_FIELD_TARGET);
	const char *data = v->data_val ? v->data_val : v->data_dir;
	const char *place = v->label_val ? v->label_val : data;
	char a[MU_SAMPLE_TEXT], b[MU_SAMPLE_TEXT];

	if (!mu_shape_equal(mu_input_shape(in), mu_input_shape(train)))
		MU_FAIL(MU_ERR_FORMAT, "%s: samples for validation are %s, those for training %s",
			data, mu_sample_text(mu_input_shape(in), " x ", a, sizeof a),
			mu_sample_text(mu_input_shape(train), " x ", b, sizeof b));
	if (in->columns && train->columns && strcmp(in->columns, train->columns) != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: its columns are %.100s, those for training %.100s: the same are "
			"needed, in the same order",
			data, in->columns, train->columns);
	if (in->unlabelled || in->groups)
		goto out;
	if (have->number != want->number)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: targets for validation are %s%s%s, those for training %s", place,
			have->number == MU_NUMBER_INT32 ? "classes" : "values",
			in->not_classes && *in->not_classes ? ", " : "",
			in->not_classes ? in->not_classes : "",
			want->number == MU_NUMBER_INT32 ? "classes" : "values");
	if (!mu_shape_equal(&have->shape, &want->shape))
		MU_FAIL(MU_ERR_FORMAT,
			"%s: a sample for validation has %zu target%s, one for training %zu", place,
			mu_input_width(in), MU_S(mu_input_width(in)), mu_input_width(train));
out:
	return st;
}
