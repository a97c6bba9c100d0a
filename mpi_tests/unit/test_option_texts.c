/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Values of options as text: words of an enum, reals, and numbers that nobody chose. */
#include <stdio.h>

#include <muster/base.h>

#include "../lib/check.h"

/* No value is a number that nobody chose, and a number is as short as it can be. */
static void test_unset(void)
{
	struct {
		long depth;
		double rate, third;
	} v;
	const struct mu_option rows[] = {
		{.name = "depth", .type = MU_OPTION_INT, .initial = "0", .automatic = true,
		 .group = "g", .help = "N  depth"},
		{.name = "rate", .type = MU_OPTION_REAL, .offset = sizeof(long), .group = "g",
		 .help = "X  rate"},
		{.name = "third", .type = MU_OPTION_REAL, .initial = "0.3333333333333333",
		 .offset = sizeof(long) + sizeof(double), .group = "g", .help = "X  third"},
	};
	char words[3][16] = {"trainer", "--rate=0.05", "--depth=0"}, text[128];
	char *argv[3] = {words[0], words[1], words[2]};
	struct mu_options o;

	CHECK(mu_options_init(&o, rows, 3, &v) == MU_OK);
	mu_options_describe(&o, text, sizeof text);
	CHECK_TEXT(text, "depth=auto, rate=none, third=0.3333333333333333");
	CHECK(mu_options_parse(&o, 3, argv) == MU_OK);
	mu_options_describe(&o, text, sizeof text);
	CHECK_TEXT(text, "depth=0, rate=0.05, third=0.3333333333333333");
	mu_options_release(&o);
}

enum colour { NO_COLOUR, RED, GREEN, PLAIN, N_COLOURS };

/* A word becomes the value of an enum. */
static void test_words(void)
{
	static const char *const colours[N_COLOURS] = {
		[RED] = "red", [GREEN] = "green", [PLAIN] = ""};
	static const struct {
		const char *a, *b;
		enum mu_status st;
		enum colour value;
		const char *text; /* or the error's */
	} cases[] = {
		{NULL, NULL, MU_OK, NO_COLOUR, "colour=none"},
		{"--colour", "green", MU_OK, GREEN, "colour=green"},
		{"--colour=red", NULL, MU_OK, RED, "colour=red"},
		{"--colour", NULL, MU_OK, PLAIN, "colour="},
		{"--colour", "gre", MU_ERR_USAGE, NO_COLOUR, "\"gre\" is not known"},
		{"--colour=x", NULL, MU_ERR_USAGE, NO_COLOUR, "choose one of: red, green"},
	};
	struct {
		enum colour colour;
	} v;
	const struct mu_option one[] = {
		{.name = "colour", .type = MU_OPTION_WORD, .words = colours, .n_words = N_COLOURS,
		 .group = "", .help = "NAME  colour"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char words[3][16] = {"trainer"}, text[64];
		char *argv[3] = {words[0], words[1], words[2]};
		struct mu_options o;
		int argc = 1 + (cases[i].a != NULL) + (cases[i].b != NULL);

		snprintf(words[1], sizeof words[1], "%s", cases[i].a ? cases[i].a : "");
		snprintf(words[2], sizeof words[2], "%s", cases[i].b ? cases[i].b : "");
		if (!CHECK(mu_options_init(&o, one, 1, &v) == MU_OK))
			return;
		CHECK(mu_options_parse(&o, argc, argv) == cases[i].st);
		CHECK(v.colour == cases[i].value);
		mu_options_describe(&o, text, sizeof text);
		CHECK_HAS(cases[i].st == MU_OK ? text : mu_trace_message(), cases[i].text);
		mu_trace_clear();
		mu_options_release(&o);
	}
}

int main(void)
{
	test_words();
	test_unset();
	return check_failures() ? 1 : 0;
}
