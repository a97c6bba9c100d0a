/* SPDX-License-Identifier: Apache-2.0 */
/* The log. A line is formatted in memory and written by one write call: ranks share a terminal or a
 * pipe, where pieces of buffered output would mix. */
#include <muster/base.h>

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 8192, PREFIX_BYTES = 128, STATUS_BYTES = 256 };

/* Return to the start of the line and clear it. */
#define ERASE "\r\033[K"

static struct {
	FILE *stream; /* NULL = stderr */
	enum mu_log_level level;
	bool time;
	char prefix[PREFIX_BYTES];
	char status[STATUS_BYTES]; /* status line below the log, "" if there is none */
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

/* Date, time and milliseconds in the format of Python's logging; returns the length. */
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
	if (fd < 0) { /* a memory stream */
		fwrite(line, 1, nbytes, stream);
		fflush(stream);
		return;
	}
	while (nbytes > 0) {
		ssize_t n = write(fd, line, nbytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* a failing log must not end the training */
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
	char line[LINE_BYTES + STATUS_BYTES];
	size_t used = 0, room;
	va_list args;
	int n;

	if (level > state.level)
		return;
	if (*state.status)
		used += (size_t)snprintf(line, sizeof line, ERASE);
	if (state.time)
		used += put_time(line + used, sizeof line - used);
	n = snprintf(line + used, sizeof line - used, "%s%s%s", state.prefix,
		     *state.prefix ? " " : "", marks[level]);
	used += n > 0 ? (size_t)n : 0;
	room = LINE_BYTES - used - 1; /* the newline replaces the terminating zero */
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
	used += (size_t)snprintf(line + used, sizeof line - used, "%s", state.status);
	write_line(state.stream ? state.stream : stderr, line, used);
}

void mu_log_status(const char *text)
{
	char line[STATUS_BYTES + sizeof ERASE];
	FILE *stream = state.stream ? state.stream : stderr;

	if (!text) {
		if (*state.status)
			write_line(stream, "\n", 1);
		*state.status = '\0';
		return;
	}
	snprintf(state.status, sizeof state.status, "%s", text);
	snprintf(line, sizeof line, ERASE "%s", state.status);
	write_line(stream, line, strlen(line));
}
