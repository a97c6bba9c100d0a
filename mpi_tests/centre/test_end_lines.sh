#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What others read at a run's end: the speed in Horovod's words; the comment of a Slurm job, by a scontrol of ours.
# shellcheck disable=SC2086 # lists of options are words
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export LC_ALL=C OMP_NUM_THREADS=1
unset SLURM_JOB_ID
job="--network mlp --batch-size 20 --num-epochs 1 --log-prefix none --log-time 0"

# number REGEX: what follows it in the log
number() {
	sed -nE "s/.*$1 *([0-9.]+)( .*)?$/\\1/p" "$log"
}

part "a benchmark of pictures ends in its speed, over workers"
train 3 $job --benchmark 1 --num-batches 20 --kv-store dist_sync --num-servers 1
expect_count 1 'Img/sec per CPU: [0-9.]+$'
expect_count 1 'Total img/sec on 2 CPU\(s\): [0-9.]+$'
tail -n 2 "$log" | grep -q '^Total img/sec' || fail "other lines follow"
all=$(number 'Total img\/sec on 2 CPU\(s\):') each=$(number 'Img\/sec per CPU:') run=$(number 'trained .* s:')
awk -v all="$all" -v each="$each" -v run="$run" 'BEGIN { exit !(all == run && (all - 2 * each) ^ 2 < 0.001) }' ||
	fail "$all in all, $each each, $run of the run"
train 1 $job --benchmark 1 --num-batches 2 --log-format plain
expect_count 1 'Total img/sec on 1 CPU\(s\): '
train 1 --network lstm --num-layers 1 --num-hidden 8 --num-embed 8 --batch-size 2 --num-epochs 1 --benchmark 1 \
	--num-batches 2 --log-prefix none
expect_none 'img/sec'
small_set set 200 40
train 1 $job --data-dir set
expect_none 'img/sec'

part "the comment of a job of Slurm"
cat >scontrol <<'END'
#!/bin/sh
case $BEHAVES in
hangs) sleep 1000 ;;
deaf) exec >/dev/null 2>&1; sleep 1000 ;;
fails) echo "Invalid job id specified" >&2; exit 1 ;;
esac
printf '%s\n' "$@" >>said
END
chmod +x scontrol
path=$PATH
export PATH=$PWD:$PATH BEHAVES=well
SLURM_JOB_ID=77 train 2 $job --data-dir set --job-comment
[ "$(head -n 2 said)" = "$(printf 'update\njobid=77')" ] || fail "scontrol was told: $(cat said)"
comment=$(sed -n 3p said)
[[ $comment =~ ^comment=muster:\ 200\ samples,\ validation\ accuracy\ 0\.[0-9]{4}$ ]] || fail "the comment: $comment"
value=$(number 'Validation-accuracy=')
[ "${comment##* }" = "$(printf %.4f "$value")" ] || fail "accuracy $value, and the comment: $comment"
expect_count 1 "job 77 has the comment: ${comment#comment=}\$"
[ "$(wc -l <said)" = 3 ] || fail "several ranks set it"
rm said
SLURM_JOB_ID=77 train 1 $job --benchmark 1 --num-batches 2 --job-comment
grep -q '^comment=muster: 40 samples, training accuracy ' said || fail "the comment: $(cat said)"
rm said
SLURM_JOB_ID=77 train 1 $job --data-dir set # by choice
[ ! -e said ] || fail "a comment that was not asked for"

part "what may fail is told, and the run has not failed"
BEHAVES=fails SLURM_JOB_ID=78 train 2 $job --data-dir set --job-comment
expect_count 1 'job 78 keeps its comment: Invalid job id specified$'
for behaves in hangs deaf; do
	BEHAVES=$behaves SLURM_JOB_ID=78 train 2 $job --data-dir set --job-comment --comm-timeout 2
	expect_count 1 'job 78 keeps its comment: scontrol has not ended in 1 s$'
done
mkdir none
ln -s "$(command -v ${MPIRUN%% *})" none/
SLURM_JOB_ID=78 PATH=$PWD/none "$TRAINER" $job --data-dir set --job-comment >"$log" 2>&1 || fail "exit status $?"
expect_count 1 'job 78 keeps its comment: scontrol: No such file or directory$'
train 1 $job --data-dir set --job-comment
expect_count 1 'warning: --job-comment has no effect.*: this is no job of Slurm'
printf 'job-comment\n' >site
MUSTER_SITE=$PWD/site train 1 $job --data-dir set
expect_none 'has no effect'
MUSTER_SITE=$PWD/site SLURM_JOB_ID=79 train 1 $job --data-dir set
grep -q '^jobid=79$' said || fail "a site's choice has no effect"
export PATH=$path
finish
