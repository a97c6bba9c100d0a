# SPDX-License-Identifier: Apache-2.0
# The networks that test_split.sh and test_teams.sh put on several devices or ranks, $resnet and $lstm, and their data.
# Sourced by bash after lib.sh.
# shellcheck shell=bash
# shellcheck disable=SC2034 # the tests'

needs_files
export OMP_NUM_THREADS=1 # bits depend on it
small_set set 90 37
plain="--log-prefix none --log-time 0 --disp-batches 2"
# 90 samples in steps of 20: the last one is of 10
resnet="--network resnet --num-layers 20 --data-dir set --batch-size 20 --lr 0.05 --num-epochs 1 $plain"
awk 'BEGIN {
	split("cat dog bird fish", who); split("sees hears", does)
	for (i = 0; i < 60; i++)
		print " the " who[1 + i * 7 % 4] " " does[1 + i % 2] " the" (i % 3 ? " old" : "") " " who[1 + i * 5 % 4]
}' >text.txt
lstm="--network lstm --num-layers 4 --num-hidden 16 --num-embed 8 --data-train text.txt --data-val text.txt
	--buckets 4,8 --lr 1 --mom 0 --wd 0 --clip-global-norm 5 --batch-size 8 --num-epochs 2 $plain"
