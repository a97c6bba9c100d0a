/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of the queueing system: see program.h. */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int mu_comm_program_start(struct comm_program *p, char *const words[], bool errors)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int ends[2], error;
	sigset_t none;

	p->pid = 0;
	if (pipe(ends) != 0)
		return errno;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	fcntl(ends[1], F_SETFD, FD_CLOEXEC);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	if (errors)
		posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
	else
		posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_init(&attributes);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	error = posix_spawnp(&p->pid, words[0], &actions, &attributes, words, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	p->output = ends[0];
	if (error) {
		p->pid = 0;
		close(ends[0]);
	}
	return error;
}

int mu_comm_program_end(struct comm_program *p)
{
	int status = 0;

	if (p->pid <= 0)
		return 0;
	close(p->output);
	kill(-p->pid, SIGKILL);
	waitpid(p->pid, &status, 0);
	p->pid = 0;
	return status;
}
