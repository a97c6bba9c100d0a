/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A site's defaults: what the administrators of a cluster choose for everybody, in lines as those
 * of --config. The file is the one that MUSTER_SITE names ("none": there is none), else muster.conf
 * in the folder of the program, else /etc/muster.conf; the first one alone is read. What it sets
 * counts as a default: options of --config files and of the command line, and DMLC_INTERFACE, go
 * before it. Only options that change no result may stand in it, so that checkpoints do not depend
 * on it. muster launch (jobs/launch-site) reads the same file: each of the two takes its own lines,
 * and both refuse what neither knows. The log names the file and what it has set.
 *
 * A further option of the trainer: a word in `own` and jobs/launch-site; of muster launch: in
 * `of_launch` and there.
 */
#include "conf.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "muster.conf"
#define SYSTEM_FILE "/etc/" FILE_NAME

static const char *const own[] = {"interface", "comm-timeout", "setup-timeout",
				  "comm-warn", "co2-factor",   "job-comment",
				  NULL};
static const char *const of_launch[] = {"launcher", "account", "partition", "scratch", NULL};

static bool is_in(const char *const *list, const char *name, size_t n)
{
	for (; *list; list++)
		if (strlen(*list) == n && strncmp(*list, name, n) == 0)
			return true;
	return false;
}

/* *path: mu_free'd by the caller; NULL: there is no file. */
static enum mu_status find_file(char **path)
{
	enum mu_status st = MU_OK;
	const char *named = getenv("MUSTER_SITE");
	char program[4096];
	ssize_t n;

	*path = NULL;
	if (named && (!*named || strcmp(named, "none") == 0))
		goto out;
	MU_TRY(MU_ALLOC(*path, sizeof program + sizeof FILE_NAME, "path of the site's file"));
	if (named) {
		snprintf(*path, sizeof program, "%s", named);
		goto out;
	}
	n = readlink("/proc/self/exe", program, sizeof program - 1);
	program[n > 0 ? n : 0] = '\0';
	if (strrchr(program, '/')) {
		strrchr(program, '/')[1] = '\0';
		snprintf(*path, sizeof program + sizeof FILE_NAME, "%s" FILE_NAME, program);
	}
	if (**path && access(*path, F_OK) == 0)
		goto out;
	snprintf(*path, sizeof program, SYSTEM_FILE);
	if (access(*path, F_OK) == 0)
		goto out;
	mu_free(*path);
	*path = NULL;
out:
	return st;
}

/* "interface, comm-timeout, ...": all that may stand in a site's file. */
static void list_names(char *text, size_t nbytes)
{
	const char *const *const lists[] = {own, of_launch};
	size_t n = 0;

	*text = '\0';
	for (size_t i = 0; i < 2; i++)
		for (const char *const *name = lists[i]; *name && n < nbytes; name++)
			n += (size_t)snprintf(text + n, nbytes - n, "%s%s", n ? ", " : "", *name);
}

/* Names that may not stand there; the lines of muster launch are dropped. */
static enum mu_status take_own(struct conf_arguments *a)
{
	enum mu_status st = MU_OK;
	char names[256];
	int kept = 1;

	for (int i = 1; i < a->argc; i++) {
		const char *name = a->argv[i] + 2;
		const size_t n = strcspn(name, "=");

		if (!is_in(own, name, n) && !is_in(of_launch, name, n)) {
			list_names(names, sizeof names);
			MU_FAIL(MU_ERR_USAGE,
				"site file %s: %.*s: a site's file cannot set this; it may have: "
				"%s",
				a->places[i], (int)n, name, names);
		}
	}
	for (int i = 1; i < a->argc; i++) {
		const char *name = a->argv[i] + 2;

		if (is_in(own, name, strcspn(name, "="))) {
			a->argv[kept] = a->argv[i];
			a->places[kept++] = a->places[i];
			continue;
		}
		mu_free(a->argv[i]);
		mu_free(a->places[i]);
	}
	a->argc = kept;
out:
	return st;
}

enum mu_status mu_conf_site_read(struct conf_arguments *a)
{
	enum mu_status st = MU_OK;
	char *path = NULL;

	MU_TRY(MU_ALLOC(a->site, 1, "options of the site"));
	MU_TRY(find_file(&path));
	if (!path)
		goto out;
	MU_TRY(mu_conf_arguments_add(a->site, path));
	st = mu_conf_lines_read(a->site, path);
	if (st != MU_OK)
		mu_trace_prefix("site file ");
	MU_TRY(st);
	MU_TRY(take_own(a->site));
out:
	mu_free(path);
	return st;
}

enum mu_status mu_conf_site_apply(struct mu_options *o, struct conf *v, int argc,
				  char *const argv[])
{
	enum mu_status st = MU_OK;

	if (argc < 1)
		goto out;
	MU_TRY(mu_options_parse(o, argc, argv));
	memset(o->given, 0, o->n * sizeof *o->given);
	v->site.path = argv[0];
	v->site.interface = v->interface;
out:
	return st;
}

/* Does another place say otherwise? */
static bool is_overridden(const struct mu_options *o, const char *name)
{
	const char *interface = getenv("DMLC_INTERFACE");

	return mu_options_given(o, name) ||
	       (strcmp(name, "interface") == 0 && interface && *interface);
}

void mu_conf_site_tell(const struct mu_options *o, int argc, char *const argv[])
{
	char list[2][512] = {"", ""}, name[64];
	size_t n[2] = {0, 0};

	for (int i = 1; i < argc; i++) {
		const char *text = argv[i] + 2;
		bool over;

		snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
		over = is_overridden(o, name);
		if (n[over] < sizeof list[over])
			n[over] +=
				(size_t)snprintf(list[over] + n[over], sizeof list[over] - n[over],
						 "%s%s", n[over] ? ", " : "", over ? name : text);
	}
	if (argc > 0)
		mu_log_info("site file %s sets %s%s%s", argv[0], n[0] ? list[0] : "nothing here",
			    n[1] ? "; set otherwise by this run: " : "", list[1]);
}
