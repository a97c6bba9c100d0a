/* SPDX-License-Identifier: Apache-2.0 */
/* --info: versions, devices and networks of this program. */
#include "report.h"

#include <unistd.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <muster/base.h>
#include <muster/storage.h>

static void report_device(FILE *stream, const struct mu_device_ops *ops)
{
	struct mu_device device;
	char text[128] = "cannot be opened";

	if (mu_device_open(&device, ops->name, 1) == MU_OK) {
		device.ops->describe(&device, text, sizeof text);
		mu_device_close(&device);
	} else {
		snprintf(text, sizeof text, "%s: %s", ops->name, mu_trace_message());
		mu_trace_clear();
	}
	fprintf(stream, "device:  %s\n", text);
}

/* Devices that can be counted are GPUs. */
static const char *cuda_state(char *text, size_t nbytes)
{
	char why[256];

	snprintf(text, nbytes, "not built in");
	for (size_t i = 0; mu_device_table[i]; i++) {
		const int n =
			mu_device_table[i]->count ? mu_device_table[i]->count(why, sizeof why) : -1;

		if (n > 0)
			snprintf(text, nbytes, "built in, %d device%s", n, MU_S(n));
		else if (n == 0)
			snprintf(text, nbytes, "built in, no device: %s", why);
	}
	return text;
}

void mu_report_info(FILE *stream)
{
	char mpi[128], text[320];

	mu_comm_version(mpi, sizeof mpi);
	fprintf(stream, "Muster %s\n", PACKAGE_VERSION);
	fprintf(stream, "MPI:     %s\n", mpi);
	fprintf(stream, "HDF5:    %s\n", mu_array_file_version());
	for (size_t i = 0; mu_device_table[i]; i++)
		if (mu_device_is_here(mu_device_table[i], text, sizeof text))
			report_device(stream, mu_device_table[i]);
	fprintf(stream, "networks:");
	for (size_t i = 0; mu_network_table[i]; i++)
		fprintf(stream, " %s", mu_network_table[i]->name);
	fprintf(stream, "\nCUDA:    %s\n", cuda_state(text, sizeof text));
	fprintf(stream, "GPU-aware MPI: %s; none is needed\n", mu_comm_gpu_support());
	fprintf(stream, "cores:   %ld online\n", sysconf(_SC_NPROCESSORS_ONLN));
	fprintf(stream, "threads: OMP_NUM_THREADS if set, else the node's cores shared among its "
			"workers\n");
}
