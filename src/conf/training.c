/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defaults that train: batch size, learning rate and padding, where no option says otherwise. They
 * are the network's (struct mu_training of nets/), for its kind of images, but for optimisers whose
 * learning rates have another scale than sgd's (mu_rule.lr).
 */

#include <muster/net.h>

#include "conf.h"

/* Of networks that declare none. */
static const struct mu_training usual = {.lr = 0.05, .batch = 128};

/*
 * Are the images small, as MNIST's and CIFAR's? Before the data are opened: --image-shape decides,
 * else --data-dir, which is for these alone, else the network's shape.
 */
static bool has_small_images(const struct conf *v, const struct mu_network *network)
{
	struct mu_shape shape;

	if (v->image_shape && mu_sample_parse(&shape, v->image_shape))
		return mu_sample_picture(&shape).h <= MU_SMALL_IMAGE;
	return v->data_dir || mu_sample_picture(&network->shape).h <= MU_SMALL_IMAGE;
}

static struct mu_training choose(const struct conf *v, const struct mu_network *network)
{
	const bool small = network->training_small.lr > 0 && has_small_images(v, network);
	struct mu_training t = small ? network->training_small : network->training;

	if (t.lr == 0)
		t.lr = usual.lr;
	if (t.batch == 0)
		t.batch = usual.batch;
	return t;
}

/* Smaller steps have noisier gradients: in proportion (Goyal et al., 2017). Larger ones would need
 * a warm-up, too. */
static double scaled_lr(const struct conf *v, const struct mu_training *t)
{
	const long batch = v->global_batch_size  ? v->global_batch_size
			   : v->batch_per_device ? v->batch_per_device
						 : v->batch_size;

	return batch < t->batch ? t->lr * (double)batch / (double)t->batch : t->lr;
}

enum mu_status mu_conf_training_settle(const struct mu_options *o, const struct mu_network *network,
				       struct conf *v, long *pad)
{
	enum mu_status st = MU_OK;
	const struct mu_training t = choose(v, network);
	const struct mu_rule *rule;

	v->usual_batch = !mu_options_given(o, "batch-size") && !v->batch_per_device &&
			 !v->global_batch_size;
	if (!mu_options_given(o, "batch-size"))
		v->batch_size = t.batch;
	*pad = t.pad;
	v->network_lr = false;
	if (mu_options_given(o, "lr"))
		goto out;
	MU_TRY(mu_rule_find(&rule, v->optimizer));
	v->network_lr = rule->lr == 0 && mu_rule_setting(rule, "lr");
	v->lr = rule->lr > 0 ? rule->lr : v->network_lr ? scaled_lr(v, &t) : 0;
out:
	return st;
}

/* A set that has fewer samples than batches of the usual size. */
static void lower_batch(struct conf *v, int workers)
{
	/* 0: too few ranks, as is said later */
	const long teams = workers / v->model_parallel_ranks;
	const long most = teams > 0 ? v->num_samples / teams : 0;

	if (!v->usual_batch || v->facts.split || most == 0 || most >= v->batch_size)
		return;
	if (v->network_lr)
		v->lr *= (double)most / (double)v->batch_size;
	v->lowered_from = v->batch_size;
	v->batch_size = most;
}

/* Each worker's gradients are an update, and come late: measured, doc/train.md. */
void mu_conf_roles_settle(struct conf *v, int workers, int servers)
{
	v->num_servers = servers;
	lower_batch(v, workers);
	if (v->network_lr && !v->store.synchronous && workers > 1)
		v->lr /= 2 * workers;
}
