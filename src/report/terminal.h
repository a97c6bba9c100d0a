/* SPDX-License-Identifier: Apache-2.0 */
/*
 * terminal: where the log goes to a terminal, a line below it that shows how far an epoch is, in
 * place of the lines of speed. Its numbers are those of worker 0, the rate that of the job.
 */
#ifndef REPORT_TERMINAL_H
#define REPORT_TERMINAL_H

#include "train/fit.h"

/* By --progress. Not collective; for worker 0. */
enum mu_status mu_report_terminal_open(struct train_run *run);
void mu_report_terminal_close(struct train_run *run);
/* Without a terminal these do nothing. An epoch begins; a step of it is over; all are. */
void mu_report_terminal_begin(const struct train_fit *f);
void mu_report_terminal_step(const struct train_fit *f);
void mu_report_terminal_end(const struct train_fit *f);

#endif
