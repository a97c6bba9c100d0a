/* SPDX-License-Identifier: Apache-2.0 */
/* The item lr-schedule of a checkpoint, whose form identity.c defines, in words of the options. */
#include <string.h>

#include "contents.h"

enum { WORD_BYTES = 64 };

static void add_warmup(char *text, size_t nbytes, const char *how, double epochs, double begin)
{
	const size_t n = strlen(text);

	if (epochs > 0)
		snprintf(text + n, nbytes - n, " after a %s warm-up of %g epoch%s from %g", how,
			 epochs, epochs == 1 ? "" : "s", begin);
}

void mu_checkpoint_schedule_text(const char *item, char *text, size_t nbytes)
{
	char kind[WORD_BYTES], at[8 * WORD_BYTES], how[WORD_BYTES];
	double factor, every, power, last, warmup = 0, begin = 0;

	if (sscanf(item, "%63s %511s %lf %lf %lf %lf %63s %lf %lf", kind, at, &factor, &every,
		   &power, &last, how, &warmup, &begin) != 9)
		snprintf(text, nbytes, "%s", item);
	else if (strcmp(kind, "multifactor") == 0)
		snprintf(text, nbytes, "multifactor %g at epochs %s", factor,
			 strcmp(at, "-") == 0 ? "that are not given" : at);
	else if (strcmp(kind, "factor") == 0)
		snprintf(text, nbytes, "factor %g every %g epoch%s down to %g", factor, every,
			 every == 1 ? "" : "s", last);
	else if (strcmp(kind, "poly") == 0)
		snprintf(text, nbytes, "poly of power %g down to %g", power, last);
	else if (strcmp(kind, "cosine") == 0)
		snprintf(text, nbytes, "cosine down to %g", last);
	else
		snprintf(text, nbytes, "%s", kind);
	add_warmup(text, nbytes, how, warmup, begin);
}
