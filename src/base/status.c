/* SPDX-License-Identifier: Apache-2.0 */
/* Status names and the error trace: the message of the thread's last error and the places that it
 * climbed through. Each thread has its own trace, so there are no locks. */
#include <muster/base.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES = 2048, PLACES_MAX = 32, PRINT_BYTES = 8192, WHO_BYTES = 256 };

struct place {
	const char *file;
	int line;
	const char *call; /* NULL for the place that detected the error */
};

struct mu_trace {
	enum mu_status st; /* MU_OK: there is no trace */
	int number;        /* errno where the error was detected */
	int known;         /* ranks that know of the error */
	char message[MESSAGE_BYTES];
	int n; /* places passed; the first PLACES_MAX are stored */
	struct place places[PLACES_MAX];
};

static _Thread_local struct mu_trace trace;
static _Thread_local bool held; /* see mu_trace_hold */

/* See mu_trace_configure. */
static bool always_whole, colours;

static const char *const names[] = {
	[MU_OK] = "ok",
	[MU_ERR_USAGE] = "wrong use",
	[MU_ERR_ARGUMENT] = "wrong argument",
	[MU_ERR_MEMORY] = "out of memory",
	[MU_ERR_IO] = "input/output error",
	[MU_ERR_FORMAT] = "wrong file format",
	[MU_ERR_MPI] = "MPI error",
	[MU_ERR_DEVICE] = "device error",
	[MU_ERR_NUMERIC] = "not a finite number",
	[MU_ERR_UNSUPPORTED] = "not supported",
	[MU_ERR_PEER] = "error on another rank",
	[MU_ERR_TIMEOUT] = "waited too long",
	[MU_ERR_HARDWARE] = "hardware error",
};

const char *mu_status_name(enum mu_status st)
{
	size_t i = (size_t)st;

	return i < sizeof names / sizeof *names ? names[i] : "unknown status";
}

static void add_place(const char *file, int line, const char *call)
{
	/* An out-of-tree build compiles "../src/base/log.c": drop the leading "../". */
	while (strncmp(file, "../", 3) == 0)
		file += 3;
	if (trace.n < PLACES_MAX)
		trace.places[trace.n] = (struct place){file, line, call};
	trace.n++;
}

enum mu_status mu_trace_start(enum mu_status st, const char *file, int line, const char *format,
			      ...)
{
	char message[MESSAGE_BYTES];
	const int number = errno;
	va_list args;

	/* Format into a buffer first: an argument may be the message of the trace that this one
	 * replaces. */
	if (held)
		return st;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	mu_text_show(trace.message, sizeof trace.message, message);
	trace.st = st;
	trace.number = number;
	trace.known = 0;
	trace.n = 0;
	add_place(file, line, NULL);
	return st;
}

void mu_trace_add(enum mu_status st, const char *file, int line, const char *call)
{
	if (held)
		return;
	if (trace.st == MU_OK) {
		trace.st = st;
		trace.number = 0;
		trace.known = 0;
		snprintf(trace.message, sizeof trace.message, "%s", mu_status_name(st));
	}
	add_place(file, line, call);
}

void mu_trace_prefix(const char *format, ...)
{
	char message[MESSAGE_BYTES];
	va_list args;
	size_t n;

	if (trace.st == MU_OK)
		return;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	n = strlen(message);
	snprintf(message + n, sizeof message - n, "%s", trace.message);
	mu_text_show(trace.message, sizeof trace.message, message);
}

void mu_trace_replace(const char *from, const char *to)
{
	char message[MESSAGE_BYTES] = "", *out = message;
	const char *rest = trace.message, *found;
	size_t left = sizeof message;

	for (; left > 1 && (found = strstr(rest, from)); rest = found + strlen(from)) {
		snprintf(out, left, "%.*s%s", (int)(found - rest), rest, to);
		left -= strlen(out);
		out += strlen(out);
	}
	snprintf(out, left, "%s", rest);
	memcpy(trace.message, message, sizeof message);
}

const char *mu_trace_message(void)
{
	return trace.st == MU_OK ? "" : trace.message;
}

bool mu_trace_is_final(void)
{
	/* Room, quotas, other processes, and the servers of network file systems change. */
	static const int passing[] = {
		ENOSPC, EDQUOT,    EIO,          ENOMEM, EMFILE,    ENFILE,
		EBUSY,  ETIMEDOUT, EHOSTUNREACH, ESTALE, EHOSTDOWN, EREMOTEIO,
	};

	switch (trace.st) {
	case MU_ERR_USAGE:
	case MU_ERR_ARGUMENT:
	case MU_ERR_MEMORY:
	case MU_ERR_FORMAT:
	case MU_ERR_UNSUPPORTED: return true;
	case MU_ERR_IO: break;
	default: return false;
	}
	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
		if (trace.number == passing[i])
			return false;
	return true;
}

/* snprintf at text + used; returns the new length, at most nbytes - 1. */
static size_t append(char *text, size_t nbytes, size_t used, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static size_t append(char *text, size_t nbytes, size_t used, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text + used, nbytes - used, format, args);
	va_end(args);
	if (n < 0)
		return used;
	return (size_t)n < nbytes - used ? used + (size_t)n : nbytes - 1;
}

void mu_trace_print(FILE *stream, const char *who)
{
	char text[PRINT_BYTES];
	size_t used = 0;

	if (trace.st == MU_OK)
		return;
	if (who && *who)
		used = append(text, sizeof text, used, "%s: ", mu_shown(who));
	used = append(text, sizeof text, used, "error: %s (%s)\n", trace.message,
		      mu_status_name(trace.st));
	for (int i = 0; i < trace.n && i < PLACES_MAX; i++) {
		const struct place *p = &trace.places[i];

		used = append(text, sizeof text, used, "    at %s:%d%s%s\n", p->file, p->line,
			      p->call ? " in " : "", p->call ? p->call : "");
	}
	if (trace.n > PLACES_MAX)
		used = append(text, sizeof text, used, "    and %d more places\n",
			      trace.n - PLACES_MAX);
	/* One write, so that the traces of several ranks do not mix. */
	mu_log_write(stream, text, used);
}

void mu_trace_configure(bool whole, bool colour)
{
	always_whole = whole;
	colours = colour;
}

/* Not the user's to mend. */
static bool is_defect(enum mu_status st)
{
	return st == MU_ERR_ARGUMENT || st == MU_ERR_MPI || st == MU_ERR_DEVICE;
}

/*
 * The command "muster train" sets MUSTER_COMMAND to "trainer:muster train": messages of the program
 * trainer, "trainer: ...", begin with the command's name.
 */
static const char *name_command(const char *who, char *text, size_t nbytes)
{
	const char *command = getenv("MUSTER_COMMAND");
	const size_t n = command ? strcspn(command, ":") : 0;

	if (n == 0 || command[n] == '\0' || !who || strncmp(who, command, n) != 0 ||
	    (who[n] != ':' && who[n] != '\0'))
		return who;
	snprintf(text, nbytes, "%s%s", command + n + 1, who + n);
	return text;
}

void mu_trace_report(FILE *stream, const char *who)
{
	char text[PRINT_BYTES], name[WHO_BYTES];

	who = name_command(who, name, sizeof name);
	if (always_whole || is_defect(trace.st)) {
		mu_trace_print(stream, who);
		return;
	}
	if (trace.st == MU_OK)
		return;
	append(text, sizeof text, 0, "%s%s%serror:%s %s\n", mu_shown(who ? who : ""),
	       who && *who ? ": " : "", colours ? "\033[1;31m" : "", colours ? "\033[0m" : "",
	       trace.message);
	mu_log_write(stream, text, strlen(text)); /* one write, so that ranks do not mix */
}

bool mu_trace_place(size_t i, char *text, size_t nbytes)
{
	const struct place *p = &trace.places[i < PLACES_MAX ? i : 0];

	if (trace.st == MU_OK || i >= PLACES_MAX || i >= (size_t)trace.n)
		return false;
	snprintf(text, nbytes, "%s:%d%s%s", p->file, p->line, p->call ? " in " : "",
		 p->call ? p->call : "");
	return true;
}

void mu_trace_clear(void)
{
	if (held)
		return;
	trace.st = MU_OK;
	trace.known = 0;
	trace.n = 0;
}

void mu_trace_hold(bool hold)
{
	held = hold;
}

void mu_trace_set_known(int ranks)
{
	trace.known = ranks;
}

int mu_trace_known(void)
{
	return trace.st == MU_OK ? 0 : trace.known;
}

struct mu_trace *mu_trace_detach(void)
{
	struct mu_trace *detached = trace.st == MU_OK ? NULL : malloc(sizeof *detached);

	if (detached)
		*detached = trace;
	mu_trace_clear();
	return detached;
}

void mu_trace_attach(struct mu_trace *detached)
{
	if (detached && !held)
		trace = *detached;
	free(detached);
}
