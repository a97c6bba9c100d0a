#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --config: P-run.json repeats a run bit for bit; a file of options; which wins; and what is wrong with files.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

needs_files
export OMP_NUM_THREADS=1
small_set set 60 20

# refuse STATUS REGEX FILE: with three ranks, one message
refuse() {
	run_limited 60 3 --config "$3" --network mlp --data-dir set --batch-size 4 --num-epochs 1
	[ $status = "$1" ] || fail "exit status $status, not $1, of $3"
	expect_count 1 "error: --config $2"
	expect_none "$crashes"
}

part "the file of a run repeats it"
train 3 --network mlp --data-dir set --batch-size 5 --num-epochs 2 --lr 0.07 --lr-schedule multifactor \
	--lr-step-epochs 1 --kv-store dist_sync --num-servers 1 --seed 3 --wd 0.00012345678901234567 --devices ref \
	--log-time 0 --log-prefix none --fixed 'fc3*,fc1_bias' --metrics-file 'm"\.jsonl' --model-prefix P \
	--overwrite --log p.log
lines=$(wc -l <p.log)
grep -q '"given": \[' P-run.json || fail "P-run.json does not say what was given"
train 3 --config P-run.json --model-prefix Q
expect_none 'file of a run records'
cmp P-0002.h5 Q-0002.h5 || fail "the repeated run has other bits"
[ "$(wc -l <p.log)" = "$lines" ] || fail "the repeated run writes the log of the first"
run_limited 60 3 --config P-run.json --model-prefix Q
[ $status = 2 ] || fail "exit status $status: --overwrite was repeated"
train 3 --config P-run.json --model-prefix R
expect 'wd=0.00012345678901234\d+, .*fixed=fc3\*,fc1_bias, .*metrics_file=m"\\\.jsonl, '

sed -e 's/"optimizer": "sgd"/"optimizer": "adam"/' -e 's/"clip-gradient": 0/"clip-gradient": 5/' \
	-e 's/"shuffle": "1"/"shuffle": "0"/' P-run.json >edited.json
train 3 --config edited.json --model-prefix S
expect_count 1 'records --shuffle 0 \(here: 1\), --optimizer adam \(here: sgd\), --clip-gradient 5 \(here'
train 3 --config edited.json --model-prefix S2 --optimizer adam --clip-gradient 5 --shuffle 0
expect_none '(optimizer|clip-gradient|shuffle) \S+ \(here'

part "lines, and which wins"
cat >a.conf <<'END'
# a comment
network mlp
--data-dir = set   # another
batch_size=5

lr 0.3
check
no-shuffle
cuda-graph
END
echo 'lr = 0.4' >b.conf
train 1 --config a.conf
expect 'network=mlp, .*shuffle=0, .*batch_size=5, .*lr=0.3, .*cuda_graph=1, .*check=true'
train 3 --config a.conf --config=b.conf
expect ' lr=0.4, '
train 1 --lr 0.5 --config a.conf --config b.conf
expect ' lr=0.5, '

cat >quoted.conf <<'END'
network "mlp"	# one
--data-dir='set'
metrics-file = "my # file.jsonl"
log it's.log
END
train 1 --config quoted.conf --check
expect 'network=mlp, .*data_dir=set, .*metrics_file=my # file\.jsonl, '
expect "log=it's\\.log"

part "what is wrong"
echo 'model-prefix "out/my run' >c.conf
refuse 2 'c.conf:1: model-prefix: "out/my run: a quotation mark \("\) begins the value, so another one' c.conf
echo "fixed 'fc1*','fc2*'" >c.conf
refuse 2 "c.conf:1: fixed: 'fc1\*','fc2\*': a quotation mark \('\) begins the value" c.conf
printf 'seed 1\n\nbatch-seize 4\n' >c.conf
refuse 2 'c.conf:3: unknown option --batch-seize; the nearest known one is --batch-size' c.conf
echo 'lr = much' >c.conf
refuse 2 'c.conf:1: --lr: "much" is not a finite number' c.conf
echo 'config a.conf' >c.conf
refuse 2 'c.conf:1: config: a file cannot name another' c.conf
echo '= 4' >c.conf
refuse 2 'c.conf:1: "= 4": write an option as "name value"' c.conf
refuse 2 'none.conf: ' none.conf
head -c 500 P-run.json >cut.json
refuse 2 'cut.json, line \d+, column \d+: is no JSON: ' cut.json
echo '{"a": [1, {"b": "]"}]}' >cut.json
refuse 2 'cut.json: has no list "given" of a run' cut.json
sed 's/"lr": 0.07/"lr": [0.07]/' P-run.json >list.json
refuse 2 'list.json:\d+: lr: a text without a zero byte, a number, true or false is needed' list.json
sed 's/"lr": 0.07/"lr": 0.7, "lr": 0.07/' P-run.json >twice.json
refuse 2 'twice.json, line \d+: has two members "lr"' twice.json
printf '{"given": ["network", "log"], "options": {"network": "m\\u006cp", "fixed": null}}' >short.json
train 1 --config short.json --data-dir set --check
expect 'network=mlp, '
sed 's/"lr": 0.07/"lr": "high"/' P-run.json >bad.json
line=$(grep -n '"high"' bad.json | head -n 1 | cut -d : -f 1)
refuse 2 "bad.json:$line: --lr: \"high\" is not a finite number" bad.json
finish
