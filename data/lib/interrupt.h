/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that end a tool: it leaves no temporary files. */
#ifndef MUSTER_DATA_INTERRUPT_H
#define MUSTER_DATA_INTERRUPT_H

#include <muster/base.h>

struct data_interrupt;

/*
 * From now on SIGINT and SIGTERM still end the process at once, but the temporary files (storage.h)
 * beside output, a path that the tool writes to, are removed before. A signal that the caller
 * ignores stays ignored. Call before other threads are started.
 */
enum mu_status data_interrupt_watch(struct data_interrupt **out, const char *tool,
				    const char *output);
/* Does not return if a signal ends the process. watch may be NULL. */
void data_interrupt_check(const struct data_interrupt *watch);

#endif
