/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5 data files in a build without HDF5: the kind is recognised, so that the error names the
 * reason. */
#include <string.h>

#include "records.h"

static enum mu_status refuse(const char *path)
{
	return mu_trace_start(MU_ERR_UNSUPPORTED, __FILE__, __LINE__,
			      "%s: this build has no HDF5: install it (Debian: "
			      "libhdf5-mpich-dev) and configure again",
			      path);
}

static bool holds(const struct mu_records_probe *probe)
{
	static const uint8_t magic[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

	return probe->n >= sizeof magic && memcmp(probe->head, magic, sizeof magic) == 0;
}

static enum mu_status open_file(struct mu_records *r, const char *path)
{
	(void)r;
	return refuse(path);
}

const struct mu_records_ops mu_records_data_file = {
	.files = "HDF5 data files (not in this build)",
	.holds = holds,
	.open = open_file,
};

enum mu_status mu_data_file_create(struct mu_data_writer **out, const char *path,
				   const struct mu_data_file_config *config)
{
	(void)config;
	*out = NULL;
	return refuse(path);
}

enum mu_status mu_data_file_write(struct mu_data_writer *w, const struct mu_record *record)
{
	(void)w, (void)record;
	return refuse("data file");
}

enum mu_status mu_data_file_finish(struct mu_data_writer *w, bool commit)
{
	(void)w, (void)commit;
	return MU_OK;
}
