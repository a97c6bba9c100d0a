/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a run repeats the options that were given to it. It records the values of all others,
 * too, which this run chooses anew: by the same rules, it has the same values, unless somebody has
 * edited the file, or another option, the data, or the version of the program differs.
 */
#include "conf.h"

#include <stdlib.h>
#include <string.h>

enum { LIST_BYTES = 512, TEXT_BYTES = 64 };

/* The value that the option has here; NULL: the recorded one. */
static const char *other_value(const struct mu_options *o, const struct mu_option *option,
			       const char *recorded, char text[TEXT_BYTES])
{
	const char *unset = mu_option_unset(o, option);
	const char *now = unset ? unset : mu_option_text(o, option, 0, text, TEXT_BYTES);
	const bool number = option->type == MU_OPTION_INT || option->type == MU_OPTION_REAL;

	if (number && !unset ? strtod(now, NULL) == strtod(recorded, NULL)
			     : strcmp(now, recorded) == 0)
		return NULL;
	return now;
}

/* NULL: the file records none. */
static const char *recorded_value(const struct conf_arguments *recorded, const char *name)
{
	const size_t n = strlen(name);

	for (int k = 0; recorded && k < recorded->argc; k++) {
		const char *argument = recorded->argv[k] + 2;

		if (strncmp(argument, name, n) == 0 && argument[n] == '=')
			return argument + n + 1;
	}
	return NULL;
}

void mu_conf_recorded_tell(const struct conf_arguments *a, const struct mu_options *o)
{
	char list[LIST_BYTES] = "", text[TEXT_BYTES];
	size_t n = 0;

	for (size_t i = 0; a && i < o->n && n < sizeof list; i++) {
		const struct mu_option *option = &o->table[i];
		const char *value = recorded_value(a->recorded, option->name);
		const char *now =
			value && !o->given[i] ? other_value(o, option, value, text) : NULL;

		if (now)
			n += (size_t)snprintf(list + n, sizeof list - n, "%s--%s %s (here: %s)",
					      n ? ", " : "", option->name, value, now);
	}
	if (n > 0)
		mu_log_warn("--config: the file of a run records %s, which its list \"given\" does "
			    "not name: this run chooses for itself; to have a recorded value, give "
			    "the option",
			    list);
}
