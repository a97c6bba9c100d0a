/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATA_RECORDS_CHECKPOINT_INFO_H
#define DATA_RECORDS_CHECKPOINT_INFO_H

#include <muster/storage.h>

/* Print what the checkpoint holds, and check its sums. *is_one false: the file is none. */
enum mu_status data_checkpoint_info(const char *path, bool *is_one);

#endif
