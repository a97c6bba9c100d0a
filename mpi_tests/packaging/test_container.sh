#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What can be known of packaging's images without a network: both files do the steps of packaging/image and nothing
# else, its packages are those that the programs need, and packaging/check-container fails where an image is too large
# or trains badly, with programs that stand in for Buildah and MPI. With a network that check builds and runs images.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export LC_ALL=C
P=$SRCDIR/packaging

# ends STATUS COMMAND...
ends() {
	local wanted=$1
	shift
	"$@" >"$log" 2>&1 </dev/null
	status=$?
	[ $status = "$wanted" ] || { fail "exit status $status, not $wanted, of $*" && show_log; }
}

part "the steps: words, and what they would install"
if command -v shellcheck >/dev/null; then
	ends 0 shellcheck "$P/image" "$P/check-container"
else
	echo "not tested: shellcheck is not there"
fi
ends 0 "$P/image" --help
expect '^usage: packaging/image build\|run\|packages mpich\|abi$'
for words in "" build "build openmpi" "make abi" "run abi now"; do
	# shellcheck disable=SC2086 # words
	ends 2 "$P/image" $words
done
# packages STEP KIND: its packages, a line each
packages() {
	"$P/image" packages "$2" | sed -n "s/^$1 //p" | sort
}
{
	packages build mpich
	printf '%s\n' libarchive-dev debhelper-compat
} | sort >image
{
	sed -n '/^Build-Depends:/,/^$/s/^ \([a-z0-9-]*\).*/\1/p' "$P/debian/control"
	printf '%s\n' autoconf automake gcc libc6-dev make # what debhelper-compat and build-essential bring
} | sort >debian
cmp -s image debian || fail "libraries of debian/control and of the image: $(diff debian image | grep '^[<>]')"
for step in build run; do
	packages $step abi | grep -q mpich && fail "the image for any MPI gets MPICH at its step $step"
	diff <(packages $step mpich) <(packages $step abi) | sed -n 's/^[<>] //p' |
		grep -Evx '(libhdf5|.*mpich|python3-venv).*' &&
		fail "the images differ by more than MPI and HDF5 at step $step"
done

part "the programs need what is installed, and nothing else"
# shellcheck disable=SC1091 # the system's
if [ "$(. /etc/os-release 2>/dev/null && echo "$ID-$VERSION_ID")" != debian-12 ] || is_sanitized ||
	[ "$(mpi_kind)" != mpich ] || ! ldd "$TRAINER" | grep -q /libmpich.so.12; then
	echo "not tested: this is no build with Debian 12's MPICH"
else
	for program in "$TRAINER" "$BUILDDIR"/{mubench,measure,muconvert,im2rec,cifar_pack,digits}; do
		objdump -p "$program" | sed -n 's/^ *NEEDED *//p'
	done | sort -u | while read -r name; do
		ldd "$TRAINER" "$BUILDDIR/mubench" "$BUILDDIR/cifar_pack" |
			sed -n "s|^\t$name => \(/[^ ]*\).*|\1|p" | head -n 1
	done | xargs realpath | sed 'p;s|^/usr||' | xargs dpkg -S 2>/dev/null | sed 's/:.*//;s/^libmpich12$/mpich/' |
		grep -Evx 'libc6|libgcc-s1|libarchive13' | sort -u >needed
	packages run mpich >installed
	cmp -s needed installed || fail "needed and installed: $(diff needed installed | grep '^[<>]')"
fi

part "both files do these steps, the first stage and the second"
# steps FILE: STEP KIND, a line each; the default of a variable for it
steps() {
	sed -nE "s|.*sh [a-z/]*/image ([a-z]+) +([^ ]+)$|\1 \2|p" "$1" |
		sed "s/\${MPI}/$(sed -n 's/^ARG MPI=//p' "$1" | sort -u)/"
}
for file in Containerfile muster.def; do
	[ "$(steps "$P/$file")" = $'build mpich\nrun mpich' ] || fail "$file: its steps are $(steps "$P/$file")"
	grep -nE '^[^#]*(apt-get|configure|make|pip|apt\.conf|\.(io|org|com)/)' "$P/$file" &&
		fail "$file does more than its steps"
done
[ "$(sed -n 's/^From: //p' "$P/muster.def" | sort -u)" = "$(sed -n 's/^ARG BASE=//p' "$P/Containerfile")" ] ||
	fail "the bases differ"

part "a job of mubench in a container of Buildah's, of this machine's own programs"
# Its programs are found below /usr; sets $container, or fails where the kernel lets nobody make one.
begin_container() {
	local root
	export BUILDAH_ISOLATION=chroot
	container=$(buildah from scratch) && root=$(buildah mount "$container") && mkdir "$root/tmp" &&
		ln -s usr/{bin,lib,lib64} "$root/" && buildah config --env PATH=/usr/bin "$container" &&
		buildah run -v /usr:/usr:ro "$container" -- /usr/bin/true
}
if [ "$(id -u)" != 0 ] || ! command -v buildah >/dev/null; then
	echo "not tested: it needs root and Buildah (Debian: buildah)"
elif [ "$(mpi_kind)" != mpich ] || ! [ -L /lib64 ] || "$BUILDDIR/mubench" run --help | grep -q 'has no jansson'; then
	echo "not tested: it needs Debian's MPICH, and a build with jansson"
elif ! begin_container 2>"$log"; then
	echo "not tested: $(tail -n 1 "$log")"
else
	cat >config.json <<-END
		{"parameters": {"exp.docker_image": "$container", "exp.docker_launcher": "buildah", "exp.model": "mlp",
		"exp.docker_args": "-v /usr:/usr:ro -v /etc:/etc:ro -v $BUILDDIR:$BUILDDIR:ro", "exp.num_batches": 10,
		"muster.trainer": "$TRAINER", "muster.mpirun": "$(type -P "${MPIRUN%% *}")", "muster.threads": 1,
		"mxnet.kv_store": "dist_sync", "muster.options": "--devices ref", "exp.log_file": "buildah.log"}}
	END
	ends 0 "$BUILDDIR/mubench" run config.json
	expect 'mlp, dist_sync, .*: [0-9.]+ samples/s'
	grep -q "^__muster.command__=\"buildah run .* $container -- .*mpirun" buildah.log || fail "$(cat buildah.log)"
fi
[ -z "${container-}" ] || buildah rm "$container" >/dev/null

part "packaging/check-container, with programs that stand in"
ends 0 "$P/check-container" --help
ends 2 "$P/check-container" 12
if [ "$(id -u)" != 0 ] || ! git -C "$SRCDIR" rev-parse -q --verify HEAD >/dev/null 2>&1; then
	echo "not tested: it needs root and a git checkout"
	finish
fi
mkdir -p bin mpi/bin mpi/lib
: >mpi/lib/libmpi_abi.so.1
cat >bin/buildah <<'SCRIPT'
#!/bin/bash
echo "buildah $*" >>"$STAND_IN/calls"
case $1.${*: -1} in
images.*:mpich) echo "$MPICH_SIZE MB" ;;
images.*:abi) echo "196 MB" ;;
images.*) echo "121 MB" ;;
from.*) echo "work-${2//[:\/]/-}" ;;
mount.*) mkdir -p "$STAND_IN/root"/{proc,sys,dev/shm} && echo "$STAND_IN/root" ;;
run.*) sh -c "${*: -1}" ;;
esac
SCRIPT
# What the trainer prints, if it has its data.
cat >bin/muster <<'SCRIPT'
#!/bin/bash
[[ " $* " != *" --data-dir /tmp/digits "* ]] || cat "$STAND_IN/line"
SCRIPT
printf '#!/bin/sh\nshift 2\nexec "$@"\n' >bin/mpirun
cp bin/mpirun mpi/bin/
printf '#!/bin/sh\nshift\nexec "$@"\n' >bin/chroot
printf '#!/bin/sh\n' >bin/debootstrap
printf '#!/bin/sh\nshift\nexec "$@"\n' >bin/unshare # no mounts here
printf '#!/bin/sh\n' >bin/mount
chmod +x bin/* mpi/bin/mpirun
export STAND_IN=$PWD
# check STATUS SIZE ACCURACY OPTION...
check() {
	echo "Epoch[1] Validation-accuracy=$3" >line
	rm -f calls
	PATH=$PWD/bin:$PATH BASE=base MPI=$PWD/mpi MUBENCH='' MPICH_SIZE=$2 ends "$1" "$P/check-container" "${@:4}"
}
check 0 251 0.99 -v /a:/a:ro
expect '^muster-check:mpich: base 121 MB \+ 130 MB, at most 130$'
expect '^muster-check:abi: base 121 MB \+ 75 MB, at most 75$'
expect '^all passed$'
grep -c '^buildah bud .*-v /a:/a:ro .*--build-arg MPI=\(mpich\|abi\) ' calls | grep -qx 2 || fail "$(cat calls)"
grep -q '^buildah rm work-muster-check-mpich work-muster-check-abi$' calls || fail "containers are left: $(cat calls)"
check 1 252 0.99
expect '^FAIL: muster-check:mpich adds 131 MB to its base, more than 130$'
expect_none 'all passed'
check 1 251 0.97
expect_count 3 '^FAIL: muster-check:.*: accuracy 0.97, less than 0.98$'
finish
