/* SPDX-License-Identifier: Apache-2.0 */
/* gnuplot as a process that reads commands: see gnuplot.h. */
#define _GNU_SOURCE /* pipe2 */
#include "gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* -d: what the user's own settings change has no place in a tool's pictures. */
static enum mu_status start(struct gnuplot *g)
{
	enum mu_status st = MU_OK;
	char name[] = "gnuplot", plain[] = "-d";
	char *const argv[] = {name, plain, NULL};
	int ends[2] = {-1, -1}, error;
	posix_spawn_file_actions_t actions;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		MU_FAIL(MU_ERR_IO, "no pipe to gnuplot: %s", strerror(errno));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, g->replace.fd, STDOUT_FILENO);
	error = posix_spawnp(&pid, name, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error == ENOENT)
		MU_FAIL(MU_ERR_UNSUPPORTED, "there is no program gnuplot in PATH, and pictures "
					    "need it (Debian: apt-get install gnuplot-nox)");
	if (error != 0)
		MU_FAIL(MU_ERR_IO, "gnuplot cannot be started: %s", strerror(error));
	g->pid = pid;
	g->in = fdopen(ends[1], "w");
	if (!g->in)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the pipe to gnuplot");
	ends[1] = -1;
out:
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
	return st;
}

void gnuplot_text(const struct gnuplot *g, const char *text)
{
	fputc('\'', g->in);
	for (; *text; text++) {
		if (*text == '\'')
			fputc('\'', g->in);
		fputc(*text == '\n' ? ' ' : *text, g->in);
	}
	fputc('\'', g->in);
}

enum mu_status gnuplot_begin(struct gnuplot *g, const char *path, int width, int height)
{
	enum mu_status st = MU_OK;
	const char *end = strrchr(path, '.');
	bool svg = end && strcmp(end, ".svg") == 0;

	*g = (struct gnuplot){.in = NULL};
	if (!svg && !(end && strcmp(end, ".png") == 0))
		MU_FAIL(MU_ERR_USAGE, "--output %s: a name that ends in .html, .svg or .png is "
			"needed",
			path);
	signal(SIGPIPE, SIG_IGN); /* a failing gnuplot is reported by its status */
	MU_TRY(mu_replace_begin(&g->replace, path));
	MU_TRY(start(g));
	if (svg)
		fprintf(g->in,
			"set terminal svg size %d, %d noenhanced font 'sans,13' background "
			"'white'\n",
			width, height);
	else
		fprintf(g->in, "set terminal pngcairo size %d, %d noenhanced font 'sans,11'\n",
			width, height);
out:
	return st;
}

/* Nothing more to read: it ends. */
static int wait_for(struct gnuplot *g)
{
	int status = 0;

	if (g->in)
		fclose(g->in);
	g->in = NULL;
	while (g->pid > 0 && waitpid(g->pid, &status, 0) < 0 && errno == EINTR)
		;
	g->pid = 0;
	return status;
}

enum mu_status gnuplot_end(struct gnuplot *g)
{
	enum mu_status st = MU_OK;
	struct stat file;
	int status;

	status = wait_for(g);
	if (status != 0 || fstat(g->replace.fd, &file) != 0 || file.st_size == 0)
		MU_FAIL(MU_ERR_IO, "%s: gnuplot could not make it; what it says stands above",
			g->replace.path);
	MU_TRY(mu_replace_commit(&g->replace));
out:
	return st;
}

void gnuplot_release(struct gnuplot *g)
{
	wait_for(g);
	mu_replace_release(&g->replace);
}
