/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A first look at the training data, before options are settled: how many samples there are, and
 * the size of the images. Defaults depend on both (conf/training.c), on servers too, which read no
 * data. Files that rank 0 cannot read tell nothing here; the workers report what is wrong.
 */
#include "data.h"

#include <muster/records.h>

#include "conf/conf.h"
#include "conf/text.h"

enum {
	LOOKED_AT = 16,  /* images, over the whole set */
	WHOLE_SIDE = 128 /* larger images are cut to the network's usual shape */
};

struct sizes {
	size_t h, w; /* of the first image */
	bool equal;  /* to all others that were looked at */
};

static enum mu_status find_sizes(const struct mu_records *r, size_t n, bool upright,
				 struct sizes *out)
{
	enum mu_status st = MU_OK;
	const size_t looked_at = n < LOOKED_AT ? n : LOOKED_AT;
	struct mu_image_decoder *decoder = NULL;
	struct mu_record_buffer buffer = {0};
	struct mu_record record;
	size_t h, w;

	MU_TRY(mu_image_decoder_new(&decoder));
	mu_image_decoder_upright(decoder, upright);
	out->equal = true;
	for (size_t i = 0; i < looked_at; i++) {
		MU_TRY(mu_records_read(r, n / looked_at * i, &buffer, &record));
		MU_TRY(mu_image_begin(decoder, record.data, record.n, &h, &w));
		if (i == 0)
			*out = (struct sizes){.h = h, .w = w, .equal = true};
		out->equal &= h == out->h && w == out->w;
	}
out:
	mu_image_decoder_free(decoder);
	mu_record_buffer_release(&buffer);
	return st;
}

/* Can the network be built for images of this shape? */
static bool fits(const struct conf *v, const struct mu_network *network,
		 const struct mu_shape *shape)
{
	const struct mu_net_config config = {.network = network->name,
					     .shape = *shape,
					     .classes = network->classes,
					     .num_layers = v->num_layers,
					     .settings = v->owner.values};
	struct mu_net *net = NULL;

	if (mu_net_new_from(&net, network, &config) != MU_OK)
		mu_trace_clear();
	mu_net_free(net);
	return net != NULL;
}

/* The shape of encoded images: their own, or the network's; and why. */
static enum mu_status choose_shape(const struct conf *v, const struct mu_picture_settings *s,
				   const struct mu_records *r, size_t n, struct train_look *look)
{
	enum mu_status st = MU_OK;
	static const char cure[] = "; --image-shape C,H,W sets another";
	const struct mu_network *network;
	struct sizes sizes;
	struct mu_picture usual;
	struct mu_shape shape;
	size_t side;
	char why[128], text[MU_SAMPLE_TEXT];

	MU_TRY(mu_network_find(&network, v->network));
	if (network->shape.ndims != 4)
		goto out;
	MU_TRY(find_sizes(r, n, s->exif_orientation, &sizes));
	usual = mu_sample_picture(&network->shape);
	shape = (struct mu_shape)MU_SAMPLE(usual.c, sizes.h, sizes.w);
	side = usual.h > WHOLE_SIDE ? usual.h : WHOLE_SIDE;
	if (!sizes.equal)
		snprintf(why, sizeof why, "their sizes differ");
	else if (sizes.h > side || sizes.w > side)
		snprintf(why, sizeof why, "they are %zu x %zu", sizes.h, sizes.w);
	else if (!fits(v, network, &shape) && fits(v, network, &network->shape))
		snprintf(why, sizeof why, "they are %zu x %zu, too small for the network",
			 sizes.h, sizes.w);
	else {
		mu_sample_text(&shape, ",", look->shape, sizeof look->shape);
		snprintf(look->note, sizeof look->note, "image shape %s, as the images of %s%s",
			 look->shape, v->data_train, cure);
		goto out;
	}
	snprintf(look->note, sizeof look->note,
		 "image shape %s, the usual one of %s, to which the images of %s are cut: "
		 "%s%s",
		 mu_sample_text(&network->shape, ",", text, sizeof text), network->name,
		 v->data_train, why, cure);
out:
	return st;
}

static enum mu_status look_at_records(const struct conf *v, struct train_look *look)
{
	enum mu_status st = MU_OK;
	const struct mu_picture_settings *s = mu_conf_reader_settings(v, "records");
	const struct mu_records_config config = {.indexes = s ? s->data_train_idx : NULL};
	struct mu_records_info info;
	struct mu_records *r = NULL;

	MU_TRY(mu_records_open(&r, v->data_train, &config));
	mu_records_info(r, &info);
	look->n = info.n;
	if (!v->image_shape && s && s->augment.resize == 0 && info.n > 0 &&
	    info.kind == MU_RECORD_ENCODED)
		MU_TRY(choose_shape(v, s, r, info.n, look));
out:
	mu_records_close(r);
	return st;
}

/* A folder, or a file of arrays. */
static enum mu_status look_by_reader(const struct conf *v, struct train_look *look)
{
	enum mu_status st = MU_OK;
	const struct mu_reader *reader;

	if (v->data_train)
		MU_TRY(mu_input_reader("arrays", &reader));
	else
		MU_TRY(mu_input_detect(v->data_dir, &reader));
	if (reader->count)
		MU_TRY(reader->count(v->data_train ? v->data_train : v->data_dir, &look->n));
out:
	return st;
}

enum mu_status mu_train_look(const struct mu_options *o, const struct conf *v, MPI_Comm comm,
			     struct train_look *look)
{
	enum mu_status st = MU_OK, found = MU_OK;
	const bool batch = mu_options_given(o, "batch-size") || v->batch_per_device ||
			   v->global_batch_size;
	int rank, size;

	*look = (struct train_look){.n = 0};
	if (v->benchmark || v->evaluate || v->predict || v->text.sample || !v->network ||
	    mu_conf_reads_text(v))
		goto out;
	MU_TRY(mu_comm_rank(comm, &rank, &size));
	if (rank == 0 && mu_conf_reads_arrays(v))
		found = batch ? MU_OK : look_by_reader(v, look);
	else if (rank == 0 && v->data_train && (!batch || !v->image_shape))
		found = look_at_records(v, look);
	else if (rank == 0 && v->data_dir && !batch)
		found = look_by_reader(v, look);
	if (found != MU_OK)
		mu_trace_clear();
	look->n -= (size_t)(v->val_split * (double)look->n + 0.5);
	if (v->num_examples && look->n > (size_t)v->num_examples)
		look->n = (size_t)v->num_examples;
	MU_TRY(mu_bcast(look, sizeof *look, 0, comm));
out:
	return st;
}
