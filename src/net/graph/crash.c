/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
/*
 * A crash in a shared object of a user, or in what it called, names the object: see crash.h. The
 * handler runs in a process that ends: it looks for the object among the callers, prints a line by
 * write, and leaves the end to who had the signal before.
 */
#include "crash.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <muster/base.h>

enum { PATH_BYTES = 512, CALLERS = 64, STACK_BYTES = 1 << 16 };

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { N_SIGNALS = sizeof signals / sizeof *signals };

static struct {
	char path[PATH_BYTES]; /* "": there is no object */
	const void *base;      /* where it is in memory */
	struct sigaction before[N_SIGNALS];
} object;

/* The function of the object that is nearest to the fault. */
static bool find_function(char *name, size_t nbytes)
{
	void *at[CALLERS];
	const int n = backtrace(at, CALLERS);
	Dl_info info;

	for (int i = 0; i < n; i++) {
		if (!dladdr(at[i], &info) || info.dli_fbase != object.base)
			continue;
		snprintf(name, nbytes, "%s", info.dli_sname ? info.dli_sname : "a static function");
		return true;
	}
	return false;
}

static void handle(int number, siginfo_t *info, void *context)
{
	const bool fault = info->si_code > 0, own = fault || info->si_pid == getpid();
	char function[128], line[PATH_BYTES + 512];
	ssize_t written = 0;
	int n;

	for (int i = 0; i < N_SIGNALS; i++) /* a second fault ends the process */
		sigaction(signals[i], &object.before[i], NULL);
	if (own && find_function(function, sizeof function)) {
		n = snprintf(line, sizeof line,
			     "%s: error: network %s: its code crashed (%s), in %s or what that "
			     "calls\n",
			     program_invocation_short_name, object.path, strsignal(number),
			     function);
		written = write(STDERR_FILENO, line, (size_t)n);
	}
	(void)written;
	(void)context;
	if (!fault) /* sent, by kill or abort; a fault comes again when the handler ends */
		raise(number);
}

void mu_network_name_crashes(const char *path, const void *symbol)
{
	struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_ONSTACK | SA_SIGINFO};
	static stack_t stack; /* of this thread: its own may be what has overflowed */
	const bool first = !*object.path;
	void *at[1];
	Dl_info info;

	if (!dladdr(symbol, &info))
		return;
	mu_text_show(object.path, sizeof object.path, path);
	object.base = info.dli_fbase;
	if (!first)
		return;
	backtrace(at, 1); /* loads what it needs */
	stack = (stack_t){.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
	if (stack.ss_sp)
		sigaltstack(&stack, NULL);
	sigemptyset(&action.sa_mask);
	for (int i = 0; i < N_SIGNALS; i++)
		sigaction(signals[i], &action, &object.before[i]);
}
