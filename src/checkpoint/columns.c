/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the columns of a table, inputs and targets: attributes of a checkpoint, "a,b". */
#include "contents.h"

#include <string.h>

enum mu_status mu_checkpoint_columns_write(const struct mu_engine *e, struct mu_array_file *file)
{
	enum mu_status st = MU_OK;
	const struct mu_input_about *about = &e->train->about;

	if (about->columns)
		MU_TRY(mu_array_file_set_text(file, CHECKPOINT_COLUMNS, about->columns));
	if (about->target_columns)
		MU_TRY(mu_array_file_set_text(file, CHECKPOINT_TARGETS, about->target_columns));
out:
	return st;
}

static enum mu_status check(struct mu_array_file *file, const char *path, const char *what,
			    const char *here, const char *data)
{
	enum mu_status st = MU_OK;
	char *saved = NULL;

	if (!here)
		goto out;
	MU_TRY(mu_array_file_read_text(file, what, &saved));
	if (saved && strcmp(saved, here) != 0)
		MU_FAIL(MU_ERR_USAGE,
			"%s was trained with the %s %.100s, and %s has %.100s: the same are "
			"needed, in the same order",
			path, what, saved, data, here);
out:
	mu_free(saved);
	return st;
}

enum mu_status mu_checkpoint_columns_check(const struct mu_engine *e, const char *path)
{
	enum mu_status st = MU_OK;
	const struct mu_input_about *about = &e->train->about;
	const struct conf *v = e->conf;
	const char *data = v->data_train ? v->data_train : v->data_val;
	struct mu_array_file *file = NULL;

	if (!about->columns && !about->target_columns)
		goto out;
	MU_TRY(mu_array_file_open_checked(&file, path));
	MU_TRY(check(file, path, CHECKPOINT_COLUMNS, about->columns, data));
	if (!e->train->unlabelled)
		MU_TRY(check(file, path, CHECKPOINT_TARGETS, about->target_columns, data));
out:
	if (st == MU_ERR_USAGE && v->skip_mismatch && !v->evaluate) {
		mu_log_warn("%s; --skip-mismatch trains on them", mu_trace_message());
		mu_trace_clear();
		st = MU_OK;
	}
	mu_array_file_close(file, false);
	return st;
}

enum mu_status mu_checkpoint_shape_tell(const struct mu_engine *e, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_array_file *file = NULL;
	char *saved = NULL, here[MU_SAMPLE_TEXT];

	if (e->network->traits & MU_NETWORK_SEQUENCES)
		goto out;
	mu_sample_text(mu_input_shape(e->train), ",", here, sizeof here);
	MU_TRY(mu_array_file_open_checked(&file, path));
	MU_TRY(mu_array_file_read_text(file, "image-shape", &saved));
	if (saved && *saved && strcmp(saved, here) != 0)
		mu_log_warn("%s was trained on samples of shape %s, and these are %s", path, saved,
			    here);
out:
	mu_free(saved);
	mu_array_file_close(file, false);
	return st;
}
