/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that moves messages on while the training thread computes. */
#ifndef ENGINE_COMM_THREAD_H
#define ENGINE_COMM_THREAD_H

#include <muster/base.h>
#include <muster/kvstore.h>

#include "conf/options.h"

struct mu_engine;

/* ---- --comm-thread ---- */

struct engine_comm_thread;
/* What does not go with the chosen store, or with this MPI; the same on every rank. */
enum mu_status mu_engine_comm_thread_check(const struct conf *v);
/*
 * Make the thread, once the store is there, if one was asked for; without one _lend and _take do
 * nothing. The calling thread is the one that may call MPI and use the store, but between _lend and
 * _take, where the other moves messages on. Not collective.
 */
enum mu_status mu_engine_comm_thread_open(struct mu_engine *e);
void mu_engine_comm_thread_close(struct mu_engine *e);
void mu_engine_comm_thread_resume(struct mu_engine *e);
/* st, or if that is MU_OK what went wrong in the thread. */
enum mu_status mu_engine_comm_thread_pause(struct mu_engine *e, enum mu_status st);
/* Between the two: let messages move on, as mu_kv_poll does. */
enum mu_status mu_engine_poll(struct mu_engine *e);
void mu_engine_comm_thread_report(const struct mu_engine *e);

#endif
