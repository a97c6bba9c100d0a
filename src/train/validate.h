/* SPDX-License-Identifier: Apache-2.0 */
/* validate: the validations of a training. Collective over workers, but for the first. */
#ifndef TRAIN_VALIDATE_H
#define TRAIN_VALIDATE_H

#include "fit.h"

/* Does --validate-every say so? */
bool mu_train_validates_epoch(const struct train_fit *f);

/* After epoch f->epoch. *ends: --target-accuracy or --early-stopping ends training. */
enum mu_status mu_train_validate(struct train_fit *f, bool *ends);
/* Inside it, after f->done steps, if --validate-steps says so: for the log alone. */
enum mu_status mu_train_validate_inside(struct train_fit *f);
/* The run that saved the checkpoint ended before the validation of its last epoch. */
enum mu_status mu_train_validate_pending(struct train_fit *f, bool *ends);
/* Nothing to train: of what was loaded. */
enum mu_status mu_train_validate_loaded(struct train_fit *f);

#endif
