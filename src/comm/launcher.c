/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher's view of the job: the environment variables that each kind of mpirun sets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher.h"

static const struct launcher {
	const char *name;
	const char *size[2]; /* variables whose sum is the number of processes */
	const char *rank;    /* with the number of this process */
	const char *set;     /* it started this process only if this is set, too; or NULL */
	bool mpi;            /* of an MPI */
	const char *advice;
} launchers[] = {
	{"mpirun of Open MPI", {"OMPI_COMM_WORLD_SIZE"}, "OMPI_COMM_WORLD_RANK", .mpi = true,
	 .advice = "start it with the mpirun of its own MPI"},
	{"mpirun of MPICH or a relative of it", {"PMI_SIZE"}, "PMI_RANK", .mpi = true,
	 .advice = "start it with the mpirun of its own MPI"},
	{"srun", {"SLURM_STEP_NUM_TASKS"}, "SLURM_PROCID", .mpi = true,
	 .advice = "start it with srun --mpi=pmi2 (MPICH), srun --mpi=pmix (Open MPI), or mpirun"},
	{"mpirun of MVAPICH", {"MV2_COMM_WORLD_SIZE"}, "MV2_COMM_WORLD_RANK",
	 .advice = "start it with the mpirun of its own MPI"},
	{"jsrun", {"JSM_NAMESPACE_SIZE"}, "JSM_NAMESPACE_RANK",
	 .advice = "start it with the mpirun of its own MPI"},
	{"torchrun or one like it", {"WORLD_SIZE"}, "RANK", .set = "RANK",
	 .advice = "start it with mpirun -np N"},
	{"horovodrun", {"HOROVOD_SIZE"}, "HOROVOD_RANK", .advice = "start it with mpirun -np N"},
	{"a launcher of MXNet", {"DMLC_NUM_WORKER", "DMLC_NUM_SERVER"}, "DMLC_WORKER_ID",
	 .set = "DMLC_ROLE",
	 .advice = "start it with mpirun -np N, of which a setting says how many are servers"},
};

/* Processes between a user's shell and a rank; the kernel truncates names to 15 characters. */
static bool is_launcher(const char *name)
{
	static const char *const names[] = {"hydra_", "mpiexec", "mpirun",    "orte",
					    "prte",   "srun",    "slurmstepd"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Name and parent of a process. */
static bool read_process(int pid, char name[64], int *parent)
{
	char path[64];
	FILE *file;
	bool good;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	good = fscanf(file, "%*d (%63[^)]) %*c %d", name, parent) == 2;
	fclose(file);
	return good;
}

/* The outermost process of the launcher on this host; 0: none. Looked for once: another parent
 * than before is where the launcher has ended. */
static int find_launcher(void)
{
	static int looked_from, launcher;
	char name[64];
	int pid = (int)getppid(), parent;

	if (pid == looked_from)
		return launcher;
	looked_from = pid;
	launcher = 0;
	while (read_process(pid, name, &parent) && is_launcher(name)) {
		launcher = pid;
		pid = parent;
	}
	return launcher;
}

bool mu_comm_on_terminal(void)
{
	const int launcher = find_launcher();
	char path[64], target[64] = "";

	if (launcher == 0)
		return isatty(STDERR_FILENO);
	snprintf(path, sizeof path, "/proc/%d/fd/2", launcher);
	if (readlink(path, target, sizeof target - 1) < 0)
		return false;
	return strncmp(target, "/dev/pts/", 9) == 0 || strncmp(target, "/dev/tty", 8) == 0;
}

bool mu_comm_output_to_file(void)
{
	const int launcher = find_launcher();
	char path[64];
	struct stat file;

	if (launcher == 0)
		return fstat(STDOUT_FILENO, &file) == 0 && S_ISREG(file.st_mode);
	snprintf(path, sizeof path, "/proc/%d/fd/1", launcher);
	return stat(path, &file) == 0 && S_ISREG(file.st_mode);
}

bool mu_comm_colours(void)
{
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM"); /* no-color.org */

	return !(none && *none) && !(term && strcmp(term, "dumb") == 0) && mu_comm_on_terminal();
}

static int number(const char *variable)
{
	const char *text = variable ? getenv(variable) : NULL;

	return text ? atoi(text) : 0;
}

bool mu_world_launched(void)
{
	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
		if (launchers[i].mpi && getenv(launchers[i].size[0]))
			return true;
	return false;
}

enum mu_status mu_launcher_check(int size)
{
	enum mu_status st = MU_OK;
	char mpi[128];

	if (size > 1)
		goto out;
	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
		const struct launcher *l = &launchers[i];
		const int n = number(l->size[0]) + number(l->size[1]);

		if (n <= 1 || (l->set && !getenv(l->set)))
			continue;
		if (number(l->rank) != 0) /* the first one may end all */
			nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
		mu_comm_version(mpi, sizeof mpi);
		MU_FAIL(MU_ERR_USAGE,
			"the launcher, %s, started %d processes, but for the MPI of this "
			"program (%.40s) each is alone, as this one, number %d: %s; if it is to "
			"be alone, unset %s",
			l->name, n, mpi, number(l->rank), l->advice, l->size[0]);
	}
out:
	return st;
}

/* MPICH's simulation of nodes, on one: ranks are in turn on them, or in blocks. 0: none. */
static int clique(void)
{
	const int rank = number("PMI_RANK"), size = number("PMI_SIZE");
	const int asked = number("MPIR_CVAR_NUM_CLIQUES"), n = asked < size ? asked : size;
	int large, each;

	if (n < 2)
		return 0;
	if (!number("MPIR_CVAR_CLIQUES_BY_BLOCK"))
		return 1 + rank % n;
	each = size / n;
	large = size % n * (each + 1); /* ranks of blocks that have one more */
	return 1 + (rank < large ? rank / (each + 1) : size % n + (rank - large) / each);
}

struct mu_launcher_place mu_launcher_place(int size)
{
	static const struct {
		const char *size, *local, *local_size, *node;
	} names[] = {
		{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
		 NULL},
		{"PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL},
		{"SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL, "SLURM_NODEID"},
	};
	struct mu_launcher_place p = {.node = -clique(), .local = -1};

	for (size_t i = 0; i < sizeof names / sizeof *names && p.node == 0; i++)
		if (number(names[i].size) == size && getenv(names[i].local)) {
			p.local = number(names[i].local);
			p.local_size = number(names[i].local_size);
			p.node = 1 + number(names[i].node);
		}
	return p;
}

/* Tasks of a job of Slurm that has no step: its batch file runs this program itself. */
static int slurm_tasks(void)
{
	/* The second is its old name. */
	const char *name = getenv("SLURM_NTASKS") ? "SLURM_NTASKS" : "SLURM_NPROCS";
	const int nodes = number("SLURM_JOB_NUM_NODES"), tasks = number(name),
		  each = number("SLURM_NTASKS_PER_NODE");

	if (!getenv("SLURM_JOB_ID") || getenv("SLURM_STEP_NUM_TASKS"))
		return 0;
	if (tasks > 0)
		return tasks > nodes ? tasks : nodes;
	return each > 0 ? each * nodes : nodes;
}

void mu_comm_report_launcher(const struct mu_members *m)
{
	const int n = m->size, tasks = slurm_tasks(), workers = number("DMLC_NUM_WORKER"),
		  servers = number("DMLC_NUM_SERVER"), world = number("WORLD_SIZE"),
		  local = number("LOCAL_WORLD_SIZE"), pmix = number("PMIX_RANK");
	const char *role = getenv("DMLC_ROLE");

	if (n == 1 && tasks > 1)
		mu_log_warn("Slurm gives this job %d tasks or nodes, and one process trains: "
			    "mpirun, srun --mpi=pmi2 (MPICH) or srun --mpi=pmix (Open MPI) starts "
			    "all; sbatch -n 1 is for one",
			    tasks);
	if (world > 0 && world != n)
		mu_log_warn("WORLD_SIZE is %d in the environment, and this job has %d rank%s: "
			    "mpirun -np N says how many",
			    world, n, MU_S(n));
	else if (local > 0 && local != m->topology.node_size)
		mu_log_warn("LOCAL_WORLD_SIZE is %d in the environment, and this node has %d "
			    "rank%s: mpirun -np N says how many",
			    local, m->topology.node_size, MU_S(m->topology.node_size));
	if (n == 1 && pmix > 0)
		mu_log_warn("PMIX_RANK is %d in the environment, so that other processes were "
			    "started, and this job has 1 rank: each is alone",
			    pmix);
	if ((workers > 0 && workers != m->num_workers) ||
	    (getenv("DMLC_NUM_SERVER") && servers != m->num_servers))
		mu_log_warn("DMLC_NUM_WORKER is %d and DMLC_NUM_SERVER %d in the environment, and "
			    "this job has %d worker%s and %d server%s: mpirun and the number of "
			    "servers among the options say how many",
			    workers, servers, m->num_workers, MU_S(m->num_workers), m->num_servers,
			    MU_S(m->num_servers));
	if (role && strcmp(role, "worker") != 0)
		mu_log_warn("DMLC_ROLE is %s in the environment, and has no effect: the number of "
			    "servers among the options says which ranks are servers",
			    role);
}
