/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a sample, as its reader declares them. */
#include <assert.h>

#include "reader.h"

void mu_input_declare(struct mu_input *in, const struct mu_field *field)
{
	assert(in->n_fields < MU_MAX_FIELDS);
	in->fields[in->n_fields++] = *field;
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
