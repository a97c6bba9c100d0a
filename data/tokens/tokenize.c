/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenize: texts to files of tokens, as llm.c has them, and back, by a byte-level BPE that is read
 * or trained. Runs without MPI.
 */
#include <muster/storage.h>
#include <muster/tokens.h>

#include <dirent.h>
#include <string.h>

#include "../lib/arguments.h"
#include "../lib/folder.h"

enum { PATH_BYTES = 4096 };

struct values {
	const char *tokenizer;
	bool train, decode, help;
	long vocab_size, min_count, shard_tokens, end_of_text;
	double val_split;
};

#define AT(member) .offset = offsetof(struct values, member)

static const struct mu_option table[] = {
	{.name = "tokenizer",
	 .type = MU_OPTION_STRING,
	 AT(tokenizer),
	 .group = "Tokenizer",
	 .help = "PATH  a tokenizer.json, or a folder with one or with GPT-2's vocab.json and "
		 "merges.txt; with --decode by default the one beside the first FILE"},
	{.name = "train",
	 .type = MU_OPTION_FLAG,
	 AT(train),
	 .group = "Tokenizer",
	 .help = "train one on the texts"},
	{.name = "vocab-size",
	 .type = MU_OPTION_INT,
	 AT(vocab_size),
	 .initial = "4096",
	 .min = 257,
	 .max = MU_TOKEN_FILE_MAX,
	 .group = "Tokenizer",
	 .help = "N  tokens of the trained one: <|endoftext|>, 256 bytes, and merges"},
	{.name = "min-count",
	 .type = MU_OPTION_INT,
	 AT(min_count),
	 .initial = "2",
	 .min = 1,
	 .max = 1e9,
	 .group = "Tokenizer",
	 .help = "N  pairs that occur less often do not become tokens"},
	{.name = "val-split",
	 .type = MU_OPTION_REAL,
	 AT(val_split),
	 .initial = "0.1",
	 .min = 0,
	 .max = 0.99,
	 .group = "Token files",
	 .help = "SHARE  of each text, its end, for validation: val.bin; 0: none"},
	{.name = "shard-tokens",
	 .type = MU_OPTION_INT,
	 AT(shard_tokens),
	 .initial = "0",
	 .min = 0,
	 .max = INT32_MAX,
	 .group = "Token files",
	 .help = "N  tokens of a file: train_000000.bin, train_000001.bin, ...; 0: one file"},
	{.name = "end-of-text",
	 .type = MU_OPTION_INT,
	 AT(end_of_text),
	 .initial = "1",
	 .max = 1,
	 .toggle = true,
	 .group = "Token files",
	 .help = "put <|endoftext|> before each text, if the tokenizer has it"},
	{.name = "decode",
	 .type = MU_OPTION_FLAG,
	 AT(decode),
	 .group = "Other",
	 .help = "print the text of token files"},
	{.name = "help", .type = MU_OPTION_FLAG, AT(help), .group = "Other", .help = "this text"},
};

static const struct mu_option_rule rules_of[] = {
	{.option = "decode",
	 .relation = MU_OPTION_EXCLUDES,
	 .other = "train|val-split|shard-tokens|end-of-text",
	 .why = "it writes no files"},
	{.option = "train",
	 .relation = MU_OPTION_EXCLUDES,
	 .other = "tokenizer",
	 .why = "one of them is possible"},
	{.option = "vocab-size|min-count",
	 .relation = MU_OPTION_NEEDS,
	 .other = "train",
	 .why = "a tokenizer that is read has its own tokens"},
};

static const struct mu_option_rules rules = {.of = rules_of,
					     .n = sizeof rules_of / sizeof *rules_of};

/* The files of train, or of val. */
struct part {
	const char *name, *folder;
	size_t shard_tokens, n_files, n_tokens;
	struct mu_token_list tokens; /* not written yet */
};

/* ---- texts to tokens ---- */

static enum mu_status write_file(struct part *p, size_t n)
{
	enum mu_status st = MU_OK;
	char path[PATH_BYTES];

	if (p->shard_tokens > 0)
		snprintf(path, sizeof path, "%s/%s_%06zu.bin", p->folder, p->name, p->n_files);
	else
		snprintf(path, sizeof path, "%s/%s.bin", p->folder, p->name);
	MU_TRY(mu_token_file_write(path, p->tokens.ids, n));
	p->n_files++;
	p->n_tokens += n;
	p->tokens.n -= n;
	memmove(p->tokens.ids, p->tokens.ids + n, p->tokens.n * sizeof *p->tokens.ids);
out:
	return st;
}

static enum mu_status add_token(struct part *p, uint32_t id)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_token_list_add(&p->tokens, id));
	if (p->tokens.n == p->shard_tokens)
		MU_TRY(write_file(p, p->tokens.n));
out:
	return st;
}

static enum mu_status add_tokens(struct part *p, const uint32_t *ids, size_t n,
				 const uint32_t *start)
{
	enum mu_status st = MU_OK;

	if (n > 0 && start)
		MU_TRY(add_token(p, *start));
	for (size_t i = 0; i < n; i++)
		MU_TRY(add_token(p, ids[i]));
out:
	return st;
}

/* The end of each text is for validation. */
static enum mu_status encode_texts(const struct values *v, struct mu_tokenizer *t,
				   const struct data_command *command, struct part parts[2])
{
	enum mu_status st = MU_OK;
	struct mu_token_list list = {0};
	uint32_t id;
	const uint32_t *start = NULL;
	size_t n;

	if (v->end_of_text && mu_tokenizer_added(t, MU_TOKEN_END_OF_TEXT, &id))
		start = &id;
	for (size_t i = 1; i < command->n_words; i++) {
		list.n = 0;
		MU_TRY(mu_tokenizer_encode_file(t, command->words[i], &list));
		n = list.n - (size_t)(v->val_split * (double)list.n);
		MU_TRY(add_tokens(&parts[0], list.ids, n, start));
		MU_TRY(add_tokens(&parts[1], list.ids + n, list.n - n, start));
	}
	for (int i = 0; i < 2; i++)
		if (parts[i].tokens.n > 0)
			MU_TRY(write_file(&parts[i], parts[i].tokens.n));
	if (parts[0].n_tokens == 0)
		MU_FAIL(MU_ERR_USAGE, "the texts are empty: there are no tokens to write");
out:
	mu_token_list_release(&list);
	return st;
}

static enum mu_status train(const struct values *v, const struct data_command *command,
			    struct mu_tokenizer **t)
{
	enum mu_status st = MU_OK;
	struct mu_token_counts *counts = NULL;

	MU_TRY(mu_token_counts_new(&counts));
	for (size_t i = 1; i < command->n_words; i++)
		MU_TRY(mu_token_counts_add_file(counts, command->words[i]));
	MU_TRY(mu_token_counts_train(counts, (size_t)v->vocab_size, (size_t)v->min_count, t));
	if (mu_tokenizer_n(*t) < (size_t)v->vocab_size)
		printf("tokenize: the vocabulary has %zu tokens, not %ld: no further pair occurs "
		       "%ld times\n",
		       mu_tokenizer_n(*t), v->vocab_size, v->min_count);
out:
	mu_token_counts_free(counts);
	return st;
}

/* Shards of an earlier set would be read with the new ones. */
static enum mu_status check_folder(const char *path)
{
	enum mu_status st = MU_OK;
	DIR *dir = opendir(path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if ((strncmp(entry->d_name, "train", 5) == 0 ||
		     strncmp(entry->d_name, "val", 3) == 0) &&
		    mu_stem(entry->d_name, ".bin"))
			MU_FAIL(MU_ERR_USAGE,
				"%s: holds token files already, such as %s: remove them, or name "
				"another folder",
				path, entry->d_name);
	}
out:
	if (dir)
		closedir(dir);
	return st;
}

static void print_part(const struct part *p)
{
	if (p->n_files == 1 && p->shard_tokens == 0)
		printf(", %zu in %s.bin", p->n_tokens, p->name);
	else if (p->n_files > 0)
		printf(", %zu in %zu file%s %s_*.bin", p->n_tokens, p->n_files,
		       MU_S(p->n_files), p->name);
}

static enum mu_status make_files(const struct values *v, const struct data_command *command)
{
	enum mu_status st = MU_OK;
	const char *folder = command->words[0];
	struct part parts[2] = {{.name = "train"}, {.name = "val"}};
	struct mu_tokenizer *t = NULL;
	char path[PATH_BYTES];

	MU_TRY(check_folder(folder));
	if (v->train)
		MU_TRY(train(v, command, &t));
	else
		MU_TRY(mu_tokenizer_read(&t, v->tokenizer));
	if (mu_tokenizer_n(t) > MU_TOKEN_FILE_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: has %zu tokens; a token file holds 16 bits, enough for %d",
			v->tokenizer, mu_tokenizer_n(t), MU_TOKEN_FILE_MAX);
	MU_TRY(mu_folder_make(folder));
	MU_TRY(data_folder_claim(folder));
	MU_TRY(check_folder(folder)); /* another process may have filled it meanwhile */
	for (int i = 0; i < 2; i++) {
		parts[i].folder = folder;
		parts[i].shard_tokens = (size_t)v->shard_tokens;
	}
	MU_TRY(encode_texts(v, t, command, parts));
	snprintf(path, sizeof path, "%s/tokenizer.json", folder);
	MU_TRY(mu_tokenizer_write(t, path));
	printf("tokenize: %zu token%s", parts[0].n_tokens + parts[1].n_tokens,
	       MU_S(parts[0].n_tokens + parts[1].n_tokens));
	print_part(&parts[0]);
	print_part(&parts[1]);
	printf(", of a vocabulary of %zu: %s\n", mu_tokenizer_n(t), mu_shown(folder));
out:
	mu_token_list_release(&parts[0].tokens);
	mu_token_list_release(&parts[1].tokens);
	mu_tokenizer_free(t);
	return st;
}

/* ---- tokens to text ---- */

static enum mu_status print_text(const char *path, const struct mu_tokenizer *t)
{
	enum mu_status st = MU_OK;
	struct mu_token_list list = {0};
	const char *bytes;
	size_t n;

	MU_TRY(mu_token_file_read(path, &list));
	for (size_t i = 0; i < list.n; i++) {
		bytes = mu_tokenizer_bytes(t, list.ids[i], &n);
		if (!bytes)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: token %lu, at place %zu, is not in the vocabulary of %zu: it "
				"is "
				"of another tokenizer",
				path, (unsigned long)list.ids[i], i, mu_tokenizer_n(t));
		fwrite(bytes, 1, n, stdout); /* data_command_end checks */
	}
out:
	mu_token_list_release(&list);
	return st;
}

static enum mu_status decode(const struct values *v, const struct data_command *command)
{
	enum mu_status st = MU_OK;
	const char *first = command->words[0], *slash = strrchr(first, '/');
	struct mu_tokenizer *t = NULL;
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%.*s", slash ? (int)(slash - first) : 1, slash ? first : ".");
	MU_TRY(mu_tokenizer_read(&t, v->tokenizer ? v->tokenizer : path));
	for (size_t i = 0; i < command->n_words; i++)
		MU_TRY(print_text(command->words[i], t));
out:
	mu_tokenizer_free(t);
	return st;
}

static enum mu_status check_values(const struct values *v, const struct data_command *command)
{
	enum mu_status st = MU_OK;

	if (v->decode)
		goto out;
	if (command->n_words < 2)
		MU_FAIL(MU_ERR_USAGE, "expected DIR TEXT... (see --help)");
	if (!v->train && !v->tokenizer)
		MU_FAIL(MU_ERR_USAGE, "give --tokenizer PATH, or --train to make one of the texts");
	if (strlen(command->words[0]) > PATH_BYTES - 40)
		MU_FAIL(MU_ERR_USAGE, "%.80s...: is too long for the name of a folder",
			command->words[0]);
out:
	return st;
}

int main(int argc, char **argv)
{
	enum mu_status st = MU_OK;
	struct values values;
	struct data_command command = {
		.tool = "tokenize",
		.table = table,
		.n_options = sizeof table / sizeof *table,
		.rules = &rules,
		.values = &values,
		.usage = "DIR TEXT...\n\n"
			 "Write the texts as files of tokens, DIR/train.bin and DIR/val.bin, and "
			 "the tokenizer as\nDIR/tokenizer.json; or print the text of such files: "
			 "tokenize --decode FILE.bin...\n",
		.n_words = 1,
		.many = true,
	};
	bool done;
	char output[PATH_BYTES];

	MU_TRY(data_command_parse(&command, argc, argv, &done));
	if (done)
		goto out;
	MU_TRY(check_values(&values, &command));
	if (values.decode) {
		MU_TRY(decode(&values, &command));
		goto out;
	}
	snprintf(output, sizeof output, "%s/tokenizer.json", command.words[0]);
	MU_TRY(data_command_watch(&command, output));
	MU_TRY(make_files(&values, &command));
out:
	return data_command_end(&command, st);
}
