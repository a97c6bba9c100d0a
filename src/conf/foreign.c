/* SPDX-License-Identifier: Apache-2.0 */
/* Options of other programs that no option stands for: what to do instead. */
#include "conf.h"

#include <string.h>

#include <muster/base.h>
#include <muster/net.h>

enum { NAME_BYTES = 64 };

/* Names: "|a|b|", with '-' for '_'. */
static const struct {
	const char *names, *advice;
} table[] = {
	{"|nproc-per-node|nproc|nnodes|nodes|world-size|num-processes|num-procs|np|n|",
	 "the launcher starts the ranks: mpirun -np N, or srun -n N, before the command"},
	{"|rank|local-rank|node-rank|master-addr|master-port|rdzv-endpoint|rdzv-backend|rdzv-id|"
	 "dist-url|init-method|multiprocessing-distributed|distributed|standalone|",
	 "ranks and hosts are known from MPI: leave it out, and start with mpirun -np N or srun"},
	{"|ddp|fsdp|zero|zero-stage|deepspeed|horovod|data-parallel|",
	 "with mpirun -np N all ranks train: --kv-store dist_allreduce (as DDP) or dist_sharded "
	 "(each rank updates a part, as ZeRO 1)"},
	{"|pin-memory|persistent-workers|compile|torch-compile|cudnn-benchmark|channels-last|"
	 "find-unused-parameters|",
	 "nothing has to be asked for here: leave it out"},
	{"|deterministic|use-deterministic-algorithms|",
	 "the same command gives the same bits: leave it out, --seed N draws other numbers"},
	{"|wandb|mlflow|comet|",
	 "write --tensorboard DIR, or --metrics-file FILE.jsonl or FILE.csv"},
	{"|threads|num-threads|omp-num-threads|nthreads|",
	 "OMP_NUM_THREADS in the environment is the number of threads of a rank; it is the cores "
	 "that the launcher gives it"},
	{"|clip-grad|",
	 "write --clip-global-norm X for the norm of all gradients, --clip-gradient X for each "
	 "value"},
	{"|nesterov|", "write --optimizer nag"},
	{"|ntasks|num-nodes|num-gpus|gpus-per-node|",
	 "the launcher starts the ranks, mpirun -np N or srun -n N; --devices names their devices"},
	{"|strategy|", "write --kv-store dist_sync, dist_async, dist_sharded or dist_allreduce"},
	{"|fast-dev-run|", "write --num-batches 5 --num-epochs 1, or --check"},
	{"|class-weight|", "--class-weights 1,2,5 is for that: a setting of --objective softmax"},
	{"|log-level|loglevel|", "write --quiet, or --verbose 1"},
	{"|ema|model-ema|mixup|cutmix|sync-bn|syncbn|sync-batchnorm|",
	 "there is no such thing here: leave it out"},
	{"|num-parts|part-index|num-part|part-idx|num-shards|shard|shard-id|shard-index|",
	 "each rank reads its part of the records by itself: leave it out"},
	{"|data|", "write --data-dir DIR (files of MNIST or CIFAR) or --data-train PATH (records, "
		   "a text, or a folder of images)"},
};

/* "--resnet18" */
static enum mu_status check_network(const char *name)
{
	enum mu_status st = MU_OK;
	long depth;
	const struct mu_network *meant = mu_network_guess(name, &depth);

	if (meant && depth > 0)
		MU_FAIL(MU_ERR_USAGE, "unknown option --%s: write --network %s --num-layers %ld",
			name, meant->name, depth);
out:
	return st;
}

enum mu_status mu_conf_check_foreign(int argc, char *const argv[])
{
	enum mu_status st = MU_OK;
	char name[NAME_BYTES + 2];

	for (int i = 1; i < argc; i++) {
		const size_t n = strcspn(argv[i], "=");

		if (strncmp(argv[i], "--", 2) != 0 || n < 3 || n >= NAME_BYTES)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)n - 2, argv[i] + 2);
		MU_TRY(check_network(name));
		snprintf(name, sizeof name, "|%.*s|", (int)n - 2, argv[i] + 2);
		for (char *p = name; *p; p++)
			*p = *p == '_' ? '-' : *p;
		for (size_t k = 0; k < sizeof table / sizeof *table; k++)
			if (strstr(table[k].names, name))
				MU_FAIL(MU_ERR_USAGE, "unknown option %.*s: %s", (int)n, argv[i],
					table[k].advice);
	}
out:
	return st;
}
