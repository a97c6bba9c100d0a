/* SPDX-License-Identifier: Apache-2.0 */
/* Files of arrays for tests, and what the reader says to them. */
#ifndef MUSTER_ARRAY_FILES_H
#define MUSTER_ARRAY_FILES_H

#include <muster/arrays.h>
#include <muster/input.h>

#include "check.h"
#include "scratch.h"

enum { PATH_BYTES = 2 * SCRATCH_BYTES, MOST = 32 };

static char folder[SCRATCH_BYTES];

static inline const char *path_of(const char *name)
{
	static char path[2][PATH_BYTES];
	static int turn;

	turn = !turn;
	snprintf(path[turn], PATH_BYTES, "%s/%s", folder, name);
	return path[turn];
}

static inline void put_file(const char *name, const void *data, size_t nbytes)
{
	FILE *f = fopen(path_of(name), "wb");

	if (!CHECK(f))
		return;
	CHECK(fwrite(data, 1, nbytes, f) == nbytes);
	fclose(f);
}

static inline void put_text(const char *name, const char *text)
{
	put_file(name, text, strlen(text));
}

static struct mu_array_settings settings;

static inline struct mu_input_config config_of(const char *data, const char *labels)
{
	static char paths[2][PATH_BYTES];
	struct mu_input_config c = {
		.reader = "arrays", .settings = &settings, .batch = 1, .num_workers = 1};

	snprintf(paths[0], PATH_BYTES, "%s/%s", folder, data);
	snprintf(paths[1], PATH_BYTES, "%s/%s", folder, labels ? labels : "");
	c.paths = paths[0];
	settings = (struct mu_array_settings){.label_train = labels ? paths[1] : NULL};
	return c;
}

/* All samples, one after another, and all targets. False: an error, which stays in the trace. */
static inline bool read_all(const struct mu_input_config *c, struct mu_input *in, float *data,
			    float *labels)
{
	bool good = mu_input_open(in, c) == MU_OK;

	for (size_t i = 0; good && i < in->n; i++) {
		uint32_t id;
		struct mu_input_batch batch = {
			.data = data + i * mu_input_sample(in, 0),
			.labels = labels + i * mu_input_labels(in, 0),
			.ids = &id,
		};

		good = mu_input_read(in, i, &batch) == MU_OK;
	}
	return good;
}

/* Samples and targets of files must be these. */
static inline void check_read(const struct mu_input_config *c, const char *shape, const float *want,
			      const float *targets)
{
	struct mu_input in;
	float data[MOST], labels[MOST];
	char text[MU_SAMPLE_TEXT];

	if (!CHECK(read_all(c, &in, data, labels))) {
		fprintf(stderr, "    %s: %s\n", c->paths, mu_trace_message());
		mu_trace_clear();
		return;
	}
	CHECK_TEXT(mu_sample_text(mu_input_shape(&in), ",", text, sizeof text), shape);
	for (size_t i = 0; i < in.n * mu_input_sample(&in, 0); i++)
		if (!CHECK(data[i] == want[i]))
			fprintf(stderr, "    %s: number %zu is %g\n", c->paths, i, (double)data[i]);
	for (size_t i = 0; i < in.n * mu_input_labels(&in, 0); i++)
		CHECK(labels[i] == targets[i]);
	mu_input_close(&in);
}

static inline void check_refused(const struct mu_input_config *c, const char *part1,
				 const char *part2)
{
	struct mu_input in;
	float data[MOST], labels[MOST];

	if (!CHECK(!read_all(c, &in, data, labels)))
		fprintf(stderr, "    %s was to be refused: %s\n", c->paths, part1);
	CHECK_HAS(mu_trace_message(), part1);
	CHECK_HAS(mu_trace_message(), part2);
	CHECK(!strchr(mu_trace_message(), '\n'));
	mu_trace_clear();
	mu_input_close(&in);
}

#endif
