/* SPDX-License-Identifier: Apache-2.0 */
/* The log. A line is formatted in memory and written by one write call: ranks share a terminal or a
 * pipe, where pieces of buffered output would mix. */
#include <muster/base.h>

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

enum { LINE_BYTES = 8192, PREFIX_BYTES = 128, STATUS_BYTES = 256, FILES = 2 };

/* Return to the start of the line and clear it. */
#define ERASE "\r\033[K"

struct destination {
	struct mu_log_config config;
	char prefix[PREFIX_BYTES];
	bool lost; /* a line could not be written: there are no more */
};

static struct {
	struct destination stream, files[FILES];
	size_t n_files;
	char status[STATUS_BYTES]; /* status line below the log, "" if there is none */
} state = {.stream.config.level = MU_LOG_DETAIL};

/* Of the status line and of lines' order: threads that read data or open devices log, too. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void configure(struct destination *d, const struct mu_log_config *config)
{
	d->config = *config;
	mu_text_show(d->prefix, sizeof d->prefix, config->prefix ? config->prefix : "");
	d->config.prefix = d->prefix;
}

void mu_log_configure(const struct mu_log_config *config)
{
	configure(&state.stream, config);
}

enum mu_log_level mu_log_level(void)
{
	return state.stream.config.level;
}

enum mu_status mu_log_add_file(const struct mu_log_config *config)
{
	enum mu_status st = MU_OK;

	if (state.n_files == FILES)
		MU_FAIL(MU_ERR_ARGUMENT, "the log has %d files, and no more", FILES);
	state.files[state.n_files].lost = false;
	configure(&state.files[state.n_files++], config);
out:
	return st;
}

void mu_log_close_files(void)
{
	while (state.n_files > 0)
		fclose(state.files[--state.n_files].config.stream);
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

static const char *mark(enum mu_log_level level, bool colour)
{
	switch (level) {
	case MU_LOG_ERROR: return colour ? "\033[1;31merror:\033[0m " : "error: ";
	case MU_LOG_WARN: return colour ? "\033[1;33mwarning:\033[0m " : "warning: ";
	default: return "";
	}
}

/* status: the status line that the line must replace, and that follows it. */
static bool put(const struct destination *d, enum mu_log_level level, const char *text,
		const char *status)
{
	static const char cut[] = " ...";
	char line[LINE_BYTES + STATUS_BYTES];
	size_t used = 0, room;
	int n;

	if (*status)
		used += (size_t)snprintf(line, sizeof line, ERASE);
	if (d->config.time)
		used += put_time(line + used, sizeof line - used);
	n = snprintf(line + used, sizeof line - used, "%s%s%s", d->prefix, *d->prefix ? " " : "",
		     mark(level, d->config.colour));
	used += n > 0 ? (size_t)n : 0;
	room = LINE_BYTES - used - 1; /* the newline replaces the terminating zero */
	n = snprintf(line + used, room + 1, "%s", text);
	if ((size_t)n > room) {
		used += room;
		memcpy(line + used - (sizeof cut - 1), cut, sizeof cut - 1);
	} else {
		used += (size_t)n;
	}
	line[used++] = '\n';
	used += (size_t)snprintf(line + used, sizeof line - used, "%s", status);
	return mu_log_write(d->config.stream ? d->config.stream : stderr, line, used);
}

/* A line that was not written is told once, where the log goes otherwise. */
static void put_in_file(struct destination *d, enum mu_log_level level, const char *text)
{
	char warning[128];

	if (d->lost || put(d, level, text, ""))
		return;
	d->lost = true;
	snprintf(warning, sizeof warning, "the file of the log cannot be written: %s: it ends here",
		 strerror(errno));
	put(&state.stream, MU_LOG_WARN, warning, state.status);
}

static bool has(const struct destination *d, enum mu_log_form form, enum mu_log_level level)
{
	const enum mu_log_form other = d->config.plain ? MU_LOG_MXNET : MU_LOG_PLAIN;

	return level <= d->config.level && form != other;
}

__attribute__((format(printf, 3, 0))) static void
log_line(enum mu_log_form form, enum mu_log_level level, const char *format, va_list args)
{
	char line[LINE_BYTES + 1], text[LINE_BYTES + 1]; /* more than fits: put marks the cut */

	if (vsnprintf(line, sizeof line, format, args) < 0)
		return;
	mu_text_show(text, sizeof text, line);
	pthread_mutex_lock(&lock);
	if (form != MU_LOG_FILES && has(&state.stream, form, level))
		put(&state.stream, level, text, state.status);
	for (size_t i = 0; i < state.n_files; i++)
		if (has(&state.files[i], form, level))
			put_in_file(&state.files[i], level, text);
	pthread_mutex_unlock(&lock);
}

void mu_log(enum mu_log_level level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_line(MU_LOG_ANY, level, format, args);
	va_end(args);
}

void mu_log_in(enum mu_log_form form, enum mu_log_level level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_line(form, level, format, args);
	va_end(args);
}

static void set_status(const char *text)
{
	char line[STATUS_BYTES + sizeof ERASE];
	FILE *stream = state.stream.config.stream ? state.stream.config.stream : stderr;

	if (!text) {
		if (*state.status)
			mu_log_write(stream, "\n", 1);
		*state.status = '\0';
		return;
	}
	if (!*text && !*state.status)
		return;
	snprintf(state.status, sizeof state.status, "%s", text);
	snprintf(line, sizeof line, ERASE "%s", state.status);
	mu_log_write(stream, line, strlen(line));
}

void mu_log_status(const char *text)
{
	pthread_mutex_lock(&lock);
	set_status(text);
	pthread_mutex_unlock(&lock);
}
