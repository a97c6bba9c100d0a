/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline: --timeline, what every rank did in the first steps of a run, for a viewer of Chrome's
 * traces (Perfetto). Without it these do nothing.
 *
 * Each rank keeps the spans of its training or serving thread (base.h) in memory that is there
 * before the training: a step makes no more than some numbers in it. After the training worker 0
 * writes the file, rank by rank, with all times on its host's clock.
 */
#ifndef TRAIN_TIMELINE_H
#define TRAIN_TIMELINE_H

#include "train/train.h"

/* Worker 0 begins the file; all compare clocks and begin. Collective over all ranks. */
enum mu_status mu_report_timeline_open(struct train_run *run);
void mu_report_timeline_close(struct train_run *run);
/* A worker's step that began at this time is over; number: counted over all epochs. */
void mu_report_timeline_step(struct train_run *run, size_t number, double begin);
/* After the training. Collective over all ranks. */
enum mu_status mu_report_timeline_write(struct train_run *run);

#endif
