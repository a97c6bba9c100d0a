/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base: what every folder stands on. Status and error trace, log, options table, clocks, memory,
 * random numbers.
 *
 * Errors climb and collect places. A function that can fail returns enum mu_status, starts with
 * `enum mu_status st = MU_OK;`, has one label `out:` and frees below it. The place that detects an
 * error calls MU_FAIL with a message that names the thing and says what would be right; every
 * caller passes it on with MU_TRY. Only main prints the trace and ends the job.
 *
 * Nothing here knows MPI. The only mutable globals of the library are the trace, the log and the
 * clocks.
 */
#ifndef MUSTER_BASE_H
#define MUSTER_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- status and error trace ---- */

enum mu_status {
	MU_OK = 0,
	MU_ERR_USAGE,    /* an option or a combination of options that cannot be: exit status 2 */
	MU_ERR_ARGUMENT, /* a caller broke a function's contract */
	MU_ERR_MEMORY,   /* memory could not be had */
	MU_ERR_IO,       /* a file could not be opened, read or written */
	MU_ERR_FORMAT,   /* a file's contents are not what they should be */
	MU_ERR_MPI,      /* an MPI call failed */
	MU_ERR_DEVICE,   /* a device library (oneDNN, CUDA, ...) failed */
	MU_ERR_NUMERIC,  /* a loss or a gradient is not finite */
	MU_ERR_UNSUPPORTED, /* known, but not in this build or not for these sizes */
	MU_ERR_PEER,        /* another rank reported an error */
	MU_ERR_TIMEOUT,     /* another rank did not do its part in time */
};

const char *mu_status_name(enum mu_status st);

/* Start a trace with a message and the place it happened at; returns st. Used through MU_FAIL. */
enum mu_status mu_trace_start(enum mu_status st, const char *file, int line, const char *format,
			      ...) __attribute__((format(printf, 4, 5)));
/* Add a place to the trace. Used through MU_TRY. */
void mu_trace_add(enum mu_status st, const char *file, int line, const char *call);
/* The message of the current trace ("" if none), and the whole trace, several lines. */
const char *mu_trace_message(void);
void mu_trace_print(FILE *stream, const char *who);
void mu_trace_clear(void);
/* Put this text before the message of the current trace. */
void mu_trace_prefix(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * Each thread has a trace of its own. _take makes the calling thread's one a thing that can be
 * carried, and clears it; NULL if there is none, or no memory. _give makes such a thing the calling
 * thread's trace, and frees it; NULL changes nothing. What is not given is freed by
 * mu_free.
 */
struct mu_trace;
struct mu_trace *mu_trace_take(void);
void mu_trace_give(struct mu_trace *taken);

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

enum mu_log_level { MU_LOG_ERROR, MU_LOG_WARN, MU_LOG_INFO, MU_LOG_DEBUG };

struct mu_log_config {
	FILE *stream;            /* where lines go, NULL = stderr */
	enum mu_log_level level; /* lines above this level are dropped */
	bool time;          /* start each line with date and time, as "2026-01-31 12:00:00,123" */
	const char *prefix; /* then this, e.g. "Node[0]"; NULL or "" = nothing. Copied. */
};

void mu_log_configure(const struct mu_log_config *config);
enum mu_log_level mu_log_level(void);
/* One line, written with one write call so that lines of several ranks do not mix. No newline in
 * the format. */
void mu_log(enum mu_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define mu_log_info(...) mu_log(MU_LOG_INFO, __VA_ARGS__)
#define mu_log_warn(...) mu_log(MU_LOG_WARN, __VA_ARGS__)

/* ---- options: one table gives the struct's values, the parser, --help, the log header ---- */

enum mu_option_type {
	MU_OPTION_FLAG,   /* bool member; on the command line without a value: --info */
	MU_OPTION_INT,    /* long member */
	MU_OPTION_REAL,   /* double member */
	MU_OPTION_STRING, /* const char * member, NULL when there is no default; points into argv or
			     the table */
};

struct mu_option {
	const char *name; /* "batch-size", without dashes */
	enum mu_option_type type;
	size_t offset;       /* of the member in the values struct */
	const char *initial; /* default as text, NULL = none (0, NULL, false) */
	double min, max;     /* allowed range of numbers, both 0 = no limits */
	const char *choices; /* words allowed for a string, "a|b|c"; NULL = anything.
				"|a|b": the option may stand without a word, which is "" */
	const char *group;   /* heading in --help */
	const char
		*help; /* one line; METAVAR first in capitals: "N  samples per worker and step" */
	bool advanced; /* shown by --help-all only */
};

struct mu_options {
	const struct mu_option *table;
	size_t n;
	void *values; /* the struct that the offsets point into */
	bool *given;  /* n flags: was it on the command line; owned */
};

/* Fill values with the defaults. */
enum mu_status mu_options_init(struct mu_options *o, const struct mu_option *table, size_t n,
			       void *values);
void mu_options_release(struct mu_options *o);
/*
 * Parse argv[1..argc). "--name value", "--name=value"; a name may be abbreviated while unambiguous,
 * '_' reads as '-'. Errors (MU_ERR_USAGE) name the option, the value and what is allowed; an
 * unknown option names the nearest known one.
 */
enum mu_status mu_options_parse(struct mu_options *o, int argc, char *const argv[]);
bool mu_options_given(const struct mu_options *o, const char *name);
/* Grouped help, at most 100 columns; all = false leaves advanced options out. */
void mu_options_help(const struct mu_options *o, FILE *stream, bool all);
/* "batch_size=64, lr=0.05, ..." in table order, into text of size nbytes, always terminated. */
void mu_options_describe(const struct mu_options *o, char *text, size_t nbytes);

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
	MU_CLOCK_N,
};

const char *mu_clock_name(enum mu_clock clock);
void mu_clock_start(enum mu_clock clock);
void mu_clock_stop(enum mu_clock clock);
/* Seconds collected since the last reset. */
double mu_clock_seconds(enum mu_clock clock);
void mu_clock_reset(void);

/* ---- memory ---- */

#define MU_ALIGN 64 /* bytes; every slice of a flat array starts on a multiple of it */

/* n floats rounded up to a multiple of MU_ALIGN bytes. */
static inline size_t mu_pad(size_t n)
{
	return (n + 15) / 16 * 16;
}

/* Zeroed memory aligned to MU_ALIGN (page-aligned from 1 MiB on); *out is NULL on failure. Freed by
 * mu_free. */
enum mu_status mu_alloc(void **out, size_t nbytes, const char *what);
#define MU_ALLOC(pointer, n, what) mu_alloc((void **)&(pointer), (n) * sizeof *(pointer), (what))
void mu_free(void *p);
/* Bytes of memory that this machine has, 0 if that cannot be told. */
double mu_memory_bytes(void);

/*
 * A function with this mark is compiled for several instruction sets, of which the loader takes the
 * best that the machine has; its plain loops become vector loops. Not under sanitizers: the choice
 * is made before they are ready.
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
#else
#define MU_LOOP __attribute__((target_clones("avx512f", "avx2", "default")))
#endif

/* ---- types of numbers ---- */

/*
 * How an array's numbers lie in memory. float16: IEEE 754 binary16; bfloat16: the upper half of a
 * float32.
 */
enum mu_dtype { MU_FLOAT32, MU_FLOAT16, MU_BFLOAT16, MU_DTYPE_N };

const char *mu_dtype_name(enum mu_dtype dtype); /* "float16" */
size_t mu_dtype_bytes(enum mu_dtype dtype);     /* of one number */
/*
 * n numbers to and from float32. Towards the smaller type they are rounded to the nearest, ties to
 * even; what is too large becomes infinite, NaN stays NaN. in and out do not overlap.
 */
void mu_dtype_to_float(enum mu_dtype dtype, float *out, const void *in, size_t n);
void mu_dtype_from_float(enum mu_dtype dtype, void *out, const float *in, size_t n);

/* ---- slices of a flat array ---- */

enum mu_slice_rule {
	MU_SLICE_LEARN,   /* the optimiser's rule */
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
};

/* ---- random numbers: a counter generator, so a draw depends on its key and nothing else ---- */

enum mu_random_purpose {
	MU_RANDOM_INIT = 1, /* initial weights: sample = key */
	MU_RANDOM_SHUFFLE,  /* permutation of an epoch */
	MU_RANDOM_DROPOUT,  /* sample = sample id */
	MU_RANDOM_AUGMENT,  /* sample = sample id */
	MU_RANDOM_SYNTHETIC,
	MU_RANDOM_DIGITS,
	MU_RANDOM_TEST,
};

struct mu_random {
	uint64_t seed;
	uint32_t purpose; /* < 128 */
	uint32_t epoch;
	uint64_t sample; /* < 2^56 */
};

/* The generator itself, a bijection of counters for each key. out may be counter. */
void mu_random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/*
 * Draw number `element` for this key. Philox4x32-10: Salmon et al., Parallel random numbers: as
 * easy as 1, 2, 3, SC11. Uniform in [0, 1) with 24 bits; normal by Box-Muller; integer in [0, n)
 * without bias. element < 2^34, for mu_random_below < 2^32. bits, uniform and normal of one element
 * come from the same bits; below is independent of them.
 */
uint32_t mu_random_bits(const struct mu_random *key, uint64_t element);
float mu_random_uniform(const struct mu_random *key, uint64_t element);
float mu_random_normal(const struct mu_random *key, uint64_t element);
uint64_t mu_random_below(const struct mu_random *key, uint64_t element, uint64_t n);
/* order[0..n) becomes a permutation of 0..n-1 (Fisher and Yates). */
void mu_random_permutation(const struct mu_random *key, uint32_t *order, size_t n);

#endif
