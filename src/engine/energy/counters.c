/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of energy of a node and of GPUs: see energy.h. */
#include "energy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <muster/base.h>

#include "device/op.h"

static const char node_file[] = "cray/pm_counters/energy", zones[] = "class/powercap";

static const char *root(void)
{
	const char *set = getenv("MUSTER_SYSFS");

	return set && *set ? set : "/sys";
}

/* The first line of a file. false: errno says why. */
static bool read_line(const char *path, char *text, size_t nbytes)
{
	FILE *file = fopen(path, "re");
	bool read;

	if (!file)
		return false;
	errno = 0;
	read = fgets(text, (int)nbytes, file);
	fclose(file);
	if (!read && errno == 0)
		errno = ENODATA;
	text[strcspn(text, "\n")] = '\0';
	return read;
}

/* "1000 J 12345 us" of pm_counters; a number of uJ of powercap. */
static bool read_file(const struct engine_counter *c, double *joules)
{
	const bool whole = c->kind == ENGINE_COUNTER_NODE;
	char text[64], *end;
	ssize_t n;

	n = c->fd < 0 ? -1 : pread(c->fd, text, sizeof text - 1, 0);
	if (n < 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	*joules = strtod(text, &end) * (whole ? 1 : 1e-6);
	errno = ENODATA;
	return end != text && isfinite(*joules) && *joules >= 0 &&
	       (whole ? strncmp(end, " J", 2) == 0 : *end == '\0');
}

static bool read_counter(const struct engine_counter *c, double *joules)
{
	if (c->device)
		return c->device->ops->energy(c->device, joules);
	return read_file(c, joules);
}

static void close_file(struct engine_counter *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

/* Adds the counter, if it can be read. */
static void add(struct engine_counters *all, const struct engine_counter *c)
{
	struct engine_counter *at = &all->of[all->n];

	*at = *c;
	at->fd = c->device ? -1 : open(c->path, O_RDONLY | O_CLOEXEC);
	if (read_counter(at, &at->last)) {
		all->n++;
		return;
	}
	if (!*all->denied)
		snprintf(all->denied, sizeof all->denied, "%s: %s", at->path, strerror(errno));
	close_file(at);
}

/*
 * A zone of powercap: "package-0" or "package-0-die-1", and "dram" inside it. Its "core" and
 * "uncore" are parts of the package, "psys" has the packages in it, and zones named intel-rapl-mmio
 * are those of intel-rapl by another way.
 */
static void add_zone(struct engine_counters *all, const char *zone)
{
	struct engine_counter c = {.kind = ENGINE_COUNTER_PACKAGE};
	char text[64];

	if (strncmp(zone, "intel-rapl:", 11) != 0)
		return;
	snprintf(c.path, sizeof c.path, "%s/%s/%.40s/name", root(), zones, zone);
	if (!read_line(c.path, text, sizeof text))
		return;
	if (strcmp(text, "dram") == 0)
		c.kind = ENGINE_COUNTER_DRAM;
	else if (strncmp(text, "package-", 8) != 0)
		return;
	snprintf(c.path, sizeof c.path, "%s/%s/%.40s/max_energy_range_uj", root(), zones, zone);
	if (read_line(c.path, text, sizeof text))
		c.range = 1e-6 * strtod(text, NULL);
	snprintf(c.path, sizeof c.path, "%s/%s/%.40s/energy_uj", root(), zones, zone);
	add(all, &c);
}

static size_t count_zones(DIR *folder)
{
	size_t n = 0;

	while (folder && readdir(folder))
		n++;
	if (folder)
		rewinddir(folder);
	return n;
}

static struct engine_counter whole_node(void)
{
	struct engine_counter c = {.kind = ENGINE_COUNTER_NODE, .fd = -1};

	snprintf(c.path, sizeof c.path, "%s/%s", root(), node_file);
	return c;
}

bool mu_engine_counters_are_whole(void)
{
	struct engine_counter c = whole_node();
	double joules;
	bool whole;

	c.fd = open(c.path, O_RDONLY | O_CLOEXEC);
	whole = read_file(&c, &joules);
	close_file(&c);
	return whole;
}

enum mu_status mu_engine_counters_of_node(struct engine_counters *all, size_t room)
{
	enum mu_status st = MU_OK;
	const struct engine_counter whole = whole_node();
	const struct dirent *zone;
	char path[192];
	DIR *folder;

	snprintf(path, sizeof path, "%s/%s", root(), zones);
	folder = opendir(path);
	MU_TRY(MU_ALLOC(all->of, 1 + count_zones(folder) + room, "counters of energy"));
	if (mu_engine_counters_are_whole()) {
		add(all, &whole);
		goto out;
	}
	while (folder && (zone = readdir(folder)))
		add_zone(all, zone->d_name);
out:
	if (folder)
		closedir(folder);
	return st;
}

void mu_engine_counters_add_gpu(struct engine_counters *all, struct mu_device *device)
{
	const struct engine_counter c = {.kind = ENGINE_COUNTER_GPU, .device = device};

	add(all, &c);
}

/* Since its last reading. A counter without a range that has gone back was set back by its driver:
 * what it shows is what it has counted since. */
static double gained(const struct engine_counter *c, double now)
{
	return now >= c->last ? now - c->last : c->range > 0 ? now + c->range - c->last : now;
}

double mu_engine_counters_read(struct engine_counters *all)
{
	double sum = 0, now;

	for (size_t i = 0; i < all->n; i++) {
		struct engine_counter *c = &all->of[i];

		if (read_counter(c, &now)) {
			sum += gained(c, now);
			c->last = now;
			continue;
		}
		mu_log_warn("energy: %s can no longer be read: %s; from here on it is not counted",
			    c->device ? "a GPU's counter" : c->path, strerror(errno));
		close_file(c);
		*c = all->of[--all->n];
		i--;
	}
	return sum;
}

void mu_engine_counters_close(struct engine_counters *all)
{
	for (size_t i = 0; i < all->n; i++)
		close_file(&all->of[i]);
	mu_free(all->of);
	*all = (struct engine_counters){.n = 0};
}
