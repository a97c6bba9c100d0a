/* SPDX-License-Identifier: Apache-2.0 */
/* What readers ask and declare when they open: the fields of a sample. */
#include <assert.h>

#include "reader.h"

bool mu_input_validates(const struct mu_input *in)
{
	return in->config.part == MU_INPUT_VALIDATE && in->config.held_out <= 0;
}

struct mu_field *mu_input_declare(struct mu_input *in, const char *name, enum mu_field_role role,
				  enum mu_number number, const struct mu_shape *shape)
{
	struct mu_field *field = &in->fields[in->n_fields++];

	assert(in->n_fields <= MU_MAX_FIELDS);
	*field = (struct mu_field){.name = name, .role = role, .number = number, .shape = *shape};
	return field;
}

struct mu_field *mu_input_declare_data(struct mu_input *in, enum mu_number number,
				       const struct mu_shape *shape)
{
	return mu_input_declare(in, "data", MU_FIELD_INPUT, number, shape);
}

void mu_input_declare_labels(struct mu_input *in, enum mu_number number, size_t width)
{
	mu_input_declare(in, "label", MU_FIELD_TARGET, number, &(struct mu_shape)MU_SAMPLE(width));
}

const struct mu_field *mu_input_field(const struct mu_input *in, enum mu_field_role role)
{
	static const struct mu_field none = {.name = ""};

	for (size_t i = 0; i < in->n_fields; i++)
		if (in->fields[i].role == role)
			return &in->fields[i];
	return &none;
}

const struct mu_shape *mu_input_shape(const struct mu_input *in)
{
	return &mu_input_field(in, MU_FIELD_INPUT)->shape;
}

size_t mu_input_width(const struct mu_input *in)
{
	return mu_shape_sample(&mu_input_field(in, MU_FIELD_TARGET)->shape);
}

bool mu_input_has_bytes(const struct mu_input *in)
{
	return mu_input_field(in, MU_FIELD_INPUT)->number == MU_NUMBER_BYTE;
}
