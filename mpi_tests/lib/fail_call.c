/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to preload (LD_PRELOAD), with which one call of a program fails:
 *
 *	FAIL_WHAT    memory: allocations that the program itself makes, not its libraries.
 *	             files: calls on files of the folder FAIL_FOLDER, by the libraries, too.
 *	             threads: those that the program itself starts.
 *	FAIL_AT      the number of the call that fails; 0: none
 *	FAIL_NAME    of the program that counts, such as trainer
 *	FAIL_RANK    of its ranks this one alone (PMI_RANK); not set: each
 *	FAIL_REPORT  a file, to which are appended "failed NAME MICROSECONDS", lines "at ADDRESS"
 *	             of the program for addr2line, and, when a process ends, "calls N RANK"
 *
 * A call on a file fails as a full disk does. A close that fails has closed the file.
 *
 *	cc -O1 -shared -fPIC fail_call.c -o fail_call.so -ldl
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PLACES = 24 };

enum what { NOTHING, MEMORY, FILES, THREADS };

static struct {
	_Atomic enum what what;
	long at;
	const char *folder, *report;
	uintptr_t base, text, end; /* of the program */
	atomic_long calls;
} state;

static int find_program(struct dl_phdr_info *info, size_t nbytes, void *unused)
{
	(void)nbytes;
	(void)unused;
	state.base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
			continue;
		state.text = state.base + part->p_vaddr;
		state.end = state.text + part->p_memsz;
	}
	return 1; /* the first is the program */
}

static bool is_meant(void)
{
	const char *name = getenv("FAIL_NAME"), *rank = getenv("FAIL_RANK");
	const char *mine = getenv("PMI_RANK");
	char path[PATH_MAX];
	const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	const char *slash;

	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (!slash || (name && strcmp(slash + 1, name) != 0))
		return false;
	return !rank || !*rank || (mine && strcmp(rank, mine) == 0);
}

__attribute__((constructor)) static void begin(void)
{
	const char *what = getenv("FAIL_WHAT"), *at = getenv("FAIL_AT");

	if (!what || !is_meant())
		return;
	dl_iterate_phdr(find_program, NULL);
	state.folder = getenv("FAIL_FOLDER");
	state.report = getenv("FAIL_REPORT");
	state.at = at ? atol(at) : 0;
	state.what = strcmp(what, "memory") == 0    ? MEMORY
		     : strcmp(what, "threads") == 0 ? THREADS
						    : FILES;
}

/* Calls that the report needs do not count. */
static void report(const char *format, ...)
{
	const int error = errno;
	const enum what what = atomic_exchange(&state.what, NOTHING);
	char line[256];
	va_list args;
	int fd, n;

	va_start(args, format);
	n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	fd = state.report ? open(state.report, O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;
	if (fd >= 0) {
		if (write(fd, line, (size_t)n) != n)
			abort();
		close(fd);
	}
	state.what = what;
	errno = error;
}

__attribute__((destructor)) static void end(void)
{
	const char *rank = getenv("PMI_RANK");

	if (state.what != NOTHING)
		report("calls %ld %s\n", (long)state.calls, rank ? rank : "0");
}

static bool is_of_program(const void *place)
{
	return (uintptr_t)place >= state.text && (uintptr_t)place < state.end;
}

/* The caller's call fails now, by this error. */
static bool fails(const char *name, int error)
{
	void *places[MOST_PLACES];
	struct timespec now;
	enum what what;
	int n;

	if (atomic_fetch_add(&state.calls, 1) + 1 != state.at)
		return false;
	what = atomic_exchange(&state.what, NOTHING);
	n = backtrace(places, MOST_PLACES);
	clock_gettime(CLOCK_REALTIME, &now);
	report("failed %s %lld\n", name, now.tv_sec * 1000000LL + now.tv_nsec / 1000);
	for (int i = 0; i < n; i++)
		if (is_of_program(places[i]))
			report("at %#lx\n", (unsigned long)((uintptr_t)places[i] - state.base - 1));
	state.what = what;
	errno = error;
	return true;
}

/* ---- memory ---- */

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

#define NO_MEMORY(name) \
	(state.what == MEMORY && is_of_program(__builtin_return_address(0)) && fails(name, ENOMEM))

void *malloc(size_t n)
{
	return NO_MEMORY("malloc") ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return NO_MEMORY("calloc") ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	return NO_MEMORY("realloc") ? NULL : __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	return NO_MEMORY("aligned_alloc") ? NULL : __libc_memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
	void *memory = NO_MEMORY("posix_memalign") ? NULL : __libc_memalign(align, n);

	if (memory)
		*p = memory;
	return memory ? 0 : ENOMEM;
}

char *strdup(const char *text)
{
	const size_t n = strlen(text) + 1;
	char *copy = NO_MEMORY("strdup") ? NULL : __libc_malloc(n);

	return copy ? memcpy(copy, text, n) : NULL;
}

char *strndup(const char *text, size_t most)
{
	const size_t n = strnlen(text, most);
	char *copy = NO_MEMORY("strndup") ? NULL : __libc_malloc(n + 1);

	if (copy)
		copy[n] = '\0';
	return copy ? memcpy(copy, text, n) : NULL;
}

/* ---- files ---- */

/* A name that does not begin with '/' is below the working folder. */
static bool in_folder(const char *path)
{
	char here[PATH_MAX];

	if (!path || !state.folder)
		return false;
	if (*path != '/')
		path = getcwd(here, sizeof here);
	return path && strncmp(path, state.folder, strlen(state.folder)) == 0;
}

static bool is_in_folder(int fd)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof path - 1);
	path[n > 0 ? n : 0] = '\0';
	return n > 0 && in_folder(path);
}

/* Of the library after this one. */
static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
		   void *context)
{
	int (*call)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		(int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))next(
			"pthread_create");

	if (state.what == THREADS && is_of_program(__builtin_return_address(0)) &&
	    fails("pthread_create", EAGAIN))
		return EAGAIN;
	return call(thread, attr, fn, context);
}

#define NO_FILE(name, here) (state.what == FILES && (here) && fails(name, ENOSPC))

#define OPEN(name) \
	int name(const char *path, int flags, ...) \
	{ \
		int (*call)(const char *, int, ...) = \
			(int (*)(const char *, int, ...))next(#name); \
		mode_t mode; \
		va_list args; \
\
		va_start(args, flags); \
		mode = va_arg(args, mode_t); \
		va_end(args); \
		return NO_FILE("open", in_folder(path)) ? -1 : call(path, flags, mode); \
	}

/* A call of this type: its parameters, its arguments, whether it is on a file of the folder. */
#define CALL(type, name, bad, parameters, arguments, here) \
	type name parameters \
	{ \
		type(*call) parameters = (type(*) parameters)next(#name); \
\
		return NO_FILE(#name, here) ? (bad) : call arguments; \
	}

OPEN(open)
OPEN(open64)
CALL(ssize_t, read, -1, (int fd, void *p, size_t n), (fd, p, n), is_in_folder(fd))
CALL(ssize_t, pread, -1, (int fd, void *p, size_t n, off_t at), (fd, p, n, at), is_in_folder(fd))
CALL(ssize_t, pread64, -1, (int fd, void *p, size_t n, off64_t at), (fd, p, n, at),
     is_in_folder(fd))
CALL(ssize_t, write, -1, (int fd, const void *p, size_t n), (fd, p, n), is_in_folder(fd))
CALL(ssize_t, pwrite, -1, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at),
     is_in_folder(fd))
CALL(ssize_t, pwrite64, -1, (int fd, const void *p, size_t n, off64_t at), (fd, p, n, at),
     is_in_folder(fd))
CALL(int, fsync, -1, (int fd), (fd), is_in_folder(fd))
CALL(int, ftruncate, -1, (int fd, off_t n), (fd, n), is_in_folder(fd))
CALL(int, ftruncate64, -1, (int fd, off64_t n), (fd, n), is_in_folder(fd))
CALL(int, rename, -1, (const char *from, const char *to), (from, to), in_folder(from))
CALL(int, symlink, -1, (const char *to, const char *path), (to, path), in_folder(path))
CALL(int, link, -1, (const char *from, const char *to), (from, to), in_folder(to))
CALL(int, unlink, -1, (const char *path), (path), in_folder(path))
CALL(int, mkdir, -1, (const char *path, mode_t mode), (path, mode), in_folder(path))
CALL(FILE *, fopen, NULL, (const char *path, const char *mode), (path, mode), in_folder(path))
CALL(FILE *, fopen64, NULL, (const char *path, const char *mode), (path, mode), in_folder(path))
CALL(int, fflush, EOF, (FILE *file), (file), file && is_in_folder(fileno(file)))

int close(int fd)
{
	int (*call)(int) = (int (*)(int))next("close");
	const bool here = state.what == FILES && is_in_folder(fd);
	const int status = call(fd);

	return here && fails("close", ENOSPC) ? -1 : status;
}

int fclose(FILE *file)
{
	int (*call)(FILE *) = (int (*)(FILE *))next("fclose");
	const bool here = state.what == FILES && is_in_folder(fileno(file));
	const int status = call(file);

	return here && fails("fclose", ENOSPC) ? EOF : status;
}
