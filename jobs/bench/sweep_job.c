/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment as a job of the trainer: its ranks, its batches, its command. See sweep.h. */
#include "sweep.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <muster/kvstore.h>
#include <muster/net.h>

enum { LINES = 20, NAME_BYTES = 128 };

/* ---- models ---- */

/* What DLBS calls otherwise. */
static const struct {
	const char *model, *network;
} synonyms[] = {
	{"inception3", "inception-v3"},
	{"deep_mnist", "lenet"},
};

static bool is_network(const char *name)
{
	const struct mu_network *network;
	const bool found = mu_network_find(&network, name) == MU_OK;

	mu_trace_clear();
	return found;
}

/* "resnet50" is the network resnet with 50 layers; depth 0: the network's own. */
static enum mu_status find_network(const char *model, const char *where, char network[NAME_BYTES],
				   long *depth)
{
	enum mu_status st = MU_OK;
	const struct mu_network *found;
	size_t n;

	*depth = 0;
	snprintf(network, NAME_BYTES, "%s", model);
	for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
		if (strcmp(model, synonyms[i].model) == 0)
			snprintf(network, NAME_BYTES, "%s", synonyms[i].network);
	if (strchr(model, '/') || is_network(network))
		goto out;
	for (n = strlen(network); n > 0 && isdigit((unsigned char)network[n - 1]); n--)
		;
	*depth = strtol(network + n, NULL, 10);
	network[n] = '\0';
	if (n > 0 && *depth > 0 && is_network(network))
		goto out;
	if (mu_network_find(&found, model) != MU_OK) {
		mu_trace_prefix("%s: \"exp.model\": ", where);
		st = MU_ERR_USAGE;
	}
out:
	return st;
}

/* ---- ranks ---- */

static long num_devices(const json_t *experiment)
{
	const char *gpus = sweep_text(experiment, "exp.gpus");
	long n = 1;

	for (; *gpus; gpus++)
		n += *gpus == ',';
	return n;
}

static long num_workers(const json_t *experiment)
{
	return sweep_whole(experiment, "exp.num_nodes") *
	       sweep_whole(experiment, "muster.workers_per_node");
}

static enum mu_status settle_servers(json_t *experiment, const struct mu_kv_type *is,
				     const char *where)
{
	enum mu_status st = MU_OK;
	const char *store = sweep_text(experiment, "mxnet.kv_store");
	const char *text = sweep_text(experiment, "muster.num_servers");
	char *end, number[32];
	long n = strtol(text, &end, 10);

	if (*end || n < 0 || n > INT_MAX)
		MU_FAIL(MU_ERR_USAGE, "%s: \"muster.num_servers\": %s: a whole number is needed",
			where, text);
	if (!is->has_servers && n > 0)
		MU_FAIL(MU_ERR_USAGE, "%s: \"muster.num_servers\": %s, but %s has no servers",
			where, text, store);
	if (is->has_servers && *text && n == 0)
		MU_FAIL(MU_ERR_USAGE, "%s: \"muster.num_servers\": 0, but %s needs one", where,
			store);
	if (is->has_servers && !*text)
		n = sweep_whole(experiment, "exp.num_nodes");
	snprintf(number, sizeof number, "%ld", n);
	json_object_set_new(experiment, "muster.num_servers", json_string(number));
out:
	return st;
}

static bool is_inference(const json_t *experiment)
{
	return strcmp(sweep_text(experiment, "exp.phase"), "inference") == 0;
}

static enum mu_status settle_store(json_t *experiment, const char *where)
{
	enum mu_status st = MU_OK;
	const char *store = sweep_text(experiment, "mxnet.kv_store");
	struct mu_kv_type is;

	if (!*store) { /* an inference needs no servers */
		store = num_workers(experiment) == 1 ? "device"
			: is_inference(experiment)   ? "dist_allreduce"
						     : "dist_sync";
		json_object_set_new(experiment, "mxnet.kv_store", json_string(store));
	}
	store = sweep_text(experiment, "mxnet.kv_store");
	st = mu_kv_type_check(store, &is);
	if (st != MU_OK) {
		mu_trace_prefix("%s: \"mxnet.kv_store\": ", where);
		goto out;
	}
	if (!is.distributed && num_workers(experiment) > 1)
		MU_FAIL(MU_ERR_USAGE,
			"%s: \"mxnet.kv_store\": %s is for one worker, and there are %ld: "
			"\"exp.num_nodes\" times \"muster.workers_per_node\"",
			where, store, num_workers(experiment));
	MU_TRY(settle_servers(experiment, &is, where));
out:
	return st;
}

static enum mu_status check_rendezvous(const char *text, const char *where)
{
	enum mu_status st = MU_OK;
	const char *last = strrchr(text, ':');
	int colons = 0;

	for (const char *c = text; *c; c++)
		colons += *c == ':';
	if (*text && (colons < 1 || colons > 2 || *text == ':' || !last[1] ||
		      strspn(last + 1, "0123456789") != strlen(last + 1)))
		MU_FAIL(MU_ERR_USAGE,
			"%s: \"mxnet.rendezvous\": %s: INTERFACE:ADDRESS:PORT or HOST:PORT is "
			"needed",
			where, text);
out:
	return st;
}

static enum mu_status check_folder(const char *path, const char *where)
{
	enum mu_status st = MU_OK;
	struct stat status;

	if (*path && stat(path, &status) != 0)
		MU_FAIL(MU_ERR_USAGE, "%s: \"exp.data_dir\": %s: %s", where, path, strerror(errno));
	if (*path && !S_ISDIR(status.st_mode))
		MU_FAIL(MU_ERR_USAGE, "%s: \"exp.data_dir\": %s: not a folder", where, path);
out:
	return st;
}

enum mu_status sweep_job_settle(json_t *experiment, const char *where)
{
	enum mu_status st = MU_OK;
	char network[NAME_BYTES];
	const char *gpus = sweep_text(experiment, "exp.gpus");
	json_int_t replicas, batch;
	long depth;

	MU_TRY(find_network(sweep_text(experiment, "exp.model"), where, network, &depth));
	if (strspn(gpus, "0123456789,") != strlen(gpus))
		MU_FAIL(MU_ERR_USAGE,
			"%s: \"exp.gpus\": %s: numbers with commas between them are needed; "
			"replicas of several GPUs (0:1) are not known here",
			where, gpus);
	MU_TRY(settle_store(experiment, where));
	MU_TRY(check_rendezvous(sweep_text(experiment, "mxnet.rendezvous"), where));
	MU_TRY(check_folder(sweep_text(experiment, "exp.data_dir"), where));
	MU_TRY(sweep_container_settle(experiment, where));
	if (is_inference(experiment) && *sweep_text(experiment, "exp.data_dir"))
		MU_FAIL(MU_ERR_USAGE,
			"%s: \"exp.phase\": inference is of random data, and \"exp.data_dir\" is "
			"%s",
			where, sweep_text(experiment, "exp.data_dir"));
	replicas = (json_int_t)num_workers(experiment) * num_devices(experiment);
	batch = replicas * sweep_whole(experiment, "exp.replica_batch");
	if (replicas > INT_MAX || batch > INT_MAX)
		MU_FAIL(MU_ERR_USAGE, "%s: %" JSON_INTEGER_FORMAT " samples a step are too many",
			where, batch);
	json_object_set_new(experiment, "exp.num_replicas", json_integer(replicas));
	json_object_set_new(experiment, "exp.effective_batch", json_integer(batch));
out:
	return st;
}

/* About LINES lines, each of as many batches: a divisor of those that count. */
void sweep_job_batches(const json_t *experiment, struct sweep_batches *b)
{
	const long n = sweep_whole(experiment, "exp.num_batches");
	const long before = sweep_whole(experiment, "exp.num_warmup_batches");

	for (b->line = n > LINES ? n / LINES : 1; n % b->line != 0; b->line--)
		;
	b->warm_up = (before + b->line - 1) / b->line * b->line;
	b->all = b->warm_up + n + 1; /* the trainer counts batches from 0 */
}

/* ---- the command ---- */

static enum mu_status add(struct sweep_words *w, const char *text, size_t nbytes)
{
	enum mu_status st = MU_OK;
	char **list = realloc(w->list, (w->n + 2) * sizeof *list);

	if (!list)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the words of a command");
	w->list = list;
	list[w->n] = strndup(text, nbytes);
	if (!list[w->n])
		MU_FAIL(MU_ERR_MEMORY, "no memory for the words of a command");
	list[++w->n] = NULL;
out:
	return st;
}

enum mu_status sweep_words_add(struct sweep_words *w, const char *text)
{
	enum mu_status st = MU_OK;

	while (*(text += strspn(text, " \t\n"))) {
		const size_t n = strcspn(text, " \t\n");

		MU_TRY(add(w, text, n));
		text += n;
	}
out:
	return st;
}

enum mu_status sweep_words_option(struct sweep_words *w, const char *name, const char *value)
{
	enum mu_status st = MU_OK;

	MU_TRY(add(w, name, strlen(name)));
	MU_TRY(add(w, value, strlen(value)));
out:
	return st;
}

static enum mu_status add_number(struct sweep_words *w, const char *name, long value)
{
	char text[32];

	snprintf(text, sizeof text, "%ld", value);
	return sweep_words_option(w, name, text);
}

/* The trainer beside this program, or of an image. */
static enum mu_status add_trainer(struct sweep_words *w, const json_t *experiment)
{
	enum mu_status st = MU_OK;
	const char *given = sweep_text(experiment, "muster.trainer");
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof "trainer");
	char *name;

	if (*given) {
		MU_TRY(add(w, given, strlen(given)));
		goto out;
	}
	if (sweep_container_is_used(experiment)) {
		MU_TRY(sweep_words_add(w, "muster train"));
		goto out;
	}
	if (n <= 0)
		MU_FAIL(MU_ERR_IO, "/proc/self/exe cannot be read: name the trainer by "
				   "\"muster.trainer\"");
	path[n] = '\0';
	name = strrchr(path, '/') + 1;
	strcpy(name, "trainer");
	if (access(path, X_OK) != 0)
		MU_FAIL(MU_ERR_USAGE, "%s: %s; name the trainer by \"muster.trainer\"", path,
			strerror(errno));
	MU_TRY(add(w, path, strlen(path)));
out:
	return st;
}

static enum mu_status add_data(struct sweep_words *w, const json_t *experiment)
{
	enum mu_status st = MU_OK;
	const char *folder = sweep_text(experiment, "exp.data_dir");
	char record[PATH_MAX];
	struct sweep_batches batches;

	sweep_job_batches(experiment, &batches);
	if (!*folder) {
		MU_TRY(sweep_words_option(w, "--benchmark", "1"));
		MU_TRY(add_number(w, "--num-examples",
				  batches.all * sweep_whole(experiment, "exp.effective_batch")));
	} else if ((size_t)snprintf(record, sizeof record, "%s/train.rec", folder) <
			   sizeof record &&
		   access(record, F_OK) == 0) {
		MU_TRY(sweep_words_option(w, "--data-train", record));
	} else {
		MU_TRY(sweep_words_option(w, "--data-dir", folder));
	}
	MU_TRY(add_number(w, "--num-batches", batches.all));
	MU_TRY(add_number(w, "--disp-batches", batches.line));
out:
	return st;
}

static enum mu_status add_launch(struct sweep_words *w, const json_t *experiment)
{
	enum mu_status st = MU_OK;
	const char *launcher = sweep_text(experiment, "muster.mpirun");
	const long threads = sweep_whole(experiment, "muster.threads");
	const long servers = strtol(sweep_text(experiment, "muster.num_servers"), NULL, 10);

	if (!*launcher && !sweep_container_has_mpirun(experiment))
		launcher = getenv("MPIRUN");
	MU_TRY(sweep_container_add(experiment, true, w));
	MU_TRY(sweep_words_add(w, launcher && *launcher ? launcher : "mpirun"));
	MU_TRY(add_number(w, "-n", num_workers(experiment) + servers));
	if (threads > 0) {
		char text[64];

		snprintf(text, sizeof text, "env OMP_NUM_THREADS=%ld", threads);
		MU_TRY(sweep_words_add(w, text));
	}
	MU_TRY(sweep_container_add(experiment, false, w));
	MU_TRY(add_trainer(w, experiment));
	MU_TRY(sweep_words_option(w, "--kv-store", sweep_text(experiment, "mxnet.kv_store")));
	if (servers > 0)
		MU_TRY(add_number(w, "--num-servers", servers));
out:
	return st;
}

enum mu_status sweep_job_command(const json_t *experiment, struct sweep_words *w)
{
	enum mu_status st = MU_OK;
	const char *gpus = sweep_text(experiment, "exp.gpus");
	const char *meeting = sweep_text(experiment, "mxnet.rendezvous");
	char network[NAME_BYTES], interface[NAME_BYTES];
	long depth;

	*w = (struct sweep_words){0};
	MU_TRY(add_launch(w, experiment));
	MU_TRY(find_network(sweep_text(experiment, "exp.model"), "", network, &depth));
	MU_TRY(sweep_words_option(w, "--network", network));
	if (depth > 0)
		MU_TRY(add_number(w, "--num-layers", depth));
	MU_TRY(add_number(w, "--batch-per-device", sweep_whole(experiment, "exp.replica_batch")));
	MU_TRY(sweep_words_option(w, "--dtype", sweep_text(experiment, "exp.dtype")));
	if (*gpus)
		MU_TRY(sweep_words_option(w, "--gpus", gpus));
	if (*meeting && strchr(meeting, ':') != strrchr(meeting, ':')) {
		snprintf(interface, sizeof interface, "%.*s", (int)strcspn(meeting, ":"), meeting);
		MU_TRY(sweep_words_option(w, "--interface", interface));
	}
	MU_TRY(add_data(w, experiment));
	if (is_inference(experiment))
		MU_TRY(sweep_words_add(w, "--evaluate"));
	else
		MU_TRY(sweep_words_option(w, "--num-epochs", "1"));
	MU_TRY(sweep_words_add(w, sweep_text(experiment, "muster.options")));
out:
	return st;
}

void sweep_words_release(struct sweep_words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->list[i]);
	free(w->list);
	*w = (struct sweep_words){0};
}

enum mu_status sweep_words_text(const struct sweep_words *w, char **text)
{
	enum mu_status st = MU_OK;
	size_t nbytes = 1, used = 0;

	*text = NULL;
	for (size_t i = 0; i < w->n; i++)
		nbytes += strlen(w->list[i]) + 1;
	MU_TRY(MU_ALLOC(*text, nbytes, "a command"));
	for (size_t i = 0; i < w->n; i++)
		used += (size_t)snprintf(*text + used, nbytes - used, "%s%s", i ? " " : "",
					 w->list[i]);
out:
	return st;
}
