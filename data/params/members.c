/* SPDX-License-Identifier: Apache-2.0 */
/* The members of the families' config.json. */
#include "members.h"

#include <string.h>

#define SIZE_OF(member) .offset = offsetof(struct model_sizes, member)
#define NUMBER_OF(member) NULL, offsetof(struct model_config, member)
#define GELU_TANH "|\"gelu_new\"|\"gelu_pytorch_tanh\"|\"gelu_fast\"|"

static const struct member gpt2[] = {
	{"|model_type|", ONE_OF, "|\"gpt2\"|", 0},
	{"|architectures|", ONE_OF, "|[\"GPT2LMHeadModel\"]|[\"GPT2Model\"]|null|", 0},
	{"|n_embd|hidden_size|", SIZE, SIZE_OF(hidden)},
	{"|n_layer|num_hidden_layers|", SIZE, SIZE_OF(layers)},
	{"|n_positions|max_position_embeddings|", SIZE, SIZE_OF(positions)},
	{"|vocab_size|", SIZE, SIZE_OF(vocabulary)},
	{"|n_inner|", INNER, NULL, 0},
	{"|n_head|num_attention_heads|", NUMBER, NUMBER_OF(heads)},
	{"|activation_function|", ONE_OF, GELU_TANH, 0},
	{"|layer_norm_epsilon|", NUMBER, NUMBER_OF(eps)},
	{"|scale_attn_weights|", ONE_OF, "|true|", 0},
	{"|scale_attn_by_inverse_layer_idx|", ONE_OF, "|false|", 0},
	{"|reorder_and_upcast_attn|", ROUNDING, "|false|", 0},
	{"|tie_word_embeddings|", TIED, NULL, 0},
	{"|n_ctx|attn_pdrop|embd_pdrop|resid_pdrop|summary_activation|summary_first_dropout|"
	 "summary_proj_to_labels|summary_type|summary_use_proj|id2label.*|label2id.*|_num_labels|"
	 "num_labels|is_decoder|id2label|label2id|n_special|predict_special_tokens|output_past|",
	 HARMLESS, NULL, 0},
	{NULL, HARMLESS, NULL, 0},
};

/* What Llama has not, and models like it: biases, other positions, a window. */
static const struct member llama[] = {
	{"|model_type|", ONE_OF, "|\"llama\"|", 0},
	{"|architectures|", ONE_OF, "|[\"LlamaForCausalLM\"]|[\"LlamaModel\"]|null|", 0},
	{"|hidden_size|", SIZE, SIZE_OF(hidden)},
	{"|num_hidden_layers|", SIZE, SIZE_OF(layers)},
	{"|vocab_size|", SIZE, SIZE_OF(vocabulary)},
	{"|intermediate_size|", SIZE, SIZE_OF(inner)},
	{"|num_attention_heads|", NUMBER, NUMBER_OF(heads)},
	{"|num_key_value_heads|", NUMBER, NUMBER_OF(kv_heads)},
	{"|head_dim|", NUMBER, NUMBER_OF(head_dim)},
	{"|max_position_embeddings|", NUMBER, NUMBER_OF(positions)},
	{"|rms_norm_eps|", NUMBER, NUMBER_OF(eps)},
	{"|rope_theta|rope_parameters.rope_theta|", NUMBER, NUMBER_OF(theta)},
	{"|rope_parameters.rope_type|", ONE_OF, "|\"default\"|", 0},
	{"|rope_scaling|rope_scaling.*|", ONE_OF, "|null|", 0},
	{"|hidden_act|", ONE_OF, "|\"silu\"|", 0},
	{"|attention_bias|mlp_bias|", ONE_OF, "|false|", 0},
	{"|sliding_window|", ONE_OF, "|null|", 0},
	{"|pretraining_tp|", ONE_OF, "|1|", 0},
	{"|tie_word_embeddings|", TIED, NULL, 0},
	{"|attention_dropout|is_decoder|id2label.*|label2id.*|num_labels|_num_labels|id2label|"
	 "label2id|",
	 HARMLESS, NULL, 0},
	{NULL, HARMLESS, NULL, 0},
};

static const struct member vit[] = {
	{"|model_type|", ONE_OF, "|\"vit\"|", 0},
	{"|architectures|", ONE_OF, "|[\"ViTForImageClassification\"]|[\"ViTModel\"]|null|", 0},
	{"|hidden_size|", SIZE, SIZE_OF(hidden)},
	{"|num_hidden_layers|", SIZE, SIZE_OF(layers)},
	{"|num_channels|", SIZE, SIZE_OF(channels)},
	{"|num_labels|_num_labels|", SIZE, SIZE_OF(classes)},
	{"|id2label|label2id|", ONE_OF, "|{}|null|", 0},
	{"|intermediate_size|", INNER, NULL, 0},
	{"|num_attention_heads|", NUMBER, NUMBER_OF(heads)},
	{"|hidden_act|", ONE_OF, "|\"gelu\"|", 0},
	{"|layer_norm_eps|", NUMBER, NUMBER_OF(eps)},
	{"|qkv_bias|", ONE_OF, "|true|", 0},
	{"|image_size|", IMAGE, NULL, 0},
	{"|patch_size|", PATCH, NULL, 0},
	{"|is_decoder|", ONE_OF, "|false|", 0},
	{"|attention_probs_dropout_prob|hidden_dropout_prob|encoder_stride|id2label.*|label2id.*|"
	 "tie_word_embeddings|pooler_act|pooler_output_size|",
	 HARMLESS, NULL, 0},
	{NULL, HARMLESS, NULL, 0},
};

/* Of timm, whose resnet50 has torchvision's names, as have others that blur. */
static const struct member resnet[] = {
	{"|architecture|", ONE_OF,
	 "|\"resnet50\"|\"resnet101\"|\"resnet152\"|\"tv_resnet50\"|\"tv_resnet101\"|"
	 "\"tv_resnet152\"|",
	 0},
	{"|global_pool|", ONE_OF, "|\"avg\"|", 0},
	{"|pretrained_cfg.mean|", MEAN, NULL, 0},
	{"|pretrained_cfg.std|", STD, NULL, 0},
	{"|pretrained_cfg.interpolation|pretrained_cfg.crop_pct|pretrained_cfg.crop_mode|"
	 "pretrained_cfg.input_size|",
	 TOLD, NULL, 0},
	{"|num_classes|", SIZE, SIZE_OF(classes)},
	{"|model_args|", ONE_OF, "|{}|null|", 0},
	{"|num_features|pretrained_cfg.*|label_names|label_descriptions|label_descriptions.*|",
	 HARMLESS, NULL, 0},
	{NULL, HARMLESS, NULL, 0},
};

/* Members of every configuration of transformers. */
static const struct member common[] = {
	{"|is_encoder_decoder|torchscript|add_cross_attention|", ONE_OF, "|false|", 0},
	{"|pruned_heads|", ONE_OF, "|{}|null|", 0},
	{"|_name_or_path|name_or_path|_commit_hash|transformers_version|torch_dtype|dtype|license|"
	 "task_specific_params|task_specific_params.*|return_dict|return_dict_in_generate|"
	 "output_hidden_states|output_attentions|output_scores|use_cache|use_bfloat16|"
	 "tf_legacy_loss|use_return_dict|finetuning_task|problem_type|tokenizer_class|prefix|"
	 "initializer_range|initializer_factor|gradient_checkpointing|chunk_size_feed_forward|"
	 "cross_attention_hidden_size|tie_encoder_decoder|attn_implementation|"
	 "_attn_implementation|_attn_implementation_internal|_attn_implementation_autoset|",
	 HARMLESS, NULL, 0},
	{"|bos_token_id|eos_token_id|pad_token_id|sep_token_id|cls_token_id|unk_token_id|"
	 "decoder_start_token_id|forced_bos_token_id|forced_eos_token_id|suppress_tokens|"
	 "begin_suppress_tokens|bad_words_ids|max_length|min_length|max_new_tokens|do_sample|"
	 "early_stopping|num_beams|num_beam_groups|diversity_penalty|temperature|top_k|top_p|"
	 "typical_p|repetition_penalty|length_penalty|no_repeat_ngram_size|"
	 "encoder_no_repeat_ngram_size|num_return_sequences|remove_invalid_values|"
	 "exponential_decay_length_penalty|",
	 HARMLESS, NULL, 0},
	{NULL, HARMLESS, NULL, 0},
};

static const struct {
	const char *word;
	const struct member *rows;
} families[] = {{"gpt2", gpt2}, {"llama", llama}, {"vit", vit}, {"resnet", resnet}};

static const struct member *find(const struct member *rows, const char *name)
{
	for (; rows->names; rows++)
		if (model_is_one_of(rows->names, name))
			return rows;
	return NULL;
}

const struct member *model_member(const struct name_family *family, const char *name)
{
	const struct member *found = NULL;

	for (size_t i = 0; !found && i < sizeof families / sizeof *families; i++)
		if (strcmp(families[i].word, name_family_word(family)) == 0)
			found = find(families[i].rows, name);
	return found ? found : find(common, name);
}
