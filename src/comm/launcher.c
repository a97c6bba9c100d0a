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
	const char *size; /* the variable with the number of processes */
	const char *rank; /* and with the number of this process */
	const char *advice;
} launchers[] = {
	{"mpirun of Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
	 "start it with the mpirun of its own MPI"},
	{"mpirun of MPICH or a relative of it", "PMI_SIZE", "PMI_RANK",
	 "start it with the mpirun of its own MPI"},
	{"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID",
	 "start it with srun --mpi=pmi2 (MPICH), srun --mpi=pmix (Open MPI), or mpirun"},
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

/* The outermost process of the launcher on this host; 0: none. */
static int find_launcher(void)
{
	char name[64];
	int pid = (int)getppid(), parent, launcher = 0;

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
	const char *text = getenv(variable);

	return text ? atoi(text) : 0;
}

bool mu_world_launched(void)
{
	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
		if (getenv(launchers[i].size))
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

		if (number(l->size) <= 1)
			continue;
		if (number(l->rank) != 0) {
			nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
			st = MU_ERR_USAGE;
			goto out;
		}
		mu_comm_version(mpi, sizeof mpi);
		MU_FAIL(MU_ERR_USAGE,
			"the launcher, %s, started %d processes, but for the MPI of this "
			"program (%.40s) each is alone: %s",
			l->name, number(l->size), mpi, l->advice);
	}
out:
	return st;
}
