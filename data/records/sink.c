/* SPDX-License-Identifier: Apache-2.0 */
/* Where tools write records to: finds out the kind, brings samples to the form it wants. */
#include "sink.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_tar(const char *path)
{
	static const char *const ends[] = {".tar",     ".tar.gz", ".tgz",     ".tar.xz",
					   ".tar.bz2", ".txz",    ".tar.zst", ".tbz2"};

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (mu_stem(path, ends[i]))
			return true;
	return false;
}

static enum mu_status find_ops(const struct data_sink_ops **out, const char *path, bool raw)
{
	enum mu_status st = MU_OK;
	struct stat status;

	if (mu_stem(path, ".rec"))
		*out = &data_sink_rec;
	else if (mu_stem(path, ".h5"))
		*out = raw ? &data_sink_h5_raw : &data_sink_h5;
	else if (mu_stem(path, ".bin"))
		*out = &data_sink_cifar;
	else if (strstr(path, "images-idx3"))
		*out = &data_sink_idx;
	else if (is_tar(path))
		*out = &data_sink_tar;
	else if (mu_stem(path, "/") || (stat(path, &status) == 0 && S_ISDIR(status.st_mode)))
		*out = &data_sink_folder;
	else
		MU_FAIL(MU_ERR_USAGE,
			"%s: the name tells no kind of file; known are .rec, .h5, .bin (CIFAR), "
			"...images-idx3-ubyte, .tar and .tar.gz, and a folder, whose name ends "
			"in /",
			path);
	if (raw && *out != &data_sink_h5_raw)
		MU_FAIL(MU_ERR_USAGE, "%s: --raw is for .h5 files", path);
out:
	return st;
}

/* Is each name before the next one, by bytes? */
static bool has_ordered_names(const struct mu_records_info *source)
{
	for (size_t i = 1; source->class_names && i < source->classes; i++)
		if (strcmp(source->class_names[i - 1], source->class_names[i]) >= 0)
			return false;
	return source->class_names;
}

enum mu_status data_sink_open(struct data_sink **out, const char *path,
			      const struct data_sink_config *config)
{
	enum mu_status st = MU_OK;
	struct data_sink *sink = NULL;

	MU_TRY(MU_ALLOC(sink, 1, "output"));
	sink->config = *config;
	sink->names = has_ordered_names(&config->source);
	sink->path = strdup(path);
	if (!sink->path)
		MU_FAIL(MU_ERR_MEMORY, "no memory for a path");
	MU_TRY(find_ops(&sink->ops, path, config->raw));
	MU_TRY(sink->ops->open(sink, path));
out:
	if (st != MU_OK) {
		data_sink_finish(sink, false);
		sink = NULL;
	}
	*out = sink;
	return st;
}

/* ---- the form of a sample ---- */

/* Grey pixels as colour ones, for the codec. */
static enum mu_status to_colour(struct data_sink *sink, const struct data_sample *s,
				struct data_pixels *out)
{
	enum mu_status st = MU_OK;
	size_t n = s->h * s->w;

	*out = (struct data_pixels){s->bytes, s->w, s->h};
	if (s->c == 3)
		goto out;
	if (s->c != 1)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s: pixels of %zu channels; an image has 1 or 3",
			s->where, s->c);
	MU_TRY(data_buffer_grow(&sink->colour, 0, 3 * n));
	for (size_t i = 0; i < 3 * n; i++)
		sink->colour.bytes[i] = s->bytes[i / 3];
	out->rgb = sink->colour.bytes;
out:
	return st;
}

static enum mu_status to_encoded(struct data_sink *sink, struct data_sample *s)
{
	enum mu_status st = MU_OK;
	struct data_pixels pixels;
	struct data_encoding how = sink->config.encoding;

	MU_TRY(to_colour(sink, s, &pixels));
	how.grey = s->c == 1;
	MU_TRY(data_encode(&pixels, &how, &sink->encoded, &s->n));
	s->bytes = sink->encoded.bytes;
out:
	return st;
}

static enum mu_status to_pixels(struct data_sink *sink, struct data_sample *s)
{
	enum mu_status st = MU_OK;
	struct data_pixels pixels;

	MU_TRY(data_decode(&sink->codec, s->where, s->bytes, s->n, &pixels));
	s->bytes = pixels.rgb;
	s->h = pixels.h;
	s->w = pixels.w;
	s->c = 3;
	s->n = pixels.h * pixels.w * 3;
out:
	return st;
}

static enum mu_status copy_label(struct data_sample *s)
{
	enum mu_status st = MU_OK;
	const struct mu_record *r = s->record;

	if (r->n_labels != 1 || !(r->labels[0] >= 0 && r->labels[0] <= 99999) ||
	    r->labels[0] != floorf(r->labels[0]))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: %zu labels, the first is %g; this kind of output holds the number of "
			"a class, from 0 to 99999",
			s->where, r->n_labels, r->n_labels ? (double)r->labels[0] : 0);
	s->label = (long)r->labels[0];
out:
	return st;
}

enum mu_status data_sink_add(struct data_sink *sink, const struct mu_record *record,
			     const char *where)
{
	enum mu_status st = MU_OK;
	const struct mu_records_info *source = &sink->config.source;
	const struct mu_picture p = mu_sample_picture(&source->shape);
	bool raw = source->kind == MU_RECORD_RAW;
	struct data_sample s = {
		.record = record,
		.where = where,
		.bytes = record->data,
		.n = record->n,
		.c = p.c,
		.h = p.h,
		.w = p.w,
	};

	if (sink->ops->classes)
		MU_TRY(copy_label(&s));
	if (raw && !sink->ops->pixels)
		MU_TRY(to_encoded(sink, &s));
	if (!raw && sink->ops->pixels)
		MU_TRY(to_pixels(sink, &s));
	MU_TRY(sink->ops->add(sink, &s));
	sink->n++;
out:
	if (st != MU_OK && !strstr(mu_trace_message(), where))
		mu_trace_prefix("%s: ", where);
	return st;
}

/* What the records had and the output has not. */
static void tell_losses(const struct data_sink *sink)
{
	const struct data_sink_ops *ops = sink->ops;
	const char *tool = sink->config.creator;

	if (sink->config.source.class_names &&
	    (ops->names == DATA_NAMES_NONE || (ops->names == DATA_NAMES_SORTED && !sink->names)))
		fprintf(stderr, "%s: %s has the classes by number, not by name: %s\n", tool,
			mu_shown(sink->path),
			ops->names == DATA_NAMES_NONE
				? "files of this kind hold no names"
				: "as folders are read in the order of names, theirs would get "
				  "other numbers");
	data_traits_tell(&sink->codec.traits, ops->grey ? ~(unsigned)MU_IMAGE_GREY : ~(unsigned)0,
			 tool);
}

enum mu_status data_sink_finish(struct data_sink *sink, bool commit)
{
	enum mu_status st = MU_OK;

	if (!sink)
		return MU_OK;
	/* No reader takes a file without records. */
	if (commit && sink->n == 0)
		MU_FAIL(MU_ERR_USAGE, "%s: there are no records to write", sink->path);
out:
	if (commit && st == MU_OK)
		tell_losses(sink);
	if (sink->impl && st == MU_OK)
		st = sink->ops->finish(sink, commit);
	else if (sink->impl)
		sink->ops->finish(sink, false);
	data_codec_release(&sink->codec);
	data_buffer_release(&sink->encoded);
	data_buffer_release(&sink->colour);
	free(sink->path);
	mu_free(sink);
	return st;
}

/* ---- names ---- */

const char *data_class_name(const struct data_sink *sink, size_t label, char text[16])
{
	const struct mu_records_info *source = &sink->config.source;

	if (sink->names && label < source->classes)
		return source->class_names[label];
	snprintf(text, 16, "%05zu", label);
	return text;
}

const char *data_image_end(const uint8_t *bytes, size_t n)
{
	enum mu_record_encoding encoding = mu_record_encoding(bytes, n);

	return encoding == MU_RECORD_JPEG ? ".jpg" : encoding == MU_RECORD_PNG ? ".png" : ".img";
}
