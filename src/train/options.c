/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options: names, defaults, meanings are those of MXNet's fit.py where it has them. */
#include "train.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

#define AT(member) offsetof(struct train_options, member)
#define WHOLE 2147483647.0
#define RGB_MEAN "123.68,116.779,103.939"
#define RGB_STD "1,1,1"

static const char model[] = "model", job[] = "job and stores", rule[] = "optimiser",
		  data[] = "data", images[] = "training images", logs[] = "log and files",
		  about[] = "about";

const struct mu_option mu_train_option_table[] = {
	{"network", MU_OPTION_STRING, AT(network), NULL, 0, 0, NULL, model,
	 "NAME|FILE  network to train, such as lenet or resnet (a wrong name lists them), or a "
	 "model of your own: ./mynet.so",
	 false},
	{"num-layers", MU_OPTION_INT, AT(num_layers), "0", 0, 10000, NULL, model,
	 "N  depth, for networks that come in several (0: the network's own)", true},
	{"num-classes", MU_OPTION_INT, AT(num_classes), "0", 0, 1e7, NULL, model,
	 "N  classes, at least 2 (0: the data's own where the files tell, else the network's)",
	 true},
	{"image-shape", MU_OPTION_STRING, AT(image_shape), NULL, 0, 0, NULL, model,
	 "C,H,W  shape of one sample: with --benchmark 1 or --summary, and what is cut out of "
	 "images, such as 3,28,28",
	 true},
	{"initializer", MU_OPTION_STRING, AT(initializer), "default", 0, 0,
	 "default|xavier|msra|orthogonal|normal|uniform|one|zero", model, "NAME  initial weights",
	 true},
	{"dtype", MU_OPTION_STRING, AT(dtype), "float32", 0, 0, "float32|float16|bfloat16", model,
	 "TYPE  arithmetic; this version has float32", true},

	{"kv-store", MU_OPTION_STRING, AT(kv_store), NULL, 0, 0, NULL, job,
	 "NAME  local or device for one rank (default device); for several dist_sync (the default) "
	 "or "
	 "dist_async with servers, dist_allreduce or dist_sharded without",
	 false},
	{"num-servers", MU_OPTION_INT, AT(num_servers), "-1", -1, 1e6, NULL, job,
	 "S  ranks that serve parameters (-1: one per node)", false},
	{"server-placement", MU_OPTION_STRING, AT(server_placement), "spread", 0, 0,
	 "spread|packed|colocated", job,
	 "NAME  servers on all nodes in turn, on the last ones, or inside the workers (dist_sync "
	 "becomes dist_sharded)",
	 true},
	{"max-staleness", MU_OPTION_INT, AT(max_staleness), "-1", -1, 1e9, NULL, job,
	 "K  dist_async: no worker starts step t + K + 1 before all have pushed step t (-1: no "
	 "bound)",
	 true},
	{"sync-period", MU_OPTION_INT, AT(sync_period), "1", 1, 1e9, NULL, job,
	 "K  local SGD: workers update by themselves, and average their weights after every K "
	 "updates (1: sum the gradients of every update)",
	 true},
	{"block-momentum", MU_OPTION_REAL, AT(block_momentum), "0", 0, 1, NULL, job,
	 "X  momentum of these averages, such as 1 - 1 / workers", true},
	{"block-lr", MU_OPTION_REAL, AT(block_lr), "1", 0, 1e6, NULL, job,
	 "X  how far the weights go towards the average", true},
	{"block-nesterov", MU_OPTION_INT, AT(block_nesterov), "0", 0, 1, NULL, job,
	 "0|1  block momentum in Nesterov's form", true},
	{"devices", MU_OPTION_STRING, AT(devices), NULL, 0, 0, NULL, job,
	 "LIST  devices of each worker: cpu (the default), ref, or several such as cpu:0,cpu:1, "
	 "which "
	 "share its batch and its threads",
	 false},
	{"work-load-list", MU_OPTION_STRING, AT(work_load_list), NULL, 0, 0, NULL, job,
	 "LIST  parts of a worker's batch that its devices get, such as 3,1 (equal ones)", true},
	{"gpus", MU_OPTION_STRING, AT(gpus), NULL, 0, 0, NULL, job,
	 "LIST  GPUs of each worker; this version has none", true},
	{"node-reduce", MU_OPTION_STRING, AT(node_reduce), "auto", 0, 0, "auto|shm|none", job,
	 "NAME  ranks of a node share memory where /dev/shm has room (auto), must (shm), or send "
	 "messages (none)",
	 true},
	{"bucket-bytes", MU_OPTION_INT, AT(bucket_bytes), "0", 0, 1e12, NULL, job,
	 "N  size of the pieces that gradients travel in (0: model / 16, 64 KiB to 4 MiB)", true},

	{"comm-timeout", MU_OPTION_REAL, AT(limits.timeout), "300", 0, 1e9, NULL, job,
	 "S  end the job when a rank has waited so long for others that do not move (0: never)",
	 true},
	{"comm-warn", MU_OPTION_REAL, AT(limits.warn), "30", 0, 1e9, NULL, job,
	 "S  tell of such a wait, again and again after so many seconds (0: never)", true},

	{"batch-size", MU_OPTION_INT, AT(batch_size), "128", 1, 1e7, NULL, rule,
	 "N  samples per worker and step", false},
	{"global-batch-size", MU_OPTION_INT, AT(global_batch_size), "0", 0, 1e9, NULL, rule,
	 "N  samples behind an update over all workers, instead of --batch-size", true},
	{"batch-per-device", MU_OPTION_INT, AT(batch_per_device), "0", 0, 1e7, NULL, rule,
	 "N  samples per device and step, instead of --batch-size", true},
	{"update-period", MU_OPTION_INT, AT(update_period), "1", 1, 1e6, NULL, rule,
	 "K  sum the gradients of K batches, then update once", true},
	{"num-epochs", MU_OPTION_INT, AT(num_epochs), "100", 1, 1e9, NULL, rule,
	 "N  epochs to train, earlier runs included", false},
	{"optimizer", MU_OPTION_STRING, AT(optimizer), "sgd", 0, 0, NULL, rule,
	 "NAME  sgd, nag, adam, adagrad, ftrl, signum, adadelta, rmsprop, lars, lamb, dcasgd, test",
	 false},
	{"lr", MU_OPTION_REAL, AT(lr), "0.1", 0, 1e6, NULL, rule,
	 "X  learning rate, the same default for every optimiser (adam, lamb, rmsprop want less)",
	 false},
	{"lr-schedule", MU_OPTION_STRING, AT(schedule.name), NULL, 0, 0,
	 "constant|multifactor|factor|poly|cosine", rule,
	 "NAME  how it changes; multifactor if --lr-step-epochs is given, else constant", false},
	{"lr-factor", MU_OPTION_REAL, AT(schedule.factor), "0.1", 0, 1e6, NULL, rule,
	 "X  multiplies the learning rate at every epoch of --lr-step-epochs", false},
	{"lr-step-epochs", MU_OPTION_STRING, AT(schedule.step_epochs), NULL, 0, 0, NULL, rule,
	 "LIST  epochs at which the learning rate drops, such as 30,60; pow2: poly of power 2",
	 false},
	{"lr-factor-epoch", MU_OPTION_REAL, AT(schedule.factor_epoch), "1", 0, 1e9, NULL, rule,
	 "X  epochs from drop to drop with --lr-schedule factor", true},
	{"lr-power", MU_OPTION_REAL, AT(schedule.power), "2", 0, 1000, NULL, rule,
	 "X  of --lr-schedule poly", true},
	{"final-lr", MU_OPTION_REAL, AT(schedule.final_lr), NULL, 0, 1e6, NULL, rule,
	 "X  where poly and cosine end (0) and where factor stops (1e-8)", true},
	{"warmup-epochs", MU_OPTION_REAL, AT(schedule.warmup_epochs), "0", 0, 1e9, NULL, rule,
	 "X  epochs before the schedule, with a lower learning rate", false},
	{"warmup-strategy", MU_OPTION_STRING, AT(schedule.warmup_strategy), "linear", 0, 0,
	 "linear|constant", rule, "NAME  a line up to --lr, or --warmup-begin-lr all the time",
	 true},
	{"warmup-begin-lr", MU_OPTION_REAL, AT(schedule.warmup_begin_lr), "0", 0, 1e6, NULL, rule,
	 "X  where the warm-up begins", true},
	{"lr-scale-with-workers", MU_OPTION_INT, AT(schedule.scale_with_workers), "0", 0, 1, NULL,
	 rule, "0|1  multiply --lr by the number of workers (synchronous stores)", true},
	{"mom", MU_OPTION_REAL, AT(optim.mom), NULL, 0, 1, NULL, rule,
	 "X  momentum of sgd, nag, signum, lars, dcasgd (0.9)", false},
	{"wd", MU_OPTION_REAL, AT(optim.wd), "0.0001", 0, 1e6, NULL, rule, "X  weight decay",
	 false},
	{"wd-gamma", MU_OPTION_INT, AT(wd_gamma), "1", 0, 1, NULL, rule,
	 "0|1  decay batch-norm's gammas too, as MXNet does", true},
	{"beta1", MU_OPTION_REAL, AT(optim.beta1), NULL, 0, 1, NULL, rule,
	 "X  of adam, lamb (0.9): decay of the mean", true},
	{"beta2", MU_OPTION_REAL, AT(optim.beta2), NULL, 0, 1, NULL, rule,
	 "X  of adam, lamb (0.999): decay of the squares", true},
	{"epsilon", MU_OPTION_REAL, AT(optim.eps), NULL, 0, 1, NULL, rule,
	 "X  of adam, rmsprop (1e-8), adagrad (1e-7), lamb (1e-6), adadelta (1e-5), lars (0)",
	 true},
	{"adam-decay", MU_OPTION_STRING, AT(adam_decay), "l2", 0, 0, "l2|decoupled", rule,
	 "NAME  weight decay of adam: within the gradient, or beside it (AdamW)", true},
	{"rho", MU_OPTION_REAL, AT(optim.rho), NULL, 0, 1, NULL, rule,
	 "X  of adadelta (0.9): decay of the squares", true},
	{"gamma1", MU_OPTION_REAL, AT(optim.gamma1), NULL, 0, 1, NULL, rule,
	 "X  of rmsprop (0.9): decay of the squares", true},
	{"gamma2", MU_OPTION_REAL, AT(optim.gamma2), NULL, 0, 1, NULL, rule,
	 "X  of rmsprop with --centered 1 (0.9): momentum", true},
	{"centered", MU_OPTION_INT, AT(centered), "0", 0, 1, NULL, rule,
	 "0|1  rmsprop by the variance of the gradients, not by their squares", true},
	{"lamda1", MU_OPTION_REAL, AT(optim.lamda1), NULL, 0, 1e6, NULL, rule,
	 "X  of ftrl (0.01): weight of the 1-norm", true},
	{"beta", MU_OPTION_REAL, AT(optim.beta), NULL, 0, 1e6, NULL, rule,
	 "X  of ftrl (1): divisor of the learning rate at the start", true},
	{"wd-lh", MU_OPTION_REAL, AT(optim.wd_lh), NULL, 0, 1e6, NULL, rule,
	 "X  of signum (0): weight decay beside the momentum", true},
	{"lars-eta", MU_OPTION_REAL, AT(optim.lars_eta), NULL, 0, 1e6, NULL, rule,
	 "X  of lars (0.001): trust coefficient", true},
	{"lower-bound", MU_OPTION_REAL, AT(optim.lower_bound), NULL, 0, 1e30, NULL, rule,
	 "X  of lamb (0): least norm of a key's weights", true},
	{"upper-bound", MU_OPTION_REAL, AT(optim.upper_bound), NULL, 0, 1e30, NULL, rule,
	 "X  of lamb: greatest norm of a key's weights (0: no limit)", true},
	{"lamda", MU_OPTION_REAL, AT(optim.lamda), NULL, 0, 1e6, NULL, rule,
	 "X  of dcasgd (0.04): how much of the delay is made up for", true},
	{"clip-gradient", MU_OPTION_REAL, AT(optim.clip_gradient), "0", 0, 1e30, NULL, rule,
	 "X  clip every element of the mean gradient to +-X (0: no)", true},
	{"clip-global-norm", MU_OPTION_REAL, AT(optim.clip_global_norm), "0", 0, 1e30, NULL, rule,
	 "X  scale the mean gradient down to the norm X over all keys (0: no)", true},
	{"label-smoothing", MU_OPTION_REAL, AT(label_smoothing), "0", 0, 1, NULL, rule,
	 "E  train towards (1 - E) of the label + E / classes of every class", true},
	{"target-accuracy", MU_OPTION_REAL, AT(target_accuracy), "0", 0, 1, NULL, rule,
	 "X  stop when the validation accuracy reaches X (0: no)", false},
	{"seed", MU_OPTION_INT, AT(seed), "0", 0, WHOLE, NULL, rule, "N  of all random draws",
	 false},

	{"data-dir", MU_OPTION_STRING, AT(data_dir), NULL, 0, 0, NULL, data,
	 "DIR  folder with the four MNIST IDX files, plain or .gz, or with the binary files of "
	 "CIFAR-10 or CIFAR-100",
	 false},
	{"data-train", MU_OPTION_STRING, AT(data_train), NULL, 0, 0, NULL, data,
	 "FILE  training images instead: a.rec, several as a.rec;b.rec, x.h5, or a folder with a "
	 "folder of images per class",
	 false},
	{"data-val", MU_OPTION_STRING, AT(data_val), NULL, 0, 0, NULL, data,
	 "FILE  images for validation, as --data-train (none: no validation)", false},
	{"data-train-idx", MU_OPTION_STRING, AT(data_train_idx), NULL, 0, 0, NULL, data,
	 "FILE  index of the .rec file (the .idx beside it)", true},
	{"data-val-idx", MU_OPTION_STRING, AT(data_val_idx), NULL, 0, 0, NULL, data,
	 "FILE  index of the .rec file for validation", true},
	{"rgb-mean", MU_OPTION_STRING, AT(rgb_mean), NULL, 0, 0, NULL, data,
	 "R,G,B  subtracted from the pixels of colour images (" RGB_MEAN ")", true},
	{"rgb-std", MU_OPTION_STRING, AT(rgb_std), NULL, 0, 0, NULL, data,
	 "R,G,B  the difference is divided by (" RGB_STD ")", true},
	{"num-examples", MU_OPTION_INT, AT(num_examples), "0", 0, WHOLE, NULL, data,
	 "N  train on the first N samples only (0: all)", false},
	{"shuffle", MU_OPTION_STRING, AT(shuffle), "1", 0, 0, "0|1|chunk", data,
	 "0|1|chunk  a new permutation of all samples every epoch; chunk: of runs of samples, and "
	 "within each",
	 true},
	{"shuffle-chunk", MU_OPTION_INT, AT(shuffle_chunk), "1024", 2, WHOLE, NULL, data,
	 "N  samples in a run of --shuffle chunk", true},
	{"benchmark", MU_OPTION_INT, AT(benchmark), "0", 0, 1, NULL, data,
	 "0|1  random data made in memory, no validation", false},
	{"num-batches", MU_OPTION_INT, AT(num_batches), "0", 0, WHOLE, NULL, data,
	 "N  stop every epoch after N steps (0: the whole epoch)", false},
	{"test-io", MU_OPTION_INT, AT(test_io), "0", 0, 1, NULL, data,
	 "0|1  read the data only, and say how fast", true},
	{"dump-batch", MU_OPTION_STRING, AT(dump_batch), NULL, 0, 0, NULL, data,
	 "FILE.png  write the first batch of images as a sheet, and stop", true},
	{"data-nthreads", MU_OPTION_INT, AT(data_nthreads), "-1", -1, 1024, NULL, data,
	 "N  threads of a worker that read and decode images (-1: 4, at most its cores; 0: the "
	 "training thread)",
	 true},
	{"prefetch-buffer", MU_OPTION_INT, AT(prefetch_buffer), "4", 1, 1e6, NULL, data,
	 "N  batches that these threads keep ready", true},
	{"data-cache", MU_OPTION_STRING, AT(data_cache), "none", 0, 0, "none|node", data,
	 "NAME  node: keep the files' images, encoded, in memory that a node's ranks share; each "
	 "reads a part once",
	 true},
	{"skip-bad-records", MU_OPTION_INT, AT(skip_bad_records), "0", 0, 1, NULL, data,
	 "0|1  images that cannot be decoded: leave them out of batches, and say so", true},

	{"resize", MU_OPTION_INT, AT(images.resize), "0", 0, 1e5, NULL, images,
	 "N  shorter edge of images becomes N pixels, before all else (0: stays)", false},
	{"pad-size", MU_OPTION_INT, AT(images.pad), "0", 0, 1e5, NULL, images,
	 "N  pixels of --fill-value on each side of training images", false},
	{"fill-value", MU_OPTION_INT, AT(images.fill), "127", 0, 255, NULL, images,
	 "N  what is outside of an image", true},
	{"random-crop", MU_OPTION_INT, AT(images.random_crop), "-1", -1, 1, NULL, images,
	 "0|1  cut from a random place, not the middle (-1: as --data-aug-level says)", true},
	{"random-mirror", MU_OPTION_INT, AT(images.random_mirror), "-1", -1, 1, NULL, images,
	 "0|1  mirror every other image (-1: as --data-aug-level says)", true},
	{"data-aug-level", MU_OPTION_INT, AT(images.level), "1", 0, 3, NULL, images,
	 "N  0: none; 1: random crop and mirror; 2: also h, s, l by 36, 50, 50; 3: also rotate, "
	 "shear, aspect by 10, 0.1, 0.25",
	 true},
	{"use-imagenet-data-augmentation", MU_OPTION_INT, AT(images.imagenet), "0", 0, 1, NULL,
	 images,
	 "0|1  random area from 0.08 on and aspect 3/4 to 4/3, mirror, jitter of 0.4, PCA noise of "
	 "0.1",
	 true},
	{"random-resized-crop", MU_OPTION_INT, AT(images.random_resized_crop), "-1", -1, 1, NULL,
	 images, "0|1  cut a random area and aspect, stretched to the shape", true},
	{"min-random-area", MU_OPTION_REAL, AT(images.min_area), NULL, 0, 1, NULL, images,
	 "X  of --random-resized-crop, part of the image (1)", true},
	{"max-random-area", MU_OPTION_REAL, AT(images.max_area), NULL, 0, 1, NULL, images,
	 "X  of --random-resized-crop (1)", true},
	{"min-random-aspect-ratio", MU_OPTION_REAL, AT(images.min_aspect), NULL, 0, 1000, NULL,
	 images, "X  width to height; without it 1 - max to 1 + max", true},
	{"max-random-aspect-ratio", MU_OPTION_REAL, AT(images.max_aspect), NULL, 0, 1000, NULL,
	 images, "X  width to height (0: stays)", true},
	{"min-crop-size", MU_OPTION_INT, AT(images.min_crop), "-1", -1, 1e5, NULL, images,
	 "N  pixels of a square to cut and stretch to the shape (-1: none)", true},
	{"max-crop-size", MU_OPTION_INT, AT(images.max_crop), "-1", -1, 1e5, NULL, images,
	 "N  its largest side", true},
	{"max-random-rotate-angle", MU_OPTION_INT, AT(images.max_rotate_angle), "-1", -1, 180, NULL,
	 images, "N  degrees to turn by, either way", true},
	{"max-random-shear-ratio", MU_OPTION_REAL, AT(images.max_shear), NULL, 0, 100, NULL, images,
	 "X  shear, either way", true},
	{"min-random-scale", MU_OPTION_REAL, AT(images.min_scale), NULL, 0, 1000, NULL, images,
	 "X  scale of an image (1)", true},
	{"max-random-scale", MU_OPTION_REAL, AT(images.max_scale), NULL, 0, 1000, NULL, images,
	 "X  scale of an image (1)", true},
	{"brightness", MU_OPTION_REAL, AT(images.brightness), NULL, 0, 1, NULL, images,
	 "X  factor of 1 - X to 1 + X", true},
	{"contrast", MU_OPTION_REAL, AT(images.contrast), NULL, 0, 1, NULL, images,
	 "X  towards the mean grey of the image, likewise", true},
	{"saturation", MU_OPTION_REAL, AT(images.saturation), NULL, 0, 1, NULL, images,
	 "X  towards the grey of each pixel, likewise", true},
	{"max-random-h", MU_OPTION_INT, AT(images.max_h), "-1", -1, 180, NULL, images,
	 "N  added to the hue (of 180), either way", true},
	{"max-random-s", MU_OPTION_INT, AT(images.max_s), "-1", -1, 255, NULL, images,
	 "N  added to the saturation (of 255)", true},
	{"max-random-l", MU_OPTION_INT, AT(images.max_l), "-1", -1, 255, NULL, images,
	 "N  added to the lightness (of 255)", true},
	{"pca-noise", MU_OPTION_REAL, AT(images.pca_noise), NULL, 0, 100, NULL, images,
	 "X  standard deviation of noise along the main colours", true},

	{"disp-batches", MU_OPTION_INT, AT(disp_batches), "20", 1, WHOLE, NULL, logs,
	 "N  a line every N steps", false},
	{"top-k", MU_OPTION_INT, AT(top_k), "0", 0, 1e6, NULL, logs,
	 "K  report also the accuracy within the K best classes", false},
	{"loss", MU_OPTION_STRING, AT(loss), NULL, 0, 0, NULL, logs,
	 "LIST  report also these metrics: ce, nll, perplexity", true},
	{"model-prefix", MU_OPTION_STRING, AT(model_prefix), NULL, 0, 0, NULL, logs,
	 "P  write parameters to P-0001.h5 and so on", false},
	{"save-period", MU_OPTION_INT, AT(save_period), "1", 1, WHOLE, NULL, logs,
	 "N  epochs between two files", true},
	{"load-epoch", MU_OPTION_INT, AT(load_epoch), "0", 0, 9999, NULL, logs,
	 "K  begin with the parameters of P-<K>.h5 (0: no)", false},
	{"verbose", MU_OPTION_INT, AT(verbose), "0", 0, 2, NULL, logs,
	 "0|1|2  tell of connections, roles and placement (1), and of every message (2); where it "
	 "is "
	 "not given the environment's PS_VERBOSE counts",
	 true},
	{"log-prefix", MU_OPTION_STRING, AT(log_prefix), "node", 0, 0, "node|none", logs,
	 "node|none  start lines with Node[0]", true},
	{"log-time", MU_OPTION_INT, AT(log_time), "1", 0, 1, NULL, logs,
	 "0|1  start lines with date and time", true},

	{"check", MU_OPTION_FLAG, AT(check), NULL, 0, 0, NULL, about,
	 "check options, data and layout of the job, and stop", false},
	{"summary", MU_OPTION_STRING, AT(summary), NULL, 0, 0, "|dot", about,
	 "[dot]  print the network's layers, or a graph for Graphviz, and stop", false},
	{"help", MU_OPTION_FLAG, AT(help), NULL, 0, 0, NULL, about, "this text", false},
	{"help-all", MU_OPTION_FLAG, AT(help_all), NULL, 0, 0, NULL, about, "all options", false},
	{"version", MU_OPTION_FLAG, AT(version), NULL, 0, 0, NULL, about, "the version", false},
	{"info", MU_OPTION_FLAG, AT(info), NULL, 0, 0, NULL, about,
	 "what this program was built with", false},
};

const size_t mu_train_option_count = sizeof mu_train_option_table / sizeof *mu_train_option_table;

static int count_given(const struct mu_options *o, const char *const *names)
{
	int n = 0;

	for (size_t i = 0; names[i]; i++)
		n += mu_options_given(o, names[i]);
	return n;
}

/* Names that are in tables elsewhere, asked for before anything is read. */
static enum mu_status check_names(const struct train_options *v)
{
	enum mu_status st = MU_OK;
	const struct mu_network *network;
	struct train_metrics metrics;

	if (!v->network)
		MU_FAIL(MU_ERR_USAGE,
			"--network NAME is missing; trainer --help lists the options");
	MU_TRY(mu_network_find(&network, v->network));
	MU_TRY(mu_train_metrics_choose(&metrics, v));
out:
	return st;
}

/* "123.68,116.779,103.939"; sets nothing else than three finite numbers. */
static enum mu_status parse_rgb(const char *option, const char *text, float *out)
{
	enum mu_status st = MU_OK;
	char rest;
	float v[3];

	if (sscanf(text, "%f,%f,%f%c", &v[0], &v[1], &v[2], &rest) != 3 || !isfinite(v[0]) ||
	    !isfinite(v[1]) || !isfinite(v[2]))
		MU_FAIL(MU_ERR_USAGE, "--%s %s: three numbers are needed, such as %s", option, text,
			RGB_MEAN);
	memcpy(out, v, sizeof v);
out:
	return st;
}

enum mu_status mu_train_options_rgb(const struct train_options *v, float mean[3], float std[3])
{
	enum mu_status st = MU_OK;

	MU_TRY(parse_rgb("rgb-mean", v->rgb_mean ? v->rgb_mean : RGB_MEAN, mean));
	MU_TRY(parse_rgb("rgb-std", v->rgb_std ? v->rgb_std : RGB_STD, std));
	for (int i = 0; i < 3; i++)
		if (std[i] <= 0)
			MU_FAIL(MU_ERR_USAGE, "--rgb-std %s: the numbers must be above 0",
				v->rgb_std);
out:
	return st;
}

static enum mu_status check_data(const struct mu_options *o, const struct train_options *v)
{
	enum mu_status st = MU_OK;
	float mean[3], std[3];

	if (v->benchmark && (v->data_dir || v->data_train))
		MU_FAIL(MU_ERR_USAGE,
			"--benchmark 1 and --data-%s %s contradict each other: random data or "
			"files?",
			v->data_dir ? "dir" : "train", v->data_dir ? v->data_dir : v->data_train);
	if (v->data_dir && v->data_train)
		MU_FAIL(MU_ERR_USAGE,
			"--data-dir %s and --data-train %s contradict each other: give one of them",
			v->data_dir, v->data_train);
	if (!v->data_train && (v->data_val || v->data_train_idx))
		MU_FAIL(MU_ERR_USAGE, "--%s needs --data-train FILE",
			v->data_val ? "data-val" : "data-train-idx");
	if (!v->data_val && v->data_val_idx)
		MU_FAIL(MU_ERR_USAGE, "--data-val-idx %s needs --data-val FILE", v->data_val_idx);
	if (!v->benchmark && !v->data_dir && !v->data_train && !v->summary)
		MU_FAIL(MU_ERR_USAGE, "no data: give --data-dir DIR with files of MNIST or CIFAR, "
				      "--data-train FILE with images, or --benchmark 1");
	if (v->data_train && !v->data_val && v->target_accuracy > 0)
		MU_FAIL(MU_ERR_USAGE, "--target-accuracy needs validation data: give --data-val");
	MU_TRY(mu_train_options_rgb(v, mean, std));
	if (v->benchmark && (v->rgb_mean || v->rgb_std))
		MU_FAIL(MU_ERR_USAGE, "--rgb-mean and --rgb-std are for colour images from files, "
				      "not for --benchmark 1");
	if (v->benchmark && v->target_accuracy > 0)
		MU_FAIL(MU_ERR_USAGE,
			"--target-accuracy needs validation data; --benchmark 1 has none");
	if (mu_options_given(o, "load-epoch") && !v->model_prefix)
		MU_FAIL(MU_ERR_USAGE, "--load-epoch %ld needs --model-prefix P: which files?",
			v->load_epoch);
out:
	return st;
}

enum mu_status mu_train_options_check(const struct mu_options *o, struct train_options *v)
{
	enum mu_status st = MU_OK;
	static const char *const batches[] = {"batch-size", "global-batch-size", "batch-per-device",
					      NULL};
	struct train_device_list devices;

	MU_TRY(check_names(v));
	MU_TRY(mu_train_optimizer_settle(o, v));
	MU_TRY(mu_train_store_settle(o, v));
	v->traffic = MU_VERBOSE_ENVIRONMENT;
	if (mu_options_given(o, "verbose"))
		v->traffic = (enum mu_verbose)(MU_VERBOSE_NO + v->verbose);
	if (count_given(o, batches) > 1)
		MU_FAIL(MU_ERR_USAGE, "--batch-size, --global-batch-size and --batch-per-device: "
				      "give one of them");
	if (v->num_classes == 1)
		MU_FAIL(MU_ERR_USAGE, "--num-classes 1: at least 2 are needed, or 0 for the "
				      "network's own number");
	if (v->label_smoothing >= 1)
		MU_FAIL(MU_ERR_USAGE, "--label-smoothing %g: it must be below 1",
			v->label_smoothing);
	if (strcmp(v->dtype, "float32") != 0)
		MU_FAIL(MU_ERR_USAGE, "--dtype %s: this version trains in float32 only", v->dtype);
	if (v->gpus && *v->gpus)
		MU_FAIL(MU_ERR_USAGE,
			"--gpus %s: this version has no GPU device; leave it out to train on the "
			"CPU",
			v->gpus);
	MU_TRY(mu_train_device_list_read(&devices, v));
	if (v->load_epoch > v->num_epochs)
		MU_FAIL(MU_ERR_USAGE, "--load-epoch %ld is past --num-epochs %ld", v->load_epoch,
			v->num_epochs);
	MU_TRY(check_data(o, v));
	MU_TRY(mu_train_images_settle(o, v));
out:
	return st;
}
