/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* The options table: values, abbreviations, every kind of error, help and description. */
#include <muster/base.h>

#include "../lib/check.h"

struct values {
	const char *network, *store, *data_dir;
	long batch, epochs, seed, benchmark;
	double lr, factor;
	bool info, infer;
};

#define AT(member)   .offset = offsetof(struct values, member)
#define INT(member)  .type = MU_OPTION_INT, AT(member)
#define TEXT(member) .type = MU_OPTION_STRING, AT(member)
#define FLAG(member) .type = MU_OPTION_FLAG, AT(member)

static const struct mu_option_spelling spellings[] = {
	{"conv", "lenet", NULL, NULL},
	{"tiny", "mlp", "batch-size", "2"},
	{NULL, NULL, NULL, NULL},
};

static const struct mu_option table[] = {
	{.name = "network",
	 .type = MU_OPTION_STRING,
	 AT(network),
	 .initial = "mlp",
	 .choices = "mlp|lenet",
	 .spellings = spellings,
	 .group = "Model",
	 .help = "NAME  network to train"},
	{.name = "kv-store", TEXT(store), .group = "Store", .help = "NAME  store"},
	{.name = "batch-size",
	 .type = MU_OPTION_INT,
	 AT(batch),
	 .initial = "64",
	 .min = 1,
	 .max = 1000000,
	 .group = "Model",
	 .help = "N  samples per worker and step, which is a long text made to be longer than one "
		 "line of one hundred columns can be, so that it is wrapped twice at least when it "
		 "is printed to the terminal"},
	{.name = "num-epochs",
	 .aliases = "epochs|passes",
	 .similar = "max-epochs",
	 .type = MU_OPTION_INT,
	 AT(epochs),
	 .initial = "10",
	 .min = 0,
	 .max = INFINITY,
	 .group = "Model",
	 .help = "N  epochs"},
	{.name = "seed", INT(seed), .initial = "0", .group = "Store", .help = "N  seed"},
	{.name = "lr",
	 .type = MU_OPTION_REAL,
	 AT(lr),
	 .initial = "0.05",
	 .min = 0,
	 .max = 100,
	 .group = "Model",
	 .help = "X  learning rate"},
	{.name = "lr-factor-of-a-very-long-name",
	 .type = MU_OPTION_REAL,
	 AT(factor),
	 .initial = "0.1",
	 .group = "Model",
	 .help = "X  factor",
	 .advanced = true},
	{.name = "data-dir", TEXT(data_dir), .group = "Store", .help = "DIR  folder"},
	{.name = "info", FLAG(info), .letter = 'i', .group = "Other",
	 .help = "show what is built in"},
	{.name = "benchmark",
	 INT(benchmark),
	 .toggle = true,
	 .initial = "1",
	 .min = -1,
	 .max = 1,
	 .group = "Other",
	 .help = "random data"},
	{.name = "infer-shape",
	 .type = MU_OPTION_FLAG,
	 AT(infer),
	 .group = "Other",
	 .help = "flag",
	 .advanced = true},
};

enum { NUM_OPTIONS = sizeof table / sizeof *table, ARGS_MAX = 8 };

/* Parse up to three words after the program's name; the caller releases. */
static enum mu_status parse(struct mu_options *o, struct values *v, const char *a, const char *b,
			    const char *c)
{
	static char words[ARGS_MAX][64]; /* values point into them */
	char *argv[ARGS_MAX];
	const char *const given[] = {"trainer", a, b, c};
	int argc = 0;

	mu_trace_clear();
	for (size_t i = 0; i < sizeof given / sizeof *given && given[i]; i++) {
		snprintf(words[i], sizeof words[i], "%s", given[i]);
		argv[argc++] = words[i];
	}
	if (!CHECK(mu_options_init(o, table, NUM_OPTIONS, v) == MU_OK))
		return MU_ERR_ARGUMENT;
	return mu_options_parse(o, argc, argv);
}

static void test_defaults(void)
{
	struct mu_options o;
	struct values v;

	memset(&v, 0x55, sizeof v);
	CHECK(parse(&o, &v, NULL, NULL, NULL) == MU_OK);
	CHECK_TEXT(v.network, "mlp");
	CHECK(v.store == NULL && v.data_dir == NULL);
	CHECK(v.batch == 64 && v.epochs == 10 && v.seed == 0);
	CHECK(v.lr == 0.05 && v.factor == 0.1);
	CHECK(!v.info && !v.infer);
	CHECK(!mu_options_given(&o, "network"));
	CHECK(!mu_options_given(&o, "no such option"));
	mu_options_release(&o);
}

static void test_values(void)
{
	struct mu_options o;
	struct values v;

	CHECK(parse(&o, &v, "--network=lenet", "--batch-size", "128") == MU_OK);
	CHECK_TEXT(v.network, "lenet");
	CHECK(v.batch == 128);
	CHECK(mu_options_given(&o, "network") && mu_options_given(&o, "batch-size") &&
	      !mu_options_given(&o, "lr"));
	mu_options_release(&o);

	CHECK(parse(&o, &v, "--info", "--seed", "-5") == MU_OK); /* a negative number is a value */
	CHECK(v.info && !v.infer && v.seed == -5);
	mu_options_release(&o);

	/* '_' is a dash in names only. */
	CHECK(parse(&o, &v, "--kv_store", "dist_sync", "--lr=1e-3") == MU_OK);
	CHECK_TEXT(v.store, "dist_sync");
	CHECK(v.lr == 1e-3);
	mu_options_release(&o);

	/* The last one wins; after '=' anything is a value. */
	CHECK(parse(&o, &v, "--lr=1", "--lr=2", "--data-dir=--a=b") == MU_OK);
	CHECK(v.lr == 2);
	CHECK_TEXT(v.data_dir, "--a=b");
	mu_options_release(&o);

	CHECK(parse(&o, &v, "--data-dir", "", NULL) == MU_OK);
	CHECK_TEXT(v.data_dir, "");
	mu_options_release(&o);
}

static void test_abbreviations(void)
{
	struct mu_options o;
	struct values v;

	CHECK(parse(&o, &v, "--batch", "7", NULL) == MU_OK);
	CHECK(v.batch == 7);
	mu_options_release(&o);
	CHECK(parse(&o, &v, "--num_e=3", NULL, NULL) == MU_OK);
	CHECK(v.epochs == 3);
	mu_options_release(&o);
	/* A whole name is never ambiguous, although it begins another. */
	CHECK(parse(&o, &v, "--lr", "0.5", NULL) == MU_OK);
	CHECK(v.lr == 0.5 && v.factor == 0.1);
	mu_options_release(&o);
	CHECK(parse(&o, &v, "--lr-", "0.5", NULL) == MU_OK);
	CHECK(v.factor == 0.5);
	mu_options_release(&o);
	CHECK(parse(&o, &v, "--lr", "0.5", "-i") == MU_OK);
	CHECK(v.info && mu_options_given(&o, "info"));
	mu_options_release(&o);
}

/* Another name or word is as the one it stands for. */
static void test_aliases(void)
{
	struct mu_options o;
	struct values v;

	CHECK(parse(&o, &v, "--epochs", "3", "--network=conv") == MU_OK);
	CHECK(v.epochs == 3 && mu_options_given(&o, "num-epochs"));
	CHECK_TEXT(v.network, "lenet");
	CHECK(!mu_options_given(&o, "batch-size"));
	mu_options_release(&o);
	CHECK(parse(&o, &v, "--pass=4", "--network", "tiny") == MU_OK);
	CHECK(v.epochs == 4 && v.batch == 2 && mu_options_given(&o, "batch-size"));
	CHECK_TEXT(v.network, "mlp");
	CHECK(mu_options_set(&o, "epochs", "5") == MU_OK && v.epochs == 5);
	CHECK(mu_options_set(&o, "info", NULL) == MU_OK && v.info);
	CHECK(mu_options_set(&o, "no-info", NULL) == MU_OK && !v.info);
	CHECK(mu_options_set(&o, "info", "true") == MU_OK && v.info);
	CHECK(mu_options_set(&o, "no-info", "1") == MU_ERR_USAGE);
	CHECK(mu_options_set(&o, "epochs", NULL) == MU_ERR_USAGE);
	CHECK(mu_options_set(&o, "nothing", "1") == MU_ERR_USAGE);
	mu_trace_clear();
	mu_options_release(&o);
}

/* A flag, and a number that is a switch: --x, --no-x, --x 1, --x=0. */
static void test_switches(void)
{
	static const struct {
		const char *a, *b, *c;
		long benchmark;
		bool info;
	} cases[] = {
		{NULL, NULL, NULL, 1, false},
		{"--no-benchmark", "--info", NULL, 0, true},
		{"--no-bench", NULL, NULL, 0, false},
		{"--benchmark", "--seed", "3", 1, false},
		{"--benchmark", "0", "--info", 0, true},
		{"--benchmark=0", "--info", "--no-info", 0, false},
		{"--benchmark", "-1", "--info=1", -1, true},
		{"--info", "0", "--benchmark=false", 0, false},
		{"--info=true", "--no_benchmark", "--benchmark", 1, true},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct mu_options o;
		struct values v;

		CHECK(parse(&o, &v, cases[i].a, cases[i].b, cases[i].c) == MU_OK);
		if (!CHECK(v.benchmark == cases[i].benchmark && v.info == cases[i].info))
			fprintf(stderr, "    case %zu: %ld %d\n", i, v.benchmark, v.info);
		mu_options_release(&o);
	}
}

/* These words must be refused with a message that holds all the parts. */
static void check_refused(const char *a, const char *b, const char *part1, const char *part2,
			  const char *part3)
{
	struct mu_options o;
	struct values v;

	if (!CHECK(parse(&o, &v, a, b, NULL) == MU_ERR_USAGE))
		fprintf(stderr, "    for %s %s\n", a, b ? b : "");
	CHECK_HAS(mu_trace_message(), part1);
	CHECK_HAS(mu_trace_message(), part2);
	CHECK_HAS(mu_trace_message(), part3);
	mu_options_release(&o);
	mu_trace_clear();
}

static void test_errors(void)
{
	check_refused("--batch-size", "0", "--batch-size", "0 is out of range",
		      "from 1 to 1000000");
	check_refused("--batch-size=1000001", NULL, "--batch-size", "1000001", "from 1 to 1000000");
	check_refused("--num-epochs", "-1", "--num-epochs", "-1", "at least 0");
	check_refused("--lr", "100.5", "--lr", "100.5", "from 0 to 100");
	check_refused("--batch-size", "12x", "--batch-size", "12x", "whole number");
	check_refused("--batch-size", "1.5", "--batch-size", "1.5", "whole number");
	check_refused("--batch-size", "", "--batch-size", "\"\"", "whole number");
	check_refused("--seed", "99999999999999999999", "--seed", "99999999999999999999",
		      "out of range");
	check_refused("--lr", "0.1.2", "--lr", "0.1.2", "number");
	check_refused("--lr", "nan", "--lr", "nan", "finite number");
	check_refused("--lr", "inf", "--lr", "inf", "finite number");
	check_refused("--lr", "1e999", "--lr", "1e999", "finite number");
	check_refused("--lr=", NULL, "--lr", "\"\"", "number");
	check_refused("--network", "lene", "--network", "\"lene\"", "mlp, lenet");
	check_refused("--network", "", "--network", "\"\"", "mlp, lenet");
	check_refused("--network", "mlp|lenet", "--network", "mlp|lenet", "mlp, lenet");
	check_refused("--batch-size", NULL, "--batch-size", "needs a value", "");
	check_refused("--batch-size", "--info", "--batch-size", "needs a value", "");
	check_refused("--info=2", NULL, "--info", "neither 0 nor 1", "--no-info");
	check_refused("--no-info=1", NULL, "--no-info", "takes no value", "1");
	check_refused("--no-lr", "1", "--no-lr", "is not a switch", "--lr");
	check_refused("--benchmark=2", NULL, "--benchmark", "2 is out of range", "from -1 to 1");
	check_refused("--benchmark", "on", "\"on\"", "belongs to no option", "");
	check_refused("--batchsize", "3", "unknown option", "--batchsize", "--batch-size");
	check_refused("--netwrok", "mlp", "unknown option", "--netwrok", "is --network");
	check_refused("--bath=3", NULL, "unknown option", "--bath", "is --batch-size");
	check_refused("--Lr", "3", "unknown option", "--Lr", "is --lr");
	check_refused("--epochss", "3", "unknown option --epochss", "is --num-epochs", "");
	check_refused("--max-epochs", "3", "unknown option --max-epochs", "--num-epochs is for",
		      "--help lists it");
	check_refused("--foo", "3", "unknown option --foo (--help lists them)", "", "");
	check_refused("--xy", "3", "unknown option --xy (--help lists them)", "", "");
	check_refused("--no-such-thing", NULL, "unknown option --no-such-thing (--help", "", "");
	check_refused("--in", NULL, "ambiguous", "--info", "--infer-shape");
	check_refused("stray", NULL, "\"stray\"", "belongs to no option", "--name");
	check_refused("--info", "stray", "\"stray\"", "belongs to no option", "");
	check_refused("-n", "3", "unknown option -n", "--help", "");
	check_refused("-ii", NULL, "\"-ii\"", "begins with two dashes", "--ii");
	check_refused("--", NULL, "unknown option", "--", "");
	check_refused("--=3", NULL, "unknown option", "--=3", "");
}

/* A default that breaks its own range is found at the start. */
static void test_bad_table(void)
{
	static const struct mu_option bad[] = {
		{.name = "batch-size",
		 .type = MU_OPTION_INT,
		 AT(batch),
		 .initial = "0",
		 .min = 1,
		 .max = 2,
		 .group = "",
		 .help = ""},
	};
	struct mu_options o;
	struct values v;

	CHECK(mu_options_init(&o, bad, 1, &v) != MU_OK);
	CHECK_HAS(mu_trace_message(), "--batch-size");
	mu_options_release(&o);
	mu_trace_clear();
}

static void read_help(const struct mu_options *o, bool all, char *text, size_t nbytes)
{
	FILE *stream = fmemopen(text, nbytes, "w");
	size_t column = 0, widest = 0;

	memset(text, 0, nbytes);
	if (!CHECK(stream))
		return;
	mu_options_help(o, stream, all);
	fclose(stream);
	for (const char *c = text; *c; c++) {
		column = *c == '\n' ? 0 : column + 1;
		widest = column > widest ? column : widest;
	}
	CHECK(widest <= 100);
	CHECK(widest > 80); /* and the columns are used */
}

static void test_help(void)
{
	static char text[8192];
	struct mu_options o;
	struct values v;

	CHECK(parse(&o, &v, NULL, NULL, NULL) == MU_OK);
	read_help(&o, false, text, sizeof text);
	CHECK(strncmp(text, "Model:\n  --network NAME  ", 25) == 0);
	CHECK_HAS(text, "\n\nStore:\n  --kv-store NAME ");
	CHECK_HAS(text, "network to train: mlp, lenet (default mlp)\n");
	CHECK_HAS(text, "  -i, --info                  show what is built in\n");
	CHECK_HAS(text, "(default 64)");
	CHECK_HAS(text, "  --benchmark                 random data (on; off by --no-benchmark)\n");
	CHECK(!strstr(text, "infer-shape") && !strstr(text, "lr-factor"));
	CHECK(strstr(text, "batch-size") < strstr(text, "kv-store")); /* groups stay together */
	read_help(&o, true, text, sizeof text);
	CHECK_HAS(text, "infer-shape");
	CHECK_HAS(text, "  --lr-factor-of-a-very-long-name X\n"
			"                              factor (default 0.1)\n");
	mu_options_release(&o);
}

static void test_describe(void)
{
	static const char want[] =
		"network=mlp, kv_store=none, batch_size=64, num_epochs=10, seed=0, lr=0.25, "
		"lr_factor_of_a_very_long_name=0.1, data_dir=none, info=true, benchmark=1, "
		"infer_shape=false";
	char text[512];
	struct mu_options o;
	struct values v;

	CHECK(parse(&o, &v, "--info", "--lr=0.25", NULL) == MU_OK);
	mu_options_describe(&o, text, sizeof text);
	CHECK_TEXT(text, want);
	memset(text, 'x', sizeof text);
	mu_options_describe(&o, text, 20);
	CHECK_TEXT(text, "network=mlp, kv_sto");
	CHECK(text[20] == 'x');
	mu_options_release(&o);
}

/* An empty word among the choices: the option may stand without one. */
static void test_optional_word(void)
{
	static const struct mu_option three[] = {
		{.name = "summary",
		 .type = MU_OPTION_STRING,
		 AT(network),
		 .choices = "|dot",
		 .group = "Other",
		 .help = "[dot]  show it"},
		{.name = "profile",
		 .type = MU_OPTION_STRING,
		 AT(network),
		 .choices = "|",
		 .group = "Other",
		 .help = "[FILE]  write it"},
		{.name = "info", FLAG(info), .group = "Other", .help = "flag"},
	};
	char name[] = "trainer", summary[] = "--summary", info[] = "--info", dot[] = "dot",
	     svg[] = "svg", profile[] = "--profile";
	struct {
		char *argv[3];
		int argc;
		enum mu_status st;
		const char *value;
	} const cases[] = {
		{{name, summary, dot}, 3, MU_OK, "dot"},
		{{name, summary, info}, 3, MU_OK, ""},
		{{name, info, summary}, 3, MU_OK, ""},
		{{name, summary, svg}, 3, MU_ERR_USAGE, NULL},
		{{name, profile, svg}, 3, MU_OK, "svg"},
		{{name, profile, info}, 3, MU_OK, ""},
		{{name, info}, 2, MU_OK, NULL},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct mu_options o;
		struct values v;

		if (!CHECK(mu_options_init(&o, three, 3, &v) == MU_OK))
			return;
		CHECK(mu_options_parse(&o, cases[i].argc, cases[i].argv) == cases[i].st);
		if (cases[i].value)
			CHECK_TEXT(v.network, cases[i].value);
		else if (cases[i].st != MU_OK)
			CHECK_HAS(mu_trace_message(), "choose one of: dot");
		else
			CHECK(v.network == NULL);
		mu_trace_clear();
		mu_options_release(&o);
	}
}

int main(void)
{
	test_defaults();
	test_values();
	test_optional_word();
	test_abbreviations();
	test_aliases();
	test_switches();
	test_errors();
	test_bad_table();
	test_help();
	test_describe();
	return check_failures() ? 1 : 0;
}
