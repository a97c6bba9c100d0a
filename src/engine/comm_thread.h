/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that makes progress on messages while the training thread computes. */
#ifndef ENGINE_COMM_THREAD_H
#define ENGINE_COMM_THREAD_H

#include <muster/base.h>
#include <muster/kvstore.h>

#include "conf/options.h"

struct mu_engine;

/* ---- --comm-thread ---- */

struct engine_comm_thread;
/* MU_ERR_USAGE: this MPI does not support it. The same on every rank. */
enum mu_status mu_engine_comm_thread_check(const struct conf *v);
/*
 * After the store is created: start the thread if --comm-thread is set; without it _resume and
 * _pause do nothing. The calling thread may call MPI and use the store except between _resume and
 * _pause, when the other thread polls the store. Not collective.
 */
enum mu_status mu_engine_comm_thread_open(struct mu_engine *e);
void mu_engine_comm_thread_close(struct mu_engine *e);
void mu_engine_comm_thread_resume(struct mu_engine *e);
/* Returns st, or if st is MU_OK the error of the thread. */
enum mu_status mu_engine_comm_thread_pause(struct mu_engine *e, enum mu_status st);
/* The engine's forward and backward of a layer, during which the thread polls the store. */
enum mu_status mu_engine_forward(struct mu_engine *e, size_t layer);
enum mu_status mu_engine_backward(struct mu_engine *e, size_t *ready);
/* Between _resume and _pause: make progress on messages, as mu_kv_poll. */
enum mu_status mu_engine_poll(struct mu_engine *e);
void mu_engine_comm_thread_report(const struct mu_engine *e);

#endif
