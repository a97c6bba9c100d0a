/* SPDX-License-Identifier: Apache-2.0 */
/* --tensorboard in a build without protobuf-c: an error. */
#include "scalars.h"

#include <muster/base.h>

enum mu_status mu_report_events_check(const struct conf *v)
{
	enum mu_status st = MU_OK;

	if (v->tensorboard)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"--tensorboard %s: this program was built without protobuf-c (Debian: "
			"libprotobuf-c-dev, protobuf-c-compiler); --metrics-file needs nothing",
			v->tensorboard);
out:
	return st;
}

enum mu_status mu_report_events_open(struct report_events **out, const char *folder)
{
	(void)folder;
	*out = NULL;
	return MU_OK;
}

enum mu_status mu_report_events_put(struct report_events *e, const struct report_numbers *record)
{
	(void)e;
	(void)record;
	return MU_OK;
}

void mu_report_events_close(struct report_events *e)
{
	(void)e;
}
