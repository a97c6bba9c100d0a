/* SPDX-License-Identifier: Apache-2.0 */
/* What observers share. */
#include "observers.h"

#include <muster/base.h>

bool mu_report_is_worker_0(const struct report_observer *o)
{
	const struct mu_members *m = o->view->engine->members;

	return mu_members_lead(m);
}

bool mu_report_is_plain(const struct conf *v)
{
	return v->quiet || v->log_format == CONF_LOG_PLAIN ||
	       (v->log_format == CONF_LOG_AUTO && mu_comm_on_terminal());
}

double mu_report_comm_seconds(void)
{
	return mu_clock_seconds(MU_CLOCK_PUSH) + mu_clock_seconds(MU_CLOCK_PULL);
}
