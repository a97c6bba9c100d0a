/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Every rule about several options, of readers, too: a command line made from its row that breaks
 * it, and one that satisfies it. Words of other programs: aliases, and what is suggested for the
 * rest. */
#include "conf/rules.h"

#include "../lib/check.h"

enum { WORD_BYTES = 256, MOST_WORDS = 8 };

struct line {
	char words[MOST_WORDS][2 * WORD_BYTES];
	char *argv[MOST_WORDS];
	int argc;
};

static void start(struct line *l)
{
	l->argc = 1;
	snprintf(l->words[0], sizeof l->words[0], "trainer");
	l->argv[0] = l->words[0];
}

/* All options, those of all networks, losses and readers among them. */
static struct mu_options all;

static enum mu_status open_all(struct mu_options *o, struct conf *v)
{
	const struct conf_owner none = {.network = NULL};

	*o = (struct mu_options){0};
	return mu_conf_options_open(o, v, &none);
}

static const struct mu_option *find(const char *names)
{
	const size_t n = strcspn(names, "|");

	for (size_t i = 0; i < all.n; i++)
		if (strlen(all.table[i].name) == n && strncmp(all.table[i].name, names, n) == 0)
			return &all.table[i];
	return NULL;
}

/* Is the first word of `word` among the names? */
static bool named(const char *names, const char *word)
{
	const size_t n = strcspn(word, "|");

	for (const char *p = names; p && *p; p += strcspn(p, "|"), p += *p == '|')
		if (strcspn(p, "|") == n && strncmp(p, word, n) == 0)
			return true;
	return false;
}

/* A value that is among them, or is not. false: the option is to be left out. */
static bool choose(const struct mu_option *option, const char *values, bool among, char *text)
{
	const bool number = option->type == MU_OPTION_INT || option->type == MU_OPTION_REAL;
	const bool named = values && *values != '+' && *values != '>' && *values != '!';
	const bool others = values && *values == '!';
	const char *list = others ? values + 1 : values;
	char known[WORD_BYTES];

	if (!values || *values == '+') { /* given, with another value than the default, or not */
		const char *initial = option->initial ? option->initial : "";
		double x = option->min > 0 ? option->min : 1;
		size_t skip;

		mu_option_list(option, known, sizeof known);
		skip = strcspn(known, ",");
		if (strlen(initial) != skip || strncmp(known, initial, skip) != 0)
			skip = 0;
		skip += strspn(known + skip, ", ");
		if (*initial && x == strtod(initial, NULL))
			x = option->max == 1 ? 0 : x + 1;
		if (number)
			snprintf(text, WORD_BYTES, "%g", x);
		else
			snprintf(text, WORD_BYTES, "%.*s",
				 *known ? (int)strcspn(known + skip, ",") : 1,
				 *known ? known + skip : "x");
		return among;
	}
	if (*values == '>') {
		if (among)
			snprintf(text, WORD_BYTES, "%g",
				 option->max <= 1 ? 0.5 : strtod(values + 1, NULL) + 1);
		return among;
	}
	if (named == among || number) {
		snprintf(text, WORD_BYTES, "%.*s", (int)strcspn(list, "|"), list);
		return among;
	}
	/* A word of the list that is none of these. */
	mu_option_list(option, known, sizeof known);
	for (const char *w = known; *w; w += strspn(w, ", ")) {
		const size_t n = strcspn(w, ",");
		bool found = false;

		for (const char *v = list; *v && !found; v += strcspn(v, "|"), v += *v == '|')
			found = strcspn(v, "|") == n && strncmp(v, w, n) == 0;
		snprintf(text, WORD_BYTES, "%.*s", (int)n, w);
		if (!found)
			return true;
		w += n;
	}
	snprintf(text, WORD_BYTES, "x");
	return true;
}

static void add(struct line *l, const struct mu_option *option, const char *values, bool among)
{
	char text[WORD_BYTES];

	if (!choose(option, values, among, text) ||
	    (option->type == MU_OPTION_FLAG && !among))
		return;
	if (option->type == MU_OPTION_FLAG)
		snprintf(l->words[l->argc], sizeof l->words[l->argc], "--%s", option->name);
	else
		snprintf(l->words[l->argc], sizeof l->words[l->argc], "--%s=%s", option->name,
			 text);
	l->argv[l->argc] = l->words[l->argc];
	l->argc++;
}

static bool *fact_of(const struct mu_option_rules *r, void *v, const char *name)
{
	for (size_t i = 0; i < r->n_facts; i++)
		if (strcmp(r->facts[i].name, name) == 0)
			return (bool *)((char *)v + r->facts[i].offset);
	return NULL;
}

/* A row is broken: it is refused; one of mu_conf_void_rules: it is told, and here the line is put
 * into the trace. */
static bool is_broken(const struct mu_options *o, const struct mu_option_rules *r,
		      const struct mu_option_rule *rule)
{
	char line[1024];
	bool broken;

	if (r != &mu_conf_void_rules)
		return mu_option_rule_check(o, r, rule) == MU_ERR_USAGE;
	broken = mu_option_rule_void(o, r, rule, line, sizeof line);
	if (broken)
		mu_trace_start(MU_ERR_USAGE, __FILE__, __LINE__, "%s", line);
	if (broken)
		CHECK_HAS(line, " no effect");
	return broken;
}

/* The rule, with what it is about given, and what it names beside so that it holds or not. */
static void check_row(const struct mu_option_rules *r, const struct mu_option_rule *rule,
		      bool breaks)
{
	const struct mu_option *option = find(rule->option);
	const struct mu_option *other = rule->other ? find(rule->other) : NULL;
	const bool among = (rule->relation == MU_OPTION_EXCLUDES) == breaks;
	bool *fact;
	struct mu_options o;
	struct line l;
	struct conf_void v = {.conf = {.network = NULL}};

	start(&l);
	if (option)
		add(&l, option, rule->values, rule->other ? true : breaks);
	if (other)
		add(&l, other, rule->other_values, among);
	if (!CHECK(open_all(&o, &v.conf) == MU_OK))
		return;
	memset(&v.conf.facts, 0, sizeof v.conf.facts);
	if (!CHECK(mu_options_parse(&o, l.argc, l.argv) == MU_OK))
		fprintf(stderr, "    %s\n", mu_trace_message());
	fact = fact_of(r, &v, rule->option);
	if (fact)
		*fact = true;
	CHECK(option || fact); /* the row names something */
	fact = rule->other ? fact_of(r, &v, rule->other) : NULL;
	if (fact)
		*fact = among;
	CHECK(!rule->other || other || fact);
	if (!CHECK(is_broken(&o, r, rule) == breaks))
		fprintf(stderr, "    %s, %s: %s, breaks %d: %s\n", rule->option,
			rule->other ? rule->other : "", l.argc > 1 ? l.argv[1] : "", breaks,
			mu_trace_message());
	if (breaks && option)
		CHECK_HAS(mu_trace_message(), option->name);
	if (breaks && rule->why)
		CHECK_HAS(mu_trace_message(), rule->why);
	mu_trace_clear();
	mu_options_release(&o);
}

static void check_rules(const struct mu_option_rules *r)
{
	CHECK(r->n > 0);
	for (size_t i = 0; i < r->n; i++) {
		check_row(r, &r->of[i], true);
		check_row(r, &r->of[i], false);
	}
}

/* Each alternative of a row is an option or a fact. */
static void check_names(const struct mu_option_rules *r)
{
	struct conf_void v;

	for (size_t i = 0; i < r->n; i++) {
		const char *lists[] = {r->of[i].option, r->of[i].other};

		for (size_t k = 0; k < 2; k++)
			for (const char *p = lists[k]; p && *p;
			     p += strcspn(p, "|"), p += *p == '|')
				if (!CHECK(find(p) || fact_of(r, &v, p)))
					fprintf(stderr, "    no option and no fact: %s\n", p);
	}
}

/* What follows from the mode is shown as the option that asks for it, not as another that is given
 * and asks for none. */
static void check_mode(void)
{
	char words[][32] = {"trainer", "--conv-algo=direct", "--dump-batch=a.png", "--lr=0.5"};
	char *argv[] = {words[0], words[1], words[2], words[3]};
	struct conf_void v = {.conf = {.network = NULL}};
	struct mu_options o;
	char line[1024] = "";

	if (!CHECK(open_all(&o, &v.conf) == MU_OK))
		return;
	CHECK(mu_options_parse(&o, 4, argv) == MU_OK);
	v.conf.facts.mode = mu_conf_mode_option(&v.conf, mu_conf_mode(&v.conf));
	v.untrained = true;
	CHECK(mu_option_rule_void(&o, &mu_conf_void_rules, mu_conf_void_rules.of, line,
				  sizeof line));
	CHECK_TEXT(line, "--lr 0.5 has no effect with --dump-batch a.png: nothing is trained");
	mu_options_release(&o);
}

static void check_readers(void)
{
	const struct mu_reader *reader;
	size_t n = 0;

	for (size_t i = 0; (reader = mu_input_reader_at(i)); i++) {
		struct mu_option_rules r = {.of = reader->rules};

		while (r.of && r.of[r.n].option)
			r.n++;
		n += r.n;
		if (r.n > 0)
			check_rules(&r);
		check_names(&r);
	}
	CHECK(n > 4);
}

static enum mu_status parse(struct mu_options *o, struct conf *v, const char *a, const char *b)
{
	struct line l;

	start(&l);
	for (size_t i = 0; i < 2; i++) {
		snprintf(l.words[1 + i], sizeof l.words[0], "%s", i ? b : a);
		l.argv[1 + i] = l.words[1 + i];
	}
	mu_trace_clear();
	CHECK(mu_options_init(o, mu_conf_options, mu_conf_n_options, v) == MU_OK);
	return mu_options_parse(o, 3, l.argv);
}

/* PyTorch's words for the same. */
static void check_aliases(void)
{
	static const struct {
		const char *option, *word, *same;
	} rows[] = {
		{"--lr=0.5", "--learning-rate", "0.5"},
		{"--mom=0.5", "--momentum", "0.5"},
		{"--wd=0.5", "--weight-decay", "0.5"},
		{"--num-epochs=7", "--epochs", "7"},
		{"--disp-batches=7", "--print-freq", "7"},
		{"--dtype=float16", "--dtype", "half"},
		{"--dtype=float16", "--dtype", "fp16"},
		{"--dtype=bfloat16", "--dtype", "bf16"},
		{"--dtype=float32", "--dtype", "fp32"},
	};
	char one[8192], two[8192];
	struct mu_options o;
	struct conf v;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CHECK(parse(&o, &v, rows[i].option, "--check") == MU_OK);
		mu_options_describe(&o, one, sizeof one);
		mu_options_release(&o);
		if (!CHECK(parse(&o, &v, rows[i].word, rows[i].same) == MU_OK))
			fprintf(stderr, "    %s: %s\n", rows[i].word, mu_trace_message());
		v.check = true;
		mu_options_describe(&o, two, sizeof two);
		mu_options_release(&o);
		CHECK_TEXT(one, two);
	}
	CHECK(parse(&o, &v, "--optimizer", "adamw") == MU_OK);
	CHECK_TEXT(v.optimizer, "adam");
	CHECK(v.adam_decay == CONF_DECAY_DECOUPLED && mu_options_given(&o, "adam-decay"));
	mu_options_release(&o);
	CHECK(parse(&o, &v, "--arch", "lenet") == MU_OK);
	CHECK_TEXT(v.network, "lenet");
	mu_options_release(&o);
}

/* Errors for words that mean something else here, or nothing. */
static void check_suggestions(void)
{
	static const struct {
		const char *word, *suggested;
	} rows[] = {
		{"--num-workers", "--data-nthreads"},
		{"--workers", "--data-nthreads"},
		{"--num-worker", "--data-nthreads"},
		{"--resume-from", "--resume"},
		{"--output", "--model-prefix"},
		{"--model", "--network"},
		{"--lr-scheduler", "--lr-schedule"},
		{"--learningrate", "--lr"},
		{"--batchsize", "--batch-size"},
		{"--zzz", NULL},
		{"--frobnicate", NULL},
	};
	struct mu_options o;
	struct conf v;
	char want[WORD_BYTES];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CHECK(parse(&o, &v, rows[i].word, "1") == MU_ERR_USAGE);
		snprintf(want, sizeof want, "unknown option %s%s%s", rows[i].word,
			 rows[i].suggested ? "; " : " (--help lists them)", "");
		CHECK_HAS(mu_trace_message(), want);
		snprintf(want, sizeof want, "%s ",
			 rows[i].suggested ? rows[i].suggested : "--help");
		CHECK_HAS(mu_trace_message(), want);
		mu_options_release(&o);
	}
	mu_trace_clear();
}

/* Settle a line of words for a run on random data. */
static enum mu_status settle(struct mu_options *o, struct conf *v, const char *words)
{
	struct line l;
	enum mu_status st = MU_OK;

	start(&l);
	for (const char *p = words; *p; p += strcspn(p, " "), p += *p == ' ') {
		l.argv[l.argc] = l.words[l.argc];
		snprintf(l.words[l.argc++], sizeof l.words[0], "%.*s", (int)strcspn(p, " "), p);
	}
	mu_trace_clear();
	*o = (struct mu_options){0};
	MU_TRY(mu_conf_options_parse(o, v, l.argc, l.argv));
	MU_TRY(mu_conf_settle(o, &(struct conf_ranks){1, 1}, v));
out:
	return st;
}

#define RUN "--network=mlp --benchmark "

/* One option for all periods of checkpoints, one for where a run resumes. */
static void check_merged(void)
{
	static const struct {
		const char *words;
		long epochs, steps;
		double minutes;
		long load_epoch;
	} good[] = {
		{RUN "--model-prefix=P", 1, 0, 0, 0},
		{RUN "--model-prefix=P --save-every=2", 2, 0, 0, 0},
		{RUN "--model-prefix=P --save-every=500steps", 1, 500, 0, 0},
		{RUN "--model-prefix=P --save-every=3epochs,1step,1.5min", 3, 1, 1.5, 0},
		{RUN "--model-prefix=P --save-steps=7 --save-minutes=2", 1, 7, 2, 0},
		{RUN "--model-prefix=P --resume=3", 1, 0, 0, 3},
		{RUN "--model-prefix=P --load-epoch=3", 1, 0, 0, 3},
	};
	static const char *const bad[][2] = {
		{RUN "--save-every=2", "--save-every needs --model-prefix"},
		{RUN "--model-prefix=P --save-every=0", "\"0\" is no period"},
		{RUN "--model-prefix=P --save-every=2,1.5steps", "\"1.5steps\" is no period"},
		{RUN "--model-prefix=P --save-every=5hours", "\"5hours\" is no period"},
		{RUN "--model-prefix=P --save-every=2,", "\"\" is no period"},
		{RUN "--model-parallel=x", "--model-parallel x: a number from 0 to 256"},
		{RUN "--model-parallel-ranks=0", "--model-parallel-ranks 0: a number from 1"},
		{RUN "--model-parallel=a=cpu:0 --group2dev=b=cpu:0", "use one of them"},
		{RUN "--resume=3", "--resume 3 needs --model-prefix"},
		{RUN "--load-epoch=3", "--load-epoch 3 needs --model-prefix"},
		{RUN "--model-prefix=P --resume=3 --load-epoch=2", "--resume 3 with --load-epoch"},
	};
	struct mu_options o;
	struct conf v;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		if (!CHECK(settle(&o, &v, good[i].words) == MU_OK) ||
		    !CHECK(v.save_period == good[i].epochs && v.save_steps == good[i].steps &&
			   v.save_minutes == good[i].minutes &&
			   v.load_epoch == good[i].load_epoch))
			fprintf(stderr, "    %s: %s\n", good[i].words, mu_trace_message());
		mu_options_release(&o);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CHECK(settle(&o, &v, bad[i][0]) == MU_ERR_USAGE);
		CHECK_HAS(mu_trace_message(), bad[i][1]);
		mu_options_release(&o);
	}
	mu_trace_clear();
}

/* What a log says of old names. */
static void check_notes(void)
{
	static const char *const rows[][2] = {
		{"--save-steps=500", "--save-steps 500 is now --save-every 500steps"},
		{"--save-minutes=1.5", "--save-minutes 1.5 is now --save-every 1.5min"},
		{"--save-period=2", "--save-period 2 is now --save-every 2"},
		{"--load-epoch=3", ""},
		{"--save-every=2", ""},
	};
	char note[WORD_BYTES], text[WORD_BYTES];
	struct mu_options o;
	struct conf v;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		*note = '\0';
		CHECK(parse(&o, &v, rows[i][0], "--check") == MU_OK);
		for (size_t k = 0; k < o.n; k++)
			if (mu_options_note(&o, k, text, sizeof text))
				snprintf(note, sizeof note, "%s", text);
		CHECK_TEXT(note, rows[i][1]);
		mu_options_release(&o);
	}
}

/* No word stands for two options, or hides a name; networks and losses have theirs apart. */
static void check_words(void)
{
	for (size_t i = 0; i < all.n; i++) {
		const char *const lists[] = {all.table[i].aliases, all.table[i].similar};

		for (size_t k = 0; k < 2 && !all.table[i].whole; k++)
			for (const char *p = lists[k]; p && *p;
			     p += strcspn(p, "|"), p += *p == '|') {
				size_t n = 0;

				for (size_t j = 0; j < all.n; j++) {
					if (all.table[j].whole)
						continue;
					n += named(all.table[j].aliases, p);
					n += named(all.table[j].similar, p);
				}
				if (!CHECK(n == 1 && !find(p)))
					fprintf(stderr, "    %s\n", p);
			}
	}
}

int main(void)
{
	static struct conf values;

	if (!CHECK(open_all(&all, &values) == MU_OK))
		return 1;
	check_aliases();
	check_suggestions();
	check_words();
	check_merged();
	check_notes();
	check_rules(&mu_conf_rules);
	check_rules(&mu_conf_job_rules);
	check_rules(&mu_conf_void_rules);
	check_names(&mu_conf_rules);
	check_names(&mu_conf_void_rules);
	check_names(&mu_conf_job_rules);
	check_readers();
	check_mode();
	mu_options_release(&all);
	return check_failures() ? 1 : 0;
}
