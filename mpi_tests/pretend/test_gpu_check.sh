#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# @tier full @timeout 600
# jobs/gpu-check.sh itself: packed, and run on a machine without GPU, CUDA and network, where the report says what is
# missing; and whole on a pretended GPU (pretend.sh), with ncu, compute-sanitizer, nvidia-smi and PyTorch that print
# what is known, so that sums and ratios of the report have a closed form.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
# shellcheck source=mpi_tests/pretend/pretend.sh
. "$SRCDIR/mpi_tests/pretend/pretend.sh"
pretended=$PWD
[ "$(mpi_kind)" = mpich ] || { echo "skipped: gpu-check packs MPICH's launcher" && exit 77; }
is_sanitized && echo "skipped: a program with sanitizers is not packed" && exit 77

report=out/gpu-check.md
# reported REGEX: a line of the report
reported() {
	grep -Eq "$1" $report 2>/dev/null || fail "no '$1' in the report"
}
# whole: the JSON is sound, and has every list
python=$(command -v python3)
whole() {
	[ -n "$python" ] || return
	"$python" - <<-END || fail "out/gpu-check.json is not sound"
		import json
		report = json.load(open("out/gpu-check.json"))
		assert [p["name"] for p in report["parts"]] == "$1".split(), report["parts"]
		for name in "facts smoke tests ceilings kernels model speeds ratios".split():
		    assert name in report, name
	END
}
all="machine smoke ceilings tests sanitizer kernels speeds peer tuned"

part "pack"
cat >configurations <<'END'
# tiny
lenet float16  4 1 --network lenet --image-shape 1,20,20
small float32  2 2 --network resnet --num-layers 8 --image-shape 3,16,16 --num-classes 10
other float16  2 1 --network resnet-v1 --num-layers 8 --image-shape 3,16,16 --num-classes 10
lenet float16  2 1 --network lenet --image-shape 1,20,20
lenet float32 64 1 --network mlp --image-shape 1,4,4
END
export CONFIGURATIONS=$PWD/configurations
env -u LD_LIBRARY_PATH "$SRCDIR/jobs/gpu-check.sh" pack --build "$BUILDDIR" pack >out.txt 2>&1 ||
	fail "pack ends with $?: $(tail -3 out.txt)"
[ "$(stat -c %s pack/muster-gpu.tar.gz)" -lt 64000000 ] || fail "the pack is larger than 64 MB"
tar -tzf pack/muster-gpu.tar.gz >packed
[ "$(grep -cE '/(trainer|test_ops)\.(before|after)$' packed)" = 4 ] && ! grep -qE '/(trainer|test_ops)$' packed ||
	fail "programs are packed with the kernels in each"

part "no GPU, no CUDA, no network"
mkdir -p plain nothing
for f in bash sh env awk sed grep tar gzip tr cut sort head tail cat df stat find timeout mktemp mkdir rm ldd uname \
	nproc dirname readlink sleep wc ls chmod kill cp; do
	ln -sf "$(command -v $f)" plain/$f
done
apart="$(command -v unshare) -n"
$apart true 2>/dev/null || apart=
env -i HOME=/nonexistent PATH="$PWD/plain" CUDA_HOME=/nonexistent SEARCHED="$PWD/nothing" $apart timeout 100 \
	"$PWD/plain/bash" pack/gpu-check.sh run pack out >out.txt 2>&1 ||
	fail "without a GPU it ends with $?: $(tail -5 out.txt)"
whole "$all"
reported '^\| machine \| done \|.*missing: .*nvidia-smi ncu compute-sanitizer python3; no GPU: .*libcuda.so.1'
for p in smoke ceilings tests sanitizer kernels speeds tuned; do
	reported "^\| $p \| skipped \| [0-9]+ \| .*libcuda.so.1: cannot open"
done
reported '^\| peer \| skipped \| [0-9]+ \| no python3'
reported '^\| /dev/shm \| [0-9]'
reported '^\| ulimit -l \| '

part "on a pretended GPU"
rm -rf out
mkdir -p tools toolkit
ln -s "$pretended" toolkit/lib64
cat >tools/nvidia-smi <<'END'
#!/bin/sh
case $* in
*name,driver*) echo "pretended, 580.1, 8192 MiB, 100 MiB, 1980 MHz, 1980 MHz, 3201 MHz" ;;
*pcie*) echo "5, 16, 5, 16, Default, 700 W" ;;
*memory.used*nounits*) echo 321 ;;
esac
END
cat >tools/ncu <<'END'
#!/bin/sh
while [ "${1#--}" != "$1" ]; do
	case $1 in
	--clock-control | --cache-control | --metrics | --print-units) shift ;;
	--log-file) log=$2 && shift ;;
	esac
	shift
done
"$@" || exit
cat >"$log" <<'CSV'
==PROF== Connected to process 1
"ID","Process ID","Kernel Name","Stream","Metric Name","Metric Unit","Metric Value"
"0","1","scale(cuda_scale)","7","dram__bytes.sum","byte","1,000"
"0","1","scale(cuda_scale)","7","gpu__time_duration.sum","nsecond","2,500"
"1","1","scale(cuda_scale)","7","dram__bytes.sum","byte","3,000"
"1","1","scale(cuda_scale)","7","gpu__time_duration.sum","nsecond","1,500"
"2","1","void cudnn::conv<float, int>(P)","7","dram__bytes.sum","byte","1996000"
"2","1","void cudnn::conv<float, int>(P)","7","gpu__time_duration.sum","nsecond","6000"
CSV
END
cat >tools/compute-sanitizer <<'END'
#!/bin/sh
[ "$1 $3 $4 $5 $6" = "--tool --error-exitcode 99 --report-api-errors no" ] || exit 3
echo "$2 $7" >>"$SANITIZED"
[ "$2 ${7##*/}" != "memcheck test_gpu" ] || exec echo "========= ERROR SUMMARY: 0 errors"
echo "========= ERROR SUMMARY: 3 errors"
exit 99
END
cat >tools/python3 <<'END'
#!/bin/sh
case $* in
*jobs/gpu/peer*)
	cat >/dev/null
	printf 'fact\tPyTorch\t2.9.0\n'
	printf 'speed\teager\tlenet\tfloat16\t4\t10.0,30.0,20.0\tchannels last\n'
	printf 'speed\tcompiled\tlenet\tfloat16\t4\t40.0\tcompile\n'
	printf 'speed\tieee\tsmall\tfloat32\t2\t50.0\tno TF32\n'
	printf 'speed\teager\tlenet\tfloat32\t64\t8.0\tTF32\n'
	printf 'speed\tieee\tlenet\tfloat32\t64\t4.0\tno TF32\n'
	;;
*cudnn_device*) echo '{"deviceName": "pretended"}' ;;
*) exit 1 ;;
esac
END
chmod +x tools/*
export PATH=$PWD/tools:$PATH CUDA_HOME=$PWD/toolkit
SANITIZED=$PWD/sanitized CONFIGURATIONS=$PWD/configurations TESTS="test_gpu test_recorded test_nccl" TINY=1 \
	MU_TIMEOUT_SCALE=4 timeout 500 pack/gpu-check.sh run pack out >out.txt 2>&1
[ $? = 1 ] || fail "not 1, but another status, where compute-sanitizer finds errors: $(tail -12 out.txt)"
whole "$all"
for p in smoke ceilings tests kernels speeds peer tuned; do
	reported "^\| $p \| done "
done
reported '^\| sanitizer \| failed \| [0-9]+ \| 1 of 3 without errors, 2 with'
reported '^\| lenet float16, no graphs \| done '
for t in test_gpu test_recorded test_nccl; do
	reported "^\| $t \| PASS \| [0-9]+ \|  \|"
done
reported '^\| memcheck over test_gpu \| PASS \|.*0 errors'
reported '^\| memcheck over test_ops \| FAIL \|.*3 errors'
for c in flops copy host; do
	reported "^\| $c \| [0-9.]+(e[-+0-9]+)? \| (TFLOP|GB)/s \|"
done
reported '^\| scale \| 2 \| 4.0 \| 0.00 \| 1 \|'
reported '^\| void cudnn::conv<float, int> \| 1 \| 6.0 \| 2.00 \| 333 \|'
reported '^\| softmax \| 1 \| 0 \| 0.00 \| 0.00 \| [0-9.]+ \| 0.0 \| - \|'
reported '^\| cuDNN and cuBLAS \| [0-9]+ \| 1 \| [0-9.]+ \| 2.00 \| [0-9.]+ \| 6.0 \| [0-9.]+ \|'
reported '^\| kernels \| done \| [0-9]+ \| lenet float16 4: 3 kernels of 2 names, 10 us, 0.002 GB, 200 GB/s'
awk -F ' [|] ' '/^. lenet [|] float16 [|] 4 [|]/ {
	n++
	if (!($4 > 0 && $5 == 20 && $8 == 40 && $9 - $4 / 20 < 0.1 && $4 / 20 - $9 < 0.1 && $14 == 321)) bad++
} END { exit bad || n != 1 }' $report || fail "the row of lenet: $(grep '^| lenet |' $report)"
rule='by the fixed rule [0-9.]+ s, by the fastest of each layer [0-9.]+ s[^|;]*'
reported "^\| tuned \| done \| [0-9]+ \| lenet: $rule other: $rule\|"
grep -q '^convolution0 ' out/convolutions-lenet.txt || fail "no table of convolutions"
reported '^\| small \| float32 \| 2 \| [0-9]+ \| - \| - \| 50 \| - \|'
reported '^\| lenet \| float32 \| 64 \| [0-9]+ \| 8 \| - \| 4 \| - \|.*\| device(\+calls)?;'
reported '^\| lenet \| float32, TF32 \| 64 \| [0-9]+ \| 8 \| - \| - \| - \| [0-9.]+ \|.*\| device\+tf32; TF32 \|'
grep -q 'device gpu: .*, float32 with TF32$' out/speeds.log || fail "no run with TF32"
reported '^\| opened libpretend.so \| .*libpretend.so'
reported '^\| libcudnn \| .*libpretend.so'
reported '^\| bytes of lenet float16 4 \| 0.002 GB of memory a step; [0-9]+ GB/s at the speed measured'
[ -s out/engines.txt ] || fail "no engines"
[ -s out/cudnn-device.json ] || fail "no description by cuDNN"

part "a GPU that hangs: the part ends, the next ones run"
cat >tools/nvidia-smi <<'END'
#!/bin/sh
exec sleep 100
END
rm -rf out
PARTS="machine peer" timeout 60 pack/gpu-check.sh run pack out >out.txt 2>&1
[ $? = 1 ] || fail "not 1, but another status: $(tail -3 out.txt)"
reported '^\| machine \| (failed|out of time) \|'
reported '^\| peer \| done \|'
finish
