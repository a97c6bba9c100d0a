/* SPDX-License-Identifier: Apache-2.0 */
/* A network from a shared object that a user compiled: see net.h. */
#include <muster/net.h>

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include <muster/base.h>

#include "crash.h"

enum { NAME_BYTES = 64 }; /* of a network's name in files */

#define COMPILE_AGAIN \
	"compile it again with the headers of this version (pkg-config --cflags muster)"

/* Opening anything but a regular file could block, or execute something else. */
static enum mu_status check_file(const char *path)
{
	enum mu_status st = MU_OK;
	struct stat status;

	if (stat(path, &status) != 0)
		MU_FAIL(MU_ERR_IO, "network %s: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		MU_FAIL(MU_ERR_IO, "network %s: not a file", path);
out:
	return st;
}

/* The object is never unloaded, because the net and its layers point into it; the handle is closed
 * at once. */
static enum mu_status find_export(const struct mu_network_export **out, const char *path)
{
	enum mu_status st = MU_OK;
	char place[PATH_MAX];
	const char *reason;
	void *handle = NULL;

	/* dlopen searches the system's library folders for a name without a slash. */
	if ((size_t)snprintf(place, sizeof place, "%s%s", strchr(path, '/') ? "" : "./", path) >=
	    sizeof place)
		MU_FAIL(MU_ERR_IO, "network %s: %s", path, strerror(ENAMETOOLONG));
	handle = dlopen(place, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!handle) {
		reason = dlerror();
		MU_FAIL(MU_ERR_FORMAT,
			"network %s: cannot be loaded: %s; a model is a shared "
			"object: " COMPILE_AGAIN " and cc -shared -fPIC",
			path, reason ? reason : "no reason given");
	}
	*out = dlsym(handle, "mu_network_export");
	if (!*out)
		MU_FAIL(MU_ERR_FORMAT,
			"network %s: a shared object, but not a model: it has no symbol "
			"mu_network_export, which MU_NETWORK_EXPORT(network) at the end of its "
			"source makes",
			path);
out:
	if (handle)
		dlclose(handle);
	return st;
}

static size_t size_of(const struct mu_option *row)
{
	switch (row->type) {
	case MU_OPTION_FLAG: return sizeof(bool);
	case MU_OPTION_INT: return sizeof(long);
	case MU_OPTION_REAL: return sizeof(double);
	case MU_OPTION_STRING: return sizeof(const char *);
	case MU_OPTION_WORD: return row->words && row->n_words > 0 ? sizeof(int) : SIZE_MAX;
	}
	return SIZE_MAX;
}

/* The rows of its settings, which its author has written. */
static enum mu_status check_settings(const struct mu_network *network, const char *path)
{
	enum mu_status st = MU_OK;
	const struct mu_option *row = network->settings;
	size_t n = 0;

	if (network->settings_nbytes > MU_SETTINGS_BYTES)
		MU_FAIL(MU_ERR_FORMAT, "network %s: its settings have %zu bytes; at most %d are "
			"possible",
			path, network->settings_nbytes, MU_SETTINGS_BYTES);
	for (; row && row->name; row++) {
		if (++n > MU_MAX_SETTINGS)
			MU_FAIL(MU_ERR_FORMAT,
				"network %s: it has more than %d settings, or no row without a "
				"name after the last one",
				path, MU_MAX_SETTINGS);
		if (!*row->name || strlen(row->name) >= NAME_BYTES ||
		    strspn(row->name, "abcdefghijklmnopqrstuvwxyz0123456789-") !=
			    strlen(row->name))
			MU_FAIL(MU_ERR_FORMAT,
				"network %s: \"%.80s\" is no name of a setting: small letters, "
				"digits and dashes are needed, at most %d",
				path, row->name, NAME_BYTES - 1);
		if (!row->help || size_of(row) > network->settings_nbytes ||
		    row->offset > network->settings_nbytes - size_of(row))
			MU_FAIL(MU_ERR_FORMAT,
				"network %s: its setting %s needs a help text, a type, and a place "
				"within settings_nbytes (%zu)",
				path, row->name, network->settings_nbytes);
	}
out:
	return st;
}

static enum mu_status check_network(const struct mu_network *network, const char *path)
{
	enum mu_status st = MU_OK;
	char text[MU_SAMPLE_TEXT];

	if (!network || !network->name || !*network->name || !network->build)
		MU_FAIL(MU_ERR_FORMAT,
			"network %s: its struct mu_network needs a name and a build function",
			path);
	if (strlen(network->name) >= NAME_BYTES)
		MU_FAIL(MU_ERR_FORMAT, "network %s: the name %s has more than %d characters", path,
			network->name, NAME_BYTES - 1);
	if (network->shape.ndims < 2 || network->shape.dims[0] != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"network %s: the shape of network %s is not that of a sample; its usual "
			"one is needed, as .shape = MU_SAMPLE(c, h, w)",
			path, network->name);
	if (mu_shape_sample(&network->shape) == 0)
		MU_FAIL(MU_ERR_FORMAT,
			"network %s: the shape of network %s, %s, has a 0; it is c,h,w of its "
			"usual input",
			path, network->name,
			mu_sample_text(&network->shape, ",", text, sizeof text));
	MU_TRY(check_settings(network, path));
out:
	return st;
}

enum mu_status mu_network_load(const struct mu_network **out, const char *path)
{
	enum mu_status st = MU_OK;
	const struct mu_network_export *model;

	*out = NULL;
	MU_TRY(check_file(path));
	MU_TRY(find_export(&model, path));
	if (model->abi != MU_ABI)
		MU_FAIL(MU_ERR_FORMAT,
			"network %s: compiled for binary interface %d of Muster, and this is "
			"%d: " COMPILE_AGAIN,
			path, model->abi, MU_ABI);
	mu_network_name_crashes(path, model);
	MU_TRY(check_network(model->network, path));
	*out = model->network;
out:
	return st;
}
