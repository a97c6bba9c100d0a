/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a model's folder beside its arrays and its configuration. */
#include "names.h"

#include <stdlib.h>
#include <unistd.h>

#include <muster/tokens.h>

static bool is_there(const char *place, const char *name, char path[MODEL_PATH])
{
	model_path(place, name, path);
	return access(path, F_OK) == 0;
}

/* Other programs add its numbers to those of a model. */
enum mu_status model_adapter_check(const char *place)
{
	enum mu_status st = MU_OK;
	char path[MODEL_PATH];

	if (is_there(place, "adapter_config.json", path))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: an adapter (LoRA) lies here, which changes what the model computes: "
			"merge it into the model (merge_and_unload of peft), save that, and "
			"convert its folder",
			path);
out:
	return st;
}

/* As a checkpoint holds it, so that --load knows data of other tokens. */
enum mu_status model_tokenizer_keep(struct model_config *c, const char *place, size_t vocabulary,
				    struct mu_array_file *out)
{
	enum mu_status st = MU_OK;
	struct mu_tokenizer *t = NULL;
	char path[MODEL_PATH], *text = NULL;
	const char *name = "tokenizer.json";

	if (!is_there(place, name, path) && !is_there(place, name = "vocab.json", path))
		goto out;
	st = mu_tokenizer_read(&t, path);
	if (st == MU_ERR_UNSUPPORTED) {
		model_note(c,
			   "its %s is not kept, and tokens of another tokenizer are not noticed: "
			   "%s",
			   name, mu_trace_message());
		mu_trace_clear();
		st = MU_OK;
		goto out;
	}
	MU_TRY(st);
	if (vocabulary > 0 && mu_tokenizer_n(t) > vocabulary)
		MU_FAIL(MU_ERR_FORMAT,
			"its %s has %zu tokens, and its arrays have a vocabulary of %zu: they are "
			"not of one model",
			name, mu_tokenizer_n(t), vocabulary);
	MU_TRY(mu_tokenizer_to_text(t, &text));
	MU_TRY(mu_array_file_set_text(out, "tokenizer", text));
out:
	free(text);
	mu_tokenizer_free(t);
	return st;
}
