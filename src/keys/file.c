/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights, states and the optimiser of a store of keys in one HDF5 file. Worker 0 moves one array
 * at a time between the owners and the file:
 *
 *	weights/KEY, states/NAME/KEY       float32, as the owners keep them
 *	updates/KEY                        (a, b): a * 2^24 + b updates
 *
 * KEY is a number, or a name in which '/', '%' and a dot at its start are written as %2F, %25, %2E.
 * Arrays have checksums, as in checkpoints (storage.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <muster/storage.h>

#include "store.h"
#include "storage/file.h"

enum { NAME_BYTES = 3 * MU_KEY_NAME_MAX + 64, TEXT_BYTES = 192, COUNT_BITS = 24 };
static const char format[] = "muster keys";

/* An array of the file. */
struct entry {
	const struct mu_key *key;
	enum mu_coding get, put;
	size_t state;     /* its number */
	const char *kind; /* "states/momentum" */
	uint64_t place;
};

struct keys_file {
	struct mu_keys *keys;
	const char *path;
	unsigned contents;
	struct entry *entries;
	size_t n, max;
	char kinds[MU_MAX_STATES][TEXT_BYTES];
	float *data; /* of one array */
};

/* ---- what is in a file ---- */

static void release(struct keys_file *f)
{
	mu_free(f->entries);
	mu_free(f->data);
}

static enum mu_status add(struct keys_file *f, struct entry entry)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_keys_grow((void **)&f->entries, f->n, &f->max, sizeof *f->entries,
			    "arrays of a file"));
	f->entries[f->n++] = entry;
out:
	return st;
}

/* The arrays that the contents ask for, with the states of this rule. */
static enum mu_status list(struct keys_file *f, const struct mu_rule_order *rule)
{
	enum mu_status st = MU_OK;
	const struct mu_key_table *t = &f->keys->table;
	const char *names[MU_MAX_STATES];
	const int n_states = mu_keys_state_names(rule, names);
	size_t most = 2;

	for (int i = 0; i < n_states; i++)
		snprintf(f->kinds[i], sizeof f->kinds[i], "states/%s", names[i]);
	for (size_t k = 0; k < t->n_keys; k++) {
		const struct mu_key *key = &t->keys[k];

		most = key->n > most ? key->n : most;
		if (f->contents & MU_KEYS_WEIGHTS)
			MU_TRY(add(f, (struct entry){key, MU_CODING_WEIGHTS_GET,
						     MU_CODING_WEIGHTS_PUT, 0, "weights", 0}));
		if (!(f->contents & MU_KEYS_STATES))
			continue;
		MU_TRY(add(f, (struct entry){key, MU_CODING_UPDATES_GET, MU_CODING_UPDATES_PUT, 0,
					     "updates", 0}));
		for (int i = 0; i < n_states; i++)
			MU_TRY(add(f, (struct entry){key, MU_CODING_STATE_GET, MU_CODING_STATE_PUT,
						     (size_t)i, f->kinds[i], 0}));
	}
	MU_TRY(MU_ALLOC(f->data, most, "an array of a file"));
out:
	return st;
}

static bool is_count(const struct entry *e)
{
	return e->get == MU_CODING_UPDATES_GET;
}

static size_t n_of(const struct entry *e)
{
	return is_count(e) ? 2 : e->key->n;
}

static void name_of(const struct entry *e, char out[NAME_BYTES])
{
	size_t n = (size_t)snprintf(out, NAME_BYTES, "%s/", e->kind);
	const char *name = e->key->name;

	if (!name)
		snprintf(out + n, NAME_BYTES - n, "%d", e->key->number);
	for (const char *p = name; p && *p && n + 4 < NAME_BYTES; p++) {
		const bool plain = *p != '/' && *p != '%' && !(*p == '.' && p == name);

		n += (size_t)snprintf(out + n, NAME_BYTES - n, plain ? "%c" : "%%%02X",
				      (unsigned char)*p);
	}
}

/* One array between its owners and f->data. */
static enum mu_status get(struct keys_file *f, const struct entry *e)
{
	enum mu_status st = MU_OK;
	uint64_t updates;

	if (is_count(e)) {
		MU_TRY(mu_keys_move(f->keys, e->key, e->get, 0, &updates));
		f->data[0] = (float)(updates >> COUNT_BITS);
		f->data[1] = (float)(updates & ((UINT64_C(1) << COUNT_BITS) - 1));
	} else {
		MU_TRY(mu_keys_move(f->keys, e->key, e->get, e->state, f->data));
	}
out:
	return st;
}

static enum mu_status put(struct keys_file *f, const struct entry *e)
{
	enum mu_status st = MU_OK;
	uint64_t updates;

	if (is_count(e)) {
		updates = ((uint64_t)f->data[0] << COUNT_BITS) + (uint64_t)f->data[1];
		MU_TRY(mu_keys_move(f->keys, e->key, e->put, 0, &updates));
	} else {
		MU_TRY(mu_keys_move(f->keys, e->key, e->put, e->state, f->data));
	}
out:
	return st;
}

/* ---- saving ---- */

static enum mu_status create(struct keys_file *f, struct mu_replace *replace, uint64_t *checksums)
{
	enum mu_status st = MU_OK;
	const struct mu_rule_order *rule = &f->keys->rule;
	struct mu_array_file *file = NULL;
	char text[MU_OPTIMIZER_TEXT], name[NAME_BYTES];

	MU_TRY(mu_array_file_create(&file, f->path));
	MU_TRY(mu_array_file_set_text(file, "format", format));
	MU_TRY(mu_array_file_set_text(file, "version", "1"));
	MU_TRY(mu_array_file_set_text(file, "keys", f->keys->table.named ? "names" : "numbers"));
	if (f->contents & MU_KEYS_STATES)
		MU_TRY(mu_array_file_set_text(file, "rule", rule->name));
	if (f->contents & MU_KEYS_OPTIMIZER) {
		mu_optimizer_text(rule, text);
		MU_TRY(mu_array_file_set_text(file, "optimizer", text));
	}
	for (size_t i = 0; i < f->n; i++) {
		const size_t n = n_of(&f->entries[i]);

		name_of(&f->entries[i], name);
		MU_TRY(mu_array_file_define(file, name, 1, &n, &f->entries[i].place));
	}
	st = mu_array_file_detach(file, replace, checksums);
	file = NULL;
	MU_TRY(st);
out:
	mu_array_file_close(file, false);
	return st;
}

static enum mu_status write_all(struct keys_file *f, int fd, uint64_t checksums)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < f->n; i++) {
		const struct entry *e = &f->entries[i];
		const size_t nbytes = n_of(e) * sizeof(float);
		uint32_t sum;

		MU_TRY(get(f, e));
		sum = mu_checksum(0, f->data, nbytes);
		MU_TRY(mu_file_write_at(fd, f->path, f->data, nbytes, e->place));
		MU_TRY(mu_file_write_at(fd, f->path, &sum, sizeof sum, checksums + i * sizeof sum));
	}
out:
	return st;
}

/* Worker 0's part. */
static enum mu_status save(struct keys_file *f)
{
	enum mu_status st = MU_OK;
	struct mu_replace replace = {0};
	uint64_t checksums;
	int fd = -1;

	if (f->contents & (MU_KEYS_STATES | MU_KEYS_OPTIMIZER) &&
	    f->keys->rule.kind != MU_RULE_OPTIM)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s: there are no states and no optimizer to save without "
			"mu_keys_set_optimizer",
			f->path);
	MU_TRY(list(f, &f->keys->rule));
	MU_TRY(create(f, &replace, &checksums));
	fd = open(replace.written, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", f->path, strerror(errno));
	MU_TRY(write_all(f, fd, checksums));
	MU_TRY(mu_replace_commit(&replace));
out:
	if (fd >= 0)
		close(fd);
	mu_replace_release(&replace);
	return st;
}

/* ---- loading ---- */

static enum mu_status check_text(struct mu_array_file *file, const char *path, const char *name,
				 const char *expected, const char *remedy)
{
	enum mu_status st = MU_OK;
	const char *what = strcmp(name, "keys") == 0 ? "sort of keys" : name;
	char text[TEXT_BYTES] = "nothing";
	bool found;

	MU_TRY(mu_array_file_has_text(file, name, &found));
	if (found)
		MU_TRY(mu_array_file_get_text(file, name, text, sizeof text));
	if (!found || strcmp(text, expected) != 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: its %s is '%s', and '%s' is needed: %s", path, what,
			text, expected, remedy);
out:
	return st;
}

/* The rule that holds after the load. */
static enum mu_status find_rule(struct keys_file *f, struct mu_array_file *file,
				struct mu_rule_order *rule)
{
	enum mu_status st = MU_OK;
	struct mu_kv_optimizer optimizer;
	char text[MU_OPTIMIZER_TEXT];
	bool found;

	if (f->contents & MU_KEYS_OPTIMIZER) {
		MU_TRY(mu_array_file_has_text(file, "optimizer", &found));
		if (!found)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: holds no optimizer: it was saved without MU_KEYS_OPTIMIZER",
				f->path);
		MU_TRY(mu_array_file_get_text(file, "optimizer", text, sizeof text));
		MU_TRY(mu_optimizer_parse(text, &optimizer));
		mu_rule_order_fill(rule, &optimizer);
		if (rule->kind == MU_RULE_BAD)
			MU_FAIL(MU_ERR_FORMAT, "%s: %s", f->path, rule->name);
	}
	if (!(f->contents & MU_KEYS_STATES))
		goto out;
	if (rule->kind != MU_RULE_OPTIM)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s: states are loaded after mu_keys_set_optimizer, or with "
			"MU_KEYS_OPTIMIZER",
			f->path);
	MU_TRY(mu_array_file_has_text(file, "rule", &found));
	if (!found)
		MU_FAIL(MU_ERR_FORMAT, "%s: holds no states: it was saved without MU_KEYS_STATES",
			f->path);
	st = check_text(file, f->path, "rule", rule->name, "set the optimizer of the file first");
	if (st == MU_ERR_FORMAT)
		st = MU_ERR_ARGUMENT;
	MU_TRY(st);
out:
	return st;
}

static enum mu_status read_array(struct keys_file *f, struct mu_array_file *file,
				 const struct entry *e)
{
	enum mu_status st = MU_OK;
	const size_t n = n_of(e);
	char name[NAME_BYTES];

	name_of(e, name);
	MU_TRY(mu_array_file_read(file, name, 1, &n, f->data));
out:
	return st;
}

/* Is all there that the contents ask for? *rule: in force after the load. */
static enum mu_status check(struct keys_file *f, struct mu_array_file **file,
			    struct mu_rule_order *rule)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_array_file_open_checked(file, f->path));
	MU_TRY(check_text(*file, f->path, "format", format, "give a file of mu_keys_save"));
	MU_TRY(check_text(*file, f->path, "version", "1", "it is of a later Muster"));
	if (f->keys->table.n_keys > 0)
		MU_TRY(check_text(*file, f->path, "keys",
				  f->keys->table.named ? "names" : "numbers",
				  "it is of another store"));
	MU_TRY(find_rule(f, *file, rule));
	MU_TRY(list(f, rule));
	for (size_t i = 0; i < f->n; i++)
		MU_TRY(read_array(f, *file, &f->entries[i]));
out:
	return st;
}

static enum mu_status put_all(struct keys_file *f, struct mu_array_file *file)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < f->n; i++) {
		MU_TRY(read_array(f, file, &f->entries[i]));
		MU_TRY(put(f, &f->entries[i]));
	}
out:
	return st;
}

/* ---- the calls ---- */

/* Worker 0's contents, on all workers; owners have all earlier pushes. */
static enum mu_status begin(struct mu_keys *keys, const char *path, unsigned *contents,
			    const char *call)
{
	enum mu_status st = MU_OK;
	const unsigned all = MU_KEYS_WEIGHTS | MU_KEYS_STATES | MU_KEYS_OPTIMIZER;

	MU_TRY(mu_keys_check_all(keys, call));
	MU_TRY(keys->ops->bcast(keys, contents, sizeof *contents));
	if (*contents == 0 || *contents & ~all)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s: worker 0's contents are %u, which is no sum of MU_KEYS_WEIGHTS, "
			"MU_KEYS_STATES and MU_KEYS_OPTIMIZER",
			call, *contents);
	if (keys->members->index == 0 && (!path || !*path))
		st = mu_trace_start(MU_ERR_ARGUMENT, __FILE__, __LINE__,
				    "%s on worker 0: no name of a file", call);
	MU_TRY(mu_keys_agree_first(keys, st, call));
	/* Owners obey the rule in force again when they have all earlier pushes. */
	MU_TRY(keys->ops->rule(keys, &keys->rule));
out:
	return st;
}

enum mu_status mu_keys_save(struct mu_keys *keys, const char *path, unsigned contents)
{
	enum mu_status st = MU_OK;
	struct keys_file f = {.keys = keys, .path = path};

	MU_TRY(begin(keys, path, &contents, "mu_keys_save"));
	f.contents = contents;
	if (keys->members->index == 0)
		st = save(&f);
	MU_TRY(mu_keys_agree_first(keys, st, "mu_keys_save"));
out:
	release(&f);
	return st;
}

enum mu_status mu_keys_load(struct mu_keys *keys, const char *path, unsigned contents)
{
	enum mu_status st = MU_OK;
	struct keys_file f = {.keys = keys, .path = path};
	struct mu_array_file *file = NULL;
	struct mu_rule_order rule;

	MU_TRY(begin(keys, path, &contents, "mu_keys_load"));
	rule = keys->rule;
	f.contents = contents;
	if (keys->members->index == 0)
		st = check(&f, &file, &rule);
	MU_TRY(mu_keys_agree_first(keys, st, "mu_keys_load"));
	if (contents & MU_KEYS_OPTIMIZER) {
		MU_TRY(keys->ops->bcast(keys, &rule, sizeof rule));
		MU_TRY(keys->ops->rule(keys, &rule));
		keys->rule = rule;
	}
	if (keys->members->index == 0)
		st = put_all(&f, file);
	MU_TRY(mu_keys_agree_first(keys, st, "mu_keys_load"));
out:
	mu_array_file_close(file, false);
	release(&f);
	return st;
}
