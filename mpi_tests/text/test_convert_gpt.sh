#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# muconvert: what a GPT-2 or a Llama in safetensors is: its configuration, its tokenizer, arrays that are missing or
# that have other names.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/safetensors.sh
. "$SRCDIR/mpi_tests/lib/safetensors.sh"
log=tool.log
numbers='\0\0\200\77\0\0\0\300' # 1, -2

needs_files

convert() {
	rm -f "$2"
	"$BUILDDIR/muconvert" "$1" "$2" >"$log" 2>&1
	status=$?
}

part "what the model is"
# summary OPTION...: of the network that m.h5 says it is
summary() {
	"$TRAINER" --summary --load m.h5 "$@" >"$log" 2>&1
	expect '^gpt2, input \(1, 5, 1\), '
	expect '^parameters 1856 in 28 arrays'
}
mkdir -p model
at=0 header=''
# add NAME SHAPE N
add() {
	header+=${header:+,}$(entry "$1" F32 "$2" $at $((at + 4 * $3)))
	at=$((at + 4 * $3))
}
# gpt2 PREFIX SKIPPED: writes the model without this array
gpt2() {
	local part array shape n
	at=0 header=''
	for part in wte.weight:7x8:56 wpe.weight:5x8:40 ln_f.weight:8:8 ln_f.bias:8:8 \
		h.{0,1}.ln_{1,2}.{weight,bias}:8:8 h.{0,1}.attn.c_attn.{weight:8x24:192,bias:24:24} \
		h.{0,1}.attn.c_proj.{weight:8x8:64,bias:8:8} h.{0,1}.mlp.c_fc.{weight:8x32:256,bias:32:32} \
		h.{0,1}.mlp.c_proj.{weight:32x8:256,bias:8:8}; do
		IFS=: read -r array shape n <<<"$part"
		case $array in
		$2) ;;
		*) add "$1$array" "${shape/x/,}" "$n" ;;
		esac
	done
	st model/model.safetensors "{$header}" "$(printf '\\0%.0s' $(seq $at))"
	convert model m.h5
}
gpt2 '' h.1.mlp.c_fc.bias
[ $status = 0 ] || fail "exit status $status: $(cat "$log")"
expect '^muconvert: model: a part of a model: array "h.1.mlp.c_fc.bias" is missing, and maybe others$'
# refuse_gpt2 REGEX PREFIX SKIPPED
refuse_gpt2() {
	gpt2 "$2" "$3"
	[ $status = 1 ] || fail "exit status $status of prefix $2 without $3"
	expect "error: model: $1"
	[ ! -e m.h5 ] || fail "a file is left of prefix $2 without $3"
}
refuse_gpt2 'array "module.transformer.h.0.attn.c_attn.weight" has "module." before its name: .*--names plain keeps' \
	module.transformer. none
echo '{"n_head": 4, "model_type": "gpt2"}' >model/config.json
refuse_gpt2 'array "module.wte.weight" has "module." before its name' module. none
refuse_gpt2 'array "net.core.transformer.wte.weight" has "net.core." before' net.core.transformer. none
refuse_gpt2 'array "wpe.weight" is missing, which models of type "gpt2" have' transformer. wpe.weight
refuse_gpt2 'array "h.1.mlp.c_fc.bias" is missing, which' '' h.1.mlp.c_fc.bias
refuse_gpt2 'array "h.0.ln_1.weight" is missing, which' '' 'h.0.*'
refuse_gpt2 'array "h.0.attn.c_attn.weight" is missing, which' '' 'h.?.attn.c_attn.weight'
st model/model.safetensors "{$(entry x F32 2 0 8)}" "$numbers"
convert model m.h5
[ $status = 1 ] || fail "exit status $status of no array of the type"
expect 'error: model: its config.json has model type "gpt2", and none of its arrays has a name .*\(the first is "x"\)'
echo '{}' >model/adapter_config.json
gpt2 '' none
[ $status = 1 ] || fail "exit status $status of an adapter"
expect 'error: model/adapter_config.json: an adapter \(LoRA\) lies here'
rm model/*.json
# tokens ID: a tokenizer whose last token has this number
tokens() {
	printf '{"added_tokens": [], "decoder": {"type": "ByteLevel"},
		"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
		"model": {"type": "%s", "vocab": {"a": 0, "b": 1, "ab": %d}, "merges": ["a b"]}}' \
		"${2-BPE}" "$1" >model/tokenizer.json
	gpt2 '' none
}
tokens 6
[ $status = 0 ] || fail "exit status $status: $(cat "$log")"
rm -f other/tokenizer.json
mkdir -p other
convert m.h5 other/model.safetensors
grep -q '"ab": 6' other/tokenizer.json || fail "no tokenizer: $(cat "$log")"
rm other/*
tokens 7
[ $status = 1 ] || fail "exit status $status of a tokenizer with more tokens"
expect 'error: model: its tokenizer.json has 8 tokens, and its arrays have a vocabulary of 7'
tokens 6 Unigram
[ $status = 0 ] || fail "exit status $status: $(cat "$log")"
expect 'model: its tokenizer.json is not kept, and tokens of another tokenizer are not noticed: .*Unigram'
rm model/tokenizer.json
gpt2 '' none
expect '^muconvert: model: no config.json beside it tells how many heads of attention'
"$TRAINER" --summary --load m.h5 >"$log" 2>&1 && fail "heads are guessed"
expect 'error: m.h5 does not say num-heads of its model, and no array does: --num-heads N is needed$'
summary --num-heads 4
echo '{"n_head": 4, "activation_function": "gelu_new"}' >model/config.json
convert model m.h5
expect_none 'config.json'
summary
"$TRAINER" --summary --load m.h5 --num-heads 2 >"$log" 2>&1 && fail "other heads than config.json's"
echo '{"n_head": 4, "activation_function": "relu"}' >model/config.json
convert model m.h5
[ $status = 1 ] || fail "exit status $status of another activation"
expect 'error: model: its config.json has "activation_function": "relu", .* "gelu_new",.* alone; --names plain'
echo '{"n_head": ' >model/config.json
convert model m.h5
expect 'error: model: model/config.json, line 2, column 1: is no JSON: a value is missing'

# config MEMBERS: converts the model with them beside its heads
config() {
	echo "{\"n_head\": 4, \"layer_norm_epsilon\": 1e-5${1:+, $1}}" >model/config.json
	convert model m.h5
}
config '"vocab_size": 7, "n_embd": 8, "n_positions": 5, "n_layer": 2, "n_inner": null, "scale_attn_weights": true,
	"task_specific_params": {"a": {"b": 1}}, "n_special": 0, "predict_special_tokens": true,
	"output_past": true, "id2label": {}, "label2id": {}, "add_cross_attention": false,
	"architectures": ["GPT2LMHeadModel"], "resid_pdrop": 0.3, "model_type": "gpt2"'
[ $status = 0 ] || fail "a usual configuration: $(cat "$log")"
[ "$(wc -l <"$log")" = 1 ] || fail "more than one line: $(cat "$log")"
for wrong in '"scale_attn_weights": false' '"scale_attn_by_inverse_layer_idx": true' '"model_type": "llama"' \
	'"n_inner": 30' '"n_embd": 16' '"vocab_size": 8' '"n_positions": 6' '"n_layer": 3' \
	'"add_cross_attention": true' \
	'"architectures": ["GPT2LMHeadCustomModel"]' '"auto_map": {"AutoModel": "x.Y"}' '"pruned_heads": {"1": [0]}' \
	'"num_attention_heads": 2' '"rotary": true' '"tie_word_embeddings": false' '"is_encoder_decoder": true'; do
	config "$wrong"
	[ $status = 1 ] || fail "exit status $status with $wrong"
	name=${wrong#\"}
	expect "^muconvert: error: model: .*${name%%\"*}"
	[ ! -e m.h5 ] || fail "a file is left of $wrong"
done
config '"n_layer": 2, "n_layer": 2'
expect 'error: model: model/config.json, line 1: has two members "n_layer"'
config '"reorder_and_upcast_attn": true'
expect '"reorder_and_upcast_attn": true, which changes the rounding alone'
echo '{"num_attention_heads": 2, "layer_norm_epsilon": 0.25}' >model/config.json
convert model m.h5
expect '^muconvert: model: config.json: layer-norm-eps 0.25, which trainer --load takes$'
"$TRAINER" --evaluate --load m.h5 --benchmark 1 --num-batches 1 --batch-size 2 --seq-len 5 \
	--log-prefix none --log-time 0 >"$log" 2>&1
expect '^options from m.h5: .*num-heads 2, layer-norm-eps 0.25, '
for wrong in '"n_head": 0' '"layer_norm_epsilon": 0'; do
	echo "{$wrong}" >model/config.json
	convert model m.h5
	[ $status = 1 ] || fail "exit status $status with $wrong"
	expect "error: model: its config.json has $wrong, which is no such number"
done
echo '{"n_head": null}' >model/config.json
convert model m.h5
expect 'no config.json beside it tells how many heads'
mkdir -p other
st other/model.safetensors "{$(entry model.layers.0.q.weight F32 2 0 8)}" "$numbers"
convert other m.h5
expect '^muconvert: other: no network of .* has arrays of these names: m.h5 holds plain arrays$'
deep=$(for _ in {1..6}; do printf '%0200d/' 0; done)
mkdir -p "$deep"
convert other "${deep}m.h5"
expect 'm.h5 holds plain arrays$' # of a long path nothing is cut off
rm -r "${deep%%/*}"
printf '{"model_type": "a\\u001b[2J\\nx: error: forged"}' >other/config.json
convert other m.h5
expect '^muconvert: other: config.json has model type "a\\x1b\[2J\\x0ax: error\\x3a forged": no network'
echo '{"model_type": "bert"}' >other/config.json
convert other m.h5
expect '^muconvert: other: config.json has model type "bert": no network .* computes it, and m.h5 holds plain arrays$'

part "a Llama"
# llama SKIPPED [HEAD]: 2 blocks of 8, 4 heads and 2 of keys of 2 channels; every number of a q_proj is 1, of a k_proj
# 2, of a v_proj 3, of others 0.5
llama() {
	local part array shape n number data=''
	at=0 header=''
	for part in model.embed_tokens.weight:7x8:56 model.norm.weight:8:8 \
		model.layers.{0,1}.{input,post_attention}_layernorm.weight:8:8 \
		model.layers.{0,1}.self_attn.{q_proj.weight:8x8:64,{k,v}_proj.weight:4x8:32,o_proj.weight:8x8:64} \
		model.layers.{0,1}.mlp.{{gate,up}_proj.weight:12x8:96,down_proj.weight:8x12:96} ${2-}; do
		IFS=: read -r array shape n <<<"$part"
		case $array in
		$1) continue ;;
		*q_proj*) number='\0\0\200\77' ;;
		*k_proj*) number='\0\0\0\100' ;;
		*v_proj*) number='\0\0\100\100' ;;
		*) number='\0\0\0\77' ;;
		esac
		add "$array" "${shape/x/,}" "$n"
		data+=$(printf "${number//\\/\\\\}%.0s" $(seq "$n"))
	done
	st model/model.safetensors "{$header}" "$data"
	convert model m.h5
}
head=lm_head.weight:7x8:56
heads='"num_attention_heads": 4, "num_key_value_heads": 2'
rm -f model/*.json
# is_llama PARAMETERS ARRAYS OPTION...
is_llama() {
	[ $status = 0 ] || fail "exit status $status: $(cat "$log")"
	"$TRAINER" --summary --load m.h5 "${@:3}" >"$log" 2>&1
	expect "^parameters $1 in $2 arrays"
}
llama none
expect '^muconvert: model: no config.json .* give trainer --num-heads and --num-kv-heads$'
"$TRAINER" --summary --load m.h5 >"$log" 2>&1
expect 'error: m.h5 does not say num-heads of its model, and no array does: --num-heads N is needed$'
"$TRAINER" --summary --load m.h5 --num-heads 4 >"$log" 2>&1
expect 'error: m.h5 does not say num-kv-heads of its model, and no array does: --num-kv-heads N is needed$'
convert model m.h5
is_llama 1056 16 --num-heads 4 --num-kv-heads 2
rm m.h5
"$BUILDDIR/muconvert" model m.h5 >"$log"
"$BUILDDIR/muconvert" m.h5 back.safetensors >"$log" 2>&1 && fail "queries are told from keys without heads"
expect 'error: m.h5: does not say how many heads .*--names plain'

# config MEMBERS: converts the model with them
config() {
	echo "{\"model_type\": \"llama\", $heads, \"tie_word_embeddings\": ${tied-true}${1:+, $1}}" >model/config.json
	convert model m.h5
}
config '"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "vocab_size": 7, "hidden_act": "silu",
	"max_position_embeddings": 64, "rope_theta": 10000.0, "rope_scaling": null, "attention_bias": false,
	"mlp_bias": false, "rms_norm_eps": 1e-5, "pretraining_tp": 1, "attention_dropout": 0.0, "head_dim": 2,
	"architectures": ["LlamaForCausalLM"], "initializer_range": 0.02, "use_cache": true, "bos_token_id": 1'
[ "$(wc -l <"$log")" = 1 ] || fail "more than one line: $(cat "$log")"
is_llama 1056 16
config '"rms_norm_eps": 0.25, "rope_theta": 500000'
expect '^muconvert: model: config.json: rope-theta 500000, which trainer --load takes$'
"$TRAINER" --evaluate --load m.h5 --benchmark 1 --num-batches 1 --batch-size 2 --seq-len 5 \
	--log-prefix none --log-time 0 >"$log" 2>&1
expect '^options from m.h5: network llama, .*num-heads 4, num-kv-heads 2, head-dim 2, intermediate-size 12, num-pos'
expect '^options from m.h5: .*num-positions 2048, rope-theta 500000, rms-norm-eps 0.25, tie-weights 1, num-classes 7'
# The rows of a block's product are queries, keys, values.
"$BUILDDIR/muconvert" --names plain m.h5 plain.safetensors >"$log"
begin=$(head -c 4000 plain.safetensors | grep -ao '"arg/h1_qkv_weight":[^}]*' | sed 's/.*offsets": *\[\([0-9]*\).*/\1/')
begin=$((begin + 8 + $(od -An -tu8 -N8 plain.safetensors)))
rows=$(od -An -v -tf4 -w32 -j "$begin" -N 512 plain.safetensors | awk '{ printf "%g", $1 }')
[ "$rows" = 1111111122223333 ] || fail "rows of queries, keys and values: $rows"
mkdir -p back
"$BUILDDIR/muconvert" m.h5 back/model.safetensors >"$log" || fail "$(cat "$log")"
"$BUILDDIR/muconvert" back again.h5 >"$log" || fail "$(cat "$log")"
same_model m.h5 again.h5 || fail "other weights after two conversions"
for member in '"num_key_value_heads": 2' '"head_dim": 2' '"intermediate_size": 12' '"rope_theta": 500000' \
	'"rms_norm_eps": 0.25' '"tie_word_embeddings": true' '"max_position_embeddings": 2048'; do
	grep -q "$member[,}]*" back/config.json || fail "no $member: $(cat back/config.json)"
done
config
"$BUILDDIR/muconvert" m.h5 back/model.safetensors >"$log" 2>&1 && fail "a config.json of another base is left"
expect 'error: back/config.json is there already, of another model; .*its config.json has 500000 for the base'
for wrong in '"rope_scaling": {"rope_type": "llama3", "factor": 8.0}' '"attention_bias": true' '"mlp_bias": true' \
	'"hidden_act": "gelu"' '"sliding_window": 4' '"pretraining_tp": 2' '"rope_parameters": {"rope_type": "yarn"}' \
	'"partial_rotary_factor": 0.5' '"head_dim": 4' '"intermediate_size": 13' '"hidden_size": 16' '"rope_theta": 0' \
	'"layer_types": ["full_attention"]'; do
	config "$wrong"
	[ $status = 1 ] || fail "exit status $status with $wrong"
	[[ $wrong == *head_dim* ]] && name='channels' || name=${wrong#\"}
	expect "^muconvert: error: model: its config.json has .*${name%%\"*}"
	[ ! -e m.h5 ] || fail "a file is left of $wrong"
done
heads='"num_attention_heads": 4, "num_key_value_heads": 4' config
expect 'error: model: its config.json has 4 heads, 4 of keys, .* queries of 8 and keys of 4: they are not of one model'
heads='"num_attention_heads": 4, "num_key_value_heads": 3' config
expect 'error: model: its config.json has 4 heads, 3 of keys, .*heads of keys must divide heads'
tied=false config
expect 'error: model: its config.json has "tie_word_embeddings": false, and it holds no "lm_head.weight"$'
echo "{$heads}" >model/config.json
convert model m.h5
expect 'error: model: its config.json does not say "tie_word_embeddings": true, and it holds no "lm_head.weight"$'
llama none $head
is_llama 1112 17 # the output's weight, the embedding's once more, is its own if config.json says no other
config
is_llama 1056 16
rm model/config.json
llama none $head
is_llama 1056 16 --num-heads 4 --num-kv-heads 2
llama model.layers.1.self_attn.k_proj.weight
[ $status = 1 ] || fail "exit status $status without keys"
expect 'error: .*not all of query, key and value'
# Models with arrays of these names that are none
echo '{"model_type": "mistral"}' >model/config.json
llama none
expect '^muconvert: model: config.json has model type "mistral": no network .* and m.h5 holds plain arrays$'
finish
