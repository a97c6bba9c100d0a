/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill_at RANK N PREFIX COMMAND...: run the command, and on the rank RANK of a job kill it where it
 * enters its Nth system call that changes or opens a file whose name begins with PREFIX, or the
 * folder of such a file, whichever of its threads calls. N = 0: count them, into PREFIX-calls.
 * Calls that read a lock, every few seconds, do not count: how many there are depends on the time.
 * kill_at RANK N FOLDER/ COMMAND...: the folder becomes FOLDER-taken where the command enters its
 * Nth call that changes, opens or looks at the folder or what is in it, and the command goes on.
 * Exit status: the command's; 77 where processes cannot be traced here.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* process_vm_readv */
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

enum { NOTHING = -1 };

/* Which argument names the file: by a path, or by a file descriptor. */
struct call {
	long number;
	int path, fd;
};

static const struct call changes[] = {
	{SYS_openat, 1, NOTHING},    {SYS_write, NOTHING, 0},     {SYS_pwrite64, NOTHING, 0},
	{SYS_writev, NOTHING, 0},    {SYS_pwritev, NOTHING, 0},   {SYS_ftruncate, NOTHING, 0},
	{SYS_fallocate, NOTHING, 0}, {SYS_fsync, NOTHING, 0},     {SYS_fdatasync, NOTHING, 0},
	{SYS_close, NOTHING, 0},     {SYS_renameat, 3, NOTHING},  {SYS_renameat2, 3, NOTHING},
	{SYS_unlinkat, 1, NOTHING},  {SYS_symlinkat, 2, NOTHING},
#ifdef SYS_open
	{SYS_open, 0, NOTHING},      {SYS_creat, 0, NOTHING},     {SYS_rename, 1, NOTHING},
	{SYS_unlink, 0, NOTHING},    {SYS_symlink, 1, NOTHING},
#endif
	{NOTHING, NOTHING, NOTHING},
};

static const struct call looks[] = {
	{SYS_newfstatat, 1, NOTHING}, {SYS_statx, 1, NOTHING},      {SYS_faccessat, 1, NOTHING},
	{SYS_faccessat2, 1, NOTHING}, {SYS_readlinkat, 1, NOTHING},
#ifdef SYS_stat
	{SYS_stat, 0, NOTHING},       {SYS_lstat, 0, NOTHING},      {SYS_access, 0, NOTHING},
	{SYS_readlink, 0, NOTHING},
#endif
	{NOTHING, NOTHING, NOTHING},
};

static size_t folder_bytes(const char *prefix)
{
	const size_t n = strlen(prefix);

	return n > 0 && prefix[n - 1] == '/' ? n - 1 : 0;
}

/* The folder, or a file in it? */
static bool is_inside(const char *path, const char *prefix)
{
	const size_t n = folder_bytes(prefix);

	return strncmp(path, prefix, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool begins(const char *path, const char *prefix)
{
	const char *slash = strrchr(path, '/');

	if (folder_bytes(prefix))
		return is_inside(path, prefix);
	return strncmp(slash ? slash + 1 : path, prefix, strlen(prefix)) == 0;
}

/* A path in the memory of a thread; byte by byte, so as not to read past its page. */
static void read_path(pid_t pid, uint64_t at, char path[PATH_MAX])
{
	size_t n = 0;

	do {
		struct iovec here = {path + n, 1}, there = {(void *)(uintptr_t)(at + n), 1};

		if (process_vm_readv(pid, &here, 1, &there, 1, 0) != 1)
			break;
	} while (path[n] && ++n < PATH_MAX - 1);
	path[n] = '\0';
}

static bool is_file(pid_t pid, uint64_t fd, const char *prefix, char path[PATH_MAX])
{
	char link[64], here[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/%ld/fd/%d", (long)pid, (int)fd);
	n = readlink(link, path, PATH_MAX - 1);
	if (n < 0)
		return false;
	path[n] = '\0';
	if (!getcwd(here, sizeof here))
		return begins(path, prefix);
	if (folder_bytes(prefix)) /* from here, as the paths of calls */
		return strncmp(path, here, strlen(here)) == 0 && path[strlen(here)] == '/' &&
		       is_inside(path + strlen(here) + 1, prefix);
	return begins(path, prefix) || strcmp(path, here) == 0;
}

/* Of a lock: opened to be read, or closed. See beat in checkpoint/lock.c. */
static bool reads_lock(const struct ptrace_syscall_info *info, const char *path)
{
	const char *end = strrchr(path, '.');

	if (!end || strcmp(end, ".lock") != 0)
		return false;
	return info->entry.nr == SYS_close ||
	       (info->entry.nr == SYS_openat && (info->entry.args[2] & O_ACCMODE) == O_RDONLY);
}

static bool is_among(const struct call *c, pid_t pid, const struct ptrace_syscall_info *info,
		     const char *prefix)
{
	char path[PATH_MAX];

	while (c->number != NOTHING && (long)info->entry.nr != c->number)
		c++;
	if (c->number == NOTHING)
		return false;
	if (c->fd != NOTHING)
		return is_file(pid, info->entry.args[c->fd], prefix, path) &&
		       !reads_lock(info, path);
	read_path(pid, info->entry.args[c->path], path);
	return begins(path, prefix) && !reads_lock(info, path);
}

/* Does this thread enter one of the calls? */
static bool is_counted(pid_t pid, const char *prefix)
{
	struct ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof info, &info) <= 0 ||
	    info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return false;
	return is_among(changes, pid, &info, prefix) ||
	       (folder_bytes(prefix) && is_among(looks, pid, &info, prefix));
}

static void strike(pid_t child, const char *prefix)
{
	char from[PATH_MAX], to[PATH_MAX];
	const int n = (int)folder_bytes(prefix);

	if (n == 0) {
		kill(child, SIGKILL);
		return;
	}
	snprintf(from, sizeof from, "%.*s", n, prefix);
	snprintf(to, sizeof to, "%.*s-taken", n, prefix);
	if (rename(from, to) != 0)
		perror(from);
}

static void write_count(const char *prefix, long n)
{
	const size_t folder = folder_bytes(prefix);
	char name[PATH_MAX];
	FILE *file;

	snprintf(name, sizeof name, "%.*s-calls", (int)(folder ? folder : strlen(prefix)), prefix);
	file = fopen(name, "w");
	if (file && fprintf(file, "%ld\n", n) > 0)
		fclose(file);
}

/* Until the process has ended; its status, as waitpid gives it. */
static int trace(pid_t child, long kill_at, const char *prefix)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
			     PTRACE_O_EXITKILL;
	long n = 0;
	int status;
	pid_t pid = child;

	ptrace(PTRACE_SETOPTIONS, child, 0, options);
	ptrace(PTRACE_SYSCALL, child, 0, 0);
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		int signal = 0;

		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (pid == child)
				break;
			continue;
		}
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			if (is_counted(pid, prefix) && ++n == kill_at)
				strike(child, prefix);
		} else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
			signal = WSTOPSIG(status);
		}
		ptrace(PTRACE_SYSCALL, pid, 0, signal);
	}
	if (kill_at == 0)
		write_count(prefix, n);
	return status;
}

/* What MPICH's launcher, or Open MPI's, says. */
static int my_rank(void)
{
	const char *text = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");

	return text ? atoi(text) : 0;
}

int main(int argc, char *argv[])
{
	pid_t child;
	int status;

	if (argc < 5) {
		fprintf(stderr, "usage: kill_at RANK N PREFIX COMMAND...\n");
		return 2;
	}
	if (my_rank() != atoi(argv[1])) {
		execv(argv[4], argv + 4);
		perror(argv[4]);
		return 127;
	}
	child = fork();
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) {
			fprintf(stderr, "skip: no process can be traced here: %s\n",
				strerror(errno));
			_exit(77);
		}
		raise(SIGSTOP);
		execv(argv[4], argv + 4);
		perror(argv[4]);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 1;
	if (!WIFEXITED(status))
		status = trace(child, atol(argv[2]), argv[3]);
	if (WIFSIGNALED(status)) { /* as the command itself would have ended */
		kill(getpid(), WTERMSIG(status));
		pause();
	}
	return WEXITSTATUS(status);
}
