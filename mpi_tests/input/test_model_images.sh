#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# muconvert: a ViT to transformers' files and back: which images it reads, and a config.json or preprocessor_config.json
# that is of another model.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
log=tool.log

needs_files

convert() {
	rm -f "$2"
	"$BUILDDIR/muconvert" "$1" "$2" >"$log" 2>&1
	status=$?
}

part "a model of images"
log=trainer.log
small="--benchmark 1 --num-batches 1 --batch-size 2 --log-prefix none --log-time 0"
vit="--network vit-tiny --num-layers 1 --num-hidden 8 --num-heads 2 --num-classes 3"
# shellcheck disable=SC2086 # words
train 1 $vit --image-shape 3,32,32 $small --num-epochs 1 --layer-norm-eps 1e-12 --model-prefix V
log=tool.log
mkdir -p vit
convert V-0001.h5 vit/model.safetensors
for member in '"layer_norm_eps": 1e-12' '"patch_size": 4' '"num_attention_heads": 2' '"intermediate_size": 32'; do
	grep -q "$member" vit/config.json || fail "no $member: $(cat vit/config.json)"
done
cp vit/config.json vit.json

# classes MEMBERS: with these members of config.json
classes() {
	sed "1a $1," vit.json >vit/config.json
	convert vit v.h5
}
# wrong REGEX MEMBERS
wrong() {
	classes "$2"
	[ $status = 1 ] || fail "exit status $status with $2"
	expect "error: vit: its config.json $1"
}
wrong 'has class "3" in "id2label", and its arrays have 3 classes, 0 to 2' '"id2label": {"1":"a","2":"b","3":"c"}'
wrong 'has class "x" in "id2label"' '"id2label": {"0":"a","x":"b","2":"c"}'
wrong 'has 2 members of "id2label", and its arrays have 3 classes' '"id2label": {"0":"a","2":"c"}'
wrong 'has two names of class 1 in "id2label": "b" and "c"' '"id2label": {"0":"a","1":"b","01":"c"}'
wrong 'calls class 0 "a" in "id2label" and "b" in "label2id"' \
	'"id2label": {"0":"a","1":"b","2":"c"}, "label2id": {"a":1,"b":0,"c":2}'
wrong 'has class "3" in "label2id"' '"label2id": {"a":0,"b":3}'
wrong 'has no name of class 1 in "label2id"' '"label2id": {"a":0,"b":2}'
classes '"id2label": {"0":"a","1":"b\\nc","2":"c"}'
expect 'vit: config.json has a line break in the name of class 1: the names of classes are left out'
# What is called by numbers alone is not named.
default='"id2label": {"0":"LABEL_0","1":"LABEL_1","2":"LABEL_2"}, "label2id": {"LABEL_0":0,"LABEL_1":1,"LABEL_2":2}'
mkdir -p named
cp vit.json named/config.json
classes "$default"
[ $status = 0 ] || fail "exit status $status: $(cat "$log")"
convert v.h5 named/model.safetensors
[ "$(wc -l <"$log")" = 1 ] || fail "names of default: $(cat "$log")"
# Names go to the file and back; those beside the model must be the same.
classes '"id2label": {"2":"a","1":"b \\"x\\"","0":"a"}, "label2id": {"a":"2","b \\"x\\"":1}'
[ $status = 0 ] || fail "exit status $status: $(cat "$log")"
convert v.h5 named/model.safetensors
[ $status = 0 ] || fail "exit status $status: $(cat "$log")"
rm named/config.json
convert v.h5 named/model.safetensors
tr -d ' \n' <named/config.json | grep -qF '"id2label":{"0":"a","1":"b\"x\"","2":"a"},"label2id":{"a":0,"b\"x\"":1}' ||
	fail "$(cat named/config.json)"
sed "1a $default," vit.json >named/config.json
convert v.h5 named/model.safetensors
expect 'named/config.json names no classes, and the model does'
sed '1a "id2label": {"0":"a","1":"b","2":"c"},' vit.json >named/config.json
convert v.h5 named/model.safetensors
[ $status = 1 ] || fail "exit status $status of other names"
expect 'error: named/config.json is there already, of another model; .*other names of classes'
# The trainer compares them with those of folders, and predicts them.
jpeg=$BUILDDIR/mpi_tests/lib/make_jpeg
if [ -x "$jpeg" ]; then
	for c in ant bee cow; do
		mkdir -p "set/$c"
		"$jpeg" write "set/$c/1.jpg" 32 32 rgb 1
	done
	printf 'set/ant/1.jpg\n' >images.lst
	log=trainer.log
	for order in '"0":"cow","1":"bee","2":"ant"' '"0":"ant","1":"bee","2":"cow"'; do
		log=tool.log
		classes "\"id2label\": {$order}"
		log=trainer.log
		run_limited 60 1 --load v.h5 --evaluate --data-val images.lst --predict p.csv --log-time 0
		[ $status = 0 ] || fail "exit status $status: $(cat "$log")"
		grep -Eq '^set/ant/1.jpg,(ant|bee|cow),' p.csv || fail "no name: $(cat p.csv)"
		run_limited 60 1 --load v.h5 --evaluate --data-val set --log-time 0
		case $order in
		*:\"ant\",*) [ $status = 0 ] || fail "exit status $status: $(cat "$log")" ;;
		*)
			[ $status = 2 ] || fail "exit status $status of classes in another order"
			expect 'error: .*class 0 is "cow" in v.h5 and "ant" in set: the same classes are needed'
			;;
		esac
	done
	log=tool.log
fi
cp vit.json vit/config.json
sed -i '1a "add_cross_attention": false, "id2label": {}, "label2id": {},' vit/config.json
# images MEMBERS: with a preprocessor_config.json of these
images() {
	echo "{$1}" >vit/preprocessor_config.json
	convert vit v.h5
}
images '"image_processor_type": "ViTImageProcessor", "image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.5, 0.5],
	"rescale_factor": 0.00392156862745098, "size": {"height": 32, "width": 32}, "resample": 3'
[ $status = 0 ] || fail "exit status $status: $(cat "$log")"
expect '"resample": 3; here images are resized by bilinear'
expect 'rgb-mean 127.5,127.5,127.5 and rgb-std 63.75,127.5,127.5, which trainer --load takes'
"$BUILDDIR/recinfo" v.h5 >"$log" 2>&1
convert v.h5 vit/model.safetensors # config.json is of the model
[ $status = 0 ] || fail "exit status $status: $(cat "$log")"
rm vit/*.json
convert v.h5 vit/model.safetensors
grep -q '"image_mean": \[0.5, 0.5, 0.5\]' vit/preprocessor_config.json || fail "$(cat vit/preprocessor_config.json)"
grep -q '"shortest_edge": 32' vit/preprocessor_config.json || fail "$(cat vit/preprocessor_config.json)"
convert vit w.h5
expect 'rgb-mean 127.5,127.5,127.5 and rgb-std 63.75,127.5,127.5'
same_model v.h5 w.h5 || fail "other weights after two conversions"
python=''
for candidate in python3 /usr/bin/python3; do
	[ -z "$python" ] && $candidate -c 'import h5py' 2>/dev/null && python=$candidate
done
# attribute FILE NAME VALUE
attribute() {
	[ -z "$python" ] || [ "$($python -c 'import h5py, sys; v = h5py.File(sys.argv[1]).attrs[sys.argv[2]]
print(v.decode() if isinstance(v, bytes) else v)' "$1" "$2")" = "$3" ] || fail "$1: $2 is not $3"
}
# What a processor does where its file does not say it
images '"image_processor_type": "CLIPImageProcessor", "crop_size": 32'
expect 'rgb-mean 122.77093.*,116.74601.*,104.09373.* and rgb-std 68.5005.*,66.6321.*,70.3231'
expect 'has no "resample", which means bicubic'
expect_none 'squeezed|makes images of'
attribute v.h5 resize 224
images '"size": 40, "resample": 2, "crop_size": {"height": 32, "width": 32},
	"feature_extractor_type": "CLIPFeatureExtractor"'
expect_none 'squeezed|makes images of|"resample"'
expect 'trainer halves them and interpolates .*: im2rec --resize filters, too'
attribute v.h5 resize 40
images '"size": 40, "do_resize": false, "crop_size": 32'
expect_none 'filter'
images '"image_processor_type": "DeiTImageProcessor", "resample": 2, "crop_size": 32'
attribute v.h5 resize 256
images '"image_processor_type": "DeiTImageProcessor", "crop_size": null'
expect 'rgb-mean 127.5,127.5,127.5 and rgb-std 127.5,127.5,127.5'
expect 'makes images of 224 x 224, and the model reads 32 x 32'
expect 'has no "resample", which means bicubic'
images '"image_processor_type": "DeiTFeatureExtractor", "resample": 2, "crop_size": 32, "size": 48'
expect_none 'makes images of'
attribute v.h5 resize 48
images '"feature_extractor_type": "ViTFeatureExtractor", "size": 32, "image_mean": null'
expect 'rgb-mean 127.5,127.5,127.5'
expect_none '"resample"'

# One that is there already
images '"size": 32, "image_mean": [0.5, 0.25, 0.5]'
cp vit/preprocessor_config.json given.json
convert v.h5 vit/model.safetensors
[ $status = 0 ] || fail "exit status $status: $(cat "$log")"
cmp given.json vit/preprocessor_config.json || fail "the file was written anew"
# other MEMBERS REGEX: a file of other pixels; the model of before is gone
other() {
	echo "{$1}" >vit/preprocessor_config.json
	convert v.h5 vit/model.safetensors
	[ $status = 1 ] || fail "exit status $status with $1"
	expect "error: vit/preprocessor_config.json is there already, of another model; remove it, .*$2"
}
other '"size": 32, "image_mean": [0.5, 0.5, 0.5]' 'its mean .* is 127.5, and the model.s 63.75'
other '"size": 32, "image_mean": [0.5, 0.25, 0.5], "image_std": [1, 1, 1]' \
	'its deviation .* is 255, and the model.s 127.5'
other '"size": 48, "image_mean": [0.5, 0.25, 0.5]' 'it makes images of 48 x 48, and the model reads 32 x 32'
other '"size": 48, "crop_size": 32, "do_center_crop": true, "image_mean": [0.5, 0.25, 0.5]' \
	'it resizes the shorter side to 48, and the model was trained with 32'
other '"do_flip": true' '"do_flip"'
[ ! -e vit/model.safetensors ] || fail "the model was written"
rm vit/preprocessor_config.json
convert v.h5 vit/model.safetensors

for wrong in '"do_flip": true' '"do_pad": true' '"image_mean": [0.5]' '"image_std": [0, 1, 1]' \
	'"image_processor_type": "LevitImageProcessor"'; do
	images "$wrong"
	[ $status = 1 ] || fail "exit status $status with $wrong"
	name=${wrong#\"}
	expect "error: vit: its preprocessor_config.json .*${name%%\"*}"
done
# What cannot be done here is refused where the model comes from, not by the trainer.
for wrong in '"do_rescale": false' '"rescale_factor": 1' '"rescale_factor": 4, "do_normalize": false'; do
	images "$wrong"
	[ $status = 1 ] || fail "exit status $status with $wrong"
	expect "error: vit: its preprocessor_config.json has ${wrong%%,*}, so that pixels are divided by 0\\.[25]5?:"
done
for wrong in '"size": {"shortest_edge": 32}, "crop_size": 64' '"size": 31, "crop_size": {"height": 32, "width": 16}'; do
	images "\"image_processor_type\": \"CLIPImageProcessor\", $wrong"
	[ $status = 1 ] || fail "exit status $status with $wrong"
	expect 'crops (64|32) pixels \("crop_size"\) out of images of (32|31) \("size"\): others fill the edge'
done
images '"image_processor_type": "CLIPImageProcessor", "size": 16, "crop_size": 32, "do_resize": false'
[ $status = 0 ] || fail "exit status $status: $(cat "$log")"
expect 'images smaller than the crop are enlarged here'
images '"do_normalize": false, "do_rescale": false'
expect 'rgb-mean 0,0,0 and rgb-std 1,1,1'
rm vit/preprocessor_config.json
convert vit w.h5
expect 'no preprocessor_config.json beside it tells the mean'
for wrong in '"layer_norm_eps"/"layer_norm_foo"' '"patch_size": 4/"patch_size": 8' '"num_labels": 3/"num_labels": 4' \
	'"image_size": \[32, 32\]/"image_size": 64' '"vit"/"deit"' '"gelu"/"relu"' \
	'"num_labels"/"qkv_bias": false, "num_labels"'; do
	sed "s/$wrong/" vit.json >vit/config.json
	convert vit w.h5
	[ $status = 1 ] || fail "exit status $status with $wrong"
	expect 'error: vit: its config.json has '
done
sed 's/"num_attention_heads": 2/"num_attention_heads": 4/' vit.json >vit/config.json
convert V-0001.h5 vit/model.safetensors
[ $status = 1 ] || fail "a config.json of another model stays beside the model"
expect 'error: vit/config.json is there already, of another model; remove it'
finish
