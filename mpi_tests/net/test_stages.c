/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 */
/*
 * The order of the work of stages: every device's list is carried out as the trainer does it, each
 * task as soon as what it needs is there, and all come to an end, with no more micro-batches in a
 * stage than it has slots; the same with blocks of steps. Stages by groups and by size; what passes
 * between them.
 */
#include <string.h>

#include <muster/base.h>
#include <muster/parallel.h>

#include "../lib/check.h"

enum { MOST = 16 };

/* What has ended of every stage. */
struct done {
	size_t of[MOST][MU_STAGE_WORKS];
};

static bool may_begin(const struct mu_stages *stages, const struct mu_stage_task *task,
		      const struct done *d, size_t n_micro, bool train)
{
	const size_t s = task->stage, k = task->micro, last = stages->n - 1;
	const size_t slots = mu_stage_slots(stages, s, n_micro);
	const size_t *of = d->of[s];

	if (of[task->work] != k)
		return false;
	if (task->work == MU_STAGE_WEIGHTS)
		return stages->blocks && of[MU_STAGE_BACKWARD] > k;
	if (task->work == MU_STAGE_BACKWARD)
		return of[MU_STAGE_FORWARD] >= (stages->blocks ? n_micro : k + 1) &&
		       (s == last || d->of[s + 1][MU_STAGE_BACKWARD] > k);
	if (s > 0 && d->of[s - 1][MU_STAGE_FORWARD] <= k)
		return false;
	if (train)
		return k - of[MU_STAGE_BACKWARD] < slots;
	return s == last || k < d->of[last][MU_STAGE_FORWARD] + slots;
}

static void check_order(const struct mu_stages *stages, size_t devices, size_t n_micro, bool train)
{
	struct mu_stage_order *order = NULL;
	struct done done = {{{0}}};
	size_t at[MOST] = {0}, moved = 1;
	size_t left = stages->n * n_micro * (!train ? 1 : stages->blocks ? 3 : 2);

	if (!CHECK(mu_stage_order_new(&order, stages, devices, n_micro, train) == MU_OK))
		return;
	CHECK(order->first[devices] == left);
	while (left > 0 && moved > 0) {
		moved = 0;
		for (size_t d = 0; d < devices; d++) {
			const struct mu_stage_task *task = &order->tasks[order->first[d] + at[d]];

			if (order->first[d] + at[d] == order->first[d + 1] ||
			    !may_begin(stages, task, &done, n_micro, train))
				continue;
			CHECK(stages->of[task->stage].device == d);
			done.of[task->stage][task->work]++;
			at[d]++;
			left--;
			moved++;
		}
	}
	CHECK(left == 0);
	mu_stage_order_free(order);
}

static void check_orders(bool blocks)
{
	for (size_t n = 1; n <= 5; n++)
		for (size_t devices = 1; devices <= n; devices++) {
			struct mu_stages stages = {.n = n, .blocks = blocks};

			for (size_t s = 0; s < n; s++) /* devices have several stages */
				stages.of[s] = (struct mu_stage){
					.first = s, .n = 1, .device = s % devices};
			for (size_t micro = 1; micro <= 7; micro++) {
				check_order(&stages, devices, micro, true);
				check_order(&stages, devices, micro, false);
			}
		}
}

/* Two stages and four micro-batches. */
static void check_turns(bool blocks, const char *const expected[2])
{
	const struct mu_stages stages = {
		.n = 2, .blocks = blocks, .of = {{0, 1, 0, 0}, {1, 1, 1, 0}}};
	struct mu_stage_order *order = NULL;

	if (!CHECK(mu_stage_order_new(&order, &stages, 2, 4, true) == MU_OK))
		return;
	for (size_t d = 0; d < 2; d++) {
		char text[64] = "";

		for (size_t i = order->first[d]; i < order->first[d + 1]; i++)
			snprintf(text + strlen(text), sizeof text - strlen(text), "%c%zu ",
				 "FBW"[order->tasks[i].work], order -> tasks[i].micro);
		CHECK_TEXT(text, expected[d]);
	}
	mu_stage_order_free(order);
}

/* ---- cuts ---- */

struct model {
	struct mu_device device;
	struct mu_net *net;
	struct mu_plan *plan;
};

static void open_model(struct model *m, const struct mu_net_config *config)
{
	CHECK(mu_device_open(&m->device, "ref", 1) == MU_OK);
	CHECK(mu_net_new(&m->net, config) == MU_OK);
	CHECK(mu_plan_new_dry(&m->plan, m->net, &m->device, 2, MU_PHASE_TRAIN, NULL) == MU_OK);
}

static void close_model(struct model *m)
{
	mu_plan_free(m->plan);
	mu_net_free(m->net);
	mu_device_close(&m->device);
}

static const struct mu_net_config lstm = {.network = "lstm",
					  .shape = MU_SAMPLE(1, 4, 1),
					  .classes = 20,
					  .num_layers = 4,
					  .options = "num-hidden=8"};

static void refuse(const struct mu_plan *plan, const char *text, const char *words)
{
	struct mu_group_map map;
	struct mu_stages stages;
	enum mu_status st = mu_group_map_read(&map, text, false);

	if (st == MU_OK)
		st = mu_stages_of_groups(&stages, plan, &map);
	CHECK(st == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), words);
	mu_trace_clear();
}

static void check_groups(void)
{
	struct model m = {.net = NULL};
	struct mu_group_map map;
	struct mu_stages stages;
	struct mu_stage_border *borders = NULL;
	size_t n;

	open_model(&m, &lstm);
	CHECK(mu_group_map_read(&map, "embed=cpu:0,lstm0-1=cpu:0,lstm2-3=cpu:1,decode=cpu:0",
				false) == MU_OK);
	CHECK(map.n == 6);
	CHECK(map.n_devices == 2);
	CHECK(mu_stages_of_groups(&stages, m.plan, &map) == MU_OK);
	CHECK(stages.n == 3);
	CHECK(stages.of[0].device == 0);
	CHECK(stages.of[1].device == 1);
	CHECK(stages.of[2].device == 0);
	CHECK(stages.of[2].first + stages.of[2].n == mu_plan_layers(m.plan));
	/* One tensor of 2 samples, 8 units and 4 steps, and its gradient, in each of 3 parts. */
	CHECK(mu_stages_borders(&stages, m.plan, 3, &borders, &n) == MU_OK);
	CHECK(n == 2);
	CHECK(borders[0].tensors == 1);
	CHECK(borders[0].nbytes == 3 * 2 * 2 * 8 * 4 * sizeof(float));
	mu_free(borders);
	refuse(m.plan, "embed=cpu:0,lstm0-3=cpu:0", "group decode (dropout");
	refuse(m.plan, "embed=cpu:0,lstm0-4=cpu:0,decode=cpu:0",
	       "has no group lstm4; the nearest one is lstm");
	refuse(m.plan, "embed=cpu:0,embed=cpu:1", "group embed is named twice");
	refuse(m.plan, "embed=cpu:0,lstm3-0=cpu:1", "lstm3-0 is not a range");
	refuse(m.plan, "embed=cpu:0,lstm0", "cannot read 'lstm0'");
	refuse(m.plan, "", "cannot read ''");
	close_model(&m);
}

/* An mlp, whose first layer is nearly all of it; and a net with shortcuts. */
static void check_balance(void)
{
	const struct mu_net_config mlp = {
		.network = "mlp", .shape = MU_SAMPLE(1, 28, 28), .classes = 10};
	const struct mu_net_config resnet = {.network = "resnet",
					     .shape = MU_SAMPLE(3, 28, 28),
					     .classes = 10,
					     .num_layers = 20};
	struct model m = {.net = NULL};
	struct mu_stages stages;

	open_model(&m, &mlp);
	CHECK(mu_stages_balanced(&stages, m.plan, 2) == MU_OK);
	CHECK_TEXT(mu_plan_layer_name(m.plan, stages.of[1].first), "fc2");
	CHECK(mu_stages_balanced(&stages, m.plan, 4) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), "the network has 3 layers with parameters");
	mu_trace_clear();
	close_model(&m);
	open_model(&m, &resnet);
	for (size_t n = 1; n <= 4; n++) {
		struct mu_stage_border *borders = NULL;
		size_t next = 0, n_borders;

		CHECK(mu_stages_balanced(&stages, m.plan, n) == MU_OK);
		CHECK(stages.n == n);
		for (size_t s = 0; s < n; s++) {
			CHECK(stages.of[s].first == next);
			CHECK(stages.of[s].device == s);
			next += stages.of[s].n;
		}
		CHECK(next == mu_plan_layers(m.plan));
		CHECK(mu_stages_borders(&stages, m.plan, 1, &borders, &n_borders) == MU_OK);
		CHECK(n_borders >= n - 1);
		mu_free(borders);
	}
	close_model(&m);
}

/* Four blocks of forward, backward and weights take 12 on one device. */
static void check_cuts_of_blocks(void)
{
	static const struct mu_net_config words = {.network = "lstm",
						   .shape = MU_SAMPLE(1, 8, 1),
						   .classes = 6022,
						   .num_layers = 8};
	static const struct {
		size_t devices, stages;
		double most;
	} expected[] = {{1, 1, 12}, {2, 4, 6.45}, {3, 6, 5.05}};
	struct model m = {.net = NULL};
	struct mu_stages stages;

	open_model(&m, &words);
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		struct mu_stage_order *order = NULL;
		const size_t n = expected[i].devices;
		size_t next = 0;

		CHECK(mu_stages_of_blocks(&stages, m.plan, n) == MU_OK);
		CHECK(stages.n == expected[i].stages && stages.blocks);
		for (size_t s = 0; s < stages.n; s++) {
			CHECK(stages.of[s].first == next && stages.of[s].device == s % n);
			next += stages.of[s].n;
		}
		CHECK(next == mu_plan_layers(m.plan));
		CHECK(mu_stage_order_new(&order, &stages, n, 4, true) == MU_OK);
		printf("%zu devices, %zu stages: %g\n", n, stages.n, order->time);
		CHECK(order->time < expected[i].most + 1e-9);
		mu_stage_order_free(order);
	}
	CHECK(mu_stages_of_blocks(&stages, m.plan, 10) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), "the network has 9 layers with multiply-adds");
	mu_trace_clear();
	close_model(&m);
}

int main(void)
{
	static const char *const turns[] = {"F0 F1 B0 F2 B1 F3 B2 B3 ", "F0 B0 F1 B1 F2 B2 F3 B3 "};
	static const char *const blocks[] = {"F0 F1 F2 F3 B0 B1 B2 B3 W0 W1 W2 W3 ",
					     "F0 F1 F2 F3 B0 B1 B2 B3 W0 W1 W2 W3 "};

	check_orders(false);
	check_orders(true);
	check_turns(false, turns);
	check_turns(true, blocks);
	check_groups();
	check_balance();
	check_cuts_of_blocks();
	return check_failures() ? 1 : 0;
}
