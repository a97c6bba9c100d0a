# shellcheck shell=bash disable=SC2154 # variables of gpu-check.sh: here, archive, limit_mb
# SPDX-License-Identifier: Apache-2.0
# Sourced by jobs/gpu-check.sh: the first half, which builds and packs.

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
	for program in trainer measure parse_log digits; do
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
	cp "$here"/gpu/* "$stage/jobs/gpu/" || die "jobs/gpu is not whole"
	git -C "$top" describe --always --dirty >"$stage/version" 2>/dev/null
}

# The model of the step whose kernels are measured (jobs/gpu/kernels.sh), which the report has beside it.
stage_model() {
	local network dtype batch options
	read -r network dtype batch _ options < <(grep '^[^#]' "${CONFIGURATIONS:-$here/gpu/configurations}")
	# shellcheck disable=SC2086 # words
	if "$here/gpu/model" --build "$build" --whole --raw $options --dtype "$dtype" --batch-size "$batch" \
		>"$work/model" 2>"$work/model.log"; then
		{ echo "# $network $dtype $batch" && cat "$work/model"; } >"$stage/model"
	else
		echo "gpu-check: the report will have no model: $(tail -n 1 "$work/model" "$work/model.log")" >&2
	fi
}

# Sets `programs`, which are stripped, too.
stage_libraries() {
	local libraries library
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

# The kernels, 3 MB, are the same bytes in every program. They go along once, and the programs as what is before and
# after them, which gpu-check.sh joins.
share_kernels() {
	local kernels=$build/cuda_kernels.fatbin nbytes program at
	cp "$kernels" "$stage/kernels" || die "cannot copy $kernels"
	nbytes=$(stat -c %s "$kernels")
	for program in "${programs[@]}"; do
		while read -r at; do
			tail -c +$((at + 1)) "$program" | cmp -s -n "$nbytes" - "$kernels" || continue
			head -c "$at" "$program" >"$program.before"
			tail -c +$((at + nbytes + 1)) "$program" >"$program.after"
			cat "$program.before" "$kernels" "$program.after" | cmp -s - "$program" ||
				die "cannot cut $program"
			rm "$program"
			break
		done < <(LC_ALL=C grep -obUaP '\x50\xed\x55\xba' "$program" | cut -d : -f 1) # how such files begin
	done
	[ -f "$stage/trainer.before" ] || die "$build/trainer does not have the kernels of $kernels"
}

pack() {
	local pack='' nbytes programs
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
	stage_model
	stage_libraries
	share_kernels
	tar -C "$work" -czf "$pack/$archive" muster-gpu || die "cannot write $pack/$archive"
	[ "$here" -ef "$pack" ] || cp "$here/gpu-check.sh" "$pack/" || die "cannot write $pack/gpu-check.sh"
	nbytes=$(stat -c %s "$pack/$archive")
	[ "$nbytes" -lt $((limit_mb * 1000000)) ] || die "$pack/$archive has $nbytes bytes, more than $limit_mb MB"
	echo "$pack/$archive: $((nbytes / 1000)) kB, unpacked $(du -sk "$stage" | cut -f 1) KiB;" \
		"$(find "$stage/lib" -type f | wc -l) libraries, $(wc -l <"$stage/tests") files of tests"
}
