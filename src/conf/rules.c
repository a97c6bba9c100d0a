/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about several options, one row each. "a|b" is option a or option b. Facts (conf.facts)
 * follow from options and the number of ranks.
 */
#include "rules.h"

#include <stddef.h>

#define SAVES "save-every|save-period|save-steps|save-minutes|keep|save-async|overwrite"
#define ABOUT_IMAGES \
	"exif-orientation|resize|pad-size|fill-value|random-crop|random-mirror|data-aug-level|" \
	"use-imagenet-data-augmentation|random-resized-crop|min-random-area|max-random-area|" \
	"min-random-aspect-ratio|max-random-aspect-ratio|min-crop-size|max-crop-size|" \
	"max-random-rotate-angle|max-random-shear-ratio|min-random-scale|max-random-scale|" \
	"brightness|contrast|saturation|max-random-h|max-random-s|max-random-l|pca-noise"
#define OF_PICTURES "image-shape|rgb-mean|rgb-std|data-train-idx|data-val-idx|dump-batch|data-cache"
#define OF_IMAGES OF_PICTURES "|num-classes|skip-bad-records"
#define SPLITS \
	"group2dev|model-parallel|group2rank|model-parallel-ranks|micro-batches|time-block"
#define WATCHES "metrics-file|tensorboard|timeline|halt-before"
#define ONE_RANK \
	"that puts all layers on devices of one rank; --model-parallel-ranks N with " \
	"--model-parallel N cuts over the devices of several"
#define NOTHING "it is about training, and nothing is trained"

static const struct mu_option_fact facts[] = {
#define FACT(member, shown_) {#member, offsetof(struct conf, facts.member), shown_}
	FACT(of_text, "data-train"),
	FACT(of_arrays, "data-train"),
	FACT(text_or_sample, NULL),
	FACT(reads_sequences, "network"),
	FACT(of_values, "objective|network"),
	FACT(of_classes, NULL),
	FACT(sequences_or_sample, "network"),
	FACT(lacks_rate, "optimizer"),
	FACT(split, SPLITS),
	FACT(cut_devices, "model-parallel"),
	FACT(cut_several, "model-parallel"),
	FACT(cut_ranks, "model-parallel-ranks"),
	FACT(servers, "kv-store"),
	FACT(distributed, "kv-store"),
	FACT(synchronous, "kv-store"),
	FACT(lockstep, "kv-store"),
	FACT(one_by_one, "kv-store"),
	FACT(scaled_lockstep, "kv-store"),
	FACT(sharded, "kv-store"),
	FACT(scaled, "loss-scale"),
	FACT(sums_elsewhere, "kv-store"),
	FACT(peers, "kv-store"),
	FACT(team, "group2rank|model-parallel-ranks"),
	FACT(validation, NULL),
	FACT(evaluates, "predict|evaluate"),
	FACT(evaluates_files, "evaluate"),
	FACT(can_evaluate, NULL),
	FACT(parameters, NULL),
	FACT(goes_on, NULL),
	FACT(past_the_end, "num-epochs"),
	FACT(warmup_only, "num-epochs"),
	FACT(final_above, "lr"),
	FACT(warmup_above, "lr"),
	FACT(uneven_verify, "sync-period"),
	FACT(area_crop, NULL),
	FACT(dynamic_scale, NULL),
	FACT(no_best, "best-metric"),
};

static const struct mu_option_rule rules[] = {
	/* texts and images */
	{.option = "text|vocab", NEEDS = "text_or_sample",
	 .why = "it is for text: use --data-train FILE.txt"},
	{.option = "buckets", NEEDS = "sequences_or_sample",
	 .why = "it is for networks that read sequences"},
	{.option = "seq-len", IS(">0"), NEEDS = "sequences_or_sample",
	 .why = "it is for networks that read sequences"},
	{.option = "seq-len", IS(">0"), EXCLUDES = "buckets", .why = "both say how long they are"},
	{.option = OF_IMAGES "|" ABOUT_IMAGES, EXCLUDES = "of_text",
	 .why = "it is for images, and this file is read as text"},
	{.option = OF_PICTURES "|" ABOUT_IMAGES, EXCLUDES = "of_arrays",
	 .why = "it is for images, and these are arrays of numbers, taken as they are"},
	{.option = "label-train|label-val|label-columns", NEEDS = "of_arrays",
	 .why = "it is for arrays of numbers in .npy, .npz and .csv files"},
	{.option = "shuffle", IS("chunk"), EXCLUDES = "of_text",
	 .why = "it is for images, and this file is read as text"},
	{.option = "prime", NEEDS = "sample", BEING(">0"), .why = "it starts a generated text"},
	{.option = "temperature|sample-top-k|sample-top-p", NEEDS = "sample", BEING(">0"),
	 .why = "it is about generated text"},
	{.option = "sample", IS(">0"), NEEDS = "load|model-prefix", .why = "it needs parameters"},
	{.option = "sample", IS(">0"), EXCLUDES = "evaluate", .why = "use one of them"},
	{.option = "top-k", IS(">0"), EXCLUDES = "sample", BEING(">0"),
	 .why = "it is an accuracy; --sample-top-k draws from the K likeliest"},
	{.option = "sample", IS(">0"), NEEDS = "vocab|model-prefix", .why = "it needs a word list"},
	{.option = ABOUT_IMAGES "|rgb-mean|rgb-std", EXCLUDES = "benchmark", BEING("1"),
	 .why = "it is for images from files"},
	{.option = "use-imagenet-data-augmentation", IS("1"), EXCLUDES = "data-aug-level",
	 .why = "use one of them"},
	{.option = "min-random-area|max-random-area", NEEDS = "area_crop",
	 .why = "it needs --random-resized-crop 1: a crop of fixed size has no random area"},

	/* the log */
	{.option = "quiet", EXCLUDES = "log-format", BEING("mxnet"),
	 .why = "what is left has one form"},
	{.option = "quiet", EXCLUDES = "progress", BEING("1"), .why = "use one of them"},
	{.option = "quiet", EXCLUDES = "verbose", BEING(">0"), .why = "use one of them"},

	/* learning rate */
	{.option = "lr-step-epochs", NEEDS = "lr-schedule", BEING("multifactor")},
	{.option = "lr-factor", NEEDS = "lr-schedule", BEING("multifactor|factor|plateau")},
	{.option = "plateau-improvement", NEEDS = "lr-schedule", BEING("plateau")},
	{.option = "lr-factor-epoch", NEEDS = "lr-schedule", BEING("factor")},
	{.option = "lr-power", NEEDS = "lr-schedule", BEING("poly")},
	{.option = "final-lr", NEEDS = "lr-schedule", BEING("poly|cosine|factor")},
	{.option = "lr-schedule", IS("multifactor"), NEEDS = "lr-step-epochs", .why = "when?"},
	{.option = "lr-factor-epoch", IS("0"), .why = "more than 0 is needed"},
	{.option = "warmup-steps", IS(">0"), EXCLUDES = "warmup-epochs", BEING(">0"),
	 .why = "both say how long it is"},
	{.option = "warmup-strategy|warmup-begin-lr", NEEDS = "warmup-epochs|warmup-steps",
	 BEING(">0"),
	 .why = "how long?"},
	{.option = "warmup-strategy", IS("constant"), NEEDS = "warmup-begin-lr", BEING(">0"),
	 .why = "otherwise nothing is learnt in the warm-up"},
	{.option = "warmup-begin-lr", IS(">0"), EXCLUDES = "warmup_above", .why = "it is above"},
	{.option = "final-lr", IS(">0"), EXCLUDES = "final_above", .why = "it is above"},
	{.option = "warmup-epochs", IS(">0"), EXCLUDES = "warmup_only",
	 .why = "it leaves nothing for the schedule"},
	{.option = "lr-scale-with-workers", IS("1"), EXCLUDES = "lacks_rate",
	 .why = "it has no learning rate"},
	{.option = "lr-scale-with-workers", IS("1"), EXCLUDES = "sync-period", BEING(">1"),
	 .why = "an update uses one worker's batch there; --sync-period 1 sums the gradients of "
		"all workers"},
	{.option = "gamma2", IS("+"), NEEDS = "centered", BEING("1"),
	 .why = "plain rmsprop has no gamma2"},
	{.option = "lr-schedule", IS("plateau"), NEEDS = "validation",
	 .why = "it uses the perplexity of validation data: use --data-val or --val-split"},
	{.option = "target-accuracy", IS(">0"), NEEDS = "validation",
	 .why = "it needs validation data: use --data-val or --val-split, without --benchmark 1"},
	{.option = "early-stopping|max-val-samples", IS(">0"), NEEDS = "validation",
	 .why = "it needs validation data: use --data-val or --val-split, without --benchmark 1"},
	{.option = "validate-every", IS(">1"), NEEDS = "validation",
	 .why = "it needs validation data: use --data-val or --val-split, without --benchmark 1"},
	{.option = "validate-steps", IS(">0"), NEEDS = "validation",
	 .why = "it needs validation data: use --data-val or --val-split, without --benchmark 1"},
	{.option = "best-metric", IS("!none"), NEEDS = "validation",
	 .why = "it needs validation data: use --data-val or --val-split, without --benchmark 1"},
	{.option = "early-stopping", IS(">0"), EXCLUDES = "no_best",
	 .why = "better by which metric?"},
	{.option = "best-metric", IS("top-k"), NEEDS = "top-k", BEING(">0"), .why = "which K?"},
	{.option = "loss-scale-window", IS("+"), NEEDS = "dynamic_scale",
	 .why = "it needs --loss-scale dynamic: another scale never grows"},

	/* averages and compression */
	{.option = "block-momentum|block-lr|block-nesterov", NEEDS = "sync-period", BEING(">1"),
	 .why = "it is for averages of the workers' weights"},
	{.option = "block-momentum", IS("1"), .why = "it must be below 1"},
	{.option = "block-lr", IS("0"),
	 .why = "more than 0 is needed; otherwise nothing is learnt"},
	{.option = "block-nesterov", IS("1"), NEEDS = "block-momentum", BEING(">0")},
	{.option = "gc-threshold", IS("+"), NEEDS = "gc-type", BEING("2bit|1bit")},
	{.option = "gc-ratio", IS("+"), NEEDS = "gc-type", BEING("topk")},
	{.option = "gc-pull", IS("1"), NEEDS = "gc-type", BEING("!none"), .why = "compressed how?"},

	/* values */
	{.option = "batch-size", EXCLUDES = "global-batch-size|batch-per-device",
	 .why = "use one of them"},
	{.option = "global-batch-size", EXCLUDES = "batch-per-device", .why = "use one of them"},
	{.option = "num-classes", IS("1"), EXCLUDES = "of_classes",
	 .why = "at least 2 are needed, or 0 for the network's own number"},
	{.option = "label-smoothing|top-k", IS(">0"), EXCLUDES = "of_values",
	 .why = "its targets are values, not classes"},
	{.option = "label-smoothing", IS("1"), .why = "it must be below 1"},
	{.option = "top-k", IS("1"),
	 .why = "it is the accuracy, which is always reported: K must be at least 2"},
	{.option = "dtype-fallback", IS("1"), NEEDS = "dtype", BEING("bfloat16|float16")},
	{.option = "allow-tf32", IS("1"), EXCLUDES = "dtype", BEING("bfloat16|float16"),
	 .why = "it is for products of float32"},
	{.option = "conv-algo", IS("tune"), NEEDS = "conv-table", .why = "the file to write"},
	{.option = "conv-table", EXCLUDES = "conv-algo", BEING("direct|winograd|gemm"),
	 .why = "the table names an algorithm for each convolution"},

	/* devices and teams */
	{.option = "gpus", IS("!none|"), EXCLUDES = "devices", .why = "use one of them"},
	{.option = "group2dev", EXCLUDES = "cut_devices", .why = "use one of them"},
	{.option = "group2rank", EXCLUDES = "cut_ranks", .why = "use one of them"},
	{.option = "group2rank", EXCLUDES = "group2dev", .why = ONE_RANK},
	{.option = "cut_ranks", EXCLUDES = "group2dev", .why = ONE_RANK},
	{.option = "group2rank", EXCLUDES = "cut_several",
	 .why = "each rank of it has one device; --model-parallel-ranks N with --model-parallel "
		"cuts over several"},
	{.option = "time-block", IS(">0"), EXCLUDES = "predict",
	 .why = "it predicts whole sequences; weights and losses are the same without blocks"},
	{.option = "time-block", IS(">0"), EXCLUDES = "micro-batches", BEING(">1"),
	 .why = "use one of them: they cut a batch by steps or by samples"},
	{.option = "work-load-list", IS("+"), EXCLUDES = "split",
	 .why = "it divides samples among devices; here each device has layers, and all samples"},
	{.option = "profile", EXCLUDES = "split",
	 .why = "it is for devices that compute one layer at a time"},

	/* data */
	{.option = "data-val", NEEDS = "data-train|evaluate"},
	{.option = "val-split", IS(">0"), NEEDS = "data-train"},
	{.option = "val-split", IS(">0"), EXCLUDES = "data-val", .why = "use one of them"},
	{.option = "val-split", IS(">0"), EXCLUDES = "predict", .why = "all records are predicted"},
	{.option = "val-split", IS(">0"), EXCLUDES = "of_text",
	 .why = "a text is one piece: give --data-val another"},
	{.option = "data-train-idx", NEEDS = "data-train"},
	{.option = "data-val-idx", NEEDS = "data-val"},
	{.option = "label-train", NEEDS = "data-train"},
	{.option = "label-val", NEEDS = "data-val"},
	{.option = "benchmark", IS("1"), EXCLUDES = "data-dir|data-train|data-val",
	 .why = "random data or files?"},
	{.option = "data-dir", EXCLUDES = "data-train|data-val", .why = "use one of them"},
	{.option = "shuffle-chunk", IS("+"), NEEDS = "shuffle", BEING("chunk")},

	/* files */
	{.option = SAVES, NEEDS = "model-prefix", .why = "which files?"},
	{.option = "resume", IS("auto"), NEEDS = "model-prefix", .why = "which files?"},
	{.option = "load-epoch", IS(">0"), NEEDS = "model-prefix", .why = "which files?"},
	{.option = "load-epoch", IS(">0"), EXCLUDES = "past_the_end", .why = "it is past the end"},
	{.option = "resume", IS("!none"), EXCLUDES = "load-epoch", BEING(">0"),
	 .why = "use one of them"},
	{.option = "overwrite", IS("1"), EXCLUDES = "resume", BEING("!none"),
	 .why = "begin anew, or continue a run?"},
	{.option = "overwrite", IS("1"), EXCLUDES = "load-epoch", BEING(">0"),
	 .why = "begin anew, or continue a run?"},
	{.option = "override", NEEDS = "goes_on", .why = "it needs --resume"},
	{.option = "skip-mismatch", NEEDS = "load", .why = "it is about the file of --load"},
	{.option = "skip-mismatch", EXCLUDES = "sample", BEING(">0"),
	 .why = "all parameters are needed"},
	{.option = "load", EXCLUDES = "load-epoch", BEING(">0"),
	 .why = "start with these parameters, or resume from that epoch?"},
	{.option = "load", EXCLUDES = "resume", BEING("!none|auto"),
	 .why = "start with these parameters, or resume that run?"},
	{.option = "on-nan", IS("rollback"), NEEDS = "model-prefix",
	 .why = "it rolls back to a checkpoint; --on-nan skip needs none"},
	{.option = "on-error", IS("reload"), NEEDS = "model-prefix",
	 .why = "it goes back to a checkpoint"},
	{.option = "evaluates", NEEDS = "parameters",
	 .why = "it needs parameters: use --load FILE or --resume"},
	{.option = "evaluates", NEEDS = "can_evaluate",
	 .why = "it needs validation data: use --data-val or --data-dir"},
	{.option = WATCHES "|profile", EXCLUDES = "test-io", BEING("1"), .why = NOTHING},
	{.option = WATCHES "|profile", EXCLUDES = "dump-batch", .why = NOTHING},
	{.option = WATCHES "|profile", EXCLUDES = "conv-algo", BEING("tune"), .why = NOTHING},
	{.option = WATCHES, EXCLUDES = "evaluate", .why = NOTHING},
	{.option = "num-batches", IS(">0"), EXCLUDES = "evaluates_files", .why = NOTHING},
	{.option = "timeline-steps", IS("+"), NEEDS = "timeline", .why = "steps of what?"},
};

/* Rules about the store, once the number of ranks is known. */
static const struct mu_option_rule job_rules[] = {
	{.option = "num-servers", IS(">0"), EXCLUDES = "server-placement", BEING("colocated"),
	 .why = "every worker is also a server"},
	{.option = "server-placement", IS("colocated"), EXCLUDES = "one_by_one",
	 .why = "a worker cannot answer pushes while it computes; it is for dist_sync"},
	{.option = "server-placement", IS("packed"), NEEDS = "servers", .why = "it has no servers"},
	{.option = "num-servers", IS(">0"), NEEDS = "servers", .why = "it has no servers"},
	{.option = "num-servers", IS("0"), EXCLUDES = "servers",
	 .why = "it needs at least one server"},
	{.option = "lr-scale-with-workers", IS("1"), NEEDS = "synchronous",
	 .why = "each push of one worker is an update there; it is for the synchronous stores"},
	{.option = "priority", IS("0"), NEEDS = "lockstep",
	 .why = "it sets the order in which dist_sync, dist_sharded and dist_allreduce answer"},
	{.option = "node-reduce", IS("!auto"), NEEDS = "distributed",
	 .why = "no gradients pass between ranks by MPI or in shared memory"},
	{.option = "max-staleness", IS(">-1"), EXCLUDES = "synchronous",
	 .why = "all workers do the same steps there; it is for dist_async and dist_device_async"},
	{.option = "validate-steps", IS(">0"), NEEDS = "synchronous",
	 .why = "its workers are at different steps; it is for the synchronous stores"},
	{.option = "validate-steps", IS(">0"), EXCLUDES = "profile",
	 .why = "its table is of the time of training alone"},
	{.option = "validate-steps", IS(">0"), EXCLUDES = "sync-period", BEING(">1"),
	 .why = "workers have weights of their own inside an epoch"},
	{.option = "verify-steps", IS(">0"), NEEDS = "synchronous",
	 .why = "its workers always hold different weights; it is for the synchronous stores"},
	{.option = "verify-steps", IS(">0"), EXCLUDES = "uneven_verify",
	 .why = "workers hold the same weights only after each average; a multiple of it is "
		"needed"},
	{.option = "sync-period", IS(">1"), NEEDS = "lockstep",
	 .why = "averaging is for dist_sync, dist_device_sync, dist_sharded and dist_allreduce"},
	{.option = "gc-type", IS("!none"), NEEDS = "distributed",
	 .why = "no gradients pass between ranks by MPI; it is for dist_sync, dist_async, "
		"dist_sharded and dist_allreduce"},
	{.option = "gc-type", IS("!none"), EXCLUDES = "scaled_lockstep",
	 .why = "the residual of compression would be lost when a loss scale skips a batch; use "
		"--loss-scale none or --gc-type none"},
	{.option = "on-nan", IS("rollback"), NEEDS = "synchronous",
	 .why = "its workers are at different steps and cannot roll back together; --on-nan skip "
		"skips the batch"},
	{.option = "on-error", IS("reload"), NEEDS = "synchronous",
	 .why = "its workers are at different steps and cannot go back together"},
	{.option = "comm-thread", IS("1"), NEEDS = "distributed",
	 .why = "there are no messages between ranks"},

	{.option = "node-reduce", IS("nccl"), EXCLUDES = "sums_elsewhere",
	 .why = "it is for dist_sync, dist_async, dist_device_sync, dist_device_async and "
		"dist_sharded; dist_allreduce with GPUs uses NCCL without it"},
	{.option = "inter-node", IS("!auto"), NEEDS = "peers",
	 .why = "it is for dist_allreduce and dist_sharded"},
	{.option = "node-reduce", IS("nccl"), EXCLUDES = "inter-node", BEING("nccl"),
	 .why = "that sums over all nodes at once: use one of them"},

	{.option = "shard-gradients", IS("1"), NEEDS = "sharded",
	 .why = "only the workers of dist_sharded sum and update a part of the model each"},
	{.option = "shard-gradients", IS("1"), EXCLUDES = "split",
	 .why = "the gradients of a micro-batch are added to the gradients of earlier ones, which "
		"must all be there"},
	{.option = "shard-gradients", IS("1"), EXCLUDES = "update-period", BEING(">1"),
	 .why = "it adds whole arrays of gradients"},
	{.option = "shard-gradients", IS("1"), EXCLUDES = "sync-period", BEING(">1"),
	 .why = "a worker updates all of its weights there, by its own gradients"},
	{.option = "shard-gradients", IS("1"), EXCLUDES = "gc-type", BEING("!none"),
	 .why = "a worker keeps the residuals of all gradients"},
	{.option = "shard-gradients", IS("1"), EXCLUDES = "on-nan", BEING("skip|rollback"),
	 .why = "all gradients of a batch are looked at before one is pushed; --on-nan stop does "
		"not need them"},
	{.option = "shard-gradients", IS("1"), EXCLUDES = "scaled",
	 .why = "all gradients of a batch must be finite before one is pushed; bfloat16 needs no "
		"loss scale"},

	/* teams */
	{.option = "team", NEEDS = "synchronous",
	 .why = "a team's ranks make one update together, and there each push is an update; it "
		"is for the synchronous stores"},
	{.option = "team", EXCLUDES = "sync-period", BEING(">1"),
	 .why = "a worker that updates its own weights needs the gradients of all layers, and "
		"each rank of a team has only some"},
	{.option = "team", EXCLUDES = "gc-type", BEING("1bit"),
	 .why = "it cannot code the zeros of layers that other ranks have; the other types can"},
	{.option = "team", EXCLUDES = "on-nan", BEING("skip|rollback"),
	 .why = "only one rank of a team has the loss, so the others could not skip the batch; "
		"use --on-nan stop"},
	{.option = "team", EXCLUDES = "on-error", BEING("reload"),
	 .why = "after an error of one rank the others of its team could not end the step"},
	{.option = "team", EXCLUDES = "comm-thread", BEING("1"),
	 .why = "the training thread exchanges the messages within a team"},
	{.option = "team", EXCLUDES = "predict",
	 .why = "only one rank of a team has the probabilities; predict without a team, from the "
		"same checkpoint"},
};

#define N(table) (sizeof table / sizeof *table)

const struct mu_option_rules mu_conf_rules = {
	.facts = facts, .n_facts = N(facts), .of = rules, .n = N(rules)};
const struct mu_option_rules mu_conf_job_rules = {
	.facts = facts, .n_facts = N(facts), .of = job_rules, .n = N(job_rules)};
