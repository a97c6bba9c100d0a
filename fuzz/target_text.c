/* SPDX-License-Identifier: Apache-2.0 */
/* Texts, and vocabularies: the same bytes as each of them. */
#include "fuzz.h"

#include <muster/input.h>
#include <muster/text.h>

enum { LONGEST = 5 };

static void need(bool ok)
{
	if (!ok)
		__builtin_trap();
}

/* Every sequence of the first epoch: numbers of words that there are. */
static void read_sequences(struct mu_input *in)
{
	float data[LONGEST], labels[LONGEST];
	uint32_t id;
	struct mu_input_batch batch = {.data = data, .labels = labels, .ids = &id};

	need(mu_input_epoch(in, 0) == MU_OK);
	for (size_t t = 0; t < in->steps; t++) {
		size_t n = mu_input_sample(in, mu_input_group(in, t));

		need(mu_input_read(in, t, &batch) == MU_OK && batch.count == 1 && n <= LONGEST);
		for (size_t i = 0; i < n; i++)
			need(data[i] < (float)in->classes && labels[i] < (float)in->classes);
		need(data[0] > 0 && labels[0] > 0);
	}
}

static void read_text(const char *path, bool characters, const struct mu_vocabulary *vocabulary)
{
	static const size_t lengths[] = {2, LONGEST};
	const struct mu_text_settings settings = {.characters = characters,
						  .vocabulary = vocabulary,
						  .lengths = lengths,
						  .n_lengths = 2};
	struct mu_input_config config = {.reader = "text",
					 .paths = path,
					 .settings = &settings,
					 .batch = 1,
					 .num_workers = 1};
	struct mu_input in;
	char text[200];

	if (mu_input_open(&in, &config) == MU_OK) {
		in.ops->describe(&in, text, sizeof text);
		read_sequences(&in);
	}
	mu_input_close(&in);
}

/* What is written is what was read. */
static void write_and_read(const struct mu_vocabulary *v)
{
	const char *path = fuzz_file("again.txt", NULL, 0);
	struct mu_vocabulary *again = NULL;

	need(mu_vocabulary_write(v, path) == MU_OK);
	need(mu_vocabulary_read(&again, path) == MU_OK);
	need(mu_vocabulary_n(again) == mu_vocabulary_n(v));
	need(mu_vocabulary_hash(again) == mu_vocabulary_hash(v));
	mu_vocabulary_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *path = fuzz_file("x.txt", data, n);
	struct mu_vocabulary *v = NULL;

	read_text(path, false, NULL);
	read_text(path, true, NULL);
	mu_trace_clear();
	if (mu_vocabulary_read(&v, path) == MU_OK) {
		write_and_read(v);
		read_text(path, mu_vocabulary_characters(v), v);
	}
	mu_vocabulary_free(v);
	mu_trace_clear();
	return 0;
}
