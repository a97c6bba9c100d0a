#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# HDF5 data files read by h5py, without our code: names, shapes, types, attributes, checksums, and the
# images themselves.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export LC_ALL=C
JPEG=$BUILDDIR/mpi_tests/lib/make_jpeg
log=tool.log

if [ ! -x "$JPEG" ] || ! has_files; then
	echo "skip: this build lacks libjpeg or HDF5"
	exit 77
fi
python=$(find_h5py)
if [ -z "$python" ]; then
	echo "skip: no python3 has h5py (Debian: python3-h5py)"
	exit 77
fi

mkdir -p set/ant set/bee
for i in 1 2 3; do "$JPEG" write set/ant/$i.jpg 32 24 rgb $i; done
"$JPEG" write set/bee/4.jpg 32 24 grey 4
"$BUILDDIR/h5rec" set encoded.h5 >"$log" && "$BUILDDIR/h5rec" set raw.h5 --raw >"$log" || fail "h5rec: $(cat "$log")"
# What libjpeg makes of them: a byte for make_jpeg's label, then planes.
for f in set/*/*.jpg; do "$JPEG" read "$f"; done >planes

cat >read.py <<'END'
import sys, zlib
import h5py
import numpy as np


def check(what, got, want):
    if got != want:
        print("failed: %s: %r, not %r" % (what, got, want))
        sys.exit(1)


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def check_file(f, kind, arrays):
    check("names", sorted(f.keys()), sorted(arrays))
    for name, (shape, dtype, units) in arrays.items():
        array = f[name]
        check(name + " shape", array.shape, shape)
        check(name + " dtype", array.dtype.str, dtype)
        check(name + " units", text(array.attrs["units"]), units)
        check(name + " chunks", array.chunks, None)
        crc = zlib.crc32(array[()].tobytes())
        check(name + " checksum", text(array.attrs["checksum"]), "crc32:%08x" % crc)
    check("format", text(f.attrs["format"]), "muster-data")
    check("version", int(f.attrs["version"]), 1)
    check("kind", text(f.attrs["kind"]), kind)
    check("count", int(f.attrs["count"]), 4)
    check("creator", text(f.attrs["creator"]), "h5rec")
    check("labels", f["labels"][:, 0].tolist(), [0, 0, 0, 1])
    check("ids", f["ids"][()].tolist(), [0, 1, 2, 3])
    check("classes", [text(name) for name in f["classes"][()]], ["ant", "bee"])


paths = ["set/ant/1.jpg", "set/ant/2.jpg", "set/ant/3.jpg", "set/bee/4.jpg"]
files = [open(path, "rb").read() for path in paths]
common = {"labels": ((4, 1), "<f4", "1 (number of a class, or a value)"), "ids": ((4,), "<u8", "1"),
          "classes": ((2,), "|S4", "text")}
with h5py.File("encoded.h5", "r") as f:
    size = sum(len(one) for one in files)
    check_file(f, "encoded", dict(common, images=((size,), "|u1", "bytes"),
                                  offsets=((5,), "<u8", "bytes")))
    ends = f["offsets"][()].tolist()
    for i, one in enumerate(files):
        check("image %d" % i, f["images"][ends[i]:ends[i + 1]].tobytes(), one)
    # By a decoder of others, where there is one.
    try:
        import io
        from PIL import Image
        check("decoded", Image.open(io.BytesIO(f["images"][0:ends[1]].tobytes())).size, (32, 24))
    except ImportError:
        print("no PIL: images are not decoded in Python")
with h5py.File("raw.h5", "r") as f:
    check_file(f, "raw", dict(common, images=((4, 24, 32, 3), "|u1",
                                "1 (pixel values from 0 to 255)")))
    planes = np.fromfile("planes", np.uint8).reshape(4, 3, 24, 32)
    check("pixels", bool((f["images"][()] == planes.transpose(0, 2, 3, 1)).all()), True)
print("all is as it should be")
END
$python read.py >"$log" 2>&1
expect '^all is as it should be$'
grep '^no ' "$log"
finish
