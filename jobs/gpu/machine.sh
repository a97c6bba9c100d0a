# shellcheck shell=bash disable=SC2154 # variables of gpu-check.sh and run.sh
# SPDX-License-Identifier: Apache-2.0
# Sourced by jobs/gpu/run.sh: what the machine is, whether anything works at all, and the ceilings of the GPU.

# The folders of Python's packages that may hold CUDA's libraries: nvidia/*/lib, torch/lib, any other package's lib.
python_folders() {
	local python
	for python in python3 python; do
		command -v $python >/dev/null || continue
		timeout -k 1 10 $python - 2>/dev/null <<'TEXT' && return
import glob, os, sys
seen = set()
for pattern in ("nvidia/*/lib", "torch/lib", "*/lib"):
    for path in sys.path:
        for folder in sorted(glob.glob(os.path.join(path or ".", pattern))):
            names = ("libcudnn*.so*", "libcublas*.so*", "libnccl*.so*", "libcudart*.so*", "libnv*.so*")
            if folder not in seen and any(glob.glob(os.path.join(folder, name)) for name in names):
                seen.add(folder)
                print(folder)
TEXT
	done
}

# has PATTERN FOLDER...: is there such a file?
has() {
	local pattern=$1 folder
	shift
	for folder in "$@"; do
		compgen -G "$folder/$pattern" >/dev/null && return
	done
	return 1
}

# Folders with CUDA's libraries, each with a colon behind it: as pip unpacks them, the toolkit's, the loader's own; for
library_folders() {
	local file folder folders=()
	while read -r folder; do
		[ ! -d "$folder" ] || folders+=("$folder")
	done < <(python_folders; printf '%s\n' "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/nvidia/lib{64,})
	for file in libcudnn.so.9 'libcublas.so.1[23]' libnccl.so.2; do
		! has "$file" "${folders[@]}" || continue
		ldconfig -p 2>/dev/null | grep -q "^[[:space:]]*$file " && continue
		folder=$(timeout -k 1 6 find "${SEARCHED:-/}" -xdev \( -path /tmp -o -name stubs \) -prune -o \
			-name "$file" -print 2>/dev/null | head -n 1)
		[ -z "$folder" ] || folders+=("${folder%/*}")
	done
	[ ${#folders[@]} = 0 ] || printf '%s:' "${folders[@]}"
}

# Where the loader will find each library, and its full version by the file's name.
library_facts() {
	local pattern folder found
	for pattern in libcudnn.so.9 'libcublas.so.1[23]' libnccl.so.2; do
		found=
		for folder in ${libraries//:/ }; do
			found=$(compgen -G "$folder/$pattern" | head -n 1)
			[ -z "$found" ] || break
		done
		[ -n "$found" ] || found=$(ldconfig -p 2>/dev/null | sed -n "s|.*$pattern .*=> ||p" | head -n 1)
		[ -z "$found" ] || found=$(readlink -f "$found")
		fact "${pattern%%.*}" "${found:-not found}"
		[ -n "$found" ] || missing="$missing ${pattern%%.*}"
	done
}

query() {
	limited 5 nvidia-smi --format=csv,noheader "$@"
}

machine() {
	local text link missing=
	fact version "$(cat "$tree/version" 2>/dev/null)"
	fact kernel "$(uname -sr)"
	fact processor "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores"
	fact "C library" "$(ldd --version 2>/dev/null | head -n 1)"
	fact "/dev/shm" "$(df -h /dev/shm 2>/dev/null | awk 'NR == 2 { print $2 ", free " $4 }')"
	fact "ulimit -l" "$(ulimit -l)"
	fact "folders of libraries" "$cuda_folders"
	library_facts
	for text in nvidia-smi ncu compute-sanitizer python3; do
		command -v $text >/dev/null || missing="$missing $text"
	done
	text=$(no_gpu)
	[ -z "$text" ] || missing="$missing; no GPU: $text"
	text=
	cudnn_device
	if command -v nvidia-smi >/dev/null; then
		text=$(query --query-gpu=name,driver_version,memory.total,memory.used) ||
			{ echo "nvidia-smi: $text" && return 1; }
		fact "GPU, driver, memory, memory in use" "$text"
		fact "clocks: now, maximum, memory's; power limit; compute mode" \
			"$(query --query-gpu=clocks.sm,clocks.max.sm,clocks.max.mem,power.limit,compute_mode)"
		link=pcie.link.gen
		fact "PCIe: generation and width, and the most" \
			"$(query --query-gpu=$link.current,pcie.link.width.current,$link.max,pcie.link.width.max)"
		fact "processes on the GPU" "$(query --query-compute-apps=pid,used_memory)"
	fi
	echo "${text:-no nvidia-smi}${missing:+; missing:$missing}"
}

# cuDNN's description of the GPU, for plans that are made without one.
cudnn_device() {
	local text
	command -v python3 >/dev/null || return
	text=$(ours limited 8 python3 "$tree/jobs/gpu/cudnn_device" 2>&1 >"$out/cudnn-device.json") || {
		rm -f "$out/cudnn-device.json"
		fact "cuDNN's description of the GPU" "none: $(tail -n 1 <<<"$text")"
		return
	}
	fact "cuDNN's description of the GPU" "cudnn-device.json, $(wc -c <"$out/cudnn-device.json") bytes"
}

# The libraries that a run of the trainer has mapped, by their real names (libpretend: test_gpu_check's).
opened_libraries() {
	local pid=$1 maps
	while kill -0 "$pid" 2>/dev/null; do
		maps=$(grep -ls " $tree/trainer$" /proc/[0-9]*/maps)
		# shellcheck disable=SC2086 # a list of words
		[ -z "$maps" ] || sed -n \
			's/.* \(\/.*lib\(cuda\|cublas\|cublasLt\|cudnn[a-z_]*\|nccl\|pretend\)\.so[.0-9]*\)$/\1/p' \
				$maps 2>/dev/null | sort -u >"$work/maps.new"
		[ ! -s "$work/maps.new" ] || sort -u "$work/maps.new" "$work/maps" -o "$work/maps"
		sleep 0.1
	done
}

# smoke_run NAME OPTION...: a few steps, or, with TINY set, two small ones; its loss is a number.
smoke_run() {
	local name=$1 st pid batch=$((${TINY:+1}0 ? 8 : 64))
	shift
	ours limited 10 "$tree/trainer" --gpus 0 --benchmark 1 --num-examples $((2 * batch * batch / 8)) \
		--batch-size $batch --num-epochs 1 --lr 0.01 --verbose 1 "$@" >"$work/smoke.log" 2>&1 &
	pid=$!
	opened_libraries $pid &
	wait $pid
	st=$?
	wait
	{ echo "== $name: exit status $st" && cat "$work/smoke.log"; } >>"$out/smoke.log"
	if [ $st = 0 ] && grep -q 'Epoch\[0\] Train-cross-entropy=[0-9]' "$work/smoke.log"; then
		record smoke "$name" "done" "$(sed -n 's/.*trained .*: //p' "$work/smoke.log")"
		return 0
	fi
	record smoke "$name" failed "exit status $st: $(grep -m 1 'error: ' "$work/smoke.log" ||
		tail -n 1 "$work/smoke.log")"
	return 1
}

smoke() {
	local bad=0
	ours limited 10 "$tree/trainer" --info >"$out/info.txt" 2>&1 ||
		{ echo "trainer --info ends with $?: $(tail -n 1 "$out/info.txt")" && return 1; }
	fact CUDA "$(sed -n 's/^CUDA: *//p' "$out/info.txt")"
	needs_gpu || return 77
	: >"$work/maps"
	smoke_run mlp --network mlp || bad=$((bad + 1))
	smoke_run "lenet float16" --network lenet --dtype float16 --loss-scale 128 || bad=$((bad + 1))
	smoke_run "lenet float16, no graphs" --network lenet --dtype float16 --loss-scale 128 --cuda-graph 0 ||
		bad=$((bad + 1))
	smoke_run "lenet bfloat16, NCCL" --network lenet --dtype bfloat16 --kv-store nccl_allreduce || bad=$((bad + 1))
	while read -r library; do
		fact "opened ${library##*/}" "$(readlink -f "$library")"
	done <"$work/maps"
	echo "$((4 - bad)) of 4 runs; $(wc -l <"$work/maps") libraries of CUDA opened;" \
		"$(sed -n 's/^CUDA: *//p' "$out/info.txt" | head -n 1)"
	[ $bad = 0 ]
}

# The trainer measures the GPU before its table of layers.
ceilings() {
	local dtype batch options name value unit
	needs_gpu || return 77
	read -r _ dtype batch _ options < <(configurations)
	# shellcheck disable=SC2086 # words
	ours limited 20 "$tree/trainer" $options --gpus 0 --dtype "$dtype" --batch-size "$batch" --benchmark 1 \
		--num-examples $((4 * batch)) --num-epochs 1 --lr 0.01 --verbose 1 --profile >"$out/profile.log" 2>&1 ||
		{ echo "trainer --profile ends with $?: $(grep -m 1 'error: ' "$out/profile.log")" && return 1; }
	awk 'match($0, /time at [0-9.]+ GFLOP\/s or at [0-9.]+ GB\/s/) {
			split(substr($0, RSTART), w, " ")
			print "flops\t" w[3] / 1e3 "\tTFLOP/s"
			print "copy\t" w[7] "\tGB/s"
		}
		match($0, /host to device: [0-9.]+ GB\/s/) {
			split(substr($0, RSTART), w, " ")
			print "host\t" w[4] "\tGB/s"
		}' "$out/profile.log" >"$work/ceilings"
	while IFS=$'\t' read -r name value unit; do
		record ceiling "$name" "$value" "$unit"
	done <"$work/ceilings"
	grep ' engine of ' "$out/profile.log" | sed 's/.*engine of /engine of /' >"$out/engines.txt"
	[ -s "$out/engines.txt" ] || rm -f "$out/engines.txt"
	[ -s "$work/ceilings" ] || { echo "no ceilings in profile.log" && return 1; }
	echo "$dtype: $(awk '{ printf "%s%s %.0f %s", (n++ ? ", " : ""), $1, $2, $3 }' "$work/ceilings");" \
		"$(grep -c . "$out/engines.txt" 2>/dev/null || echo 0) lines of engines in engines.txt"
}
