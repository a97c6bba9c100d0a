/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All arrays of a file of named arrays. Names are read in the order in which the file has them and
 * sorted here: for an order of its own, HDF5 1.10 makes a table, and frees it before it is filled
 * where the file is damaged.
 */
#include "array_file.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 8 };

struct visit {
	struct mu_array_file *f;
	mu_array_fn *fn; /* NULL: verify */
	void *context;
	struct mu_array_others *others; /* NULL: they are not counted */
	int depth;
	char name[MU_ARRAY_NAME_BYTES]; /* name of the current group, with a slash; "" */
	size_t n;                       /* arrays with checksums so far */
};

/* ---- one array ---- */

static enum mu_status verify_array(struct visit *v, hid_t set, const char *name)
{
	enum mu_status st = MU_OK;
	struct mu_array_file *f = v->f;
	hid_t space = -1, type = -1;
	float *data = NULL;
	hssize_t n;
	htri_t has;

	MU_H5(has = H5Aexists(set, MU_ARRAY_INDEX));
	if (!has)
		goto out;
	MU_H5(type = H5Dget_type(set));
	MU_H5(space = H5Dget_space(set));
	MU_H5(n = H5Sget_simple_extent_npoints(space));
	if (H5Tget_class(type) != H5T_FLOAT || H5Tget_size(type) != sizeof *data ||
	    H5Dget_storage_size(set) != (hsize_t)n * sizeof *data)
		MU_FAIL(MU_ERR_FORMAT, "%s: array \"%s\" is not of type float32, or not all there",
			f->path, name);
	MU_TRY(MU_ALLOC(data, (size_t)n + 1, "an array to be checked"));
	MU_H5(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
	MU_TRY(mu_array_verify(f, set, name, data));
	v->n++;
out:
	mu_free(data);
	mu_h5_close_space(space);
	mu_h5_close_type(type);
	return st;
}

static enum mu_status list_array(struct visit *v, hid_t set, const char *name)
{
	enum mu_status st = MU_OK;
	struct mu_array_file *f = v->f;
	hid_t space = -1, type = -1;
	hsize_t found[H5S_MAX_RANK];
	size_t dims[MU_ARRAY_NDIMS];
	int n;

	MU_H5(type = H5Dget_type(set));
	MU_H5(space = H5Dget_space(set));
	MU_H5(n = H5Sget_simple_extent_dims(space, found, NULL));
	if (H5Tget_class(type) != H5T_FLOAT) { /* no weights */
		if (v->others && v->others->n++ == 0)
			mu_text_show(v->others->first, sizeof v->others->first, name);
		goto out;
	}
	if (H5Tget_size(type) != sizeof(float) || n > MU_ARRAY_NDIMS)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array \"%s\" has %d dimensions of numbers of %zu bits; at most %d, "
			"and "
			"32 bits (float32), can be read",
			f->path, name, n, 8 * H5Tget_size(type), MU_ARRAY_NDIMS);
	for (int i = 0; i < n; i++)
		dims[i] = found[i];
	MU_TRY(v->fn(v->context, name, n, dims));
out:
	mu_h5_close_space(space);
	mu_h5_close_type(type);
	return st;
}

/* ---- the links of a group ---- */

struct links {
	size_t n, room;
	struct link {
		char *name;
		bool hard;
	} * of;
	enum mu_status st;
};

static enum mu_status add_link(struct links *l, const char *name, bool hard)
{
	enum mu_status st = MU_OK;
	const size_t room = l->room ? 2 * l->room : 64, nbytes = strlen(name) + 1;
	struct link *larger;

	if (l->n == l->room) {
		MU_TRY(MU_ALLOC(larger, room, "names of arrays"));
		if (l->n > 0)
			memcpy(larger, l->of, l->n * sizeof *larger);
		mu_free(l->of);
		l->of = larger;
		l->room = room;
	}
	MU_TRY(MU_ALLOC(l->of[l->n].name, nbytes, "name of an array"));
	memcpy(l->of[l->n].name, name, nbytes);
	l->of[l->n++].hard = hard;
out:
	return st;
}

static herr_t note_link(hid_t group, const char *name, const H5L_info_t *info, void *context)
{
	struct links *l = context;

	(void)group;
	l->st = add_link(l, name, info->type == H5L_TYPE_HARD);
	return l->st == MU_OK ? 0 : -1;
}

static int by_name(const void *a, const void *b)
{
	const struct link *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static enum mu_status read_links(struct visit *v, hid_t group, struct links *l)
{
	enum mu_status st = MU_OK;
	struct mu_array_file *f = v->f;
	H5G_info_t info;
	herr_t answer;

	MU_H5(H5Gget_info(group, &info));
	answer = H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, note_link, l);
	MU_TRY(l->st);
	MU_H5(answer);
	if (l->n != info.nlinks)
		MU_FAIL(MU_ERR_FORMAT, "%s: group \"%s\" has %zu arrays and groups, not %llu",
			f->path, v->name, l->n, (unsigned long long)info.nlinks);
	if (l->n > 0)
		qsort(l->of, l->n, sizeof *l->of, by_name);
out:
	return st;
}

static enum mu_status visit_group(struct visit *v, hid_t group);

/* Its name is v->name. */
static enum mu_status visit_object(struct visit *v, hid_t object)
{
	enum mu_status st = MU_OK;
	const size_t n = strlen(v->name);

	switch (H5Iget_type(object)) {
	case H5I_DATASET:
		MU_TRY(mu_h5_check_own(v->f->file, object, v->f->path, v->name));
		MU_TRY(v->fn ? list_array(v, object, v->name) : verify_array(v, object, v->name));
		break;
	case H5I_GROUP:
		if (v->depth == DEPTH_MAX || n + 2 > sizeof v->name)
			MU_FAIL(MU_ERR_FORMAT, "%s: group \"%s\" lies too deep: %d levels are read",
				v->f->path, v->name, DEPTH_MAX);
		memcpy(v->name + n, "/", 2);
		v->depth++;
		MU_TRY(visit_group(v, object));
		v->depth--;
		break;
	default: break;
	}
out:
	return st;
}

static enum mu_status visit_link(struct visit *v, hid_t group, const struct link *link)
{
	enum mu_status st = MU_OK;
	const size_t before = strlen(v->name), room = sizeof v->name - before;
	char message[MU_H5_MESSAGE];
	hid_t object = -1;

	if ((size_t)snprintf(v->name + before, room, "%s", link->name) >= room)
		MU_FAIL(MU_ERR_FORMAT, "%s: the name \"%s...\" is too long", v->f->path, v->name);
	if (!link->hard)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: \"%s\" is a link, which is not followed; copy what it names in its "
			"place "
			"(h5copy -f soft,ext)",
			v->f->path, v->name);
	object = H5Oopen(group, link->name, H5P_DEFAULT);
	if (object < 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: \"%s\" cannot be opened: %s", v->f->path, v->name,
			mu_h5_message(message));
	MU_TRY(visit_object(v, object));
out:
	if (object >= 0)
		H5Oclose(object);
	v->name[before] = '\0';
	return st;
}

static enum mu_status visit_group(struct visit *v, hid_t group)
{
	enum mu_status st = MU_OK;
	struct links links = {.n = 0};

	MU_TRY(read_links(v, group, &links));
	for (size_t i = 0; i < links.n; i++)
		MU_TRY(visit_link(v, group, &links.of[i]));
out:
	for (size_t i = 0; i < links.n; i++)
		mu_free(links.of[i].name);
	mu_free(links.of);
	return st;
}

static enum mu_status visit_file(struct visit *v)
{
	enum mu_status st = MU_OK;
	struct mu_h5_quiet quiet;

	mu_h5_quiet_begin(&quiet);
	MU_TRY(visit_group(v, v->f->file));
out:
	mu_h5_quiet_end(&quiet);
	return st;
}

enum mu_status mu_array_file_each(struct mu_array_file *f, mu_array_fn *fn, void *context)
{
	return visit_file(&(struct visit){.f = f, .fn = fn, .context = context});
}

static enum mu_status pass_by(void *context, const char *name, int ndims, const size_t *dims)
{
	(void)context, (void)name, (void)ndims, (void)dims;
	return MU_OK;
}

enum mu_status mu_array_file_others(struct mu_array_file *f, struct mu_array_others *others)
{
	*others = (struct mu_array_others){0};
	return visit_file(&(struct visit){.f = f, .fn = pass_by, .others = others});
}

enum mu_status mu_array_file_verify(struct mu_array_file *f)
{
	enum mu_status st = MU_OK;
	struct mu_h5_quiet quiet;
	struct visit v = {.f = f};

	mu_h5_quiet_begin(&quiet);
	MU_TRY(visit_group(&v, f->file));
	if (!f->checksums)
		MU_TRY(mu_array_read_checksums(f));
	if (v.n != f->n_checksums)
		MU_FAIL(MU_ERR_FORMAT, "%s: holds %zu arrays with checksums, and %zu were saved",
			f->path, v.n, f->n_checksums);
out:
	mu_h5_quiet_end(&quiet);
	return st;
}
