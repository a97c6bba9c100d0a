/* SPDX-License-Identifier: Apache-2.0 */
/* Crashes in the code of a user's network. */
#ifndef NET_GRAPH_CRASH_H
#define NET_GRAPH_CRASH_H

/* From now on a signal that ends the process is preceded by a line that names path, the shared
 * object that has this symbol, if its code is among the callers. Of several objects the last. */
void mu_network_name_crashes(const char *path, const void *symbol);

#endif
