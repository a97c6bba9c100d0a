/* SPDX-License-Identifier: Apache-2.0 */
/* The words of options, by their values. */
#include "options.h"

#include <string.h>

#include <muster/metrics.h>

const char *const mu_conf_dtype_words[MU_DTYPE_N] = {
	[MU_FLOAT32] = "float32",
	[MU_FLOAT16] = "float16",
	[MU_BFLOAT16] = "bfloat16",
};

const char *const mu_conf_conv_words[CONF_CONV_N] = {
	[CONF_CONV_AUTO] = "auto",
	[CONF_CONV_DIRECT] = "direct",
	[CONF_CONV_WINOGRAD] = "winograd",
	[CONF_CONV_GEMM] = "gemm",
	[CONF_CONV_TUNE] = "tune",
};

const char *const mu_conf_attention_words[CONF_ATTENTION_N] = {
	[CONF_ATTENTION_PRODUCTS] = "products",
	[CONF_ATTENTION_FUSED] = "fused",
};

const char *const mu_conf_placement_words[CONF_PLACEMENT_N] = {
	[CONF_SPREAD] = "spread",
	[CONF_PACKED] = "packed",
	[CONF_COLOCATED] = "colocated",
};

const char *const mu_conf_node_words[MU_KV_NODE_NCCL + 1] = {
	[MU_KV_NODE_AUTO] = "auto", [MU_KV_NODE_SHM] = "shm",	[MU_KV_NODE_MPI] = "mpi",
	[MU_KV_NODE_NONE] = "none", [MU_KV_NODE_NCCL] = "nccl",
};

const char *const mu_conf_inter_node_words[CONF_INTER_NODE_N] = {
	[CONF_INTER_NODE_AUTO] = "auto",
	[CONF_INTER_NODE_NCCL] = "nccl",
	[CONF_INTER_NODE_MPI] = "mpi",
};

const char *const mu_conf_schedule_words[CONF_SCHEDULE_N] = {
	[CONF_SCHEDULE_CONSTANT] = "constant",
	[CONF_SCHEDULE_MULTIFACTOR] = "multifactor",
	[CONF_SCHEDULE_FACTOR] = "factor",
	[CONF_SCHEDULE_POLY] = "poly",
	[CONF_SCHEDULE_COSINE] = "cosine",
	[CONF_SCHEDULE_PLATEAU] = "plateau",
};

const char *const mu_conf_recompute_words[MU_RECOMPUTE_N] = {
	[MU_RECOMPUTE_AUTO] = "auto",
	[MU_RECOMPUTE_NONE] = "none",
	[MU_RECOMPUTE_ATTENTION] = "attention",
	[MU_RECOMPUTE_ALL] = "all",
};

const char *const mu_conf_warmup_words[CONF_WARMUP_N] = {
	[CONF_WARMUP_LINEAR] = "linear",
	[CONF_WARMUP_CONSTANT] = "constant",
};

const char *const mu_conf_decay_words[CONF_DECAY_N] = {
	[CONF_DECAY_L2] = "l2",
	[CONF_DECAY_DECOUPLED] = "decoupled",
};

const char *const mu_conf_unit_words[CONF_UNIT_N] = {
	[CONF_UNIT_WORDS] = "words",
	[CONF_UNIT_CHARACTERS] = "characters",
};

const char *const mu_conf_shuffle_words[CONF_SHUFFLE_N] = {
	[CONF_SHUFFLE_NO] = "0",
	[CONF_SHUFFLE_ALL] = "1",
	[CONF_SHUFFLE_CHUNK] = "chunk",
};

const char *const mu_conf_cache_words[CONF_CACHE_N] = {
	[CONF_CACHE_NONE] = "none",
	[CONF_CACHE_NODE] = "node",
};

const char *const mu_conf_on_nan_words[CONF_ON_NAN_N] = {
	[CONF_ON_NAN_STOP] = "stop",
	[CONF_ON_NAN_SKIP] = "skip",
	[CONF_ON_NAN_ROLLBACK] = "rollback",
};

const char *const mu_conf_on_error_words[CONF_ON_ERROR_N] = {
#define ON_ERROR(NAME, word) [CONF_ON_ERROR_##NAME] = word,
#include "on_error.def"
#undef ON_ERROR
};

const char *const mu_conf_prefix_words[CONF_PREFIX_N] = {
	[CONF_PREFIX_NODE] = "node",
	[CONF_PREFIX_NONE] = "none",
};

const char *const mu_conf_progress_words[CONF_PROGRESS_N] = {
	[CONF_PROGRESS_AUTO] = "auto",
	[CONF_PROGRESS_NO] = "0",
	[CONF_PROGRESS_YES] = "1",
};

const char *const mu_conf_log_words[CONF_LOG_N] = {
	[CONF_LOG_AUTO] = "auto",
	[CONF_LOG_MXNET] = "mxnet",
	[CONF_LOG_PLAIN] = "plain",
};

const char *const mu_conf_summary_words[CONF_SUMMARY_N] = {
	[CONF_SUMMARY_LAYERS] = "",
	[CONF_SUMMARY_DOT] = "dot",
};

/* Is there already such a word in the list? */
static bool has_word(const char *list, const char *word)
{
	const size_t n = strlen(word);

	for (; *list; list += strcspn(list, "|"), list += *list == '|')
		if (strcspn(list, "|") == n && strncmp(list, word, n) == 0)
			return true;
	return false;
}

static void add_word(char *list, size_t nbytes, const char *word)
{
	const size_t n = strlen(list);

	if (!has_word(list, word))
		snprintf(list + n, nbytes - n, "|%s", word);
}

const char *mu_conf_best_metrics(void)
{
	static char list[512] = "none";
	const struct mu_loss *loss;

	for (size_t i = 0; (loss = mu_loss_at(i)); i++)
		for (const struct mu_metric *m = loss->metrics; m->name; m++) {
			if (m->use & MU_METRIC_IS_LOSS)
				add_word(list, sizeof list, "loss");
			add_word(list, sizeof list, m->name);
		}
	return list;
}
