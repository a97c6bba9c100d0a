/* SPDX-License-Identifier: Apache-2.0 */
/* The standard streams of a program, and limits of what it writes. */
#include <muster/base.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/*
 * Where the caller has closed a standard stream, the next file that is opened would have its
 * number, and what is printed would go to that file. So the number is taken, by a descriptor that
 * cannot be used in the stream's direction.
 */
void mu_streams_begin(void)
{
	struct sigaction limit;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			break;
	/* A limit of file sizes is an error of write, not the end. */
	if (sigaction(SIGXFSZ, NULL, &limit) == 0 && limit.sa_handler == SIG_DFL)
		signal(SIGXFSZ, SIG_IGN);
}

int mu_streams_end(const char *program, int exit_status)
{
	enum mu_status st = MU_OK;

	errno = 0;
	if ((fflush(stdout) != 0 || ferror(stdout)) && exit_status == 0)
		MU_FAIL(MU_ERR_IO, "the output could not be written%s%s", errno ? ": " : "",
			errno ? strerror(errno) : "");
out:
	if (st == MU_OK)
		return exit_status;
	mu_trace_report(stderr, program);
	return 1;
}
