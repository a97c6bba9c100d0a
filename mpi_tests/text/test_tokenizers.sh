#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @tier full
# tokenize beside Hugging Face's tokenizers, token by token: with a vocabulary that each of them trained, loaded by the
# other, on texts of MUSTER_TEXTS (a folder with *.txt), random ones and one with every character of Unicode.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
log=tool.log

for python in "${PYTHON:-python3}" python3; do
	"$python" -c 'import tokenizers, numpy' 2>/dev/null && break
	python=
done
if [ -z "$python" ]; then
	echo "skip: no python3 has tokenizers and numpy (pip install tokenizers numpy; PYTHON=DIR/bin/python)"
	exit 77
fi

cat >compare.py <<'END'
import glob, json, os, random, subprocess, sys
import numpy
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

TOOL = sys.argv[1]
END = "<|endoftext|>"
rng = random.Random(1)


def new():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    return t


def ours(text, folder, *options):
    """Token numbers that the tool gives; None if it fails."""
    with open("x.txt", "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    subprocess.run(["rm", "-rf", folder], check=True)
    subprocess.run([TOOL, folder, "x.txt", "--val-split", "0", "--no-end-of-text", *options],
                   check=True, stdout=subprocess.DEVNULL)
    with open(folder + "/train.bin", "rb") as f:
        head = numpy.fromfile(f, numpy.int32, 256)
        ids = numpy.fromfile(f, numpy.uint16)
    assert head[0] == 20240520 and head[1] == 1 and head[2] == len(ids) and not head[3:].any()
    return ids.tolist()


def words(n):
    parts = ["don't", "I'LL", "we're", "it's''s", " ", "  ", "\n", "\r\n", "\t", "   \n", "e\u0301", "\u00e9",
             "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u4e2d\u6587", "\u65e5\u672c\u8a9e",
             "\u0e01\u0e33", "\u0663\u0664", "\u00bd", "x\u00b2", "\u2028", "\u00a0", "\u3000", "\u200b", "\x00",
             "\x7f", "\u00ad", "12345", "3.14", "--", "...", "<|endoftext|>", "<|", "'", "''", "'d've", "\ufffd",
             "\u1680", "\x85", "\x1c", "a" * 60, "ab" * 40, "_", "\u0301", "the", " the", "\u043f\u0440"]
    return "".join(rng.choice(parts) for _ in range(n))


texts = [words(300) for _ in range(20)]
texts.append("".join(f"a{chr(c)}1{chr(c)} !{chr(c)}\n" for c in range(0x110000) if not 0xd800 <= c < 0xe000
                     and (c < 0x3000 or c % 7 == 0)))
texts += ["'", " ", "\n", "a", "  a", " \n a", "a  ", "'s", " 's", "'S", "\u3000x", "\u00a0\u00a0x", "ab" * 5000,
          "a" * 9999]
folder = os.environ.get("MUSTER_TEXTS", "")
for name in sorted(glob.glob(folder + "/*.txt")) if folder else []:
    texts.append(open(name, newline="").read())
corpus = texts[:20] + texts[35:]
size = 700

theirs = new()
trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=2, special_tokens=[END], show_progress=False,
                              initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
theirs.train_from_iterator(corpus, trainer)
theirs.save("theirs.json")
os.makedirs("pair", exist_ok=True)
theirs.model.save("pair")

names = []
for i, text in enumerate(corpus):
    names.append(f"corpus{i}.txt")
    open(names[-1], "w", newline="").write(text)
subprocess.run(["rm", "-rf", "trained"], check=True)
subprocess.run([TOOL, "trained", *names, "--train", "--vocab-size", str(size)], check=True)
mine = json.load(open("trained/tokenizer.json"))
other = json.load(open("theirs.json"))
merges = [m if isinstance(m, str) else " ".join(m) for m in other["model"]["merges"]]
assert mine["model"]["vocab"] == other["model"]["vocab"], "other vocabularies are trained"
assert mine["model"]["merges"] == merges, "other merges are trained"

loaded = Tokenizer.from_file("trained/tokenizer.json")
count = 0
for text in texts:
    want = theirs.encode(text).ids
    assert loaded.encode(text).ids == want
    for source in ("theirs.json", "trained", "pair"):
        got = ours(text, "out", "--tokenizer", source)
        assert got == want, f"other tokens by {source}: {text[:60]!r}: {got[:40]} {want[:40]}"
    back = subprocess.run([TOOL, "--decode", "out/train.bin"], check=True, stdout=subprocess.PIPE).stdout
    assert back == text.encode()
    count += len(want)
# What no str of Python can hold: the bytes come back.
for i in range(50):
    text = bytes(rng.randrange(256) for _ in range(200))
    ours(text, "out", "--tokenizer", "theirs.json")
    back = subprocess.run([TOOL, "--decode", "out/train.bin"], check=True, stdout=subprocess.PIPE).stdout
    assert back == text
print(f"{count} tokens of {len(texts)} texts are equal, and {len(merges)} merges")
END
"$python" compare.py "$BUILDDIR/tokenize" >"$log" 2>&1 || fail "$(tail -n 5 "$log")"
expect '^[0-9]+ tokens of [0-9]+ texts are equal'
tail -n 1 "$log"
finish
