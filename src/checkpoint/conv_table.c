/* SPDX-License-Identifier: Apache-2.0 */
/* The table of convolutions that a checkpoint holds. */
#include "checkpoint.h"

#include <string.h>

/* The table of a checkpoint that can be read; "" if it has none. Errors are reported when the run
 * resumes from the file. */
static bool read_table(const char *path, char text[TRAIN_CONV_BYTES])
{
	struct mu_array_file *file = NULL;
	bool there = false;
	bool good = mu_array_file_open_checked(&file, path) == MU_OK;

	good = good && mu_array_file_has_text(file, TRAIN_CONV_ATTRIBUTE, &there) == MU_OK;
	if (good && there)
		good = mu_array_file_get_text(file, TRAIN_CONV_ATTRIBUTE, text, TRAIN_CONV_BYTES) ==
			       MU_OK &&
		       mu_engine_conv_is_text(text);
	if (!good || !there)
		*text = '\0';
	mu_array_file_close(file, false);
	mu_trace_clear();
	return good;
}

/* The table of the checkpoint from which the run resumes. */
static enum mu_status find_saved(const struct conf *v, const struct checkpoint_rollback *back,
				 char path[CHECKPOINT_PATH], char text[TRAIN_CONV_BYTES])
{
	enum mu_status st = MU_OK;
	struct checkpoint_files files = {.n = 0};

	if (back->times > 0)
		snprintf(path, CHECKPOINT_PATH, "%s", back->path);
	else if (v->load_epoch > 0)
		mu_checkpoint_path(v->model_prefix, (size_t)v->load_epoch, 0, path,
				   CHECKPOINT_PATH);
	else if (strcmp(v->resume, "auto") != 0)
		snprintf(path, CHECKPOINT_PATH, "%s", v->resume);
	if (*path) {
		if (!read_table(path, text) && back->times > 0)
			read_table(back->before, text);
		goto out;
	}
	if (!v->model_prefix)
		goto out;
	MU_TRY(mu_checkpoint_files_find(v->model_prefix, &files));
	for (size_t i = 0; i < files.n; i++) {
		snprintf(path, CHECKPOINT_PATH, "%s", files.of[i].path);
		if (read_table(path, text))
			break;
	}
out:
	mu_checkpoint_files_release(&files);
	return st;
}

enum mu_status mu_checkpoint_conv_find(const struct conf *v, const struct checkpoint_rollback *back,
				       struct engine_conv *c)
{
	enum mu_status st = MU_OK;
	const bool resumes = v->load_epoch > 0 || strcmp(v->resume, "none") != 0 || back->times > 0;

	if (!resumes || v->evaluate || v->conv_algo != CONF_CONV_AUTO || !mu_array_file_supported())
		goto out;
	MU_TRY(find_saved(v, back, c->path, c->text));
	c->saved = true;
out:
	return st;
}
