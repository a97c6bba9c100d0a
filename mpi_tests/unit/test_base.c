/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Status and trace, log, clocks, memory. */
#include <muster/base.h>

#include <pthread.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/check.h"
#include "../lib/scratch.h"

static enum mu_status inner(int value)
{
	enum mu_status st = MU_OK;

	if (value > 3)
		MU_FAIL(MU_ERR_FORMAT, "value %d is above %d", value, 3);
out:
	return st;
}

static enum mu_status outer(int value)
{
	enum mu_status st = MU_OK;

	MU_TRY(inner(value));
out:
	return st;
}

static enum mu_status deep(int n)
{
	enum mu_status st = MU_OK;

	MU_TRY(n > 0 ? deep(n - 1) : inner(4));
out:
	return st;
}

static void test_trace(void)
{
	static const struct {
		enum mu_status st;
		int number;
		bool final;
	} ends[] = {
		{MU_ERR_IO, ENOENT, true},  {MU_ERR_IO, EACCES, true},  {MU_ERR_IO, 0, true},
		{MU_ERR_IO, ENOSPC, false}, {MU_ERR_IO, EBUSY, false},  {MU_ERR_IO, EIO, false},
		{MU_ERR_FORMAT, 0, true},   {MU_ERR_USAGE, EIO, true},  {MU_ERR_MEMORY, 0, true},
		{MU_ERR_PEER, 0, false},    {MU_ERR_TIMEOUT, 0, false}, {MU_ERR_MPI, 0, false},
	};
	char text[16384] = "";
	FILE *stream = fmemopen(text, sizeof text, "w");

	mu_trace_clear();
	CHECK_TEXT(mu_trace_message(), "");
	CHECK(outer(3) == MU_OK);
	CHECK_TEXT(mu_trace_message(), "");
	CHECK(outer(5) == MU_ERR_FORMAT);
	CHECK_TEXT(mu_trace_message(), "value 5 is above 3");
	mu_trace_print(stream, "worker 1 (rank 2, host)");
	CHECK_HAS(text, "worker 1 (rank 2, host): error: value 5 is above 3 (wrong file format)\n");
	CHECK_HAS(text, "test_base.c:");
	CHECK_HAS(text, " in inner(value)\n");
	fclose(stream);

	/* A message may be made from the one that it replaces. */
	mu_trace_start(MU_ERR_IO, __FILE__, __LINE__, "file x: %s", mu_trace_message());
	CHECK_TEXT(mu_trace_message(), "file x: value 5 is above 3");
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		errno = ends[i].number;
		mu_trace_start(ends[i].st, __FILE__, __LINE__, "case %zu", i);
		errno = 0;
		CHECK(mu_trace_is_final() == ends[i].final);
	}
	mu_trace_clear();
	CHECK_TEXT(mu_trace_message(), "");

	/* More places than are kept. */
	stream = fmemopen(text, sizeof text, "w");
	CHECK(deep(100) == MU_ERR_FORMAT);
	mu_trace_print(stream, NULL);
	CHECK(strncmp(text, "error: value 4", 14) == 0);
	CHECK_HAS(text, "more places");
	fclose(stream);
	mu_trace_clear();

	/* A place without a message. */
	mu_trace_add(MU_ERR_PEER, "x.c", 1, "f()");
	CHECK_TEXT(mu_trace_message(), mu_status_name(MU_ERR_PEER));
	mu_trace_clear();
	for (int st = MU_OK; st <= MU_ERR_TIMEOUT; st++)
		CHECK(strlen(mu_status_name((enum mu_status)st)) > 1);
	CHECK_TEXT(mu_status_name((enum mu_status)1000), "unknown status");
}

static void test_log(void)
{
	char line[20000] = "", *big;
	FILE *stream = tmpfile();
	int year, month, day, hour, minute, second, milli;

	if (!CHECK(stream))
		return;
	mu_log_configure(&(struct mu_log_config){
		.stream = stream, .level = MU_LOG_WARN, .prefix = "Node[7]"});
	CHECK(mu_log_level() == MU_LOG_WARN);
	mu_log_info("dropped");
	mu_log_warn("kept %d", 1);
	mu_log_configure(
		&(struct mu_log_config){.stream = stream, .level = MU_LOG_INFO, .time = true});
	mu_log_info("timed");
	big = malloc(12000);
	if (CHECK(big)) {
		memset(big, 'x', 11999);
		big[11999] = '\0';
		mu_log_info("%s", big);
	}
	rewind(stream);
	CHECK(fgets(line, sizeof line, stream));
	CHECK_TEXT(line, "Node[7] warning: kept 1\n");
	CHECK(fgets(line, sizeof line, stream));
	CHECK(sscanf(line, "%4d-%2d-%2d %2d:%2d:%2d,%3d timed", &year, &month, &day, &hour, &minute,
		     &second, &milli) == 7);
	CHECK(strlen(line) == strlen("2026-01-31 12:00:00,123 timed\n"));
	CHECK(fgets(line, sizeof line, stream));
	CHECK_HAS(line, "x ...\n"); /* too long: cut, and marked */
	CHECK(!fgets(line, sizeof line, stream));
	free(big);
	mu_log_configure(&(struct mu_log_config){.level = MU_LOG_INFO});
	fclose(stream);
}

/* The lines of a stream in the plain form, and those of a file beside it. */
static void test_log_forms(void)
{
	FILE *stream = tmpfile(), *file = tmpfile();
	char text[512] = "";

	if (!CHECK(stream && file))
		return;
	mu_log_configure(&(struct mu_log_config){
		.stream = stream, .level = MU_LOG_INFO, .plain = true, .colour = true});
	CHECK(mu_log_add_file(&(struct mu_log_config){
		      .stream = file, .level = MU_LOG_DETAIL, .prefix = "Node[0]"}) == MU_OK);
	mu_log_status("status");
	mu_log_mxnet("Epoch[0]");
	mu_log_plain("epoch 1");
	mu_log_detail("detail");
	mu_log_in(MU_LOG_FILES, MU_LOG_ERROR, "why");
	mu_log_status("");
	mu_log_warn("w");
	rewind(file);
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	CHECK_TEXT(text, "Node[0] Epoch[0]\nNode[0] detail\nNode[0] error: why\n"
			 "Node[0] warning: w\n");
	mu_log_close_files();
	rewind(stream);
	text[fread(text, 1, sizeof text - 1, stream)] = '\0';
	CHECK_TEXT(text, "\r\033[Kstatus\r\033[Kepoch 1\nstatus\r\033[K"
			 "\033[1;33mwarning:\033[0m w\n");
	mu_log_configure(&(struct mu_log_config){.level = MU_LOG_INFO});
	mu_log_status(NULL);
	fclose(stream);
}

/* The text below the log: replaced, written anew below each line, at last a line of its own. */
static void test_log_status(void)
{
	static const char expected[] = "\r\033[Kone\r\033[Ktwo\r\033[Kline\ntwo\nend\n";
	char text[sizeof expected + 8] = "";
	FILE *stream = tmpfile();

	if (!CHECK(stream))
		return;
	mu_log_configure(&(struct mu_log_config){.stream = stream, .level = MU_LOG_INFO});
	mu_log_status(NULL); /* there is none */
	mu_log_status("one");
	mu_log_status("two");
	mu_log_info("line");
	mu_log_status(NULL);
	mu_log_info("end");
	rewind(stream);
	text[fread(text, 1, sizeof text - 1, stream)] = '\0';
	CHECK_TEXT(text, expected);
	mu_log_configure(&(struct mu_log_config){.level = MU_LOG_INFO});
	fclose(stream);
}

static void spend(double seconds)
{
	for (double start = mu_now(); mu_now() - start < seconds;)
		;
}

/* Inside a push, an update: each second counts once. */
static void test_nested_clocks(void)
{
	double start = mu_now(), inside;

	mu_clock_reset();
	mu_clock_start(MU_CLOCK_PUSH);
	spend(0.01);
	inside = mu_now();
	mu_clock_start(MU_CLOCK_UPDATE);
	spend(0.03);
	mu_clock_stop(MU_CLOCK_UPDATE);
	inside = mu_now() - inside;
	spend(0.01);
	mu_clock_stop(MU_CLOCK_PUSH);
	CHECK(mu_clock_seconds(MU_CLOCK_PUSH) >= 0.02);
	CHECK(mu_clock_seconds(MU_CLOCK_UPDATE) >= 0.03);
	CHECK(mu_clock_seconds(MU_CLOCK_UPDATE) <= inside);
	CHECK(mu_clock_seconds(MU_CLOCK_PUSH) + mu_clock_seconds(MU_CLOCK_UPDATE) <=
	      mu_now() - start);
	CHECK(mu_clock_seconds(MU_CLOCK_PUSH) <= mu_now() - start - 0.03);
}

/* The clock outside is paused while the one inside runs: three spans, one after the other. */
static void test_spans(void)
{
	enum { ROOM = 4 };
	struct mu_span s[ROOM];

	mu_clock_mark(7);
	mu_spans_start(s, ROOM);
	CHECK(mu_spans_wanted());
	mu_clock_start(MU_CLOCK_PUSH);
	mu_clock_mark(8);
	mu_clock_start(MU_CLOCK_UPDATE);
	mu_clock_stop(MU_CLOCK_UPDATE);
	mu_clock_stop(MU_CLOCK_PUSH);
	mu_spans_add(MU_SPAN_STEP, 3, 1, 2);
	CHECK(mu_spans_stop() == 4);
	CHECK(!mu_spans_wanted());
	CHECK(s[0].what == MU_CLOCK_PUSH && s[0].which == 7);
	CHECK(s[1].what == MU_CLOCK_UPDATE && s[1].which == 8);
	CHECK(s[2].what == MU_CLOCK_PUSH && s[2].which == 7);
	CHECK(s[3].what == MU_SPAN_STEP && s[3].which == 3 && s[3].begin == 1 && s[3].end == 2);
	CHECK(s[0].begin <= s[0].end && s[0].end <= s[1].begin && s[1].end <= s[2].begin);

	mu_spans_start(s, 1); /* no room for the second one */
	mu_clock_start(MU_CLOCK_PULL);
	mu_clock_stop(MU_CLOCK_PULL);
	mu_spans_add(MU_SPAN_STEP, 4, 1, 2);
	CHECK(mu_spans_stop() == 1);
	CHECK(s[0].what == MU_CLOCK_PULL && s[0].which == 8);
	mu_spans_add(MU_SPAN_STEP, 5, 1, 2);
	CHECK(s[0].what == MU_CLOCK_PULL && s[1].what == MU_CLOCK_UPDATE);
	mu_clock_mark(-1);
}

static void test_clock(void)
{
	double t = mu_now();

	mu_clock_reset();
	CHECK(mu_clock_seconds(MU_CLOCK_PUSH) == 0);
	for (int i = 0; i < 2; i++) {
		mu_clock_start(MU_CLOCK_PUSH);
		spend(0.01);
		mu_clock_stop(MU_CLOCK_PUSH);
	}
	CHECK(mu_clock_seconds(MU_CLOCK_PUSH) >= 0.02);
	CHECK(mu_clock_seconds(MU_CLOCK_PUSH) <= mu_now() - t);
	CHECK(mu_clock_seconds(MU_CLOCK_PULL) == 0);
	mu_clock_reset();
	CHECK(mu_clock_seconds(MU_CLOCK_PUSH) == 0);
	for (int i = 0; i < MU_CLOCK_N; i++)
		CHECK(mu_clock_name((enum mu_clock)i) != NULL);
}

static void test_memory(void)
{
	static const size_t sizes[] = {0, 1, 15, 16, 17, 1000, 300000};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		float *x;
		size_t align = sizes[i] * sizeof *x >= 1 << 20 ? 4096 : MU_ALIGN, bad = 0;

		if (!CHECK(MU_ALLOC(x, sizes[i], "test") == MU_OK))
			continue;
		CHECK((uintptr_t)x % align == 0);
		for (size_t j = 0; j < sizes[i]; j++)
			bad += x[j] != 0;
		CHECK(bad == 0);
		mu_free(x);
	}
	CHECK(mu_pad(0) == 0 && mu_pad(1) == 16 && mu_pad(16) == 16 && mu_pad(17) == 32);
}

static void test_memory_refused(void)
{
	void *p = &p;

	CHECK(mu_alloc(&p, SIZE_MAX, "weights") == MU_ERR_MEMORY);
	CHECK(p == NULL);
	CHECK_HAS(mu_trace_message(), "weights");
	mu_trace_clear();
	mu_free(NULL);
}

/* An error in a thread: its trace as a thing, or NULL if it has no error. */
static void *fail_in_thread(void *value)
{
	outer(*(int *)value);
	mu_trace_prefix("thread %d: ", 1);
	return mu_trace_detach();
}

static void test_trace_of_thread(void)
{
	FILE *stream = tmpfile();
	pthread_t thread;
	char text[4096] = "";
	int values[2] = {5, 1};
	void *taken;

	mu_trace_clear();
	for (int i = 0; i < 2; i++) {
		if (!CHECK(pthread_create(&thread, NULL, fail_in_thread, &values[i]) == 0))
			return;
		CHECK(pthread_join(thread, &taken) == 0);
		CHECK((taken != NULL) == (i == 0));
		CHECK_TEXT(mu_trace_message(), i == 0 ? "" : "thread 1: value 5 is above 3");
		mu_trace_attach(taken);
	}
	CHECK_TEXT(mu_trace_message(), "thread 1: value 5 is above 3");
	mu_trace_replace("3", "three");
	mu_trace_replace("thread", "task");
	CHECK_TEXT(mu_trace_message(), "task 1: value 5 is above three");
	mu_trace_print(stream, NULL);
	rewind(stream);
	CHECK(fread(text, 1, sizeof text - 1, stream) > 0);
	CHECK_HAS(text, "in inner(value)");
	fclose(stream);
	mu_free(mu_trace_detach());
	CHECK_TEXT(mu_trace_message(), "");
}

/* Every element of a run, and none beside it. */
static void test_stream(void)
{
	enum { N = 4096 };
	_Alignas(MU_ALIGN) static float in[N], out[N];
	size_t wrong = 0;

	for (size_t i = 0; i < N; i++)
		in[i] = (float)i + 1;
	mu_stream_copy(out + 16, in + 3, 2048);
	mu_stream_end();
	for (size_t i = 0; i < N; i++)
		wrong += out[i] != (i < 16 || i >= 16 + 2048 ? 0 : in[i - 16 + 3]);
	CHECK(wrong == 0);
}

/* ---- limits of control groups, in a folder that stands for the system's ---- */

static char root[SCRATCH_BYTES];

/* root/path with this text, in new folders; NULL: take it away. */
static void put(const char *path, const char *text)
{
	char whole[2 * SCRATCH_BYTES];
	FILE *f;

	snprintf(whole, sizeof whole, "%s/%s", root, path);
	for (char *p = whole + strlen(root) + 1; text && (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		mkdir(whole, 0700);
	}
	if (!text) {
		unlink(whole);
		return;
	}
	f = fopen(whole, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void test_memory_limit(void)
{
	const char *v1 = "sys/fs/cgroup/memory/job_7/step_0/memory.limit_in_bytes";
	char command[2 * SCRATCH_BYTES];

	CHECK(mu_memory_limit("") >= 0 && mu_memory_bytes() > 0);
	CHECK(mu_memory_limit("") == 0 || mu_memory_bytes() <= mu_memory_limit(""));
	if (!CHECK(scratch_make(root)))
		return;
	CHECK(mu_memory_limit(root) == 0); /* no control groups */
	put("proc/self/cgroup", "0::/job_7/step_0\n");
	CHECK(mu_memory_limit(root) == 0);
	put("sys/fs/cgroup/job_7/step_0/memory.max", "max\n");
	CHECK(mu_memory_limit(root) == 0);
	put("sys/fs/cgroup/job_7/memory.max", "3000000\n");
	CHECK(mu_memory_limit(root) == 3000000);
	put("sys/fs/cgroup/job_7/step_0/memory.max", "4000000\n");
	CHECK(mu_memory_limit(root) == 3000000);
	put("sys/fs/cgroup/memory.max", "2000000\n"); /* a container's own */
	CHECK(mu_memory_limit(root) == 2000000);
	put("proc/self/cgroup", "0::/\n");
	CHECK(mu_memory_limit(root) == 2000000);
	put("proc/self/cgroup", "0::/../other\n");
	CHECK(mu_memory_limit(root) == 2000000);
	/* v1, beside a v2 that limits nothing. */
	put("proc/self/cgroup", "9:cpu,cpuacct:/\n4:hugetlb,memory:/job_7/step_0\n0::/\n");
	put("sys/fs/cgroup/memory.max", NULL);
	put(v1, "9223372036854771712\n");
	CHECK(mu_memory_limit(root) == 0);
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "5000000\n");
	CHECK(mu_memory_limit(root) == 5000000);
	put(v1, "1000000\n");
	CHECK(mu_memory_limit(root) == 1000000);
	put("proc/self/cgroup", "4:memory\nnonsense\n\n");
	CHECK(mu_memory_limit(root) == 0);
	snprintf(command, sizeof command, "rm -r '%s'", root);
	CHECK(system(command) == 0);
}

static void test_numbers(void)
{
	char text[128] = "lr 0.050000000000000003, at 1e-05 of 0123456789abcdef, "
			 "17 0.33333333333333331";
	char number[32];

	mu_text_shorten(text);
	CHECK_TEXT(text, "lr 0.05, at 1e-05 of 0123456789abcdef, 17 0.3333333333333333");
	CHECK(mu_stem("a.log", ".log") == 1 && mu_stem("a.b.log", ".log") == 3);
	CHECK(mu_stem(".log", ".log") == 0 && mu_stem("a.lo", ".log") == 0);
	CHECK_TEXT(mu_real_text(0.1 + 0.2, number, sizeof number), "0.30000000000000004");
}

/* Texts of others in messages, in lines of the log, in CSV. */
static void test_foreign_texts(void)
{
	static const char *const cells[][2] = {
		{"cat", "cat"},          {"a,b", "\"a,b\""},     {"say \"x\"", "\"say \"\"x\"\"\""},
		{"=1+1", "\"'=1+1\""},    {"@sum", "\"'@sum\""},   {"-2.5e3", "-2.5e3"},
		{"-rm", "-rm"},      {"+", "\"'+\""},         {"", ""},
	};
	char text[256] = "", small[8];
	FILE *stream = tmpfile();

	CHECK_TEXT(mu_shown("caf\xc3\xa9 \xe7\x8c\xab"), "caf\xc3\xa9 \xe7\x8c\xab");
	CHECK_TEXT(mu_shown("a\tb"), "a\tb");
	CHECK_TEXT(mu_shown("\x1b[2J\a\r\n\x7f"), "\\x1b[2J\\x07\\x0d\\x0a\\x7f");
	CHECK_TEXT(mu_shown("\xff\xc3(\xc2\x9b"), "\\xff\\xc3(\\xc2\\x9b");
	CHECK_TEXT(mu_shown("\xe2\x80\xae" "gpj"), "\\xe2\\x80\\xaegpj"); /* right to left */
	CHECK_TEXT(mu_text_show(small, sizeof small, "abcd\n"), "abcd"); /* no half of one */
	CHECK_TEXT(mu_text_show(small, sizeof small, "abcdef\xc3\xa9"), "abcdef");
	mu_trace_start(MU_ERR_FORMAT, __FILE__, __LINE__, "%s: bad", "a\nx: error: b");
	mu_trace_prefix("%s: ", "\x1b]0;");
	CHECK_TEXT(mu_trace_message(), "\\x1b]0;: a\\x0ax: error\\x3a b: bad");
	if (!CHECK(stream))
		return;
	mu_trace_report(stream, "host\n");
	mu_trace_clear();
	mu_log_configure(&(struct mu_log_config){
		.stream = stream, .level = MU_LOG_INFO, .prefix = "\x1bN"});
	mu_log_info("class %s", "a\nerror: b");
	mu_log_configure(&(struct mu_log_config){.level = MU_LOG_INFO});
	rewind(stream);
	text[fread(text, 1, sizeof text - 1, stream)] = '\0';
	CHECK_TEXT(text, "host\\x0a: error: \\x1b]0;: a\\x0ax: error\\x3a b: bad\n"
			 "\\x1bN class a\\x0aerror\\x3a b\n");
	for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
		rewind(stream);
		mu_text_put_csv(stream, cells[i][0]);
		putc('\0', stream);
		rewind(stream);
		CHECK(fread(text, 1, sizeof text - 1, stream) > 0);
		CHECK_TEXT(text, cells[i][1]);
	}
	fclose(stream);
}

int main(void)
{
	test_numbers();
	test_foreign_texts();
	test_stream();
	test_trace();
	test_trace_of_thread();
	test_log();
	test_log_forms();
	test_log_status();
	test_clock();
	test_nested_clocks();
	test_spans();
	test_memory();
	test_memory_refused();
	test_memory_limit();
	return check_failures() ? 1 : 0;
}
