/* SPDX-License-Identifier: Apache-2.0 */
/* The rules about several options (rules.c). */
#ifndef CONF_RULES_H
#define CONF_RULES_H

#include <muster/base.h>

#include "options.h"

extern const struct mu_option_rules mu_conf_rules;     /* of all runs */
extern const struct mu_option_rules mu_conf_job_rules; /* of the store, for a number of ranks */

#endif
