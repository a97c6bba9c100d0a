/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Help is as wide as the terminal, from 60 to 120 columns; COLUMNS wins; elsewhere it has 100. */
#define _GNU_SOURCE /* posix_openpt */
#include <muster/base.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <string.h>
#include <unistd.h>

#include "../lib/check.h"

#define WORDS "a text of many short words, more of them than fit into a line of a wide terminal; "

static const struct mu_option table[] = {
	{.name = "help", .type = MU_OPTION_FLAG, .group = "About", .help = WORDS WORDS WORDS},
};

/* The widest line of the help on a stream whose other end is fd. */
static size_t widest_line(FILE *stream, int fd)
{
	struct mu_options o;
	bool help;
	char text[4096];
	size_t column = 0, widest = 0;
	ssize_t n;

	if (!CHECK(mu_options_init(&o, table, 1, &help) == MU_OK))
		return 0;
	mu_options_help(&o, stream, true);
	fputs("#\n", stream); /* the end: a terminal may give a text in parts */
	fflush(stream);
	do {
		n = read(fd, text, sizeof text);
		for (ssize_t i = 0; i < n; i++) {
			column = text[i] == '\n' || text[i] == '\r' ? 0 : column + 1;
			widest = column > widest ? column : widest;
		}
	} while (n > 0 && !memchr(text, '#', (size_t)n));
	mu_options_release(&o);
	return widest;
}

static void check_width(FILE *stream, int fd, size_t columns)
{
	const size_t widest = widest_line(stream, fd);

	CHECK(mu_columns(stream) == columns);
	if (!CHECK(widest <= columns && widest + 10 > columns))
		fprintf(stderr, "    %zu of %zu columns\n", widest, columns);
}

static void check_terminal(void)
{
	static const struct {
		unsigned short terminal;
		const char *set; /* COLUMNS */
		size_t columns;
	} rows[] = {
		{80, NULL, 80},   {100, NULL, 100}, {40, NULL, 60},  {300, NULL, 120},
		{0, NULL, 100},   {80, "90", 90},   {80, "0", 80},   {80, "text", 80},
	};
	const int fd = posix_openpt(O_RDWR | O_NOCTTY);
	FILE *stream = NULL;

	if (fd >= 0 && grantpt(fd) == 0 && unlockpt(fd) == 0)
		stream = fopen(ptsname(fd), "w");
	if (!stream) {
		printf("not tested on a terminal: there is none\n");
		return;
	}
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct winsize size = {.ws_row = 24, .ws_col = rows[i].terminal};

		CHECK(ioctl(fd, TIOCSWINSZ, &size) == 0);
		unsetenv("COLUMNS");
		if (rows[i].set)
			setenv("COLUMNS", rows[i].set, 1);
		check_width(stream, fd, rows[i].columns);
	}
	fclose(stream);
	close(fd);
}

static void check_pipe(void)
{
	int ends[2];
	FILE *stream;

	if (!CHECK(pipe(ends) == 0))
		return;
	stream = fdopen(ends[1], "w");
	setenv("COLUMNS", "70", 1); /* of the terminal that this is not */
	check_width(stream, ends[0], 100);
	fclose(stream);
	close(ends[0]);
}

int main(void)
{
	check_terminal();
	check_pipe();
	return check_failures() ? 1 : 0;
}
