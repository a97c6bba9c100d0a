/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An experiment in a container, as in DLBS: see sweep.h. What keeps a container's processes to
 * itself (Docker) starts mpirun in it, so that all ranks are in one container; what shares the
 * host's (Apptainer) is started by mpirun, once a rank.
 */
#include "sweep.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A row is a program that runs containers, by the name of its file. */
static const struct runtime {
	const char *name;
	bool has_mpirun;     /* mpirun is in the container, else the container below mpirun */
	const char *command; /* of a program in an image that follows */
	const char *initial; /* arguments where none are given */
	const char *end;     /* between image and program */
} runtimes[] = {
	{"docker", true, "run --entrypoint=", "--rm --shm-size 1g", ""},
	{"nvidia-docker", true, "run --entrypoint=", "--rm --shm-size 1g", ""},
	{"podman", true, "run --entrypoint=", "--rm --shm-size 1g", ""},
	{"buildah", true, "run", "", "--"}, /* the "image" is a container of buildah from */
	{"apptainer", false, "exec", "", ""},
	{"singularity", false, "exec", "", ""},
};

enum { RUNTIMES = sizeof runtimes / sizeof *runtimes };

bool sweep_container_is_used(const json_t *experiment)
{
	return *sweep_text(experiment, "exp.docker_image") &&
	       strcmp(sweep_text(experiment, "exp.docker"), "false") != 0;
}

/* DLBS's default. */
static const char *launcher_of(const json_t *experiment)
{
	const char *launcher = sweep_text(experiment, "exp.docker_launcher");

	if (*launcher)
		return launcher;
	return *sweep_text(experiment, "exp.gpus") ? "nvidia-docker" : "docker";
}

/* The last word counts, "sudo /usr/bin/podman"; NULL: it is not known. */
static const struct runtime *runtime_of(const json_t *experiment)
{
	const char *name = launcher_of(experiment);
	size_t n = strlen(name);

	while (n > 0 && strchr(" \t\n", name[n - 1]))
		n--;
	for (size_t i = n; i > 0; i--) {
		if (strchr("/ \t\n", name[i - 1])) {
			name += i;
			n -= i;
			break;
		}
	}
	for (size_t i = 0; i < RUNTIMES; i++)
		if (strlen(runtimes[i].name) == n && strncmp(runtimes[i].name, name, n) == 0)
			return &runtimes[i];
	return NULL;
}

/* In a container the data have the place that they have outside, from the root. */
static enum mu_status settle_data(json_t *experiment, const char *where)
{
	enum mu_status st = MU_OK;
	const char *folder = sweep_text(experiment, "exp.data_dir");
	char path[PATH_MAX];

	if (!*folder)
		goto out;
	if (!realpath(folder, path))
		MU_FAIL(MU_ERR_USAGE, "%s: \"exp.data_dir\": %s: %s", where, folder,
			strerror(errno));
	if (strpbrk(path, ":,"))
		MU_FAIL(MU_ERR_USAGE,
			"%s: \"exp.data_dir\": %s: a path with \":\" or \",\" cannot be given to a "
			"container",
			where, path);
	json_object_set_new(experiment, "exp.data_dir", json_string(path));
out:
	return st;
}

enum mu_status sweep_container_settle(json_t *experiment, const char *where)
{
	enum mu_status st = MU_OK;
	char known[256] = "";

	if (strcmp(sweep_text(experiment, "exp.docker"), "true") == 0 &&
	    !*sweep_text(experiment, "exp.docker_image"))
		MU_FAIL(MU_ERR_USAGE,
			"%s: \"exp.docker\": true, and \"exp.docker_image\" names no image", where);
	if (!sweep_container_is_used(experiment))
		goto out;
	for (size_t i = 0; i < RUNTIMES; i++)
		snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? "|" : "",
			 runtimes[i].name);
	if (!runtime_of(experiment))
		MU_FAIL(MU_ERR_USAGE,
			"%s: \"exp.docker_launcher\": \"%s\" is not known; it may be %s", where,
			launcher_of(experiment), known);
	MU_TRY(settle_data(experiment, where));
out:
	return st;
}

bool sweep_container_has_mpirun(const json_t *experiment)
{
	return sweep_container_is_used(experiment) && runtime_of(experiment)->has_mpirun;
}

enum mu_status sweep_container_add(const json_t *experiment, bool has_mpirun, struct sweep_words *w)
{
	enum mu_status st = MU_OK;
	const char *folder = sweep_text(experiment, "exp.data_dir");
	const char *arguments = sweep_text(experiment, "exp.docker_args");
	const struct runtime *r = runtime_of(experiment);
	char bound[2 * PATH_MAX + 8];

	if (!sweep_container_is_used(experiment) || r->has_mpirun != has_mpirun)
		goto out;
	MU_TRY(sweep_words_add(w, launcher_of(experiment)));
	MU_TRY(sweep_words_add(w, r->command));
	MU_TRY(sweep_words_add(w, *arguments ? arguments : r->initial));
	if (*folder) {
		snprintf(bound, sizeof bound, "%s:%s:ro", folder, folder);
		MU_TRY(sweep_words_option(w, r->has_mpirun ? "--volume" : "--bind", bound));
	}
	MU_TRY(sweep_words_add(w, sweep_text(experiment, "exp.docker_image")));
	MU_TRY(sweep_words_add(w, r->end));
out:
	return st;
}
