/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a checkpoint: its vocabulary or its tokenizer, read and compared. */
#include "contents.h"

#include <string.h>

#include <muster/input.h>
#include <muster/text.h>
#include <muster/tokens.h>

enum mu_status mu_checkpoint_words_read(const char *path, struct mu_vocabulary **vocabulary,
					struct mu_tokenizer **tokenizer)
{
	enum mu_status st = MU_OK;
	struct mu_array_file *file = NULL;
	char *words = NULL, *tokens = NULL;
	bool checkpoint;

	*vocabulary = NULL;
	*tokenizer = NULL;
	/* By its first bytes: P-best and P-latest do not end in .h5. */
	MU_TRY(mu_array_file_is(path, &checkpoint));
	if (!checkpoint)
		return mu_vocabulary_read(vocabulary, path);
	MU_TRY(mu_array_file_open_checked(&file, path));
	MU_TRY(mu_array_file_read_text(file, CHECKPOINT_WORDS, &words));
	MU_TRY(mu_array_file_read_text(file, CHECKPOINT_TOKENIZER, &tokens));
	if (words)
		MU_TRY(mu_vocabulary_from_text(vocabulary, path, words));
	else if (tokens)
		MU_TRY(mu_tokenizer_from_text(tokenizer, path, tokens));
	else
		MU_FAIL(MU_ERR_FORMAT, "%s: holds neither the words of a text nor a tokenizer",
			path);
out:
	mu_free(words);
	mu_free(tokens);
	mu_array_file_close(file, false);
	return st;
}

/* *there: the file has a tokenizer. */
static enum mu_status compare_tokenizers(struct mu_array_file *file, const char *path,
					 const struct mu_tokenizer *t, bool *there, bool *same)
{
	enum mu_status st = MU_OK;
	struct mu_tokenizer *saved = NULL;
	char *text = NULL;

	*same = true;
	MU_TRY(mu_array_file_read_text(file, CHECKPOINT_TOKENIZER, &text));
	*there = text != NULL;
	if (!text || !t)
		goto out;
	MU_TRY(mu_tokenizer_from_text(&saved, path, text));
	MU_TRY(mu_tokenizer_same(saved, t, same));
out:
	mu_tokenizer_free(saved);
	mu_free(text);
	return st;
}

enum mu_status mu_checkpoint_tokenizer_compare(const char *path, const struct mu_tokenizer *t,
					       bool *same)
{
	enum mu_status st = MU_OK;
	struct mu_array_file *file = NULL;
	bool there;

	MU_TRY(mu_array_file_open_checked(&file, path));
	MU_TRY(compare_tokenizers(file, path, t, &there, same));
out:
	mu_array_file_close(file, false);
	return st;
}

enum mu_status mu_checkpoint_tokenizer_check(const struct mu_engine *e, struct mu_array_file *file,
					     const char *path)
{
	enum mu_status st = MU_OK;
	const struct conf *v = e->conf;
	const char *data = v->data_train ? v->data_train : v->data_dir;
	bool there, same;

	if (strcmp(e->train->ops->name, "tokens") != 0)
		goto out;
	MU_TRY(compare_tokenizers(file, path, e->train->about.tokenizer, &there, &same));
	if (!same)
		MU_FAIL(MU_ERR_USAGE,
			"%s was saved with another tokenizer than the tokenizer.json of %s: its "
			"tokens stand for other texts; --override " CHECKPOINT_TOKENIZER
			" resumes anyway",
			path, data);
	if (there != (e->train->about.tokenizer != NULL))
		mu_log_warn("%s has %s tokenizer and %s %s: it is not known whether their tokens "
			    "are the same",
			    path, there ? "a" : "no", data, there ? "none" : "one");
out:
	return st;
}
