#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a machine can take away from a run: space, the right to write, a folder, files of the input, memory. The job ends
# with one error that names rank, host, file and cause, what was saved before is whole, and a run goes on from there.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"

needs_files
export OMP_NUM_THREADS=1 # bits depend on it
small_set set 120 50
plain="--log-prefix none --log-time 0 --disp-batches 1000"
run="--network mlp --data-dir set --batch-size 20 --mom 0.9 --keep 3 --save-steps 2 $plain"
host=$(hostname)

# The trainer with a limit of bash's ulimit on one rank.
cat >limited_trainer <<'TEXT'
#!/usr/bin/env bash
[ "${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-0}}" != "$LIMIT_RANK" ] || ulimit $LIMIT || exit 3
exec "$REAL_TRAINER" "$@"
TEXT
chmod +x limited_trainer
export REAL_TRAINER=$TRAINER LIMIT LIMIT_RANK

# limited RANK LIMIT NP ARGUMENT...
limited() {
	LIMIT_RANK=$1 LIMIT=$2
	shift 2
	TRAINER=$PWD/limited_trainer
	run_limited 60 "$@"
	TRAINER=$REAL_TRAINER
}

# told WHO REGEX [STATUS]: the run failed with one error, which WHO told, on this host; WHO empty: a process alone
told() {
	[ $status = "${3:-1}" ] || { fail "exit status $status, not ${3:-1}" && show_log; }
	expect "^trainer: ${1:+$1 on $host: }error: .*$2"
	expect_count 1 'error: '
}

# goes_on PREFIX NP ARGUMENT...: all files are whole, and a run goes on from the newest
goes_on() {
	local prefix=$1 files newest
	shift
	files=$(compgen -G "$prefix-*.h5") || { fail "nothing was saved" && return; }
	"$BUILDDIR/mpi_tests/lib/whole_file" $files || fail "a file of $prefix is damaged"
	newest=$(newest $files)
	train "$@" --model-prefix "$prefix" --resume auto
	expect "^Resumed from \"$newest\": "
}

# while_training COMMAND...: a run of 3 ranks in the background; the command as soon as it has saved some files
while_training() {
	new_mark
	rm -f "$log"
	launch 60 3 $run --num-epochs 100000 --model-prefix away/P --overwrite &
	job=$!
	for _ in $(seq $((200 * ${MU_TIMEOUT_SCALE:-1}))); do
		grep -q '^Saved.*-0001' "$log" 2>/dev/null && break
		sleep 0.1
	done
	"$@" || fail "$*: impossible"
	wait $job
	status=$?
	left=$(leftovers)
	[ -z "$left" ] || fail "left running: ${left//$'\n'/ }"
}

part "a folder vanishes"
mkdir away
while_training mv away taken
told 'rank [0-9], worker [0-9]' 'away/P-[0-9-]+\.h5.*No such file or directory'
mv taken away
epoch=$(newest away/P-*.h5 | sed 's/.*P-\([0-9]*\).*/\1/')
goes_on away/P 3 $run --num-epochs $((10#$epoch + 2))

part "no space, and no right to write any more"
rm -rf away
mkdir away
if mount -t tmpfs -o size=8m tmpfs away 2>/dev/null; then
	# It keeps all of its files, and so fills the disk.
	run=${run/--keep 3/--keep 0} while_training true
	told 'rank [0-9], worker [0-9]' 'away/P-[0-9-]+\.h5.*No space left'
	[ -z "$(compgen -G 'away/*.tmp-*')" ] || fail "left on the full disk: $(ls away)"
	rm $(ls away/P-*.h5 | sort -V | head -n 3) # room to go on
	epoch=$(newest away/P-*.h5 | sed 's/.*P-\([0-9]*\).*/\1/')
	goes_on away/P 3 $run --num-epochs $((10#$epoch + 2))
	# Busy while a file is open for writing.
	while_training sh -c 'until mount -o remount,ro away 2>/dev/null; do sleep 0.02; done'
	told 'rank [0-9], worker [0-9]' 'away/P-[0-9-]+\.h5.*Read-only file system'
	"$BUILDDIR/mpi_tests/lib/whole_file" away/P-*.h5 || fail "a damaged file on a disk that cannot be written"
	umount away
else
	echo "a full disk, and one that cannot be written: skipped, no file system can be mounted here"
fi

part "disks of a few pages"
rm -rf small
mkdir small
for kb in 4 8 12 16 20 24 40; do
	mount -t tmpfs -o size=${kb}k tmpfs small 2>/dev/null || {
		echo "disks of a few pages: skipped, no file system can be mounted here"
		break
	}
	run_limited 60 1 $run --kv-store local --num-epochs 1 --model-prefix small/P
	told '' "small/P-0000-000002\\.h5"
	expect 'No space left'
	[ -z "$(compgen -G 'small/*.h5*')" ] || fail "left on a disk of $kb KB: $(ls small)"
	umount small
done

in_tier full || finish
# UCX takes files of 4.2 MB in /dev/shm for itself; a checkpoint of this one has 5.2 MB, without what rounds it up.
part "a limit of file sizes"
lenet="--network lenet --data-dir set --batch-size 20 --optimizer adam --lr 0.001 --kv-store dist_allreduce $plain"
rm -f P-*
train 2 $lenet --num-epochs 1 --model-prefix P
for rank in 0 1; do
	limited $rank "-f 4600" 2 $lenet --num-epochs 2 --model-prefix P --resume auto
	told "rank $rank, worker $rank" 'P-0002\.h5.*File too large'
	[ -z "$(compgen -G 'P-*.tmp-*')" ] || fail "left behind: $(ls P-*)"
done
goes_on P 2 $lenet --num-epochs 2

part "memory"
if is_sanitized; then
	echo "a limit of memory: skipped, the address sanitizer takes more than any"
else
	rm -f Q-*
	train 2 $run --num-epochs 1 --kv-store dist_sharded --model-prefix Q
	limited 1 "-v 300000" 2 --network vgg --num-layers 16 --benchmark 1 --num-batches 2 --num-epochs 1 \
		--batch-size 4 --kv-store dist_sharded $plain
	told 'rank 1, worker 1' '.*(memory|Cannot allocate)' 2
	goes_on Q 2 $run --num-epochs 2 --kv-store dist_sharded
fi

part "files of the input"
if [ -x "$BUILDDIR/mpi_tests/lib/make_jpeg" ]; then
	for class in ant bee; do
		mkdir -p "images/$class"
		for i in 1 2 3 4 5 6 7 8 9; do
			"$BUILDDIR/mpi_tests/lib/make_jpeg" write images/$class/$i.jpg $((30 + i)) 26 rgb $i
		done
	done
	"$BUILDDIR/h5rec" images all.rec >/dev/null || fail "no all.rec"
	# input REGEX DATA COMMAND...: a run that trains from DATA, which the command spoils
	input() {
		local regex=$1
		rm -f I-* "$log"
		new_mark
		launch 60 2 --network mlp --batch-size 3 --num-epochs 100000 --image-shape 3,20,20 --num-classes 2 \
			--lr 0.001 --kv-store dist_allreduce --devices ref --data-train "$2" --model-prefix I \
			--keep 2 $plain &
		job=$!
		shift 2
		for _ in $(seq $((200 * ${MU_TIMEOUT_SCALE:-1}))); do
			grep -q '^Saved' "$log" 2>/dev/null && break
			sleep 0.1
		done
		"$@"
		wait $job
		status=$?
		told 'rank [01], worker [01]' "$regex"
		"$BUILDDIR/mpi_tests/lib/whole_file" I-*.h5 || fail "a damaged checkpoint"
	}
	input 'images/(ant|bee)/[0-9].jpg: cannot be opened: No such file' images mv images gone
	input 'all.rec: .*(the file changed|bytes)' all.rec truncate -s 3000 all.rec
else
	echo "files of the input: skipped, this build has no libjpeg"
fi
finish
