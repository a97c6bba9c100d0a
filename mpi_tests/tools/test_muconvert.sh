#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# muconvert: .params files, written here byte by byte in the layouts that MXNet has had, and what can be wrong
# with them; and back.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/lib/safetensors.sh
. "$SRCDIR/mpi_tests/lib/safetensors.sh"
log=tool.log

needs_files

# name TEXT
name() {
	le 8 ${#1}
	printf %s "$1"
}
begin() {
	le 8 $((0x112)) 0 "$1"
}
magic=$((0xF993FAC9))
numbers='\0\0\200\77\0\0\0\300' # 1, -2
# array TYPE: (1, 2), of MXNet from 0.12 on, without numbers
array() {
	le 4 $magic 0 2
	le 8 1 2
	le 4 1 0 "$1"
}
# of 0.11: sizes of 64 bits; of 0.10 and before: of 32, and no magic
array_1() {
	le 4 $((0xF993FAC8)) 2
	le 8 1 2
	le 4 1 0 0
}
array_0() {
	le 4 2 1 2 1 0 0
}
ends() {
	le 8 $#
	for n in "$@"; do name "$n"; done
}
convert() {
	rm -f "$2"
	"$BUILDDIR/muconvert" "$1" "$2" >"$log" 2>&1
	status=$?
}

part "layouts"
for layout in "array 0" array_1 array_0; do
	{
		begin 2
		for _ in 1 2; do $layout && printf '%b' "$numbers"; done
		ends arg:a_weight aux:m
	} >x.params
	convert x.params "${layout%% *}.h5"
	[ $status = 0 ] || fail "exit status $status of $layout: $(cat "$log")"
	expect '^muconvert: 2 arrays of x.params in '
	convert "${layout%% *}.h5" back.params
	[ $status = 0 ] || fail "exit status $status back from $layout: $(cat "$log")"
	[ "$layout" != "array 0" ] || cp x.params new.params
	cmp new.params back.params || fail "$layout: other bytes after two conversions"
done
"$BUILDDIR/muconvert" new.params named.h5 --names gpt2 >"$log" 2>&1 || fail "exit status $?"
expect '^muconvert: warning: --names gpt2 has no effect: it is about safetensors$'
same_model array.h5 array_1.h5 || fail "layout of 0.11"
same_model array.h5 array_0.h5 || fail "layout of 0.10"
{
	begin 2
	array 2
	le 2 $((0x3c00)) $((0xc000))
	array 1
	le 8 $((0x3ff << 52)) $((1 << 62 | 1 << 63))
	ends arg:a_weight aux:m
} >y.params
convert y.params y.h5
same_model array.h5 y.h5 || fail "float16 and float64: $(cat "$log")"
{ begin 1; array 0; printf '%b' "$numbers"; ends plain; } >z.params
convert z.params z.h5
convert z.h5 back.params
cmp z.params back.params || fail "a name without a prefix: $(cat "$log")"

part "wrong files"
# refuse REGEX: bad.params is refused, and nothing is left
refuse() {
	convert bad.params bad.h5
	[ $status = 1 ] || fail "exit status $status, not 1"
	expect "$1"
	ls bad.h5* 2>/dev/null && fail "a file is left"
}
printf 'This is text, and no list of arrays.' >bad.params
refuse 'bad.params: begins with 0x2073692073696854, not with 0x112'
: >bad.params
refuse 'bad.params: ends at byte 0'
for n in 5 20 30 50 65 70 100 140 $(($(stat -c %s new.params) - 1)); do
	head -c "$n" new.params >bad.params
	refuse 'bad.params(: ends at byte|, byte [0-9]+:|: array [01] at byte)'
done
{ cat new.params; printf x; } >bad.params
refuse 'bad.params: 1 bytes are left behind its end at byte'
{ begin 1; le 4 $magic 1 2; } >bad.params
refuse 'bad.params, byte 28: array 0 has storage of kind 1; only dense'
{ begin 1; array 6; le 8 1 2; ends arg:a; } >bad.params
refuse 'bad.params, byte 60: array 0 has numbers of type 6, int64; float32'
{ begin 1; array 77; } >bad.params
refuse 'has numbers of type 77; float32'
{ begin 1; le 4 $magic 0 1; le 8 -1; le 4 1 0 0; } >bad.params
refuse 'byte 36: dimension 0 of array 0 is -1, in a file of 56 bytes'
{ begin 1; le 4 $magic 0 2; le 8 50 50; le 4 1 0 0; printf '%b' "$numbers"; } >bad.params
refuse 'dimension 1 of array 0 is 50, in a file of 72 bytes'
{ begin 1; le 4 $magic 0 2; le 8 1 60; le 4 1 0 0; printf '%b' "$numbers"; } >bad.params
refuse 'array 0 at byte 24 has 240 bytes of numbers, and the file ends after 8'
{ begin 1; le 4 $magic 0 9; } >bad.params
refuse 'array 0 has 9 dimensions, not 1 to 8'
{ begin -1; array 0; printf '%b' "$numbers"; } >bad.params
refuse 'ends at byte 72, within a number that begins at 72'
{ begin 1; array 0; printf '%b' "$numbers"; le 8 1 -1; } >bad.params
refuse 'byte 80: the name of array 0 has 18446744073709551615 letters'
{ begin 1; array 0; printf '%b' "$numbers"; le 8 0; } >bad.params
refuse '0 names for 1 arrays: a list without names'
{ begin 2; array 0; printf '%b' "$numbers"; array 0; printf '%b' "$numbers"; ends arg:a arg:a; } >bad.params
refuse 'two arrays have the name "arg:a"'
{ begin 1; array 0; printf '%b' "$numbers"; ends /a; } >bad.params
refuse 'the name of array 0 is not a name'
convert nothing.params bad.h5
[ $status = 1 ] || fail "exit status $status of a file that is not there"
expect 'nothing.params: cannot be read: No such file'
convert new.params nowhere/x.h5
[ $status = 1 ] || fail "exit status $status of a folder that is not there"
convert array.h5 x.onnx
[ $status = 2 ] || fail "exit status $status of a name that MXNet's format does not have"
expect 'x.onnx: a name that ends in .params or .safetensors is needed'
"$BUILDDIR/muconvert" new.params >"$log" 2>&1
[ $? = 2 ] || fail "one word is enough"

part "safetensors"
two="$(entry arg/a_weight F32 1,2 0 8),$(entry aux/m F32 1,2 8 16)"
st x.safetensors "{\"__metadata__\":{\"format\":\"pt\"},$two}" "$numbers$numbers"
convert x.safetensors s.h5
[ $status = 0 ] || fail "exit status $status: $(cat "$log")"
same_model array.h5 s.h5 || fail "float32 of safetensors"
convert s.h5 back.safetensors
cmp x.safetensors <(tr -d ' ' <back.safetensors) >/dev/null && fail "the header is not filled up"
convert back.safetensors s2.h5
same_model array.h5 s2.h5 || fail "after two conversions: $(cat "$log")"
st h.safetensors "{$(entry aux/m BF16 1,2 4 8),$(entry arg/a_weight F16 1,2 0 4)}" '\0\x3c\0\xc0\x80\x3f\0\xc0'
convert h.safetensors h.h5
same_model array.h5 h.h5 || fail "float16 and bfloat16: $(cat "$log")"
# several files and an index; a folder
mkdir -p parts
st parts/1.safetensors "{$(entry arg/a_weight F32 1,2 0 8)}" "$numbers"
st parts/2.safetensors "{$(entry aux/m F32 1,2 0 8)}" "$numbers"
index=parts/model.safetensors.index.json
printf '{"weight_map":{"aux/m":"2.safetensors","arg/a_weight":"1.safetensors"}}' >$index
for from in $index parts; do
	convert $from p.h5
	same_model array.h5 p.h5 || fail "several files by $from: $(cat "$log")"
done

part "names of others"
# names FILE.h5 NAME...: it has these arrays alone, as MXNet's file tells
names() {
	local file=$1 want
	shift
	convert "$file" names.params
	want=$(printf '%s\n' "$@" | sort)
	[ "$(grep -aoE '(arg|aux):[a-z0-9_]+' names.params | sort)" = "$want" ] ||
		fail "$file: other names: $(cat "$log")"
}
one=$(entry transformer.h.0.attn.c_attn.weight F32 2,1 0 8),$(entry transformer.h.0.ln_1.bias F32 2 8 16)
one+=,$(entry transformer.wte.weight F32 1,1 21 25)
st g.safetensors "{$one,$(entry transformer.h.0.attn.bias BOOL 1,1 16 17),$(entry lm_head.weight F32 1,1 17 21)}" \
	"$numbers$numbers\\0\\0\\0\\0\\0\\0\\0\\0\\0"
convert g.safetensors g.h5
names g.h5 arg:h0_qkv_weight arg:h0_ln1_beta arg:wte_weight
convert g.h5 g2.safetensors
grep -aq '"h.0.attn.c_attn.weight": {"dtype": "F32", "shape": \[2, 1\]' g2.safetensors ||
	fail "$(head -c 300 g2.safetensors)"
convert g2.safetensors g2.h5
same_model g.h5 g2.h5 || fail "gpt2: other weights after two conversions"
# A head that is not the embedding once more
st u.safetensors "{$one,$(entry lm_head.weight F32 1,1 16 20)}" "$numbers$numbers\\x01\\0\\0\\0\\0\\0\\0\\0"
sed -i 's/"data_offsets":\[21,25\]/"data_offsets":[20,24]/' u.safetensors
convert u.safetensors u.h5
names u.h5 arg:h0_qkv_weight arg:h0_ln1_beta arg:wte_weight arg:head_weight
convert u.h5 u2.safetensors
grep -aq '"lm_head.weight": {"dtype": "F32", "shape": \[1, 1\]' u2.safetensors || fail "$(head -c 400 u2.safetensors)"
# transformers knows the model beside a head by the prefix alone
grep -aq '"transformer.wte.weight": ' u2.safetensors || fail "$(head -c 400 u2.safetensors)"
grep -aq '"wte.weight": ' g2.safetensors || fail "$(head -c 400 g2.safetensors)"
convert u2.safetensors u2.h5
same_model u.h5 u2.h5 || fail "gpt2 with a head of its own: other weights after two conversions"
# (3, 2) is transposed
six=$(for i in 0 1 2 3 4 5; do printf '\\0\\0\\x8%d\\x3f' $i; done)
st t.safetensors "{$(entry h.0.attn.c_attn.weight F32 3,2 0 24),$(entry wte.weight F32 1,1 24 28)}" "$six\\0\\0\\0\\0"
convert t.safetensors t.h5
convert t.h5 t.params
od -An -tx1 -v t.params | tr -d ' \n' | grep -q '0000803f0000823f0000843f0000813f0000833f0000853f' ||
	fail "not transposed"
convert t.h5 t2.safetensors
convert t2.safetensors t2.h5
same_model t.h5 t2.h5 || fail "transposed twice"
names=(conv1.weight layer1.0.conv1.weight layer1.0.bn3.running_mean layer1.0.downsample.0.weight
	layer4.2.bn1.weight layer3.11.downsample.1.running_var fc.bias)
header='' at=0 all=''
for n in "${names[@]}"; do header+=$(entry "$n" F32 2 $at $((at + 8))), at=$((at + 8)) all+=$numbers; done
st r.safetensors "{$header$(entry bn1.num_batches_tracked I64 '' $at $((at + 8)))}" "$all$numbers"
convert r.safetensors r.h5
names r.h5 arg:conv0_weight arg:stage1_unit1_conv1_weight aux:stage1_unit1_bn3_moving_mean \
	arg:stage1_unit1_conv1sc_weight arg:stage4_unit3_bn1_gamma aux:stage3_unit12_sc_moving_var arg:fc1_bias
convert r.h5 r2.safetensors
for n in "${names[@]}"; do grep -aqF "\"$n\": {" r2.safetensors || fail "$n is gone"; done

# Query, key and value, in any order, are one array of ours.
q=vit.encoder.layer.0.attention.attention
header=$(entry $q.value.weight F32 1,2 0 8),$(entry $q.query.weight F32 1,2 8 16)
header+=,$(entry $q.key.weight F32 1,2 16 24),$(entry vit.embeddings.cls_token F32 1,1,2 24 32)
header+=,$(entry vit.embeddings.position_embeddings F32 1,3,2 32 56)
header+=,$(entry vit.encoder.layer.0.output.dense.weight F32 2,1 56 64),$(entry classifier.bias F32 2 64 72)
st v.safetensors "{$header}" "$six$numbers$six$numbers$numbers"
convert v.safetensors v.h5
names v.h5 arg:h0_qkv_weight arg:position_token arg:position_weight arg:h0_out_weight arg:head_bias
od -An -tx1 -v names.params | tr -d ' \n' | grep -q '0000823f0000833f0000843f0000853f0000803f0000813f' ||
	fail "not query, key, value"
convert v.h5 v2.safetensors
grep -aq '"vit.embeddings.position_embeddings": {"dtype": "F32", "shape": \[1, 3, 2\]' v2.safetensors ||
	fail "$(head -c 900 v2.safetensors)"
grep -aq '"vit.encoder.layer.0.attention.attention.key.weight": {"dtype": "F32", "shape": \[1, 2\]' v2.safetensors ||
	fail "$(head -c 900 v2.safetensors)"
convert v2.safetensors v2.h5
same_model v.h5 v2.h5 || fail "vit: other weights after two conversions"
st v.safetensors "{$(entry vit.embeddings.cls_token F32 1,1,2 0 8),$(entry $q.key.bias F32 2 8 16)}" "$numbers$numbers"
convert v.safetensors w.h5
[ $status = 1 ] || fail "exit status $status of a key without its query"
expect 'error: v.safetensors: array "vit.*key.bias" is there, but not all of query, key and value'
st v.safetensors "{$(entry vit.embeddings.cls_token F32 2,2 0 16)}" "$numbers$numbers"
convert v.safetensors w.h5
expect 'error: v.safetensors: array "vit.embeddings.cls_token" has 2 dimensions; 3 are needed, the first of 1'

part "timm's configuration"
mkdir -p timm
cp r.safetensors timm/model.safetensors
# timm MEMBERS
timm() {
	echo "{\"architecture\": \"resnet50\", $1}" >timm/config.json
	convert timm m.h5
}
timm '"num_classes": 2, "num_features": 2048, "label_names": ["a", "b"], "label_descriptions": {"a": "x"},
	"model_args": {}, "pretrained_cfg": {"input_size": [3, 160, 160], "interpolation": "bicubic",
	"crop_pct": 0.95, "num_classes": 1000}'
[ $status = 0 ] || fail "exit status $status: $(cat "$log")"
expect_count 1 'timm: config.json has input_size \[3,160,160\], interpolation "bicubic", crop_pct 0.95, which is not'
timm '"num_classes": 3'
[ $status = 1 ] || fail "exit status $status of another number of classes"
expect 'error: timm: its config.json has "num_classes": 3, and its arrays have 2: they are not of one model'
timm '"label_names": ["a"]'
[ $status = 1 ] || fail "exit status $status of another number of names"
expect 'error: timm: its config.json has 1 member of "label_names", and its arrays have 2 classes'
timm '"pretrained_cfg": {"std": [0.001, 0.001, 0.001], "mean": [0, 0, 0]}'
expect 'error: timm: its config.json has "pretrained_cfg.std" 0.001, of pixels from 0 to 1: it is too small'
timm '"model_args": {"act_layer": "silu"}'
[ $status = 1 ] || fail "exit status $status of arguments of the model"

part "arrays of no floats"
python=''
for candidate in python3 /usr/bin/python3; do
	[ -z "$python" ] && $candidate -c 'import h5py' 2>/dev/null && python=$candidate
done
if [ -n "$python" ]; then
	$python - <<'END'
import h5py
with h5py.File("ints.h5", "w", libver=("v110", "v110")) as f:
    f.create_dataset("arg/a_weight", data=[[1.0, -2.0]], dtype="f4")
    f["more/steps\x1b"] = [1, 2]
    f["words"] = "text"
END
	for to in ints.params ints.safetensors; do
		convert ints.h5 $to
		[ $status = 0 ] || fail "exit status $status: $(cat "$log")"
		expect '^muconvert: ints.h5: 2 arrays of no floats left out \(the first is more/steps\\x1b\)$'
	done
fi

part "wrong safetensors"
# refuse_st REGEX HEADER NUMBERS
refuse_st() {
	st bad.safetensors "$2" "${3-}"
	rm -f bad.h5
	convert bad.safetensors bad.h5
	[ $status = 1 ] || fail "exit status $status, not 1"
	expect "$1"
	ls bad.h5* 2>/dev/null && fail "a file is left"
}
refuse_st 'array "b" begins at byte [0-9]+, and the one before it ends at [0-9]+: they overlap' \
	"{$(entry a F32 2 0 8),$(entry b F32 2 4 12)}" "$numbers$numbers"
refuse_st 'there is a hole' "{$(entry a F32 2 0 8),$(entry b F32 1 12 16)}" "$numbers$numbers"
refuse_st '8 bytes are behind its last array' "{$(entry a F32 2 0 8)}" "$numbers$numbers"
refuse_st 'array "a" leaves the file, which has 8 bytes of numbers' "{$(entry a F32 4 0 16)}" "$numbers"
refuse_st 'array "a" leaves the file' "{$(entry a F32 2 8 0)}" "$numbers"
refuse_st 'array "a" leaves the file' "{$(entry a F32 2 -8 0)}" "$numbers"
refuse_st 'array "a" has 8 bytes, and 4 by its shape and type F32' "{$(entry a F32 1 0 8)}" "$numbers"
refuse_st 'size 0 of array "a" does not fit' "{$(entry a F32 4294967296,4294967296 0 8)}" "$numbers"
refuse_st 'size 0 of array "a" does not fit' "{$(entry a F32 1.5 0 8)}" "$numbers"
refuse_st 'array "a" has numbers that are too large for float32' "{$(entry a F64 1 0 8)}" '\0\0\0\0\0\0\xe0\x7f'
refuse_st 'numbers of the unknown type "F4"' "{$(entry a F4 2 0 8)}" "$numbers"
refuse_st 'numbers of type I64; F32, F16, BF16 and F64 can be read' "{$(entry a I64 1 0 8)}" "$numbers"
refuse_st 'has no two data_offsets' '{"a":{"dtype":"F32","shape":[2]}}' "$numbers"
refuse_st 'is no JSON: a comma or } is missing' "{$(entry a F32 2 0 8)" "$numbers"
refuse_st 'line 1: has two members "a"' "{$(entry a F32 1 0 4),$(entry a F32 1 4 8)}" "$numbers"
refuse_st 'holds no arrays' '{}'
refuse_st 'arrays "a" and "a/.*" cannot both be in an HDF5 file' \
	"{$(entry a F32 1 0 4),$(entry a/b F32 1 4 8)}" "$numbers"
refuse_st 'arrays "a" and "a/.*" cannot both be in an HDF5 file' \
	"{$(entry a/b F32 1 0 4),$(entry a F32 1 4 8)}" "$numbers"
refuse_st 'array name "a//b" has an empty part' "{$(entry a//b F32 2 0 8)}" "$numbers"
mkdir -p torch
printf 'PK\3\4 and more' >torch/pytorch_model.bin
for from in torch torch/pytorch_model.bin; do
	convert $from bad.h5
	expect 'it is a zip file, as PyTorch and NumPy write them, .*: save the model as safetensors'
done
refuse_st 'array "h.0.x" has no place in the networks of --names gpt2' \
	"{$(entry h.0.attn.c_attn.weight F32 1,2 0 8),$(entry h.0.x F32 2 8 16)}" "$numbers$numbers"
{ le 8 -1; printf '{}      '; } >bad.params
mv bad.params bad.safetensors
convert bad.safetensors bad.h5
expect 'begins with a header of 18446744073709551615 bytes, in a file of 16'
printf '{"weight_map":{"aux/m":"2.safetensors"}}' >$index
convert $index bad.h5
[ $status = 0 ] || fail "an index of one file: $(cat "$log")"
printf '{"weight_map":{"aux/m":"2.safetensors","x":"2.safetensors"}}' >$index
convert $index bad.h5
expect 'names 2 arrays, and its files hold 1'
printf '{"weight_map":{"aux/n":"2.safetensors"}}' >$index
convert $index bad.h5
expect 'array "aux/n" is not in 2.safetensors'
printf '{"weight_map":{"aux/m":"1.safetensors","arg/a_weight":"2.safetensors"}}' >$index
convert $index bad.h5
expect 'array "aux/m" is not in 1.safetensors'
printf '{"weight_map":{"aux/m":"../x.safetensors"}}' >$index
convert $index bad.h5
expect 'array "aux/m" names no file beside it'
convert x.safetensors y.safetensors
[ $status = 2 ] || fail "exit status $status of safetensors to safetensors"

part "a checkpoint"
log=trainer.log
small_set set 200 50
train 1 --network lenet --data-dir set --batch-size 20 --num-epochs 1 --optimizer adam --lr 0.001 --model-prefix A
"$BUILDDIR/muconvert" A-0001.h5 A.params >tool.log || fail "$(cat tool.log)"
"$BUILDDIR/muconvert" A.params B.h5 >tool.log || fail "$(cat tool.log)"
same_model A-0001.h5 B.h5 || fail "other weights after two conversions"
train 1 --network lenet --data-dir set --batch-size 20 --load B.h5 --evaluate
for mode in --evaluate "--evaluate --predict p.csv"; do
	# shellcheck disable=SC2086 # words
	run_limited 60 1 --data-dir set --load B.h5 $mode
	[ $status = 2 ] || fail "exit status $status of a file that names no network"
	expect "error: --(evaluate|predict): B.h5 does not say of which network .*: --network NAME is needed"
done
run_limited 60 1 --network lenet --data-dir set --batch-size 20 --load A.params --evaluate
expect "A.params: is not an HDF5 file; it is MXNet's: muconvert makes one of it"
cp x.safetensors y.safetensors
run_limited 60 1 --network lenet --data-dir set --batch-size 20 --load y.safetensors --evaluate
expect "y.safetensors: is not an HDF5 file; muconvert makes one of safetensors"
finish
