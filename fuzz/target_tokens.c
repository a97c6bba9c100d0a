/* SPDX-License-Identifier: Apache-2.0 */
/* The same bytes as a tokenizer.json, a vocab.json, a file of tokens, and a text. */
#include "fuzz.h"

#include <string.h>

#include <muster/tokens.h>

enum { SIZE = 270 };

static void need(bool ok)
{
	if (!ok)
		__builtin_trap();
}

/* If the text has tokens, they have its bytes. */
static void encode(struct mu_tokenizer *t, const char *text, size_t n)
{
	struct mu_token_list list = {0};
	size_t at = 0, length;

	if (mu_tokenizer_encode(t, text, n, &list) == MU_OK) {
		for (size_t i = 0; i < list.n; i++, at += length) {
			const char *bytes = mu_tokenizer_bytes(t, list.ids[i], &length);

			need(bytes && length <= n - at && memcmp(bytes, text + at, length) == 0);
		}
		need(at == n);
	}
	mu_token_list_release(&list);
}

/* The same tokenizer comes back from a file, unless its names cannot be written. */
static void write_and_read(const struct mu_tokenizer *t)
{
	const char *path = fuzz_file("again.json", NULL, 0);
	struct mu_tokenizer *again = NULL;

	if (mu_tokenizer_write(t, path) == MU_OK && mu_tokenizer_read(&again, path) == MU_OK)
		need(mu_tokenizer_n(again) == mu_tokenizer_n(t));
	mu_tokenizer_free(again);
}

static void train(const char *text, size_t n)
{
	struct mu_token_counts *counts = NULL;
	struct mu_tokenizer *t = NULL;

	need(mu_token_counts_new(&counts) == MU_OK);
	need(mu_token_counts_add(counts, text, n) == MU_OK);
	need(mu_token_counts_train(counts, SIZE, 2, &t) == MU_OK);
	need(mu_tokenizer_n(t) >= 257 && mu_tokenizer_n(t) <= SIZE);
	encode(t, text, n);
	mu_tokenizer_free(t);
	mu_token_counts_free(counts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *path = fuzz_file("x.json", data, n), *text = (const char *)data;
	struct mu_token_list list = {0};
	struct mu_tokenizer *t = NULL;

	fuzz_file("merges.txt", (const uint8_t *)"a b\n", 4);
	if (mu_tokenizer_read(&t, path) == MU_OK) {
		encode(t, text, n);
		encode(t, "abab <e>", 8);
		write_and_read(t);
	}
	mu_tokenizer_free(t);
	train(text, n);
	if (mu_token_file_read(path, &list) == MU_OK)
		need(1024 + 2 * list.n == n);
	mu_token_list_release(&list);
	mu_trace_clear();
	return 0;
}
