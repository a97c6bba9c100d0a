/* SPDX-License-Identifier: Apache-2.0 */
/* Texts as training data: the network must read them, and their vocabulary is read or written. */
#include "data.h"

#include <string.h>

#include <muster/tokens.h>

#include "base/utf8.h"
#include "checkpoint/checkpoint.h"
#include "conf/text.h"

/* A file whose name is that of no text: of JSON the cure is told, too. */
static enum mu_status refuse_file(const struct conf *v, const char *path)
{
	enum mu_status st = MU_OK;
	const char *slash = strrchr(path, '/'), *suffix = strrchr(slash ? slash : path, '.');
	size_t mark;

	MU_TRY(mu_text_plain(path, "", 0, &mark));
	MU_FAIL(MU_ERR_USAGE,
		"%s: network %s reads sequences of words, and a name with %s is that of neither a "
		"text (.txt) nor a token file (.bin): --text words or --text characters reads any "
		"file as a text",
		path, v->network_name, suffix ? suffix : "no suffix");
out:
	return st;
}

/* A text, or tokens, need a network that reads sequences, and vice versa. */
static enum mu_status check_network(const struct conf *v, const struct mu_network *network,
				    bool text, bool tokens)
{
	enum mu_status st = MU_OK;
	const char *data = v->data_train ? v->data_train : v->data_val;

	if ((text || tokens) && !(network->traits & MU_NETWORK_SEQUENCES))
		MU_FAIL(MU_ERR_USAGE,
			"network %s is for images, and %s is read as %s: --network lstm reads %s",
			v->network_name, v->data_train ? v->data_train : v->data_dir,
			text ? "text" : "tokens", text ? "texts" : "them");
	if (text || tokens || !(network->traits & MU_NETWORK_SEQUENCES) || v->benchmark)
		goto out;
	if (data)
		MU_TRY(refuse_file(v, data));
	else
		MU_FAIL(MU_ERR_USAGE,
			"network %s reads sequences of words: give --data-train FILE.txt or "
			"FILE.bin of tokens, --data-dir FOLDER of token files, or --benchmark 1",
			v->network_name);
out:
	return st;
}

enum mu_status mu_train_text_open(const struct conf *v, const struct mu_network *network,
				  const struct mu_input_config *config,
				  struct mu_vocabulary **vocabulary)
{
	enum mu_status st = MU_OK;
	const bool text = strcmp(config->reader, "text") == 0,
		   tokens = strcmp(config->reader, "tokens") == 0;
	struct mu_tokenizer *tokenizer = NULL;

	MU_TRY(check_network(v, network, text, tokens));
	if (!text)
		goto out;
	if (v->text.vocabulary)
		MU_TRY(mu_checkpoint_words_read(v->text.vocabulary, vocabulary, &tokenizer));
	if (tokenizer)
		MU_FAIL(MU_ERR_USAGE,
			"--vocab %s: has a tokenizer, not the words of a text: tokenize makes "
			"token files of %s",
			v->text.vocabulary, v->data_train);
out:
	mu_tokenizer_free(tokenizer);
	return st;
}

enum mu_status mu_train_vocabulary_save(const struct conf *v,
					const struct mu_vocabulary *vocabulary)
{
	enum mu_status st = MU_OK;
	char path[CHECKPOINT_PATH];

	if (!vocabulary || !v->model_prefix || v->text.vocabulary || v->evaluate || v->check)
		goto out;
	mu_conf_vocabulary_path(v, path, sizeof path);
	MU_TRY(mu_vocabulary_write(vocabulary, path));
	mu_log_detail("vocabulary of %zu in %s", mu_vocabulary_n(vocabulary), path);
out:
	return st;
}
