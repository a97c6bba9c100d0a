# shellcheck shell=bash disable=SC2154 # variables of gpu-check.sh and run.sh
# SPDX-License-Identifier: Apache-2.0
# Sourced by jobs/gpu/run.sh: speeds of training, ours and PyTorch's.

epochs=6     # the first is the warm-up, the others are the runs of a median
least_runs=3

configurations() {
	grep '^[^#]' "${CONFIGURATIONS:-$tree/jobs/gpu/configurations}"
}

# The most memory in use on the first GPU, in MiB, while the process runs.
most_memory() {
	command -v nvidia-smi >/dev/null || return
	while kill -0 "$1" 2>/dev/null; do
		timeout 5 nvidia-smi -i 0 --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null
		sleep 0.5
	done | sort -n | tail -n 1
}

# Multiply-adds of a sample's forward; backward has twice as many.
gmac_of() {
	ours limited 10 "$tree/trainer" "$@" --batch-size 1 --devices ref --summary 2>/dev/null |
		sed -n 's/.*values [0-9]*, \([0-9.]*\) GMAC per sample.*/\1/p'
}

# speed STORE NETWORK DTYPE BATCH STEPS OPTION...: one configuration; what was done in time counts. Recorded: speeds,
# GMAC of a sample, the seconds before the first step, MiB.
speed() {
	local store=$1 network=$2 dtype=$3 batch=$4 steps=$5 st values launch=() begin memory log=$work/speed.log kind
	shift 5
	kind=$dtype
	[[ $store != *+tf32 ]] || kind="$dtype, TF32"
	[ "$store" != dist_sync ] || launch=("$tree/bin/mpirun" -n 2) # and a server
	begin=${EPOCHREALTIME/[.,]/}
	ours limited 25 "${launch[@]}" "$tree/trainer" "$@" --dtype "$dtype" --batch-size "$batch" \
		--kv-store "${store%+*}" --gpus 0 \
		--benchmark 1 --num-examples $((steps * batch)) --num-epochs $epochs --disp-batches 1000000000 \
		--lr 0.00001 --mom 0.9 --wd 0.0001 >"$log" 2>&1 &
	most_memory $! >"$work/memory"
	wait $!
	st=$?
	begin=$((${EPOCHREALTIME/[.,]/} - begin))
	memory=$(cat "$work/memory")
	{ echo "== $network $dtype $batch $store: exit status $st" && cat "$log"; } >>"$out/speeds.log"
	values=$(sed -n 's/.*Epoch\[[0-9]*\] Time cost=\([0-9.]*\).*/\1/p' "$log" | tail -n +2 |
		awk -v n=$((steps * batch)) '$1 > 0 { printf "%s%.1f", (k++ ? "," : ""), n / $1 }')
	# by products it is not what is measured
	[ "$store" != device+fused ] || ! grep -q 'fused attention was asked for' "$log" || values=''
	if [ "$(tr , '\n' <<<"$values" | grep -c .)" -ge $least_runs ]; then
		record speed muster "$network" "$kind" "$batch" "$values" "$store" "$gmac" \
			"$(sed -n 's/.*Epoch\[[0-9]*\] Time cost=\([0-9.]*\).*/\1/p' "$log" |
				awk -v all=$begin '{ s += $1 } END { printf "%.1f", all / 1e6 - s }')" "$memory"
		return 0
	fi
	record speed muster "$network" "$kind" "$batch" "" \
		"$store: exit status $st: $(grep -m 1 'error: ' "$log" || tail -n 1 "$log")"
	return 1
}

# The first also with the users' benchmark, one with a server, and batch-norms that make their sums themselves; GPT-2
# with fused attention; of those that calls of the driver bound also without CUDA graphs; two of float32 also with
# TF32, as PyTorch's. These come after all configurations.
also() {
	case $* in
	'resnet-50 float16 256') echo nccl_allreduce dist_sync device+calls device+apart ;;
	'gpt2 bfloat16 8') echo device+fused ;;
	'lenet float32 64') echo device+tf32 device+calls ;;
	'resnet-50 float32 128') echo device+tf32 ;;
	esac
}

# The options of a store's variant.
options_of() {
	case $1 in
	dist_sync) echo --node-reduce nccl ;;
	*+calls) echo --cuda-graph 0 ;;
	*+apart) echo --conv-algo direct ;;
	*+fused) echo --attention-algo fused ;;
	*+tf32) echo --allow-tf32 1 ;;
	esac
}

# measure LINE STORE...
measure() {
	local network dtype batch steps options store bad=0
	read -r network dtype batch steps options <<<"$1"
	shift
	# shellcheck disable=SC2086 # words
	[ $# = 0 ] || gmac=$(gmac_of $options)
	for store in "$@"; do
		[ "$(left)" -ge 5 ] || { bad=$((bad + 1)) && continue; }
		begun=$((begun + 1))
		# shellcheck disable=SC2086,SC2046 # a list of words
		speed "$store" "$network" "$dtype" "$batch" "$steps" $options $(options_of "$store") ||
			bad=$((bad + 1))
	done
	return $bad
}

speeds() {
	local lines line network dtype batch begun=0 bad=0 gmac=
	needs_gpu || return 77
	: >"$out/speeds.log"
	mapfile -t lines < <(configurations)
	for line in "${lines[@]}"; do
		measure "$line" device || bad=$((bad + $?))
	done
	for line in "${lines[@]}"; do
		read -r network dtype batch _ <<<"$line"
		# shellcheck disable=SC2046 # words
		measure "$line" $(also "$network" "$dtype" "$batch") || bad=$((bad + $?))
	done
	echo "$begun begun, $bad failed, out of time or not begun"
	[ $bad = 0 ]
}

# tune NETWORK DTYPE BATCH STEPS OPTION...: a configuration by the table that --conv-algo tune makes of it.
tune() {
	local network=$1 dtype=$2 batch=$3 steps=$4 gmac st table=$out/convolutions-$1.txt
	shift 4
	ours limited 70 "$tree/trainer" "$@" --dtype "$dtype" --batch-size "$batch" --gpus 0 --benchmark 1 \
		--conv-algo tune --conv-table "$table" >"$work/tune.log" 2>&1
	st=$?
	cat "$work/tune.log" >>"$out/tune.log"
	echo "$network: $(sed -n 's/.*--conv-algo tune: \(by the fixed rule.*\)/\1/p' "$work/tune.log")"
	[ $st = 0 ] || { tail -n 1 "$work/tune.log" && return $st; }
	gmac=$(gmac_of "$@")
	speed device+tuned "$network" "$dtype" "$batch" "$steps" "$@" --conv-table "$table"
}

# Each network in float16, in the time that the other parts have left.
tuned() {
	local network dtype batch steps options seen='' measured=0 st=0 one
	needs_gpu || return 77
	while read -r network dtype batch steps options; do
		case $dtype,$seen in
		float16,*" $network "*) continue ;;
		float16,*) seen="$seen $network " ;;
		*) continue ;;
		esac
		[ "$(left)" -ge $((30 * scale)) ] || { echo "$network: no time is left for it;" && continue; }
		# shellcheck disable=SC2086 # words
		tune "$network" "$dtype" "$batch" "$steps" $options
		one=$?
		case $one in
		0) measured=$((measured + 1)) ;;
		124 | 137) echo "$network: out of time;" ;;
		*) st=$one ;;
		esac
	done < <(configurations)
	[ $st != 0 ] || [ $measured -gt 0 ] || st=77
	return $st
}

peer() {
	local st seconds=$(($(left) - 30))
	command -v python3 >/dev/null || { echo "no python3" && return 77; }
	configurations >"$work/configurations"
	limited 160 python3 "$tree/jobs/gpu/peer" $((seconds < 130 ? seconds : 130)) <"$work/configurations" \
		>"$work/peer.out" 2>"$out/peer.log"
	st=$?
	grep -E '^(speed|fact)' "$work/peer.out" >>"$records"
	[ $st != 77 ] || sed -n 's/^skip\t//p' "$work/peer.out"
	[ $st = 77 ] || echo "$(grep -c '^speed' "$work/peer.out") speeds of PyTorch"
	return $st
}
