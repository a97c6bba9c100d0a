/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to preload (LD_PRELOAD): rank 0 completes a file slowly while rank 1 fails. The second
 * fsync of rank 0 on a temporary file, which is the one before its rename, takes SLOW_SECONDS; from
 * then on rank 1 cannot read files of the folder SLOW_FOLDER. Ranks are PMI_RANK's.
 *
 *	cc -O1 -shared -fPIC slow_commit.c -o slow_commit.so -ldl
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARK "slow-commit" /* a file of the working folder: rank 0 is in that fsync */

static bool is_rank(const char *rank)
{
	const char *mine = getenv("PMI_RANK");

	return mine && strcmp(mine, rank) == 0;
}

static bool has_in_name(int fd, const char *text)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof path - 1);
	path[n > 0 ? n : 0] = '\0';
	return text && strstr(path, text);
}

int fsync(int fd)
{
	static atomic_int calls;
	int (*call)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
	const char *seconds = getenv("SLOW_SECONDS");

	if (seconds && is_rank("0") && has_in_name(fd, ".tmp-") &&
	    atomic_fetch_add(&calls, 1) == 1) {
		close(open(MARK, O_CREAT | O_WRONLY, 0644));
		sleep((unsigned)atoi(seconds));
	}
	return call(fd);
}

static bool fails(int fd)
{
	return is_rank("1") && access(MARK, F_OK) == 0 && has_in_name(fd, getenv("SLOW_FOLDER"));
}

#define READ(name) \
	ssize_t name(int fd, void *bytes, size_t n, off_t at) \
	{ \
		ssize_t (*call)(int, void *, size_t, off_t) = \
			(ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, #name); \
\
		errno = EIO; \
		return fails(fd) ? -1 : call(fd, bytes, n, at); \
	}

READ(pread)
READ(pread64)
