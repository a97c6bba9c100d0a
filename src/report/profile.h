/* SPDX-License-Identifier: Apache-2.0 */
/* profile: --profile; without it these do nothing. */
#ifndef TRAIN_PROFILE_H
#define TRAIN_PROFILE_H

#include "train/train.h"

/* Once the plans are there: worker 0 begins the file, all measure their devices. Not collective. */
enum mu_status mu_report_profile_open(struct train_run *run);
void mu_report_profile_close(struct train_run *run);
/* Around what counts of an epoch, or of an evaluation. */
void mu_report_profile_begin(struct train_run *run);
void mu_report_profile_end(struct train_run *run);
/* After the training, or the evaluation. Collective over workers. */
enum mu_status mu_report_profile_report(struct train_run *run);

#endif
