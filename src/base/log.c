/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log. A line is put together in memory and handed to the system with one write call: ranks
 * share a terminal or a pipe, and the pieces of buffered output would mix.
 */
#include <muster/base.h>

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 8192, PREFIX_BYTES = 128 };

static struct {
	FILE *stream; /* NULL = stderr */
	enum mu_log_level level;
	bool time;
	char prefix[PREFIX_BYTES];
} state = {.level = MU_LOG_INFO};

void mu_log_configure(const struct mu_log_config *config)
{
	state.stream = config->stream;
	state.level = config->level;
	state.time = config->time;
	snprintf(state.prefix, sizeof state.prefix, "%s", config->prefix ? config->prefix : "");
}

enum mu_log_level mu_log_level(void)
{
	return state.level;
}

/* Date, time and milliseconds as Python's logging writes them; returns the length. */
static size_t put_time(char *text, size_t nbytes)
{
	struct timespec now;
	struct tm parts;
	size_t n;
	int rest;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &parts);
	n = strftime(text, nbytes, "%Y-%m-%d %H:%M:%S", &parts);
	rest = snprintf(text + n, nbytes - n, ",%03ld ", now.tv_nsec / 1000000);
	return rest > 0 ? n + (size_t)rest : n;
}

static void write_line(FILE *stream, const char *line, size_t nbytes)
{
	int fd = fileno(stream);

	fflush(stream);
	if (fd < 0) { /* a stream in memory */
		fwrite(line, 1, nbytes, stream);
		fflush(stream);
		return;
	}
	while (nbytes > 0) {
		ssize_t n = write(fd, line, nbytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* a log that cannot be written must not end the training */
		line += n;
		nbytes -= (size_t)n;
	}
}

void mu_log(enum mu_log_level level, const char *format, ...)
{
	static const char *const marks[] = {
		[MU_LOG_ERROR] = "error: ",
		[MU_LOG_WARN] = "warning: ",
		[MU_LOG_INFO] = "",
		[MU_LOG_DEBUG] = "",
	};
	static const char cut[] = " ...";
	char line[LINE_BYTES];
	size_t used = 0, room;
	va_list args;
	int n;

	if (level > state.level)
		return;
	if (state.time)
		used += put_time(line, sizeof line);
	n = snprintf(line + used, sizeof line - used, "%s%s%s", state.prefix,
		     *state.prefix ? " " : "", marks[level]);
	used += n > 0 ? (size_t)n : 0;
	room = sizeof line - used - 1; /* the newline takes the place of the terminating zero */
	va_start(args, format);
	n = vsnprintf(line + used, room + 1, format, args);
	va_end(args);
	if (n < 0)
		return;
	if ((size_t)n > room) {
		used += room;
		memcpy(line + used - (sizeof cut - 1), cut, sizeof cut - 1);
	} else {
		used += (size_t)n;
	}
	line[used++] = '\n';
	write_line(state.stream ? state.stream : stderr, line, used);
}
