/* SPDX-License-Identifier: Apache-2.0 */
/* What options mean: each part settles its own after they are parsed. */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <muster/input.h>
#include <muster/optim.h>

#include "options.h"

struct train_run;

/* ---- optimizer.c ---- */

/* The part of mu_conf_check about the optimiser and the learning rate. */
enum mu_status mu_conf_optimizer_settle(const struct mu_options *o, struct conf *v);
/* The schedule of settled options; lr: at its start, after scaling. */
enum mu_status mu_conf_schedule(const struct conf *v, double lr, double samples_per_epoch,
				struct mu_schedule *s);

/* ---- images.c ---- */

/* The part of mu_conf_check about images: levels and presets become settings. */
enum mu_status mu_conf_images_settle(const struct mu_options *o, struct conf *v);
/* Settled options as the input takes them. Validation: resize alone. */
struct mu_augment mu_conf_images_augment(const struct conf_images *images, enum mu_input_part part);

/* ---- interface.c ---- */

/* The network interface that was asked for, also by the environment; NULL: none. */
const char *mu_conf_interface(const struct conf *v);
/* This host has it, and it has an address. Not collective. */
enum mu_status mu_conf_interface_check(const struct conf *v);
/* "eth1 10.0.0.1": the one asked for, else those that carry TCP to other hosts; "": none. */
void mu_conf_interface_address(const struct conf *v, char *text, size_t nbytes);
/* Warns of variables that the user has set otherwise. */
void mu_conf_interface_report(const struct conf *v);

/* ---- store.c: how workers keep step, and compression ---- */

/* The part of mu_conf_check about it. */
enum mu_status mu_conf_store_settle(const struct mu_options *o, struct conf *v);

/* What does not go with the chosen store; the same on every rank. */
enum mu_status mu_conf_store_check(const struct train_run *run);
void mu_conf_store_config(const struct conf *v, struct mu_kv_config *config);
/* Lines of the start log and of the end log. */
void mu_conf_store_report(const struct train_run *run);
void mu_conf_store_report_end(const struct train_run *run);

#endif
