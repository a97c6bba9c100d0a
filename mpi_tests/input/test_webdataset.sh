#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# WebDataset's tar files, made by tar(1): training as from a .rec file of the same images, going on inside an epoch,
# the tools, what is wrong; and the samples that PyPI's webdataset reads.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export LC_ALL=C
JPEG=$BUILDDIR/mpi_tests/lib/make_jpeg

if [ ! -x "$JPEG" ]; then
	echo "skip: this build has no libjpeg, of which the test makes its images"
	exit 77
fi

# misused REGEX ARGUMENT...: exit status 2 or 1, and one error
misused() {
	local regex=$1
	shift
	run_limited 60 "$@"
	[ $status = 1 ] || [ $status = 2 ] || fail "exit status $status of $*"
	expect "error: .*$regex"
	expect_count 1 'error:'
}

# pack FILE.tar FOLDER OPTION...: the files of the folder, in the order of their names
pack() {
	local to=$PWD/$1 from=$2
	shift 2
	(cd "$from" && printf '%s\n' * | tar -cf "$to" "$@" -T -) || fail "no $to"
}

n=0
mkdir -p 0 1 2 set/ant set/bee set/cow
for class in ant bee cow; do
	for i in 1 2 3 4 5 6 7 8 9; do
		"$JPEG" write set/$class/$i.jpg $((30 + i)) $((25 + n)) rgb $n
		name=$((n / 9))/$(printf %06d $n)
		cp set/$class/$i.jpg $name.jpg
		echo $((n / 9)) >$name.cls
		n=$((n + 1))
	done
done
echo '{"caption": "an ant"}' >0/000003.json
long=$(printf 'n%.0s' {1..150})
mv 1/000009.jpg 1/000009_$long.jpg
mv 1/000009.cls 1/000009_$long.cls
pack part-000.tar 0 --format=ustar
pack part-001.tar 1 --format=gnu
mkdir -p deep/below
mv 2 deep/below/2 && mkdir 2 && cp part-000.tar 2
mv deep/below/2/000018.jpg deep/below/2/000018.$long.jpg # an extension of its own: left out
"$JPEG" write deep/below/2/000018.JPEG 31 43 rgb 18
tar -cf part-002.tar --format=pax --sort=name deep
"$BUILDDIR/h5rec" set all.rec >/dev/null || fail "no all.rec"
plain="--log-prefix none --log-time 0 --disp-batches 2 --devices ref"
net="--network mlp --batch-size 4 --num-epochs 2 --image-shape 3,20,20 --lr 0.001 --num-classes 3 $plain"
parts='--data-train part-{000..002}.tar'

# results NAME: the metrics of a run, without times
results() {
	grep -E '^Epoch.*(Train|Validation)-' "$log" >"$1"
	[ -s "$1" ] || fail "no metrics"
}

part "the training of a .rec file"
train 1 $net --data-train all.rec --data-val all.rec
results rec
train 1 $net $parts --data-val part-000.tar';'part-001.tar';'part-002.tar
expect 'data records: 27 samples for training, 27 for validation, .* 3 classes: encoded images of part-\{'
expect_count 1 'warning: part-\{.*: left out: 2 files of other kinds \(the first is 000003.json\); samples are '
results tar
cmp rec tar || fail "tar files and the .rec file of their images train differently"
train 3 $net --data-train all.rec --shuffle chunk --shuffle-chunk 8 --kv-store dist_sharded
results rec
train 3 $net $parts --shuffle chunk --shuffle-chunk 8 --kv-store dist_sharded --data-cache node
results tar
cmp rec tar || fail "with 3 workers tar files and the .rec file train differently"

if has_files; then
	part "going on inside an epoch with other workers"
	job="${net/batch-size 4/global-batch-size 12} $parts --kv-store dist_sharded --num-epochs 1 --model-prefix W"
	train 2 $job --save-steps 1
	train 3 $job --resume W-0000-000001.h5
	expect 'workers 3 \(was 2\)'
	expect '^Resumed from "W-0000-000001.h5": after step 1 in epoch 1 of 1, 12 samples counted$'
	expect '^trained 15 samples'

	part "going on inside an epoch"
	jobs=("3 dist_sync")
	! in_tier full || jobs+=("1 local" "2 dist_sharded")
	for job in "${jobs[@]}"; do
		set -- $job
		rm -f U-* R-*
		train $1 $net $parts --kv-store $2 --model-prefix U --mom 0.9
		train $1 $net $parts --kv-store $2 --model-prefix R --mom 0.9 --save-steps 2
		for other in R-*.h5; do [ $other = R-0000-000002.h5 ] || rm $other; done
		train $1 $net $parts --kv-store $2 --model-prefix R --mom 0.9 --resume auto
		expect '^Resumed from "R-0000-000002.h5": after step 2 in epoch 1 of 2'
		cmp U-0002.h5 R-0002.h5 || fail "$2: other bits after going on"
	done
	echo 2 >0/000003.cls
	pack part-000.tar 0
	misused 'R-0001.h5 was saved with data ' 1 $net $parts --model-prefix R --num-epochs 3 --resume R-0001.h5
	echo 0 >0/000003.cls
	pack part-000.tar 0 --format=ustar
fi

part "tools"
"$BUILDDIR/recinfo" 'part-{000..002}.tar' >tool.log 2>&1 || fail "recinfo: $(cat tool.log)"
log=tool.log
expect '^part-\{000..002\}.tar: tar file, 27 records, 1 label each$'
expect '^left out   2 files of other kinds'
"$BUILDDIR/h5rec" 'part-{000..002}.tar' copy.rec >/dev/null 2>&1 || fail "no copy.rec"
cmp all.rec copy.rec || fail "h5rec makes another file of tar files than of the folder"
"$BUILDDIR/h5rec" part-001.tar one/ >/dev/null 2>&1 && cmp one/00001/000000000.jpg set/bee/1.jpg || fail "no part-001"
log=trainer.log

part "what is wrong"
cp -r 0 bad
rm bad/000004.cls
pack bad.tar bad
misused 'bad.tar: sample "000004" at byte \d+ has no class: expected a member 000004.cls' 3 $net --data-train bad.tar
echo ant >bad/000004.cls
pack bad.tar bad
misused 'bad.tar: member "000004.cls" at byte \d+: is "ant"; expected the number of a class' 1 $net --data-train bad.tar
echo 3 >bad/000004.cls
pack bad.tar bad
misused 'bad.tar, record 4 \(member 000004.jpg\) at byte \d+: has label 3; .* from 0 to 2' 1 $net --data-train bad.tar
echo 2 >bad/000004.cls
printf 'no image' >bad/000005.jpg
pack bad.tar bad
misused 'bad.tar, record 5 \(member 000005.jpg\) at byte \d+' 1 $net --data-train bad.tar
train 1 $net --data-train bad.tar --skip-bad-records 1
expect 'skipped: bad.tar, record 5 \(member 000005.jpg\)'
gzip -kf part-000.tar
misused 'part-000.tar.gz: is compressed \(gzip\), .*: gzip -dk part-000.tar.gz' 1 $net --data-train part-000.tar.gz
head -c 20000 part-000.tar >cut.tar
misused 'cut.tar: truncated: ' 1 $net --data-train cut.tar
ln -f bad/000006.jpg bad/000007.jpg
pack bad.tar bad
misused 'bad.tar: member "000007.jpg" .*is a link' 1 $net --data-train bad.tar
pack bad.tar 0 && (cd 0 && tar -rf ../bad.tar 000002.cls)
misused 'bad.tar: (sample|member) "000002' 1 $net --data-train bad.tar
truncate -s 1M bad/000008.jpg
(cd bad && tar -cf ../bad.tar --sparse 000008.*)
misused 'bad.tar: .* sparse, .*option sparse' 1 $net --data-train bad.tar
tar -cf bad.tar -T /dev/null
misused 'bad.tar: holds no samples: 0 members' 1 $net --data-train bad.tar
misused 'holds no data files.*tar files of WebDataset are given as --data-train' 1 $net --data-dir 2
misused 'part-003.tar: ' 1 $net --data-train 'part-{002..003}.tar'

part "the samples that webdataset reads"
python=$(find_python webdataset)
if [ -z "$python" ]; then
	echo "not compared with webdataset: no python3 has it (pip install webdataset; PY=DIR/bin/python)"
	finish
fi
"$BUILDDIR/h5rec" 'part-{000..002}.tar' ours/ >/dev/null 2>&1 || fail "no ours/"
cat >compare.py <<'END'
import webdataset
count = 0
for i, sample in enumerate(webdataset.WebDataset("part-{000..002}.tar", shardshuffle=False)):
    image = sample["jpg" if "jpg" in sample else "jpeg"]
    with open("ours/%05d/%09d.jpg" % (int(sample["cls"]), i), "rb") as f:
        assert f.read() == image, (i, sample["__key__"])
    count += 1
print(count, "samples of webdataset are ours")
END
"$python" -W ignore compare.py >compare.log 2>&1 || fail "other samples than webdataset's: $(tail -n 3 compare.log)"
grep -qx '27 samples of webdataset are ours' compare.log || fail "compare.py: $(tail -n 3 compare.log)"
finish
