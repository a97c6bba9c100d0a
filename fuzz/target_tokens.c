/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same bytes as a tokenizer.json, a vocab.json, a file of tokens, read by windows too, and a
 * text.
 */
#include "fuzz.h"

#include <string.h>

#include <muster/input.h>
#include <muster/tokens.h>

enum { SIZE = 270, WINDOW = 3 };

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

/* Every window of an epoch, or one error. */
static void read_windows(const uint8_t *bytes, size_t n)
{
	float data[WINDOW], labels[WINDOW];
	uint32_t id;
	struct mu_input_batch batch = {.data = data, .labels = labels, .ids = &id};
	const struct mu_token_settings settings = {WINDOW};
	struct mu_input_config config = {.reader = "tokens",
					 .paths = fuzz_file("train.bin", bytes, n),
					 .settings = &settings,
					 .batch = 1,
					 .num_workers = 1};
	struct mu_input in;

	if (mu_input_open(&in, &config) == MU_OK) {
		need(mu_input_epoch(&in, 0) == MU_OK);
		for (size_t t = 0; t < in.steps; t++) {
			need(mu_input_read(&in, t, &batch) == MU_OK && batch.count == 1);
			for (size_t i = 0; i < WINDOW; i++)
				need(data[i] < (float)in.classes && labels[i] < (float)in.classes);
		}
	}
	mu_input_close(&in);
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
	read_windows(data, n);
	mu_trace_clear();
	return 0;
}
