/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the caller says, against the table of keys, before anything is sent.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

#define GIB 1073741824.0
#define NAME(number, name) mu_key_text((number), (name)).text

enum mu_status mu_keys_check_worker(const struct mu_keys *keys, const char *call)
{
	enum mu_status st = MU_OK;

	if (!keys)
		MU_FAIL(MU_ERR_ARGUMENT, "%s: the store is NULL: mu_keys_open makes one", call);
	if (keys->members->role != MU_ROLE_WORKER)
		MU_FAIL(MU_ERR_ARGUMENT, "%s is for workers: a server calls mu_keys_serve", call);
	if (keys->finished)
		MU_FAIL(MU_ERR_ARGUMENT, "%s on rank %d after mu_keys_finish", call,
			keys->members->rank);
out:
	return st;
}

enum mu_status mu_keys_agree_first(struct mu_keys *keys, enum mu_status mine, const char *call)
{
	enum mu_status st = MU_OK;
	struct {
		uint64_t failed;
		char text[248];
	} verdict = {0};

	if (mine != MU_OK) {
		verdict.failed = 1;
		snprintf(verdict.text, sizeof verdict.text, "%s", mu_trace_message());
	}
	MU_TRY(keys->ops->bcast(keys, &verdict, sizeof verdict));
	MU_TRY(mine);
	if (verdict.failed)
		MU_FAIL(MU_ERR_PEER, "%s failed on worker 0: %s", call, verdict.text);
out:
	return st;
}

/* ---- keys that are there ---- */

/* The first names of keys, for a message: "'conv1_weight', 'conv1_bias', ...". */
static const char *list_names(const struct mu_key_table *t, char *text, size_t nbytes)
{
	enum { MOST = 5 };
	size_t at = 0;

	for (size_t i = 0; i < t->n_keys && i < MOST && at < nbytes; i++)
		at += (size_t)snprintf(text + at, nbytes - at, "%s'%s'", i ? ", " : "",
				       t->keys[i].name);
	if (t->n_keys > MOST && at < nbytes)
		snprintf(text + at, nbytes - at, ", ...");
	return text;
}

static enum mu_status refuse_unknown(const struct mu_keys *keys, const struct mu_kv_item *item,
				     const char *call)
{
	enum mu_status st = MU_OK;
	const struct mu_key_table *t = &keys->table;
	const int rank = keys->members->rank;
	char names[5 * (MU_KEY_NAME_MAX + 5)];

	if (t->n_keys > 0 && t->named != (item->name != NULL))
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s of key %s on rank %d, and the keys of this store are %s: use the same",
			call, NAME(item->key, item->name), rank, t->named ? "names" : "numbers");
	if (t->named)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s of key %s on rank %d, and mu_keys_init has not made this key (it made "
			"%zu: %s)",
			call, NAME(item->key, item->name), rank, t->n_keys,
			list_names(t, names, sizeof names));
	MU_FAIL(MU_ERR_ARGUMENT,
		"%s of key %s on rank %d, and mu_keys_init has not made this key (it made %zu)",
		call, NAME(item->key, item->name), rank, t->n_keys);
out:
	return st;
}

static enum mu_status check_array(const struct mu_keys *keys, const struct mu_key *key, size_t need,
				  const struct mu_array *a, const char *call, enum mu_use use)
{
	enum mu_status st = MU_OK;
	const int rank = keys->members->rank;
	const bool exact = use == MU_USE_PUSH || use == MU_USE_PUSHPULL;

	if (!a->data)
		MU_FAIL(MU_ERR_ARGUMENT, "%s of key %s on rank %d: an array without data", call,
			NAME(key->number, key->name), rank);
	if (a->dtype != key->dtype)
		MU_FAIL(MU_ERR_ARGUMENT, "%s of key %s on rank %d: the array is %s, the key %s",
			call, NAME(key->number, key->name), rank, mu_dtype_name(a->dtype),
			mu_dtype_name(key->dtype));
	if (exact ? a->n != need : a->n < need)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s of key %s on rank %d: the array has %zu elements, and %s%zu are needed",
			call, NAME(key->number, key->name), rank, a->n, exact ? "" : "at least ",
			need);
out:
	return st;
}

/* Rows: a length that divides the key, numbers, one array. *need is elements. */
static enum mu_status check_rows(const struct mu_keys *keys, const struct mu_key *key,
				 const struct mu_kv_item *item, const char *call, size_t *need)
{
	enum mu_status st = MU_OK;
	const int rank = keys->members->rank;

	if (item->n_rows > SIZE_MAX / item->row_length)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s of key %s on rank %d: %zu rows of %zu elements are more than an "
			"address can reach",
			call, NAME(key->number, key->name), rank, item->n_rows, item->row_length);
	*need = item->n_rows * item->row_length;
	if (key->n % item->row_length || item->row_length > UINT32_MAX)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s of key %s on rank %d: its %zu elements are not rows of %zu", call,
			NAME(key->number, key->name), rank, key->n, item->row_length);
	if (item->n_arrays != 1 && item->n_rows > 0)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s of rows of key %s on rank %d: %zu arrays, and one is needed", call,
			NAME(key->number, key->name), rank, item->n_arrays);
	if (item->n_rows > 0 && !item->rows)
		MU_FAIL(MU_ERR_ARGUMENT, "%s of key %s on rank %d: %zu rows without numbers", call,
			NAME(key->number, key->name), rank, item->n_rows);
out:
	return st;
}

static enum mu_status check_row_numbers(const struct mu_keys *keys, const struct mu_key *key,
					const struct mu_kv_item *item, const char *call)
{
	enum mu_status st = MU_OK;
	const int rank = keys->members->rank;

	for (size_t i = 0; item->row_length > 0 && i < item->n_rows; i++) {
		if (item->rows[i] >= key->n / item->row_length)
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s of key %s on rank %d: row %llu, and it has %zu rows", call,
				NAME(key->number, key->name), rank,
				(unsigned long long)item->rows[i], key->n / item->row_length);
	}
out:
	return st;
}

static enum mu_status check_item(struct mu_keys *keys, const struct mu_kv_item *item,
				 const char *call, enum mu_use use)
{
	enum mu_status st = MU_OK;
	struct mu_key *key = mu_key_find(&keys->table, item->key, item->name);
	const int rank = keys->members->rank;
	size_t need;

	if (!key)
		MU_TRY(refuse_unknown(keys, item, call));
	if (key->call == keys->calls)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s on rank %d names key %s twice: give all its arrays in one item", call,
			rank, NAME(item->key, item->name));
	key->call = keys->calls;
	need = key->n;
	if (item->row_length > 0 && (use == MU_USE_PULL || use == MU_USE_PUSHPULL))
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s of rows of key %s on rank %d: use mu_keys_push and mu_keys_pull_rows",
			call, NAME(item->key, item->name), rank);
	if (item->row_length == 0 && use == MU_USE_ROWS)
		MU_FAIL(MU_ERR_ARGUMENT, "%s of key %s on rank %d: row_length is 0", call,
			NAME(item->key, item->name), rank);
	if (item->row_length > 0)
		MU_TRY(check_rows(keys, key, item, call, &need));
	if ((item->n_arrays == 0 || !item->arrays) && need > 0)
		MU_FAIL(MU_ERR_ARGUMENT, "%s of key %s on rank %d: no array", call,
			NAME(item->key, item->name), rank);
	for (size_t i = 0; i < item->n_arrays && need > 0; i++)
		MU_TRY(check_array(keys, key, need, &item->arrays[i], call, use));
	/* Last: an array that fits says that n_rows is right, so the numbers may be read. */
	MU_TRY(check_row_numbers(keys, key, item, call));
out:
	return st;
}

enum mu_status mu_keys_check_items(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				   const char *call, enum mu_use use)
{
	enum mu_status st = MU_OK;

	if ((use == MU_USE_PUSH || use == MU_USE_PUSHPULL) && !keys->kind.synchronous &&
	    keys->rule.kind == MU_RULE_REPLACE)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s on rank %d: a store of type %s updates at every push, and has neither "
			"optimizer nor updater: mu_keys_set_optimizer or mu_keys_set_updater comes "
			"first",
			call, keys->members->rank, keys->kind.name);
	if (n > 0 && !items)
		MU_FAIL(MU_ERR_ARGUMENT, "%s on rank %d: the list of %zu items is NULL", call,
			keys->members->rank, n);
	keys->calls++;
	for (size_t i = 0; i < n; i++)
		MU_TRY(check_item(keys, &items[i], call, use));
out:
	return st;
}

/* ---- new keys ---- */

enum fault {
	FINE,
	COUNT,    /* another number of keys than worker 0 */
	OTHER,    /* another key, size or type than worker 0 */
	NEGATIVE, /* the number is below 0 */
	TWICE,    /* the key is there already, or is twice in the call */
	NO_ARRAY, /* nothing to take the size from */
	MIXED,    /* a name where keys are numbers, or the reverse */
	BAD_NAME, /* empty, or too long */
	NO_LIST,  /* the list of items is NULL */
	DIFFERENT, /* arrays of different sizes or types, or one without data */
	WITH_ROWS, /* a new key has none */
	TOO_LARGE, /* for the memory of the worker's machine */
};

/* A new key as workers compare it, and what is wrong with it. */
struct new_key {
	uint64_t fault, n_items;
	double memory; /* bytes of the machine */
	int64_t number; /* 0 with a name */
	uint64_t n, dtype;
	char name[MU_KEY_NAME_MAX + 1]; /* "": none; cut if it is too long */
};

static struct new_key describe(const struct mu_kv_item *item)
{
	struct new_key k = {.number = item->name ? 0 : item->key};

	if (item->name)
		snprintf(k.name, sizeof k.name, "%s", item->name);
	if (item->n_arrays > 0 && item->arrays) {
		k.n = item->arrays[0].n;
		k.dtype = (uint64_t)item->arrays[0].dtype;
	}
	return k;
}

/* Names after numbers; a call that has both is refused. */
static int compare_items(const void *a, const void *b)
{
	const struct mu_kv_item *x = *(const struct mu_kv_item *const *)a;
	const struct mu_kv_item *y = *(const struct mu_kv_item *const *)b;

	if (x->name && y->name)
		return strcmp(x->name, y->name);
	if (x->name || y->name)
		return x->name ? 1 : -1;
	return (x->key > y->key) - (x->key < y->key);
}

/* Is the item's key twice in a sorted list? */
static bool is_twice(const struct mu_kv_item **sorted, size_t n, const struct mu_kv_item *item)
{
	const struct mu_kv_item **found = bsearch(&item, sorted, n, sizeof *sorted, compare_items);

	return found && ((found > sorted && compare_items(&found[-1], found) == 0) ||
			 (found < sorted + n - 1 && compare_items(&found[1], found) == 0));
}

/* An array lies in its worker's memory; where that is unknown, an address must reach all of it. */
static bool is_too_large(const struct mu_array *a, double memory)
{
	return (double)a->n * (double)mu_dtype_bytes(a->dtype) >
	       (memory > 0 ? memory : (double)PTRDIFF_MAX);
}

static enum fault look(const struct mu_keys *keys, const struct mu_kv_item *item,
		       const struct mu_kv_item **sorted, size_t n, double memory)
{
	const struct mu_key_table *t = &keys->table;
	const bool named = t->n_keys > 0 ? t->named : sorted[n - 1]->name != NULL;

	if (named != (item->name != NULL))
		return MIXED;
	if (item->name && (!*item->name || strlen(item->name) > MU_KEY_NAME_MAX))
		return BAD_NAME;
	if (!item->name && item->key < 0)
		return NEGATIVE;
	if (mu_key_find(t, item->key, item->name) || is_twice(sorted, n, item))
		return TWICE;
	if (item->n_arrays == 0 || !item->arrays || item->arrays[0].n == 0 ||
	    !item->arrays[0].data || (unsigned)item->arrays[0].dtype >= MU_DTYPE_N)
		return NO_ARRAY;
	for (size_t i = 1; i < item->n_arrays; i++) {
		const struct mu_array *a = &item->arrays[i];

		if (a->n != item->arrays[0].n || a->dtype != item->arrays[0].dtype || !a->data)
			return DIFFERENT;
	}
	if (is_too_large(&item->arrays[0], memory))
		return TOO_LARGE;
	return item->row_length > 0 || item->n_rows > 0 || item->rows ? WITH_ROWS : FINE;
}

/* The first key of mine that is wrong by itself or is not worker 0's. */
static struct new_key judge(const struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
			    const struct new_key *theirs, const struct mu_kv_item **sorted)
{
	const double memory = mu_memory_bytes();
	struct new_key mine = {.fault = FINE};

	for (size_t i = 0; i < n && mine.fault == FINE; i++) {
		mine = describe(&items[i]);
		mine.memory = memory;
		mine.fault = look(keys, &items[i], sorted, n, memory);
		if (mine.fault == FINE && theirs &&
		    (mine.number != theirs[i].number || strcmp(mine.name, theirs[i].name) != 0 ||
		     mine.n != theirs[i].n || mine.dtype != theirs[i].dtype)) {
			mine.fault = OTHER;
			mine.n_items = i; /* where worker 0's is */
		}
	}
	return mine;
}

static enum mu_status tell(const struct mu_members *m, int w, const struct new_key *k,
			   const struct new_key *theirs, size_t n_theirs)
{
	enum mu_status st = MU_OK;
	const struct new_key *first = k->fault == OTHER ? &theirs[k->n_items] : k;
	const struct mu_key_text key = mu_key_text((int)k->number, k->name);
	const int rank = mu_worker_rank(m, w);

	switch ((enum fault)k->fault) {
	case FINE: break;
	case COUNT:
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_keys_init: worker %d (rank %d) makes %llu keys, worker 0 %zu", w, rank,
			(unsigned long long)k->n_items, n_theirs);
	case OTHER:
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_keys_init: worker %d (rank %d) makes key %s of %llu %s, and worker 0 "
			"in its place key %s of %llu %s",
			w, rank, key.text, (unsigned long long)k->n,
			mu_dtype_name((enum mu_dtype)k->dtype),
			NAME((int)first->number, first->name), (unsigned long long)first->n,
			mu_dtype_name((enum mu_dtype)first->dtype));
	case NEGATIVE:
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_keys_init: key %s on worker %d (rank %d): keys are 0 or more", key.text,
			w, rank);
	case TWICE:
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_keys_init: worker %d (rank %d) makes key %s twice: its size and type "
			"are fixed by the first time",
			w, rank, key.text);
	case NO_ARRAY:
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_keys_init: key %s on worker %d (rank %d) has no array, or one without "
			"elements, data or a known type",
			key.text, w, rank);
	case MIXED:
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_keys_init: worker %d (rank %d) makes key %s, and other keys of the "
			"store are %s: use names or numbers, not both",
			w, rank, key.text, *k->name ? "numbers" : "names");
	case BAD_NAME:
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_keys_init: the name of key '%.40s%s' on worker %d (rank %d) is empty "
			"or "
			"longer than %d bytes",
			k->name, strlen(k->name) > 40 ? "..." : "", w, rank, MU_KEY_NAME_MAX);
	case NO_LIST:
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_keys_init: the list of %llu items of worker %d (rank %d) is NULL",
			(unsigned long long)k->n_items, w, rank);
	case DIFFERENT:
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_keys_init: the arrays of key %s on worker %d (rank %d) differ in size "
			"or type, or one has no data",
			key.text, w, rank);
	case WITH_ROWS:
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_keys_init: key %s on worker %d (rank %d) has row_length or rows: a key "
			"is made as a whole",
			key.text, w, rank);
	case TOO_LARGE:
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_keys_init: key %s of %llu %s on worker %d (rank %d) is %.1f GiB, and "
			"the machine has %.1f: is its number of elements right?",
			key.text, (unsigned long long)k->n, mu_dtype_name((enum mu_dtype)k->dtype),
			w, rank,
			(double)k->n * (double)mu_dtype_bytes((enum mu_dtype)k->dtype) / GIB,
			k->memory / GIB);
	}
out:
	return st;
}

/* Worker 0's keys, on every worker. */
static enum mu_status share_first(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				  struct new_key **theirs, size_t *n_theirs)
{
	enum mu_status st = MU_OK;
	uint64_t count = n;

	MU_TRY(keys->ops->bcast(keys, &count, sizeof count));
	*n_theirs = count;
	MU_TRY(MU_ALLOC(*theirs, *n_theirs + 1, "keys of worker 0"));
	for (size_t i = 0; keys->members->index == 0 && items && i < n; i++)
		(*theirs)[i] = describe(&items[i]);
	MU_TRY(keys->ops->bcast(keys, *theirs, *n_theirs * sizeof **theirs));
out:
	return st;
}

enum mu_status mu_keys_check_new(struct mu_keys *keys, size_t n, const struct mu_kv_item *items)
{
	enum mu_status st = MU_OK;
	struct new_key *theirs = NULL, *all = NULL;
	struct new_key mine;
	int n_workers;
	size_t n_theirs = 0;
	const struct mu_kv_item **sorted = NULL;

	MU_TRY(share_first(keys, n, items, &theirs, &n_theirs));
	MU_TRY(MU_ALLOC(sorted, n + 1, "sorted keys"));
	for (size_t i = 0; items && i < n; i++)
		sorted[i] = &items[i];
	if (items)
		qsort(sorted, n, sizeof *sorted, compare_items);
	mine = n > 0 && !items ? (struct new_key){.fault = NO_LIST, .n_items = n} :
				 judge(keys, n, items, n == n_theirs ? theirs : NULL, sorted);
	if (mine.fault == FINE && n != n_theirs)
		mine = (struct new_key){.fault = COUNT, .n_items = n};
	MU_TRY(mu_keys_gather(keys, &mine, sizeof mine, (void **)&all, &n_workers));
	for (int w = 0; w < n_workers; w++)
		MU_TRY(tell(keys->members, w, &all[w], theirs, n_theirs));
out:
	mu_free(sorted);
	mu_free(theirs);
	mu_free(all);
	return st;
}
