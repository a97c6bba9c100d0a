/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of experiments: see sweep.h. Names, defaults and meanings of exp. and mxnet. are
 * DLBS's; what is ours begins with muster. */
#include "sweep.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 32 };

/* clang-format off */
const struct sweep_parameter sweep_parameters[] = {
	{"exp.framework", SWEEP_TEXT, "mxnet", 0, "mxnet|muster",
	 "mxnet or muster: both mean Muster", false},
	{"exp.id", SWEEP_TEXT, "", 0, NULL,
	 "name of the experiment; by default eight digits made of its parameters", false},
	{"exp.model", SWEEP_TEXT, NULL, 0, NULL,
	 "network of trainer --network, or with its depth: resnet50", true},
	{"exp.phase", SWEEP_TEXT, "training", 0, "training|inference",
	 "training, or inference: forward alone, of random data", true},
	{"exp.num_nodes", SWEEP_WHOLE, "1", 1, NULL, "nodes", true},
	{"exp.gpus", SWEEP_TEXT, "", 0, NULL,
	 "GPUs of each worker, such as 0,1; none: the CPU", true},
	{"exp.replica_batch", SWEEP_WHOLE, "16", 1, NULL,
	 "samples per device and step", true},
	{"exp.num_warmup_batches", SWEEP_WHOLE, "1", 1, NULL,
	 "batches that do not count; more, up to a line of the log", true},
	{"exp.num_batches", SWEEP_WHOLE, "100", 1, NULL, "batches that count", true},
	{"exp.dtype", SWEEP_TEXT, "float32", 0, "float32|float16|bfloat16", "arithmetic", true},
	{"exp.data_dir", SWEEP_TEXT, "", 0, NULL,
	 "folder with train.rec, or for trainer --data-dir; none: random data", true},
	{"exp.log_file", SWEEP_TEXT, "${BENCH_ROOT}/logs/${exp.id}.log", 0, NULL,
	 "log; BENCH_ROOT may be set, else it is .", false},
	{"exp.rerun", SWEEP_TEXT, "onfail", 0, "never|onfail|always",
	 "run again what has a log: never, if it failed, or always", false},
	{"exp.status", SWEEP_TEXT, "ok", 0, "ok|disabled|simulate",
	 "disabled: leave it out; simulate: show the command", false},
	{"mxnet.kv_store", SWEEP_TEXT, "", 0, NULL,
	 "store; by default device for one worker, dist_sync for several", true},
	{"mxnet.rendezvous", SWEEP_TEXT, "", 0, NULL,
	 "IFACE:IP:PORT or HOST:PORT; of it only the interface is used", false},
	{"mxnet.rank", SWEEP_WHOLE, "0", 0, NULL,
	 "0: one log tells of all ranks", false},
	{"muster.workers_per_node", SWEEP_WHOLE, "1", 1, NULL, "workers on each node", true},
	{"muster.num_servers", SWEEP_TEXT, "", 0, NULL,
	 "servers; by default, of a store with servers, one per node", true},
	{"muster.threads", SWEEP_WHOLE, "0", 0, NULL,
	 "threads per worker, OMP_NUM_THREADS; 0: as the trainer does", true},
	{"muster.options", SWEEP_TEXT, "", 0, NULL, "further options of the trainer", true},
	{"muster.mpirun", SWEEP_TEXT, "", 0, NULL,
	 "launcher, as mpirun -hosts a,b -ppn 2; by default $MPIRUN, or mpirun, as in a container",
	 false},
	{"muster.trainer", SWEEP_TEXT, "", 0, NULL,
	 "program; by default the trainer beside mubench, in a container muster train", false},
	{"exp.docker", SWEEP_GIVEN_TEXT, "", 0, "true|false",
	 "false: not in a container; by default there is one if it has an image", true},
	{"exp.docker_image", SWEEP_GIVEN_TEXT, "", 0, NULL,
	 "image with Muster; of buildah a container", true},
	{"exp.docker_launcher", SWEEP_GIVEN_TEXT, "", 0, NULL,
	 "docker, nvidia-docker, podman or buildah: mpirun is in the container; apptainer or "
	 "singularity: mpirun starts one for each rank; by default docker, with GPUs nvidia-docker",
	 true},
	{"exp.docker_args", SWEEP_GIVEN_TEXT, "", 0, NULL,
	 "its arguments; by default, of docker and podman, --rm --shm-size 1g", true},
	{"exp.framework_title", SWEEP_WITHOUT_EFFECT, "", 0, NULL, NULL, false},
	{"exp.framework_family", SWEEP_WITHOUT_EFFECT, "", 0, NULL, NULL, false},
	{"exp.model_title", SWEEP_WITHOUT_EFFECT, "", 0, NULL, NULL, false},
	{"exp.device_title", SWEEP_WITHOUT_EFFECT, "", 0, NULL, NULL, false},
	{"exp.node_id", SWEEP_WITHOUT_EFFECT, "", 0, NULL, NULL, false},
	{"exp.proj", SWEEP_WITHOUT_EFFECT, "", 0, NULL, NULL, false},
	{"exp.sys_info", SWEEP_WITHOUT_EFFECT, "", 0, NULL, NULL, false},
	{"monitor.frequency", SWEEP_WITHOUT_EFFECT, "", 0, NULL, NULL, false},
	{"mxnet.scheduler", SWEEP_WITHOUT_EFFECT, "", 0, NULL, NULL, false},
};
/* clang-format on */

const size_t sweep_parameter_count = sizeof sweep_parameters / sizeof *sweep_parameters;

enum mu_status sweep_parameter_find(const struct sweep_parameter **out, const char *name,
				    const char *where)
{
	enum mu_status st = MU_OK;
	const struct sweep_parameter *best = NULL;

	for (size_t i = 0; i < sweep_parameter_count; i++) {
		const struct sweep_parameter *p = &sweep_parameters[i];

		if (strcmp(p->name, name) == 0) {
			*out = p;
			goto out;
		}
		if (mu_name_is_near(name, p->name) &&
		    (!best || mu_name_distance(name, p->name) < mu_name_distance(name, best->name)))
			best = p;
	}
	if (!best)
		MU_FAIL(MU_ERR_USAGE, "%s: \"%s\" is no parameter (mubench run --help lists them)",
			where, name);
	MU_FAIL(MU_ERR_USAGE,
		"%s: \"%s\" is no parameter; the nearest one is \"%s\" (mubench run --help "
		"lists them)",
		where, name, best->name);
out:
	return st;
}

static bool is_choice(const char *choices, const char *text)
{
	const size_t length = strlen(text);

	for (const char *word = choices;; word++) {
		const size_t n = strcspn(word, "|");

		if (n == length && strncmp(word, text, n) == 0)
			return true;
		word += n;
		if (!*word)
			return false;
	}
}

static enum mu_status take_whole(const struct sweep_parameter *p, const char *text,
				 const char *where, json_t **out)
{
	enum mu_status st = MU_OK;
	char *end;
	long number = strtol(text, &end, 10);

	if (end == text || *end || number < p->least || number > INT_MAX)
		MU_FAIL(MU_ERR_USAGE, "%s: \"%s\": %s: a whole number from %ld to %d is needed",
			where, p->name, *text ? text : "\"\"", p->least, INT_MAX);
	*out = json_integer(number);
out:
	return st;
}

enum mu_status sweep_parameter_take(const struct sweep_parameter *p, const json_t *value,
				    const char *where, json_t **out)
{
	enum mu_status st = MU_OK;
	char number[NUMBER_BYTES];
	const char *text = number;

	if (json_is_object(value) && json_object_get(value, "val")) /* with a type and a text */
		value = json_object_get(value, "val");
	if (p->type == SWEEP_WITHOUT_EFFECT) {
		*out = json_deep_copy(value);
		goto out;
	}
	if (json_is_integer(value))
		snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_string(value))
		text = json_string_value(value);
	else if (json_is_boolean(value) && p->choices && is_choice(p->choices, "true"))
		text = json_is_true(value) ? "true" : "false";
	else
		MU_FAIL(MU_ERR_USAGE, "%s: \"%s\": %s is needed", where, p->name,
			p->type == SWEEP_WHOLE ? "a whole number" : "a text");
	if (strstr(text, "${"))
		*out = json_string(text);
	else if (p->type == SWEEP_WHOLE)
		MU_TRY(take_whole(p, text, where, out));
	else if (p->choices && !is_choice(p->choices, text))
		MU_FAIL(MU_ERR_USAGE, "%s: \"%s\": \"%s\" is not known; it may be %s", where,
			p->name, text, p->choices);
	else
		*out = json_string(text);
out:
	return st;
}

const char *sweep_text(const json_t *experiment, const char *name)
{
	const char *text = json_string_value(json_object_get(experiment, name));

	return text ? text : "";
}

long sweep_whole(const json_t *experiment, const char *name)
{
	return (long)json_integer_value(json_object_get(experiment, name));
}

bool sweep_is_same(const json_t *a, const json_t *b, const char *name)
{
	const json_t *x = json_object_get(a, name), *y = json_object_get(b, name);

	return (!x && !y) || json_equal(x, y);
}
