/* SPDX-License-Identifier: Apache-2.0 */
/* What all kinds of files say of a record: where it is, and whether its labels are right. */
#include <math.h>

#include "records.h"

enum { WHERE_BYTES = 600 };

const char *mu_records_where(const struct mu_records *r, size_t i, char *text, size_t nbytes)
{
	r->ops->where(r, i, text, nbytes);
	return text;
}

enum mu_status mu_records_check_labels(const struct mu_records *r, size_t i, const float *labels,
				       size_t n)
{
	enum mu_status st = MU_OK;
	size_t classes = r->config.classes;
	char text[WHERE_BYTES];

	if (r->config.label_width && n != r->config.label_width)
		MU_FAIL(MU_ERR_FORMAT, "%s: has %zu labels; expected %zu",
			mu_records_where(r, i, text, sizeof text), n, r->config.label_width);
	for (size_t j = 0; classes && j < n; j++) {
		/* This form also refuses NaN. */
		if (!(labels[j] >= 0 && labels[j] < (float)classes) ||
		    labels[j] != floorf(labels[j]))
			MU_FAIL(MU_ERR_FORMAT,
				"%s: has label %g; labels must be whole numbers from 0 to %zu, for "
				"%zu classes",
				mu_records_where(r, i, text, sizeof text), (double)labels[j],
				classes - 1, classes);
	}
out:
	return st;
}
