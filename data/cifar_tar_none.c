/* SPDX-License-Identifier: Apache-2.0 */
/* Tar files in a build without libarchive: an error that says so. */
#include "cifar_pack.h"

enum mu_status pack_read_tar(struct pack_job *job, const char *path)
{
	enum mu_status st = MU_OK;

	(void)job;
	MU_FAIL(MU_ERR_UNSUPPORTED,
		"%s: is not a folder, and this build has no libarchive to read tar files: unpack "
		"it, or install libarchive (Debian: libarchive-dev) and configure again",
		path);
out:
	return st;
}
