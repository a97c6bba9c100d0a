/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory limits of control groups: cgroups(7), and the kernel's
 * Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst. The limit of a group and of
 * every group above it applies. A container that sees only its own group lacks the folders of the
 * groups above.
 */
#include <muster/base.h>

#include <string.h>

enum { PATH_BYTES = 4096 };

/* v1 expresses "no limit" by the largest multiple of a page in 63 bits. */
#define NO_LIMIT 4e18

static void read_limit(const char *path, double *least)
{
	FILE *file = fopen(path, "re");
	double limit;

	if (!file)
		return;
	/* "max" is not a number. */
	if (fscanf(file, "%lf", &limit) == 1 && limit > 0 && limit < NO_LIMIT &&
	    (*least == 0 || limit < *least))
		*least = limit;
	fclose(file);
}

/* The group and all groups above it, in the hierarchy mounted at root/mount. */
static void climb(const char *root, const char *mount, char *group, const char *name, double *least)
{
	char path[2 * PATH_BYTES];
	char *end;

	do {
		snprintf(path, sizeof path, "%s%s%s/%s", root, mount, group, name);
		read_limit(path, least);
		end = strrchr(group, '/');
		if (end)
			*end = '\0';
	} while (end);
}

/* Does a list such as "cpu,memory" contain the word? */
static bool holds(const char *list, const char *word)
{
	const size_t n = strlen(word);

	for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
		if (strncmp(list, word, n) == 0 && (list[n] == ',' || list[n] == '\0'))
			return true;
	return false;
}

static double find_limit(const char *root)
{
	char path[PATH_BYTES], line[PATH_BYTES], controllers[256], *group;
	double least = 0;
	FILE *file;

	snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
	file = fopen(path, "re");
	/* HIERARCHY:CONTROLLERS:GROUP; no controllers for v2. */
	while (file && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = '\0';
		group = strchr(line, ':') ? strchr(strchr(line, ':') + 1, ':') : NULL;
		if (!group)
			continue;
		*controllers = '\0';
		sscanf(line, "%*d:%255[^:]", controllers);
		group++;
		if (strcmp(group, "/") == 0)
			*group = '\0';
		if (holds(controllers, "memory"))
			climb(root, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes",
			      &least);
		else if (!*controllers)
			climb(root, "/sys/fs/cgroup", group, "memory.max", &least);
	}
	if (file)
		fclose(file);
	return least;
}

double mu_memory_limit(const char *root)
{
	static _Atomic double own = -1; /* of this process: read once */
	double limit = own;

	if (*root || limit < 0)
		limit = find_limit(root);
	if (!*root)
		own = limit;
	return limit;
}
