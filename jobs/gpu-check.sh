#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All that needs a GPU, in one call on a machine that has one: tests, speeds beside PyTorch's, a profile. Such a machine
# may have no package manager, compiler, MPI, HDF5 or oneDNN, so there are two halves:
#
#	jobs/gpu-check.sh pack DIR        here: build with CUDA, and put all that runs, with its libraries, into DIR
#	DIR/gpu-check.sh run DIR OUT      there: within 9 minutes, OUT/gpu-check.json, OUT/gpu-check.md and the logs
#
# The machine with the GPU needs its driver, cuDNN, cuBLAS and NCCL (of the CUDA toolkit, or as pip unpacks them), bash,
# awk and tar; Python with PyTorch for the comparison. Each part has a time limit, and none ends the others: what cannot
# run is in the report with the reason. See --help.
set -u
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
limit_mb=50  # of a pack
all_seconds=510  # of a run; what is left of 540 is for the report and slow disks
archive=muster-gpu.tar.gz

usage() {
	cat <<TEXT
usage: jobs/gpu-check.sh pack [--build DIR] [--configure OPTION]... PACK
       PACK/gpu-check.sh run PACK OUT

  pack  build trainer, tests and tools with CUDA, and write PACK/$archive (less than $limit_mb MB): programs, the
        shared libraries they need, MPICH's launcher, and the tests that say @gpu in their first lines
    --build DIR          take this build, which must have CUDA, in place of a new one in build-gpu
    --configure OPTION   for configure, such as --with-cuda=/opt/cuda
  run   unpack it to a temporary folder and write into OUT
          gpu-check.json, gpu-check.md   all results: facts, tests, speeds (medians), and how each part ended
          info.txt tests.log speeds.log peer.log profile.log   what the programs printed
        parts: machine info tests speeds peer profile; PARTS="info tests" in the environment runs these alone
exit status of run: 0 if no part failed (also where there is no GPU), else 1
TEXT
}

die() {
	printf 'gpu-check: %s\n' "$*" >&2
	exit 1
}

wrong() {
	printf 'gpu-check: %s; --help tells more\n' "$*" >&2
	exit 2
}

# ---- pack ----

# Libraries that every Linux has, and that must be its own.
is_of_system() {
	case ${1##*/} in
	ld-linux*.so* | libc.so* | libm.so* | libpthread.so* | libdl.so* | librt.so* | libresolv.so* | libutil.so* | \
		libanl.so* | libnsl.so* | libnss_*.so*) return 0 ;;
	esac
	return 1
}

# The shared libraries of programs, and of these libraries, one a line; an error if one is not found.
libraries_of() {
	local lines
	lines=$(ldd "$@") || die "ldd fails on $*"
	if grep -q 'not found' <<<"$lines"; then
		die "shared libraries are not found: $(grep 'not found' <<<"$lines" | sort -u | tr -s '\t\n' ' ')"
	fi
	awk '$2 == "=>" && $3 ~ /^\// { print $3 }' <<<"$lines" | sort -u
}

build_with_cuda() {
	local top=$here/..
	build=$top/build-gpu
	[ -x "$top/configure" ] || (cd "$top" && ./bootstrap) || die "bootstrap failed"
	mkdir -p "$build" || die "cannot make $build"
	if [ ! -f "$build/Makefile" ]; then
		(cd "$build" && ../configure -q --with-cuda "${configure_options[@]}") ||
			die "configure --with-cuda ${configure_options[*]} failed; see $build/config.log"
	fi
	make -C "$build" -s -j "$(nproc)" check-programs || die "the build in $build failed"
}

# launcher_of NAME: MPICH's, by the folder of the build's mpirun or in the PATH
launcher_of() {
	local mpirun found
	mpirun=$(sed -n 's/^MPIRUN = //p' "$build/Makefile")
	found=$(dirname "$(readlink -f "$(command -v "${mpirun%% *}")")")/$1
	[ -x "$found" ] || found=$(command -v "$1") || die "there is no $1, of MPICH's launcher Hydra"
	echo "$found"
}

# The files that go along, into the folder $stage, as in a build folder.
stage_files() {
	local top=$here/.. test name program
	mkdir -p "$stage/bin" "$stage/lib" "$stage/lib-fallback" "$stage/mpi_tests" "$stage/jobs/gpu"
	for program in trainer measure mubench parse_log digits; do
		cp "$build/$program" "$stage/" || die "there is no $build/$program"
	done
	for program in mpiexec.hydra hydra_pmi_proxy; do
		cp "$(launcher_of $program)" "$stage/bin/" || exit 1
	done
	cat >"$stage/bin/mpirun" <<'TEXT'
#!/bin/sh
# All ranks on this machine, without looking any name up.
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/mpiexec.hydra" -launcher fork -localhost 127.0.0.1 "$@"
TEXT
	chmod 755 "$stage/bin/mpirun"
	for test in "$top"/mpi_tests/*/test_*.c "$top"/mpi_tests/*/test_*.sh; do
		sed -n 1,20p "$test" | grep -q '@gpu' || continue
		name=${test#"$top"/}
		mkdir -p "$stage/${name%/*}"
		cp "$test" "$stage/$name"
		echo "${name##*/}" >>"$stage/tests"
		case $name in
		*.c) cp "$build/${name%.c}" "$stage/${name%.c}" || die "${name%.c} is not built" ;;
		esac
	done
	mkdir -p "$stage/mpi_tests/lib"
	cp -R "$top"/mpi_tests/{run,golden} "$stage/mpi_tests/" &&
		cp "$top"/mpi_tests/lib/{lib.sh,lsan.supp} "$build/mpi_tests/lib/same_model" "$stage/mpi_tests/lib/" ||
		die "mpi_tests lacks what its tests need"
	cp "$here/gpu/peer" "$here/gpu/report.awk" "$stage/jobs/gpu/" || die "jobs/gpu is not whole"
	git -C "$top" describe --always --dirty >"$stage/version" 2>/dev/null
}

stage_libraries() {
	local programs libraries library
	mapfile -t programs < <(find "$stage" -type f -perm -100 -exec sh -c 'head -c 4 "$1" | grep -q ELF' _ {} \; \
		-print)
	strip "${programs[@]}" || die "strip failed"
	libraries=$(libraries_of "${programs[@]}") || exit 1
	for library in $libraries; do
		is_of_system "$library" && continue
		case ${library##*/} in
		libstdc++.so* | libgcc_s.so*) cp -L "$library" "$stage/lib-fallback/" ;;
		libcuda* | libcublas* | libcudnn* | libnccl*)
			die "a program is linked with $library, which it should open itself"
			;;
		*) cp -L "$library" "$stage/lib/" ;;
		esac || die "cannot copy $library"
	done
	strip --strip-unneeded "$stage"/lib/* 2>/dev/null
}

pack() {
	local pack='' nbytes
	build='' configure_options=()
	while [ $# -gt 0 ]; do
		case $1 in
		--build | --configure) [ $# -ge 2 ] || wrong "$1: a value is missing" ;;
		esac
		case $1 in
		--build) build=$2 && shift ;;
		--configure) configure_options+=("$2") && shift ;;
		-*) wrong "unknown option $1" ;;
		*)
			[ -z "$pack" ] || wrong "one folder is needed, not $1 too"
			pack=$1
			;;
		esac
		shift
	done
	[ -n "$pack" ] || wrong "pack: a folder is needed"
	mkdir -p "$pack" || die "cannot make $pack"
	[ -n "$build" ] || build_with_cuda
	[ -x "$build/trainer" ] || die "there is no $build/trainer"
	"$build/trainer" --info | grep -q '^CUDA: *not built in' && die "$build has no CUDA: configure it --with-cuda"
	work=$(mktemp -d) || die "no temporary folder"
	trap 'rm -rf "$work"' EXIT
	stage=$work/muster-gpu
	stage_files
	stage_libraries
	tar -C "$work" -czf "$pack/$archive" muster-gpu || die "cannot write $pack/$archive"
	[ "$here" -ef "$pack" ] || cp "$here/gpu-check.sh" "$pack/" || die "cannot write $pack/gpu-check.sh"
	nbytes=$(stat -c %s "$pack/$archive")
	[ "$nbytes" -lt $((limit_mb * 1000000)) ] || die "$pack/$archive has $nbytes bytes, more than $limit_mb MB"
	echo "$pack/$archive: $((nbytes / 1000)) kB, unpacked $(du -sk "$stage" | cut -f 1) KiB;" \
		"$(find "$stage/lib" -type f | wc -l) libraries, $(wc -l <"$stage/tests") files of tests"
}

# ---- run: what is recorded ----

# record FIELD...: one line of results, fields with tabs between them. Printable ASCII, so that the JSON is sound.
record() {
	local line field
	line=$1
	shift
	for field in "$@"; do
		line=$line$'\t'$(tr '\t\n' '  ' <<<"$field" | tr -cd '\40-\176' | sed 's/ *$//' | cut -c 1-400)
	done
	printf '%s\n' "$line" >>"$records"
}

fact() {
	[ -z "$2" ] || record fact "$1" "$2"
}

# The results so far as JSON and as Markdown; called after every part, so that a run that is killed leaves what it has.
report() {
	awk -F '\t' -v seconds="$SECONDS" -v markdown="$out/gpu-check.md" -f "$tree/jobs/gpu/report.awk" "$records" \
		>"$out/gpu-check.json"
}

# limited SECONDS COMMAND...: as timeout, and never longer than the run has left; 124 too where nothing is left.
limited() {
	local seconds=$1 left=$((all_seconds - SECONDS))
	shift
	[ "$seconds" -le $left ] || seconds=$left
	if [ "$seconds" -lt 2 ]; then
		echo "no time left of the run's $all_seconds s"
		return 124
	fi
	timeout -k 3 "$seconds" "$@"
}

# part NAME FUNCTION: runs it; it prints a line of text, and its status is 0, 77 = skipped, or a failure's.
part() {
	local begin=$SECONDS text st
	case " ${PARTS-$1} " in
	*" $1 "*) ;;
	*) return ;;
	esac
	text=$($2 2>>"$out/$1.stderr")
	st=$?
	[ $st = 0 ] || text="$text $(tail -n 1 "$out/$1.stderr" 2>/dev/null)"
	rm -f "$out/$1.stderr"
	case $st in
	0) st='done' ;;
	77) st=skipped ;;
	124 | 137) st='out of time' failed=1 ;;
	*) st=failed failed=1 ;;
	esac
	record part "$1" "$st" $((SECONDS - begin)) "$text"
	echo "gpu-check: $1: $st, $((SECONDS - begin)) s: $text"
	report
}

# ---- run: the parts ----

# Folders with CUDA's libraries: as pip unpacks them, and the toolkit's.
library_folders() {
	local python folder found=
	for python in python3 python; do
		command -v $python >/dev/null || continue
		found=$(limited 20 $python - 2>/dev/null <<'TEXT'
import glob, importlib.util, os
spec = importlib.util.find_spec("nvidia")
for path in spec.submodule_search_locations if spec else []:
    for folder in sorted(glob.glob(os.path.join(path, "*", "lib"))):
        if glob.glob(os.path.join(folder, "lib*.so*")):
            print(folder)
TEXT
)
		[ -z "$found" ] || break
	done
	for folder in $found "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/nvidia/lib64 /usr/local/nvidia/lib; do
		[ ! -d "$folder" ] || printf '%s:' "$folder"
	done
}

# Our programs, with the libraries that came along; Python has its own.
ours() {
	LD_LIBRARY_PATH=$libraries "$@"
}

machine() {
	local text
	fact version "$(cat "$tree/version" 2>/dev/null)"
	fact kernel "$(uname -sr)"
	fact processor "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores"
	fact "C library" "$(ldd --version 2>/dev/null | head -n 1)"
	fact "libraries of CUDA" "$cuda_folders"
	if ! command -v nvidia-smi >/dev/null; then
		echo "no nvidia-smi"
		return 0
	fi
	text=$(limited 20 nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader) ||
		{ echo "nvidia-smi: $text" && return 1; }
	fact GPU "$text"
	echo "$text"
}

info() {
	ours limited 60 "$tree/trainer" --info >"$out/info.txt" 2>&1 || { echo "trainer --info ends with $?:" \
		"$(tail -n 1 "$out/info.txt")" && return 1; }
	fact CUDA "$(sed -n 's/^CUDA: *//p' "$out/info.txt")"
	sed -n 's/^CUDA: *//p' "$out/info.txt" | head -n 1
}

# Why nothing can be measured; nothing if it can.
no_gpu() {
	ours limited 60 "$tree/trainer" --info 2>&1 | sed -n 's/^CUDA: *\(not built in\|built in, no device.*\)/\1/p'
}

# A test has a limit and a group of processes of its own, so that ours does not end it.
end_tests() {
	local left
	left=$(grep -lzs '^MU_TEST_RUN=' /proc/[0-9]*/environ | cut -d / -f 3)
	# shellcheck disable=SC2086 # a list of numbers
	[ -z "$left" ] || kill -KILL $left 2>/dev/null
}

tests() {
	local names line word name seconds text
	[ -s "$tree/tests" ] || { echo "the pack has no test with @gpu" && return 77; }
	mapfile -t names < <(sort -r "$tree/tests")
	export SRCDIR=$tree BUILDDIR=$tree MPIRUN=$tree/bin/mpirun TRAINER=$tree/trainer DIGITS=$tree/digits
	MU_TIER=full MU_JOBS=1 ours limited 150 "$tree/mpi_tests/run" "${names[@]%.c}" >"$out/tests.log" 2>&1
	line=$?
	end_tests
	while read -r word name seconds text; do
		case $seconds in
		np=*) name="$name $seconds" seconds=${text%% *} text=${text#* } ;;
		esac
		[ "$word" != PASS ] || text=$(grep -h -m 1 'skipped on' "$tree/mpi_tests/${name// np=/-np}.log")
		record test "$name" "$word" "${seconds%%s*}" "${text#"$seconds"}"
	done < <(grep -E '^(PASS|FAIL|SKIP) ' "$out/tests.log")
	echo "$(grep -c '^PASS ' "$out/tests.log") passed, $(grep -c '^FAIL ' "$out/tests.log") failed," \
		"$(grep -c '^SKIP ' "$out/tests.log") skipped"
	return $line
}

least() {
	echo $(($1 < $2 ? $1 : $2))
}

# Network, dtype, batch, steps of an epoch (about half a second of an H200), the trainer's options.
configurations="
	resnet-50              float16 128  30 --network resnet-v1 --num-layers 50 --image-shape 3,224,224
	resnet-50              float32 128  10 --network resnet-v1 --num-layers 50 --image-shape 3,224,224
	inception-bn-28-small  float32 128 150 --network inception-bn-28-small
	lenet                  float32  64 2000 --network lenet
	lstm                   float32  20  60 --network lstm
	lstm                   float16 256  40 --network lstm
	resnet-50              float16 256  15 --network resnet-v1 --num-layers 50 --image-shape 3,224,224
	resnet-50              float32 256   5 --network resnet-v1 --num-layers 50 --image-shape 3,224,224
	resnet-50              float32  64  20 --network resnet-v1 --num-layers 50 --image-shape 3,224,224
	inception-bn-28-small  float16 512  60 --network inception-bn-28-small
	inception-bn-28-small  float32 512  60 --network inception-bn-28-small
	lenet                  float32 512 1000 --network lenet
	lstm                   float16  20  60 --network lstm
	lstm                   float32 256  30 --network lstm
"
epochs=6     # the first is the warm-up, the others are the runs of a median
least_runs=3

# speed STORE NETWORK DTYPE BATCH STEPS OPTION...: one configuration; what was done in time counts.
speed() {
	local store=$1 network=$2 dtype=$3 batch=$4 steps=$5 st values launch=()
	shift 5
	[ "$store" != dist_sync ] || launch=("$tree/bin/mpirun" -n 2) # and a server
	ours limited 25 "${launch[@]}" "$tree/trainer" "$@" --dtype "$dtype" --batch-size "$batch" \
		--kv-store "${store%+*}" --gpus 0 \
		--benchmark 1 --num-examples $((steps * batch)) --num-epochs $epochs --disp-batches 1000000000 \
		--lr 0.01 --mom 0.9 --wd 0.0001 >"$work/speed.log" 2>&1
	st=$?
	{ echo "== $network $dtype $batch $store: exit status $st" && cat "$work/speed.log"; } >>"$out/speeds.log"
	values=$(sed -n 's/.*Epoch\[[0-9]*\] Time cost=\([0-9.]*\).*/\1/p' "$work/speed.log" | tail -n +2 |
		awk -v n=$((steps * batch)) '$1 > 0 { printf "%s%.1f", (k++ ? "," : ""), n / $1 }')
	if [ "$(tr , '\n' <<<"$values" | grep -c .)" -ge $least_runs ]; then
		record speed muster "$network" "$dtype" "$batch" "$values" "$store"
		return 0
	fi
	record speed muster "$network" "$dtype" "$batch" "" \
		"$store: exit status $st: $(grep -m 1 ' error: ' "$work/speed.log" || tail -n 1 "$work/speed.log")"
	return 1
}

# Of the first also the users' benchmark, one with a server, and a store of the host: its weights go to the GPU for
# every fourth batch. Of those that calls of the driver bound also without CUDA graphs.
also() {
	case $* in
	'resnet-50 float16 128') echo nccl_allreduce dist_sync local ;;
	'inception-bn-28-small float32 128' | 'lenet float32 64') echo device+calls ;;
	esac
}

speeds() {
	local network dtype batch steps options store why n=0 bad=0 end=$((SECONDS + 200))
	why=$(no_gpu)
	[ -z "$why" ] || { echo "$why" && return 77; }
	: >"$out/speeds.log"
	while read -r network dtype batch steps options; do
		[ -n "$network" ] || continue
		for store in device $(also "$network" "$dtype" "$batch"); do
			[ $SECONDS -lt $end ] || break
			n=$((n + 1))
			# shellcheck disable=SC2086 # a list of words
			speed "$store" "$network" "$dtype" "$batch" "$steps" $options \
				$([ $store != local ] || echo --update-period 4) \
				$([ $store != dist_sync ] || echo --node-reduce nccl) \
				$([ $store = "${store%+*}" ] || echo --cuda-graph 0) || bad=$((bad + 1))
		done
	done <<<"$configurations"
	echo "$n begun, $bad failed or out of time, of $(($(grep -c . <<<"$configurations") + 5))"
	[ $bad = 0 ]
}

peer() {
	local seconds st
	command -v python3 >/dev/null || { echo "no python3" && return 77; }
	seconds=$(least 130 $((all_seconds - SECONDS - 60)))
	[ "$seconds" -gt 20 ] || { echo "no time left" && return 124; }
	limited $((seconds + 30)) python3 "$tree/jobs/gpu/peer" "$seconds" <<<"$configurations" >"$work/peer.out" \
		2>"$out/peer.log"
	st=$?
	grep -E '^(speed|fact)' "$work/peer.out" >>"$records"
	[ $st != 77 ] || sed -n 's/^skip\t//p' "$work/peer.out"
	[ $st = 77 ] || echo "$(grep -c '^speed' "$work/peer.out") speeds of PyTorch"
	return $st
}

# The trainer's own table of layers; how busy the GPU is meanwhile; and Nsight Systems, where it is.
profile() {
	local why command
	why=$(no_gpu)
	[ -z "$why" ] || { echo "$why" && return 77; }
	command=("$tree/trainer" --network resnet-v1 --num-layers 50 --image-shape '3,224,224' --gpus 0
		--dtype float16 --batch-size 128 --benchmark 1 --num-examples 3840 --disp-batches 1000000000)
	nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader,nounits -lms 200 >"$work/busy" 2>/dev/null &
	ours limited 30 "${command[@]}" --num-epochs 6 >"$out/profile.log" 2>&1
	kill $! 2>/dev/null
	fact "GPU busy, % of time, largest half of samples" \
		"$(sort -n "$work/busy" | awk '{ v[NR] = $1 } END { if (NR) print v[int(NR / 2) + 1] " to " v[NR] }')"
	ours limited 30 "${command[@]}" --num-epochs 1 --profile >>"$out/profile.log" 2>&1 ||
		{ echo "trainer --profile fails" && return 1; }
	command -v nsys >/dev/null || { echo "--profile in profile.log; no nsys here" && return 0; }
	if ours limited 40 nsys profile -o "$work/nsys" "${command[@]}" --num-epochs 1 >>"$out/profile.log" 2>&1 &&
		limited 30 nsys stats "$work/nsys.nsys-rep" >>"$out/profile.log" 2>&1; then
		echo "--profile and nsys in profile.log"
	else
		echo "--profile in profile.log; nsys failed"
	fi
}

run() {
	[ $# = 2 ] || wrong "run: two folders are needed, the pack and where results go"
	[ -f "$1/$archive" ] || die "there is no $1/$archive: make it with pack"
	mkdir -p "$2" || die "cannot make $2"
	out=$(cd "$2" && pwd) failed=0
	work=$(mktemp -d) || die "no temporary folder"
	trap 'rm -rf "$work"' EXIT
	records=$work/records
	: >"$records"
	tar -C "$work" -xzf "$1/$archive" || die "cannot unpack $1/$archive in $work"
	tree=$work/muster-gpu
	cuda_folders=$(library_folders)
	libraries=$tree/lib:$cuda_folders${LD_LIBRARY_PATH-}
	# The system's, where it has one: it may be newer, and CUDA's libraries may need that.
	ldconfig -p 2>/dev/null | grep -q 'libstdc++.so.6' || libraries=$tree/lib-fallback:$libraries
	part machine machine
	part info info
	part tests tests
	part speeds speeds
	part peer peer
	part profile profile
	record fact seconds "$SECONDS"
	report
	echo "gpu-check: $out/gpu-check.json, $out/gpu-check.md"
	return $failed
}

case ${1-} in
pack | run) "$@" ;;
-h | --help) usage ;;
*)
	usage >&2
	exit 2
	;;
esac
