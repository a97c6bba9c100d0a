/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base: what every folder builds on. Status and error trace, log, options table, clocks, memory,
 * random numbers.
 *
 * Errors climb and collect places. A function that can fail returns enum mu_status, starts with
 * `enum mu_status st = MU_OK;`, has one label `out:` and frees below it. The place that detects an
 * error calls MU_FAIL with a message that names the thing and the remedy. Every caller passes the
 * error on with MU_TRY. Only main prints the trace and ends the job.
 *
 * Nothing here knows MPI. The only mutable globals of the library are the trace, the log, the
 * clocks, and the list of open stores of keys.
 */
#ifndef MUSTER_BASE_H
#define MUSTER_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Headers can be used from C++. */
#ifdef __cplusplus
#define MU_BEGIN_C extern "C" {
#define MU_END_C }
#else
#define MU_BEGIN_C
#define MU_END_C
#endif

MU_BEGIN_C

/* ---- status and error trace ---- */

enum mu_status {
	MU_OK = 0,
	MU_ERR_USAGE,    /* an option, or a combination of options, is not allowed: exit status 2 */
	MU_ERR_ARGUMENT, /* a caller broke a function's contract */
	MU_ERR_MEMORY,   /* not enough memory */
	MU_ERR_IO,       /* a file could not be opened, read or written */
	MU_ERR_FORMAT,   /* the contents of a file are wrong */
	MU_ERR_MPI,      /* an MPI call failed */
	MU_ERR_DEVICE,   /* a device library (oneDNN, CUDA, ...) failed */
	MU_ERR_NUMERIC,  /* a value is not finite, or differs between ranks */
	MU_ERR_UNSUPPORTED, /* known, but not in this build or not for these sizes */
	MU_ERR_PEER,        /* another rank reported an error */
	MU_ERR_TIMEOUT,     /* another rank did not answer in time */
	MU_ERR_HARDWARE,    /* a GPU or its driver failed, which this program cannot mend */
};

const char *mu_status_name(enum mu_status st);

/* Start a trace with a message and the place of the error; returns st. Called by MU_FAIL. */
enum mu_status mu_trace_start(enum mu_status st, const char *file, int line, const char *format,
			      ...) __attribute__((format(printf, 4, 5)));
/* Add a place to the trace. Called by MU_TRY. */
void mu_trace_add(enum mu_status st, const char *file, int line, const char *call);
/* Message of the current trace ("" if there is none); print the whole trace, several lines. */
const char *mu_trace_message(void);
/* Would the call that began the trace fail again, unless the user changes something? For an error
 * of a file errno decides: no for a full disk, yes for a missing file. */
bool mu_trace_is_final(void);
void mu_trace_print(FILE *stream, const char *who);
/* Print the error as its user needs it: one line for what he can mend, such as a missing file; for
 * errors of MPI, of devices and of this program the whole trace. _configure: always the whole
 * trace; with colours. */
void mu_trace_report(FILE *stream, const char *who);
void mu_trace_configure(bool whole, bool colour);
/* Place i of the current trace, "src/a.c:12 in call(x)"; false: there are no more. */
bool mu_trace_place(size_t i, char *text, size_t nbytes);
void mu_trace_clear(void);
/* Insert text before the message of the current trace. */
void mu_trace_prefix(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Replace every occurrence of a text in the message. */
void mu_trace_replace(const char *from, const char *to);
/* While held, the trace of this thread stays as it is: what is tried after an error does not
 * replace its cause. */
void mu_trace_hold(bool held);
/* Number of ranks that know of the error: set by mu_agree. 0: a new trace, or none. */
void mu_trace_set_known(int ranks);
int mu_trace_known(void);
/*
 * Each thread has its own trace. _detach removes the trace of the calling thread, so that another
 * thread can use it; it returns NULL if there is no trace or no memory. _attach makes a detached
 * trace the calling thread's own and frees it; NULL changes nothing. A detached trace that no
 * thread uses is freed by mu_free.
 */
struct mu_trace;
struct mu_trace *mu_trace_detach(void);
void mu_trace_attach(struct mu_trace *detached);

#define MU_FAIL(status, ...) \
	do { \
		st = mu_trace_start((status), __FILE__, __LINE__, __VA_ARGS__); \
		goto out; \
	} while (0)

#define MU_TRY(call) \
	do { \
		st = (call); \
		if (st != MU_OK) { \
			mu_trace_add(st, __FILE__, __LINE__, #call); \
			goto out; \
		} \
	} while (0)

/* ---- log ---- */

enum mu_log_level {
	MU_LOG_ERROR,
	MU_LOG_WARN,
	MU_LOG_RESULT, /* how the run ended: the last line that --quiet leaves */
	MU_LOG_INFO,
	MU_LOG_DETAIL, /* what nobody acts on: for files, and for --verbose 1 */
	MU_LOG_DEBUG,
};

/*
 * The log has two forms: MXNet's, for files and for programs that read it, and the plain one, which
 * is short, for a person at a terminal. Most lines are in both.
 */
enum mu_log_form { MU_LOG_ANY, MU_LOG_MXNET, MU_LOG_PLAIN, MU_LOG_FILES };

/* How a destination is written. */
struct mu_log_config {
	FILE *stream;            /* NULL = stderr */
	enum mu_log_level level; /* lines above this level are dropped */
	bool plain;              /* the form; files have MXNet's */
	bool time;               /* start each line with date and time: "2026-01-31 12:00:00,123" */
	bool colour;             /* mark warnings by colour */
	const char *prefix; /* text after the time, e.g. "Node[0]"; NULL or "" = none. Copied. */
};

void mu_log_configure(const struct mu_log_config *config);
enum mu_log_level mu_log_level(void);
/*
 * A file, beside the stream of _configure, that has every line from then on: at most two. The log
 * owns it, and closes it by _close_files.
 */
enum mu_status mu_log_add_file(const struct mu_log_config *config);
void mu_log_close_files(void);
/*
 * Write a text to a stream that other processes may read, without waiting for a reader that does
 * not read: what does not fit for some seconds is dropped, and so is what follows until there is
 * room. false: it is not written.
 */
bool mu_log_write(FILE *stream, const char *text, size_t nbytes);
/* Has the log's reader ended (EPIPE)? The log goes on at the terminal of the process, if it has
 * one, and in files. */
bool mu_log_is_cut(void);

/* Write one line, by one write call, so that lines of several ranks do not mix. The format has no
 * newline. */
void mu_log(enum mu_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same where the log has this form; FILES: in files alone. */
void mu_log_in(enum mu_log_form form, enum mu_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Show a status line below the log, if the stream is a terminal. It replaces the previous status
 * line. "": no status line. NULL: the previous one stays in the log. */
void mu_log_status(const char *text);
#define mu_log_info(...) mu_log(MU_LOG_INFO, __VA_ARGS__)
#define mu_log_warn(...) mu_log(MU_LOG_WARN, __VA_ARGS__)
#define mu_log_detail(...) mu_log(MU_LOG_DETAIL, __VA_ARGS__)
#define mu_log_mxnet(...) mu_log_in(MU_LOG_MXNET, MU_LOG_INFO, __VA_ARGS__)
#define mu_log_plain(...) mu_log_in(MU_LOG_PLAIN, MU_LOG_INFO, __VA_ARGS__)

/*
 * ---- streams.c: of a program, in main. _begin comes first: a closed standard stream stays closed,
 * and a file that grows too large (ulimit -f) is an error of that file. _end: 1, and a message,
 * where the exit status is 0 and the standard output could not be written; else the status. ----
 */
void mu_streams_begin(void);
int mu_streams_end(const char *program, int exit_status);

/* ---- options: one table gives the struct's values, the parser, --help, the log header ---- */

enum mu_option_type {
	MU_OPTION_FLAG,   /* bool member; on the command line without a value: --info */
	MU_OPTION_INT,    /* long member */
	MU_OPTION_REAL,   /* double member */
	MU_OPTION_STRING, /* const char * member, NULL without a default; points into argv or the
			     table */
	MU_OPTION_WORD,   /* enum member: index of the word in `words`; 0 without a default */
};

/* Another word for a value; also: a second option that the word sets, or NULL. */
struct mu_option_spelling {
	const char *word, *value, *also, *also_value;
};

/* Does a checkpoint record the value of an option? */
enum mu_option_record {
	MU_UNRECORDED,
	MU_RECORD_IDENTITY, /* yes; to resume with another value needs --override */
	MU_RECORD_TRAINING, /* the same if the run trains; else as TOLD */
	MU_RECORD_TOLD,     /* yes; another value is reported */
	/* Of networks: what parameters are useless without. */
	MU_RECORD_SHAPES, /* as TOLD: the shapes of arrays follow from it */
	MU_RECORD_UNSEEN, /* as IDENTITY: no array's shape depends on it */
	MU_RECORD_NEEDED, /* as UNSEEN, and a file of parameters must say it, or the user */
};

struct mu_option {
	const char *name; /* "batch-size", without dashes */
	const char *aliases; /* other names of exactly the same meaning, "a|b", or NULL */
	const char *similar; /* what other programs call it: the error for such a name suggests this
				option; "a|b", or NULL */
	const struct mu_option_spelling *spellings; /* ends with an empty one; or NULL */
	enum mu_option_type type;
	size_t offset;       /* of the member in the struct of values */
	const char *initial; /* default as text, NULL = none (0, NULL, false) */
	double min, max;     /* allowed range of numbers; both 0 = no limits */
	const char *choices; /* allowed words of a string, "a|b|c"; NULL = any text. "|a|b": the
				word is optional, "" without one; "|": optional, any text */
	const char *(*list_choices)(void); /* in place of choices: tables of layers above have
					      them; or NULL */
	bool others;         /* a string may be another word, too, which the caller checks */
	const char *group;   /* heading in --help */
	const char
		*help; /* one line; METAVAR first in capitals: "N  samples per worker and step" */
	char letter;   /* "-q", "-b 32" for short; 0: none */
	bool advanced; /* shown by --help-all only */
	bool toggle;   /* an INT of 0 and 1 that is a switch: --name, --no-name */
	bool expert;   /* shown on the last pages of --help-all */
	const char *now; /* an old name, which help does not show: what is written today, with the
			    value for '*', "--resume *" */
	bool silent;     /* an old name that needs no note: mu_options_note has none */
	const char *const *words; /* of a WORD, by value; NULL: a value without a word. "": the
				     option may stand alone */
	size_t n_words;
	enum mu_option_record record;
	bool automatic; /* the default is no value: it stands for one that is chosen later */
	bool whole;     /* the name may not be abbreviated: a setting of a part of the program */
	bool trains;    /* it is about training data alone */
};

struct mu_options {
	const struct mu_option *table;
	size_t n;
	void *values; /* the struct that the offsets refer to */
	bool *given;  /* n flags: the option was on the command line; owned */
	struct mu_option *own; /* the table, if it was made for these options: owned; or NULL */
	bool version; /* --version was given, and the table has --help but no --version */
	/* What is to be said of an unknown name, after "--name "; false: nothing. Or NULL. */
	bool (*explain)(const struct mu_options *o, const char *name, char *text, size_t nbytes);
};

/* Set all values to their defaults. */
enum mu_status mu_options_init(struct mu_options *o, const struct mu_option *table, size_t n,
			       void *values);
void mu_options_release(struct mu_options *o);
/*
 * Parse argv[1..argc): "--name value" or "--name=value". A name may be abbreviated if that is
 * unambiguous; '_' reads as '-'. A switch is "--name" or "--no-name"; "--name 1" and "--name=0" are
 * the same. "-h" is "--help", "-q" the flag with that letter. Errors (MU_ERR_USAGE) name the
 * option, its value and the allowed values. The error for an unknown option names a similar one, if
 * there is one.
 */
enum mu_status mu_options_parse(struct mu_options *o, int argc, char *const argv[]);
/* The same without what is no option of the table, or has a wrong value. */
void mu_options_scan(struct mu_options *o, int argc, char *const argv[]);
/* As "--name=text" on the command line; text NULL: as "--name". For files of options. */
enum mu_status mu_options_set(struct mu_options *o, const char *name, const char *text);
/* For programs with words that are no options: is `word` an option, and is `next` its value? */
bool mu_options_is_option(const char *word);
bool mu_options_takes(const struct mu_options *o, const char *word, const char *next);
bool mu_options_given(const struct mu_options *o, const char *name);
/* Is `name` one of the names "a|b"? NULL has none. */
bool mu_option_names(const char *names, const char *name);
/* "--save-steps 500 is now --save-every 500steps", if option i of the table is an old name and was
 * given; false: there is nothing to note. */
bool mu_options_note(const struct mu_options *o, size_t i, char *text, size_t nbytes);
/* Print help by groups, as wide as mu_columns. all = false omits advanced options. */
void mu_options_help(const struct mu_options *o, FILE *stream, bool all);
/* Answer --help and --version: false if neither was given. usage: printed before the options. */
bool mu_options_answer(const struct mu_options *o, const char *program, const char *usage);
/* Columns for a text: of the terminal (COLUMNS, if it is set), from 60 to 120; else 100. */
size_t mu_columns(FILE *stream);
/* The allowed words as "a, b, c"; "" if any text is allowed. */
void mu_option_list(const struct mu_option *option, char *text, size_t nbytes);
/* An option that was not given and has no value: "auto" if one is chosen later, "none" for a number
 * without a default. NULL: it has a value. */
const char *mu_option_unset(const struct mu_options *o, const struct mu_option *option);
/* The value as text, in text or elsewhere; "none" for no value. digits: of reals; 0: as many as it
 * takes to read the value back. */
const char *mu_option_text(const struct mu_options *o, const struct mu_option *option, int digits,
			   char *text, size_t nbytes);
/* text.c: the fewest digits that read back as the value. */
const char *mu_real_text(double value, char *text, size_t nbytes);
/* Each number of 17 characters or more in a text becomes the shortest that reads back the same. */
void mu_text_shorten(char *text);
/*
 * A text of somebody else (a name in a file, of a file, of a host) as one line that a terminal does
 * not obey: control characters but tabs, and bytes that are no UTF-8, become \xNN; so does a colon
 * of an "error:" after them. Messages of the trace and lines of the log are shown so; other output
 * does it by mu_shown. At most nbytes - 1 bytes.
 */
const char *mu_text_show(char *out, size_t nbytes, const char *text);
/* The same in a buffer of this thread, which lasts for three more calls. */
const char *mu_shown(const char *text);
/* A field of CSV, in quotes if it needs them (RFC 4180). One that a table program would compute,
 * such as =1+1, has an apostrophe before it, which makes a text of it there. */
void mu_text_put_csv(FILE *stream, const char *text);
/* The ending of a noun after its number: "1 step", "2 steps"; "1 batch", "2 batches". */
#define MU_S(n) ((n) == 1 ? "" : "s")
#define MU_ES(n) ((n) == 1 ? "" : "es")

/* Characters before the ending of a name such as "a.log"; 0: it does not end so, or is no more. */
size_t mu_stem(const char *name, const char *ending);
/*
 * Write "batch_size=64, lr=0.05, ..." in table order into text of nbytes bytes, always terminated.
 */
void mu_options_describe(const struct mu_options *o, char *text, size_t nbytes);
/* Edit distance between a typed word and a name. First key: distance to the best prefix of the name
 * (names may be abbreviated). Second key: distance to the whole name. */
size_t mu_name_distance(const char *typed, const char *name);
/* May the typed name be a slip for this one? Each word between "-", "_" or "." is compared: a name
 * with another word in it, as block-size for epoch-size, is no help. */
bool mu_name_is_near(const char *typed, const char *name);

/* ---- rules about several options: rows, and one evaluator ---- */

enum mu_option_relation { MU_OPTION_NEEDS = 1, MU_OPTION_EXCLUDES };

/*
 * "--option, where it has one of the values, needs (excludes) --other with one of its values: why".
 * option, other: names of options or facts, "a|b": one of them. Values: NULL: it is given; "+":
 * likewise, and messages show the value; ">1": above 1; "3": this number; "a|b": one of these
 * words; "!a|b": none of them. Without other: these values alone are wrong.
 */
struct mu_option_rule {
	const char *option, *values;
	enum mu_option_relation relation;
	const char *other, *other_values;
	const char *why;
};

/* A bool member of the values struct that follows from options; messages show the first of these
 * options that is given, with its value, "a|b"; NULL: nothing. shown_at: offset of the member that
 * has them in place of `shown`; 0: there is none. */
struct mu_option_fact {
	const char *name;
	size_t offset;
	const char *shown;
	size_t shown_at;
};

struct mu_option_rules {
	const struct mu_option_fact *facts;
	size_t n_facts;
	const struct mu_option_rule *of;
	size_t n;
};

/* MU_ERR_USAGE for the first rule that is broken: one line with option, value and why. */
enum mu_status mu_option_rules_check(const struct mu_options *o, const struct mu_option_rules *r);
enum mu_status mu_option_rule_check(const struct mu_options *o, const struct mu_option_rules *r,
				    const struct mu_option_rule *rule);
/*
 * A row of options that do nothing, in place of what is refused: true where one of them has another
 * value than its default, and what the row needs is missing, or what it excludes is there; text:
 * "--a 1, --b 2 have no effect with --other x: why".
 */
bool mu_option_rule_void(const struct mu_options *o, const struct mu_option_rules *r,
			 const struct mu_option_rule *rule, char *text, size_t nbytes);

/* ---- JSON (RFC 8259), written sequentially ---- */

/* A writer; start with {.file = file}. In the calls below name is the member's name in an object;
 * NULL in an array and for the top-level value. The caller checks the file for errors (ferror). */
struct mu_json {
	FILE *file;
	int flat;  /* values at this depth and deeper share one line; 0: never */
	int depth; /* open brackets */
	bool more; /* the open bracket holds a value already */
};

/* bracket: '{' or '['; close with the same character. */
void mu_json_open(struct mu_json *j, const char *name, char bracket);
void mu_json_close(struct mu_json *j, char bracket);
/* NULL is written as null; bytes that are not UTF-8 are replaced. */
void mu_json_text(struct mu_json *j, const char *name, const char *value);
/* The shortest text that reads back as the same number; null if value is not finite. */
void mu_json_number(struct mu_json *j, const char *name, double value);
void mu_json_bool(struct mu_json *j, const char *name, bool value);

/* ---- threads ---- */

/* Threads that share work. run calls part(of, i) for all i < n, concurrently if it can, and returns
 * after the last. n < 2: one thread; run may be NULL. */
typedef void mu_part_fn(void *of, size_t i);
struct mu_share {
	size_t n;
	enum mu_status (*run)(void *context, mu_part_fn *part, void *of);
	void *context;
};
/* Call run of `share`; without other threads call part 0 in this thread. */
enum mu_status mu_share_run(const struct mu_share *share, mu_part_fn *part, void *of);
/* Number of parts that mu_share_run calls. */
size_t mu_share_parts(const struct mu_share *share);

/* ---- time ---- */

/* Seconds of a monotonic clock. */
double mu_now(void);

enum mu_clock {
	MU_CLOCK_DATA,
	MU_CLOCK_FORWARD,
	MU_CLOCK_BACKWARD,
	MU_CLOCK_PUSH,
	MU_CLOCK_PULL,
	MU_CLOCK_UPDATE,
	MU_CLOCK_COMPRESS, /* compression and decompression */
	MU_CLOCK_N,
};

const char *mu_clock_name(enum mu_clock clock);
/* Each thread has its own clocks. Clocks nest: the last one started is stopped first, and an outer
 * clock is paused while an inner one runs. */
void mu_clock_start(enum mu_clock clock);
void mu_clock_stop(enum mu_clock clock);
/* Seconds counted since the last reset. */
double mu_clock_seconds(enum mu_clock clock);
void mu_clock_reset(void);

/*
 * A span of time, in seconds of mu_now: an uninterrupted run of a clock, or what mu_spans_add adds.
 */
struct mu_span {
	double begin, end;
	int what;  /* enum mu_clock, or a value below */
	int which; /* step or bucket number; for a clock the mark (mu_clock_mark); -1: none */
};
enum { MU_SPAN_STEP = MU_CLOCK_N, MU_SPAN_BUCKET };

/*
 * Record the spans of the calling thread in spans[0..room), until that is full. _stop ends the
 * recording and returns the number of spans. A span costs a few nanoseconds; without recording it
 * costs a test.
 */
void mu_spans_start(struct mu_span *spans, size_t room);
size_t mu_spans_stop(void);
bool mu_spans_wanted(void);
void mu_spans_add(int what, int which, double begin, double end);
/* Mark of the clocks started from now on: the layer on workers, the part on servers. */
void mu_clock_mark(int which);

/* A number that grows while a thread of this process makes progress: clocks start and stop, a file
 * is written. mu_progress_made adds 1. */
uint64_t mu_progress(void);
void mu_progress_made(void);

/* ---- memory ---- */

#define MU_ALIGN 64 /* bytes; every slice of a flat array starts on a multiple of it */

/* n floats rounded up to a multiple of MU_ALIGN bytes. */
static inline size_t mu_pad(size_t n)
{
	return (n + 15) / 16 * 16;
}

/* Allocate zeroed memory aligned to MU_ALIGN (to pages from 1 MiB on). *out is NULL on failure.
 * Free it by mu_free. */
enum mu_status mu_alloc(void **out, size_t nbytes, const char *what);
#define MU_ALLOC(pointer, n, what) mu_alloc((void **)&(pointer), (n) * sizeof *(pointer), (what))
void mu_free(void *p);
/*
 * From now on mu_free frees nothing: messages are in flight that nobody waits for any more, and MPI
 * or another rank may still use their memory. The process ends soon.
 */
void mu_memory_keep(void);
/* What is freed from now on is freed again: what messages may use was let go (mu_members_drop). */
void mu_memory_keep_end(void);
bool mu_memory_is_kept(void);
/* Bytes of memory that the processes of this job may use on this machine: all of its memory, or the
 * limit of a control group if that is lower. 0: unknown. */
double mu_memory_bytes(void);
/*
 * Lowest memory limit, in bytes, of the control groups of this process (cgroup v1 or v2, at their
 * usual places); 0: unknown. Batch systems and containers set a limit for all processes of a job on
 * a node. root: "", or for tests a folder that replaces "/".
 */
double mu_memory_limit(const char *root);

/*
 * Copy n floats with non-temporal stores where the machine has them; for arrays larger than the
 * caches. n is a multiple of 16, out is aligned to 64 bytes. Call mu_stream_end before another
 * thread or process may read the copy.
 */
void mu_stream_copy(float *out, const float *in, size_t n);
void mu_stream_end(void);

/*
 * A function with this mark is compiled for several instruction sets; the loader picks the best one
 * of the machine, and plain loops become vector loops. Disabled under sanitizers, because the
 * loader resolves the choice before they are ready.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define MU_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(MU_SANITIZED) || \
	!defined(__x86_64__) || !defined(__GLIBC__)
#define MU_LOOP
#define MU_SHIFT
#else
#ifdef MU_MAX_ISA_AVX2 /* configure --with-max-isa=avx2 */
#define MU_LOOP __attribute__((target_clones("avx2", "default")))
#else
#define MU_LOOP __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
/* The same for functions with variable shifts: one instruction each with BMI2. */
#define MU_SHIFT __attribute__((target_clones("bmi2", "default")))
#endif

/* A helper inlined into such functions, and compiled for the same instruction set. */
#define MU_INLINE static inline __attribute__((always_inline))

/* ---- number types ---- */

/* Number type of an array. float16: IEEE 754 binary16; bfloat16: the upper half of a float32. */
enum mu_dtype { MU_FLOAT32, MU_FLOAT16, MU_BFLOAT16, MU_DTYPE_N };

const char *mu_dtype_name(enum mu_dtype dtype); /* "float16" */
size_t mu_dtype_bytes(enum mu_dtype dtype);     /* per number */
/* Convert n numbers to and from float32. Conversion to the smaller type rounds to nearest, ties to
 * even; values out of range become infinite, NaN stays NaN. in and out do not overlap. */
void mu_dtype_to_float(enum mu_dtype dtype, float *out, const void *in, size_t n);
void mu_dtype_from_float(enum mu_dtype dtype, void *out, const float *in, size_t n);

/* ---- slices of a flat array ---- */

enum mu_slice_rule {
	MU_SLICE_LEARN,   /* updated by the optimiser's rule */
	MU_SLICE_AVERAGE, /* w <- momentum w + (1 - momentum) g / count: running statistics of
			     batch-norm */
};

/* Key k of a model is slice k of the flat arrays of weights and of gradients. */
struct mu_slice {
	const char *name; /* "convolution0_weight" */
	size_t at;        /* first element, a multiple of 16 */
	size_t n;         /* elements in plain order (as files hold them) */
	size_t n_padded;  /* elements in the device's layout, >= n; the padding is zero */
	enum mu_slice_rule rule;
	float momentum; /* for MU_SLICE_AVERAGE */
	bool fixed;     /* never updated, whatever the rule */
	/*
	 * For MU_SLICE_LEARN: factors of the learning rate and of the weight decay, each used only
	 * if its flag is set. Defaults: 1 for the learning rate; the weight decay depends on the
	 * name, see optim.h.
	 */
	bool has_lr_mult, has_wd_mult;
	double lr_mult, wd_mult;
};

/* ---- hashes ---- */

/* FNV-1a of more bytes; h: the hash of the bytes before them, at first MU_HASH_START. */
#define MU_HASH_START 14695981039346656037u
uint64_t mu_hash(uint64_t h, const void *data, size_t nbytes);
/* Another hash, of gigabytes in a second. Bytes in other pieces give another one. */
uint64_t mu_hash_block(uint64_t h, const void *data, size_t nbytes);

/* ---- random numbers: a counter generator, so a draw depends on its key and nothing else ---- */

enum mu_random_purpose {
	MU_RANDOM_INIT = 1, /* initial weights: sample = key */
	MU_RANDOM_SHUFFLE,  /* permutation of an epoch */
	MU_RANDOM_DROPOUT,  /* sample = sample id */
	MU_RANDOM_AUGMENT,  /* sample = sample id */
	MU_RANDOM_SYNTHETIC,
	MU_RANDOM_DIGITS,
	MU_RANDOM_TEST,
	MU_RANDOM_HELD_OUT, /* records for validation */
};

struct mu_random {
	uint64_t seed;
	uint32_t purpose; /* < 128 */
	uint32_t epoch;
	uint64_t sample; /* < 2^56 */
};

/* The generator: for each key a bijection of counters. out may be counter. */
void mu_random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/*
 * Draw number `element` for this key. Generator: Philox4x32-10 (Salmon et al., Parallel random
 * numbers: as easy as 1, 2, 3, SC11). uniform: in [0, 1) with 24 bits. normal: by Box-Muller.
 * below: an integer in [0, n) without bias. element < 2^34; for mu_random_below < 2^32. bits,
 * uniform and normal of one element use the same bits; below is independent of them.
 */
uint32_t mu_random_bits(const struct mu_random *key, uint64_t element);
float mu_random_uniform(const struct mu_random *key, uint64_t element);
float mu_random_normal(const struct mu_random *key, uint64_t element);
/* The same for n consecutive elements, at a fraction of the cost. */
void mu_random_uniforms(const struct mu_random *key, uint64_t first, size_t n, float *out);
void mu_random_normals(const struct mu_random *key, uint64_t first, size_t n, float *out);
uint64_t mu_random_below(const struct mu_random *key, uint64_t element, uint64_t n);
/* Set order[0..n) to a permutation of 0..n-1 (Fisher and Yates). */
void mu_random_permutation(const struct mu_random *key, uint32_t *order, size_t n);

MU_END_C

#endif
