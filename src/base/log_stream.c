/* SPDX-License-Identifier: Apache-2.0 */
/* Texts to a stream that another process may read: a terminal, a pipe. Its reader may stop reading,
 * or end: neither may stop training. */
#include <muster/base.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STALL_SECONDS = 5, NONE = -1 };

static struct {
	int stalled;     /* the descriptor whose reader did not read for STALL_SECONDS */
	atomic_bool cut; /* the reader has ended */
} state = {.stalled = NONE};

/* Waits for room, but once only for a reader that does not read. A part of PIPE_BUF bytes then
 * never blocks: poll reports a pipe that has room for as much. */
static bool has_room(int fd)
{
	struct pollfd stream = {.fd = fd, .events = POLLOUT};
	const int limit = state.stalled == fd ? 0 : STALL_SECONDS * 1000;
	int n;

	do
		n = poll(&stream, 1, limit);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		state.stalled = fd;
	else if (state.stalled == fd)
		state.stalled = NONE;
	return n != 0;
}

/* The reader has ended: at the terminal of the process somebody may still see the log. */
static void cut(int fd)
{
	const int terminal = open("/dev/tty", O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

	state.cut = true;
	if (terminal < 0)
		return;
	(void)!dup2(terminal, fd);
	close(terminal);
}

bool mu_log_write(FILE *stream, const char *text, size_t nbytes)
{
	const int fd = fileno(stream);
	struct stat info;
	size_t most = PIPE_BUF;

	fflush(stream);
	if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
		most = nbytes; /* in one piece: ranks may share the file */
	if (fd < 0) { /* a memory stream */
		fwrite(text, 1, nbytes, stream);
		return fflush(stream) == 0;
	}
	while (nbytes > 0) {
		ssize_t n = -1;

		if (!has_room(fd))
			return false;
		n = write(fd, text, nbytes < most ? nbytes : most);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EPIPE && !state.cut && fd <= STDERR_FILENO) {
			cut(fd);
			continue;
		}
		if (n <= 0)
			return false; /* a failing log must not end the training */
		text += n;
		nbytes -= (size_t)n;
	}
	return true;
}

bool mu_log_is_cut(void)
{
	return state.cut;
}
