/* SPDX-License-Identifier: Apache-2.0 */
/*
 * muconvert: parameters from MXNet's .params files and safetensors to HDF5, as the trainer's --load
 * reads it, and back. Runs without MPI.
 */
#include <muster/storage.h>

#include <string.h>
#include <sys/stat.h>

#include "../lib/arguments.h"
#include "names.h"

struct values {
	const char *names;
	bool help;
};

static const struct mu_option table[] = {
	{.name = "names",
	 .type = MU_OPTION_STRING,
	 .offset = offsetof(struct values, names),
	 .initial = "auto",
	 .choices = "auto|plain|gpt2|llama|vit|resnet",
	 .group = "Safetensors",
	 .help = "WORD  names of arrays: of GPT-2, Llama and ViT in transformers (gpt2, llama, "
		 "vit), of torchvision's resnet50, 101 and 152 (resnet, for resnet-v1 here), as "
		 "they are (plain), or what the file has (auto)"},
	{.name = "help",
	 .type = MU_OPTION_FLAG,
	 .offset = offsetof(struct values, help),
	 .group = "Other",
	 .help = "this text"},
};

/* By its name; a folder holds nothing else. */
static bool is_safetensors(const char *path)
{
	struct stat status;

	return mu_stem(path, ".safetensors") || mu_stem(path, ".safetensors.index.json") ||
	       (stat(path, &status) == 0 && S_ISDIR(status.st_mode));
}

/* "arg:x" becomes "arg/x", and back; other names stay. */
static void change_name(char *name, char from, char to)
{
	if ((strncmp(name, "arg", 3) == 0 || strncmp(name, "aux", 3) == 0) && name[3] == from)
		name[3] = to;
}

/* ---- to HDF5 ---- */

static enum mu_status copy_array(const struct mu_params *in, size_t i, struct mu_array_file *out)
{
	enum mu_status st = MU_OK;
	const struct mu_params_array *array = mu_params_array(in, i);
	char name[sizeof array->name];
	float *data = NULL;

	memcpy(name, array->name, sizeof name);
	change_name(name, ':', '/');
	MU_TRY(MU_ALLOC(data, mu_params_elements(array), "an array"));
	MU_TRY(mu_params_read(in, i, data));
	MU_TRY(mu_array_file_write(out, name, array->ndims, array->dims, data));
out:
	mu_free(data);
	return st;
}

static enum mu_status to_hdf5(const char *from, const char *to, size_t *n)
{
	enum mu_status st = MU_OK;
	struct mu_params *in = NULL;
	struct mu_array_file *out = NULL;

	MU_TRY(mu_params_open(&in, from));
	MU_TRY(mu_array_file_create(&out, to));
	*n = mu_params_n(in);
	for (size_t i = 0; i < *n; i++)
		MU_TRY(copy_array(in, i, out));
	st = mu_array_file_close(out, true);
	out = NULL;
	MU_TRY(st);
out:
	mu_array_file_close(out, false);
	mu_params_close(in);
	return st;
}

/* ---- to .params ---- */

struct source {
	struct mu_array_file *file;
	const char *path;
	bool checkpoint; /* its parameters alone */
	size_t n;
	struct mu_params_array *arrays; /* NULL: only counted */
};

static enum mu_status add_array(void *context, const char *name, int ndims, const size_t *dims)
{
	enum mu_status st = MU_OK;
	struct source *s = context;
	struct mu_params_array *array;

	if (s->checkpoint && strncmp(name, "arg/", 4) != 0 && strncmp(name, "aux/", 4) != 0)
		return MU_OK;
	if (ndims < 1 || strlen(name) >= sizeof array->name)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array \"%s\" with %d dimensions: 1 to %d, and a name of at most %zu "
			"letters, can be written",
			s->path, name, ndims, MU_PARAMS_NDIMS, sizeof array->name - 1);
	if (s->arrays) {
		array = &s->arrays[s->n];
		array->ndims = ndims;
		memcpy(array->dims, dims, (size_t)ndims * sizeof *dims);
		snprintf(array->name, sizeof array->name, "%s", name);
		change_name(array->name, '/', ':');
	}
	s->n++;
out:
	return st;
}

static enum mu_status write_array(void *context, const struct mu_params_array *array, float *data)
{
	const struct source *s = context;
	char name[sizeof array->name];

	memcpy(name, array->name, sizeof name);
	change_name(name, ':', '/');
	return mu_array_file_read(s->file, name, array->ndims, array->dims, data);
}

enum mu_status convert_tell_others(struct mu_array_file *from, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_array_others others;

	MU_TRY(mu_array_file_others(from, &others));
	if (others.n > 0)
		fprintf(stderr, "muconvert: %s: %zu array%s of no floats left out (%s%s)\n",
			mu_shown(path), others.n, MU_S(others.n),
			others.n == 1 ? "" : "the first is ", others.first);
out:
	return st;
}

static enum mu_status to_params(const char *from, const char *to, size_t *n)
{
	enum mu_status st = MU_OK;
	static const char end[] = ".params";
	struct source s = {.path = from};

	if (!mu_stem(to, end))
		MU_FAIL(MU_ERR_USAGE,
			"%s: a name that ends in .params or .safetensors is needed: MXNet's format "
			"and safetensors are written, no other",
			to);
	MU_TRY(mu_array_file_open_checked(&s.file, from));
	MU_TRY(mu_array_file_has_text(s.file, "format", &s.checkpoint));
	MU_TRY(mu_array_file_each(s.file, add_array, &s));
	if (s.n == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: holds no arrays of float32", from);
	if (!s.checkpoint)
		MU_TRY(convert_tell_others(s.file, from));
	MU_TRY(MU_ALLOC(s.arrays, s.n, "table of arrays"));
	s.n = 0;
	MU_TRY(mu_array_file_each(s.file, add_array, &s));
	MU_TRY(mu_params_write(to, s.n, s.arrays, write_array, &s));
	*n = s.n;
out:
	mu_free(s.arrays);
	mu_array_file_close(s.file, false);
	return st;
}

static enum mu_status convert(const struct values *v, const char *from, const char *to, size_t *n)
{
	enum mu_status st = MU_OK;
	const struct name_choice names = {strcmp(v->names, "auto") == 0,
					  name_family_find(v->names)};
	bool hdf5 = false;

	if (!names.detect && !is_safetensors(from) && !is_safetensors(to))
		fprintf(stderr,
			"muconvert: warning: --names %s has no effect: it is about "
			"safetensors\n",
			v->names);
	if (!is_safetensors(from))
		MU_TRY(mu_array_file_is(from, &hdf5));
	if (hdf5)
		MU_TRY(is_safetensors(to) ? convert_to_safetensors(from, to, names, n)
					  : to_params(from, to, n));
	else if (is_safetensors(to))
		MU_FAIL(MU_ERR_USAGE,
			"%s: safetensors are written from HDF5, and %s is none: convert it to HDF5 "
			"first",
			to, from);
	else
		MU_TRY(is_safetensors(from) ? convert_from_safetensors(from, to, names, n)
					    : to_hdf5(from, to, n));
out:
	return st;
}

int main(int argc, char **argv)
{
	enum mu_status st = MU_OK;
	struct values values;
	struct data_command command = {
		.tool = "muconvert",
		.table = table,
		.n_options = sizeof table / sizeof *table,
		.values = &values,
		.usage = "FROM TO\n\n"
			 "Write the parameters of FROM to the HDF5 file TO, for trainer --load. "
			 "FROM is a file of MXNet\n(X-0001.params), a file X.safetensors, an index "
			 "of several (X.safetensors.index.json), or a\nfolder with "
			 "model.safetensors. Or write those of the HDF5 file FROM, such as a "
			 "checkpoint, to TO:\nX.params or X.safetensors.\n",
		.n_words = 2,
	};
	bool done;
	size_t n;

	MU_TRY(data_command_parse(&command, argc, argv, &done));
	if (done)
		goto out;
	MU_TRY(data_command_watch(&command, command.words[1]));
	MU_TRY(convert(&values, command.words[0], command.words[1], &n));
	printf("muconvert: %zu array%s of %s in %s\n", n, MU_S(n), mu_shown(command.words[0]),
	       mu_shown(command.words[1]));
out:
	return data_command_end(&command, st);
}
