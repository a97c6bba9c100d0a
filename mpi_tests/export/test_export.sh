#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @timeout 900
# muster export: every network as a model of ONNX, which onnx checks and onnxruntime runs, with the outputs of
# --predict; and what is refused. The bytes of a file, without Python: test_onnx.c.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

needs_files
export OMP_NUM_THREADS=1
muster=$BUILDDIR/muster
small_set set 40 20
plain="--batch-size 10 --num-epochs 1 --log-prefix none --log-time 0"
train 1 --network mlp --data-dir set $plain --model-prefix m

# refuse STATUS TEXT WORDS...: one line
refuse() {
	local status=$1 text=$2 is
	shift 2
	"$muster" export "$@" >"$log" 2>&1
	is=$?
	[ $is = $status ] || fail "muster export $*: exit status $is, not $status"
	[ "$(wc -l <"$log")" = 1 ] || fail "muster export $*: $(wc -l <"$log") lines"
	expect "$text"
}

part "what is wrong is told in a line"
refuse 2 '^muster: error: muster export FILE.h5 FILE.onnx: a checkpoint, and the file to write, come first$' m-0001.h5
refuse 2 'error: --export m.h5: a name that ends in .onnx is needed$' m-0001.h5 m.h5
refuse 2 'error: none.h5: cannot be opened' none.h5 m.onnx
refuse 2 'error: no/m.onnx: cannot be written' m-0001.h5 no/m.onnx
refuse 2 'error: --export-opset 18: 17 and 23 are written$' m-0001.h5 m.onnx --export-opset 18
refuse 2 'error: --export-pixels: m-0001.h5 was not trained with images of pixels, but with values$' \
	m-0001.h5 m.onnx --export-pixels
refuse 2 'error: --network lenet: m-0001.h5 was saved with network mlp; leave the option out' \
	m-0001.h5 m.onnx --network lenet
echo text >mine.onnx
refuse 2 'error: --export mine.onnx: there is such a file, which Muster did not write' m-0001.h5 mine.onnx
[ "$(cat mine.onnx)" = text ] || fail "mine.onnx was written"
"$BUILDDIR/muconvert" m-0001.h5 m.params >"$log" && "$BUILDDIR/muconvert" m.params alone.h5 >"$log" || fail "muconvert"
refuse 2 'error: --export: alone.h5 does not say of which network its parameters are: --network NAME is needed$' \
	alone.h5 m.onnx
"$TRAINER" --network mlp --export m.onnx >"$log" 2>&1 && fail "a model without parameters"
expect '^trainer: error: --export needs --load FILE: the parameters to write$'
rm -f ./*.onnx
"$muster" export alone.h5 m.onnx --network mlp --image-shape 1,28,28 >"$log" 2>&1 || fail "alone.h5: $(cat "$log")"
"$muster" export m-0001.h5 again.onnx >"$log" 2>&1 || fail "m-0001.h5: $(cat "$log")"
expect '^again.onnx: opset 17, 0\.4 MB$'
[ "$(stat -c %s m.onnx)" -le "$(stat -c %s again.onnx)" ] || fail "parameters alone make a larger model"
"$muster" export m-0001.h5 again.onnx >"$log" 2>&1 || fail "a model is not replaced: $(cat "$log")"

if ! grep -q '^EXPORT_DYNAMIC = *$' "$BUILDDIR/Makefile"; then
	CC=$(sed -n 's/^CC = //p' "$BUILDDIR/Makefile")
	for kind in layers volumes own; do
		$CC -O2 -std=c11 -shared -fPIC -D${kind^^} -I"$SRCDIR/include" "$SRCDIR/mpi_tests/export/layers_net.c" \
			-o $kind.so || fail "layers_net.c"
	done
	train 1 --network ./own.so --benchmark 1 --num-classes 5 --num-batches 1 $plain --model-prefix own
	refuse 2 'error: layer mine0, a mine, cannot be written as ONNX: there is no operation for it$' \
		own-0001.h5 own.onnx --network ./own.so
	[ ! -e own.onnx ] || fail "own.onnx was begun"
fi

python=$(find_python "numpy, onnx, onnxruntime")
if [ -z "$python" ]; then
	echo "no python3 has numpy, onnx and onnxruntime (PY=... names one): no model was run"
	finish
fi

cat >check.py <<'END'
"""data.py, check.py: random samples; a model against predictions."""
import sys
import numpy as np

rng = np.random.default_rng(3)


def samples(shape, classes, n=6):
    np.save("x.npy", rng.standard_normal((n, *shape)).astype(np.float32))
    if classes > 0:
        np.save("y.npy", np.resize(np.arange(classes)[::-1], n).astype(np.int32))
    else:
        np.save("y.npy", rng.random((n, -classes)).astype(np.float32))


def tokens(steps, classes, n=5):
    t = rng.integers(0, classes, steps * n + 1).astype(np.uint16)
    head = np.zeros(256, np.int32)
    head[:3] = 20240520, 1, len(t)
    open("t.bin", "wb").write(head.tobytes() + t.tobytes())
    np.save("x.npy", t[:-1].reshape(n, steps).astype(np.int64))
    np.save("y.npy", t[1:].reshape(n, steps).astype(np.int64))


def cifar(n=20):
    """A set of CIFAR-10's form; samples are the pixels to validate with."""
    for name in ("data_batch_1", "test_batch"):
        records = rng.integers(0, 256, (n, 3073)).astype(np.uint8)
        records[:, 0] %= 10
        records.tofile("cifar/%s.bin" % name)
    np.save("x.npy", records[:, 1:].reshape(n, 3, 32, 32).astype(np.float32))


def check(model, limit, words):
    import onnx
    import onnxruntime
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes_path(model, "shapes.onnx", strict_mode=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    x, want = np.load("x.npy"), np.load("p.npy")
    got = session.run(["output"], {"input": x})[0]
    one = session.run(["output"], {"input": x[:1]})[0]  # another batch
    most = np.abs(got).max()
    if words:  # probabilities of the tokens
        got = np.take_along_axis(got, np.load("y.npy")[..., None], 2)[..., 0]
        one = np.take_along_axis(one, np.load("y.npy")[:1, :, None], 2)[..., 0]
        want = np.exp(want)
    assert got.shape == want.shape, (got.shape, want.shape)
    assert np.isfinite(got).all() and np.ptp(got) > 1e-3 * most, "outputs that tell nothing"
    off = max(np.abs(got - want).max(), np.abs(one - want[:1]).max()) / most
    print("difference %.1e of the largest output" % off)
    assert off <= limit, off


if sys.argv[1] == "samples":
    samples([int(d) for d in sys.argv[2].split(",")], int(sys.argv[3]))
elif sys.argv[1] == "tokens":
    tokens(int(sys.argv[2]), int(sys.argv[3]))
elif sys.argv[1] == "cifar":
    cifar()
else:
    check(sys.argv[2], 1e-5, sys.argv[1] == "words")
END

# same KIND FILE OPTION...: the model of FILE computes p.npy
same() {
	local kind=$1 file=$2
	shift 2
	"$muster" export "$file" n.onnx "$@" >"$log" 2>&1 || fail "muster export $file $*: $(tail -n 3 "$log")"
	$python check.py "$kind" n.onnx >"$log" 2>&1 || fail "$name $*: $(tail -n 3 "$log")"
	printf '%-24s %-18s %s\n' "$name" "$*" "$(cat "$log")"
}

# pictures NAME SHAPE OPTION...: a network after some steps
pictures() {
	name=$1
	local shape=$2 classes=$3 own=
	shift 3
	case $name in ./*) own="--network $name" ;; esac
	$python check.py samples "$shape" "$classes"
	train 1 --network $name --data-train x.npy --label-train y.npy --num-classes ${classes#-} --batch-size 6 \
		--num-epochs 3 --lr 0.002 --model-prefix n --overwrite 1 "$@"
	train 1 $own --load n-0003.h5 --data-val x.npy --label-val y.npy --predict p.npy
	same values n-0003.h5 $own
	same values n-0003.h5 $own --export-fold
}

part "pixels, which the model normalises"
name=resnet
mkdir -p cifar
$python check.py cifar
train 1 --network resnet --data-dir cifar --image-shape 3,32,32 --rgb-mean 120,110,100 --rgb-std 60,50,70 \
	--batch-size 10 --num-epochs 2 --lr 0.01 --model-prefix n
train 1 --load n-0002.h5 --data-dir cifar --predict p.npy
same values n-0002.h5 --export-pixels
LC_ALL=C tr -c '[:print:]' '\n' <n.onnx >"$log"
expect 'pixels from 0 to 255, channels red, green, blue'
"$muster" export n-0002.h5 n.onnx >"$log" || fail "muster export"
LC_ALL=C tr -c '[:print:]' '\n' <n.onnx >"$log"
expect '\(pixel - rgb-mean\) / rgb-std of pixels from 0 to 255'
expect 'rgb-mean'
expect '120,110,100'
$python check.py values n.onnx >"$log" 2>&1 && fail "a model of normalised values computes the same with pixels"

part "networks of pictures"
pictures mlp 1,28,28 10
pictures lenet 1,28,28 10
pictures resnet 3,28,28 10
pictures inception-bn-28-small 3,28,28 10
pictures mobilenet-0.25 3,32,32 10
pictures vit-tiny 3,32,32 10 --num-layers 2
if in_tier full; then
	pictures resnet-v1 3,32,32 10 --num-layers 20
	pictures resnext 3,64,64 10 --num-layers 50
	pictures googlenet 3,64,64 10
	pictures vgg-bn 3,32,32 10 --num-layers 11
	pictures alexnet 3,67,67 10
	pictures inception-bn 3,224,224 10
	pictures inception-v3 3,299,299 10
fi

part "layers that these have not, pictures and volumes, and other objectives"
if [ -f layers.so ]; then
	pictures ./layers.so 2,12,12 5
	pictures ./volumes.so 2,6,6,6 -5 --objective bce
	pictures ./volumes.so 2,6,6,6 -3 --objective mse
fi

# sentences NAME STEPS CLASSES OPTION...
sentences() {
	name=$1
	local steps=$2 classes=$3
	shift 3
	$python check.py tokens $steps $classes
	train 1 --network $name --data-train t.bin --num-classes $classes --seq-len $steps --batch-size 2 \
		--num-epochs 2 --lr 0.01 --model-prefix n --overwrite 1 "$@"
	train 1 --load n-0002.h5 --data-val t.bin --predict p.npy
	same words n-0002.h5
	same words n-0002.h5 --export-opset 23
}

part "networks of sequences"
sentences lstm 7 20 --num-hidden 16 --num-embed 12 --num-layers 2
sentences gpt2 12 40 --num-layers 2 --num-hidden 32 --num-heads 4 --num-positions 16
sentences llama 12 40 --num-layers 2 --num-hidden 32 --num-heads 4 --num-kv-heads 2
finish
