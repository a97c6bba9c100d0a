/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of a prefix: see lock.h. */
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <muster/comm.h>

#define BEAT_SECONDS 3
#define PATIENCE_SECONDS (3 * BEAT_SECONDS)
/* Ranks that have lost their launcher end within this time: the next job is not refused. */
#define END_SECONDS 2
#define OLD_SECONDS 3600

enum { OWNER_TEXT = 512, MOST_TRIES = 10 };

/* Owner of a lock. place: boot of the kernel and pid namespace; a pid is unique in these. */
struct owner {
	char host[80], place[128], since[32];
	long pid;
	unsigned long long started;
};

struct mu_checkpoint_lock {
	char path[PATH_MAX], text[OWNER_TEXT];
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t ends;
	bool threaded, ending;
	long replaced; /* process of the dead owner; 0: there was none */
	time_t made;   /* by the clock of the folder's host; 0: the file could not be written */
};

static void describe_me(struct owner *me)
{
	char boot[48] = "", space[64] = "";
	time_t now = time(NULL);
	struct tm tm;
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	*me = (struct owner){.pid = (long)getpid()};
	if (file) {
		if (fscanf(file, "%47s", boot) != 1)
			*boot = '\0';
		fclose(file);
	}
	if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0)
		*space = '\0';
	snprintf(me->place, sizeof me->place, "%s/%s", boot, space);
	if (gethostname(me->host, sizeof me->host - 1) != 0 || !*me->host)
		snprintf(me->host, sizeof me->host, "unknown");
	me->started = mu_process_started(me->pid);
	strftime(me->since, sizeof me->since, "%Y-%m-%dT%H:%M:%S", localtime_r(&now, &tm));
}

static void put_owner(const struct owner *o, char *text)
{
	snprintf(text, OWNER_TEXT, "host %s\npid %ld\nstarted %llu\nplace %s\nsince %s\n", o->host,
		 o->pid, o->started, o->place, o->since);
}

/* false: the text is not whole. */
static bool get_owner(const char *text, struct owner *o)
{
	*o = (struct owner){.pid = 0};
	return sscanf(text, "host %79s pid %ld started %llu place %127s since %31s", o->host,
		      &o->pid, &o->started, o->place, o->since) == 5;
}

/* ---- the file ---- */

/* Changes while the owner is alive. */
struct sight {
	char text[OWNER_TEXT];
	struct timespec changed;
};

/* Opens the file, because NFS then asks its server. errno where there is none. */
static bool read_sight(const char *path, struct sight *s)
{
	struct stat info;
	ssize_t n = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), error;

	*s = (struct sight){.text = ""};
	if (fd < 0)
		return false;
	if (fstat(fd, &info) == 0)
		n = read(fd, s->text, sizeof s->text - 1);
	error = errno;
	close(fd);
	errno = error;
	if (n < 0)
		return false;
	s->text[n] = '\0';
	s->changed = info.st_mtim;
	return true;
}

static bool same_sight(const struct sight *a, const struct sight *b)
{
	return strcmp(a->text, b->text) == 0 && a->changed.tv_sec == b->changed.tv_sec &&
	       a->changed.tv_nsec == b->changed.tv_nsec;
}

static const struct timespec a_moment = {0, 200000000L};

/* Does the owner, on another host, still set the file's time? */
static bool is_touched(const char *path, const struct sight *first)
{
	const double end = mu_now() + PATIENCE_SECONDS;
	struct sight s;

	while (mu_now() < end) {
		nanosleep(&a_moment, NULL);
		if (!read_sight(path, &s))
			return false;
		if (!same_sight(&s, first))
			return true;
	}
	return false;
}

/* Does the kernel of this host know that the owner is alive, or dead? */
enum known { KNOWN_ALIVE, KNOWN_DEAD, NOT_KNOWN };

static enum known look_up(const struct owner *o)
{
	struct owner me;

	describe_me(&me);
	if (strcmp(o->host, me.host) != 0 || strcmp(o->place, me.place) != 0)
		return NOT_KNOWN;
	return o->pid != me.pid && mu_process_started(o->pid) == o->started && o->started
		       ? KNOWN_ALIVE
		       : KNOWN_DEAD;
}

/* Is the lock's owner alive, and still after a moment? */
static bool is_held(const char *path, const struct sight *s)
{
	const double end = mu_now() + END_SECONDS;
	struct owner o;
	enum known known = get_owner(s->text, &o) ? look_up(&o) : NOT_KNOWN;

	while (known == KNOWN_ALIVE && mu_now() < end) {
		nanosleep(&a_moment, NULL);
		known = look_up(&o);
	}
	if (known != NOT_KNOWN)
		return known == KNOWN_ALIVE;
	mu_log_info("%s is of process %ld on %s, which cannot be asked from here: waiting %d s for "
		    "a sign of it",
		    path, o.pid, *o.host ? o.host : "an unknown host", PATIENCE_SECONDS);
	return is_touched(path, s);
}

/*
 * Remove a dead owner's file. Another job may do the same now, and may have the lock already: what
 * was removed is compared, and is put back if it is another file.
 */
static void remove_dead(const char *path, const struct sight *dead)
{
	char away[PATH_MAX + 128];
	struct owner me;
	struct sight s;

	describe_me(&me);
	snprintf(away, sizeof away, "%s.%s-%ld", path, me.host, me.pid);
	if (rename(path, away) != 0)
		return;
	if (read_sight(away, &s) && strcmp(s.text, dead->text) != 0)
		(void)!link(away, path);
	unlink(away);
}

/* Not an error where there is no room: the job may make some before it saves. */
static void write_text(int fd, struct mu_checkpoint_lock *lock)
{
	const size_t nbytes = strlen(lock->text);
	const ssize_t n = write(fd, lock->text, nbytes);
	struct stat info;

	if (n == (ssize_t)nbytes) {
		lock->made = fstat(fd, &info) == 0 ? info.st_mtim.tv_sec : 0;
		return;
	}
	mu_log_warn("%s: cannot be written: %s; another job with this prefix is not refused",
		    lock->path, n < 0 ? strerror(errno) : "No space left on device");
	unlink(lock->path);
}

static enum mu_status refuse(const struct mu_checkpoint_lock *lock, const char *prefix,
			     const struct sight *s)
{
	enum mu_status st = MU_OK;
	struct owner o;
	const bool known = get_owner(s->text, &o);

	errno = EBUSY; /* until that job ends */
	if (!known)
		MU_FAIL(MU_ERR_IO,
			"--model-prefix %s: another job saves there; end it first, or remove %s",
			prefix, lock->path);
	MU_FAIL(MU_ERR_IO,
		"--model-prefix %s: another job saves there (host %s, pid %ld, since %s); end it "
		"first, or remove %s",
		prefix, o.host, o.pid, o.since, lock->path);
out:
	return st;
}

static enum mu_status make_file(struct mu_checkpoint_lock *lock, const char *prefix)
{
	enum mu_status st = MU_OK;
	struct sight s;
	struct owner dead;

	for (int i = 0; i < MOST_TRIES; i++) {
		int fd = open(lock->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

		if (fd >= 0) {
			write_text(fd, lock);
			close(fd);
			goto out;
		}
		if (errno != EEXIST)
			MU_FAIL(MU_ERR_IO, "%s: cannot be made: %s", lock->path, strerror(errno));
		if (!read_sight(lock->path, &s)) {
			if (errno == ENOENT)
				continue;
			MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", lock->path, strerror(errno));
		}
		if (is_held(lock->path, &s))
			MU_TRY(refuse(lock, prefix, &s));
		lock->replaced = get_owner(s.text, &dead) ? dead.pid : 0;
		remove_dead(lock->path, &s);
	}
	MU_FAIL(MU_ERR_IO, "%s: it was created and removed %d times by others", lock->path,
		MOST_TRIES);
out:
	return st;
}

/* ---- the thread ---- */

static bool is_mine(const struct mu_checkpoint_lock *lock)
{
	struct sight s;

	return read_sight(lock->path, &s) && strcmp(s.text, lock->text) == 0;
}

static void *beat(void *context)
{
	struct mu_checkpoint_lock *lock = context;
	struct timespec next;

	pthread_mutex_lock(&lock->mutex);
	clock_gettime(CLOCK_MONOTONIC, &next);
	while (!lock->ending) {
		next.tv_sec += BEAT_SECONDS;
		if (pthread_cond_timedwait(&lock->ends, &lock->mutex, &next) != ETIMEDOUT)
			continue;
		clock_gettime(CLOCK_MONOTONIC, &next);
		if (is_mine(lock)) /* what the folder's host says is now */
			utimensat(AT_FDCWD, lock->path, NULL, 0);
	}
	pthread_mutex_unlock(&lock->mutex);
	return NULL;
}

enum mu_status mu_checkpoint_lock(const char *prefix, struct mu_checkpoint_lock **out)
{
	enum mu_status st = MU_OK;
	struct mu_checkpoint_lock *lock = NULL;
	pthread_condattr_t attributes;
	struct owner me;

	*out = NULL;
	MU_TRY(MU_ALLOC(lock, 1, "lock of a prefix"));
	pthread_mutex_init(&lock->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&lock->ends, &attributes);
	pthread_condattr_destroy(&attributes);
	if (snprintf(lock->path, sizeof lock->path, "%s.lock", prefix) >= (int)sizeof lock->path)
		MU_FAIL(MU_ERR_USAGE, "--model-prefix %s: too long a name", prefix);
	describe_me(&me);
	put_owner(&me, lock->text);
	MU_TRY(make_file(lock, prefix));
	/* Without the thread jobs on other hosts are not refused. */
	lock->threaded = pthread_create(&lock->thread, NULL, beat, lock) == 0;
	*out = lock;
out:
	if (st != MU_OK && lock) {
		pthread_cond_destroy(&lock->ends);
		pthread_mutex_destroy(&lock->mutex);
		mu_free(lock);
	}
	return st;
}

bool mu_checkpoint_lock_outlives(const struct mu_checkpoint_lock *lock, long pid, time_t changed)
{
	return lock->made > 0 &&
	       (pid == lock->replaced || difftime(lock->made, changed) > OLD_SECONDS);
}

void mu_checkpoint_unlock(struct mu_checkpoint_lock *lock)
{
	if (!lock)
		return;
	pthread_mutex_lock(&lock->mutex);
	lock->ending = true;
	pthread_cond_signal(&lock->ends);
	pthread_mutex_unlock(&lock->mutex);
	if (lock->threaded)
		pthread_join(lock->thread, NULL);
	if (is_mine(lock))
		unlink(lock->path);
	pthread_cond_destroy(&lock->ends);
	pthread_mutex_destroy(&lock->mutex);
	mu_free(lock);
}
