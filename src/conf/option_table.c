/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options. Where MXNet's fit.py has an option, name, default and meaning are the same.
 */
#include <muster/base.h>

#include "options.h"

#define ROW(name_, type_, member) \
	.name = name_, .type = MU_OPTION_##type_, .offset = offsetof(struct conf, member)
#define FLAG(name_, member) ROW(name_, FLAG, member)
#define INT(name_, member)  ROW(name_, INT, member)
#define REAL(name_, member) ROW(name_, REAL, member)
#define TEXT(name_, member) ROW(name_, STRING, member)
#define WORD(name_, member) ROW(name_, WORD, member)
#define RANGE(min_, max_)    .min = min_, .max = max_
#define ADVANCED            .advanced = true
#define LIST(list)	    .words = list, .n_words = sizeof list / sizeof *list
#define WHOLE 2147483647.0

static const char model[] = "model", job[] = "job and stores", rule[] = "optimiser",
		  data[] = "data", images[] = "training images", logs[] = "log and files",
		  about[] = "about";

const struct mu_option mu_conf_options[] = {
	{TEXT("network", network), .group = model, .record = CONF_IDENTITY,
	 .help = "NAME|FILE  network to train, such as lenet or resnet (an unknown name lists "
		 "all), or a model of your own: ./mynet.so"},
	{INT("num-layers", num_layers), .initial = "0", RANGE(0, 10000), .group = model, ADVANCED,
	 .record = CONF_IDENTITY,
	 .help = "N  depth, for networks that have several (0: the network's default)"},
	{INT("num-hidden", text.hidden), .initial = "0", RANGE(0, 1e6), .group = model, ADVANCED,
	 .help = "N  units of each layer, for networks of sequences (0: the network's default)"},
	{INT("num-embed", text.embed), .initial = "0", RANGE(0, 1e6), .group = model, ADVANCED,
	 .help = "N  size of a word's embedding there (0: the network's default)"},
	{REAL("dropout", text.dropout), RANGE(0, 1), .group = model, ADVANCED, .record = CONF_TOLD,
	 .help = "P  probability that a value between its layers is dropped in training (the "
		 "network's default)"},
	{INT("num-classes", num_classes), .initial = "0", RANGE(0, 1e7), .group = model, ADVANCED,
	 .record = CONF_IDENTITY,
	 .help = "N  classes, at least 2 (0: as many as the data files have, if they say, else "
		 "the network's default)"},
	{TEXT("image-shape", image_shape), .group = model, ADVANCED, .record = CONF_IDENTITY,
	 .help = "C,H,W  shape of one sample, such as 3,28,28: of random data and --summary, and "
		 "of the crops of images"},
	{TEXT("initializer", initializer), .initial = "default",
	 .choices = "default|xavier|msra|orthogonal|normal|uniform|one|zero|uniform-0.1",
	 .group = model, ADVANCED, .help = "NAME  initial weights"},
	{WORD("dtype", dtype), .initial = "float32", LIST(mu_conf_dtype_words), .group = model,
	 ADVANCED, .record = CONF_TRAINING,
	 .help = "TYPE  arithmetic: float32, float16 on GPUs, or bfloat16 on GPUs and on CPUs that "
		 "support it; weights and sums stay in float32"},
	{INT("dtype-fallback", dtype_fallback), .initial = "0", RANGE(0, 1), .group = model,
	 ADVANCED,
	 .help = "0|1  train in float32 where the device does not support --dtype, instead of an "
		 "error"},
	{WORD("conv-algo", conv_algo), .initial = "auto", LIST(mu_conf_conv_words), .group = model,
	 ADVANCED, .record = CONF_TOLD,
	 .help = "NAME  algorithm of convolutions, where the device has it; auto: by a fixed rule; "
		 "tune: measure all, write --conv-table, and stop"},
	{TEXT("conv-table", conv_table), .group = model, ADVANCED, .record = CONF_TOLD,
	 .help = "FILE  an algorithm for each convolution, as written by --conv-algo tune; "
		 "checkpoints include it"},

	{TEXT("kv-store", kv_store), .group = job, .record = CONF_TOLD,
	 .help = "NAME  for one rank: local or device (default device); for several ranks: "
		 "dist_sync (the default) or dist_async with servers, dist_allreduce or "
		 "dist_sharded without; for the GPUs of a node: nccl or nccl_allreduce"},
	{INT("num-servers", num_servers), .initial = "-1", RANGE(-1, 1e6), .group = job,
	 .help = "S  ranks that serve parameters (-1: one per node)"},
	{WORD("server-placement", server_placement), .initial = "spread",
	 LIST(mu_conf_placement_words), .group = job, ADVANCED,
	 .help = "NAME  servers on all nodes in turn (spread), on the last nodes (packed), or "
		 "inside the workers (colocated: dist_sync becomes dist_sharded)"},
	{INT("max-staleness", max_staleness), .initial = "-1", RANGE(-1, 1e9), .group = job,
	 ADVANCED,
	 .help = "K  dist_async: a worker starts step t + K + 1 only after all workers have pushed "
		 "step t (-1: no bound)"},
	{INT("sync-period", sync_period), .initial = "1", RANGE(1, 1e9), .group = job, ADVANCED,
	 .record = CONF_TOLD,
	 .help = "K  local SGD: each worker updates its own weights, and all average them after "
		 "every K updates (1: sum gradients at every update)"},
	{REAL("block-momentum", block_momentum), .initial = "0", RANGE(0, 1), .group = job,
	 ADVANCED, .record = CONF_TOLD,
	 .help = "X  momentum of the averages, such as 1 - 1 / workers"},
	{REAL("block-lr", block_lr), .initial = "1", RANGE(0, 1e6), .group = job, ADVANCED,
	 .record = CONF_TOLD,
	 .help = "X  learning rate of the averages: fraction of the way towards them"},
	{INT("block-nesterov", block_nesterov), .initial = "0", RANGE(0, 1), .group = job,
	 ADVANCED, .record = CONF_TOLD, .help = "0|1  Nesterov's form of the block momentum"},
	{TEXT("devices", devices), .group = job, .record = CONF_TOLD,
	 .help = "LIST  devices of each worker: cpu (the default), ref, gpu:0, or several such "
		 "as cpu:0,cpu:1, which share its batch and threads"},
	{TEXT("group2dev", group2dev), .group = job, ADVANCED,
	 .help = "LIST  model parallelism by hand: a device of the worker for each group of "
		 "layers, such as embed=cpu:0,lstm0-3=cpu:0,lstm4-7=cpu:1,decode=cpu:1"},
	{INT("model-parallel", model_parallel), .initial = "0", RANGE(0, CONF_MAX_STAGES),
	 .group = job, ADVANCED,
	 .help = "N  model parallelism: cut the network into parts of about equal work for N "
		 "devices (0: no)"},
	{TEXT("group2rank", group2rank), .group = job, ADVANCED,
	 .help = "LIST  model parallelism by hand over a team of workers: a rank of the team for "
		 "each group of layers, such as embed=0,lstm0-3=0,lstm4-7=1,decode=1"},
	{INT("model-parallel-ranks", model_parallel_ranks), .initial = "1",
	 RANGE(1, CONF_MAX_STAGES), .group = job, ADVANCED,
	 .help = "N  model parallelism over teams of N workers, each of which has "
		 "--model-parallel devices"},
	{INT("micro-batches", micro_batches), .initial = "1", RANGE(1, 1e6), .group = job,
	 ADVANCED, .record = CONF_TOLD,
	 .help = "M  split a worker's batch into M parts that pass through the devices of a cut "
		 "network one after the other, so that all devices work at once"},
	{INT("time-block", time_block), .initial = "0", RANGE(0, TRAIN_LONGEST), .group = job,
	 ADVANCED, .record = CONF_TOLD,
	 .help = "STEPS  split the sequences of a batch into blocks of STEPS steps in the same "
		 "way, for LSTMs (0: whole sequences)"},
	{TEXT("work-load-list", work_load_list), .group = job, ADVANCED,
	 .help = "LIST  relative parts of a worker's batch for its devices, such as 3,1 (equal "
		 "parts)"},
	{TEXT("gpus", gpus), .group = job,
	 .help = "LIST  GPUs of each worker, such as 0,2; auto: the node's GPUs in turn"},
	{WORD("node-reduce", node_reduce), .initial = "auto", LIST(mu_conf_node_words),
	 .group = job, ADVANCED,
	 .help = "NAME  sum the gradients of a node's ranks in shared memory (shm; auto: if "
		 "/dev/shm has room), by messages to one rank of the node (mpi), or not before "
		 "they are sent (none); of its GPUs by NCCL (nccl; auto: if possible)"},
	{WORD("inter-node", inter_node), .initial = "auto", LIST(mu_conf_inter_node_words),
	 .group = job, ADVANCED,
	 .help = "NAME  dist_allreduce and dist_sharded with GPUs: sum by NCCL (nccl; auto: if "
		 "possible), or by MPI, through the host (mpi)"},
	{INT("bucket-bytes", bucket_bytes), .initial = "0", RANGE(0, 1e12), .group = job, ADVANCED,
	 .help = "N  size of the buckets in which gradients are sent (0: model / 16, from 64 KiB "
		 "to 4 MiB)"},
	{TEXT("gc-type", compression.type), .initial = "none",
	 .choices = "none|2bit|1bit|fp16|bf16|topk", .group = job, ADVANCED, .record = CONF_TOLD,
	 .help = "NAME  compress gradients between ranks; the residual is added to the next "
		 "gradients"},
	{REAL("gc-threshold", compression.threshold), RANGE(0, 1e30), .group = job, ADVANCED,
	 .record = CONF_TOLD,
	 .help = "X  threshold for a gradient, the sum over a worker's batch: 2bit sends X, -X or "
		 "0 (0.5); 1bit sends whether it is above X (0)"},
	{REAL("gc-ratio", compression.ratio), .initial = "0.01", RANGE(0, 1), .group = job,
	 ADVANCED, .record = CONF_TOLD,
	 .help = "X  fraction of the gradients that topk sends: the largest"},
	{INT("gc-pull", gc_pull), .initial = "0", RANGE(0, 1), .group = job, ADVANCED,
	 .record = CONF_TOLD, .help = "0|1  compress what workers pull, too"},

	{INT("priority", priority), .initial = "1", RANGE(0, 1), .group = job, ADVANCED,
	 .help = "0|1  servers of synchronous stores answer for the first layers first (1), or in "
		 "the order in which gradients arrive (0)"},
	{INT("cuda-graph", cuda_graph), .initial = "1", RANGE(0, 1), .group = job, ADVANCED,
	 .help = "0|1  on GPUs record a step as CUDA graphs once, and replay them, where its "
		 "layers allow it; not with --profile"},
	{INT("comm-thread", comm_thread), .initial = "0", RANGE(0, 1), .group = job, ADVANCED,
	 .help = "0|1  a thread in each worker makes progress on messages while the worker "
		 "computes; it needs a spare core"},
	{TEXT("interface", interface), .group = job, ADVANCED,
	 .help = "NAME  network interface for messages between nodes, such as eth1 "
		 "(DMLC_INTERFACE, else MPI's choice)"},
	{REAL("comm-timeout", limits.timeout), .initial = "300", RANGE(0, 1e9), .group = job,
	 ADVANCED,
	 .help = "S  end the job when a rank has waited S seconds for ranks that make no progress "
		 "(0: never)"},
	{REAL("setup-timeout", limits.setup), .initial = "3600", RANGE(0, 1e9), .group = job,
	 ADVANCED,
	 .help = "S  the same for ranks of other nodes while the job is set up: they may read "
		 "data, make a cache, or measure a slow link (0: never)"},
	{REAL("comm-warn", limits.warn), .initial = "30", RANGE(0, 1e9), .group = job, ADVANCED,
	 .help = "S  warn of such a wait every S seconds (0: never)"},

	{INT("batch-size", batch_size), .initial = "128", RANGE(1, 1e7), .group = rule,
	 .record = CONF_TOLD, .help = "N  samples per worker and step"},
	{INT("global-batch-size", global_batch_size), .initial = "0", RANGE(0, 1e9), .group = rule,
	 ADVANCED,
	 .help = "N  samples of an update over all workers (dist_async: of one step of all), "
		 "instead of --batch-size"},
	{INT("batch-per-device", batch_per_device), .initial = "0", RANGE(0, 1e7), .group = rule,
	 ADVANCED, .help = "N  samples per device and step, instead of --batch-size"},
	{INT("update-period", update_period), .initial = "1", RANGE(1, 1e6), .group = rule,
	 ADVANCED, .record = CONF_TOLD,
	 .help = "K  sum the gradients of K batches, then update once"},
	{INT("num-epochs", num_epochs), .initial = "100", RANGE(1, 1e9), .group = rule,
	 .help = "N  epochs to train, earlier runs included"},
	{TEXT("optimizer", optimizer), .initial = "sgd", .group = rule, .record = CONF_TRAINING,
	 .help = "NAME  sgd, nag, adam, adagrad, ftrl, signum, adadelta, rmsprop, lars, lamb, "
		 "dcasgd, test"},
	{REAL("lr", lr), .initial = "0.1", RANGE(0, 1e6), .group = rule, .record = CONF_TOLD,
	 .help = "X  learning rate; the default is the same for every optimiser (adam, lamb and "
		 "rmsprop need less)"},
	{WORD("lr-schedule", schedule.kind), LIST(mu_conf_schedule_words), .group = rule,
	 .record = CONF_TOLD,
	 .help = "NAME  how the learning rate changes (multifactor with --lr-step-epochs, else "
		 "constant)"},
	{REAL("lr-factor", schedule.factor), .initial = "0.1", RANGE(0, 1e6), .group = rule,
	 ADVANCED, .help = "X  factor of the learning rate at each epoch of --lr-step-epochs"},
	{TEXT("lr-step-epochs", schedule.step_epochs), .group = rule,
	 .help = "LIST  epochs at which the learning rate drops: 30,60; pow2: poly of power 2"},
	{REAL("lr-factor-epoch", schedule.factor_epoch), .initial = "1", RANGE(0, 1e9),
	 .group = rule, ADVANCED, .help = "X  epochs between drops of --lr-schedule factor"},
	{REAL("plateau-improvement", schedule.improvement), .initial = "1", RANGE(0, 1e6),
	 .group = rule, ADVANCED,
	 .help = "X  --lr-schedule plateau multiplies by --lr-factor when the validation "
		 "perplexity has not fallen by X"},
	{REAL("lr-power", schedule.power), .initial = "2", RANGE(0, 1000), .group = rule, ADVANCED,
	 .help = "X  power of --lr-schedule poly"},
	{REAL("final-lr", schedule.final_lr), RANGE(0, 1e6), .group = rule, ADVANCED,
	 .help = "X  learning rate at the end of poly and cosine (0); minimum of factor (1e-8)"},
	{REAL("warmup-epochs", schedule.warmup_epochs), .initial = "0", RANGE(0, 1e9),
	 .group = rule,
	 .help = "X  epochs at a lower learning rate, before the schedule"},
	{WORD("warmup-strategy", schedule.warmup_strategy), .initial = "linear",
	 LIST(mu_conf_warmup_words), .group = rule, ADVANCED,
	 .help = "NAME  learning rate of the warm-up: rises to --lr, or stays at "
		 "--warmup-begin-lr"},
	{REAL("warmup-begin-lr", schedule.warmup_begin_lr), .initial = "0", RANGE(0, 1e6),
	 .group = rule, ADVANCED, .help = "X  learning rate at the start of the warm-up"},
	{INT("lr-scale-with-workers", schedule.scale_with_workers), .initial = "0", RANGE(0, 1),
	 .group = rule, ADVANCED,
	 .help = "0|1  multiply --lr by the number of workers (synchronous stores)"},
	{REAL("mom", optim.mom), RANGE(0, 1), .group = rule, .record = CONF_TRAINING,
	 .help = "X  momentum of sgd, nag, signum, lars, dcasgd (0.9)"},
	{REAL("wd", optim.wd), .initial = "0.0001", RANGE(0, 1e6), .group = rule,
	 .record = CONF_TRAINING, .help = "X  weight decay"},
	{INT("wd-gamma", wd_gamma), .initial = "1", RANGE(0, 1), .group = rule, ADVANCED,
	 .help = "0|1  apply weight decay to the gammas of batch-norm, too, as MXNet does"},
	{TEXT("fixed", fixed), .group = rule, ADVANCED, .record = CONF_TOLD,
	 .help = "LIST  parameters and running statistics that do not change, by names with "
		 "wildcards: conv*,fc1_*"},
	{TEXT("lr-mult", lr_mult), .group = rule, ADVANCED, .record = CONF_TOLD,
	 .help = "LIST  factors of the learning rate of parameters: conv*=0.1,fc2_*=10; 0: as "
		 "--fixed"},
	{TEXT("wd-mult", wd_mult), .group = rule, ADVANCED, .record = CONF_TOLD,
	 .help = "LIST  factors of the weight decay of parameters (1 for names that end in _weight "
		 "or _gamma, else 0)"},
	{REAL("beta1", optim.beta1), RANGE(0, 1), .group = rule, ADVANCED,
	 .help = "X  adam, lamb: decay of the mean (0.9)"},
	{REAL("beta2", optim.beta2), RANGE(0, 1), .group = rule, ADVANCED,
	 .help = "X  adam, lamb: decay of the squares (0.999)"},
	{REAL("epsilon", optim.eps), RANGE(0, 1), .group = rule, ADVANCED,
	 .help = "X  added to a divisor: adam, rmsprop (1e-8), adagrad (1e-7), lamb (1e-6), "
		 "adadelta (1e-5), lars (0)"},
	{WORD("adam-decay", adam_decay), .initial = "l2", LIST(mu_conf_decay_words), .group = rule,
	 ADVANCED,
	 .help = "NAME  weight decay of adam: part of the gradient, or decoupled from it (AdamW)"},
	{REAL("rho", optim.rho), RANGE(0, 1), .group = rule, ADVANCED,
	 .help = "X  adadelta: decay of the squares (0.9)"},
	{REAL("gamma1", optim.gamma1), RANGE(0, 1), .group = rule, ADVANCED,
	 .help = "X  rmsprop: decay of the squares (0.9)"},
	{REAL("gamma2", optim.gamma2), RANGE(0, 1), .group = rule, ADVANCED,
	 .help = "X  rmsprop with --centered 1: momentum (0.9)"},
	{INT("centered", centered), .initial = "0", RANGE(0, 1), .group = rule, ADVANCED,
	 .help = "0|1  rmsprop divides by the variance of the gradients, not by their mean square"},
	{REAL("lamda1", optim.lamda1), RANGE(0, 1e6), .group = rule, ADVANCED,
	 .help = "X  ftrl: weight of the 1-norm (0.01)"},
	{REAL("beta", optim.beta), RANGE(0, 1e6), .group = rule, ADVANCED,
	 .help = "X  ftrl: divisor of the learning rate at the start (1)"},
	{REAL("wd-lh", optim.wd_lh), RANGE(0, 1e6), .group = rule, ADVANCED,
	 .help = "X  signum: weight decay that is not part of the momentum (0)"},
	{REAL("lars-eta", optim.lars_eta), RANGE(0, 1e6), .group = rule, ADVANCED,
	 .help = "X  lars: trust coefficient (0.001)"},
	{REAL("lower-bound", optim.lower_bound), RANGE(0, 1e30), .group = rule, ADVANCED,
	 .help = "X  lamb: least norm of a key's weights (0)"},
	{REAL("upper-bound", optim.upper_bound), RANGE(0, 1e30), .group = rule, ADVANCED,
	 .help = "X  lamb: greatest norm of a key's weights (0: no limit)"},
	{REAL("lamda", optim.lamda), RANGE(0, 1e6), .group = rule, ADVANCED,
	 .help = "X  dcasgd: strength of the compensation for delay (0.04)"},
	{REAL("clip-gradient", optim.clip_gradient), .initial = "0", RANGE(0, 1e30), .group = rule,
	 ADVANCED, .help = "X  clip each element of the mean gradient to +-X (0: no)"},
	{REAL("clip-global-norm", optim.clip_global_norm), .initial = "0", RANGE(0, 1e30),
	 .group = rule, ADVANCED,
	 .help = "X  scale the mean gradient so that its norm over all keys is at most X (0: no)"},
	{REAL("label-smoothing", label_smoothing), .initial = "0", RANGE(0, 1), .group = rule,
	 ADVANCED, .record = CONF_TOLD,
	 .help = "E  targets are 1 - E for the label plus E / classes for every class"},
	{TEXT("loss-scale", loss_scale), .group = rule, ADVANCED, .record = CONF_TOLD,
	 .help = "dynamic|dynamic:START|N|none  multiply the loss and divide the gradients by a "
		 "scale, so that float16 keeps small gradients (dynamic for float16, else none); "
		 "all workers skip a batch whose gradients overflow, which halves a dynamic "
		 "scale"},
	{INT("loss-scale-window", loss_scale_window), .initial = "2000", RANGE(1, WHOLE),
	 .group = rule, ADVANCED,
	 .help = "N  batches without overflow after which a dynamic --loss-scale doubles"},
	{REAL("target-accuracy", target_accuracy), .initial = "0", RANGE(0, 1), .group = rule,
	 .help = "X  stop when the validation accuracy reaches X (0: no)"},
	{INT("seed", seed), .initial = "0", RANGE(0, WHOLE), .group = rule,
	 .record = CONF_TRAINING, .help = "N  seed of all random numbers"},

	{TEXT("data-dir", data_dir), .group = data,
	 .help = "DIR  folder with the four IDX files of MNIST, plain or .gz, or with the binary "
		 "files of CIFAR-10 or CIFAR-100"},
	{TEXT("data-train", data_train), .group = data,
	 .help = "FILE  training images: a.rec, several as a.rec;b.rec, x.h5, or a folder with a "
		 "folder of images for each class"},
	{TEXT("data-val", data_val), .group = data,
	 .help = "FILE  validation images, as --data-train (without it: no validation)"},
	{TEXT("data-train-idx", data_train_idx), .group = data, ADVANCED,
	 .help = "FILE  index of the .rec file (the .idx file of the same name)"},
	{TEXT("data-val-idx", data_val_idx), .group = data, ADVANCED,
	 .help = "FILE  index of the .rec file for validation"},
	{WORD("text", text.unit), LIST(mu_conf_unit_words), .group = data, ADVANCED,
	 .help = "NAME  read --data-train as a text of words (the default for FILE.txt) or of "
		 "characters"},
	{TEXT("vocab", text.vocabulary), .group = data, ADVANCED,
	 .help = "FILE  vocabulary of the text, one word a line (made from the text and written to "
		 "P-vocab.txt)"},
	{TEXT("buckets", text.buckets), .initial = "8,16,24,32,60", .group = data, ADVANCED,
	 .record = CONF_TOLD,
	 .help = "LIST  lengths to which sentences are padded; longer sentences are skipped"},
	{TEXT("rgb-mean", rgb_mean), .group = data, ADVANCED,
	 .help = "R,G,B  subtracted from the pixels of colour images (" TRAIN_RGB_MEAN ")"},
	{TEXT("rgb-std", rgb_std), .group = data, ADVANCED,
	 .help = "R,G,B  divisors of the pixels after that (" TRAIN_RGB_STD ")"},
	{INT("num-examples", num_examples), .initial = "0", RANGE(0, WHOLE), .group = data,
	 .help = "N  train on the first N samples only (0: all)"},
	{WORD("shuffle", shuffle), .initial = "1", LIST(mu_conf_shuffle_words), .group = data,
	 ADVANCED, .record = CONF_TOLD,
	 .help = "0|1|chunk  a new permutation of all samples every epoch; chunk: of chunks of "
		 "samples, and of the samples within each"},
	{INT("shuffle-chunk", shuffle_chunk), .initial = "1024", RANGE(2, WHOLE), .group = data,
	 ADVANCED, .help = "N  samples in a chunk of --shuffle chunk"},
	{INT("benchmark", benchmark), .initial = "0", RANGE(0, 1), .group = data,
	 .help = "0|1  train on random data in memory, without validation"},
	{INT("num-batches", num_batches), .initial = "0", RANGE(0, WHOLE), .group = data,
	 .record = CONF_TOLD, .help = "N  stop every epoch after N steps (0: the whole epoch)"},
	{INT("test-io", test_io), .initial = "0", RANGE(0, 1), .group = data, ADVANCED,
	 .help = "0|1  only read the data, and report the speed"},
	{TEXT("dump-batch", dump_batch), .group = data, ADVANCED,
	 .help = "FILE.png  write the first batch of images into one picture, and stop"},
	{INT("data-nthreads", data_nthreads), .initial = "-1", RANGE(-1, 1024), .group = data,
	 ADVANCED,
	 .help = "N  threads of a worker that read and decode images (-1: 4, at most its cores; "
		 "0: the training thread)"},
	{INT("prefetch-buffer", prefetch_buffer), .initial = "4", RANGE(1, 1e6), .group = data,
	 ADVANCED, .help = "N  batches that these threads keep ready"},
	{WORD("data-cache", data_cache), .initial = "none", LIST(mu_conf_cache_words),
	 .group = data, ADVANCED,
	 .help = "NAME  node: keep the encoded images in memory that a node's ranks share; each "
		 "rank reads a part of the files once"},
	{INT("skip-bad-records", skip_bad_records), .initial = "0", RANGE(0, 1), .group = data,
	 ADVANCED,
	 .help = "0|1  skip images that cannot be decoded, with a warning"},

	{INT("exif-orientation", images.exif_orientation), .initial = "1", RANGE(0, 1),
	 .group = images, ADVANCED,
	 .help = "0|1  rotate JPEG images to their EXIF orientation, validation images too"},
	{INT("resize", images.resize), .initial = "0", RANGE(0, 1e5), .group = images,
	 .help = "N  scale the shorter edge of images to N pixels first (0: no)"},
	{INT("pad-size", images.pad), .initial = "0", RANGE(0, 1e5), .group = images,
	 .help = "N  pad training images by N pixels on each side"},
	{INT("fill-value", images.fill), .initial = "127", RANGE(0, 255), .group = images,
	 ADVANCED, .help = "N  value of pixels outside an image"},
	{INT("random-crop", images.random_crop), .initial = "-1", RANGE(-1, 1), .group = images,
	 ADVANCED,
	 .help = "0|1  crop at a random place, not in the middle (-1: by --data-aug-level)"},
	{INT("random-mirror", images.random_mirror), .initial = "-1", RANGE(-1, 1),
	 .group = images, ADVANCED,
	 .help = "0|1  mirror an image with probability 1/2 (-1: by --data-aug-level)"},
	{INT("data-aug-level", images.level), .initial = "1", RANGE(0, 3), .group = images,
	 ADVANCED,
	 .help = "N  0: none; 1: random crop and mirror; 2: also h, s, l by 36, 50, 50; 3: also "
		 "rotate, shear, aspect by 10, 0.1, 0.25"},
	{INT("use-imagenet-data-augmentation", images.imagenet), .initial = "0", RANGE(0, 1),
	 .group = images, ADVANCED,
	 .help = "0|1  crop a random area from 0.08 up and aspect ratio 3/4 to 4/3, mirror, colour "
		 "jitter of 0.4, PCA noise of 0.1"},
	{INT("random-resized-crop", images.random_resized_crop), .initial = "-1", RANGE(-1, 1),
	 .group = images, ADVANCED,
	 .help = "0|1  crop a random area and aspect ratio, and scale it to the shape"},
	{REAL("min-random-area", images.min_area), RANGE(0, 1), .group = images, ADVANCED,
	 .help = "X  least area of --random-resized-crop, as a fraction of the image (1)"},
	{REAL("max-random-area", images.max_area), RANGE(0, 1), .group = images, ADVANCED,
	 .help = "X  greatest area of --random-resized-crop (1)"},
	{REAL("min-random-aspect-ratio", images.min_aspect), RANGE(0, 1000), .group = images,
	 ADVANCED,
	 .help = "X  least width to height (without it ratios are from 1 - max to 1 + max)"},
	{REAL("max-random-aspect-ratio", images.max_aspect), RANGE(0, 1000), .group = images,
	 ADVANCED, .help = "X  greatest width to height (0: no change)"},
	{INT("min-crop-size", images.min_crop), .initial = "-1", RANGE(-1, 1e5), .group = images,
	 ADVANCED, .help = "N  least side of a square to crop and scale to the shape (-1: none)"},
	{INT("max-crop-size", images.max_crop), .initial = "-1", RANGE(-1, 1e5), .group = images,
	 ADVANCED, .help = "N  greatest side of the square"},
	{INT("max-random-rotate-angle", images.max_rotate_angle), .initial = "-1", RANGE(-1, 180),
	 .group = images, ADVANCED, .help = "N  rotate by up to N degrees, either way"},
	{REAL("max-random-shear-ratio", images.max_shear), RANGE(0, 100), .group = images,
	 ADVANCED, .help = "X  shear by up to X, either way"},
	{REAL("min-random-scale", images.min_scale), RANGE(0, 1000), .group = images, ADVANCED,
	 .help = "X  least scale of an image (1)"},
	{REAL("max-random-scale", images.max_scale), RANGE(0, 1000), .group = images, ADVANCED,
	 .help = "X  greatest scale of an image (1)"},
	{REAL("brightness", images.brightness), RANGE(0, 1), .group = images, ADVANCED,
	 .help = "X  multiply pixels by a factor from 1 - X to 1 + X"},
	{REAL("contrast", images.contrast), RANGE(0, 1), .group = images, ADVANCED,
	 .help = "X  the same for the difference from the image's mean grey"},
	{REAL("saturation", images.saturation), RANGE(0, 1), .group = images, ADVANCED,
	 .help = "X  the same for the difference from each pixel's grey"},
	{INT("max-random-h", images.max_h), .initial = "-1", RANGE(-1, 180), .group = images,
	 ADVANCED, .help = "N  add up to N to the hue (of 180), either way"},
	{INT("max-random-s", images.max_s), .initial = "-1", RANGE(-1, 255), .group = images,
	 ADVANCED, .help = "N  add up to N to the saturation (of 255), either way"},
	{INT("max-random-l", images.max_l), .initial = "-1", RANGE(-1, 255), .group = images,
	 ADVANCED, .help = "N  add up to N to the lightness (of 255), either way"},
	{REAL("pca-noise", images.pca_noise), RANGE(0, 100), .group = images, ADVANCED,
	 .help = "X  standard deviation of noise along the principal components of colour"},

	{INT("disp-batches", disp_batches), .initial = "20", RANGE(1, WHOLE), .group = logs,
	 .help = "N  log a line every N steps"},
	{INT("top-k", top_k), .initial = "0", RANGE(0, 1e6), .group = logs,
	 .help = "K  also report the accuracy within the K best classes"},
	{TEXT("loss", loss), .group = logs, ADVANCED,
	 .help = "LIST  also report these metrics: ce, nll, perplexity"},
	{TEXT("model-prefix", model_prefix), .group = logs,
	 .help = "P  write checkpoints P-0001.h5, P-0002.h5, ...; the folder is created"},
	{INT("save-period", save_period), .initial = "1", RANGE(1, WHOLE), .group = logs, ADVANCED,
	 .help = "N  write a checkpoint every N epochs"},
	{INT("save-steps", save_steps), .initial = "0", RANGE(0, WHOLE), .group = logs, ADVANCED,
	 .help = "N  also after every N steps of an epoch: P-0001-000250.h5 (0: no)"},
	{REAL("save-minutes", save_minutes), .initial = "0", RANGE(0, 1e6), .group = logs,
	 ADVANCED,
	 .help = "M  also M minutes after the last file; checked every --disp-batches (0: no)"},
	{INT("keep", keep), .initial = "0", RANGE(0, WHOLE), .group = logs, ADVANCED,
	 .help = "N  keep only the N newest files (0: all)"},
	{INT("save-async", save_async), .initial = "1", RANGE(0, 1), .group = logs, ADVANCED,
	 .help = "0|1  continue training while a file is written"},
	{INT("verify-steps", verify_steps), .initial = "0", RANGE(0, WHOLE), .group = logs,
	 ADVANCED,
	 .help = "K  compare a checksum of the weights over all workers every K steps, and end "
		 "with an error if they differ (0: never)"},
	{WORD("on-nan", on_nan), .initial = "stop", LIST(mu_conf_on_nan_words), .group = logs,
	 ADVANCED,
	 .help = "NAME  if the loss or a gradient of a batch is not finite: stop with an error, "
		 "skip the batch, or roll back to the newest checkpoint and skip the batches up "
		 "to this one"},
	{TEXT("halt-before", halt_before), .group = logs, ADVANCED,
	 .help = "TIME  stop with a checkpoint and exit status 85 TIME before the end of the Slurm "
		 "job: 90s, 5m, 1h"},
	{INT("load-epoch", load_epoch), .initial = "0", RANGE(0, 9999), .group = logs, ADVANCED,
	 .help = "K  resume from P-<K>.h5 (0: no)"},
	{TEXT("load", load), .group = logs,
	 .help = "FILE  start with the parameters of a checkpoint (or of arrays arg/, aux/)"},
	{FLAG("skip-mismatch", skip_mismatch), .group = logs, ADVANCED,
	 .help = "load the arrays of that file that match by name and shape; report the others"},
	{FLAG("evaluate", evaluate), .group = logs,
	 .help = "validate with the parameters of --load or --resume, and stop"},
	{INT("sample", text.sample), .initial = "0", RANGE(0, 1e6), .group = about, ADVANCED,
	 .help = "N  generate N characters or words of text with a trained network, and stop"},
	{TEXT("prime", text.prime), .group = about, ADVANCED,
	 .help = "TEXT  text that the generated text continues"},
	{TEXT("predict", predict), .group = logs, ADVANCED,
	 .help = "FILE  validate, and write the probabilities to a .h5 or .csv file"},
	{TEXT("resume", resume), .initial = "none", .group = logs,
	 .help = "auto|none|FILE  resume from P's newest complete checkpoint, or from FILE"},
	{TEXT("override", override), .group = logs, ADVANCED,
	 .help = "NAMES  settings that may differ from the file's, such as seed,data; or all"},
	{INT("verbose", verbose), .initial = "0", RANGE(0, 2), .group = logs, ADVANCED,
	 .help = "0|1|2  log connections, roles and placement (1), and every message (2) (0, or "
		 "PS_VERBOSE)"},
	{WORD("log-prefix", log_prefix), .initial = "node", LIST(mu_conf_prefix_words),
	 .group = logs, ADVANCED, .help = "node|none  start lines of the log with Node[0]"},
	{INT("log-time", log_time), .initial = "1", RANGE(0, 1), .group = logs, ADVANCED,
	 .help = "0|1  start lines of the log with date and time"},

	{WORD("progress", progress), .initial = "auto", LIST(mu_conf_progress_words),
	 .group = logs, ADVANCED,
	 .help = "auto|0|1  show the progress of an epoch in one line, instead of lines of speed "
		 "(auto: on a terminal)"},
	{TEXT("metrics-file", metrics_file), .group = logs, ADVANCED,
	 .help = "FILE  write the numbers of the log to a .jsonl or .csv file; a resumed run "
		 "appends"},
	{TEXT("tensorboard", tensorboard), .group = logs, ADVANCED,
	 .help = "DIR  write them as event files of TensorBoard"},
	{TEXT("timeline", timeline), .group = logs, ADVANCED,
	 .help = "FILE.json  write a trace of the first steps of all ranks, for Perfetto or "
		 "Chrome"},
	{INT("timeline-steps", timeline_steps), .initial = "100", RANGE(1, 1e6), .group = logs,
	 ADVANCED, .help = "N  steps of the timeline"},

	{FLAG("check", check), .group = about,
	 .help = "check the options, the data and the layout of the job, and stop"},
	{WORD("summary", summary), LIST(mu_conf_summary_words), .group = about,
	 .help = "[dot]  print the network's layers, or a graph for Graphviz, and stop"},
	{TEXT("profile", profile), .choices = "|", .group = about, ADVANCED,
	 .help = "[FILE]  after training or --evaluate, report the time of each layer and phase; "
		 "also to FILE, as CSV"},
	{FLAG("help", help), .group = about, .help = "print this text"},
	{FLAG("help-all", help_all), .group = about, .help = "print all options"},
	{FLAG("version", version), .group = about, .help = "print the version"},
	{FLAG("info", info), .group = about, .help = "print what this program was built with"},
};

const size_t mu_conf_n_options = sizeof mu_conf_options / sizeof *mu_conf_options;
