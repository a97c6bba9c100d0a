/* SPDX-License-Identifier: Apache-2.0 */
/* Images of all files that mu_records_open reads: encoded ones are decoded, raw ones are used as
 * they are; both are augmented. */
#include <stdatomic.h>
#include <string.h>

#include "cache.h"
#include "reader.h"

enum { TEXT_BYTES = 512 };

struct records {
	struct mu_records *records;
	struct mu_records_info info;
	struct mu_cache *cache; /* NULL: read the files */
	atomic_flag enlarges;   /* it was reported that images are */
	atomic_uint changes;    /* reported ones */
};

/* Once, by worker 0: a small image is enlarged to the crop, for which nobody has asked. */
static void report_enlarged(const struct mu_input *in, const struct mu_image_worker *image)
{
	struct records *r = in->impl;
	const struct mu_augment *a = &mu_input_pictures(in)->augment;
	const size_t pad = (size_t)a->pad, h = image->h + 2 * pad, w = image->w + 2 * pad;
	const struct mu_picture p = mu_sample_picture(mu_input_shape(in));

	if ((h >= p.h && w >= p.w) || in->config.worker != 0 || a->resize > 0 ||
	    a->random_resized_crop || a->max_crop > 0 || atomic_flag_test_and_set(&r->enlarges))
		return;
	mu_log_warn("%s: images smaller than the image shape %zu,%zu,%zu are enlarged, the first "
		    "of %zu x %zu pixels; image shape %zu,%zu,%zu would not",
		    in->config.paths, p.c, p.h, p.w, image->h, image->w, p.c, image->h, image->w);
}

/* Changed saturation (max_s) makes grey pixels coloured, and then they have a hue. */
static bool changes_hue(const struct mu_augment *a)
{
	return (a->max_h > 0 && a->max_s == 0) || a->saturation > 0;
}

/* What becomes of images in the network's channels. */
static const struct change {
	unsigned traits; /* one of them, */
	bool lacks;      /* or none of them */
	size_t channels; /* 0: any */
	const char *text;
	bool (*where)(const struct mu_augment *a); /* NULL: always */
} changes[] = {
	{MU_IMAGE_GREY, false, 3,
	 "grey images have three equal channels here, as the image shape "
	 "has three", NULL},
	{MU_IMAGE_GREY, true, 1,
	 "colour images become grey, 0.299 red + 0.587 green + 0.114 blue, "
	 "as the image shape has one channel", NULL},
	{MU_IMAGE_DEEP, false, 0, "the values of images of 16 bits are divided by 257, to 0 to 255",
	 NULL},
	{MU_IMAGE_ALPHA, false, 0,
	 "the transparency of images is dropped, and the colours below "
	 "it are used", NULL},
	{MU_IMAGE_GREY, false, 0,
	 "random hue and saturation have no effect on grey images", changes_hue},
};

/* Each once, by worker 0. */
static void report_changes(const struct mu_input *in, const struct mu_image_worker *image, size_t i)
{
	struct records *r = in->impl;
	const unsigned traits = r->info.kind == MU_RECORD_ENCODED ? mu_image_traits(image->decoder)
				: mu_shape_channels(&r->info.shape) == 1 ? MU_IMAGE_GREY
									 : 0;
	char where[TEXT_BYTES];

	for (size_t k = 0; in->config.worker == 0 && k < sizeof changes / sizeof *changes; k++) {
		const struct change *c = &changes[k];

		if (!(traits & c->traits) != c->lacks ||
		    (c->channels > 0 && c->channels != mu_shape_channels(mu_input_shape(in))) ||
		    (c->where && !c->where(&mu_input_pictures(in)->augment)) ||
		    atomic_load_explicit(&r->changes, memory_order_relaxed) >> k & 1 ||
		    atomic_fetch_or(&r->changes, 1u << k) >> k & 1)
			continue;
		mu_log_warn("%s: %s; the first is %s", in->config.paths, c->text,
			    mu_records_where(r->records, i, where, sizeof where));
	}
}

/* By worker 0: the files of a folder, or the members of a tar file, that are no samples. */
static void report_left_out(const struct mu_input *in)
{
	const struct records *r = in->impl;
	char text[MU_LEFT_OUT_BYTES];

	if (in->config.worker == 0 && *mu_left_out_text(&r->info.left_out, text, sizeof text))
		mu_log_warn("%s: left out: %s; samples are .jpg, .jpeg and .png files %s",
			    in->config.paths, text,
			    r->info.separate ? "in folders of classes" : "with their .cls files");
}

static enum mu_status open_records(struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const struct mu_input_config *c = &in->config;
	const struct mu_picture_settings *s = in->settings;
	struct mu_records_config config = {.classes = c->classes,
					   .label_width = c->label_width,
					   .indexes = mu_input_validates(in) ? s->data_val_idx
									     : s->data_train_idx,
					   .unlabelled = c->unlabelled};
	struct records *r;

	if (!c->paths || !*c->paths)
		MU_FAIL(MU_ERR_USAGE, "no data files given");
	MU_TRY(MU_ALLOC(r, 1, "records"));
	in->impl = r;
	atomic_flag_clear(&r->enlarges);
	MU_TRY(mu_records_open(&r->records, c->paths, &config));
	mu_records_info(r->records, &r->info);
	in->n = r->info.n;
	in->classes = c->values    ? config.label_width
		      : c->classes ? c->classes
				   : r->info.classes;
	in->unlabelled = r->info.unlabelled;
	in->about.separate = r->info.separate;
	in->about.class_names = r->info.class_names;
	in->about.n_class_names = r->info.class_names ? r->info.classes : 0;
	if (in->classes == 0)
		MU_FAIL(MU_ERR_USAGE,
			"%s: does not say how many classes there are: number of classes is needed",
			c->paths);
	in->about.stored = r->info.shape;
	MU_TRY(mu_input_declare_images(in, c->shape.ndims > 0              ? &c->shape
					   : r->info.kind == MU_RECORD_RAW ? &r->info.shape
									   : &s->net_shape));
	mu_input_declare_labels(in, c->values ? MU_NUMBER_FLOAT32 : MU_NUMBER_INT32,
				c->label_width);
	report_left_out(in);
out:
	return st;
}

static void close_records(struct mu_input *in)
{
	struct records *r = in->impl;

	if (!r)
		return;
	mu_cache_close(r->cache);
	mu_records_close(r->records);
	mu_free(r);
	in->impl = NULL;
}

static enum mu_status check_records(const struct mu_input *in)
{
	const struct records *r = in->impl;

	return mu_records_unchanged(r->records);
}

static enum mu_status make_sample(const struct mu_input *in, struct mu_input_thread *thread,
				  size_t i, const struct mu_record *record, float *data)
{
	enum mu_status st = MU_OK;
	const struct records *r = in->impl;
	struct mu_augment_task task = mu_input_task(in, thread, i);

	if (r->info.kind == MU_RECORD_ENCODED)
		return mu_augment_file(&task, record->data, record->n, &thread->image, data);
	MU_TRY(mu_image_from_bytes(&thread->image.image, record->data, &r->info.shape, true));
	MU_TRY(mu_augment_image(&task, &thread->image, data));
out:
	return st;
}

static enum mu_status read_record(const struct mu_input *in, struct mu_input_thread *thread,
				  size_t i, float *data, float *labels)
{
	enum mu_status st = MU_OK;
	const struct records *r = in->impl;
	char where[TEXT_BYTES], what[TEXT_BYTES];
	struct mu_record record;

	if (!r->cache || !mu_cache_read(r->cache, i, &record))
		MU_TRY(mu_records_read(r->records, i, &thread->record, &record));
	memcpy(labels, record.labels, mu_input_width(in) * sizeof *labels);
	st = make_sample(in, thread, i, &record, data);
	if (st == MU_OK) {
		report_enlarged(in, &thread->image);
		report_changes(in, &thread->image, i);
		goto out;
	}
	snprintf(what, sizeof what, "%s", mu_trace_message());
	MU_FAIL(st, "%s (id %llu): %s", mu_records_where(r->records, i, where, sizeof where),
		(unsigned long long)record.id, what);
out:
	return st;
}

static enum mu_status cache_records(struct mu_input *in, const struct mu_topology *t, size_t *bytes)
{
	struct records *r = in->impl;

	return mu_cache_open(&r->cache, r->records, in->records ? r->info.n : in->n, t, bytes);
}

static void name_record(const struct mu_input *in, size_t i, char *text, size_t nbytes)
{
	const struct records *r = in->impl;

	mu_records_where(r->records, i, text, nbytes);
}

static void describe_records(const struct mu_input *in, char *text, size_t nbytes)
{
	const struct records *r = in->impl;
	const struct mu_picture_settings *s = in->settings;
	const float *mean = s->mean, *std = s->std;

	if (mu_shape_channels(mu_input_shape(in)) == 1)
		snprintf(text, nbytes,
			 "%s images of %s; a value is (pixel - mean) / std, of one channel: mean "
			 "%g, std %g, the first of three each",
			 r->info.kind == MU_RECORD_RAW ? "raw" : "encoded", in->config.paths,
			 (double)mean[0], (double)std[0]);
	else
		snprintf(text, nbytes,
			 "%s images of %s; a value is (pixel - mean) / std, mean %g,%g,%g, std "
			 "%g,%g,%g",
			 r->info.kind == MU_RECORD_RAW ? "raw" : "encoded", in->config.paths,
			 (double)mean[0], (double)mean[1], (double)mean[2], (double)std[0],
			 (double)std[1], (double)std[2]);
}

static enum mu_status hash_record(const struct mu_input *in, struct mu_input_thread *thread,
				  size_t record, uint64_t *h)
{
	enum mu_status st = MU_OK;
	const struct records *r = in->impl;
	struct mu_record content;

	MU_TRY(mu_records_read(r->records, record, &thread->record, &content));
	*h = mu_hash_block(*h, content.data, content.n);
	*h = mu_hash_block(*h, content.labels, content.n_labels * sizeof *content.labels);
out:
	return st;
}

static size_t bound(const struct mu_input *in, size_t record)
{
	const struct records *r = in->impl;

	return mu_records_bound(r->records, record);
}

static void hash_files(const struct mu_input *in, uint64_t *listing, uint64_t *times)
{
	const struct records *r = in->impl;

	mu_records_hash_files(r->records, listing, times);
}

const struct mu_reader mu_reader_records = {
	.name = "records",
	.help = "images in RecordIO, tar or HDF5 files or in folders",
	MU_PICTURE_SETTINGS,
	.knows_classes = true,
	.threads = true,
	.bad_records = true,
	.open = open_records,
	.close = close_records,
	.check = check_records,
	.cache = cache_records,
	.describe = describe_records,
	.name_record = name_record,
	.read = read_record,
	.hash = hash_record,
	.bound = bound,
	.hash_files = hash_files,
};
