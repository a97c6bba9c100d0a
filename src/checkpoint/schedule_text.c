/* SPDX-License-Identifier: Apache-2.0 */
/* The item lr-schedule of a checkpoint, whose form identity.c defines, in words of the options. */
#include <stdlib.h>
#include <string.h>

#include "contents.h"

enum { WORD_BYTES = 64 };

/* length: "0.5" epochs, or "100steps". */
static void add_warmup(char *text, size_t nbytes, const char *how, const char *length, double begin)
{
	const size_t n = strlen(text);
	char *unit;
	const double count = strtod(length, &unit);

	if (count > 0)
		snprintf(text + n, nbytes - n, " after a %s warm-up of %g %s%s from %g", how, count,
			 *unit ? "step" : "epoch", MU_S(count), begin);
}

void mu_checkpoint_schedule_text(const char *item, char *text, size_t nbytes)
{
	char kind[WORD_BYTES], at[8 * WORD_BYTES], how[WORD_BYTES], warmup[WORD_BYTES] = "0";
	double factor, every, power, last, begin = 0;

	if (sscanf(item, "%63s %511s %lf %lf %lf %lf %63s %63s %lf", kind, at, &factor, &every,
		   &power, &last, how, warmup, &begin) != 9)
		snprintf(text, nbytes, "%s", item);
	else if (strcmp(kind, "multifactor") == 0)
		snprintf(text, nbytes, "multifactor %g at epochs %s", factor,
			 strcmp(at, "-") == 0 ? "that are not given" : at);
	else if (strcmp(kind, "factor") == 0)
		snprintf(text, nbytes, "factor %g every %g epoch%s down to %g", factor, every,
			 MU_S(every), last);
	else if (strcmp(kind, "poly") == 0)
		snprintf(text, nbytes, "poly of power %g down to %g", power, last);
	else if (strcmp(kind, "cosine") == 0)
		snprintf(text, nbytes, "cosine down to %g", last);
	else
		snprintf(text, nbytes, "%s", kind);
	add_warmup(text, nbytes, how, warmup, begin);
}
