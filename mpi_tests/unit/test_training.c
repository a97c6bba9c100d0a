/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Defaults that train: batch size, learning rate and padding of networks, optimisers and stores. */
#include <string.h>

#include <muster/net.h>
#include <muster/pictures.h>

#include "conf/rules.h"

#include "../lib/check.h"

enum { MOST_WORDS = 24, LINE_BYTES = 256, WORKERS = 4 };

/* line: options without "trainer"; is cut into words. */
static bool settle_for(const struct conf_ranks *ranks, char line[LINE_BYTES], struct mu_options *o,
		       struct conf *v)
{
	char program[] = "trainer", *argv[MOST_WORDS] = {program};
	int argc = 1;

	for (char *word = strtok(line, " "); word && argc < MOST_WORDS; word = strtok(NULL, " "))
		argv[argc++] = word;
	*o = (struct mu_options){0};
	if (!CHECK(mu_conf_options_parse(o, v, argc, argv) == MU_OK &&
		   mu_conf_settle(o, ranks, v) == MU_OK)) {
		fprintf(stderr, "    %s\n", mu_trace_message());
		return false;
	}
	return true;
}

static bool settle(char line[LINE_BYTES], struct mu_options *o, struct conf *v)
{
	if (!settle_for(&(struct conf_ranks){WORKERS + 1, 1}, line, o, v))
		return false;
	mu_conf_roles_settle(v, WORKERS, v->store.has_servers ? 1 : 0);
	return true;
}

static bool equals(double a, double b)
{
	return a - b < 1e-12 && b - a < 1e-12;
}

static void check_lines(void)
{
	static const struct {
		const char *line;
		long batch, pad;
		double lr;
	} cases[] = {
		{"--network lenet --data-dir D", 64, 0, 0.05},
		{"--network mlp --data-dir D --lr 0.3", 64, 0, 0.3},
		{"--network lenet --data-dir D --batch-size 16", 16, 0, 0.0125},
		{"--network lenet --data-dir D --batch-size 640", 640, 0, 0.05},
		{"--network lenet --data-dir D --global-batch-size 32", 64, 0, 0.025},
		{"--network lenet --data-dir D --batch-size 16 --lr 0.05", 16, 0, 0.05},
		/* 4 workers */
		{"--network lenet --data-dir D --kv-store dist_async", 64, 0, 0.00625},
		{"--network lenet --data-dir D --kv-store dist_async --lr 0.05", 64, 0, 0.05},
		{"--network lenet --data-dir D --kv-store dist_sharded", 64, 0, 0.05},
		/* small images, and others */
		{"--network resnet --data-dir D", 128, 4, 0.05},
		{"--network resnet --data-dir D --pad-size 0", 128, 0, 0.05},
		{"--network resnet --data-dir D --pad-size 2", 128, 2, 0.05},
		{"--network resnet --data-dir D --data-aug-level 0", 128, 0, 0.05},
		{"--network resnet --data-dir D --random-crop 0", 128, 0, 0.05},
		{"--network resnet --data-train a.rec", 32, 0, 0.0125},
		{"--network resnet --data-train a.rec --image-shape 3,32,32", 128, 4, 0.05},
		{"--network resnet --data-train a.rec --image-shape 3,33,32", 32, 0, 0.0125},
		{"--network inception-bn-28-small --data-train a.rec", 128, 4, 0.05},
		{"--network lstm --data-train a.txt", 32, 0, 0.03},
		/* other scales */
		{"--network lenet --data-dir D --optimizer adam", 64, 0, 0.001},
		{"--network lenet --data-dir D --optimizer adam --batch-size 1", 1, 0, 0.001},
		{"--network lenet --data-dir D --optimizer rmsprop", 64, 0, 0.001},
		{"--network lenet --data-dir D --optimizer lamb", 64, 0, 0.001},
		{"--network lenet --data-dir D --optimizer nag", 64, 0, 0.05},
		{"--network lenet --data-dir D --optimizer ftrl", 64, 0, 0.003},
		{"--network lenet --data-dir D --optimizer lars", 64, 0, 1},
		{"--network lenet --optimizer adam --kv-store dist_async --data-dir D", 64, 0,
		 0.001},
		{"--network lenet --data-dir D --optimizer adadelta", 64, 0, 0},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct mu_options o = {0};
		struct conf v = {.network = NULL};
		const struct mu_picture_settings *s;
		char line[LINE_BYTES];

		snprintf(line, sizeof line, "%s", cases[i].line);
		if (settle(line, &o, &v) &&
		    (!CHECK(v.batch_size == cases[i].batch) ||
		     !CHECK(((s = mu_conf_reader_settings(&v, "cifar")) ? s->augment.pad : 0) ==
			    cases[i].pad) ||
		     !CHECK(equals(v.lr, cases[i].lr))))
			fprintf(stderr, "    %s: batch %ld, lr %g\n", cases[i].line, v.batch_size,
				v.lr);
		mu_options_release(&o);
		mu_trace_clear();
	}
}

/* Servers on every node where three quarters of the ranks train, and for three ranks of one. */
static void check_stores(void)
{
	static const int each[] = {1, 2, 3, 4, 8};

	for (int nodes = 1; nodes <= 8; nodes++)
		for (size_t i = 0; i < sizeof each / sizeof *each; i++)
			for (int asked = 0; asked <= 1; asked++) {
				const int n = nodes * each[i];
				const bool servers =
					asked || each[i] >= 4 || (nodes == 1 && each[i] == 3);
				char line[LINE_BYTES];
				struct mu_options o;
				struct conf v;

				if (n == 1)
					continue;
				snprintf(line, sizeof line, "--network mlp --benchmark 1%s",
					 asked ? " --num-servers 1" : "");
				if (settle_for(&(struct conf_ranks){n, nodes}, line, &o, &v))
					CHECK_TEXT(v.kv_store,
						   servers ? "dist_sync" : "dist_sharded");
				mu_options_release(&o);
			}
}

/* Every network declares what trains it; a rule has a default rate only if it has a rate. */
static void check_tables(void)
{
	for (size_t i = 0; mu_network_table[i]; i++)
		if (!CHECK(mu_network_table[i]->training.lr > 0 &&
			   mu_network_table[i]->training.batch > 0))
			fprintf(stderr, "    %s\n", mu_network_table[i]->name);
	for (size_t i = 0; mu_rule_table[i]; i++)
		CHECK(mu_rule_table[i]->lr == 0 || mu_rule_setting(mu_rule_table[i], "lr"));
}

int main(void)
{
	check_lines();
	check_stores();
	check_tables();
	return check_failures() ? 1 : 0;
}
