/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that end a tool: see interrupt.h. They are blocked, and a thread waits for them: unlike a
 * handler it may read a folder, and needs no global variables. The work continues meanwhile, and
 * may fail because its files are gone.
 */
#include "interrupt.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "folder.h"

enum { PATH_BYTES = 4096, END_BYTES = 32 };

struct data_interrupt {
	const char *tool;
	atomic_bool ending;
	sigset_t signals;
	char folder[PATH_BYTES]; /* that holds the output */
};

/* Rename a folder first, so that nothing more is created in it. */
static void remove_one(const char *path)
{
	char gone[PATH_BYTES];

	if (unlink(path) == 0 || snprintf(gone, sizeof gone, "%s-gone", path) >= PATH_BYTES ||
	    rename(path, gone) != 0)
		return;
	data_folder_remove(gone);
}

/* Temporary files of this process: their names end in its process id. */
static void remove_temporary(const char *folder)
{
	char end[END_BYTES], path[PATH_BYTES];
	size_t n = (size_t)snprintf(end, sizeof end, ".tmp-%ld", (long)getpid());
	DIR *stream = opendir(folder);

	if (!stream)
		return;
	for (struct dirent *entry = readdir(stream); entry; entry = readdir(stream)) {
		size_t length = strlen(entry->d_name);

		if (length > n && strcmp(entry->d_name + length - n, end) == 0 &&
		    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < PATH_BYTES)
			remove_one(path);
	}
	closedir(stream);
}

static void *wait_for_signal(void *argument)
{
	struct data_interrupt *watch = argument;
	int number;

	if (sigwait(&watch->signals, &number) != 0)
		return NULL;
	atomic_store(&watch->ending, true);
	remove_temporary(watch->folder);
	fprintf(stderr, "\n%s: ended by a signal (%s): what was not complete is removed\n",
		watch->tool, strsignal(number));
	signal(number, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, &watch->signals, NULL);
	raise(number);
	return NULL;
}

/* "a/b" of "a/b/c.rec" and of "a/b/c/". */
static void find_folder(struct data_interrupt *watch, const char *output)
{
	size_t n = strlen(output);

	while (n > 1 && output[n - 1] == '/')
		n--;
	while (n > 0 && output[n - 1] != '/')
		n--;
	snprintf(watch->folder, sizeof watch->folder, "%.*s", n ? (int)n : 1, n ? output : ".");
}

/* Without SIGHUP, which MPI's libraries (UCX) enable even if the caller ignores it. */
static void find_signals(struct data_interrupt *watch)
{
	static const int all[] = {SIGINT, SIGTERM};
	struct sigaction action;

	sigemptyset(&watch->signals);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (sigaction(all[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&watch->signals, all[i]);
}

enum mu_status data_interrupt_watch(struct data_interrupt **out, const char *tool,
				    const char *output)
{
	enum mu_status st = MU_OK;
	struct data_interrupt *watch;
	pthread_t thread;

	if (strlen(output) >= PATH_BYTES)
		MU_FAIL(MU_ERR_IO, "%.60s...: the path is longer than %d bytes", output,
			PATH_BYTES - 1);
	MU_TRY(MU_ALLOC(watch, 1, "signals"));
	watch->tool = tool;
	find_folder(watch, output);
	find_signals(watch);
	pthread_sigmask(SIG_BLOCK, &watch->signals, NULL);
	if (pthread_create(&thread, NULL, wait_for_signal, watch) != 0) {
		pthread_sigmask(SIG_UNBLOCK, &watch->signals, NULL);
		mu_free(watch);
		goto out;
	}
	/* The thread uses its data until the process ends. */
	pthread_detach(thread);
	*out = watch;
out:
	return st;
}

void data_interrupt_check(const struct data_interrupt *watch)
{
	while (watch && atomic_load(&watch->ending))
		pause();
}
