# shellcheck shell=bash disable=SC2154 # variables of gpu-check.sh and run.sh
# SPDX-License-Identifier: Apache-2.0
# Sourced by jobs/gpu/run.sh: the kernels of one step of the first configuration, by name, as ncu measures them. nsys
# cannot be counted on; ncu needs access to the GPU's counters, and where that is refused the report says so.

kernels() {
	local network dtype batch options st
	needs_gpu || return 77
	command -v ncu >/dev/null || { echo "no ncu" && return 77; }
	read -r network dtype batch _ options < <(configurations)
	# shellcheck disable=SC2086 # words
	ours limited 60 ncu --clock-control none --cache-control none --csv --print-units base \
		--metrics gpu__time_duration.sum,dram__bytes.sum --log-file "$out/kernels.csv" \
		"$tree/trainer" $options --gpus 0 --dtype "$dtype" --batch-size "$batch" --benchmark 1 \
		--num-examples "$batch" --num-epochs 1 --lr 0.01 >"$out/kernels.log" 2>&1
	st=$?
	awk -f "$tree/jobs/gpu/kernels.awk" "$out/kernels.csv" 2>/dev/null | sort -t $'\t' -k 3 -rn >"$work/kernels"
	if [ ! -s "$work/kernels" ]; then
		echo "ncu ends with $st: $(grep -h -m 1 '==ERROR==' "$out/kernels.csv" "$out/kernels.log")"
		[ $st = 0 ] && st=1
		return $st
	fi
	while IFS=$'\t' read -r name count us bytes; do
		record kernel "$name" "$count" "$us" "$bytes"
	done <"$work/kernels"
	fact "step whose kernels are listed" "$network $dtype $batch"
	if [ "$(head -n 1 "$tree/model" 2>/dev/null)" = "# $network $dtype $batch" ]; then
		while IFS=$'\t' read -r name count fields; do
			# shellcheck disable=SC2086 # numbers
			record model "$name" "$count" $fields
		done < <(tail -n +2 "$tree/model")
	fi
	echo "$network $dtype $batch: $(awk -F '\t' '{ n += $2; us += $3; b += $4 } END {
		printf "%d kernels of %d names, %.0f us, %.3f GB, %.0f GB/s", n, NR, us, b / 1e9, b / us / 1e3 }' \
		"$work/kernels")"
	return $st
}
