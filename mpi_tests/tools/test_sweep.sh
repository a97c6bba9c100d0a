#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mubench run and mubench report: the product of variables, logs, what is done, failures, tables; configurations and
# logs that are wrong. A launcher of our own stands in for the jobs, whose speeds are then known, but for one real job.
set -u
# shellcheck source=mpi_tests/lib/lib.sh
. "$SRCDIR/mpi_tests/lib/lib.sh"
export LC_ALL=C

mubench() {
	timeout -k 5 $((60 * ${MU_TIMEOUT_SCALE:-1})) "$BUILDDIR/mubench" "$@" >"$log" 2>&1 </dev/null
	status=$?
}

# ends STATUS ARGUMENT...
ends() {
	local wanted=$1
	shift
	mubench "$@"
	[ $status = "$wanted" ] || { fail "exit status $status, not $wanted, of $*" && show_log; }
}

if mubench report --help && grep -q 'has no jansson' "$log"; then
	echo "skipped: this build has no jansson"
	exit 77
fi
[ $status = 0 ] || fail "exit status $status of --help"

# 100 samples/s for each rank but the first; the warm-up is slow. Fails for mlp while there is a file broken.
cat >mpirun <<'SCRIPT'
#!/bin/bash
[ -f broken ] && [[ $* == *'--network mlp'* ]] && echo "something is wrong" && exit 3
ranks=$2
while [ $# -gt 0 ]; do
	case $1 in
	--disp-batches) line=$2 ;;
	--num-batches) all=$2 ;;
	esac
	shift
done
[ ! -f host ] || for node in 0 1; do echo "x Node[0] node $node (h): worker $node (rank $node, pid 7)"; done
for ((i = 0; i + line < all; i += line)); do
	speed=$(((ranks - 1) * 100))
	[ $i -lt 10 ] && speed=1
	printf 'x Node[0] Epoch[0] Batch [%d-%d]\tSpeed: %d.00 samples/sec\taccuracy=1\n' $i $((i + line)) $speed
done
SCRIPT
chmod +x mpirun
common='"muster.mpirun": "./mpirun", "muster.trainer": "./t", "exp.num_batches": 40, "exp.num_warmup_batches": 10'

# config PARAMETERS [VARIABLES]
config() {
	echo "{\"parameters\": {$1}, \"variables\": {${2-}}}" >config.json
}

part "a sweep"
touch broken
config "$common, \"exp.replica_batch\": 10, \"mxnet.kv_store\": \"dist_sync\", \"muster.num_servers\": 1" \
	'"exp.model": ["lenet", "mlp"], "exp.num_nodes": [1, 2, 4]'
ends 0 run config.json --dry-run
expect_count 6 '^./mpirun -n [235] ./t --kv-store dist_sync --num-servers 1 --network (lenet|mlp) '
[ -e logs ] && fail "--dry-run made a folder"
ends 1 run config.json
expect_count 3 '^\[\d/6\] lenet, dist_sync, nodes [124], batch [124]0: [124]00 samples/s, .*left$'
expect_count 3 '^\[\d/6\] mlp, .*: failed \(exit status 3; ./logs/[0-9a-f]{8}.log\)'
expect '^6 experiments: 3 run, 3 failed, 0 done before, 0 disabled$'
[ "$(cat logs/*.log | grep -c '^__exp.status__="ok"$')" = 3 ] || fail "not 3 logs of success"
[ "$(cat logs/*.log | grep -c '^__results.time__=100.0$')" = 3 ] || fail "not 3 times of 100 ms"
grep -q '^something is wrong$' logs/*.log || fail "what jobs print is not in their logs"

part "what is done is left out, what failed is not"
rm broken
ends 0 run config.json
expect_count 3 '^\[\d/3\] mlp, '
expect '^6 experiments: 3 run, 0 failed, 3 done before'
ends 0 run config.json
expect '^6 experiments: 0 run, 0 failed, 6 done before'
sed 's/"exp.num_batches"/"exp.rerun": "always", &/' config.json >again.json
ends 0 run again.json
expect '^6 experiments: 6 run, '

part "reports"
ends 0 report logs
expect_count 8 '^\|.*\|$'
expect '^\| lenet \| training \| dist_sync \| 4 \| 4 \| 1 \| float32 \| 10 \| 40 \| 100 \| 400 \| ok \|$'
[ "$(grep -oE '^\| (lenet|mlp) ' "$log" | uniq | wc -l)" = 2 ] || fail "the table is not sorted"
ends 0 report logs --type weak-scaling --format csv
expect_count 2 ',10,40,100,400,4,100$'
expect_count 7 ,
ends 0 report logs --type strong-scaling --format csv
expect_count 6 ',1,100$' # every batch is a group of its own
config "$common, \"exp.model\": \"lenet\", \"mxnet.kv_store\": \"dist_sync\", \"muster.num_servers\": 1, \
	\"exp.num_nodes\": 2, \"exp.replica_batch\": 20"
ends 0 run config.json
ends 0 report logs --type strong-scaling --format csv
expect_count 1 '^lenet,training,dist_sync,2,2,1,float32,20,40,200,200,1,100$'
expect_count 1 '^lenet,training,dist_sync,4,4,1,float32,10,40,100,400,2,100$'
touch host
config "$common, \"exp.model\": \"vgg\", \"mxnet.kv_store\": \"dist_sync\", \"muster.num_servers\": 1, \
	\"exp.replica_batch\": 10, \"exp.log_file\": \"shared\${exp.num_nodes}.log\"" '"exp.num_nodes": [1, 2]'
ends 0 run config.json
ends 0 report shared1.log shared2.log --type weak-scaling --format csv
expect_count 1 '^vgg,training,dist_sync,1,1,1,float32,10,10,100,100,1,100$'
expect_count 1 '^vgg,training,dist_sync,2,2,1,float32,10,20,100,200,2,$' # two nodes on one host
rm host
ends 0 report logs --format json --output all.json
[ "$(grep -c '"exp.status": "ok"' all.json)" = 7 ] || fail "all.json has not all logs"
[ "$(tail -n 1 all.json)" = "}" ] || fail "all.json is not whole"
ends 1 report logs --output nowhere/all.json
expect 'nowhere/all.json'

part "what tells experiments apart, and their accuracy"
cp mpirun plain-mpirun
# The rate of learning is the accuracy.
# shellcheck disable=SC2016 # the script's own
cat >>mpirun <<'SCRIPT'
printf 'x Node[0] Epoch[0] Train-accuracy=0.5\nx Node[0] Epoch[0] Validation-accuracy=%s\n' "${lr:-0.25}"
SCRIPT
sed -i 's/^\t--disp-batches)/\t--lr) lr=$2 ;;\n&/' mpirun
# shellcheck disable=SC2016 # mubench's
config "$common, \"exp.model\": \"mlp\", \"mxnet.kv_store\": \"dist_sync\", \"exp.replica_batch\": 10,
	\"exp.log_file\": \"rates/\${exp.id}.log\"" '"muster.options": ["--lr 0.3", "--lr 0.7"]'
ends 0 run config.json
mv plain-mpirun mpirun
ends 0 report rates --format csv
expect_count 1 '^model,.*,samples/s,muster.options,accuracy,status$'
expect_count 1 ',--lr 0.3,0.3,ok$'
expect_count 1 ',--lr 0.7,0.7,ok$'
ends 0 report rates/*.log --type weak-scaling
expect_count 1 '\| --lr 0.7 \| 0.7 \|'

part "a job"
config '"exp.model": "mlp", "exp.num_nodes": 1, "exp.num_batches": 10, "mxnet.kv_store": "dist_sync",
	"exp.log_file": "real.log", "muster.threads": 1, "muster.options": "--devices ref"'
ends 0 run config.json
[ "$(grep -c '^__results.throughput__=[0-9.]*$' real.log)" = 1 ] || fail "no throughput of a job: $(tail real.log)"

sed 's/"exp.num_batches"/"exp.phase": "inference", &/; s/real.log/forward.log/' config.json >forward.json
ends 0 run forward.json --dry-run
expect_count 1 ' --kv-store dist_sync --num-servers 1 --network mlp .* --num-batches 12 .* --evaluate --devices ref$'
ends 0 run forward.json
[ "$(grep -c '^__results.throughput__=[0-9.]*$' forward.log)" = 1 ] || fail "no throughput: $(tail forward.log)"
grep -q 'validated 192 samples' forward.log || fail "not forward alone"
ends 0 report real.log forward.log --format csv
expect_count 1 '^mlp,training,dist_sync,'
expect_count 1 '^mlp,inference,dist_sync,'
config '"exp.model": "mlp", "exp.phase": "inference", "muster.workers_per_node": 2'
ends 0 run config.json --dry-run
expect_count 1 ' --kv-store dist_allreduce --network mlp'
config '"exp.model": "mlp", "exp.phase": "inference", "exp.data_dir": "."'
ends 2 run config.json
expect_count 1 '"exp.phase": inference is of random data, and "exp.data_dir" is \.'
config '"exp.model": "mlp", "exp.phase": "infer"'
ends 2 run config.json
expect_count 1 '"exp.phase": "infer" is not known; it may be training\|inference'

part "containers: what keeps processes to itself has mpirun in it, what shares the host's stands below mpirun"
mkdir -p data bin
for name in docker podman buildah apptainer; do
	# The program in the container is what follows the image, or "--".
	cat >bin/$name <<'SCRIPT'
#!/bin/bash
echo "$(basename "$0") $*" >>started
while [ "$1" != image ]; do shift; done
shift
[ "$1" != -- ] || shift
PATH=.:$PATH exec "$@"
SCRIPT
	chmod +x bin/$name
done
printf '#!/bin/bash\nexit 0\n' >muster
chmod +x muster
image='"exp.model": "mlp", "exp.num_nodes": 2, "muster.num_servers": 1, "mxnet.kv_store": "dist_sync",
	"exp.num_batches": 40, "exp.num_warmup_batches": 10, "exp.docker_image": "image"'
# container LAUNCHER REGEX: the command; its job runs, through a program of that name
container() {
	config "$image, \"exp.docker_launcher\": \"$1\", \"exp.log_file\": \"$1.log\", \"exp.data_dir\": \"data\""
	ends 0 run config.json --dry-run
	expect_count 1 "^$2 .*--data-dir $PWD/data "
	PATH=$PWD/bin:$PATH MPIRUN=$3 ends 0 run config.json
	expect 'nodes 2, .*: 200 samples/s'
	grep -q "^$1 .*image.* muster train " started || fail "$1: the trainer is not in the container: $(cat started)"
	rm started
}
run="run --entrypoint= --rm --shm-size 1g --volume $PWD/data:$PWD/data:ro image"
# The host's mpirun is not that of the image; an image that mpirun starts ranks in has none.
container docker "docker $run mpirun -n 3 muster train --kv-store dist_sync" /nowhere/mpirun
container podman "podman $run mpirun -n 3 muster train" /nowhere/mpirun
container buildah "buildah run --volume $PWD/data:$PWD/data:ro image -- mpirun -n 3 muster train" /nowhere/mpirun
sed -i 's/^ranks=/"${@:3}"\n&/' mpirun
MPIRUN=./mpirun container apptainer \
	"./mpirun -n 3 apptainer exec --bind $PWD/data:$PWD/data:ro image muster train" ./mpirun
sed -i '/^"/d' mpirun
config "$image, \"muster.threads\": 2, \"muster.mpirun\": \"mpirun -v\", \"exp.docker_launcher\": \"sudo /opt/podman\",
	\"exp.docker_args\": \"--rm --cpus 2\", \"muster.trainer\": \"t\""
ends 0 run config.json --dry-run
expect_count 1 '^sudo /opt/podman run --entrypoint= --rm --cpus 2 image mpirun -v -n 3 env OMP_NUM_THREADS=2 t --kv'
config "$image, \"exp.gpus\": \"0\""
ends 0 run config.json --dry-run
expect_count 1 '^nvidia-docker run '
config "$image, \"muster.mpirun\": \"./mpirun\", \"muster.trainer\": \"./t\"" '"exp.docker": [false, true]'
BENCH_ROOT=both PATH=$PWD/bin:$PATH ends 0 run config.json
expect_none 'has no effect'
ends 0 report both/logs --format csv
expect_count 1 '^model,.*,exp.docker,status$'
expect_count 1 ',false,ok$'
expect_count 1 ',true,ok$'
config "$image, \"exp.docker\": false, \"muster.mpirun\": \"./mpirun\", \"muster.trainer\": \"./t\""
ends 0 run config.json --dry-run
expect '^exp.docker_image has no effect without a container$'
expect_count 1 '^./mpirun -n 3 ./t --kv'

part "a link in place of the log"
echo precious >precious
printf '#!/bin/sh\nln -sf precious link1.log\n' >links
chmod +x links
config '"exp.model": "mlp", "muster.mpirun": "./links", "muster.trainer": "./t", "exp.log_file": "link1.log"'
ends 1 run config.json
expect 'error: link1.log: Too many levels of symbolic links'
[ "$(cat precious)" = precious ] || fail "a link was followed"

part "a signal ends the job and the sweep"
printf '#!/bin/sh\necho started\nexec sleep 60\n' >slow
chmod +x slow
# shellcheck disable=SC2016 # mubench's
config '"exp.model": "mlp", "muster.mpirun": "./slow", "muster.trainer": "./t",
	"exp.log_file": "slow${exp.num_nodes}.log"' '"exp.num_nodes": [1, 2]'
"$BUILDDIR/mubench" run config.json >"$log" 2>&1 </dev/null &
for _ in $(seq 300); do
	grep -q '^started' slow1.log 2>/dev/null && break
	sleep 0.1
done
kill -INT $!
wait $!
status=$?
[ $status = 1 ] || fail "exit status $status, not 1, after INT"
expect ' mlp, .* failed \(ended by signal 2; slow1.log\)'
expect '1 failed, .* 1 not begun$'
[ -e slow2.log ] && fail "the next experiment was begun"

# refuses REGEX PARAMETERS [VARIABLES]: nothing is run
refuses() {
	local regex=$1
	shift
	config "$@"
	ends 2 run config.json
	expect_count 1 "^mubench run: error: .*$regex"
	expect_none samples/s
}

part "configurations that are wrong"
m='"exp.model": "mlp"'
refuses 'config.json: "exp.num_node" is no parameter; the nearest one is "exp.num_nodes"' "$m, \"exp.num_node\": 1"
refuses '"exp.models".*nearest one is "exp.model"' "$m" '"exp.models": ["mlp"]'
refuses 'exp.num_nodes": 0: a whole number from 1' "$m, \"exp.num_nodes\": 0"
refuses 'exp.num_nodes": x: a whole number' "$m, \"exp.num_nodes\": \"x\""
refuses 'exp.num_nodes": a whole number is needed' "$m, \"exp.num_nodes\": 1.5"
refuses 'exp.dtype": "float8" is not known; it may be float32' "$m, \"exp.dtype\": \"float8\""
refuses 'exp.model": .*lenat.*lenet' '"exp.model": "lenat"'
refuses 'exp.model" is missing' '"exp.num_nodes": 1'
refuses 'stands in "parameters" and in "variables"' "$m" '"exp.model": ["mlp"]'
refuses 'exp.model" in "variables": a list' '' '"exp.model": "mlp"'
refuses 'exp.model" in "variables": a list' '' '"exp.model": []'
refuses 'experiments 1 and 2 have one log, x.log' "$m, \"exp.log_file\": \"x.log\"" '"exp.num_nodes": [1, 2]'
refuses 'mxnet.kv_store": .*dist_sink.*dist_sync' "$m, \"mxnet.kv_store\": \"dist_sink\""
refuses 'kv_store": local is for one worker, and there are 2' "$m, \"mxnet.kv_store\": \"local\", \"exp.num_nodes\": 2"
refuses 'num_servers": 1, but dist_allreduce has no servers' \
	"$m, \"mxnet.kv_store\": \"dist_allreduce\", \"muster.num_servers\": 1"
refuses 'rendezvous": 29500: INTERFACE:ADDRESS:PORT' "$m, \"mxnet.rendezvous\": \"29500\""
refuses 'exp.gpus": 0:1: ' "$m, \"exp.gpus\": \"0:1\""
refuses 'exp.data_dir": nowhere: ' "$m, \"exp.data_dir\": \"nowhere\""
refuses 'NOT_SET_AT_ALL}: neither a parameter nor' "$m, \"exp.log_file\": \"\${NOT_SET_AT_ALL}.log\""
refuses 'never ends' "$m, \"exp.log_file\": \"\${exp.log_file}\""
refuses 'the log of another experiment, with another exp.model' '"exp.model": "lenet", "exp.log_file": "real.log"'
refuses 'exp.docker_launcher": "dockr" is not known; it may be docker\|.*\|apptainer\|singularity' \
	"$m, \"exp.docker_image\": \"i\", \"exp.docker_launcher\": \"dockr\""
refuses 'exp.docker": true, and "exp.docker_image" names no image' "$m, \"exp.docker\": true"
refuses 'exp.docker": "yes" is not known; it may be true\|false' "$m, \"exp.docker\": \"yes\""
refuses 'exp.docker_image": a text is needed' "$m, \"exp.docker_image\": true"
mkdir -p a:b
refuses 'a:b: a path with ":" or "," cannot be given to a container' \
	"$m, \"exp.docker_image\": \"i\", \"exp.data_dir\": \"a:b\""
refuses 'config.json, line 1, column 36: is no JSON: a name in quotation marks is missing' "$m,"
refuses 'config.json, line 1: has two members "exp.model"' "$m, \"exp.model\": \"lenet\""
refuses 'config.json, line 1: a text with a zero byte' "$m, \"exp.data_dir\": \"a\\u0000b\""
refuses 'exp.num_nodes": a whole number is needed' "$m, \"exp.num_nodes\": 99999999999999999999"
echo '{"paramaters": {}}' >config.json
ends 2 run config.json
expect '"paramaters" is not known here; the nearest name is "parameters"'
ends 1 run nothing.json
expect 'nothing.json'
ends 2 run
expect 'one configuration is needed'
echo x >file
config "$m, \"exp.log_file\": \"file/x.log\""
ends 1 run config.json
expect 'file: the folder cannot be'

part "logs that are wrong"
: >empty.log
ends 1 report empty.log
expect 'empty.log: no line __name__=value'
echo 'Epoch[0] Time cost=1' >other.log
ends 1 report other.log
expect 'other.log: no line'
sed 's/^\(__results.t[a-z]*__=\).*/\1nan/' real.log >nan.log
ends 0 report nan.log
expect 'nan.log, line \d+: the value of __results.throughput__ is no JSON'
expect '^\| mlp .*\| - \| - \| ok \|$'
grep -v exp.status real.log >short.log
ends 0 report short.log
expect '\| - \| - \| unfinished \|$'
ends 2 report
expect 'no logs are named'

part "DLBS's example"
BENCH_ROOT=there ends 0 run "$SRCDIR/jobs/dlbs/config.json" --dry-run
expect '^mxnet.rendezvous lo:127.0.0.1:29500: .*no port'
expect ' -n 4 .*--kv-store dist_device_sync --num-servers 2 --network resnet --num-layers 50 .*--interface lo '
"$SRCDIR/jobs/dlbs/run" 0 >"$log" 2>&1
[ $? = 2 ] || fail "exit status of ./run 0"
expect 'no rank 0 to start by hand'

finish
