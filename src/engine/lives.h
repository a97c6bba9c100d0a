/* SPDX-License-Identifier: Apache-2.0 */
/* --shard-gradients: when gradients of keys are written and pushed. Without it calls do nothing. */
#ifndef ENGINE_LIVES_H
#define ENGINE_LIVES_H

#include <muster/kvstore.h>

#include "net/plan.h"
#include "conf/options.h"

struct mu_engine;

/* By key of the plan, for mu_kv_config; free it by mu_free. NULL without --shard-gradients. */
enum mu_status mu_engine_lives(const struct conf *v, const struct mu_plan *plan,
			       struct mu_kv_life **lives);
/* Before backward of layer l: its gradients may be written. _clear: they are set to 0 as well, also
 * without --shard-gradients. */
enum mu_status mu_engine_gradients_begin(const struct mu_engine *e, size_t l);
enum mu_status mu_engine_gradients_clear(const struct mu_engine *e, size_t l);

#endif
