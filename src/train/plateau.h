/* SPDX-License-Identifier: Apache-2.0 */
/* plateau.c: --lr-schedule plateau. */
#ifndef TRAIN_PLATEAU_H
#define TRAIN_PLATEAU_H

#include "train.h"

bool mu_train_has_plateau(const struct conf *v);
/* Set the store's rate to what it was when the checkpoint was saved. */
void mu_train_plateau_resume(struct train_run *run);
/* After a validation; the same on all workers. */
void mu_train_plateau_look(struct train_run *run, const struct mu_metrics *m);

#endif
