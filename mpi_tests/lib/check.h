/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks for the test programs. A failed check prints its file, its line and what it saw, and the
 * test goes on. A test ends with `return check_failures() ? 1 : 0;`, over all ranks where it uses
 * MPI; 77 is a skip, with the reason printed.
 */
#ifndef MUSTER_CHECK_H
#define MUSTER_CHECK_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECK_SKIPPED = 77 };

static int check_failed; /* checks that failed on this rank */

static inline int check_failures(void)
{
	return check_failed;
}

static inline bool check_true(bool ok, const char *file, int line, const char *text)
{
	if (!ok) {
		check_failed++;
		fprintf(stderr, "%s:%d: failed: %s\n", file, line, text);
	}
	return ok;
}

static inline bool check_text(const char *a, const char *b, const char *file, int line,
			      const char *text)
{
	bool ok = a && b && strcmp(a, b) == 0;

	if (!ok) {
		check_failed++;
		fprintf(stderr, "%s:%d: failed: %s: \"%s\" is not \"%s\"\n", file, line, text,
			a ? a : "(null)", b ? b : "(null)");
	}
	return ok;
}

static inline bool check_has(const char *a, const char *part, const char *file, int line,
			     const char *text)
{
	bool ok = a && part && strstr(a, part);

	if (!ok) {
		check_failed++;
		fprintf(stderr, "%s:%d: failed: %s: \"%s\" does not hold \"%s\"\n", file, line,
			text, a ? a : "(null)", part ? part : "(null)");
	}
	return ok;
}

static inline bool check_near(double a, double b, double tolerance, const char *file, int line,
			      const char *text)
{
	bool ok = fabs(a - b) <= tolerance; /* false for NaN */

	if (!ok) {
		check_failed++;
		fprintf(stderr, "%s:%d: failed: %s: %.9g and %.9g differ by more than %g\n", file,
			line, text, a, b, tolerance);
	}
	return ok;
}

/* Is this word, or a part of it, in the list of an environment variable? True without it. */
static inline bool check_is_asked(const char *variable, const char *word)
{
	const char *list = getenv(variable);
	char part[64];
	int n = 0;

	if (!list)
		return true;
	for (; sscanf(list, "%63s%n", part, &n) == 1; list += n)
		if (strstr(word, part))
			return true;
	return false;
}

/*
 * For lists of devices: false, said once a list, for one that this machine does not have. With
 * MU_TEST_DEVICES="gpu" in the environment only those are tested: jobs/gpu-check.sh has no time for
 * the others.
 */
#define CHECK_IS_HERE(ops) check_is_here((ops)->name, (ops)->count)

static inline bool check_is_here(const char *name, int (*count)(char *why, size_t nbytes))
{
	char why[256];

	if (!check_is_asked("MU_TEST_DEVICES", name))
		return false;
	if (!count || count(why, sizeof why) > 0)
		return true;
	printf("skipped on %s: %s\n", name, why);
	return false;
}

/* Does the suite run in this tier, "full" or "long", or in a larger one? See mpi_tests/run. */
static inline bool check_in_tier(const char *tier)
{
	const char *is = getenv("MU_TIER");

	return is && (strcmp(is, "long") == 0 || strcmp(is, tier) == 0);
}

/* Each is an expression, true when the check holds. */
#define CHECK(condition) check_true((condition), __FILE__, __LINE__, #condition)
#define CHECK_TEXT(a, b) check_text((a), (b), __FILE__, __LINE__, #a)
#define CHECK_HAS(text, part) check_has((text), (part), __FILE__, __LINE__, #text)
#define CHECK_NEAR(a, b, tolerance) check_near((a), (b), (tolerance), __FILE__, __LINE__, #a)

#endif
