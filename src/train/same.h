/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must be the same on every rank, or a job computes something that nobody meant: the program,
 * its options, the data, a user's network, the layout of parameters. A difference is an error on
 * every rank that names one rank that differs.
 */
#ifndef TRAIN_SAME_H
#define TRAIN_SAME_H

#include "engine/engine.h"

/* The program, by its bytes, and its arguments. Collective over comm. */
enum mu_status mu_train_same_program(MPI_Comm comm, int argc, char *const argv[]);

/* ---- collective over workers ---- */

/* Numbers of records: with other ones, workers would wait for ever. */
enum mu_status mu_train_same_sizes(const struct mu_engine *e);
/* Contents, after mu_input_look; names of classes; vocabulary and tokenizer; the network's file. */
enum mu_status mu_train_same_data(const struct mu_engine *e);
/* The store's arrays and the messages of a team have the layout of the devices. */
enum mu_status mu_train_same_layouts(const struct mu_engine *e);

#endif
