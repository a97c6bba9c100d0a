/* SPDX-License-Identifier: Apache-2.0 */
/* A network, or a loss, from a shared object that a user compiled: see net.h, metrics.h. */
#include <muster/net.h>

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include <muster/base.h>
#include <muster/metrics.h>

#include "crash.h"
#include "net/layers/layer.h"

enum { NAME_BYTES = 64, LOSS_BYTES = 16 }; /* of names of networks, losses in files */
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789-"

#define COMPILE_AGAIN \
	"compile it again with the headers of this version (pkg-config --cflags muster)"

/* What a file has: how messages name it, its symbol, what defines that. */
static const struct what {
	const char *name, *noun, *symbol, *macro;
} networks = {"network", "a model", "mu_network_export", "MU_NETWORK_EXPORT(network)"},
  losses = {"objective", "a loss", "mu_loss_export", "MU_LOSS_EXPORT(loss)"};

/* Opening anything but a regular file could block, or execute something else. */
static enum mu_status check_file(const struct what *w, const char *path)
{
	enum mu_status st = MU_OK;
	struct stat status;

	if (stat(path, &status) != 0)
		MU_FAIL(MU_ERR_IO, "%s %s: %s", w->name, path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		MU_FAIL(MU_ERR_IO, "%s %s: not a file", w->name, path);
out:
	return st;
}

/* The object is never unloaded, because the net and its layers point into it; the handle is closed
 * at once. */
static enum mu_status find_export(const void **out, const struct what *w, const char *path)
{
	enum mu_status st = MU_OK;
	const struct what *other = w == &networks ? &losses : &networks;
	char place[PATH_MAX], cure[128] = "";
	const char *reason;
	void *handle = NULL;

	/* dlopen searches the system's library folders for a name without a slash. */
	if ((size_t)snprintf(place, sizeof place, "%s%s", strchr(path, '/') ? "" : "./", path) >=
	    sizeof place)
		MU_FAIL(MU_ERR_IO, "%s %s: %s", w->name, path, strerror(ENAMETOOLONG));
	handle = dlopen(place, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!handle) {
		reason = dlerror();
		MU_FAIL(MU_ERR_FORMAT,
			"%s %s: cannot be loaded: %s; %s is a shared "
			"object: " COMPILE_AGAIN " and cc -shared -fPIC",
			w->name, path, reason ? reason : "no reason given", w->noun);
	}
	*out = dlsym(handle, w->symbol);
	if (!*out && dlsym(handle, other->symbol))
		snprintf(cure, sizeof cure, "; it is %s, for --%s", other->noun, other->name);
	if (!*out)
		MU_FAIL(MU_ERR_FORMAT,
			"%s %s: a shared object, but not %s: it has no symbol %s, which %s at the "
			"end of its source makes%s",
			w->name, path, w->noun, w->symbol, w->macro, cure);
out:
	if (handle)
		dlclose(handle);
	return st;
}

/* abi: what both kinds of exports begin with. */
static enum mu_status open_export(const void **out, const struct what *w, const char *path)
{
	enum mu_status st = MU_OK;

	MU_TRY(check_file(w, path));
	MU_TRY(find_export(out, w, path));
	if (*(const int *)*out != MU_ABI)
		MU_FAIL(MU_ERR_FORMAT,
			"%s %s: compiled for binary interface %d of Muster, and this is "
			"%d: " COMPILE_AGAIN,
			w->name, path, *(const int *)*out, MU_ABI);
	mu_network_name_crashes(path, *out);
out:
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
static enum mu_status check_settings(const struct mu_option *row, size_t nbytes,
				     const struct what *w, const char *path)
{
	enum mu_status st = MU_OK;
	size_t n = 0;

	if (nbytes > MU_SETTINGS_BYTES)
		MU_FAIL(MU_ERR_FORMAT,
			"%s %s: its settings have %zu bytes; at most %d are "
			"possible",
			w->name, path, nbytes, MU_SETTINGS_BYTES);
	for (; row && row->name; row++) {
		if (++n > MU_MAX_SETTINGS)
			MU_FAIL(MU_ERR_FORMAT,
				"%s %s: it has more than %d settings, or no row without a "
				"name after the last one",
				w->name, path, MU_MAX_SETTINGS);
		if (!*row->name || strlen(row->name) >= NAME_BYTES ||
		    strspn(row->name, NAME_LETTERS) != strlen(row->name))
			MU_FAIL(MU_ERR_FORMAT,
				"%s %s: \"%.80s\" is no name of a setting: small letters, "
				"digits and dashes are needed, at most %d",
				w->name, path, row->name, NAME_BYTES - 1);
		if (!row->help || size_of(row) > nbytes || row->offset > nbytes - size_of(row))
			MU_FAIL(MU_ERR_FORMAT,
				"%s %s: its setting %s needs a help text, a type, and a place "
				"within settings_nbytes (%zu)",
				w->name, path, row->name, nbytes);
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
	MU_TRY(check_settings(network->settings, network->settings_nbytes, &networks, path));
out:
	return st;
}

enum mu_status mu_network_load(const struct mu_network **out, const char *path)
{
	enum mu_status st = MU_OK;
	const void *found;

	*out = NULL;
	MU_TRY(open_export(&found, &networks, path));
	MU_TRY(check_network(((const struct mu_network_export *)found)->network, path));
	*out = ((const struct mu_network_export *)found)->network;
out:
	return st;
}

static enum mu_status check_loss(const struct mu_loss *loss, const char *path)
{
	enum mu_status st = MU_OK;
	const char *lacks = mu_loss_lacks(loss);

	if (!lacks && !loss->add)
		lacks = "a function .add, which calls mu_net_custom_loss";
	if (lacks)
		MU_FAIL(MU_ERR_FORMAT, "objective %s: its struct mu_loss needs %s", path, lacks);
	if (strlen(loss->name) >= LOSS_BYTES ||
	    strspn(loss->name, NAME_LETTERS) != strlen(loss->name))
		MU_FAIL(MU_ERR_FORMAT,
			"objective %s: \"%.80s\" is no name of a loss: small letters, digits and "
			"dashes are needed, at most %d",
			path, loss->name, LOSS_BYTES - 1);
	MU_TRY(check_settings(loss->settings, loss->settings_nbytes, &losses, path));
out:
	return st;
}

/* They stay loaded until the process ends, as their files do. */
enum { MOST_LOADED = 8 };
static const struct mu_loss *loaded[MOST_LOADED + 1];

const struct mu_loss *mu_loss_loaded(size_t i)
{
	return i < MOST_LOADED ? loaded[i] : NULL;
}

static enum mu_status keep_loss(const struct mu_loss *loss, const char *path)
{
	enum mu_status st = MU_OK;
	size_t n = 0;

	while (loaded[n] && loaded[n] != loss)
		n++;
	if (n == MOST_LOADED)
		MU_FAIL(MU_ERR_UNSUPPORTED, "objective %s: at most %d losses of files are possible",
			path, MOST_LOADED);
	loaded[n] = loss;
out:
	return st;
}

enum mu_status mu_loss_load(const struct mu_loss **out, const char *path)
{
	enum mu_status st = MU_OK;
	const void *found;

	*out = NULL;
	MU_TRY(open_export(&found, &losses, path));
	MU_TRY(check_loss(((const struct mu_loss_export *)found)->loss, path));
	*out = ((const struct mu_loss_export *)found)->loss;
	MU_TRY(keep_loss(*out, path));
out:
	return st;
}
