/* SPDX-License-Identifier: Apache-2.0 */
/* A page about the runs of a set of logs: settings, curves, speed, where the time went, hosts. */
#ifndef MUSTER_DATA_REPORT_H
#define MUSTER_DATA_REPORT_H

#include "log_table.h"

/* Replaces the file at path. set has notes. title NULL: made of the logs' names. */
enum mu_status report_write(const struct log_set *set, const char *path, const char *title);

#endif
