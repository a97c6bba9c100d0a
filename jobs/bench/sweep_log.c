/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of experiments: lines `__name__=value` among all others. See sweep.h. */
#include "sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <muster/storage.h>

enum { NAME_BYTES = 128, HOSTS_MOST = 1024 };

void sweep_log_put(FILE *log, const char *name, const json_t *value)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY);

	fprintf(log, "__%s__=%s\n", name, text ? text : "null");
	free(text);
}

/* The value of a line "  __name__ = value", its name in name; NULL: another line. */
static char *split(char *line, char name[NAME_BYTES])
{
	char *end;

	line += strspn(line, " \t");
	end = strncmp(line, "__", 2) == 0 ? strstr(line + 2, "__") : NULL;
	if (!end || end == line + 2 || end - line - 2 >= NAME_BYTES)
		return NULL;
	snprintf(name, NAME_BYTES, "%.*s", (int)(end - line - 2), line + 2);
	end += 2;
	end += strspn(end, " \t");
	return *end == '=' ? end + 1 : NULL;
}

enum mu_status sweep_log_read(const char *path, json_t **values)
{
	enum mu_status st = MU_OK;
	FILE *file = NULL;
	char name[NAME_BYTES], *line = NULL, *text;
	size_t nbytes = 0, number = 0;

	*values = json_object();
	MU_TRY(mu_stream_open(&file, path));
	while (getline(&line, &nbytes, file) >= 0) {
		json_t *value;

		number++;
		text = split(line, name);
		if (!text)
			continue;
		if (sweep_json_read(path, text, strlen(text), &value) == MU_OK) {
			json_object_set_new(*values, name, value);
			continue;
		}
		mu_trace_clear();
		fprintf(stderr, "mubench: %s, line %zu: the value of __%s__ is no JSON\n", path,
			number, name);
	}
	if (ferror(file))
		MU_FAIL(MU_ERR_IO, "%s: %s", path, strerror(errno));
	if (json_object_size(*values) == 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: no line __name__=value: not a log of mubench run, or cut short", path);
out:
	free(line);
	if (file)
		fclose(file);
	return st;
}

bool sweep_log_is_ok(const json_t *values)
{
	return strcmp(sweep_text(values, "exp.status"), "ok") == 0 &&
	       json_number_value(json_object_get(values, "results.throughput")) > 0;
}

/* "...Epoch[0] Batch [20-40]<tab>Speed: 123.45 samples/sec...": of the batches behind 20. */
static bool read_speed(const char *line, long *behind, double *rate)
{
	const char *at = strstr(line, "Epoch[0] Batch [");
	long last;

	if (!at || sscanf(at, "Epoch[0] Batch [%ld-%ld]\tSpeed: %lf samples/sec", behind, &last,
			  rate) != 3)
		return false;
	return *rate > 0;
}

/* "...node 1 (HOST, eth0 10.0.0.2): worker 1 (rank 1, pid 17)...": nodes that are pretended share a
 * host. */
long sweep_log_hosts(const char *path)
{
	FILE *file = fopen(path, "r");
	char(*hosts)[64] = calloc(HOSTS_MOST, sizeof *hosts), *line = NULL;
	size_t nbytes = 0;
	long n = 0, i;

	while (file && hosts && n < HOSTS_MOST && getline(&line, &nbytes, file) >= 0) {
		const char *at = strstr(line, "node ");

		if (!at || sscanf(at, "node %*d (%63[^,)]", hosts[n]) != 1)
			continue;
		for (i = 0; strcmp(hosts[i], hosts[n]) != 0; i++)
			;
		n += i == n;
	}
	free(line);
	free(hosts);
	if (file)
		fclose(file);
	return n;
}

double sweep_log_accuracy(const char *path)
{
	static const char *const names[] = {"Validation-accuracy=", "Train-accuracy="};
	double found[2] = {-1, -1};
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t nbytes = 0;

	while (file && getline(&line, &nbytes, file) >= 0)
		for (int i = 0; i < 2; i++) {
			const char *at = strstr(line, "] ");

			at = strstr(line, "Epoch[") && at ? strstr(at, names[i]) : NULL;
			if (at)
				found[i] = strtod(at + strlen(names[i]), NULL);
		}
	free(line);
	if (file)
		fclose(file);
	return found[0] >= 0 ? found[0] : found[1];
}

enum mu_status sweep_log_times(const char *path, const json_t *experiment, json_t **times)
{
	enum mu_status st = MU_OK;
	const double batch = (double)sweep_whole(experiment, "exp.effective_batch");
	FILE *file = NULL;
	struct sweep_batches batches;
	char *line = NULL;
	size_t nbytes = 0;
	long behind;
	double rate;

	*times = json_array();
	sweep_job_batches(experiment, &batches);
	MU_TRY(mu_stream_open(&file, path));
	while (getline(&line, &nbytes, file) >= 0)
		if (read_speed(line, &behind, &rate) && behind >= batches.warm_up)
			json_array_append_new(*times, json_real(1e3 * batch / rate));
out:
	free(line);
	if (file)
		fclose(file);
	return st;
}
