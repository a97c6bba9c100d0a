/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters and auxiliary values to and from P-0001.h5: datasets arg/<name> and aux/<name>, plain
 * order. */
#include "train.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <muster/base.h>
#include <muster/storage.h>

enum { PATH_BYTES = 1024 };

static void file_name(char *text, size_t nbytes, const struct train_run *run, size_t epoch)
{
	snprintf(text, nbytes, "%s-%04zu.h5", run->options.model_prefix, epoch);
}

static void dataset_name(char *text, size_t nbytes, const struct mu_slice *slice)
{
	snprintf(text, nbytes, "%s/%s", slice->rule == MU_SLICE_AVERAGE ? "aux" : "arg",
		 slice->name);
}

enum mu_status mu_train_checkpoint_check(const struct train_run *run)
{
	enum mu_status st = MU_OK;
	const char *prefix = run->options.model_prefix, *slash = strrchr(prefix, '/');
	char folder[PATH_BYTES] = ".";

	if (!mu_array_file_supported())
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"--model-prefix %s: this build writes no files, for it is without HDF5",
			prefix);
	if (strlen(prefix) + sizeof "-0001.h5" + 16 > sizeof folder)
		MU_FAIL(MU_ERR_USAGE, "--model-prefix %s: too long a name", prefix);
	if (slash) /* "/P" is in "/" */
		snprintf(folder, sizeof folder, "%.*s", (int)(slash - prefix) + 1, prefix);
	if (access(folder, W_OK | X_OK) != 0)
		MU_FAIL(MU_ERR_IO, "--model-prefix %s: cannot write to the folder %s: %s", prefix,
			folder, strerror(errno));
out:
	return st;
}

/* Room for the largest array in plain order. */
static enum mu_status plain_buffer(const struct train_run *run, float **out)
{
	size_t n_slices, largest = 0;
	const struct mu_slice *slices = mu_plan_slices(run->plan, &n_slices);

	for (size_t k = 0; k < n_slices; k++)
		if (slices[k].n > largest)
			largest = slices[k].n;
	return mu_alloc((void **)out, largest * sizeof **out, "a checkpoint's arrays");
}

enum mu_status mu_train_checkpoint_save(const struct train_run *run, size_t epoch)
{
	enum mu_status st = MU_OK, closed;
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(run->plan, &n_slices);
	struct mu_array_file *file = NULL;
	float *plain = NULL;
	char path[PATH_BYTES], name[256];

	file_name(path, sizeof path, run, epoch);
	MU_TRY(plain_buffer(run, &plain));
	MU_TRY(mu_array_file_create(&file, path));
	MU_TRY(mu_array_file_set_text(file, "network", run->options.network));
	snprintf(name, sizeof name, "%ld", run->options.num_layers);
	MU_TRY(mu_array_file_set_text(file, "num_layers", name));
	for (size_t k = 0; k < n_slices; k++) {
		const struct mu_shape *shape = mu_plan_slice_shape(run->plan, k);

		dataset_name(name, sizeof name, &slices[k]);
		MU_TRY(mu_plan_slice_to_plain(run->plan, k, mu_kv_weights(run->kv), plain));
		MU_TRY(mu_array_file_write(file, name, shape->ndims, shape->dims, plain));
	}
out:
	closed = file ? mu_array_file_close(file, st == MU_OK) : MU_OK;
	mu_free(plain);
	if (st == MU_OK && closed == MU_OK)
		mu_log_info("Saved checkpoint to \"%s\"", path);
	return st != MU_OK ? st : closed;
}

enum mu_status mu_train_checkpoint_load(const struct train_run *run, size_t epoch)
{
	enum mu_status st = MU_OK;
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(run->plan, &n_slices);
	struct mu_array_file *file = NULL;
	float *plain = NULL;
	char path[PATH_BYTES], name[256], network[64];

	file_name(path, sizeof path, run, epoch);
	MU_TRY(plain_buffer(run, &plain));
	MU_TRY(mu_array_file_open(&file, path));
	MU_TRY(mu_array_file_get_text(file, "network", network, sizeof network));
	if (strcmp(network, run->options.network) != 0)
		MU_FAIL(MU_ERR_FORMAT, "%s holds network %s, not %s", path, network,
			run->options.network);
	MU_TRY(mu_array_file_get_text(file, "num_layers", name, sizeof name));
	if (strtol(name, NULL, 10) != run->options.num_layers)
		MU_FAIL(MU_ERR_FORMAT, "%s was saved with --num-layers %s, not %ld", path, name,
			run->options.num_layers);
	for (size_t k = 0; k < n_slices; k++) {
		const struct mu_shape *shape = mu_plan_slice_shape(run->plan, k);

		dataset_name(name, sizeof name, &slices[k]);
		MU_TRY(mu_array_file_read(file, name, shape->ndims, shape->dims, plain));
		MU_TRY(mu_plan_slice_from_plain(run->plan, k, plain, mu_kv_weights(run->kv)));
	}
	mu_log_info("Loaded model %s", path);
out:
	if (file)
		mu_array_file_close(file, false);
	mu_free(plain);
	return st;
}
